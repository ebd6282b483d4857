#include "passes/inline_calls/impossible.h"

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/walk.h"

namespace apl::inlining {

namespace {

using Sizes = std::unordered_map<Value, Poly>;

Sizes sizes_of(const Body& body) {
  Sizes sizes;
  for_each_stm(body, [&](const Stm& stm) {
    if (const auto* size = get_if<SizeExpr>(stm)) sizes.emplace(stm.pattern.front(), size->value);
  });
  return sizes;
}

Poly elements(const std::vector<Poly>& shape, const Sizes& sizes) {
  constexpr int kMostRounds = 8;
  Poly count = product(shape);
  for (int round = 0; round < kMostRounds; ++round) {
    Poly next = count.substitute([&](Value symbol) -> std::optional<Poly> {
      const auto size = sizes.find(symbol);
      return size == sizes.end() ? std::nullopt : std::optional(size->second);
    });
    if (next == count) break;
    count = std::move(next);
  }
  return count;
}

BodyPtr without_impossible(const BodyPtr& body, const ValueTable& values, const Sizes& sizes) {
  Body result{.results = body->results};
  bool changed = false;
  for (const Stm& stm : body->stms) {
    Stm copy = stm;
    bool inside = false;
    copy.op = map_bodies(stm.op, [&](const BodyPtr& inner) {
      BodyPtr made = without_impossible(inner, values, sizes);
      inside = inside || made != inner;
      return made;
    });
    const Reshape* reshape = get_if<Reshape>(stm);
    const bool impossible = reshape != nullptr && prove_equal(elements(values.type(reshape->array).shape, sizes),
                                                              elements(reshape->shape, sizes)) == Proof::no;
    if (impossible) copy.op = Replicate{reshape->shape, Operand(Scalar::zero(values.type(reshape->array).element))};
    changed = changed || inside || impossible;
    result.stms.push_back(inside || impossible ? std::move(copy) : stm);
  }
  return changed ? std::make_shared<const Body>(std::move(result)) : body;
}

}  // namespace

BodyPtr without_impossible_reshapes(const BodyPtr& body, const ValueTable& values) {
  return without_impossible(body, values, sizes_of(*body));
}

}  // namespace apl::inlining
