// Host code: branches and loops, the blocks that they yield, and calls.
#include "codegen/host/host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "ir/builder.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;

// Whether branches leave an array in another block than the statement's.
bool Host::moves_blocks(const Stm& stm) const {
  const auto block_of = [&](const Operand& x) {
    const auto memory = x.is_value() ? table_.type(x.value()).memory : nullptr;
    return memory ? memory->block : Value{};
  };
  for (const BodyPtr& inner : branches(stm.op))
    for (const auto& [made, result] : ranges::views::zip(stm.pattern, inner->results))
      if (block_of(result) != block_of(made)) return true;
  return false;
}

// Blocks of this and all nested bodies, kernels left out.
void Host::find_blocks(const Body& body) {
  for (const Stm& stm : body.stms) {
    if (get_if<Alloc>(stm)) blocks_.push_back(stm.pattern.front());
    if (get_if<Apply>(stm))
      for (const Value v : stm.pattern)
        if (table_.type(v).is_memory()) blocks_.push_back(v);
    const Loop* loop = get_if<Loop>(stm);
    has_capacities_ = has_capacities_ || loop;
    if (!loop && !is_branch(stm.op)) continue;
    has_capacities_ = has_capacities_ || moves_blocks(stm);
    for (const std::vector<Value>& values :
         {stm.pattern, loop ? std::vector<Value>(loop->params) : std::vector<Value>{}})
      for (Value v : values) {
        if (!table_.type(v).is_memory()) continue;
        blocks_.push_back(v);
        has_capacities_ = true;
      }
    for_each_body(stm.op, [&](const BodyPtr& inner) { find_blocks(*inner); });
  }
}

// The block that is yielded, for one that nobody reads any more.
void Host::exchange(Value to, Value from) {
  if (to == from) return;
  out_.line("apl_swap(&{}, &{}, &{}, &{});", unit_.name(to), capacity(to), unit_.name(from), capacity(from));
}

// What a body yields goes to where `target` lies: by exchanging blocks of one size if nobody needs the other's
// contents, else by copying (both are dense). Arrays whose size the body decides come with their blocks, which are
// among `targets` too.
void Host::yield_value(const Stm& stm, const Body& body, const Operand& from, Value target,
                       const std::vector<Value>& targets) {
  if (!from.is_value()) return;
  if (table_.type(target).is_memory()) return exchange(target, from.value());
  if (!table_.type(target).is_array()) return;
  const MemoryBinding& source = *table_.type(from.value()).memory;
  const MemoryBinding& to = *table_.type(target).memory;
  if (source == to || std::find(targets.begin(), targets.end(), to.block) != targets.end()) return;
  if (has_capacities_ && use_.may_exchange(stm, body, source.block, to.block)) return exchange(to.block, source.block);
  const Type& type = table_.type(target);
  run_call(copy_call(block(to.block), block(source.block),
                     fmt::format("({}) * {}", text(product(type.shape)), byte_size(type.element))));
}

void Host::declare_variable(Value v, const std::string& start) {
  out_.line("{} {} = {};", c_type({table_.type(v).element, false}), unit_.name(v), start);
  out_.line("(void){};", unit_.name(v));
}

void Host::declare_results(const Stm& stm) {
  for (Value v : stm.pattern)
    if (is_variable(v)) declare_variable(v, text(values_.constant(Scalar::zero(table_.type(v).element))));
}

// A body of which the statement's results are those.
void Host::yield_branch(const Stm& stm, const Body& inner) {
  // What is made in a branch or loop may not be there after it.
  const std::set<Poly> products = products_;
  body(inner);
  products_ = products;
  for (const auto& [made, result] : ranges::views::zip(stm.pattern, inner.results))
    if (is_variable(made)) out_.line("{} = {};", unit_.name(made), text(values_.operand(result)));
  yield_all(stm, inner, stm.pattern);
}

// Arrays that lie in each other's blocks first: their elements are still there.
void Host::yield_all(const Stm& stm, const Body& inner, const std::vector<Value>& targets) {
  const std::set<Value> served = take_turns(targets, inner.results);
  for (const auto& [target, result] : ranges::views::zip(targets, inner.results))
    if (!served.contains(target)) yield_value(stm, inner, result, target, targets);
}

void Host::branch(const If& op, const Stm& stm) {
  declare_results(stm);
  out_.open("if ({}) {{", text(values_.operand(op.condition)));
  yield_branch(stm, *op.then_body);
  out_.close("}} else {{");
  out_.indent();
  yield_branch(stm, *op.else_body);
  out_.close("}}");
}

// By the model where there are plans whose sizes are known here. Else the first whose condition holds: of a contraction
// that is the tiled one.
void Host::choose(const Choose& op, const Stm& stm) {
  declare_results(stm);
  const auto found = std::ranges::find(variants_, &op, [](const auto& one) { return one.first; });
  Variants* variants = found == variants_.end() || !offers_variants() ? nullptr : found->second.get();
  if (variants != nullptr && variants->name.empty() && !variants->splits && is_known(variants->tiled()))
    write_choice(*variants, unit_, values_, out_);
  const bool open = variants != nullptr && !variants->name.empty();
  // One that is asked for comes first.
  std::vector<const Choose::Alternative*> order;
  for (const Choose::Alternative& alternative : op.alternatives) order.push_back(&alternative);
  if (const auto asked = parameters_.find(op.parameter); !open && asked != parameters_.end()) {
    auto first = order.begin() + std::clamp<std::int64_t>(asked->second, 1, std::ssize(order)) - 1;
    // Variants have the numbers of the model, whichever of them are there.
    if (is_of_variants(op))
      first = std::ranges::find(order, asked->second, [](const auto* one) { return variant_number(*one); });
    if (first != order.end()) std::rotate(order.begin(), first, first + 1);
  }
  const char* before = "";
  for (const Choose::Alternative* one : order) {
    const Choose::Alternative& alternative = *one;
    const bool always = alternative.condition == Operand(Scalar::boolean(true));
    // The last test stands for itself, so that there is always one.
    const bool is_last = open ? &alternative == &op.alternatives.back() : always;
    std::string test = always ? "" : text(values_.operand(alternative.condition));
    if (open) test = fmt::format("{} == {}", variants->number, variant_number(alternative));
    if (is_last) {
      out_.open("{}{{", before);
    } else {
      out_.open("{}if ({}) {{", before, test);
    }
    const Variant outer = variant_;
    // What not every variant needs is compiled when that variant is chosen; the tiled kernels have plans.
    if (open && variant_number(alternative) != APL_VARIANT_TILED) variant_ = {variants, variant_number(alternative)};
    yield_branch(stm, *alternative.body);
    variant_ = outer;
    out_.close("}}");
    if (is_last) break;
    before = "else ";
  }
}

// Arrays that lie in the blocks of other targets swap their roles: pointers are exchanged until each lies behind its
// own target's name. What is in the others is dead by then. Gives the targets that are served so.
std::set<Value> Host::take_turns(const std::vector<Value>& targets, const std::vector<Operand>& results) {
  std::set<Value> served;
  std::map<Value, Value> name_of;  // of what lay in a block before: the block whose name it has now
  const auto block_of = [&](Value v) {
    const auto& memory = table_.type(v).memory;
    return memory ? memory->block : Value{};
  };
  for (const Value target : targets)
    if (const Value block = block_of(target)) name_of.emplace(block, block);
  for (const auto& [target, result] : ranges::views::zip(targets, results)) {
    const Value to = block_of(target), from = result.is_value() ? block_of(result.value()) : Value{};
    if (!to || !from || from == to || !name_of.contains(from)) continue;
    const Value there = name_of.at(from);
    const auto old = std::ranges::find(name_of, to, [](const auto& entry) { return entry.second; });
    exchange(to, there);  // nothing if an exchange before brought it here
    old->second = there;
    name_of[from] = to;
    served.insert(target);
  }
  return served;
}

void Host::loop(const Loop& op, const Stm& stm) {
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
  const std::set<Poly> products = products_;
  body(*op.body);
  products_ = products;
  // All new values first: one may be computed from another's old value.
  std::vector<std::pair<Value, std::string>> next;
  for (std::size_t k = 0; k < op.params.size(); ++k) {
    if (!is_variable(op.params[k])) continue;
    next.emplace_back(op.params[k], unit_.fresh(table_.name(op.params[k]) + "_next"));
    out_.line("const {} {} = {};", c_type({table_.type(op.params[k]).element, false}), next.back().second,
              text(values_.operand(op.body->results[k])));
  }
  yield_all(stm, *op.body, op.params);
  for (const auto& [param, value] : next) out_.line("{} = {};", unit_.name(param), value);
  out_.close("}}");
  for (std::size_t k = 0; k < op.params.size(); ++k)
    if (table_.type(op.params[k]).is_memory()) exchange(stm.pattern[k], op.params[k]);
}

// ---- calls: the caller keeps its arguments, and what a function gives lies in blocks that become the caller's ----

// Sizes come first, as in a call.
void Host::bind_given() {
  const apl::Function& f = unit_.function;
  const auto bind = [&](Value v, std::size_t at) {
    const ScalarType type = f.type(v).element;
    if (!is_variable(v)) return;
    const std::string given = fmt::format("inputs[{}].scalar.{}", at, field_of(type));
    out_.line("const {} {} = {};", c_type({type, false}), unit_.name(v),
              has_own_bits(type) ? fmt::format("apl_from_bits_{}({})", apl::to_text(type), given) : given);
    out_.line("(void){};", unit_.name(v));
  };
  for (std::size_t k = 0; k < f.sizes.size(); ++k) bind(f.sizes[k], k);
  for (std::size_t k = 0; k < f.params.size(); ++k) bind(f.params[k], f.sizes.size() + k);
}

std::string Host::given(const Operand& x) {
  const Type type = table_.type(x);
  if (type.is_array()) return fmt::format("{{.data = {}}}", block(type.memory->block));
  const std::string value = text(values_.operand(x));
  return fmt::format(
      "{{.scalar.{} = {}}}", field_of(type.element),
      has_own_bits(type.element) ? fmt::format("apl_to_bits_{}({})", apl::to_text(type.element), value) : value);
}

void Host::call_function(const Apply& op, const Stm& stm) {
  if (!calls_functions()) unsupported(stm.location, fmt::format("a call of `{}` in a kernel file", op.function));
  const apl::Function& callee = unit_.callee(op.function);
  declare_results(stm);
  std::vector<std::string> arguments;
  for (const Operand& x : op.arguments) arguments.push_back(given(x));
  // So that a check that failed before is not taken for one in the function.
  if (awaits_checks_) run_call(synchronise_call());
  const std::string given = unit_.fresh("given"), made = unit_.fresh("made");
  out_.open("{{");
  if (!arguments.empty()) out_.line("const struct apl_value {}[] = {{{}}};", given, fmt::join(arguments, ", "));
  out_.line("struct apl_value {}[{}];", made, std::max<std::size_t>(1, callee.results.size()));
  run_call(fmt::format("apl_host_called(ctx, {}(ctx, {}, {}), {})", unit_.host_name(op.function),
                       arguments.empty() ? "NULL" : given, made, unit_.add_call(stm.location)));
  take(callee, stm, made);
  out_.close("}}");
}

// The call's results, out of the array of them.
void Host::take(const apl::Function& callee, const Stm& stm, const std::string& made) {
  const std::size_t sizes = callee.result_sizes.size();
  for (std::size_t s = 0; s < sizes; ++s) {
    std::string size = "0";
    for (std::size_t k = 0; k < callee.results.size(); ++k)
      for (std::size_t d = 0; d < callee.results[k].rank(); ++d)
        if (callee.results[k].shape[d] == Poly(callee.result_sizes[s]))
          size = fmt::format("{}[{}].shape[{}]", made, k, d);
    out_.line("{} = {};", unit_.name(stm.pattern[s]), size);
  }
  std::size_t k = 0;
  for (std::size_t p = sizes; p < stm.pattern.size(); ++p) {
    const Value v = stm.pattern[p];
    const Type& type = table_.type(v);
    if (type.is_memory()) {
      // A loop comes here again and again.
      out_.line("if ({0}) ctx->backend->release(ctx, {0});", unit_.name(v));
      out_.line("{} = {}[{}].data;", unit_.name(v), made, k);
      if (!has_capacities_) continue;
      const Type& array = table_.type(stm.pattern[p + 1]);
      out_.line("{} = ({}) * {};", capacity(v), text(product(array.shape)), byte_size(array.element));
      continue;
    }
    if (is_variable(v)) {
      const std::string value = fmt::format("{}[{}].scalar.{}", made, k, field_of(type.element));
      out_.line(
          "{} = {};", unit_.name(v),
          has_own_bits(type.element) ? fmt::format("apl_from_bits_{}({})", apl::to_text(type.element), value) : value);
    }
    ++k;
  }
}

}  // namespace apl::lower
