// Contractions as data, read off the kernels that tile-contraction makes: extents of results, windows of copies.
#include "codegen/contraction/plan_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <random>

#include "codegen/contraction/epilogue_split.h"
#include "ir/schedule.h"
#include "ir/walk.h"
#include "machine/tiles/plan.h"

namespace apl {
namespace {

// What one point costs, in multiply-adds of f32 at the full rate.
double operations_of(const TileContract& contract, const ValueTable& values) {
  double count = 0;
  bool product = false, sum = false;
  const auto count_operations = [&](const Body& body, bool reduces) {
    for_each_stm(body, [&](const Stm& stm) {
      if (stm.pattern.empty() || !values.type(stm.pattern.front()).is_scalar()) return;
      const ScalarType type = values.type(stm.pattern.front()).element;
      const double weight = byte_size(type) == 8 ? 2 : 1;
      if (const Binary* binary = get_if<Binary>(stm)) {
        const bool is_float = type == ScalarType::f32 || type == ScalarType::f64;
        product = product || (is_float && !reduces && binary->op == BinaryOp::mul);
        sum = sum || (is_float && reduces && binary->op == BinaryOp::add);
        count += division_of(binary->op) == BinaryOp::div || binary->op == BinaryOp::pow ? 16 * weight : weight;
      } else if (get_if<Unary>(stm)) {
        count += 4 * weight;
      } else if (get_if<Compare>(stm) || get_if<Convert>(stm) || get_if<If>(stm)) {
        count += weight;
      }
    });
  };
  count_operations(*contract.map.body, false);
  count_operations(*contract.reduce.op.body, true);
  // The two become one instruction.
  if (product && sum) count -= count >= 4 ? 2 : 1;
  return std::max(count, 1.0);
}

// What a copy does for an element beside the copy itself.
ComputedOperand computed_operand(const CopyTile& copy, const TileOperand& tile, std::size_t rank,
                                 const ValueTable& values) {
  constexpr int kFunction = 8;  // instructions of exp and the like
  ComputedOperand made;
  if (!copy.map) return made;
  made.instructions = 1;
  made.read_bytes = byte_size(values.type(copy.source).element);
  for_each_stm(*copy.map->body, [&](const Stm& stm) { made.instructions += get_if<Unary>(stm) ? kFunction : 1; });
  for (const TileRead& read : copy.also) {
    bool everywhere = read.array.has_value();
    for (std::size_t k = 0; k < tile.axes.size(); ++k) {
      const bool varies = std::ranges::any_of(read.at.strides[k], [](const Poly& p) { return !p.is_zero(); });
      everywhere = everywhere && varies;
      for (std::size_t s = 0; s < 2; ++s)
        if (varies && static_cast<std::size_t>(tile.axes[k]) + 2 == rank + s) ++made.row_numbers[s];
    }
    // What is read for a whole row, or a whole step, hardly counts.
    made.instructions += everywhere ? 2 : 1;
    if (everywhere) made.read_bytes += byte_size(values.type(*read.array).element);
  }
  return made;
}

// Arrays from outside of the block that the epilogue reads.
int epilogue_reads(const SegOp& kernel, const ValueTable& values) {
  std::set<Value> local, read;
  for_each_stm(*kernel.body, [&](const Stm& stm) { local.insert(stm.pattern.begin(), stm.pattern.end()); });
  for (const Stm& stm : kernel.body->stms) {
    const SegOp* threads = get_if<SegOp>(stm);
    if (threads == nullptr) continue;
    for_each_stm(*threads->body, [&](const Stm& inner) {
      if (const Index* index = get_if<Index>(inner); index && !local.contains(index->array)) read.insert(index->array);
    });
  }
  std::erase_if(read, [&](Value v) { return !values.type(v).is_array(); });
  return static_cast<int>(read.size());
}

// What kernels in front of a contraction's make of its operands: in the alternatives `transposed`, `aligned`, where one
// of two kernels does, and in `split`.
std::vector<Value> copies_before(const std::vector<Stm>& stms, const ValueTable& values) {
  std::vector<Value> copies;
  for (const Stm& stm : stms) {
    const SegOp* kernel = get_if<SegOp>(stm);
    if (kernel != nullptr && kernel->schedule) return copies;
    if (kernel == nullptr && !is_branch(stm.op)) continue;
    for (Value v : stm.pattern)
      if (values.type(v).is_array()) copies.push_back(v);
  }
  return {};
}

void note_copies(const Stm& contraction, const Function& function, PlanData& data) {
  for_each_stm(*function.body, [&](const Stm& stm) {
    const Choose* choose = get_if<Choose>(stm);
    if (choose == nullptr) return;
    const auto is_it = [&](const Stm& other) { return other.pattern == contraction.pattern; };
    for (const Choose::Alternative& alternative : choose->alternatives) {
      if (std::ranges::none_of(alternative.body->stms, is_it)) continue;
      if (alternative.name == "tiled")
        data.parts_transposed = std::ranges::any_of(choose->alternatives, [&](const Choose::Alternative& other) {
          return other.name == "split" && !copies_before(other.body->stms, function.values).empty();
        });
      for (Value copy : copies_before(alternative.body->stms, function.values)) {
        const Type& type = function.values.type(copy);
        data.copied_bytes += product(type.shape) * byte_size(type.element);
        ++data.copies;
      }
    }
  });
}

}  // namespace

std::set<Value> PlanData::symbols() const {
  std::set<Value> all;
  const auto add = [&](const Poly& p) { p.for_each_symbol([&](Value v) { all.insert(v); }); };
  for (const Schedule::Dim& dim : schedule.dims) add(dim.size);
  for (const Schedule::Operand& operand : schedule.operands)
    for (const Poly& stride : operand.strides) add(stride);
  add(copied_bytes);
  return all;
}

std::optional<PlanData> plan_data(const Stm& stm, const Function& function) {
  const SegOp* op = get_if<SegOp>(stm);
  if (op == nullptr || !op->schedule) return std::nullopt;
  const Schedule& schedule = *op->schedule;
  if (schedule.dims.size() > APL_PLAN_DIMS || schedule.operands.size() > APL_PLAN_OPERANDS) return std::nullopt;
  const ValueTable& values = function.values;
  PlanData data;
  data.location = stm.location;
  data.schedule = schedule;
  data.space_rank = space_rank(schedule);
  data.parameters = schedule.parameters;
  for (Value v : stm.pattern) {
    const int bytes = byte_size(values.type(v).element);
    data.result_bytes += bytes;
    data.widest_result = std::max(data.widest_result, bytes);
  }
  const TileContract* contract = nullptr;
  for_each_stm(*op->body, [&](const Stm& inner) {
    if (const TileContract* found = get_if<TileContract>(inner)) contract = found;
  });
  for (const Operand& neutral : contract->reduce.neutral)
    data.accumulator_bytes += std::max(4, byte_size(values.type(neutral).element));
  data.epilogue_arrays = epilogue_reads(*op, values);
  if (lower::stored_code(*op, values) != nullptr)
    data.stored_sum_bytes = byte_size(values.type(contract->reduce.neutral[0]).element);
  if (schedule.unit == Schedule::Unit::matrix)
    data.matrix_products = matrix_products(contract->map, contract->reduce.op, stm.attributes, values);
  data.operations = operations_of(*contract, values);
  std::map<Value, const CopyTile*> copies;
  for_each_stm(*op->body, [&](const Stm& inner) {
    if (const CopyTile* copy = get_if<CopyTile>(inner)) copies[inner.pattern.front()] = copy;
  });
  for (const TileOperand& tile : contract->operands)
    data.computed.push_back(computed_operand(*copies.at(tile.tile), tile, contract->space.size(), values));
  note_copies(stm, function, data);
  return data;
}

void fill_in(const PlanData& data, const std::function<std::int64_t(Value)>& value_of, apl_contraction& c) {
  const auto number = [&](const Poly& p) { return p.evaluate(value_of).value_or(0); };
  c = {};
  const Schedule& schedule = data.schedule;
  c.dim_count = static_cast<int>(schedule.dims.size());
  c.space_rank = static_cast<int>(data.space_rank);
  c.operand_count = static_cast<int>(schedule.operands.size());
  c.result_bytes = data.result_bytes;
  c.widest_result = data.widest_result;
  c.accumulator_bytes = data.accumulator_bytes;
  c.epilogue_arrays = data.epilogue_arrays;
  c.stored_sum_bytes = data.stored_sum_bytes;
  c.operations = static_cast<float>(data.operations);
  c.general = schedule.unit == Schedule::Unit::general;
  c.matrix = data.matrix_products;
  c.copies = data.copies;
  c.copied_bytes = number(data.copied_bytes);
  c.parts_transposed = data.parts_transposed ? 1 : 0;
  static constexpr std::int32_t kKinds[] = {APL_DIM_BATCH, APL_DIM_INVARIANT, APL_DIM_FREE,
                                            APL_DIM_M,     APL_DIM_N,         APL_DIM_CONTRACTED};
  for (std::size_t d = 0; d < schedule.dims.size(); ++d) {
    const Schedule::Dim& dim = schedule.dims[d];
    c.dims[d].size = std::max<std::int64_t>(0, number(dim.size));
    c.dims[d].kind = kKinds[static_cast<std::size_t>(dim.role)];
    c.dims[d].fixed = dim.tile.is_one() ? 1 : 0;
    for (std::size_t o = 0; o < schedule.operands.size(); ++o) {
      const Schedule::Operand& operand = schedule.operands[o];
      // A stride may be 0 by the sizes alone: what varies is not theirs to say. Rows that an array of indices names lie
      // anywhere.
      constexpr std::int64_t kFarApart = 64;
      const Poly& stride = operand.strides[d];
      if (!stride.is_zero()) {
        c.operands[o].strides[d] = number(stride) == 0 ? 1 : number(stride);
      } else if (operand.varies(d)) {
        c.operands[o].strides[d] = kFarApart;
      }
    }
  }
  for (std::size_t o = 0; o < schedule.operands.size(); ++o) {
    const Schedule::Operand& operand = schedule.operands[o];
    c.operands[o].bytes = byte_size(operand.element);
    c.operands[o].conditions = static_cast<int>(operand.conditions.size());
    const ComputedOperand& computed = data.computed[o];
    c.operands[o].computed = computed.instructions;
    c.operands[o].read_bytes = computed.read_bytes;
    for (std::size_t s = 0; s < 2; ++s) c.operands[o].row_numbers[s] += computed.row_numbers[s];
    // Numbers that have a table of rows.
    const auto count_rows = [&](const std::vector<Poly>& strides) {
      for (const auto role : {Schedule::Role::m, Schedule::Role::n})
        for (std::size_t d = 0; d < data.space_rank; ++d)
          if (schedule.dims[d].role == role && !strides[d].is_zero()) {
            ++c.operands[o].row_numbers[role == Schedule::Role::m ? 0 : 1];
            break;
          }
    };
    for (const std::vector<Poly>& condition : operand.conditions) count_rows(condition);
    if (!is_resident(schedule, operand)) continue;
    count_rows(operand.strides);
    for (const std::vector<Poly>& index : operand.gathers) count_rows(index);
  }
}

std::string parameter_name(const Function& function, Value value) {
  std::string name;
  for_each_stm(*function.body, [&](const Stm& stm) {
    if (const GetSize* size = get_if<GetSize>(stm); size && stm.pattern.front() == value) name = size->name;
  });
  return name;
}

void forced_numbers(const PlanData& data, const Function& function, const std::map<std::string, std::int64_t>& given,
                    apl_forced& forced) {
  const auto number = [&](const std::string& name) {
    const auto found = given.find(name);
    return found == given.end() ? 0 : static_cast<std::int32_t>(std::clamp<std::int64_t>(found->second, 1, INT32_MAX));
  };
  forced = {};
  if (given.empty()) return;
  for (std::size_t d = 0; d < data.dims().size(); ++d) {
    if (Value tile = parameter_of(data.dims()[d].tile)) forced.tile[d] = number(parameter_name(function, tile));
    if (Value reg = parameter_of(data.dims()[d].reg)) forced.reg[d] = number(parameter_name(function, reg));
  }
  forced.stages = number(data.parameters + "stages");
  forced.tiles_per_block = number(data.parameters + "tiles_per_block");
}

namespace {

using SymbolSizes = std::map<Value, std::int64_t>;

// All alike, large ones and such of contractions of higher rank first, then sizes of every magnitude; the same ones
// every time.
std::vector<SymbolSizes> sizes_of_all_kinds(const PlanData& data) {
  constexpr int kRandom = 32;
  const std::set<Value> symbols = data.symbols();
  std::vector<SymbolSizes> all;
  for (const std::int64_t n : {4096, 72, 2048, 1024, 1000, 512, 500, 256, 128, 100, 64, 32, 31, 24, 16, 10, 4, 1}) {
    SymbolSizes& sizes = all.emplace_back();
    for (Value v : symbols) sizes[v] = n;
    if (symbols.empty()) break;
  }
  std::mt19937_64 random(1);
  std::size_t space = 0;
  for (std::size_t d = 0; d < data.space_rank; ++d) space += data.dims()[d].size.constant() ? 0 : 1;
  const double bits = std::min(12.0, 30.0 / static_cast<double>(std::max<std::size_t>(space, 1)));
  for (int k = 0; k < kRandom && !symbols.empty(); ++k) {
    SymbolSizes& sizes = all.emplace_back();
    for (Value v : symbols)
      sizes[v] = static_cast<std::int64_t>(std::exp2(static_cast<double>(random() % 1024) / 1024 * bits));
  }
  return all;
}

// So many elements in each of `count` dims that all of them together are about `product`.
std::int64_t each_of(double product, std::size_t count) {
  const double root = std::pow(product, 1.0 / static_cast<double>(std::max<std::size_t>(count, 1)));
  return std::max<std::int64_t>(1, std::llround(root));
}

enum Role { kM, kN, kOthers, kDepth, kRoles };
using RoleSymbols = std::array<std::set<Value>, kRoles>;
using RoleProducts = std::array<double, kRoles>;

// The symbols of the sizes of each role; none: there are no M and N dims.
std::optional<RoleSymbols> symbols_by_role(const PlanData& data) {
  apl_contraction known;
  fill_in(
      data, [](Value) { return 2; }, known);
  if (apl_plan_has_mn_dims(&known) == 0) return std::nullopt;
  RoleSymbols symbols;
  for (std::size_t d = 0; d < data.dims().size(); ++d) {
    const int kind = known.dims[d].kind;
    const Role role = d >= data.space_rank ? kDepth : kind == APL_DIM_M ? kM : kind == APL_DIM_N ? kN : kOthers;
    data.dims()[d].size.for_each_symbol([&](Value v) { symbols[role].insert(v); });
  }
  return symbols;
}

// Sizes with these products of each role's dims. What stands in strides alone is that of a larger array.
SymbolSizes sizes_with(const PlanData& data, const RoleSymbols& symbols, const RoleProducts& products) {
  constexpr std::int64_t kLargerArray = 4096;
  SymbolSizes sizes;
  for (std::size_t role = 0; role < kRoles; ++role)
    for (Value v : symbols[role]) sizes.emplace(v, each_of(products[role], symbols[role].size()));
  for (Value v : data.symbols()) sizes.emplace(v, kLargerArray);
  return sizes;
}

// Squares by rank and depth, then few rows, few columns, or both and many batches, which want tiles of other sizes.
std::vector<SymbolSizes> sizes_by_role(const PlanData& data) {
  constexpr double kPoints = 1 << 22, kFewBatches = 16;
  const auto symbols = symbols_by_role(data);
  if (!symbols) return {};
  std::vector<SymbolSizes> all;
  const auto add = [&](const RoleProducts& products) { all.push_back(sizes_with(data, *symbols, products)); };
  const bool has_batches = !(*symbols)[kOthers].empty();
  const double batches = has_batches ? kFewBatches : 1;
  for (const double depth : {2048.0, 256.0}) add({4096, 4096, 1, depth});
  for (const double few : {16.0, 4.0, 64.0, 8.0}) {
    for (const double depth : {64.0, 2048.0, 16.0}) {
      add({kPoints / few / batches, few, batches, depth});
      add({few, kPoints / few / batches, batches, depth});
      if (has_batches) add({few, few, kPoints / few / few, depth});
    }
    if (has_batches) add({8 * few, 8 * few, kPoints / few / few / 64, 8 * few});
  }
  return all;
}

// Few results of long sums: what reductions are split for. Parts are many where blocks are few.
std::vector<SymbolSizes> sizes_to_split(const PlanData& data) {
  const auto symbols = symbols_by_role(data);
  std::set<Value> depth;
  std::size_t space = 0;
  for (std::size_t d = 1; d < data.dims().size(); ++d) {
    if (d < data.space_rank) space += data.dims()[d].size.constant() ? 0 : 1;
    if (d >= data.space_rank) data.dims()[d].size.for_each_symbol([&](Value v) { depth.insert(v); });
  }
  std::vector<SymbolSizes> all;
  const auto with_depth = [&](SymbolSizes& sizes, std::int64_t points, std::int64_t reduction,
                              std::int64_t all_points = 1 << 20) {
    for (Value v : depth)
      sizes[v] = each_of(static_cast<double>(reduction), depth.size() - (depth.contains(data.splits()) ? 1 : 0));
    sizes[data.splits()] = std::clamp<std::int64_t>(all_points / points, 4, reduction / 64);
  };
  for (const std::int64_t points : {1 << 12, 1 << 10, 1 << 14, 1 << 16, 1 << 8, 1 << 18, 1 << 4})
    for (const std::int64_t reduction : {1 << 20, 1 << 12}) {
      SymbolSizes& sizes = all.emplace_back();
      for (Value v : data.symbols()) sizes[v] = each_of(static_cast<double>(points), space);
      with_depth(sizes, points, reduction);
    }
  // Of very long sums the parts may be as many as fill the device with large tiles.
  for (const std::int64_t points : {1 << 14, 1 << 16}) {
    SymbolSizes& sizes = all.emplace_back();
    for (Value v : data.symbols()) sizes[v] = each_of(static_cast<double>(points), space);
    with_depth(sizes, points, 1 << 20, 1 << 22);
  }
  // Few rows or few columns of them.
  constexpr std::int64_t kThin = 1 << 15;
  for (const double few : {8.0, 32.0, 2.0})
    for (const bool of_m : {false, true}) {
      if (!symbols) return all;
      SymbolSizes& sizes =
          all.emplace_back(sizes_with(data, *symbols, {of_m ? few : kThin / few, of_m ? kThin / few : few, 1, 1}));
      with_depth(sizes, kThin, 1 << 12);
    }
  return all;
}

}  // namespace

std::vector<apl_plan> covering_plans(const PlanData& data, const apl_forced& forced, const apl_device& device,
                                     int most) {
  // Kernels that are compiled only when they are chosen may be many.
  const double factor = most > 4 ? 1.05 : 1.15;
  constexpr double kLargest = 5e9;
  std::vector<apl_contraction> samples;
  const auto add = [&](const std::map<Value, std::int64_t>& sizes) {
    apl_contraction c;
    fill_in(
        data, [&](Value v) { return sizes.at(v); }, c);
    double points = 1;
    for (std::size_t d = 0; d < data.space_rank; ++d) points *= static_cast<double>(c.dims[d].size);
    if (points > 0 && points * data.result_bytes < kLargest) samples.push_back(c);
  };
  if (data.splits()) {
    for (const auto& sizes : sizes_to_split(data)) add(sizes);
  } else {
    for (const auto& sizes : sizes_of_all_kinds(data)) add(sizes);
    for (const auto& sizes : sizes_by_role(data)) add(sizes);
  }
  std::vector<apl_plan> plans(static_cast<std::size_t>(std::clamp(most, 1, APL_MAX_PLANS)));
  double worst = 0;
  const int count = apl_plan_cover(samples.data(), static_cast<int>(samples.size()), &forced, &device, factor,
                                   static_cast<int>(plans.size()), plans.data(), &worst);
  plans.resize(static_cast<std::size_t>(count));
  return plans;
}

std::vector<apl_plan> program_plans(const PlanData& data, const Function& function,
                                    const std::map<std::string, std::int64_t>& given, const apl_forced& forced,
                                    const apl_device& device, int most) {
  constexpr int kMostOfParts = 8;
  if (data.splits()) return covering_plans(data, forced, device, std::min(most, kMostOfParts));
  std::vector<apl_plan> plans;
  for (int k = 1; k <= APL_MAX_PLANS; ++k) {
    const std::string list = fmt::format("{}plan{}.", data.parameters, k);
    std::map<std::string, std::int64_t> numbers;
    for (auto at = given.lower_bound(list); at != given.end() && at->first.starts_with(list); ++at)
      numbers[data.parameters + at->first.substr(list.size())] = at->second;
    if (numbers.empty()) continue;
    apl_forced listed;
    forced_numbers(data, function, numbers, listed);
    apl_plan& plan = plans.emplace_back();
    for (int d = 0; d < APL_PLAN_DIMS; ++d) {
      plan.tile[d] = std::max(listed.tile[d], 1);
      plan.reg[d] = std::max(listed.reg[d], 1);
    }
    plan.stages = listed.stages, plan.tiles_per_block = listed.tiles_per_block;
  }
  return plans.empty() ? covering_plans(data, forced, device, most) : plans;
}

std::vector<apl_plan> plans_by_price(const PlanData& data, const Function& function, const apl_forced& forced,
                                     const apl_device& device, const std::map<std::string, std::int64_t>& sizes) {
  const std::set<Value> symbols = data.symbols();
  const bool known = std::ranges::all_of(symbols, [&](Value v) { return sizes.contains(function.values.name(v)); });
  const SymbolSizes large = sizes_of_all_kinds(data).front();
  apl_contraction contraction;
  fill_in(
      data, [&](Value v) { return known ? sizes.at(function.values.name(v)) : large.at(v); }, contraction);
  apl_plan_choice choice;
  std::vector<apl_plan> all;
  if (!known) all = covering_plans(data, forced, device, 1);
  if (known && apl_plan_select(&contraction, &forced, &device, &choice) != 0) all.push_back(choice.best);
  if (all.empty()) return all;
  const auto is_same = [&](const apl_plan& a, const apl_plan& b) {
    return std::equal(a.tile, a.tile + data.dims().size(), b.tile) &&
           std::equal(a.reg, a.reg + data.dims().size(), b.reg) && a.stages == b.stages &&
           a.tiles_per_block == b.tiles_per_block;
  };
  const std::vector<apl_plan> others = covering_plans(data, forced, device, APL_MAX_PLANS);
  std::vector<unsigned char> taken(others.size());
  for (std::size_t k = 0; k < others.size(); ++k) taken[k] = is_same(others[k], all.front()) ? 1 : 0;
  for (int next = 0; next >= 0;) {
    next = apl_plan_best_of(&contraction, others.data(), static_cast<int>(others.size()), &device, taken.data());
    if (next < 0) break;
    all.push_back(others[static_cast<std::size_t>(next)]);
    taken[static_cast<std::size_t>(next)] = 1;
  }
  return all;
}

std::string refusal_text(const PlanData& data, const Function& function, const apl_contraction& contraction,
                         const apl_forced& forced, const apl_device& device) {
  apl_plan_choice choice;
  if (apl_plan_select(&contraction, &forced, &device, &choice) != 0) return {};
  const char* what = "";
  switch (choice.fault) {
    case APL_PLAN_FINE: return {};
    case APL_PLAN_RANGE: what = "a number is below 1: {} of {}"; break;
    case APL_PLAN_THREADS: what = "{} threads a block, {} at most"; break;
    case APL_PLAN_REGISTERS: what = "{} registers a thread, {} at most"; break;
    case APL_PLAN_SHARED: what = "{} bytes of shared memory a block, {} at most"; break;
    case APL_PLAN_BLOCKS: what = "{} blocks, {} at most"; break;
  }
  std::string text = fmt::format(fmt::runtime(what), choice.needed, choice.limit) + fmt::format(" on {}", device.name);
  if (choice.conflict_works > 0) {
    const auto d = static_cast<std::size_t>(choice.conflict_dim);
    std::string name = data.parameters + "stages";
    if (choice.conflict_number == APL_NUMBER_TILE) name = parameter_name(function, parameter_of(data.dims()[d].tile));
    if (choice.conflict_number == APL_NUMBER_REG) name = parameter_name(function, parameter_of(data.dims()[d].reg));
    text += fmt::format("; {}={} would work", name, choice.conflict_works);
  }
  return text;
}

std::optional<Diagnostic> refuse_given(const PlanData& data, const Function& function, const apl_forced& forced,
                                       const apl_device& device) {
  const auto is_given = [](int number) { return number > 0; };
  if (std::none_of(std::begin(forced.tile), std::end(forced.tile), is_given) &&
      std::none_of(std::begin(forced.reg), std::end(forced.reg), is_given) && forced.stages <= 0)
    return std::nullopt;
  // The block that they make does not depend on sizes. How many blocks there are does, so the sizes are small.
  constexpr std::int64_t kSomeSize = 2;
  apl_contraction contraction;
  fill_in(
      data, [](Value) { return kSomeSize; }, contraction);
  const std::string refusal = refusal_text(data, function, contraction, forced, device);
  if (refusal.empty()) return std::nullopt;
  return make_error(Code::command_bad_parameter, data.location,
                    fmt::format("the tile numbers that are given cannot work: {}", refusal));
}

}  // namespace apl
