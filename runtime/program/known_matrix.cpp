#include "runtime/program/known_matrix.h"

#include <fmt/format.h>

#include "runtime/sparse/csr_view.h"
#include "runtime/sparse/known.h"

namespace apl {

KnownMatrix known_matrix(const std::string& entry, const std::string& operand, HostCsr matrix) {
  apl_sparse_csr view = csr_view(matrix);
  view.values = matrix.values.data.data();
  const std::uint64_t key = apl_sparse_key(&view, static_cast<std::size_t>(byte_size(matrix.values.type)));
  return {entry, operand, fmt::format("{:016x}", key), std::make_shared<const HostCsr>(std::move(matrix))};
}

}  // namespace apl
