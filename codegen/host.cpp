// Host code of an entry: C11 that binds sizes, allocates, launches, and frees, all through the backend's table.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/block_use.h"
#include "codegen/lower.h"
#include "codegen/plan_forms.h"
#include "codegen/runtime/context.h"
#include "codegen/sparse_products.h"
#include "codegen/variant_forms.h"
#include "codegen/writer.h"
#include "ir/builder.h"
#include "ir/layouts.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;

namespace {

const char* field_of(ScalarType type) {
  switch (type) {
    case ScalarType::boolean: return "boolean";
    case ScalarType::unit: return "u8";
    default: return apl::to_text(type).data();
  }
}

std::string type_enum(ScalarType type) {
  std::string text = type == ScalarType::boolean ? "bool" : std::string(apl::to_text(type));
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return "APL_" + text;
}

class Host {
 public:
  Host(Unit& unit, const CodegenOptions& options)
      : unit_(unit),
        values_(unit, Dialect::c),
        table_(unit.function.values),
        use_(unit.function),
        forms_(find_plan_forms(unit, options)),
        variants_(find_variant_forms(unit, options, forms_)) {
    for (const auto& [kernel, forms] : forms_)
      for (const PlanDim& dim : forms->data.dims)
        for (Value v : {dim.tile, dim.reg})
          if (v) forms_of_[v] = forms;
  }

  HostText run() {
    const apl::Function& f = unit_.function;
    for (Value param : f.params) unit_.name(param);
    known_.insert(f.params.begin(), f.params.end());
    known_.insert(f.sizes.begin(), f.sizes.end());
    out_.open("int apl_entry_{}(struct apl_context *ctx, const struct apl_value *inputs, struct apl_value *outputs) {{",
              f.entry->name);
    out_.line("int status = APL_SUCCESS;");
    out_.line("(void)inputs;");
    bind_parameters();
    // Declared first, so that every exit can free them.
    find_blocks(*f.body);
    for (Value b : blocks_) out_.line("void *{} = NULL;", unit_.name(b));
    if (has_rooms_)
      for (Value b : blocks_) out_.line("int64_t {} = 0;", room(b));
    const std::string head = out_.take();
    for (std::size_t k = 0; k < f.body->stms.size(); ++k) {
      const std::size_t slots = scratch_.size();
      statement(f.body->stms[k]);
      for (Value b : use_.ends_after(k))
        if (std::find(blocks_.begin(), blocks_.end(), b) != blocks_.end()) release(unit_.name(b));
      for (std::size_t slot = slots; slot < scratch_.size(); ++slot) release(scratch_[slot]);
    }
    out_.line("status = ctx->backend->synchronise(ctx);");
    out_.line("if (status != APL_SUCCESS) goto done;");
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
      slots.line("int64_t {}_room = 0;", name);
    }
    result_.text = head + slots.take() + rest;
    return std::move(result_);
  }

 private:
  std::string text(const ExprPtr& e) const { return print(e, Dialect::c); }
  std::string text(const Poly& p) { return text(values_.poly(p)); }

  std::string parameter_name(std::size_t k) const {
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

  void bind_parameters() {
    const apl::Function& f = unit_.function;
    std::set<Value> bound;
    for (std::size_t k = 0; k < f.params.size(); ++k) {
      const Type& type = f.type(f.params[k]);
      if (type.is_scalar()) {
        const std::string given = fmt::format("inputs[{}].scalar.{}", k, field_of(type.element));
        out_.line("const {} {} = {};", c_type({type.element, false}), unit_.name(f.params[k]),
                  type.element == ScalarType::f16 ? fmt::format("apl_from_bits_f16({})", given) : given);
        bound.insert(f.params[k]);
        continue;
      }
      for (std::size_t d = 0; d < type.rank(); ++d)
        if (auto symbol = type.shape[d].symbol(); symbol && bound.insert(*symbol).second)
          out_.line("const int64_t {} = inputs[{}].shape[{}];", unit_.name(*symbol), k, d);
    }
    for (Value size : f.sizes)
      if (!bound.count(size))
        unsupported(f.location, fmt::format("the size `{}` is fixed by no argument", table_.name(size)));
    for (std::size_t k = 0; k < f.params.size(); ++k) {
      const Type& type = f.type(f.params[k]);
      for (std::size_t d = 0; d < type.rank(); ++d) {
        std::string expected = text(type.shape[d]);
        out_.open("if (inputs[{}].shape[{}] != {}) {{", k, d, expected);
        out_.line(
            "snprintf(ctx->error, sizeof ctx->error, \"argument `{}`: dim {} has size %lld, expected %lld (%s)\","
            " (long long)inputs[{}].shape[{}], (long long)({}), \"{}\");",
            parameter_name(k), d, k, d, expected, expected);
        out_.line("return APL_PROGRAM_ERROR;");
        out_.close("}}");
      }
    }
  }

  // Blocks of this and all nested bodies, kernels left out.
  void find_blocks(const Body& body) {
    for (const Stm& stm : body.stms) {
      if (get_if<Alloc>(stm)) blocks_.push_back(stm.pattern.front());
      const Loop* loop = get_if<Loop>(stm);
      has_rooms_ = has_rooms_ || loop;
      if (!loop && !get_if<If>(stm)) continue;
      for (const std::vector<Value>& values : {stm.pattern, loop ? loop->params : std::vector<Value>{}})
        for (Value v : values) {
          if (!table_.type(v).is_memory()) continue;
          blocks_.push_back(v);
          has_rooms_ = true;
        }
      for_each_body(stm.op, [&](const BodyPtr& inner) { find_blocks(*inner); });
    }
  }

  // Nobody reads it any more. The next call gets it anew.
  void release(const std::string& block) {
    out_.line("if ({0}) ctx->backend->release(ctx, {0});", block);
    out_.line("{} = NULL;", block);
  }

  std::string room(Value block) { return unit_.name(block) + "_room"; }

  void body(const Body& body) {
    for (const Stm& stm : body.stms) statement(stm);
  }

  // The block that is handed on, for one that nobody reads any more.
  void exchange(Value to, Value from) {
    if (to == from) return;
    out_.line("apl_swap(&{}, &{}, &{}, &{});", unit_.name(to), room(to), unit_.name(from), room(from));
  }

  // What a body hands on goes to where `target` lies: by exchanging blocks of one size if nobody needs the other's
  // contents, else by copying (both are dense). Arrays whose size the body decides come with their blocks, which are
  // among `targets` too.
  void hand_on(const Stm& stm, const Body& body, const Operand& from, Value target, const std::vector<Value>& targets) {
    if (!from.is_value()) return;
    if (table_.type(target).is_memory()) return exchange(target, from.value());
    if (!table_.type(target).is_array()) return;
    const MemoryBinding& source = *table_.type(from.value()).memory;
    const MemoryBinding& to = *table_.type(target).memory;
    if (source == to || std::find(targets.begin(), targets.end(), to.block) != targets.end()) return;
    if (has_rooms_ && use_.may_exchange(stm, body, source.block, to.block)) return exchange(to.block, source.block);
    const Type& type = table_.type(target);
    out_.line("status = ctx->backend->copy(ctx, {}, {}, ({}) * {});", unit_.name(to.block), block(source.block),
              text(product(type.shape)), byte_size(type.element));
    out_.line("if (status != APL_SUCCESS) goto done;");
  }

  bool is_variable(Value v) const {
    const Type& type = table_.type(v);
    return type.is_scalar() && type.element != ScalarType::unit;
  }

  void declare_variable(Value v, const std::string& start) {
    out_.line("{} {} = {};", c_type({table_.type(v).element, false}), unit_.name(v), start);
    out_.line("(void){};", unit_.name(v));
  }

  void branch(const If& op, const Stm& stm) {
    for (Value v : stm.pattern)
      if (is_variable(v)) declare_variable(v, "0");
    const auto fill = [&](const Body& inner) {
      body(inner);
      for (std::size_t k = 0; k < stm.pattern.size(); ++k) {
        if (is_variable(stm.pattern[k]))
          out_.line("{} = {};", unit_.name(stm.pattern[k]), text(values_.operand(inner.results[k])));
        hand_on(stm, inner, inner.results[k], stm.pattern[k], stm.pattern);
      }
    };
    out_.open("if ({}) {{", text(values_.operand(op.condition)));
    const auto way = op.condition.is_value() ? ways_.find(op.condition.value()) : ways_.end();
    const Way outer = way_;
    if (way != ways_.end()) way_ = way->second;
    fill(*op.then_body);
    way_ = outer;
    out_.close("}} else {{");
    out_.indent();
    fill(*op.else_body);
    out_.close("}}");
  }

  void loop(const Loop& op, const Stm& stm) {
    for (std::size_t k = 0; k < op.params.size(); ++k) {
      known_.insert(op.params[k]);
      if (table_.type(op.params[k]).is_memory()) exchange(op.params[k], op.initial[k].value());
      if (!is_variable(op.params[k])) continue;
      declare_variable(op.params[k], text(values_.operand(op.initial[k])));
      values_.scalars[stm.pattern[k]] = variable(unit_.name(op.params[k]));
    }
    if (op.index) {
      const std::string i = unit_.name(op.index);
      known_.insert(op.index);
      out_.open("for (int64_t {0} = 0; {0} < {1}; ++{0}) {{", i, text(op.bound));
    } else {
      out_.open("while ({}) {{", unit_.name(op.params[0]));
    }
    body(*op.body);
    // All new values first: one may be computed from another's old value.
    std::vector<std::pair<Value, std::string>> next;
    for (std::size_t k = 0; k < op.params.size(); ++k) {
      if (!is_variable(op.params[k])) continue;
      next.emplace_back(op.params[k], unit_.fresh(table_.name(op.params[k]) + "_next"));
      out_.line("const {} {} = {};", c_type({table_.type(op.params[k]).element, false}), next.back().second,
                text(values_.operand(op.body->results[k])));
    }
    for (std::size_t k = 0; k < op.params.size(); ++k)
      hand_on(stm, *op.body, op.body->results[k], op.params[k], op.params);
    for (const auto& [param, value] : next) out_.line("{} = {};", unit_.name(param), value);
    out_.close("}}");
    for (std::size_t k = 0; k < op.params.size(); ++k)
      if (table_.type(op.params[k]).is_memory()) exchange(stm.pattern[k], op.params[k]);
  }

  // An array of scalars that the host knows.
  void upload(const ArrayLit& op, Value array) {
    const std::string type = c_type({op.element.element, false});
    if (op.elements.empty() || op.element.element == ScalarType::unit) return;
    std::vector<std::string> elements;
    for (const Operand& x : op.elements) elements.push_back(text(values_.operand(x)));
    out_.open("{{");
    out_.line("const {} elements[] = {{{}}};", type, fmt::join(elements, ", "));
    out_.line("status = ctx->backend->upload(ctx, {}, elements, sizeof elements);",
              unit_.name(table_.type(array).memory->block));
    out_.line("if (status != APL_SUCCESS) goto done;");
    out_.close("}}");
  }

  void upload(const Update& op, const Stm& stm) {
    const Type& type = table_.type(op.array);
    if (op.checked) check_dims(op.array, op.dims, stm.location);
    if (type.element == ScalarType::unit) return;
    const std::string name = c_type({type.element, false});
    const Lmad here = index_layout(type.memory->layout, op.dims);
    out_.open("{{");
    out_.line("const {} element = {};", name, text(values_.operand(op.value)));
    out_.line("status = ctx->backend->upload(ctx, ({} *){} + ({}), &element, sizeof element);", name,
              block(type.memory->block), text(here.offset()));
    out_.line("if (status != APL_SUCCESS) goto done;");
    out_.close("}}");
  }

  void check_dims(Value array, const std::vector<DimIndex>& dims, Location location) {
    for (const BoundsCheck& bound : bounds_checks(values_, table_.type(array), dims))
      refuse_if(bound.outside, APL_INDEX, location, bound.message, bound.numbers);
  }

  void refuse_if(const ExprPtr& condition, apl_failure_code code, Location location, const std::string& message,
                 const std::vector<ExprPtr>& numbers) {
    out_.open("if ({}) {{", text(condition));
    std::string arguments;
    for (const ExprPtr& x : numbers) arguments += ", (long long)(" + text(x) + ")";
    out_.line("snprintf(ctx->error, sizeof ctx->error, \"{}\"{});", escape(message), arguments);
    out_.line("ctx->error_code = {};", static_cast<int>(code));
    out_.line("ctx->error_line = {};", location.line);
    out_.line("ctx->error_column = {};", location.column);
    out_.line("status = APL_PROGRAM_ERROR;");
    out_.line("goto done;");
    out_.close("}}");
  }

  void statement(const Stm& stm) {
    const Value first = stm.pattern.empty() ? Value{} : stm.pattern.front();
    auto declare = [&](const ExprPtr& value) {
      out_.line("const {} {} = {};", c_type({table_.type(first).element, false}), unit_.name(first), text(value));
    };
    auto type_of = [&](const Operand& x) { return table_.type(x).element; };
    for (Value v : stm.pattern) known_.insert(v);
    if (choose_way(stm, first)) return;
    if (const auto forms = forms_of_.find(first); forms != forms_of_.end() && choose_form(*forms->second)) {
      chosen_number(*forms->second, first);
    } else if (const GetSize* size = get_if<GetSize>(stm)) {
      out_.line("const int64_t {} = {};  // {}", unit_.name(first), *unit_.tile(first), size->name);
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
      declare(values_.compare(compare->op, values_.operand(compare->x), values_.operand(compare->y)));
    } else if (const Convert* convert = get_if<Convert>(stm)) {
      declare(values_.convert(*convert, type_of(convert->x), values_.operand(convert->x)));
    } else if (const Assert* assertion = get_if<Assert>(stm)) {
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
      if (has_rooms_) {
        out_.line("status = apl_room(ctx, {}, \"{}\", &{}, &{});", text(alloc->bytes), table_.name(first),
                  unit_.name(first), room(first));
      } else {
        out_.line("status = ctx->backend->allocate(ctx, {}, \"{}\", &{});", text(alloc->bytes), table_.name(first),
                  unit_.name(first));
      }
      out_.line("if (status != APL_SUCCESS) goto done;");
    } else if (get_if<SegOp>(stm) || get_if<Scatter>(stm)) {
      launch(stm);
    } else if (const Index* index = get_if<Index>(stm)) {
      if (index->checked) check_dims(index->array, index->dims, stm.location);
      if (table_.type(first).is_scalar()) download(*index, stm);
    } else if (const If* choice = get_if<If>(stm)) {
      branch(*choice, stm);
    } else if (const Loop* repeated = get_if<Loop>(stm)) {
      loop(*repeated, stm);
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

  static std::string escape(const std::string& text) {
    std::string result;
    for (char c : text) {
      if (c == '"' || c == '\\') result += '\\';
      result += c == '\n' ? ' ' : c;
    }
    return result;
  }

  void download(const Index& op, const Stm& stm) {
    const Type& source = table_.type(op.array);
    Lmad here = index_layout(source.memory->layout, op.dims);
    Value v = stm.pattern.front();
    if (!is_variable(v)) return;
    std::string type = c_type({table_.type(v).element, false});
    out_.line("{} {};", type, unit_.name(v));
    // A check that failed in a kernel ends the entry before the host acts on what is missing.
    out_.line("status = ctx->backend->synchronise(ctx);");
    out_.line("if (status != APL_SUCCESS) goto done;");
    out_.line("status = ctx->backend->download(ctx, &{}, (const {} *){} + ({}), sizeof {});", unit_.name(v), type,
              block(source.memory->block), text(here.offset()), unit_.name(v));
    out_.line("if (status != APL_SUCCESS) goto done;");
  }

  // A block as the host has it: an allocation, or the data of a parameter.
  std::string block(Value b) {
    for (std::size_t k = 0; k < unit_.function.params.size(); ++k) {
      const Type& type = table_.type(unit_.function.params[k]);
      if (type.memory && type.memory->block == b) return fmt::format("inputs[{}].data", k);
    }
    return unit_.name(b);
  }

  // The host code of a choice among forms, before the first of its numbers. Where a size comes later there is none, and
  // numbers are the defaults.
  bool choose_form(PlanForms& forms) {
    if (forms.open) return true;
    for (Value v : forms.data.symbols())
      if (!known_.contains(v)) return false;
    forms.open = true;
    forms.name = unit_.fresh(forms.name + "_plan");
    out_.line("");
    out_.line("const struct apl_contraction {}_data = {};", forms.name, contraction_text(forms.data, values_));
    out_.line("int32_t {} = 0;", forms.name);
    out_.line("status = ctx->backend->choose(ctx, &{0}_data, &{0}_set, &{0});", forms.name);
    out_.line("if (status != APL_SUCCESS) goto done;");
    return true;
  }

  void chosen_number(const PlanForms& forms, Value v) {
    for (std::size_t d = 0; d < forms.data.dims.size(); ++d) {
      const PlanDim& dim = forms.data.dims[d];
      if (v != dim.tile && v != dim.reg) continue;
      out_.line("const int64_t {} = {}_plans[{}].{}[{}];", unit_.name(v), forms.name, forms.name,
                v == dim.tile ? "tile" : "reg", d);
      out_.line("(void){};", unit_.name(v));
    }
  }

  // How a contraction is computed, where that is chosen: its numbers, and which number stands for a branch.
  bool choose_way(const Stm& stm, Value first) {
    if (const Compare* compare = get_if<Compare>(stm); compare && compare->x.is_value()) {
      const auto found = variants_.find(compare->x.value());
      if (found != variants_.end() && compare->op == CompareOp::eq && compare->y.is_constant())
        ways_[first] = {found->second.get(), compare->y.constant().as_int()};
    }
    for (const auto& [variant, variants] : variants_) {
      if (first != variant && first != variants->splits) continue;
      const auto symbols = variants->tiled->data.symbols();
      const bool all = std::all_of(symbols.begin(), symbols.end(), [&](Value v) { return known_.contains(v); });
      if (first == variant && all) write_choice(*variants, unit_, values_, out_);
      if (!all) out_.line("const int64_t {} = 1;", unit_.name(first));
      if (variants->splits) out_.line("(void){};", unit_.name(first));
      return true;
    }
    return false;
  }

  struct Launched {
    kernel::Function function;
    std::string blocks;
  };

  Launched lower_kernel(Kernel& lowering, const SegOp& op) {
    Launched made{lowering.run(), {}};
    if (unit_.target == Target::c) return made;
    Poly indices = 1;
    for (const SegDim& dim : op.space) indices *= dim.bound;
    made.blocks = op.level == SegLevel::block ? text(indices) : text(ceil_div(indices, Poly(made.function.threads)));
    if (const ExprPtr walking = lowering.walking_blocks(op, values_)) made.blocks = text(walking);
    return made;
  }

  void launch(const Stm& stm) {
    const std::string made = write_sparse_call(
        stm, unit_, values_, [&](Value v) { return block(v); }, out_);
    if (!made.empty()) out_.open("if (!{}) {{", made);
    launch_own(stm);
    if (!made.empty()) out_.close("}}");
  }

  void launch_own(const Stm& stm) {
    const SegOp op = kernel_frame(stm);
    const auto forms = stm.pattern.empty() ? forms_.end() : forms_.find(stm.pattern.front());
    if (forms != forms_.end() && forms->second->open) return launch_form(stm, op, *forms->second);
    Kernel lowering(unit_, stm);
    Launched made = lower_kernel(lowering, op);
    std::vector<std::string> arguments = arguments_of(lowering);
    out_.line("");
    add_scratch(lowering, op, arguments);
    if (lowering.can_fail()) arguments.emplace_back("ctx->failure");
    if (unit_.target == Target::c) {
      out_.line("{}({});", made.function.name, fmt::format("{}", fmt::join(arguments, ", ")));
    } else {
      out_.open("{{");
      pack_arguments(lowering, arguments);
      out_.line(
          "const struct apl_launch launch = {{.kernel = \"{}\", .blocks = {}, .threads = {}, .shared_bytes = {}, "
          ".arg_count = {}, .args = args}};",
          made.function.name, made.blocks, made.function.threads, made.function.shared_bytes, arguments.size());
      out_.line("status = ctx->backend->launch(ctx, &launch);");
      out_.line("if (status != APL_SUCCESS) goto done;");
      out_.close("}}");
    }
    add_info(made.function, stm);
    // What not every way needs is compiled when that way is chosen.
    const bool waits = way_.variants != nullptr && unit_.target == Target::cuda;
    if (waits) way_.variants->kernels[way_.number].push_back(made.function.name);
    (waits ? result_.forms : result_.kernels).push_back(std::move(made.function));
  }

  // A kernel for each plan; the one that was chosen is launched.
  void launch_form(const Stm& stm, const SegOp& op, const PlanForms& forms) {
    std::vector<std::string> names, plans, cases;
    std::vector<std::string> arguments;
    out_.line("");
    if (unit_.target == Target::cuda) out_.open("{{");
    for (std::size_t k = 0; k < forms.plans.size(); ++k) {
      const Stm planned = with_plan(stm, forms.data, forms.plans[k], unit_);
      Kernel lowering(unit_, planned);
      Launched made = lower_kernel(lowering, op);
      made.function.resident = forms.resident[k];
      if (!lowering.scratch().empty()) unsupported(stm.location, "memory of threads in a tiled contraction");
      if (k == 0) {
        arguments = arguments_of(lowering);
        if (lowering.can_fail()) arguments.emplace_back("ctx->failure");
        if (unit_.target == Target::cuda) {
          pack_arguments(lowering, arguments);
          out_.line("struct apl_launch launch = {{.arg_count = {}, .args = args}};", arguments.size());
        }
        out_.open("switch ({}) {{", forms.name);
      }
      const std::string label = k + 1 == forms.plans.size() ? "default" : fmt::format("case {}", k);
      if (unit_.target == Target::c) {
        out_.line("{}: {}({}); break;", label, made.function.name, fmt::format("{}", fmt::join(arguments, ", ")));
      } else {
        out_.line("{}:", label);
        out_.line("  launch.kernel = \"{}\";", made.function.name);
        out_.line("  launch.blocks = {};", made.blocks);
        out_.line("  launch.threads = {};", made.function.threads);
        out_.line("  launch.shared_bytes = {};", made.function.shared_bytes);
        out_.line("  break;");
      }
      names.push_back(fmt::format("\"{}\"", made.function.name));
      plans.push_back(plan_text(forms.data, forms.plans[k]));
      add_info(made.function, stm);
      (unit_.target == Target::c ? result_.kernels : result_.forms).push_back(std::move(made.function));
    }
    out_.close("}}");
    if (unit_.target == Target::cuda) {
      out_.line("status = ctx->backend->launch(ctx, &launch);");
      out_.line("if (status != APL_SUCCESS) goto done;");
      out_.close("}}");
      declarations_.line("static const char *const {}_kernels[] = {{{}}};", forms.name, fmt::join(names, ", "));
    }
    declarations_.open("static const struct apl_plan {}_plans[] = {{  // threads, registers, stages, walk", forms.name);
    for (const std::string& plan : plans) declarations_.line("{},", plan);
    declarations_.close("}};");
    declarations_.line("static const struct apl_plan_set {0}_set = {{\"{1}\", {2}, {3}, {0}_plans}};", forms.name,
                       table_.name(stm.pattern.front()), plans.size(),
                       unit_.target == Target::c ? "NULL" : forms.name + "_kernels");
  }

  std::vector<std::string> arguments_of(const Kernel& lowering) {
    std::vector<std::string> arguments;
    for (Value b : lowering.blocks()) arguments.push_back(block(b));
    for (Value s : lowering.scalars()) arguments.push_back(text(values_.value(s)));
    return arguments;
  }

  // Memory of threads, kept for the next launch.
  void add_scratch(const Kernel& lowering, const SegOp& op, std::vector<std::string>& arguments) {
    Poly indices = 1;
    for (const SegDim& dim : op.space) indices *= dim.bound;
    for (const Kernel::ThreadMemory& scratch : lowering.scratch()) {
      const std::string name = unit_.fresh(scratch.name + "_of_threads");
      scratch_.push_back(name);
      out_.line("status = apl_room(ctx, ({}) * ({}) * {}, \"{}\", &{}, &{}_room);", text(indices),
                text(scratch.elements), byte_size(scratch.element), scratch.name, name, name);
      out_.line("if (status != APL_SUCCESS) goto done;");
      arguments.push_back(name);
    }
  }

  // Variables for the arguments, and an array of pointers to them.
  void pack_arguments(const Kernel& lowering, const std::vector<std::string>& arguments) {
    std::vector<std::string> pointers;
    for (std::size_t k = 0; k < arguments.size(); ++k) {
      bool array = k < lowering.blocks().size();
      bool scalar = !array && k < lowering.blocks().size() + lowering.scalars().size();
      std::string type =
          scalar ? c_type({table_.type(lowering.scalars()[k - lowering.blocks().size()]).element, false}) + " "
                 : "void *";
      bool failure = lowering.can_fail() && k + 1 == arguments.size();
      if (failure) type = "struct apl_failure *";
      out_.line("{}arg_{} = {}{};", type, k, array ? "(void *)" : "", arguments[k]);
      pointers.push_back(fmt::format("&arg_{}", k));
    }
    out_.line("void *args[] = {{{}}};", pointers.empty() ? "NULL" : fmt::format("{}", fmt::join(pointers, ", ")));
  }

  void add_info(const kernel::Function& function, const Stm& stm) {
    result_.infos.push_back({function.name, function.threads, function.shared_bytes, stm.location});
  }

  void give_results() {
    const apl::Function& f = unit_.function;
    for (std::size_t k = 0; k < f.body->results.size(); ++k) {
      const Operand& operand = f.body->results[k];
      const Type type = table_.type(operand);
      out_.line("outputs[{}].type = {};", k, type_enum(type.element));
      out_.line("outputs[{}].rank = {};", k, type.rank());
      if (type.is_scalar()) {
        const std::string value = text(values_.operand(operand));
        out_.line("outputs[{}].scalar.{} = {};", k, field_of(type.element),
                  type.element == ScalarType::f16 ? fmt::format("apl_to_bits_f16({})", value) : value);
        continue;
      }
      for (std::size_t d = 0; d < type.rank(); ++d) out_.line("outputs[{}].shape[{}] = {};", k, d, text(type.shape[d]));
      std::string name = unit_.name(type.memory->block);
      out_.line("outputs[{}].data = {};", k, name);
      out_.line("{} = NULL;  // the caller's now", name);
    }
  }

  Unit& unit_;
  Values values_;
  const ValueTable& table_;
  const BlockUse use_;
  Writer out_;
  HostText result_;
  std::vector<Value> blocks_;
  bool has_rooms_ = false;
  std::vector<std::string> scratch_;                         // slots of threads' arrays
  std::map<Value, std::shared_ptr<PlanForms>> forms_;        // by kernel
  std::map<Value, std::shared_ptr<PlanForms>> forms_of_;     // by a number of theirs
  std::map<Value, std::shared_ptr<VariantForms>> variants_;  // by their number
  struct Way {
    VariantForms* variants = nullptr;
    std::int64_t number = 0;
  };
  std::map<Value, Way> ways_;  // by the condition of their branch
  Way way_;                    // the one whose branch this is
  std::set<Value> known_;      // what is bound at this place of the host code
  Writer declarations_;
};

}  // namespace

HostText lower_entry(Unit& unit, const CodegenOptions& options) { return Host(unit, options).run(); }

}  // namespace apl::lower
