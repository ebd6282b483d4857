// Sparse matrices for benchmarks, made anew each time: the same name always gives the same matrix.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "passes/sparse/matrix.h"

namespace apl::bench {

struct MatrixName {
  std::string name;
  std::string kind;  // graph, pruned, blocks, attention
  std::int64_t nonzeros;
};

// Stand-ins for matrices of STile's table 4 and of pruned networks: graphs have the sizes, the non-zeros and a power
// law of degrees in communities; names ending in `clu` have tight communities of neighbouring vertices.
const std::vector<MatrixName>& matrix_names();
// Names of these and, of so many rows and so much of what the kind has (bench/sparse/matrices.cpp): banded_N_K,
// arrow_N_K, longrows_N_K, communities_N_K, and levels_N_K, bandrows_N_K, window_N_K and halves_N_K, which are mixed;
// semi_NxM has two of each four elements, permuted_NAME is another numbering of any.
// 24 of these, of several patterns in one matrix; the most different come first.
const std::vector<std::string>& mixed_names();
std::string kind_of(const std::string& name);
// Patterns alone. `threads` does not change the matrix. Nothing for an unknown name.
std::optional<sparse::Csr> make_matrix(const std::string& name, int threads);

}  // namespace apl::bench
