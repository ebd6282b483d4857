// Nested loops over numbers known now, for private arrays; dims of one element make no loop.
#pragma once

#include "codegen/lower/lower.h"

namespace apl::lower {

template <class Fill>
void Kernel::for_registers(const std::vector<std::int64_t>& counts, const std::vector<std::string>& names,
                           kernel::Block& out, Fill&& fill) {
  std::vector<kernel::ExprPtr> at;
  std::vector<std::pair<std::string, std::int64_t>> loops;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    if (counts[k] == 1) {
      at.push_back(kernel::literal(std::int64_t{0}));
      continue;
    }
    loops.emplace_back(unit_.fresh(names[k]), counts[k]);
    at.push_back(kernel::variable(loops.back().first));
  }
  kernel::Block inner;
  fill(at, inner);
  for (std::size_t k = loops.size(); k-- > 0;) {
    kernel::Stmt loop =
        kernel::for_loop(kernel::kInt, loops[k].first, kernel::literal(loops[k].second), std::move(inner));
    loop.unroll = loops[k].second <= 64;
    inner.clear();
    inner.push_back(std::move(loop));
  }
  out.insert(out.end(), inner.begin(), inner.end());
}

}  // namespace apl::lower
