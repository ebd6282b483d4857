// Contractions, plans and sizes from a seed.
#include <algorithm>
#include <random>

#include "machine/tiles/plan.h"
#include "tests/contractions/spec.h"

namespace apl::contraction_tests {

namespace {

// The generator alone is the same everywhere; the distributions of the standard library are not.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15U + 1) {}
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  bool chance(std::size_t percent) { return below(100) < percent; }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return *(all.begin() + below(all.size()));
  }
  template <class T>
  void shuffle(std::vector<T>& all) {
    for (std::size_t k = all.size(); k > 1; --k) std::swap(all[k - 1], all[below(k)]);
  }

 private:
  std::mt19937_64 random_;
};

// Two dims of an array as one.
void join(std::vector<Axis>& axes, Dice& dice) {
  if (axes.size() < 2) return;
  const std::size_t k = dice.below(axes.size() - 1);
  axes[k] = {axes[k].dim, View::plain, true};
  axes[k + 1] = {axes[k + 1].dim, View::plain, false};
}

bool has_views(const Spec& spec) {
  const auto any = [](const std::vector<Axis>& axes) {
    return std::any_of(axes.begin(), axes.end(), [](const Axis& a) { return a.joined || a.view != View::plain; });
  };
  return any(spec.residual) || std::any_of(spec.operands.begin(), spec.operands.end(), any);
}

// Conditions and arrays of indices for some operands, and one that no step of the reduction changes.
void draw_reads(Spec& spec, Dice& dice) {
  spec.otherwise = dice.one_of({0, 0, 1, 2});
  for (std::vector<Axis>& axes : spec.operands) {
    if (dice.chance(40)) continue;
    const auto is_free = [&](std::size_t k, bool contracted) {
      const bool joined = axes[k].joined || (k > 0 && axes[k - 1].joined);
      return !joined && axes[k].view == View::plain && (axes[k].dim >= spec.space_rank) == contracted;
    };
    for (std::size_t k = 0; k < axes.size() && dice.chance(60); ++k)
      for (std::size_t q = 0; q < axes.size(); ++q)
        if (is_free(k, false) && is_free(q, true)) {
          axes[k].view = View::window, axes[k].joined = true;
          const Axis step = axes[q];
          axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(q));
          k -= q < k ? 1 : 0;
          axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(k) + 1, step);
        }
    for (std::size_t k = 0; k < axes.size(); ++k)
      if ((is_free(k, false) || is_free(k, true)) && dice.chance(30)) {
        axes[k].view = dice.one_of({View::guarded, View::guarded, View::gathered});
        axes[k].shift = dice.one_of({-2, -1, 1, 3});
      }
  }
  if (dice.chance(35)) {
    std::vector<Axis> axes;
    for (std::size_t d = 0; d < spec.space_rank; ++d)
      if (dice.chance(50)) axes.push_back({d});
    dice.shuffle(axes);
    if (!axes.empty() && dice.chance(30)) axes[0].view = dice.one_of({View::guarded, View::gathered});
    if (!axes.empty()) spec.operands.push_back(std::move(axes));
  }
  spec.sizes_given = true;
}

// Factors that are more than elements, of products of two operands.
void draw_factors(Spec& spec, Dice& dice) {
  const bool multiplies =
      spec.op == Operator::sum || spec.op == Operator::widened_sum || spec.op == Operator::scaled_sum;
  if (!multiplies || spec.operands.size() < 2 || !dice.chance(spec.units ? 60 : 30)) return;
  for (std::size_t o = 0; o < 2; ++o) {
    FactorSpec& made = spec.factors.emplace_back();
    if (dice.chance(30)) continue;
    using enum Factor;
    made.factor = dice.one_of({function, by_index, masked, masked, limited, limited});
    if (made.factor == by_index && spec.rows) made.factor = function;
    if (made.factor != masked && made.factor != limited) continue;
    for (const Axis& axis : spec.operands[o])
      if (dice.chance(70) || (spec.rows && axis.dim >= spec.space_rank)) made.axes.push_back({axis.dim});
    dice.shuffle(made.axes);
    if (made.axes.empty()) made.factor = function;
  }
}

}  // namespace

Spec random_spec(std::uint64_t seed) {
  Dice dice(seed);
  Spec spec;
  spec.seed = seed;
  spec.entry = "c" + std::to_string(seed);
  do {
    using enum Operator;
    using enum ScalarType;
    spec.op = dice.one_of(
        {sum, sum, sum, widened_sum, scaled_sum, min_plus, max_times, first, argmin, complex, affine, matrix});
    spec.type = dice.one_of({f16, f32, f32, f32, f64, i8, i16, i32, i64});
  } while (!fits(spec.op, spec.type));
  // Products of matrix units; small whole numbers are tf32, too, and their sums exact.
  Dice units(seed ^ 0x554e4954);
  if (spec.units = units.chance(15); spec.units) {
    spec.type = units.one_of({ScalarType::f32, ScalarType::f32, ScalarType::i32});
    const bool narrow = spec.type == ScalarType::i32 || units.chance(40);
    spec.op = narrow ? Operator::widened_sum : units.one_of({Operator::sum, Operator::scaled_sum});
  }
  if (spec.type == ScalarType::f32 && (spec.units || units.chance(10)))
    spec.attribute = units.one_of({"tf32", "f32_3xtf32"});

  // Which operands have a dim: bit o stands for operand o.
  const std::size_t operands = spec.op != Operator::complex && dice.chance(6) ? 3 : 2;
  const std::size_t everyone = (std::size_t{1} << operands) - 1;
  std::vector<std::size_t> space, contracted;
  if (operands == 2) {
    for (std::size_t side : {1, 2}) {
      const bool none = dice.chance(2);  // a product with a vector
      for (std::size_t n = none ? 0 : dice.one_of({1, 1, 1, 2, 2, 3, 4}); n > 0; --n) space.push_back(side);
    }
  } else {
    for (std::size_t n = 2 + dice.below(3); n > 0; --n) space.push_back(1 + dice.below(everyone - 1));
  }
  for (std::size_t n = dice.one_of({0, 0, 0, 0, 1, 1, 2}); n > 0; --n) space.push_back(everyone);
  const bool invariant = dice.chance(3);
  if (invariant || space.empty()) space.push_back(0);
  dice.shuffle(space);
  bool everywhere = true;
  for (std::size_t n = dice.one_of({1, 1, 1, 1, 2, 2, 3}); n > 0; --n) {
    contracted.push_back(!contracted.empty() && dice.chance(8) ? 1 + dice.below(everyone) : everyone);
    everywhere = everywhere && contracted.back() == everyone;
  }
  spec.space_rank = space.size();
  std::vector<std::size_t> who = space;
  who.insert(who.end(), contracted.begin(), contracted.end());
  for (std::size_t d = 0; d < who.size(); ++d) {
    const auto letter = static_cast<char>(d < spec.space_rank ? 'a' + d : 'q' + d - spec.space_rank);
    Dim dim{std::string(1, letter), std::string(1, letter)};
    if (d > 0 && dice.chance(8)) dim.size = spec.dims[dice.below(d)].size;
    spec.dims.push_back(dim);
  }
  for (std::size_t o = 0; o < operands; ++o) {
    std::vector<Axis> axes;
    for (std::size_t d = 0; d < who.size(); ++d)
      if ((who[d] >> o & 1) != 0) axes.push_back({d});
    if (dice.chance(70)) dice.shuffle(axes);
    for (Axis& axis : axes)
      if (dice.chance(8)) axis.view = dice.one_of({View::padded, View::strided, View::reversed});
    if (dice.chance(15)) join(axes, dice);
    spec.operands.push_back(std::move(axes));
  }
  spec.fold = dice.one_of({Fold::nested, Fold::nested, Fold::nested, Fold::flattened, Fold::flattened, Fold::loop});
  if (spec.op == Operator::argmin && contracted.size() > 1) spec.fold = Fold::flattened;
  spec.rows = everywhere && dice.chance(45);
  if (spec.op == Operator::scaled_sum && !spec.rows && dice.chance(70)) {
    for (std::size_t d = 0; d < spec.space_rank; ++d)
      if (dice.chance(70)) spec.residual.push_back({d});
    dice.shuffle(spec.residual);
  }
  spec.sizes_given = has_views(spec) || dice.chance(30);
  // A size that no array has.
  for (std::size_t d = 0; d < who.size(); ++d) spec.sizes_given = spec.sizes_given || who[d] == 0;
  spec.says_commutative = is_commutative(spec.op) && spec.fold != Fold::loop && dice.chance(50);
  spec.default_plan = dice.chance(8);
  Dice factors(seed ^ 0x46414354);
  draw_factors(spec, factors);
  if (Dice more(seed ^ 0x464f524d); !spec.rows && more.chance(spec.factors.empty() ? 45 : 15)) draw_reads(spec, more);
  return spec;
}

namespace {

// Numbers for a GPU's mainloop: threads of whole warps, registers and depths that are powers of two.
void draw_even(Spec& spec, const std::vector<Parameter>& parameters, Dice& dice) {
  std::vector<std::string> threads;
  for (const Parameter& p : parameters)
    if (p.threads && spec.plan.count("R" + p.name.substr(1)) != 0) threads.push_back(p.name);
  for (auto& [name, number] : spec.plan) number = name[0] == 'R' ? dice.one_of({1, 1, 2, 4, 8}) : 1;
  if (!threads.empty())
    for (int n = dice.one_of({5, 5, 6, 7}); n > 0; --n) spec.plan[threads[dice.below(threads.size())]] *= 2;
  std::int64_t registers = 1;
  for (auto& [name, number] : spec.plan) {
    if (name[0] == 'R' && registers * number > 32) number = 1;
    if (name[0] == 'R') registers *= number;
  }
}

// Numbers for matrix units, along one dim of each operand's own: 64 or 128 rows by 64 or 128 of 8 and 16 bits; of f32
// warps of 32 or 64 by as many.
void draw_units(Spec& spec, Dice& dice) {
  for (auto& [name, number] : spec.plan) number = 1;
  for (std::size_t o = 0; o < 2 && o < spec.operands.size(); ++o)
    for (std::size_t d = 0; d < spec.space_rank; ++d) {
      const auto varies = [&](const std::vector<Axis>& axes) {
        return std::ranges::any_of(axes, [&](const Axis& axis) { return axis.dim == d; });
      };
      const std::string& size = spec.dims[d].size;
      if (!varies(spec.operands[o]) || varies(spec.operands[1 - o]) || !spec.plan.contains("R_" + size)) continue;
      const bool narrow = spec.op == Operator::widened_sum;
      spec.plan["T_" + size] = narrow ? (o == 0 ? 8 : 16) : o == 0 ? 4 : dice.one_of({8, 16});
      spec.plan["R_" + size] = narrow ? (o == 0 ? 8 : dice.one_of({4, 8})) : 8;
      break;
    }
  std::vector<std::string> depths;
  for (const auto& [name, number] : spec.plan)
    if (name[0] == 'T' && !spec.plan.contains("R" + name.substr(1))) depths.push_back(name);
  const std::int64_t step = spec.type == ScalarType::i32 ? 32 : 16;
  if (!depths.empty()) spec.plan[depths[dice.below(depths.size())]] = step * dice.one_of({1, 1, 2});
}

void draw_odd(Spec& spec, Dice& dice) {
  std::int64_t threads = 1, registers = 1;
  for (auto& [name, number] : spec.plan) {
    const bool registers_of_dim = name[0] == 'R';
    std::int64_t& all = registers_of_dim ? registers : threads;
    const std::int64_t most = registers_of_dim ? 48 : 192;
    number = registers_of_dim ? dice.one_of({1, 1, 2, 3, 5, 8}) : dice.one_of({1, 2, 3, 4, 5, 7, 8, 16});
    if (all * number > most) number = 1;
    all *= number;
  }
}

}  // namespace

void draw_plan(Spec& spec, const std::vector<Parameter>& parameters) {
  Dice dice(spec.seed ^ 0x504c414e);
  // Where it is open how it is computed, half say so.
  if (spec.default_plan && dice.chance(50))
    spec.plan["variant"] = static_cast<std::int64_t>(1 + dice.below(APL_VARIANTS - 1));
  if (spec.default_plan || parameters.empty()) return;
  for (const Parameter& p : parameters) spec.plan[p.name] = 1;
  const bool for_units = spec.units && spec.operands.size() == 2;
  if (for_units) {
    draw_units(spec, dice);
  } else if (dice.chance(60)) {
    draw_even(spec, parameters, dice);
  } else {
    draw_odd(spec, dice);
  }
  // Depths.
  for (auto& [name, number] : spec.plan)
    if (!for_units && name[0] == 'T' && spec.plan.count("R" + name.substr(1)) == 0)
      number = dice.one_of({1, 2, 3, 4, 5, 7, 8, 8, 12, 16, 32});
  if (dice.chance(50)) spec.plan["stages"] = static_cast<std::int64_t>(1 + dice.below(4));
  if (dice.chance(50)) spec.plan["tiles_per_block"] = static_cast<std::int64_t>(1 + dice.below(4));
  if (dice.chance(15)) spec.plan["copy"] = static_cast<std::int64_t>(1 + dice.below(2));
  if (dice.chance(10)) spec.plan["swizzle"] = 1;
  if (dice.chance(5)) spec.plan["mainloop"] = 1;
  if (dice.chance(15)) spec.plan["remainder"] = 2;
  if (dice.chance(8)) spec.plan["splits"] = static_cast<std::int64_t>(2 + dice.below(3));
}

void shrink_plan(Spec& spec, const std::vector<Parameter>& parameters) {
  for (const Parameter& p : parameters) {
    const auto given = spec.plan.find(p.name);
    const std::int64_t number = given == spec.plan.end() ? p.default_value : given->second;
    if (p.name[0] == 'R' || spec.plan.count("R" + p.name.substr(1)) == 0)
      spec.plan[p.name] = std::max<std::int64_t>(1, number / 2);
  }
}

void draw_sizes(Spec& spec, const std::vector<Parameter>& parameters) {
  Dice dice(spec.seed ^ 0x53495a45);
  const double most = spec.units ? 50000 : 12000, deepest = 200;  // products; so many keep f16 exact
  const auto number = [&](const std::string& name) -> std::int64_t {
    const auto given = spec.plan.find(name);
    if (given != spec.plan.end()) return given->second;
    for (const Parameter& p : parameters)
      if (p.name == name) return p.default_value;
    return 1;
  };
  for (int round = 0; round < 3; ++round) {
    testing::Sizes sizes;
    for (const Dim& dim : spec.dims) {
      const std::int64_t extent = number("T_" + dim.size) * number("R_" + dim.size);
      std::int64_t n = 0;
      switch (round) {
        case 0: n = extent * dice.one_of({1, 1, 2, 3}); break;  // whole tiles
        case 1: n = dice.one_of({2, 3, 5, 7, 11, 13, 17, 19, 23, 31, 37}); break;
        default: n = dice.one_of({0, 1, 1, 2, 6, 9, 15, 33}); break;
      }
      sizes[dim.size] = n;
    }
    // As much as can be run.
    const auto product = [&](std::size_t from) {
      double all = 1;
      for (std::size_t d = from; d < spec.dims.size(); ++d)
        all *= static_cast<double>(std::max<std::int64_t>(1, sizes[spec.dims[d].size]));
      return all;
    };
    // Blocks of matrix units take as long for one element as for all of a tile: dims that are no part of it stay short.
    const auto is_block = [&](std::size_t d) {
      const std::string& size = spec.dims[d].size;
      return spec.units && d < spec.space_rank && number("T_" + size) * number("R_" + size) == 1;
    };
    const auto many_blocks = [&] {
      constexpr double kMostBlocks = 100;
      double all = 1;
      for (std::size_t d = 0; d < spec.space_rank; ++d)
        if (is_block(d)) all *= static_cast<double>(std::max<std::int64_t>(1, sizes[spec.dims[d].size]));
      return all > kMostBlocks;
    };
    while (product(0) > most || product(spec.space_rank) > deepest || many_blocks()) {
      const bool deep = product(spec.space_rank) > deepest, blocks = !deep && many_blocks();
      auto largest = sizes.end();
      for (std::size_t d = deep ? spec.space_rank : 0; d < spec.dims.size(); ++d) {
        if (blocks && !is_block(d)) continue;
        const auto size = sizes.find(spec.dims[d].size);
        if (largest == sizes.end() || size->second > largest->second) largest = size;
      }
      largest->second =
          largest->second > 40 ? largest->second / 2 : dice.one_of({1, 2, 3, 4, 5, 7, 8, 16}) % largest->second;
      largest->second = std::max<std::int64_t>(1, largest->second);
    }
    spec.sizes.push_back(std::move(sizes));
  }
}

}  // namespace apl::contraction_tests
