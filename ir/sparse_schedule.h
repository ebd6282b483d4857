// What a kernel over the non-zeros of a sparse operand is, as its schedule says it, and whether it holds for the body.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/layouts.h"
#include "ir/module.h"

namespace apl {

inline constexpr std::array kSparseFamilies{SparseSchedule::Family::general, SparseSchedule::Family::product,
                                            SparseSchedule::Family::rows, SparseSchedule::Family::sddmm};
inline constexpr std::array kSparseRoles{SparseSchedule::Role::batch,  SparseSchedule::Role::row,
                                         SparseSchedule::Role::n,      SparseSchedule::Role::nonzero,
                                         SparseSchedule::Role::column, SparseSchedule::Role::depth};
// The words of the textual IR.
std::string_view to_text(SparseSchedule::Family family);
std::string_view to_text(SparseSchedule::Role role);

// The dim with that role: at most one has each but `batch`.
std::optional<std::size_t> dim_of(const SparseSchedule& schedule, SparseSchedule::Role role);

// The schedule of a kernel that goes over the non-zeros of the entry's operand `matrix`. It is general where
//   shape     the kernel gives not one number an index, or not one plain sum goes straight through the non-zeros of a
//             row (or through the depth at one non-zero)
//   terms     the sum's terms are not products of an element of the matrix and one of a dense operand (of two dense
//             ones), elements at positions that are linear in the dims
//   rows      elements of dense operands along n or depth are not neighbours
//   epilogue  code after the sum can fail, or makes arrays
// What the runtime has kernels for, and where memory is, is not asked here.
SparseSchedule sparse_schedule_of(const Stm& kernel, const std::string& matrix, const Function& function,
                                  const Layouts& layouts);

// What the schedule of a kernel says that its body does not do: a sentence; nothing if it holds, or there is none.
std::optional<std::string> sparse_schedule_fault(const Stm& kernel, const Function& function, const Layouts& layouts);

// What stands between a sum and its store: statements that make the result from the sum, or none.
struct SparseEpilogue {
  Value sum;
  std::vector<Stm> stms;
  Operand result;
  std::vector<SegDim> space;  // of the result, as the statements call its indices
  bool empty() const { return stms.empty(); }
};
// The sum and the result alone.
SparseEpilogue sparse_sum(const SegOp& kernel);
// The epilogue of a kernel whose schedule holds, where `given` is known to those that run it; or why they cannot.
std::variant<SparseEpilogue, std::string> sparse_epilogue(const SegOp& kernel, const std::vector<Value>& given,
                                                          const Function& function);

// What the body of a kernel calls the number at its non-zero of `array`, as an index.
std::optional<Value> gathered_index(const SegOp& kernel, Value array);

}  // namespace apl
