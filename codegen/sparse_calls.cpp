// Host code that asks the runtime for the kernel of a sparse product, with what is done after the sum as kernel text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>

#include "codegen/c_string.h"
#include "codegen/functor.h"
#include "codegen/sparse_products.h"

namespace apl::lower {
namespace {

std::string c_enum_of(ScalarType type) {
  std::string name = "APL_" + std::string(apl::to_text(type));
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

// The same text has the same name in all programs: kernels are kept by it.
std::string name_of_text(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("apl_after_{:016x}", hash);
}

// Declares what is done after the sum; the name of the variable.
std::string write_after(const SparseProduct& product, const Stm& stm, Unit& unit, Values& values,
                        const std::function<std::string(Value)>& block, Writer& out) {
  const ValueTable& table = unit.function.values;
  Stm code = stm;
  code.pattern.clear();
  SegOp frame{
      .level = SegLevel::thread, .space = {}, .body = make_body(product.after, {product.result}), .results = {}};
  code.op = std::move(frame);
  Kernel lowering(unit, code);
  const kernel::Function function = lowering.run();

  kernel::Functor functor;
  functor.sum_type = {table.type(product.sum).element, false};
  functor.sum = unit.name(product.sum);
  functor.row = unit.name(product.i);
  functor.column = product.j ? unit.name(*product.j) : "";
  functor.result = Values(unit, kernel::Dialect::cuda).operand(product.result);
  std::vector<std::string> fields, numbers;
  const auto member = [&](const kernel::Param& param, const std::string& type, const std::string& value) {
    functor.members.push_back(param);
    fields.push_back(fmt::format("{}{};", type, param.name));
    numbers.push_back(value);
  };
  std::size_t at = 0;
  for (const Value b : lowering.blocks()) member(function.params[at++], "const void *", block(b));
  for (const Value s : lowering.scalars()) {
    const kernel::Param& param = function.params[at++];
    if (s == product.sum || s == product.i || s == product.j) continue;
    member(param, kernel::c_type(param.type) + " ", kernel::print(values.value(s), kernel::Dialect::c));
  }
  functor.name = "apl_after";
  functor.name = name_of_text(kernel::print(functor, function));
  const std::string name = unit.fresh(table.name(stm.pattern.front()) + "_after");
  if (!fields.empty())
    out.line("struct {{ {} }} {}_values = {{{}}};", fmt::join(fields, " "), name, fmt::join(numbers, ", "));
  out.line("const struct apl_sparse_after {} = {{\"{}\",", name, functor.name);
  out.line("  {},", c_string(kernel::print(functor, function)));
  out.line("  {}}};", fields.empty() ? "NULL" : fmt::format("&{}_values", name));
  return name;
}

}  // namespace

std::string write_sparse_call(const Stm& stm, Unit& unit, Values& values,
                              const std::function<std::string(Value)>& block, Writer& out) {
  const bool on_host = unit.target == Target::c;
  const ValueTable& table = unit.function.values;
  const auto text = [&](const Poly& p) { return kernel::print(values.poly(p), kernel::Dialect::c); };
  const auto array = [&](Value v) { return block(table.type(v).memory->block); };
  const auto rows = [&](const std::string& name, const DenseRows& dense, ScalarType type) {
    return fmt::format(".{0} = (char *){1} + ({2}) * {3}, .{0}_row = {4}", name, block(dense.block), text(dense.offset),
                       byte_size(type), text(dense.row));
  };
  std::string call, fields;
  std::vector<SegDim> batches;
  std::optional<SparseProduct> followed;
  if (const auto product = on_host ? find_host_product(stm, unit.function) : find_sparse_product(stm, unit.function)) {
    call = "product";
    batches = product->batches;
    if (!product->after.empty()) followed = product;
    fields = fmt::format(
        ".type = {}, .rows = {}, .columns = {}, .nonzeros = {}, .width = {}, .row_start = {}, .column = {}, "
        ".values = {}, {}, {}",
        c_enum_of(product->type), text(product->rows), text(product->columns), text(product->nonzeros),
        text(product->width), array(product->row_start), array(product->column), array(product->values),
        rows("b", product->b, product->type), rows("c", product->c, product->type));
  } else if (const auto sampling = find_sparse_sampling(stm, unit.function)) {
    call = "sampling";
    fields = fmt::format(
        ".type = {}, .rows = {}, .columns = {}, .nonzeros = {}, .depth = {}, .row = {}, .column = {}, .values = {}, "
        "{}, {}, .result = {}",
        c_enum_of(sampling->type), text(sampling->rows), text(sampling->columns), text(sampling->nonzeros),
        text(sampling->depth), array(sampling->row), array(sampling->column), array(sampling->values),
        rows("x", sampling->x, sampling->type), rows("y", sampling->y, sampling->type), array(sampling->result));
  } else {
    return {};
  }
  const std::string made = unit.fresh(table.name(stm.pattern.front()) + "_made"), asked = unit.fresh(call);
  out.line("");
  out.line("int32_t {} = 0;", made);
  out.open("if (ctx->backend->sparse_{}) {{", call);
  for (const SegDim& dim : batches)
    out.open("for (int64_t {0} = 0; {0} < {1}; ++{0}) {{", unit.name(dim.index), text(dim.bound));
  if (followed) fields += ", .after = &" + write_after(*followed, stm, unit, values, block, out);
  out.line("const struct apl_sparse_{} {} = {{{}}};", call, asked, fields);
  out.line("status = ctx->backend->sparse_{}(ctx, &{}, &{});", call, asked, made);
  out.line("if (status != APL_SUCCESS) goto done;");
  if (on_host) {
    out.line("#pragma omp parallel if ({} > 1)", made);
    out.line("if ({}) ctx->backend->sparse_work(ctx);", made);
  }
  for (std::size_t k = 0; k < batches.size(); ++k) out.close("}}");
  out.close("}}");
  return made;
}

}  // namespace apl::lower
