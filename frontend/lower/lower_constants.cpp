// Constants: definitions without parameters. One that costs more than a few scalar operations becomes a function of its
// own, which programs call once for each context (ir/constants.h); others are computed where they are used. Integers
// and booleans that the interpreter computes are what it says:
//   def p = loop x = 0u64 for c in "12345" do x * 10 + u64.u8 (c - '0')   =>   12345u64 wherever p is read
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "frontend/lower/lowerer.h"
#include "ir/attributes.h"
#include "ir/interpret.h"
#include "ir/places.h"
#include "ir/walk.h"

namespace apl::frontend {

namespace {

// Elements that a constant makes where it is used; passes fold code that reads so few.
constexpr std::int64_t kFewElements = 32;
// Loops of scalars that simplify computes are shorter.
constexpr std::int64_t kFewTrips = 4096;
// Arrays of the constants that are evaluated here to see whether they fail.
constexpr std::int64_t kMostEvaluated = 4096;
// Of maps of constants that the compiler computes.
constexpr std::int64_t kMostWidth = 65536;
// How often they may run as many bodies.
constexpr int kPatience = 8;

std::optional<std::int64_t> count_of(const std::vector<Poly>& sizes) { return product(sizes).constant(); }

// The elements that a constant's code makes, in so far as they are known here.
class Cost {
 public:
  Cost(const Module& module, const ValueTable& values) : module_(module), values_(&values) {}

  void add(const Body& body, std::int64_t times = 1) {
    for (const Stm& stm : body.stms) add(stm, times);
  }

  bool is_high() const { return high_ || elements_ > kFewElements; }
  bool reads_constants() const { return reads_constants_; }
  bool has_large_arrays() const { return has_large_arrays_; }

 private:
  void count(std::optional<std::int64_t> elements, std::int64_t times) {
    if (!elements || *elements > kFewElements || times > kFewElements) {
      high_ = high_ || (elements.value_or(1) > 0 && times > 0);
    } else {
      elements_ += *elements * times;
    }
  }

  void add(const Stm& stm, std::int64_t times) {
    if (const auto* screma = get_if<Screma>(stm)) {
      const std::optional<std::int64_t> width = count_of(screma->widths);
      count(width, times);
      if (!high_) add(*screma->map.body, times * *width);
    } else if (const auto* literal = get_if<ArrayLit>(stm)) {
      count(static_cast<std::int64_t>(literal->elements.size()), times);
    } else if (const auto* loop = get_if<Loop>(stm)) {
      add(*loop, times);
    } else if (const auto* call = get_if<Apply>(stm)) {
      add(*call, times);
    } else if (get_if<Scatter>(stm) || get_if<Update>(stm) || get_if<Copy>(stm)) {
      count(count_of(values_->type(stm.pattern.front()).shape), times);
    } else if (get_if<Derivative>(stm)) {
      high_ = true;
    } else {
      if (get_if<Iota>(stm) || get_if<Replicate>(stm))
        has_large_arrays_ =
            has_large_arrays_ ||
            count_of(values_->type(stm.pattern.front()).shape).value_or(kMostEvaluated + 1) > kMostEvaluated;
      for_each_body(stm.op, [&](const BodyPtr& inner) { add(*inner, times); });
    }
  }

  // Loops that count without a bound which is known here may be long; how long others take, nobody knows.
  void add(const Loop& loop, std::int64_t times) {
    const bool has_arrays =
        std::ranges::any_of(loop.params, [&](Value param) { return values_->type(param).is_array(); });
    const std::optional<std::int64_t> trips = loop.index ? loop.bound.constant() : std::nullopt;
    high_ = high_ || (loop.index && trips.value_or(kFewTrips + 1) > kFewTrips) || (has_arrays && !trips);
    if (has_arrays) count(trips, times);
    if (high_) return;
    times *= std::max<std::int64_t>(trips.value_or(1), 0);
    high_ = times > kFewTrips;
    if (!high_) add(*loop.body, times);
  }

  void add(const Apply& call, std::int64_t times) {
    const Function* callee = module_.find(call.function);
    if (callee == nullptr) return;
    if (callee->is_constant()) {
      reads_constants_ = true;
      return;
    }
    const ValueTable* outer = std::exchange(values_, &callee->values);
    add(*callee->body, times);
    values_ = outer;
  }

  const Module& module_;
  const ValueTable* values_;
  std::int64_t elements_ = 0;
  bool high_ = false, reads_constants_ = false, has_large_arrays_ = false;
};

void add_callees(const Module& module, const Function& function, Module& to) {
  for_each_stm(*function.body, [&](const Stm& stm) {
    const Apply* call = get_if<Apply>(stm);
    if (call == nullptr || to.find(call->function) != nullptr) return;
    for (const FunctionPtr& callee : module.functions)
      if (callee->name == call->function) {
        to.functions.push_back(callee);
        add_callees(module, *callee, to);
      }
  });
}

// A program that is nothing but the constant, as its entry.
Module program_of(const Module& module, const Function& function) {
  Module alone;
  Function entry = function;
  entry.name = "a constant";  // no function of the program is called so
  entry.entry = EntryInfo{.name = entry.name, .params = {}, .param_values = {}, .results = {}};
  alone.functions.push_back(std::make_shared<const Function>(std::move(entry)));
  add_callees(module, function, alone);
  for (FunctionPtr& each : alone.functions) each = without_places(*each);
  return alone;
}

// `patience`: how often 65,536 bodies may run.
Result<std::vector<HostValue>> evaluate(const Module& alone, int patience, bool& stopped) {
  InterpretOptions options;
  options.stop = [&] { return stopped = --patience <= 0; };
  return interpret(alone, "a constant", {}, options);
}

// Whether evaluating the constant is an error of the program.
bool fails(const Module& module, const Function& function) {
  bool stopped = false;
  const auto made = evaluate(program_of(module, function), 1, stopped);
  return !made && !stopped && code_fault(made.error().code) == Fault::program;
}

// Whether the interpreter computes it bit for bit as the program would, and quickly as far as sizes say: floats may be
// rounded otherwise there.
bool is_exact(const Function& function) {
  bool exact = true;
  const auto look = [&](Value v) { exact = exact && !is_float(function.type(v).element); };
  for_each_stm(*function.body, [&](const Stm& stm) {
    std::ranges::for_each(stm.pattern, look);
    for_each_binder(stm.op, look);
    const auto* screma = get_if<Screma>(stm);
    const bool is_long = screma != nullptr && count_of(screma->widths).value_or(0) > kMostWidth;
    for (const Value v : stm.pattern) exact = exact && count_of(function.type(v).shape).value_or(0) <= kMostWidth;
    exact = exact && !is_long && !get_if<Derivative>(stm) && !get_if<GetSize>(stm) &&
            !has_attribute(stm.attributes, attribute::trace);
  });
  return exact;
}

// Its integers and booleans, if it is nothing else and the compiler can compute them.
std::vector<Scalar> known_scalars(const Module& module, const Function& function) {
  for (const Type& type : function.results)
    if (!type.is_scalar() || (!is_integer(type.element) && type.element != ScalarType::boolean)) return {};
  const Module alone = program_of(module, function);
  if (!std::ranges::all_of(alone.functions, [](const FunctionPtr& each) { return is_exact(*each); })) return {};
  bool stopped = false;
  const auto made = evaluate(alone, kPatience, stopped);
  std::vector<Scalar> scalars;
  if (made)
    for (const HostValue& value : *made) scalars.push_back(value.at(0));
  return scalars;
}

}  // namespace

// Its function, if it has one. Constants of abstract types can be consumed: each use is a copy then.
StaticValue Lowerer::use_constant(const Closure::Definition& definition) {
  const Global& global = checked_.globals[definition.global];
  const Instance* kept = kept_constant(definition.global);
  const bool own = global.abstract || !global.type_params.empty() || !global.sizes.empty() || !global.unknown.empty();
  if (kept == nullptr && own) return expand_definition(definition, {});
  const std::pair key(definition.global, checked_indices_ && kept == nullptr);
  StaticValue value;
  if (const auto known = known_.constants.find(key); known != known_.constants.end()) {
    value = known->second;
  } else {
    value = kept == nullptr       ? expand_definition(definition, {})
            : kept->known.empty() ? *emit_call(*kept, {}, {})
                                  : with_leaves(kept->value, {kept->known.begin(), kept->known.end()});
    if (known_.constants.emplace(key, value).second) known_.new_constants.push_back(key);
  }
  if (!global.abstract) return value;
  return map_leaves(value, [&](const StaticValue& leaf) {
    const auto* fields = leaf.fields();
    if (fields != nullptr || leaf.index() != nullptr || !type_of(operand(leaf)).is_array()) return leaf;
    return StaticValue(Operand(builder_->let("a", Copy{array(leaf)})));
  });
}

const Lowerer::Instance* Lowerer::kept_constant(std::uint32_t number) {
  const Global& global = checked_.globals[number];
  if (global.entry || !global.type_params.empty() || !global.sizes.empty() || store_.contains_function(global.type) ||
      std::ranges::any_of(global.declaration->attributes,
                          [](const Attribute& a) { return a.name == attribute::inline_.name; }))
    return nullptr;
  auto found = constants_.find(number);
  if (found == constants_.end()) {
    auto* computed = std::exchange(computed_params_, nullptr);
    const Frame* unused = std::exchange(unused_, nullptr);
    Instance instance = make_instance({number, {}, {}}, "", true);
    computed_params_ = computed;
    unused_ = unused;
    found = constants_.emplace(number, std::move(instance)).first;
  }
  return found->second.callable || !found->second.known.empty() ? &found->second : nullptr;
}

// What a constant becomes that is worth a function of its own: numbers, if the compiler can compute them.
void Lowerer::keep_constant(const Global& global, const Function& function, Instance& result) const {
  if (!is_kept(global, function)) return;
  result.known = known_scalars(module_, function);
  result.callable = result.known.empty();
}

// Whether a constant is worth a function of its own: it is made of many elements or in long loops, is a scalar of
// another constant, or fails, which the program says when a context is made. Sizes of its arrays are numbers, or are
// known to nobody before it is there: sizes that are other constants would be lost.
bool Lowerer::is_kept(const Global& global, const Function& function) const {
  if (!function.params.empty() || !function.sizes.empty() || function.results.empty()) return false;
  bool is_scalar = true;
  for (const Type& type : function.results) {
    is_scalar = is_scalar && type.is_scalar();
    const bool is_sized =
        std::ranges::all_of(type.shape, [&](const Poly& size) { return size.constant().has_value(); });
    if (type.rank() > kMaxRank || (!is_sized && global.unknown.empty())) return false;
  }
  Cost cost(module_, function.values);
  cost.add(*function.body);
  if (cost.is_high()) return true;
  if (cost.reads_constants()) return is_scalar;
  return can_fail(*function.body, function.values) && !cost.has_large_arrays() && fails(module_, function);
}

}  // namespace apl::frontend
