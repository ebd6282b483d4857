// Sparse operands of entries (docs/sparse.md).
//
// An entry says `#[sparse(A)]`, or `#[sparse(A, result)]` if what it gives has A's pattern. Up to the pass sparsify A
// is a dense array for everybody. After it A is a *struct of arrays*: one parameter of the entry that is several of the
// function, as a record is, so that passes and back ends meet nothing but arrays. The entry says which
// (EntryInfo::Param::fields, EntryInfo::Result::pattern), in text:
//
//   entry f (A : sparse(shape, values, row_start, column) "[n][m]f32", ...) : {sparse(A) "[n][m]f32"}
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/module.h"
#include "ir/soa_field.h"

namespace apl {

// What an attribute asks for.
struct SparseRequest {
  std::size_t param = 0;  // of EntryInfo::params
  std::size_t value = 0;  // of Function::params
  bool result = false;    // the entry's result has its pattern
};

// The requests of a function's attributes. An error says what is wrong with one: a name that is no parameter
// (type.unknown-name), a parameter that is no matrix of numbers (type.mismatch).
Result<std::vector<SparseRequest>> sparse_requests(const Function& function);

// The sizes of a struct of arrays: those of the matrix, and how many non-zeros and parts of tiles there are, one for
// each extent that is the shape of an array as it stands.
struct SoaSizes {
  Poly rows, columns;
  std::map<SoaExtent, Poly> counts;
};
std::vector<SoaExtent> counted_extents();
// "A_block_rows": how that size of a function is called.
std::string count_name(std::string_view operand, SoaExtent extent);
// nullopt where it needs a count that is not there.
std::optional<std::vector<Poly>> soa_shape(SoaExtent extent, const SoaSizes& sizes);

struct SparseSoa {
  std::size_t param = 0;  // of EntryInfo::params
  std::size_t first = 0;  // of the function's values from outside (blocks of memory are not counted)
  ScalarType element = ScalarType::unit;
  std::vector<SoaField> fields;  // in their order, `shape` and `values` first
};

// The entry's parameters that are structs of arrays, in their order. Malformed ones are left out: see check_soas.
std::vector<SparseSoa> find_soas(const Function& function);
// What is wrong with the entry's structs of arrays: fields without their types, a count that is not theirs, a result
// with the pattern of none.
std::optional<std::string> check_soas(const Function& function);
// The sparse operand whose pattern result `k` of the entry has: an index of find_soas().
std::optional<std::size_t> soa_of_result(const Function& function, std::size_t k);

}  // namespace apl
