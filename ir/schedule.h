// What follows from a kernel's schedule, and whether it holds for the kernel's body.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"

namespace apl {

inline constexpr std::array kScheduleUnits{Schedule::Unit::general, Schedule::Unit::simt, Schedule::Unit::matrix,
                                           Schedule::Unit::packed};
inline constexpr std::array kScheduleRoles{Schedule::Role::batch, Schedule::Role::invariant, Schedule::Role::free,
                                           Schedule::Role::m,     Schedule::Role::n,         Schedule::Role::depth};
inline constexpr std::array kScheduleRemainders{Schedule::Remainder::peeled, Schedule::Remainder::padded};
// The words of the textual IR.
std::string_view to_text(Schedule::Unit unit);
std::string_view to_text(Schedule::Role role);
std::string_view to_text(Schedule::Remainder remainder);

// The tuning parameter that a number of a schedule is; none if it is 1.
inline Value parameter_of(const Poly& number) { return number.symbol().value_or(Value{}); }
// How many dims are those of the results.
std::size_t space_rank(const Schedule& schedule);
bool has_mn_dims(const Schedule& schedule);
// Whether the operand is the same for all steps of the depth: it is read once.
bool is_resident(const Schedule& schedule, const Schedule::Operand& operand);
// Code on scalars alone, which a packed kernel can have in its parts.
bool is_scalar_code(const Lambda& lambda, const ValueTable& values);
// How many products of matrix units make one of a reduction of `map` by `op`, of a statement with these attributes; 0:
// it sums no products that they know. In f64; in f32 of two operands that are both f16 or both bf16, each widened to
// f32; in i32 or u32 of two that are i8 or u8, each widened to that: 1. Of two of f32: 1 where the statement has
// #[tf32], 3 with #[f32_3xtf32].
int matrix_products(const Lambda& map, const Lambda& op, const std::vector<Attribute>& attributes,
                    const ValueTable& values);
// The dims that make up each dim of the kernel's space, outermost first. With M and N dims all others have one of their
// own, then come M and N, flattened, of M last those along which its operand is contiguous; else every dim has one.
std::vector<std::vector<std::size_t>> axes_of(const Schedule& schedule);

// What the schedule of a kernel says that its body does not do: a sentence; nothing if it holds, or there is none. A
// pass that changes such a kernel may leave it so: the pass manager drops the schedule, with a remark.
//   structure  results are register tiles of the dims' sizes and parameters; the depth is one loop over copies and a
//              contraction, with at most one step behind it
//   roles      they are those that the operands' strides say
//   operands   each tile is copied from a window of exactly these strides, guarded where the dims end
//   epilogue   code after the reduction goes through the thread's own elements
//   memory     (at that stage) accumulators are in registers, tiles in shared memory, results lie alike
std::optional<std::string> schedule_fault(const Stm& kernel, const ValueTable& values);

// `kernel`'s code after the reduction, in a segmap inside it: one map over the thread's elements. None if it is other
// code.
const Screma* epilogue_map(const SegOp& threads, const ValueTable& values);

// One step of the depth: copies of all tiles, then their contraction.
struct ScheduleStep {
  std::vector<std::pair<const CopyTile*, Value>> copies;  // and what they give
  const TileContract* contract = nullptr;
};
std::optional<ScheduleStep> schedule_step(const Body& body);

}  // namespace apl
