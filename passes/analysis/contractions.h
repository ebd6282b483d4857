// Finds contraction-like kernels: the only matcher (docs/architecture.md). A SegMap at thread level whose body
// streams one redomap; each operand is an affine element of a base array over the space and reduction dims.
// The firing conditions of T 4.6 and of T's appendix are separate predicates, each with its refusal code;
// docs/firing.md derives them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/layouts.h"
#include "ir/module.h"

namespace apl {

// batch: all streamed operands vary; free: some operand, not all of these; invariant: none; contracted: a reduction
// dim.
enum class DimClass : std::uint8_t { batch, free, invariant, contracted };
std::string_view to_text(DimClass dim_class);

struct ContractionDim {
  Value index;
  Poly size;
  DimClass dim_class = DimClass::free;
  std::string name;  // of the source dim, unique in the contraction: "a", "a_2"
};

// offset + sum of strides[d] * dims[d].index
struct ContractionAffine {
  Poly offset;
  std::vector<Poly> strides;  // one a dim
};
// The operand is read where 0 <= at, and at < bound if there is one.
struct ContractionCondition {
  ContractionAffine at;
  std::optional<Poly> bound;
};
// stride * element `at` of the row-major elements of `base`, an array of integers
struct ContractionGather {
  Value base;
  ContractionAffine at;
  Poly stride;
};

// Beside an operand's own array, one that a factor is made of: element `at` of its row-major elements; without an array
// the number itself.
struct ContractionRead {
  std::optional<Value> base;
  ContractionAffine at;
};

// One array that the map function reads: element `access` of the row-major elements of `base`, where access is
// affine in the dims, offset + sum of strides[d] * dims[d].index, and in elements of arrays of indices.
struct ContractionOperand {
  Value base;
  Value element;  // what stands for the element in Contraction::map
  Poly offset;
  std::vector<Poly> strides;  // one a dim
  std::vector<ContractionGather> gathers{};
  std::vector<ContractionCondition> conditions{};  // along dims along which it varies
  Scalar otherwise{};                              // the element where one of them fails
  std::vector<int> axes{};                         // the dims along which it varies, outermost in memory first
  bool exact = false;                              // the axes are the dims of a dense array in this order
  bool index = false;  // the elements are the indices of its one dim; `base` is a name for an iota not yet made
  // Of a computed factor (tile_contraction/factors.cpp): `element` is what this makes of the array's element and of
  // those of further arrays.
  std::optional<Lambda> map{};
  std::vector<ContractionRead> also{};

  bool varies(std::size_t dim) const;
  bool is_plain() const { return conditions.empty() && gathers.empty(); }
};
// Calls f(offset, strides) of all that is affine in the dims.
template <class Operand, class F>
void for_each_affine(Operand& operand, F&& f) {
  f(operand.offset, operand.strides);
  for (auto& gather : operand.gathers) f(gather.at.offset, gather.at.strides);
  for (auto& condition : operand.conditions) f(condition.at.offset, condition.at.strides);
  for (auto& read : operand.also) f(read.at.offset, read.at.strides);
}

struct Contraction {
  Location location;
  std::vector<ContractionDim> dims;  // space dims in order, then reduction dims
  std::size_t space_rank = 0;
  std::vector<ContractionOperand> operands;
  // Elements that vary along batch and invariant dims at most: the same for all products of a block.
  std::vector<ContractionOperand> uniform;
  // One parameter an operand; reads nothing else that varies, but elements of `uniform` and indices of batch and
  // invariant dims.
  Lambda map;
  ReduceOp reduce;
  std::vector<std::size_t> results;  // kernel result k is reduced value results[k], if there is no epilogue
  // Code after the reduction: from the reduced values to the kernel's results. Reads arrays, and indices of the space.
  std::optional<Lambda> after;
  std::vector<Value> certificates;  // checks outside of the kernel that it relies on

  std::optional<std::size_t> dim_of(Value index) const;
  // Whether no dim of the reduction changes the operand: it is read once, and stays in registers.
  bool is_resident(const ContractionOperand& operand) const;
  // "aq,qb->ab"; arrays with the same dims are one operand (the two of a complex number).
  std::string einsum(const Function& function) const;
};

// Why a kernel with a redomap is no contraction that can be tiled.
struct Refusal {
  std::string code;  // "operand-variant-to-all"
  Location location;
  std::string message;                         // names the operand and dim
  std::string suggestion;                      // what change of the program would alter it
  std::shared_ptr<const Contraction> match{};  // all but a firing condition holds for it
};

using Match = std::variant<Contraction, Refusal>;

// For a SegMap of the function: nothing if it is none, or there is no redomap in it (no candidate at all).
// `values` is the function's table; the lambda of a match has fresh values in it.
std::optional<Match> match_contraction(const Stm& kernel, const Layouts& layouts, ValueTable& values);

// The same for a kernel out of its function, or for one that is not in it: what comes from outside is an array as it
// is.
std::optional<Match> match_alone(const Stm& kernel, ValueTable& values);

// Every candidate of the function, loops and branches included, in order.
std::vector<Match> find_contractions(const Function& function, ValueTable& values);

// The firing conditions, on an otherwise complete match; nullopt: it holds.
std::optional<Refusal> refuse_without_free_dims(const Contraction& contraction,
                                                const ValueTable& values);  // T 4.6, condition 1
std::optional<Refusal> refuse_operand_without_reuse(const Contraction& contraction,
                                                    const ValueTable& values);  // condition 2
std::optional<Refusal> refuse_uncovered_dim(const Contraction& contraction);    // condition 3
std::optional<Refusal> refuse_failing_map(const Contraction& contraction,
                                          const ValueTable& values);  // appendix: no certificates

}  // namespace apl
