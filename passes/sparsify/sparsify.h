// The parts of the pass sparsify.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/builder.h"
#include "ir/layouts.h"
#include "ir/module.h"
#include "ir/sparse_soa.h"
#include "ir/walk.h"
#include "passes/analysis/contractions.h"
#include "passes/analysis/zero_propagation.h"

namespace apl::sparsify {

// The arrays of one sparse parameter. All are made; those that something reads become parameters.
struct Pattern {
  std::string name;  // of the parameter
  Value dense;       // what it was
  ScalarType element = ScalarType::unit;
  Poly rows, columns, nonzeros;
  SoaSizes sizes;
  std::array<Value, kSoaFields> fields;
  Value field(SoaField f) const { return fields[static_cast<std::size_t>(f)]; }
};

// How sums and SDDMM go over the non-zeros.
struct LoweringOptions {
  bool whole_rows = false;     // a thread has a whole row of sums where it can
  bool tiles = false;          // over the tiles of a plan
  bool fused = true;           // all kinds of tiles in one kernel
  bool deterministic = false;  // no tiles where the order of a sum shows
};

// The three kinds of tiles as they are gone through: rows of blocks, ELL rows, rows of nnz segments.
enum class TileKind : std::uint8_t { blocks, ell, segments };
// Which kernels there are, each for kinds of tiles that it tells apart by the number of the tile.
std::vector<std::vector<TileKind>> tile_kernels(bool fused);
// A chain of branches on `at`, which counts through the tiles of these kinds, `counts` of each; `leaf` gets the kind
// and the number among those of its kind, and gives values of these types.
std::vector<Operand> branch_on_tiles(const std::vector<TileKind>& kinds, const std::vector<Poly>& counts,
                                     const Poly& at, const std::vector<std::string>& names,
                                     const std::vector<Type>& types, Builder& out,
                                     const std::function<std::vector<Operand>(TileKind, const Poly&, Builder&)>& leaf);

// An array [batches...][rows][columns] that is 0 where the pattern has nothing: a parameter, or what was made from one.
struct SparseArray {
  const Pattern* pattern = nullptr;
  Value values;                 // [batches...][nonzeros]
  std::vector<Poly> batches{};  // most have none
};
using SparseArrays = std::unordered_map<Value, SparseArray>;  // by what would be the dense array

// The indices of an element of a sparse array.
struct ElementAt {
  Value row, column;
  std::vector<Value> batches;
};
// If the layout is the array's element [batches...][row][column] for different ones of `indices`, each of which runs
// over the whole dim.
std::optional<ElementAt> element_at(const Lmad& layout, const SparseArray& array, const std::vector<SegDim>& indices);

// A contraction over A's rows or columns becomes the same sum over the non-zeros of each row (column) alone: `host`
// gets the kernels that give what `kernel` did. A is the array
// that would be `base`; others of `arrays` that have its pattern and are read beside it are sparse, too.
struct Contracted {
  bool by_columns = false;              // A's rows are reduced
  bool by_tiles = false;                // over tiles of a plan
  std::optional<Reason> why_not;        // tiles were asked for
  const SparseArray* second = nullptr;  // another operand, over whose non-zeros it goes, too
};

std::variant<Contracted, Reason> contract(const Stm& kernel, const Contraction& contraction, const SparseArrays& arrays,
                                          Value base, const LoweringOptions& options, Builder& host);

// A kernel that reads A where it writes: done at the non-zeros alone. `base` and `arrays` as above.
struct Sddmm {
  Stm kernel;                               // its results have the non-zeros in place of rows and columns
  std::vector<Scalar> elsewhere;            // what the results are where A has nothing
  std::size_t row_dim = 0, column_dim = 0;  // of the space before
  // The body before: without what reads A, by the names of its indices and of A's elements.
  BodyPtr body;
  ElementAt location;
  std::map<Value, std::pair<const SparseArray*, ElementAt>> elements;
  std::vector<std::string> names;  // for the results
};
std::variant<Sddmm, Reason> match_sddmm(const Stm& kernel, const SparseArrays& arrays, Value base,
                                        const Layouts& layouts, Builder& host);

// What the body gives for a non-zero, where `here` has the other indices.
std::vector<Operand> sddmm_at(const Sddmm& sddmm, Value row, Value column, Value nonzero, Substitution here,
                              Builder& out);

// `host` gets the kernel; the results are what it gives.
std::vector<Value> sddmm_nonzeros(Sddmm& sddmm, Builder& host);
// The same over the elements of tiles.
std::vector<Value> sddmm_tiles(const Sddmm& sddmm, const std::vector<SegDim>& space, const Pattern& pattern, bool fused,
                               Builder& host);

// `result` : the dense array, `elsewhere` but for the non-zeros; `values` has the dims of `space`, with the non-zeros
// at the place of `row_dim`, without `column_dim`.
void make_dense(Value result, Value values, const Pattern& pattern, const std::vector<SegDim>& space,
                std::size_t row_dim, std::size_t column_dim, const Scalar& elsewhere, Builder& host);

// Statements that make dense copies of sparse arrays, or views of them: by what each makes, the array that it is for.
using DenseCopies = std::map<Value, Value>;
// What the body reads, if such statements are there only where somebody reads their array.
std::set<Value> values_read(const Body& body, const DenseCopies& forms, const ValueTable& values);
BodyPtr without_unread(const BodyPtr& body, const DenseCopies& forms, const std::set<Value>& read);

}  // namespace apl::sparsify
