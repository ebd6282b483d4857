// Host code that asks the runtime for the kernel of a sparse product, with what is done after the sum as kernel text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>

#include "codegen/kernel/c_string.h"
#include "codegen/kernel/functor.h"
#include "codegen/sparse/products.h"

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

// What a kernel of the runtime passes to the epilogue of a sum.
struct EpilogueArguments {
  Value row;
  std::optional<Value> column, nonzero;
  bool counts_nonzeros = false;  // it tells the non-zero's number, too, whether the code reads it or not
};

// Declares what is done after the sum; the name of the variable.
std::string write_epilogue(const SparseEpilogue& epilogue, const EpilogueArguments& arguments, const Stm& stm,
                           Unit& unit, Values& values, const std::function<std::string(Value)>& block, Writer& out) {
  const ValueTable& table = unit.function.values;
  Stm code = stm;
  code.pattern.clear();
  SegOp frame{
      .level = SegLevel::thread, .space = {}, .body = make_body(epilogue.stms, {epilogue.result}), .results = {}};
  code.op = std::move(frame);
  Kernel lowering(unit, code);
  const kernel::Function function = lowering.run();

  kernel::Functor functor;
  functor.sum_type = {table.type(epilogue.sum).element, false};
  functor.sum = unit.name(epilogue.sum);
  functor.row = unit.name(arguments.row);
  functor.column = arguments.column ? unit.name(*arguments.column) : "";
  functor.counts_nonzeros = arguments.counts_nonzeros;
  functor.nonzero = arguments.nonzero ? unit.name(*arguments.nonzero) : "";
  functor.result = Values(unit, unit.dialect()).operand(epilogue.result);
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
    if (s == epilogue.sum || s == arguments.row || s == arguments.column || s == arguments.nonzero) continue;
    member(param, kernel::c_type(param.type) + " ", kernel::print(values.value(s), c_dialect()));
  }
  functor.name = "apl_after";
  functor.name = name_of_text(kernel::print(functor, function, unit.dialect()));
  const std::string name = unit.fresh(table.name(stm.pattern.front()) + "_after", {"_values"});
  if (!fields.empty())
    out.line("struct {{ {} }} {}_values = {{{}}};", fmt::join(fields, " "), name, fmt::join(numbers, ", "));
  out.line("const struct apl_sparse_epilogue {} = {{\"{}\",", name, functor.name);
  out.line("  {},", c_string(kernel::print(functor, function, unit.dialect())));
  out.line("  {}}};", fields.empty() ? "NULL" : fmt::format("&{}_values", name));
  return name;
}

// The same for a CPU: a kernel over the results, where the sums are.
Stm loop_after(const SparseEpilogue& epilogue, const Stm& stm) {
  const Value sums = stm.pattern.front();
  Index read{.array = sums, .dims = {}};
  for (const SegDim& dim : epilogue.space) read.dims.push_back(DimIndex::fix(Poly(dim.index)));
  std::vector<Stm> stms = epilogue.stms;
  stms.insert(stms.begin(), Stm{.pattern = {epilogue.sum}, .op = std::move(read), .location = stm.location});
  Stm loop = stm;
  SegOp op{.level = SegLevel::thread, .space = epilogue.space, .body = make_body(std::move(stms), {epilogue.result})};
  loop.op = std::move(op);
  return loop;
}

}  // namespace

SparseCall write_sparse_call(const Stm& stm, Unit& unit, Values& values, const std::function<std::string(Value)>& block,
                             Writer& out) {
  const bool on_host = !unit.target.on_device();
  const ValueTable& table = unit.function.values;
  const auto text = [&](const Poly& p) { return kernel::print(values.poly(p), c_dialect()); };
  const auto array = [&](Value v) { return block(table.type(v).memory->block); };
  const auto rows = [&](const std::string& name, const DenseRows& dense, ScalarType type) {
    return fmt::format(".{0} = (char *){1} + ({2}) * {3}, .{0}_row = {4}", name, block(dense.block), text(dense.offset),
                       byte_size(type), text(dense.row));
  };
  const auto nonzeros = [&](const std::string& name, const Nonzeros& numbers, ScalarType type) {
    return fmt::format(".{} = (char *){} + ({}) * {}", name, block(numbers.block), text(numbers.offset),
                       byte_size(type));
  };
  const auto result_type = [](const auto& asked) { return asked.is_wide ? ScalarType::f32 : asked.type; };
  std::string call, fields;
  std::vector<SegDim> batches;
  SparseEpilogue epilogue;
  EpilogueArguments arguments;
  if (const auto product = on_host ? find_host_product(stm, unit.function) : find_sparse_product(stm, unit.function)) {
    call = "product";
    batches = product->batches;
    epilogue = product->epilogue;
    arguments = {.row = product->i, .column = product->j, .nonzero = {}};
    fields = fmt::format(
        ".type = {}, .rows = {}, .columns = {}, .nonzeros = {}, .width = {}, .row_start = {}, .column = {}, {}, {}, {}",
        c_enum_of(product->type), text(product->rows), text(product->columns), text(product->nonzeros),
        text(product->width), array(product->row_start), array(product->column),
        nonzeros("values", product->values, product->type), rows("b", product->b, product->type),
        rows("c", product->c, result_type(*product)));
    if (product->is_wide) fields += ", .is_wide = 1";
  } else if (const auto sddmm = on_host ? find_host_sddmm(stm, unit.function) : find_sparse_sddmm(stm, unit.function)) {
    call = "sddmm_product";
    batches = sddmm->batches;
    epilogue = sddmm->epilogue;
    arguments = {.row = sddmm->i, .column = sddmm->j, .nonzero = sddmm->e, .counts_nonzeros = true};
    fields = fmt::format(
        ".type = {}, .rows = {}, .columns = {}, .nonzeros = {}, .depth = {}, .row = {}, .column = {}, {}, {}, {}",
        c_enum_of(sddmm->type), text(sddmm->rows), text(sddmm->columns), text(sddmm->nonzeros), text(sddmm->depth),
        array(sddmm->row), array(sddmm->column), rows("x", sddmm->x, sddmm->type), rows("y", sddmm->y, sddmm->type),
        nonzeros("result", sddmm->result, result_type(*sddmm)));
    if (sddmm->is_wide) fields += ", .is_wide = 1";
    if (sddmm->values) fields += ", " + nonzeros("values", *sddmm->values, sddmm->type);
  } else {
    return {};
  }
  const std::string made = unit.fresh(table.name(stm.pattern.front()) + "_made"), asked = unit.fresh(call);
  out.line("");
  out.line("int32_t {} = 0;", made);
  out.open("if (ctx->backend->sparse_{}) {{", call);
  for (const SegDim& dim : batches)
    out.open("for (int64_t {0} = 0; {0} < {1}; ++{0}) {{", unit.name(dim.index), text(dim.bound));
  if (!epilogue.empty() && !on_host)
    fields += ", .epilogue = &" + write_epilogue(epilogue, arguments, stm, unit, values, block, out);
  out.line("const struct apl_sparse_{} {} = {{{}}};", call, asked, fields);
  out.line("status = ctx->backend->sparse_{}(ctx, &{}, &{});", call, asked, made);
  out.line("if (status != APL_SUCCESS) goto done;");
  if (on_host) {
    out.line("#pragma omp parallel if ({} > 1)", made);
    out.line("if ({}) ctx->backend->sparse_work(ctx);", made);
  }
  for (std::size_t k = 0; k < batches.size(); ++k) out.close("}}");
  out.close("}}");
  return {made, on_host && !epilogue.empty() ? std::optional(loop_after(epilogue, stm)) : std::nullopt};
}

}  // namespace apl::lower
