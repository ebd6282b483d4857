// Segmaps for tests, built by hand.
#pragma once

#include "programs.h"

namespace apl::test {

using Operands = std::vector<Operand>;

inline const KernelResult kReturns{};
inline const KernelResult kPrivate{.kind = KernelResult::Kind::private_, .extents = {}};

// segmap(level) (i0 < bounds[0], ...) { fill }
inline SegOp segmap(Builder& b, SegLevel level, const std::vector<Poly>& bounds, std::vector<KernelResult> results,
                    const std::function<Operands(Builder&, const std::vector<Value>&)>& fill) {
  SegOp op{.level = level, .space = {}, .body = {}, .results = std::move(results)};
  std::vector<Value> at;
  for (const Poly& bound : bounds) {
    at.push_back(b.values().add(i64(), "i"));
    op.space.push_back({at.back(), bound});
  }
  op.body = b.body([&](Builder& inner) { return fill(inner, at); });
  return op;
}

}  // namespace apl::test
