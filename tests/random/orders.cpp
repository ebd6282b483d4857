#include "tests/random/orders.h"

#include <algorithm>
#include <random>

#include "passes/pipeline.h"

namespace apl::random_tests {

namespace {

class OrderMaker {
 public:
  explicit OrderMaker(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15U + 77) {}

  std::vector<std::string> run() {
    if (chance(80)) add("inline");
    grow(Stage::soac, between(0, 8));
    add("extract-kernels");
    grow(Stage::kernel, between(0, 6));
    if (chance(90)) {
      add("place-memory");
      grow(Stage::memory, between(0, 4));
    }
    return std::move(steps_);
  }

 private:
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }

  // Passes that take the stage and leave it.
  void grow(Stage stage, std::int64_t count) {
    std::vector<const PassInfo*> fit;
    for (const PassInfo& pass : registry_.passes())
      if ((pass.takes & stage_bit(stage)) != 0 && pass.gives(stage) == stage) fit.push_back(&pass);
    for (std::int64_t k = 0; k < count; ++k) add(*fit[static_cast<std::size_t>(between(0, std::ssize(fit) - 1))]);
  }

  void add(std::string_view name) { add(*registry_.find(name)); }
  // One option in four is not what it is by default.
  void add(const PassInfo& pass) {
    std::string options;
    for (const PassOption& option : pass.options) {
      const bool* flag = std::get_if<bool>(&option.default_value);
      // Tiles are those of plans, which programs without sparse operands have none of.
      if (flag == nullptr || pass.name == "sparsify" || !chance(25)) continue;
      options += (options.empty() ? "" : " ") + option.name + (*flag ? "=false" : "=true");
    }
    steps_.push_back(options.empty() ? pass.name : pass.name + "{" + options + "}");
  }

  PassRegistry registry_ = PassRegistry::builtin();
  std::mt19937_64 random_;
  std::vector<std::string> steps_;
};

}  // namespace

std::vector<std::string> random_order(std::uint64_t seed) { return OrderMaker(seed).run(); }

std::vector<std::string> random_disabled(std::uint64_t seed) {
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15U + 78);
  std::vector<std::string> disabled;
  const PassRegistry registry = PassRegistry::builtin();
  for (const PassInfo& pass : registry.passes()) {
    const bool changes_stage = pass.gives(Stage::soac) != Stage::soac;
    // Generated code calls nothing.
    if (!changes_stage && pass.name != "inline" && random() % 5 < 2) disabled.push_back(pass.name);
  }
  return disabled;
}

}  // namespace apl::random_tests
