// Dense arguments of entries that take structs of arrays (ir/sparse_soa.h), and their results, as callers of the dense
// program have them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/csr.h"
#include "ir/host_value.h"
#include "ir/sparse_soa.h"

namespace apl {

using HostCsr = CompressedRows<HostValue>;  // values of rank 1

// Of a matrix; zeros of either sign are left out.
HostCsr to_csr(const HostValue& dense);
HostValue to_dense(const HostCsr& matrix);

// The tiles that a plan makes of a matrix, as the fields of a struct of arrays have them; fields that are not here
// follow.
struct HostTiles {
  std::vector<std::int32_t> block_row, block_step, block_column, block_source;
  std::vector<std::int32_t> ell_row, ell_column, ell_source;
  std::vector<std::int64_t> ell_start = {0};
  std::vector<std::int32_t> segment_row, segment_column, segment_source;
  std::vector<std::int64_t> segment_start = {0};
};
// Makes the tiles of an operand, of which these fields are wanted. The IR knows no plans: who has them gives one.
using TileMaker = std::function<Result<HostTiles>(const std::string& operand, const HostCsr& matrix,
                                                  const std::vector<SoaField>& fields)>;

// One value for each field. Fields of tiles without somebody who makes them are an error (unsupported.construct); the
// second one is for operands that have none.
Result<std::vector<HostValue>> soa_values(const std::string& operand, const HostCsr& matrix,
                                          const std::vector<SoaField>& fields, const TileMaker& tiles);
std::vector<HostValue> soa_values(const HostCsr& matrix, const std::vector<SoaField>& fields);

// What of an entry's parameters and results is sparse. As text it goes with generated programs.
struct SoaInterface {
  std::vector<SparseSoa> soas;
  std::vector<std::string> names;  // of the parameters that are structs of arrays
  struct SparseResult {
    std::size_t result = 0, soa = 0;
  };
  std::vector<SparseResult> results;

  bool empty() const { return soas.empty(); }
  std::string to_text() const;
  static SoaInterface from_text(std::string_view text);
};
SoaInterface soa_interface(const Function& function);

// Arguments with structs of arrays in place of dense matrices; those that are given stay. `matrices` has the pattern of
// each that was made.
struct PackedArguments {
  std::vector<HostValue> values;
  std::vector<std::optional<HostCsr>> matrices;
};
// An argument that is no matrix where a struct of arrays is wanted stays as it is: the callee says what is wrong with
// it.
Result<PackedArguments> pack_arguments(const SoaInterface& interface, const std::vector<HostValue>& arguments,
                                       const TileMaker& tiles = {});
// Sparse results become dense where the pattern is known.
void unpack_results(const SoaInterface& interface, const PackedArguments& arguments, std::vector<HostValue>& results);

}  // namespace apl
