// Default tile numbers and their parameters.
#include <algorithm>
#include <array>
#include <optional>

#include "ir/schedule.h"
#include "machine/target/target.h"
#include "passes/tile_contraction/tile.h"

namespace apl::tile {
namespace {

constexpr std::int64_t kThreads = 16;   // per group: 16 x 16 threads
constexpr std::int64_t kRegisters = 8;  // per group: 8 x 8 accumulators
constexpr std::int64_t kDepth = 16;

// Free dims that the same operands vary along, innermost result dim first.
using DimGroup = std::vector<std::size_t>;

// Dims that the same operands vary along are one group; with two operands there are two, M and N, as in a matrix
// product. Operands that no step changes stay in registers, wherever they vary.
std::vector<DimGroup> dim_groups(const Contraction& contraction) {
  std::vector<DimGroup> result;
  std::vector<std::vector<bool>> signatures;
  for (std::size_t d = contraction.space_rank; d-- > 0;) {
    if (contraction.dims[d].dim_class != DimClass::free) continue;
    std::vector<bool> signature;
    for (const ContractionOperand& operand : contraction.operands)
      signature.push_back(operand.varies(d) && !contraction.is_resident(operand));
    auto found = std::find(signatures.begin(), signatures.end(), signature);
    if (found == signatures.end()) {
      signatures.push_back(signature);
      result.emplace_back();
      found = signatures.end() - 1;
    }
    result[static_cast<std::size_t>(found - signatures.begin())].push_back(d);
  }
  return result;
}

// N and M of a contraction that has them, the one with the innermost result dim first: no operand that steps change
// varies along both. Other free dims stay on the grid; so do those along which no such operand varies, if there are
// better ones.
std::optional<std::array<DimGroup, 2>> two_groups(const Contraction& contraction) {
  const std::vector<DimGroup> all = dim_groups(contraction);
  const auto count = [&](auto&& is_it) {
    return std::ranges::count_if(contraction.operands, [&](const ContractionOperand& operand) {
      return !contraction.is_resident(operand) && is_it(operand);
    });
  };
  const auto is_streamed = [&](const DimGroup& group) {
    return count([&](const ContractionOperand& operand) { return operand.varies(group[0]); }) > 0;
  };
  for (const bool both : {true, false})
    for (std::size_t s = 0; s < all.size(); ++s)
      for (std::size_t t = s + 1; t < all.size(); ++t) {
        if (both && !(is_streamed(all[s]) && is_streamed(all[t]))) continue;
        const auto mixed = count(
            [&](const ContractionOperand& operand) { return operand.varies(all[s][0]) && operand.varies(all[t][0]); });
        if (mixed == 0) return std::array{all[s], all[t]};
      }
  return std::nullopt;
}

// Each group is cut into rectangles of registers, as square as can be, for 16 and 8 threads.
DefaultTiles two_sided_tiles(const Contraction& contraction, const ValueTable& values,
                             const std::array<DimGroup, 2>& all) {
  constexpr std::int64_t kRegisterBytes = 512, kStageBytes = 16 * 1024;
  DefaultTiles numbers;
  numbers.tile.assign(contraction.dims.size(), 1);
  numbers.reg.assign(contraction.dims.size(), 1);
  std::int64_t bytes = 0;
  for (const Operand& neutral : contraction.reduce.neutral)
    bytes += std::max<std::int64_t>(4, byte_size(values.type(neutral).element));
  std::int64_t slow = 8, fast = 16;
  while (slow * fast > 1 && slow * fast * bytes > kRegisterBytes) (fast > slow ? fast : slow) /= 2;
  numbers.tile[all[0][0]] = 8;
  numbers.reg[all[0][0]] = fast;
  numbers.tile[all[1][0]] = 16;
  numbers.reg[all[1][0]] = slow;
  std::int64_t step_bytes = 0;  // of the tiles, for one step of the depth
  for (const ContractionOperand& operand : contraction.operands)
    if (!contraction.is_resident(operand))
      step_bytes += (operand.varies(all[0][0])   ? 8 * fast
                     : operand.varies(all[1][0]) ? 16 * slow
                                                 : 1) *
                    static_cast<std::int64_t>(byte_size(values.type(operand.element).element));
  std::int64_t depth = kDepth;
  while (depth > 4 && depth * step_bytes > kStageBytes) depth /= 2;
  numbers.tile.back() = depth;
  return numbers;
}

std::int64_t shared_bytes(const Contraction& contraction, const ValueTable& values, const DefaultTiles& numbers) {
  std::int64_t bytes = 0;
  for (const ContractionOperand& operand : contraction.operands) {
    std::int64_t elements = 1, shortest = 0;
    for (std::size_t d = 0; d < contraction.dims.size(); ++d) {
      if (!operand.varies(d)) continue;
      const std::int64_t extent = numbers.tile[d] * numbers.reg[d];
      elements *= extent;
      if (extent > 1 && (shortest == 0 || extent < shortest)) shortest = extent;
    }
    // Padding adds at most one element behind each row (kernel.cpp).
    if (shortest > 0) elements += elements / shortest;
    bytes += elements * static_cast<std::int64_t>(byte_size(values.type(operand.element).element));
  }
  return bytes;
}

Schedule::Role role_of(std::size_t d, const Contraction& contraction,
                       const std::optional<std::array<DimGroup, 2>>& groups) {
  for (std::size_t s = 0; groups && s < 2; ++s)
    if (std::ranges::find((*groups)[s], d) != (*groups)[s].end()) return s == 0 ? Schedule::Role::n : Schedule::Role::m;
  switch (contraction.dims[d].dim_class) {
    case DimClass::batch: return Schedule::Role::batch;
    case DimClass::invariant: return Schedule::Role::invariant;
    case DimClass::free: return Schedule::Role::free;
    case DimClass::contracted: return Schedule::Role::depth;
  }
  return Schedule::Role::free;
}

// With the user's numbers of the mainloop, which are enumerations counted from 1: "mm.mainloop" (1: general code, 2:
// the mainloop without matrix units, 3: with them where they can), "mm.copy" (1: through registers, 2: 4 bytes at once,
// 3: 16), "mm.swizzle" (1: no, 2: yes).
Schedule make_schedule(const Contraction& contraction, const std::vector<DimTiles>& tiles, const std::string& prefix,
                       const std::map<std::string, std::int64_t>& given, const std::vector<Attribute>& attributes,
                       const ValueTable& values) {
  const auto number = [&](const char* name) {
    const auto found = given.find(prefix + name);
    return found == given.end() ? 0 : found->second;
  };
  const auto groups = two_groups(contraction);
  Schedule schedule;
  if (groups && number("mainloop") != 1) {
    const bool product =
        contraction.operands.size() == 2 &&
        matrix_products(contraction.map, contraction.reduce.op, attributes, values) > 0 &&
        std::ranges::all_of(contraction.operands, [&](const ContractionOperand& operand) {
          // Both tiles have the innermost steps, and hold zeros beyond the source.
          return operand.varies(contraction.dims.size() - 1) &&
                 (operand.conditions.empty() || operand.otherwise == Scalar::zero(operand.otherwise.type()));
        });
    schedule.unit = product && number("mainloop") != 2 ? Schedule::Unit::matrix : Schedule::Unit::simt;
    // Its copies have tables of rows, not of steps.
    for (const ContractionOperand& operand : contraction.operands)
      for (const ContractionGather& gather : operand.gathers)
        for (std::size_t d = contraction.space_rank; d < contraction.dims.size(); ++d)
          if (!gather.at.strides[d].is_zero()) schedule.unit = Schedule::Unit::general;
  }
  schedule.parameters = prefix;
  schedule.stages = number("stages");
  schedule.tiles_per_block = number("tiles_per_block");
  for (std::size_t d = 0; d < contraction.dims.size(); ++d)
    schedule.dims.push_back({role_of(d, contraction, groups), contraction.dims[d].size, tiles[d].tile, tiles[d].reg});
  for (const ContractionOperand& operand : contraction.operands) {
    Schedule::Operand& made = schedule.operands.emplace_back();
    made.name = values.name(operand.base);
    made.element = values.type(operand.element).element;
    made.strides.assign(operand.strides.begin(), operand.strides.end());
    for (const ContractionCondition& condition : operand.conditions) made.conditions.push_back(condition.at.strides);
    for (const ContractionGather& gather : operand.gathers) made.gathers.push_back(gather.at.strides);
    made.copy_bytes = number("copy") == 1 || operand.map ? 0 : number("copy") == 2 ? 4 : 16;
    made.swizzled = number("swizzle") != 1;
  }
  return schedule;
}

}  // namespace

DefaultTiles default_tiles(const Contraction& contraction, const ValueTable& values) {
  if (const auto both = two_groups(contraction)) return two_sided_tiles(contraction, values, *both);
  const std::vector<DimGroup> all = dim_groups(contraction);
  DefaultTiles numbers;
  numbers.tile.assign(contraction.dims.size(), 1);
  numbers.reg.assign(contraction.dims.size(), 1);
  // The group with the innermost result dim comes first: its threads write neighbouring elements. From the third
  // group on (more than two operands) dims stay on the grid.
  for (std::size_t s = 0; s < all.size() && s < 2; ++s) {
    const DimGroup& group = all[s];
    numbers.tile[group[0]] = kThreads;
    std::int64_t left = kRegisters;
    if (group.size() == 1) {
      numbers.reg[group[0]] = left;
    } else {
      // Tensors have short dims: 32 of the fastest, the other registers over the next ones.
      numbers.reg[group[0]] = 2;
      numbers.reg[group[1]] = left / 2;
    }
  }
  bool first = true;
  for (std::size_t d = contraction.dims.size(); d-- > contraction.space_rank;) {
    numbers.tile[d] = first ? kDepth : 1;
    first = false;
  }
  // What a block of any GPU has without asking for it.
  static const std::int64_t usual_shared = find_dialect("cuda")->usual_shared_bytes;
  // Too much shared memory: shrink the depth, then the register tiles, largest first.
  while (shared_bytes(contraction, values, numbers) > usual_shared) {
    auto depth = std::max_element(numbers.tile.begin() + static_cast<std::ptrdiff_t>(contraction.space_rank),
                                  numbers.tile.end());
    if (depth != numbers.tile.end() && *depth > 4) {
      *depth /= 2;
      continue;
    }
    auto reg = std::max_element(numbers.reg.begin(), numbers.reg.end());
    if (*reg == 1) break;
    *reg /= 2;
  }
  return numbers;
}

Tiling make_tiling(const Contraction& contraction, const std::string& prefix,
                   const std::map<std::string, std::int64_t>& given, const std::vector<Attribute>& attributes,
                   Builder& host) {
  Tiling plan;
  DefaultTiles defaults = default_tiles(contraction, host.values());
  auto parameter = [&](const std::string& name, SizeClass size_class, std::int64_t default_value) -> Poly {
    std::string full = prefix + name;
    auto found = given.find(full);
    if (found != given.end()) default_value = found->second;
    plan.parameters.push_back({full, default_value, found != given.end()});
    return {host.let(name, GetSize{full, size_class, default_value})};
  };
  for (std::size_t d = 0; d < contraction.dims.size(); ++d) {
    const ContractionDim& dim = contraction.dims[d];
    DimTiles tiles;
    if (dim.dim_class == DimClass::free) {
      tiles.tile = parameter("T_" + dim.name, SizeClass::tile_size, defaults.tile[d]);
      tiles.reg = parameter("R_" + dim.name, SizeClass::reg_tile_size, defaults.reg[d]);
    } else if (dim.dim_class == DimClass::contracted) {
      // Tiles of an outer reduction dim reorder the sum (tile by tile), which takes a commutative operator.
      bool innermost = d + 1 == contraction.dims.size();
      if (innermost || contraction.reduce.commutative)
        tiles.tile = parameter("T_" + dim.name, SizeClass::tile_size, defaults.tile[d]);
    }
    plan.dims.push_back(tiles);
  }
  plan.schedule = make_schedule(contraction, plan.dims, prefix, given, attributes, host.values());
  return plan;
}

bool may_pack(const Schedule& schedule) {
  constexpr std::size_t kTables = 8;  // kPackedOperands of runtime/backends/packed_panels.h
  std::array<std::size_t, 2> tables{};
  for (const Schedule::Operand& operand : schedule.operands) {
    const auto along = [&](Schedule::Role role) {
      for (std::size_t d = 0; d < schedule.dims.size(); ++d)
        if (schedule.dims[d].role == role && operand.varies(d)) return true;
      return false;
    };
    const bool on_n = along(Schedule::Role::n);
    if (on_n && along(Schedule::Role::m)) return false;
    tables[on_n ? 1 : 0] += 1 + operand.conditions.size() + operand.gathers.size();
  }
  return tables[0] <= kTables && tables[1] <= kTables;
}

}  // namespace apl::tile
