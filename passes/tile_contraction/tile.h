// The rewrite behind tile-contraction: one matched contraction into a block-level SegMap.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/walk.h"
#include "passes/analysis/contractions.h"

namespace apl::tile {

// The contraction with reduction dims that lie together everywhere as one, unless numbers are given for one of them by
// its name.
Contraction merge_reductions(const Contraction& contraction, const std::function<bool(const std::string&)>& is_given,
                             ValueTable& values);
// With the reduction dim along which most operands are contiguous innermost, where the operator is commutative: copies
// of tiles run along it.
Contraction order_reductions(const Contraction& contraction);
std::size_t innermost_reduction(const Contraction& contraction);
// Whether it adds up single numbers, from zero.
bool is_plain_sum(const Contraction& contraction, const ValueTable& values);
// Where products of f16 or of bf16 are summed in their own type: each widened to f32, summed in that, and rounded once,
// before the code after the reduction. Nothing if it is another contraction.
std::optional<Contraction> widen_sums(const Contraction& contraction, ValueTable& values);
// The classes of the space's dims by the operands that are left.
void classify_dims(Contraction& contraction);
// Where products for matrix units are multiplied by numbers that no step changes, elements of arrays among them: these
// multiply the sum, before the code after the reduction.
std::optional<Contraction> scale_sums(const Contraction& contraction, ValueTable& values);
// The same with factors that are computed in each step as operands of their own, whose elements are computed while
// their tiles are copied (factors.cpp). Nothing where all factors are elements, or one cannot be computed so.
std::optional<Contraction> compute_factors(const Contraction& contraction, const std::vector<Attribute>& attributes,
                                           ValueTable& values);
// Why sums of products of types that matrix units know are none that they do, and what change of the program would
// alter it; nothing where they are, or are no such sums.
struct MissedUnits {
  std::string reason, suggestion;
};
std::optional<MissedUnits> why_no_matrix_units(const Contraction& contraction, const std::vector<Attribute>& attributes,
                                               ValueTable& values);
// Why a factor of such a product is not computed while its tiles are copied.
std::optional<MissedUnits> why_not_computed(const Contraction& contraction, const std::vector<Attribute>& attributes,
                                            ValueTable& values);

// The tuning parameters of one dim as polynomials (symbols of get_size statements, or 1), and their defaults.
struct DimTiles {
  Poly tile = 1;  // T, threads; for a reduction dim Q, its depth
  Poly reg = 1;   // R, registers
  Poly extent() const { return tile * reg; }
};

struct Parameter {
  std::string name;  // "mm.T_a"
  std::int64_t default_value;
  bool given;  // the user gave it, and the default is his value
};

// What was decided for a contraction before any IR is made.
struct Tiling {
  std::vector<DimTiles> dims;  // one a dim of the contraction
  // Not empty: there is no remainder step; the last tile is as deep as others, and has these elements beyond the end.
  std::vector<Scalar> padding;
  std::vector<Parameter> parameters;
  Schedule schedule;
};

// Default numbers for the order of dims and their groups, so that the kernel always launches, for any rank (T 6.3's
// criteria). M and N dims: 128 threads, accumulators of at most 512 bytes a thread, and 16 KiB of tiles a stage.
// Otherwise at most 256 threads, 64 accumulators a thread and 48 KiB of shared memory before padding.
struct DefaultTiles {
  std::vector<std::int64_t> tile, reg;  // one a dim; reduction dims have reg 1
};
DefaultTiles default_tiles(const Contraction& contraction, const ValueTable& values);

// Emits the get_size statements and gives the plan with its schedule: M and N are the first two sets of free dims,
// innermost first, that the same operands vary along and no operand along both. `prefix` is "ENTRY." or "ENTRY.k2.".
// `attributes` are the statement's.
Tiling make_tiling(const Contraction& contraction, const std::string& prefix,
                   const std::map<std::string, std::int64_t>& given, const std::vector<Attribute>& attributes,
                   Builder& host);

// Whether it can be packed for a micro-kernel: each operand belongs to one side, with a table for each of the numbers
// that say where it is read and under which conditions.
bool may_pack(const Schedule& schedule);

// The block-level kernel that replaces the SegMap; same results in the same order.
SegOp tile_kernel(const Contraction& contraction, const Tiling& plan, Builder& host);

// What stands for the elements beyond the end of the innermost reduction dim, one an operand; or why nothing can.
struct Padding {
  std::vector<Scalar> elements;
  std::string reason;
};
Padding neutral_padding(const Contraction& contraction, const ValueTable& values);

// What the parts of a block's code know of it.
struct Block {
  const Contraction& contraction;
  std::vector<std::vector<std::size_t>> axes;  // axes_of(schedule)
  std::vector<DimTiles> space;                 // T and R of an axis
  std::vector<Poly> sizes;                     // of an axis
  std::vector<Poly> starts;                    // of the block in each axis
  // Indices of batch and invariant dims, and elements that are the same for all of the block.
  Substitution uniform;
};

// The epilogue: code after the reduction, on the accumulators of each thread: the values that become the kernel's
// results.
std::vector<Value> make_epilogue(Builder& builder, const Block& block, const std::vector<Value>& accumulators);

// Arrays of an operand as the positions that its elements are known by: none of an index, those of indices, and those
// of further arrays.
struct FlatOperand {
  Value array;
  std::vector<Value> positions;
  std::vector<std::optional<Value>> also;
};
FlatOperand flat_operand(const ContractionOperand& operand, Builder& host);
// The element for these indices of the dims, in code that is done for a single one.
Value read_element(const Contraction& contraction, const ContractionOperand& operand, const FlatOperand& from,
                   const Substitution& indices, Builder& out);

// A split reduction: the contraction of one part, which gives all reduced values, with the parts as the outermost dim;
// and the kernel that makes the results of the parts'.
Contraction split_part(const Contraction& contraction, const Poly& splits, ValueTable& values);
// Whether the reduction may be long enough for that.
bool may_split(const Contraction& contraction);
SegOp join_parts(const Contraction& contraction, const Poly& splits, const std::vector<Value>& partial, Builder& host);

// Whether a kernel can bring the operand into another order of its dims: all of an array that varies along rows of
// tiles and along the depth. That kernel's array, over dims whose sizes are those of the contraction when the kernel
// runs; and the operand that lies there, dense in that order of the dims.
bool may_be_copied(const Contraction& contraction, const ContractionOperand& operand);
Value copied_in_order(const Contraction& contraction, const ContractionOperand& operand, const std::vector<int>& axes,
                      const std::vector<ContractionDim>& over, Builder& host);
void lies_in_order(ContractionOperand& operand, Value base, const std::vector<int>& axes,
                   const std::vector<ContractionDim>& dims);

// Operands whose tiles cannot be copied in the order both of the array and of the results, as the schedule of the
// contraction copies them; and the contraction with kernels before that bring them into the order of the results.
std::vector<std::size_t> operands_to_transpose(const Contraction& contraction, const Schedule& schedule);
// Whether some of them are contiguous neither along the rows of tiles nor along their depth.
bool reads_scattered(const Contraction& contraction);
Contraction transpose_operands(const Contraction& contraction, const std::vector<std::size_t>& which,
                               const Schedule& schedule, Builder& host);

// Operands for matrix units of 8 and 16 bits, whose rows along one depth may begin anywhere, or have several reduction
// dims that lie apart; and the contraction with kernels before that bring all operands into rows of whole vectors along
// the depth, in which the reduction dims lie together.
bool may_align(const Contraction& contraction, const Schedule& schedule);
Contraction align_operands(const Contraction& contraction, Builder& host);

// The LMAD of an operand's tile in shared memory where there are no M and N dims: axes as in memory, padded behind the
// axis that the fastest thread index goes along unless that is innermost (T eqs 19-23, listing 6).
Lmad shared_layout(const Contraction& contraction, const ContractionOperand& operand, const std::vector<Poly>& extents);

}  // namespace apl::tile
