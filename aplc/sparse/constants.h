// Matrices that `#[constant(A)]` operands are known to be, as A=@M.mtx on the command line gives them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "aplc/sparse/arguments.h"
#include "ir/module.h"

namespace aplc::sparse {

// The operands that the entry calls sparse and constant, by name, with the number of their value.
std::vector<std::pair<std::string, std::size_t>> constant_operands(const apl::Function& entry);

// Makes the matrices of these arguments known to the module, before the passes: given as a file, or dense.
void add_known(apl::Module& module, const std::string& entry, const std::vector<apl::HostValue>& values,
               const GivenMatrices& matrices);

// The same of texts `OPERAND=@FILE`, for all entries that have such an operand. command.bad-argument where none has.
apl::Status read_known(apl::Module& module, const std::vector<std::string>& texts);

// Entries without `#[sparse(A)]` for constant operands of which a tuning parameter ENTRY.A.variant=3 says that the
// dense product is to be compiled. With a remark for each; a result with the operand's pattern stays as it is.
void make_dense(apl::Module& module, const std::map<std::string, std::int64_t>& parameters,
                const apl::RemarkSink& remarks);

// The tuning parameters of constant operands: ENTRY.A.rows and so on.
void add_constant_parameters(const apl::Module& module, std::set<std::string>& names);

}  // namespace aplc::sparse
