// Sparse operands on the command line: matrix files where an entry says #[sparse].
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ir/module.h"
#include "ir/sparse_arguments.h"
#include "passes/pass.h"
#include "passes/sparse/matrix.h"

namespace aplc {

// Matrix files that were given, by the value that they are for in the front end's function.
using GivenMatrices = std::map<std::size_t, apl::HostCsr>;

namespace sparse {

// Whether a file's contents are a matrix: by its ending, .mtx or .smtx, or by a banner, which no value begins like.
bool is_matrix_file(const std::string& file, std::string_view text);

// Whether an entry has a sparse operand.
bool has_operands(const apl::Module& module);

// For a remark that says why a sparse operand, or what has its non-zeros, is stored and read in full; else none.
std::optional<apl::Diagnostic> made_dense_warning(const apl::Remark& remark);

// As a matrix of that element type; a pattern has ones. run.argument where an integer is wanted and something else is
// there; else as read_matrix.
apl::Result<apl::HostCsr> read_operand(std::string_view text, apl::ScalarType type);

// Arguments for the function as it was compiled: the matrices as structs of arrays where it takes them, else dense.
apl::Result<apl::PackedArguments> place_operands(const apl::Function& compiled,
                                                 const std::vector<apl::HostValue>& arguments,
                                                 const GivenMatrices& matrices, const apl::TileMaker& tiles);

// A sparse result of a matrix file, as a Matrix Market file.
std::string to_matrix_market(const apl::HostCsr& matrix);

}  // namespace sparse
}  // namespace aplc
