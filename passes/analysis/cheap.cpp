#include "passes/analysis/cheap.h"

#include <algorithm>

#include "ir/walk.h"

namespace apl {

namespace {

// A few multiplications cost less than a load; more may not.
constexpr std::size_t kMaxOperations = 4;

}  // namespace

bool is_cheap(const Body& body, const ValueTable& values) {
  std::size_t operations = 0;
  return std::ranges::all_of(body.stms, [&](const Stm& stm) {
    if (!stm.certificates.empty() || can_fail(stm.op, values)) return false;
    const bool free = std::holds_alternative<Index>(stm.op) || std::holds_alternative<Rearrange>(stm.op) ||
                      std::holds_alternative<Reshape>(stm.op) || std::holds_alternative<Use>(stm.op) ||
                      std::holds_alternative<SizeExpr>(stm.op) || std::holds_alternative<Convert>(stm.op);
    if (free) return true;
    if (const Binary* binary = get_if<Binary>(stm)) {
      const bool slow = binary->op == BinaryOp::pow || binary->op == BinaryOp::div || binary->op == BinaryOp::mod ||
                        division_of(binary->op).value_or(binary->op) != binary->op;
      return !slow && ++operations <= kMaxOperations;
    }
    if (const Unary* unary = get_if<Unary>(stm)) {
      const bool quick = unary->op == UnaryOp::neg || unary->op == UnaryOp::abs || unary->op == UnaryOp::complement;
      return quick && ++operations <= kMaxOperations;
    }
    return std::holds_alternative<Compare>(stm.op) && ++operations <= kMaxOperations;
  });
}

}  // namespace apl
