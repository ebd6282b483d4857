// Host code of an entry: C11 that binds sizes, allocates, launches, and frees, all through the backend's table.
#include "codegen/host/host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/kernel/c_string.h"
#include "ir/attributes.h"
#include "ir/layouts.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;

namespace {

std::string type_enum(ScalarType type) {
  std::string text = type == ScalarType::boolean ? "bool" : std::string(apl::to_text(type));
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return "APL_" + text;
}

}  // namespace

const char* field_of(ScalarType type) {
  switch (type) {
    case ScalarType::boolean: return "boolean";
    case ScalarType::unit: return "u8";
    default: return apl::to_text(type).data();
  }
}

bool has_own_bits(ScalarType type) { return is_float(type) && byte_size(type) == 2; }

Host::Host(Unit& unit, const CodegenOptions& options)
    : unit_(unit),
      values_(unit, c_dialect()),
      table_(unit.function.values),
      use_(unit.function),
      parameters_(options.parameters),
      plan_kernels_(find_plan_kernels(unit, options)),
      variants_(find_variants(unit, options, plan_kernels_)) {
  for (const auto& [kernel, plan_kernels] : plan_kernels_)
    for (const Schedule::Dim& dim : plan_kernels->data.dims())
      for (Value v : {parameter_of(dim.tile), parameter_of(dim.reg)})
        if (v) plan_kernels_of_[v] = plan_kernels;
}

// What the program and its callers pass to each other has capacity for so many sizes.
void Host::refuse_ranks() const {
  const apl::Function& f = unit_.function;
  const auto refuse = [&](const Type& type, const char* what) {
    if (type.rank() > APL_MAX_RANK)
      unsupported(f.location, fmt::format("{} of {} dims; {} at most", what, type.rank(), APL_MAX_RANK));
  };
  for (Value param : f.params) refuse(f.type(param), "an argument");
  for (const Type& result : f.results) refuse(result, "a result");
}

HostText Host::run() {
  const apl::Function& f = unit_.function;
  refuse_ranks();
  name_parameters();
  out_.open("{}(struct apl_context *ctx, const struct apl_value *inputs, struct apl_value *outputs) {{", head());
  out_.line("int status = APL_SUCCESS;");
  out_.line("(void)inputs;");
  is_entry() ? bind_parameters() : bind_given();
  // Declared first, so that every exit can free them.
  find_blocks(*f.body);
  find_arrays(*f.body);
  for (Value b : blocks_) out_.line("void *{} = NULL;", unit_.name(b));
  if (has_capacities_)
    for (Value b : blocks_) out_.line("int64_t {} = 0;", capacity(b));
  const std::string head = out_.take();
  statements();
  if (is_entry()) {
    out_.line("status = ctx->backend->finish(ctx);");
    check_status();
  } else {
    if (awaits_checks_) out_.line("status = {};", synchronise_call());
    out_.line("(void)ctx;");
    check_status();
  }
  give_results();
  out_.raw("done:\n");
  for (Value b : blocks_) out_.line("if ({0}) ctx->backend->release(ctx, {0});", unit_.name(b));
  for (const std::string& name : scratch_) out_.line("if ({0}) ctx->backend->release(ctx, {0});", name);
  out_.line("return status;");
  out_.close("}}");
  const std::string rest = out_.take();
  for (const auto& [variant, variants] : variants_)
    if (!variants->name.empty()) declare_variants(*variants, unit_.target, declarations_);
  result_.declarations = declarations_.take();
  // Declared before anything can jump to the end.
  Writer slots;
  slots.indent();
  for (const std::string& name : scratch_) {
    slots.line("void *{} = NULL;", name);
    slots.line("int64_t {}_capacity = 0;", name);
  }
  result_.text = head + slots.take() + rest;
  return std::move(result_);
}

std::string Host::head() const {
  const apl::Function& f = unit_.function;
  if (!is_entry()) return "static int " + unit_.host_name(f.name);
  return f.is_constant() ? "static int " + constant_function(f)
                         : "APL_PROGRAM int apl_entry_" + symbol_part(f.entry->name);
}

void Host::name_parameters() {
  const apl::Function& f = unit_.function;
  for (Value param : f.params) unit_.name(param);
  for (Value param : f.params) know_products(f.type(param).shape);
  known_.insert(f.params.begin(), f.params.end());
  known_.insert(f.sizes.begin(), f.sizes.end());
}

// Those of the entry itself, each with the end of what nobody reads after it.
void Host::statements() {
  const apl::Function& f = unit_.function;
  for (std::size_t k = 0; k < f.body->stms.size(); ++k) {
    const std::size_t slots = scratch_.size();
    statement(f.body->stms[k]);
    for (Value b : use_.ends_after(k))
      if (std::find(blocks_.begin(), blocks_.end(), b) != blocks_.end()) release(unit_.name(b));
    for (std::size_t slot = slots; slot < scratch_.size(); ++slot) release(scratch_[slot]);
  }
}

std::string Host::parameter_name(std::size_t k) const {
  const EntryInfo& info = *unit_.function.entry;
  std::size_t first = 0;
  for (std::size_t p = 0; p < info.params.size(); ++p) {
    std::size_t count = p < info.param_values.size() ? info.param_values[p] : 1;
    if (k < first + count)
      return count == 1 ? info.params[p].name : fmt::format("{}.{}", info.params[p].name, k - first);
    first += count;
  }
  return table_.name(unit_.function.params[k]);
}

std::string Host::input(std::size_t k) const {
  const auto constant = constants_.find(k);
  return constant == constants_.end() ? fmt::format("inputs[{}]", k) : constant->second;
}

bool Host::reads_any(std::span<const Value> params, const std::set<Value>& read) const {
  return std::ranges::any_of(params, [&](Value param) {
    const Type& type = table_.type(param);
    bool found = read.contains(param) || (type.memory && read.contains(type.memory->block));
    for (const Poly& size : type.shape)
      size.for_each_symbol([&](Value symbol) { found = found || read.contains(symbol); });
    return found;
  });
}

// Values of constants, which the context makes when they are asked for first. Constants that nothing reads any more are
// not asked for.
void Host::bind_constants() {
  const apl::Function& f = unit_.function;
  const std::set<Value> read = free_values(*f.body, f.values);
  std::size_t first = f.given_params().size();
  for (const EntryInfo::Constant& use : f.entry->constants) {
    const bool is_read = reads_any(std::span(f.params).subspan(first, use.values), read);
    const std::string name = is_read ? unit_.fresh(use.function + "_values") : "";
    if (is_read) {
      out_.line("const struct apl_value *{} = NULL;", name);
      out_.line("status = ctx->backend->constant(ctx, {}, &{});", unit_.constant_number(use.function), name);
      // There is nothing to free yet.
      out_.line("if (status != APL_SUCCESS) return status;");
    }
    for (std::size_t k = 0; k < use.values; ++k, ++first) {
      if (!is_read) unread_.insert(first);
      constants_.emplace(first, fmt::format("{}[{}]", name, k));
    }
  }
}

void Host::bind_parameters() {
  const apl::Function& f = unit_.function;
  bind_constants();
  std::set<Value> bound;
  for (std::size_t k = 0; k < f.params.size(); ++k) {
    const Type& type = f.type(f.params[k]);
    if (unread_.contains(k)) {
      for (const Poly& size : type.shape)
        if (const auto symbol = size.symbol()) bound.insert(*symbol);
      continue;
    }
    if (type.is_scalar()) {
      const std::string given = fmt::format("{}.scalar.{}", input(k), field_of(type.element));
      out_.line(
          "const {} {} = {};", c_type({type.element, false}), unit_.name(f.params[k]),
          has_own_bits(type.element) ? fmt::format("apl_from_bits_{}({})", apl::to_text(type.element), given) : given);
      bound.insert(f.params[k]);
      continue;
    }
    for (std::size_t d = 0; d < type.rank(); ++d)
      if (auto symbol = type.shape[d].symbol(); symbol && bound.insert(*symbol).second)
        out_.line("const int64_t {} = {}.shape[{}];", unit_.name(*symbol), input(k), d);
  }
  for (Value size : f.sizes)
    if (!bound.count(size))
      unsupported(f.location, fmt::format("the size `{}` is fixed by no argument", table_.name(size)));
  for (std::size_t k = 0; k < f.given_params().size(); ++k) {
    const Type& type = f.type(f.params[k]);
    for (std::size_t d = 0; d < type.rank(); ++d) {
      std::string expected = text(type.shape[d]);
      out_.open("if (inputs[{}].shape[{}] != {}) {{", k, d, expected);
      out_.line(
          "snprintf(ctx->error, sizeof ctx->error, \"argument `%s`: dim {} has size %lld, expected %lld (%s)\", {},"
          " (long long)inputs[{}].shape[{}], (long long)({}), {});",
          d, c_string(parameter_name(k)), k, d, expected, c_string(expected));
      out_.line("return APL_PROGRAM_ERROR;");
      out_.close("}}");
    }
  }
}

void Host::give_results() {
  const apl::Function& f = unit_.function;
  for (std::size_t k = 0; k < f.body->results.size(); ++k) {
    const Operand& operand = f.body->results[k];
    const Type type = table_.type(operand);
    out_.line("outputs[{}].type = {};", k, type_enum(type.element));
    out_.line("outputs[{}].rank = {};", k, type.rank());
    if (type.is_scalar()) {
      const std::string value = text(values_.operand(operand));
      out_.line(
          "outputs[{}].scalar.{} = {};", k, field_of(type.element),
          has_own_bits(type.element) ? fmt::format("apl_to_bits_{}({})", apl::to_text(type.element), value) : value);
      continue;
    }
    for (std::size_t d = 0; d < type.rank(); ++d) out_.line("outputs[{}].shape[{}] = {};", k, d, text(type.shape[d]));
    std::string name = unit_.name(type.memory->block);
    out_.line("outputs[{}].data = {};", k, name);
    out_.line("{} = NULL;  // the caller's now", name);
  }
}

void Host::trace(const Assert& op) {
  std::string words;
  for (const auto& piece : op.message) {
    if (const std::string* text = std::get_if<std::string>(&piece)) {
      words += *text;
      continue;
    }
    const Operand& x = std::get<Operand>(piece);
    const Type type = table_.type(x);
    const std::string kind = type_enum(type.element), name = unit_.fresh("traced");
    if (type.is_scalar()) {
      const std::string value = type.element == ScalarType::unit ? "0" : text(values_.operand(x));
      out_.line(
          "const struct apl_value {} = {{.type = {}, .scalar.{} = {}}};", name, kind, field_of(type.element),
          has_own_bits(type.element) ? fmt::format("apl_to_bits_{}({})", apl::to_text(type.element), value) : value);
      run_call(fmt::format("apl_trace(ctx, {}, &{}, 0, 0, NULL)", c_string(words), name));
      continue;
    }
    std::vector<std::string> shape, strides;
    for (const LmadDim& dim : type.memory->layout.dims()) {
      shape.push_back(text(dim.size));
      strides.push_back(text(dim.stride));
    }
    out_.open("{{");
    out_.line("const struct apl_value {} = {{.type = {}, .rank = {}, .shape = {{{}}}, .data = {}}};", name, kind,
              type.rank(), fmt::join(shape, ", "), block(type.memory->block));
    out_.line("const int64_t {}_strides[] = {{{}}};", name, fmt::join(strides, ", "));
    run_call(fmt::format("apl_trace(ctx, {}, &{}, {}, {}, {}_strides)", c_string(words), name, byte_size(type.element),
                         text(type.memory->layout.offset()), name));
    out_.close("}}");
  }
}

void Host::statement(const Stm& stm) {
  const Value first = stm.pattern.empty() ? Value{} : stm.pattern.front();
  auto declare = [&](const ExprPtr& value) {
    out_.line("const {} {} = {};", c_type({table_.type(first).element, false}), unit_.name(first), text(value));
  };
  auto type_of = [&](const Operand& x) { return table_.type(x).element; };
  for (Value v : stm.pattern) known_.insert(v);
  if (choose_splits(first)) return;
  if (const auto plan_kernels = plan_kernels_of_.find(first);
      plan_kernels != plan_kernels_of_.end() && choose_plan(*plan_kernels->second)) {
    chosen_number(*plan_kernels->second, first);
  } else if (const GetSize* size = get_if<GetSize>(stm)) {
    const std::optional<std::int64_t> number = unit_.tile(first);
    out_.line("const int64_t {} = {};  // {}", unit_.name(first), number ? std::to_string(*number) : "apl_threads()",
              comment_text(size->name));
    out_.line("(void){};", unit_.name(first));
  } else if (const SizeExpr* expr = get_if<SizeExpr>(stm)) {
    declare(values_.poly(expr->value));
  } else if (const Use* use = get_if<Use>(stm)) {
    if (is_variable(first)) declare(values_.operand(use->x));
  } else if (const Unary* unary = get_if<Unary>(stm)) {
    declare(values_.unary(unary->op, type_of(unary->x), values_.operand(unary->x)));
  } else if (const Binary* binary = get_if<Binary>(stm)) {
    if (can_fail(stm.op, table_))
      refuse_if(infix("==", values_.operand(binary->y), literal(std::int64_t{0})), APL_DIV_ZERO, stm.location,
                "division by zero", {});
    declare(values_.binary(binary->op, type_of(binary->x), values_.operand(binary->x), values_.operand(binary->y)));
  } else if (const Compare* compare = get_if<Compare>(stm)) {
    declare(
        values_.compare(compare->op, type_of(compare->x), values_.operand(compare->x), values_.operand(compare->y)));
  } else if (const Convert* convert = get_if<Convert>(stm)) {
    declare(values_.convert(*convert, type_of(convert->x), values_.operand(convert->x)));
  } else if (const Assert* assertion = get_if<Assert>(stm);
             assertion && has_attribute(stm.attributes, attribute::trace)) {
    trace(*assertion);
  } else if (assertion) {
    std::string message;
    std::vector<ExprPtr> numbers;
    for (const auto& piece : assertion->message) {
      if (const std::string* words = std::get_if<std::string>(&piece)) {
        for (char c : *words) message += c == '%' ? std::string("%%") : std::string(1, c);
      } else {
        message += "%lld";
        numbers.push_back(values_.operand(std::get<Operand>(piece)));
      }
    }
    refuse_if(prefix("!", values_.operand(assertion->condition)), APL_ASSERT, stm.location, message, numbers);
  } else if (const Alloc* alloc = get_if<Alloc>(stm)) {
    allocate(first, extent_of(first, *alloc));
  } else if (get_if<SegOp>(stm) || get_if<Scatter>(stm)) {
    launch(stm);
  } else if (const Index* index = get_if<Index>(stm)) {
    if (index->checked) check_dims(index->array, index->dims, stm.location);
    if (table_.type(first).is_scalar()) download(*index, stm);
  } else if (const If* choice = get_if<If>(stm)) {
    branch(*choice, stm);
  } else if (const Choose* variants = get_if<Choose>(stm)) {
    choose(*variants, stm);
  } else if (const Loop* repeated = get_if<Loop>(stm)) {
    loop(*repeated, stm);
  } else if (const Apply* call = get_if<Apply>(stm)) {
    call_function(*call, stm);
  } else if (const ArrayLit* literal = get_if<ArrayLit>(stm)) {
    upload(*literal, first);
  } else if (const Update* update = get_if<Update>(stm)) {
    upload(*update, stm);
  } else if (get_if<Rearrange>(stm) || get_if<Reshape>(stm) || get_if<Scratch>(stm)) {
    // Views.
  } else {
    unsupported(stm.location, fmt::format("`{}` at host level", op_name(stm.op)));
  }
}

std::string constant_function(const apl::Function& function) { return "apl_make_" + symbol_part(function.name); }

HostText lower_host(Unit& unit, const CodegenOptions& options) { return Host(unit, options).run(); }

}  // namespace apl::lower
