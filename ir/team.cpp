#include "ir/team.h"

#include <algorithm>
#include <set>

#include "ir/stray.h"
#include "ir/walk.h"

namespace apl {
namespace {

bool is_reduction(const Stm& stm) {
  const Screma* screma = get_if<Screma>(stm);
  return screma != nullptr && !screma->reduces.empty();
}

bool returns(const SegOp& kernel, Value row) {
  return std::ranges::find(kernel.body->results, Operand(row)) != kernel.body->results.end();
}

// Memory of a scan's rows that nobody reads.
bool is_unused_row(const Stm& stm, const SegOp& kernel, const Stm& scan, const ValueTable& values) {
  return std::holds_alternative<Alloc>(stm.op) && std::ranges::any_of(scan.pattern, [&](Value row) {
           const auto& memory = values.type(row).memory;
           return memory && memory->block == stm.pattern.front() && !returns(kernel, row);
         });
}

// An array of a kernel's own would be one for each thread of a team.
bool makes_array(const Stm& stm, const ValueTable& values) {
  if (std::holds_alternative<Index>(stm.op) || std::holds_alternative<Rearrange>(stm.op) ||
      std::holds_alternative<Reshape>(stm.op))
    return false;
  return std::ranges::any_of(stm.pattern, [&](Value v) { return !values.type(v).is_scalar(); });
}

bool has_loop(const Body& body) {
  bool found = false;
  for_each_stm(body, [&](const Stm& stm) { found = found || get_if<Loop>(stm) || get_if<Screma>(stm); });
  return found;
}

bool is_array(const Operand& x, const ValueTable& values) {
  return x.is_value() && !values.type(x.value()).is_scalar();
}

// A map, reduction or scan that a team shares, with rows of `held`, and its own rows then.
std::optional<std::string> row_fault(const Stm& stm, std::set<Value>& held, const ValueTable& values) {
  const Screma& screma = std::get<Screma>(stm.op);
  for (const Operand& result : screma.map.body->results)
    if (const Type& type = values.type(result); !type.is_scalar() || type.element == ScalarType::unit)
      return "what is made of a row's elements is no scalar";
  const auto is_simple = [&](const Body& body) {
    bool arrays = false;
    for_each_stm(body, [&](const Stm& inner) { arrays = arrays || makes_array(inner, values); });
    return !arrays && !has_loop(body);
  };
  bool simple = is_simple(*screma.map.body);
  for (const ReduceOp& reduce : screma.reduces) simple = simple && is_simple(*reduce.op.body);
  if (!simple) return "what is done for an element has loops or arrays";
  std::set<Value> read = free_values(screma.map, values);
  for (const ReduceOp& reduce : screma.reduces) read.merge(free_values(reduce.op, values));
  if (std::ranges::any_of(held, [&](Value row) { return read.contains(row); }))
    return "a row that it makes is read by index";
  for (const Value made : stm.pattern)
    if (!values.type(made).is_scalar()) held.insert(made);
  return std::nullopt;
}

std::optional<std::string> rows_fault(const SegOp& kernel, const ValueTable& values) {
  if (kernel.level != SegLevel::thread) return "its level is not `thread`";
  if (kernel.space.empty()) return "its space has no dims";
  if (can_fail(*kernel.body, values)) return "a statement in its body can fail";
  std::set<Value> bound, held;
  for (const SegDim& dim : kernel.space) bound.insert(dim.index);
  for_each_stm(*kernel.body, [&](const Stm& stm) { bound.insert(stm.pattern.begin(), stm.pattern.end()); });
  const Poly* width = nullptr;
  for (const Stm& stm : kernel.body->stms) {
    if (const Screma* screma = get_if<Screma>(stm)) {
      if (screma->widths.size() != 1 || (width != nullptr && screma->widths.front() != *width))
        return "its maps and reductions have several widths";
      width = &screma->widths.front();
      if (auto fault = row_fault(stm, held, values)) return fault;
      continue;
    }
    if (std::holds_alternative<Alloc>(stm.op)) continue;  // for rows
    bool loops = std::holds_alternative<Loop>(stm.op), reads = false;
    for_each_body(stm.op, [&](const BodyPtr& body) { loops = loops || has_loop(*body); });
    for (const Value v : free_values(stm.op, values)) reads = reads || held.contains(v);
    if (loops) return "a loop stands in its body";
    if (reads) return "a row that it makes is read by index";
    if (makes_array(stm, values)) return "its body makes arrays";
  }
  if (width == nullptr) return "no map, reduction or scan stands in its body";
  bool known = true;
  width->for_each_symbol([&](Value v) { known = known && !bound.contains(v); });
  if (!known) return "the width of its rows is known only in the kernel";
  for (const Operand& result : kernel.body->results)
    if (is_array(result, values) && !held.contains(result.value())) return "a result is a row that it does not make";
  return std::nullopt;
}

}  // namespace

const Poly& row_width(const SegOp& kernel) {
  const auto found = std::ranges::find_if(kernel.body->stms, [](const Stm& stm) { return get_if<Screma>(stm); });
  return std::get<Screma>(found->op).widths.front();
}

const Stm* team_scatter(const SegOp& kernel) {
  const auto found =
      std::ranges::find_if(kernel.body->stms, [](const Stm& stm) { return std::holds_alternative<Scatter>(stm.op); });
  return found == kernel.body->stms.end() ? nullptr : &*found;
}

std::optional<std::size_t> last_of_row(const SegOp& kernel, const Operand& result) {
  const Stm* scan = team_reduction(kernel);
  const Stm* made = result.is_value() ? defining_stm(*kernel.body, result.value()) : nullptr;
  const If* branch = made != nullptr && made->pattern.size() == 1 ? get_if<If>(*made) : nullptr;
  if (branch == nullptr || scan == nullptr || branch->then_body->stms.size() != 1) return std::nullopt;
  const Screma& screma = std::get<Screma>(scan->op);
  const Stm& read = branch->then_body->stms.front();
  const Index* index = get_if<Index>(read);
  if (index == nullptr || index->dims.size() != 1 || index->dims.front().is_slice() ||
      index->dims.front().start != screma.widths.front() - 1 ||
      branch->then_body->results.front() != Operand(read.pattern.front()) || !branch->else_body->stms.empty())
    return std::nullopt;
  std::size_t k = 0;
  for (const ReduceOp& reduce : screma.reduces)
    for (const Operand& neutral : reduce.neutral) {
      if (scan->pattern[k] == index->array && branch->else_body->results.front() == neutral) return k;
      ++k;
    }
  return std::nullopt;
}

const Stm* team_reduction(const SegOp& kernel) {
  const auto found = std::ranges::find_if(kernel.body->stms, is_reduction);
  return found == kernel.body->stms.end() ? nullptr : &*found;
}

bool folds_in_any_order(const Screma& reduction) {
  return std::ranges::all_of(reduction.reduces, [](const ReduceOp& reduce) {
    const std::optional<BinaryOp> op = as_binary_op(reduce.op);
    return reduce.commutative || (op && is_commutative(*op));
  });
}

std::int64_t look_back_words(const Screma& scan, const ValueTable& values) {
  constexpr std::int64_t kWord = 4;
  std::int64_t words = 0;
  for (const ReduceOp& reduce : scan.reduces)
    for (std::size_t k = 0; k < reduce.neutral.size(); ++k)
      words += (byte_size(values.type(reduce.op.params[k]).element) + kWord - 1) / kWord;
  return words;
}

bool counts_flags(const Screma& scan, const ValueTable& values) {
  if (scan.widths.size() != 1) return false;
  std::size_t value = 0;
  for (const ReduceOp& reduce : scan.reduces) {
    const Body& add = *reduce.op.body;
    const std::size_t count = reduce.neutral.size();
    if (!reduce.scan || add.stms.size() != count) return false;
    for (std::size_t k = 0; k < count; ++k, ++value) {
      const Value left = reduce.op.params[k], right = reduce.op.params[count + k];
      const ScalarType type = values.type(left).element;
      if (!values.type(left).is_scalar() || !is_integer(type) || reduce.neutral[k] != Operand(Scalar::zero(type)))
        return false;
      const Stm* made = add.results[k].is_value() ? defining_stm(add, add.results[k].value()) : nullptr;
      const Binary* sum = made != nullptr ? get_if<Binary>(*made) : nullptr;
      const SizeExpr* size = made != nullptr ? get_if<SizeExpr>(*made) : nullptr;
      const bool adds = (sum != nullptr && sum->op == BinaryOp::add &&
                         ((sum->x == Operand(left) && sum->y == Operand(right)) ||
                          (sum->x == Operand(right) && sum->y == Operand(left)))) ||
                        (size != nullptr && size->value == Poly(left) + Poly(right));
      const Operand& element = scan.map.body->results[value];
      const Stm* flagged = element.is_value() ? defining_stm(*scan.map.body, element.value()) : nullptr;
      const Convert* flag = flagged != nullptr ? get_if<Convert>(*flagged) : nullptr;
      if (!adds || flag == nullptr || values.type(flag->x).element != ScalarType::boolean) return false;
    }
  }
  return value > 0;
}

// Values of a thread's elements stay in registers.
std::int64_t scan_rounds(const Screma& scan, const ValueTable& values) {
  const std::int64_t words = look_back_words(scan, values);
  return words <= 2 ? 4 : words <= 4 ? 2 : 1;
}

std::int64_t tile_rounds(const Screma& scan, const ValueTable& values) {
  if (counts_flags(scan, values)) return scan.reduced_count() <= 4 ? 4 : 2;
  return look_back_words(scan, values) == 1 ? 8 : scan_rounds(scan, values);
}

std::int64_t scan_tile(const Screma& scan, const ValueTable& values) {
  return kMostTeam * kNeighboursAtOnce * tile_rounds(scan, values);
}

namespace {

// Why the scatter cannot be done by the threads of the scan's blocks, each for its elements.
std::optional<std::string> scatter_fault(const Stm& stm, const Stm& scan, const SegOp& kernel,
                                         const ValueTable& values) {
  const Scatter& scatter = std::get<Scatter>(stm.op);
  const Screma& screma = std::get<Screma>(scan.op);
  if (scatter.op || scatter.widths != screma.widths || scatter.rank != 1)
    return "its scatter is not over the elements that are scanned";
  if (can_fail(*scatter.map.body, values) || has_loop(*scatter.map.body)) return "its scatter has loops or can fail";
  for (const Operand& result : scatter.map.body->results)
    if (const Type& type = values.type(result); !type.is_scalar() || type.element == ScalarType::unit)
      return "its scatter writes no scalars";
  const std::set<Value> read = free_values(scatter.map, values);
  if (std::ranges::any_of(scan.pattern, [&](Value row) { return read.contains(row); }))
    return "its scatter reads elements of the scan by index";
  bool is_behind = false;
  for (const Stm& other : kernel.body->stms) {
    const bool is_end = other.pattern.size() == 1 && last_of_row(kernel, Operand(other.pattern.front()));
    if (is_behind && &other != &stm && !is_end) {
      const std::set<Value> reads = free_values(other.op, values);
      if (std::ranges::any_of(scan.pattern, [&](Value row) { return reads.contains(row); }))
        return "an element of the scan is read by index";
      if (std::ranges::any_of(other.pattern, [&](Value v) {
            return read.contains(v) || std::ranges::find(scatter.inputs, v) != scatter.inputs.end();
          }))
        return "its scatter needs what stands behind the scan";
    }
    is_behind = is_behind || &other == &scan;
  }
  for (const Value target : scatter.targets) {
    const Stm* made = defining_stm(*kernel.body, target);
    if (made == nullptr || !std::holds_alternative<Scratch>(made->op)) return "its scatter writes into another array";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> team_fault(const SegOp& kernel, const ValueTable& values) {
  if (kernel.rows && kernel.blocks) return "it holds rows, which several blocks cannot share";
  if (kernel.rows) return rows_fault(kernel, values);
  if (kernel.level != SegLevel::thread) return "its level is not `thread`";
  if (kernel.space.empty()) return "its space has no dims";
  if (std::ranges::count_if(kernel.body->stms, is_reduction) != 1) return "not one reduction stands in its body";
  const Stm& reduction = *team_reduction(kernel);
  const Screma& screma = std::get<Screma>(reduction.op);
  const bool scans = std::ranges::all_of(screma.reduces, &ReduceOp::scan);
  if (!scans && screma.scans()) return "its reduction scans, too";
  if (screma.widths.size() != 1) return "its reduction has several widths";
  if (!scans && reduction.pattern.size() != screma.reduced_count()) return "its reduction maps rows, too";
  for (const Operand& row : screma.map.body->results)
    if (const Type& type = values.type(row); !type.is_scalar() || type.element == ScalarType::unit)
      return "its reduction is not one of scalars";
  for (const ReduceOp& reduce : screma.reduces)
    if (can_fail(*reduce.op.body, values)) return "an operator of its reduction can fail";
  const Stm* scatter = scans && kernel.blocks ? team_scatter(kernel) : nullptr;
  if (scatter != nullptr)
    if (auto fault = scatter_fault(*scatter, reduction, kernel, values)) return fault;
  const auto is_made_by = [&](const Operand& result, const Stm& stm) {
    return result.is_value() && std::ranges::find(stm.pattern, result.value()) != stm.pattern.end();
  };
  const auto is_row = [&](const Operand& result) {
    return scans && (is_made_by(result, reduction) || (scatter != nullptr && is_made_by(result, *scatter)));
  };
  const auto is_target = [&](const Stm& stm) {
    return scatter != nullptr && std::holds_alternative<Scratch>(stm.op) &&
           std::ranges::find(std::get<Scatter>(scatter->op).targets, stm.pattern.front()) !=
               std::get<Scatter>(scatter->op).targets.end();
  };
  for (const Operand& result : kernel.body->results)
    if (!values.type(result).is_scalar() && !is_row(result)) return "a result is no scalar";
  bool arrays = false;
  for_each_stm(*kernel.body, [&](const Stm& stm) {
    const bool is_scan =
        (scans && (stm.pattern == reduction.pattern || is_unused_row(stm, kernel, reduction, values))) ||
        (scatter != nullptr && stm.pattern == scatter->pattern) || is_target(stm);
    arrays = arrays || (!is_scan && makes_array(stm, values));
  });
  if (arrays) return "its body makes arrays";
  if (scans && kernel.blocks) {
    if (std::ranges::any_of(kernel.space, [](const SegDim& dim) { return dim.bound != Poly(1); }))
      return "blocks share a scan of several indices";
    const auto is_result = [&](const Operand& result) {
      return is_row(result) || (scatter != nullptr && last_of_row(kernel, result));
    };
    if (!std::ranges::all_of(kernel.body->results, is_result))
      return "blocks share a scan, but a result is no row of it";
    if (look_back_words(screma, values) > kMostLookBackWords) return "blocks share a scan of too large values";
  }
  for (const Stm& stm : kernel.body->stms)
    if (&stm != &reduction && !is_target(stm) && can_fail(stm.op, values))
      return "what stands beside its reduction can fail";
  if (can_fail(reduction.op, values) && may_stray_beside(*kernel.body, reduction, values))
    return "what stands beside its reduction may stray where that fails";
  return std::nullopt;
}

}  // namespace apl
