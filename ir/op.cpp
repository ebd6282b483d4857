#include "ir/op.h"

#include <utility>

namespace apl {

Op::Op() = default;
Op::Op(const Op&) = default;
Op::Op(Op&&) noexcept = default;
Op& Op::operator=(const Op&) = default;
Op& Op::operator=(Op&&) noexcept = default;
Op::~Op() = default;

BodyPtr make_body(std::vector<Stm> stms, std::vector<Operand> results) {
  return std::make_shared<const Body>(Body{std::move(stms), std::move(results)});
}

}  // namespace apl
