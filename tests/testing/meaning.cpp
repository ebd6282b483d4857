// The same-meaning law: two modules give the same results on random inputs.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "ir/interpret.h"
#include "tests/testing.h"

namespace apl::testing {

namespace {

std::vector<Sizes> usual_sizes(const Function& function, const LawOptions& options) {
  std::vector<Sizes> all = options.sizes;
  if (options.only_these_sizes) return all;
  std::vector<std::string> names;
  for (Value size : function.sizes) names.push_back(function.values.name(size));
  if (names.empty()) {
    all.resize(all.size() + static_cast<std::size_t>(options.random_sizes));
    return all;
  }
  const auto all_of = [&](const std::function<std::int64_t(std::size_t)>& size) {
    Sizes sizes;
    for (std::size_t k = 0; k < names.size(); ++k) sizes[names[k]] = size(k);
    all.push_back(sizes);
  };
  constexpr std::array<std::int64_t, 4> kPrimes = {5, 3, 7, 2};
  const auto prime = [&](std::size_t k) { return kPrimes[k % kPrimes.size()]; };
  all_of([](std::size_t) { return 0; });
  all_of([](std::size_t) { return 1; });
  for (std::size_t shift = 0; shift < kPrimes.size(); ++shift) all_of([&](std::size_t k) { return prime(k + shift); });
  for (std::size_t special = 0; special < names.size(); ++special)
    for (const std::int64_t size : {0, 1}) all_of([&](std::size_t k) { return k == special ? size : prime(k); });
  std::mt19937_64 random(options.seed);
  for (int k = 0; k < options.random_sizes; ++k)
    all_of([&](std::size_t) { return static_cast<std::int64_t>(random() % 8); });
  return all;
}

// -0.0 and 0.0 are equal: which one a sum of zeros is depends on the order.
bool equal(const Scalar& x, const Scalar& y) {
  if (x == y) return true;
  return x.type() == y.type() && is_float(x.type()) && x.as_float() == y.as_float();
}

std::optional<std::string> difference(const HostValue& x, const HostValue& y) {
  if (x.type != y.type || x.shape != y.shape)
    return fmt::format("one is [{}]{}, the other [{}]{}", fmt::join(x.shape, "]["), to_text(x.type),
                       fmt::join(y.shape, "]["), to_text(y.type));
  for (std::int64_t k = 0; k < x.element_count(); ++k)
    if (!equal(x.at(k), y.at(k)))
      return fmt::format("element {} (row-major) is {} before and {} after", k, x.at(k).to_text(), y.at(k).to_text());
  return std::nullopt;
}

std::string shortened(std::string text) {
  constexpr std::size_t kLength = 400;
  if (text.size() > kLength) text.replace(kLength, std::string::npos, " ...");
  return text;
}

std::string failed(std::string_view which, const Diagnostic& error) {
  return fmt::format("{} fails: {} [{}]", which, error.message, code_text(error.code));
}

class Law {
 public:
  Law(const Module& before, const Module& after, std::string_view entry, const LawOptions& options)
      : before_(before), after_(after), entry_(entry), options_(options) {}

  Verdict run() {
    const Function* function = before_.find_entry(entry_);
    if (function == nullptr) return Verdict::no(fmt::format("there is no entry `{}` before", entry_));
    if (after_.find_entry(entry_) == nullptr) return Verdict::no(fmt::format("there is no entry `{}` after", entry_));
    int compared = 0;
    std::string last_failure = "no sizes were given";
    std::uint64_t seed = options_.seed;
    for (const Sizes& sizes : usual_sizes(*function, options_)) {
      auto arguments = random_arguments(*function, sizes, seed++);
      if (!arguments) {
        last_failure = arguments.error().message;
        if (arguments.error().code == Code::command_bad_argument) return Verdict::undecided(last_failure);
        continue;
      }
      const auto expected = interpret(before_, entry_, *arguments, with_order(1));
      if (!expected) {
        last_failure = failed("before", expected.error());
        if (code_fault(expected.error().code) == Fault::program) continue;
        Verdict verdict = Verdict::undecided(counterexample(*arguments, last_failure));
        verdict.code = expected.error().code;
        return verdict;
      }
      ++compared;
      for (std::uint64_t order : options_.orders)
        if (const auto why = compare(*expected, *arguments, order))
          return Verdict::no(counterexample(*arguments, *why));
    }
    if (compared == 0)
      return Verdict::undecided("nothing could be compared, because every run before failed: " + last_failure);
    return {};
  }

 private:
  InterpretOptions with_order(std::uint64_t order) const {
    InterpretOptions options;
    options.seed = order;
    options.parameters = options_.parameters;
    options.tiles = options_.tiles;
    return options;
  }

  std::optional<std::string> compare(const std::vector<HostValue>& expected, const std::vector<HostValue>& arguments,
                                     std::uint64_t order) const {
    const auto actual = interpret(after_, entry_, arguments, with_order(order));
    if (!actual) return failed("after", actual.error());
    if (actual->size() != expected.size())
      return fmt::format("{} results before, {} after", expected.size(), actual->size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      const auto where = difference(expected[k], (*actual)[k]);
      if (where)
        return fmt::format("result {}: {} (interpreter seed {})\n  before: {}\n  after:  {}", k + 1, *where, order,
                           shortened(expected[k].to_text()), shortened((*actual)[k].to_text()));
    }
    return std::nullopt;
  }

  std::string counterexample(const std::vector<HostValue>& arguments, const std::string& why) const {
    std::string text = fmt::format("{}\n  arguments of `{}`:", why, entry_);
    for (const HostValue& value : arguments) text += "\n    " + shortened(value.to_text());
    return text;
  }

  const Module& before_;
  const Module& after_;
  std::string entry_;
  const LawOptions& options_;
};

// Those of the sizes that the function has: several entries may share one list.
Sizes known_to(const Function& function, const Sizes& sizes) {
  Sizes result;
  for (const std::vector<Value>& values : {function.sizes, function.params})
    for (Value value : values)
      if (const auto place = sizes.find(function.values.name(value)); place != sizes.end()) result.insert(*place);
  return result;
}

}  // namespace

Verdict same_meaning(const Module& before, const Module& after, std::string_view entry, const LawOptions& options) {
  return Law(before, after, entry, options).run();
}

Verdict same_meaning(const Module& before, const Module& after, const LawOptions& options) {
  bool any = false;
  std::set<std::string> unknown;  // a misspelt size would be ignored for ever
  for (const Sizes& sizes : options.sizes)
    for (const auto& [name, size] : sizes) unknown.insert(name);
  for (const FunctionPtr& function : before.functions) {
    if (!function->is_entry()) continue;
    any = true;
    LawOptions own = options;
    for (Sizes& sizes : own.sizes) {
      sizes = known_to(*function, sizes);
      for (const auto& [name, size] : sizes) unknown.erase(name);
    }
    Verdict verdict = same_meaning(before, after, function->entry->name, own);
    if (!verdict) return verdict;
  }
  if (!unknown.empty()) return Verdict::no(fmt::format("no entry has a size or scalar `{}`", *unknown.begin()));
  return any ? Verdict{} : Verdict::undecided("no function of the module is an entry, so nothing was compared");
}

bool same_results(std::vector<HostValue> a, std::vector<HostValue> b) {
  for (std::vector<HostValue>* values : {&a, &b})
    for (HostValue& value : *values) {
      if (!is_float(value.type)) continue;
      for (std::int64_t k = 0; k < value.element_count(); ++k)
        if (const double x = value.at(k).as_float(); x == 0 || std::isnan(x))
          value.set(k, Scalar::floating(value.type, x == 0 ? 0 : std::numeric_limits<double>::quiet_NaN()));
    }
  return a == b;
}

}  // namespace apl::testing
