// Host code that asks the runtime for the kernel of a sparse product, with what is done after the sum as kernel text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>

#include "codegen/kernel/c_string.h"
#include "codegen/kernel/functor.h"
#include "codegen/sparse/constant.h"
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

// What is done after the sum: a variable, and its type for kernels.
struct WrittenEpilogue {
  std::string variable, values, type, text;  // `values`: the variable of its members, if it has any
};
WrittenEpilogue write_epilogue(const SparseEpilogue& epilogue, const EpilogueArguments& arguments, const Stm& stm,
                               Unit& unit, Values& values, const std::function<std::string(Value)>& block,
                               Writer& out) {
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
  const std::string text = kernel::print(functor, function, unit.dialect());
  if (!fields.empty())
    out.line("struct {{ {} }} {}_values = {{{}}};", fmt::join(fields, " "), name, fmt::join(numbers, ", "));
  out.line("const struct apl_sparse_epilogue {} = {{\"{}\",", name, functor.name);
  out.line("  {},", c_string(text));
  out.line("  {}}};", fields.empty() ? "NULL" : fmt::format("&{}_values", name));
  return {name, fields.empty() ? "" : name + "_values", functor.name, text};
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

// Code for a matrix that is known: its name in the file, and of a kernel how it is launched.
struct Constant {
  std::string name;
  DeviceText device;
  std::int64_t columns = 1;
};

const SparseSchedule::Sections* sections_of(const Stm& stm) {
  const SegOp* kernel = get_if<SegOp>(stm);
  return kernel->sparse->sections ? &*kernel->sparse->sections : nullptr;
}

// The code, and the matrix as the runtime knows it again; nothing if there is none.
Constant write_constant(const Stm& stm, const SparseProduct& product, const WrittenEpilogue& after, Unit& unit,
                        Writer& declarations) {
  const SparseSchedule::Sections* sections = sections_of(stm);
  const KnownMatrix* known = sections != nullptr ? unit.known(sections->key) : nullptr;
  if (known == nullptr) return {};
  const HostCsr& matrix = *known->matrix;
  ConstantProduct constant;
  constant.name =
      unit.fresh_in_file(fmt::format("{}_{}", unit.function.values.name(stm.pattern.front()), known->operand),
                         {"_sum", "_load", "_store", "_value", "_table", "_empty", "_matrix", "_least", "_text"});
  constant.matrix = &matrix;
  constant.sections = *sections;
  constant.result = unit.function.type(stm.pattern.front()).element;
  constant.b_row = product.b.row.constant();
  constant.proxy = unit.proxy();
  Constant made{constant.name, {}, sections->columns};
  if (unit.target.on_device()) {
    made.device = print_constant_device(constant, after.type, after.text, unit.target.warp);
    declarations.line("static const char {}_text[] =", constant.name);
    declarations.line("  {};", c_string(made.device.text));
    made.device.text.clear();
  } else {
    declarations.raw(print_constant_c(constant));
  }
  declarations.line("static const struct apl_known_matrix {}_matrix = {{0x{}u, {}, {}, {}, {}}};", constant.name,
                    sections->key, matrix.rows, matrix.columns, matrix.nonzeros(), c_enum_of(product.type));
  return made;
}

// Compiles the kernel for this B, unless that was done, and launches it.
void launch_constant(const Constant& constant, const std::string& asked, const WrittenEpilogue& after, Writer& out) {
  out.line("char name[200], defines[400];");
  out.line("snprintf(name, sizeof name, \"{}_%lld\", (long long){}.b_row);", constant.name, asked);
  out.line("snprintf(defines, sizeof defines, \"#define APL_CONSTANT_NAME %s\\n#define APL_CONSTANT_B_ROW %lld\\n\",");
  out.line("         name, (long long){}.b_row);", asked);
  out.line("status = ctx->backend->load_with(ctx, name, defines, {}_text);", constant.name);
  out.line("if (status != APL_SUCCESS) goto done;");
  out.line("const void *b = {0}.b; void *c = {0}.c; int64_t c_row = {0}.c_row, width = {0}.width;", asked);
  out.line("void *args[] = {{&b, &c, &c_row, &width{}}};", after.type.empty()     ? ""
                                                           : after.values.empty() ? ", (char[8]){0}"
                                                                                  : ", &" + after.values);
  out.line(
      "const struct apl_launch launch = {{.kernel = name, .blocks = {} * ((width + {}) / {}), .threads = {}, "
      ".shared_bytes = {}, .arg_count = {}, .args = args}};",
      constant.device.sections, constant.columns - 1, constant.columns, constant.device.threads,
      constant.device.shared_bytes, after.type.empty() ? 4 : 5);
  out.line("status = ctx->backend->launch(ctx, &launch);");
  out.line("if (status != APL_SUCCESS) goto done;");
}

// Calls it where the argument is that matrix. A CPU's strips may not be wider than C.
void call_constant(const Constant& constant, const std::string& asked, const std::string& made,
                   const WrittenEpilogue& after, bool on_host, Writer& out) {
  out.line("int32_t {}_is_known = 0;", asked);
  out.line("const int32_t {0}_may_be = {0}.rows == {1}_matrix.rows && {0}.columns == {1}_matrix.columns &&", asked,
           constant.name);
  out.line("  {0}.nonzeros == {1}_matrix.nonzeros && {0}.width >= {2};", asked, constant.name,
           on_host ? constant.columns : 1);
  out.open("if (ctx->backend->is_known_matrix && {}_may_be) {{", asked);
  out.line(
      "status = ctx->backend->is_known_matrix(ctx, &{0}_matrix, {1}.row_start, {1}.column, {1}.values, &{1}_is_known);",
      constant.name, asked);
  out.line("if (status != APL_SUCCESS) goto done;");
  out.line("{} = {}_is_known;", made, asked);
  out.close("}}");
  out.open("if ({}_is_known) {{", asked);
  if (on_host) {
    out.line("{1}({0}.b, {0}.b_row, {0}.c, {0}.c_row, {0}.width);", asked, constant.name);
  } else {
    launch_constant(constant, asked, after, out);
  }
  out.close("}}");
}

}  // namespace

SparseCall write_sparse_call(const Stm& stm, Unit& unit, Values& values, const std::function<std::string(Value)>& block,
                             Writer& declarations, Writer& out) {
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
  Constant constant;
  std::vector<SegDim> batches;
  SparseEpilogue epilogue;
  EpilogueArguments arguments;
  WrittenEpilogue after;
  const auto product = on_host ? find_host_product(stm, unit.function) : find_sparse_product(stm, unit.function);
  if (product) {
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
  // Libraries for GPUs have no kernels for any sparse operand, but may know a matrix.
  const bool may_be_known = product && sections_of(stm) != nullptr && unit.known(sections_of(stm)->key) != nullptr;
  out.open("if (ctx->backend->sparse_{}{}) {{", call, may_be_known ? " || ctx->backend->is_known_matrix" : "");
  for (const SegDim& dim : batches)
    out.open("for (int64_t {0} = 0; {0} < {1}; ++{0}) {{", unit.name(dim.index), text(dim.bound));
  if (!epilogue.empty() && !on_host) after = write_epilogue(epilogue, arguments, stm, unit, values, block, out);
  if (!after.variable.empty()) fields += ", .epilogue = &" + after.variable;
  if (product) constant = write_constant(stm, *product, after, unit, declarations);
  out.line("const struct apl_sparse_{} {} = {{{}}};", call, asked, fields);
  if (!constant.name.empty()) call_constant(constant, asked, made, after, on_host, out);
  out.line("{}status = ctx->backend->sparse_{}(ctx, &{}, &{});",
           constant.name.empty() ? "" : fmt::format("if (!{} && ctx->backend->sparse_{}) ", made, call), call, asked,
           made);
  out.line("if (status != APL_SUCCESS) goto done;");
  if (on_host) {
    const std::string by_runtime = constant.name.empty() ? made : fmt::format("{} && !{}_is_known", made, asked);
    out.line("if ({}) apl_sparse_run(ctx, {});", by_runtime, made);
  }
  for (std::size_t k = 0; k < batches.size(); ++k) out.close("}}");
  out.close("}}");
  return {made, on_host && !epilogue.empty() ? std::optional(loop_after(epilogue, stm)) : std::nullopt};
}

}  // namespace apl::lower
