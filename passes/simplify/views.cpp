// Views and copies.
//   rearrange(A, (0,1)) => A      rearrange(rearrange(A, p), q) => rearrange(A, p after q)
//   reshape(A, shape of A) => A   reshape(reshape(A, s), t) => reshape(A, t)     reshape(replicate(s, x), t) =>
//   replicate(t, x) manifest(rearrange(A, p), q) => manifest(A, p after q) copy(A) => A                  where neither
//   is overwritten, and the copy is no result of the function; outside of maps copy(rearrange(A, p)) => manifest(A, p)
#include "passes/simplify/simplifier.h"

namespace apl {

namespace {

bool is_identity_permutation(const std::vector<int>& permutation) {
  for (std::size_t k = 0; k < permutation.size(); ++k) {
    if (permutation[k] != static_cast<int>(k)) return false;
  }
  return true;
}

// Result dim k is dim outer[k] of the middle array, which is dim inner[outer[k]] of the source.
std::vector<int> compose(const std::vector<int>& inner, const std::vector<int>& outer) {
  std::vector<int> result;
  for (const int k : outer) result.push_back(inner[static_cast<std::size_t>(k)]);
  return result;
}

}  // namespace

Fired Simplifier::rearrange(Stm& stm, const Rearrange& op) {
  if (is_identity_permutation(op.permutation)) return use(stm, op.array);
  if (const auto* inner = definition<Rearrange>(op.array)) {
    stm.op = Rearrange{inner->array, compose(inner->permutation, op.permutation)};
    return Fired::again;
  }
  // What is returned is copied in its order anyway.
  if (const auto* inner = definition<Manifest>(op.array);
      inner != nullptr && consumption_.escapes(stm.pattern.front()) && !consumption_.consumed(inner->array)) {
    stm.op = Manifest{inner->array, compose(inner->permutation, op.permutation)};
    return Fired::again;
  }
  if (const auto* inner = definition<Replicate>(op.array); inner != nullptr && !consumption_.consumed(op.array)) {
    const bool of_scalar = !inner->value.is_value() || values().type(inner->value).is_scalar();
    if (of_scalar) {
      std::vector<Poly> shape;
      for (const int k : op.permutation) shape.push_back(inner->shape[static_cast<std::size_t>(k)]);
      stm.op = Replicate{std::move(shape), inner->value};
      return Fired::again;
    }
  }
  return Fired::none;
}

Fired Simplifier::reshape(Stm& stm, const Reshape& op) {
  if (values().type(op.array).shape == op.shape) return use(stm, op.array);
  if (const auto* inner = definition<Reshape>(op.array)) {
    stm.op = Reshape{inner->array, op.shape};
    return Fired::again;
  }
  if (const auto* inner = definition<Replicate>(op.array); inner != nullptr && !consumption_.consumed(op.array)) {
    const bool of_scalar = !inner->value.is_value() || values().type(inner->value).is_scalar();
    if (of_scalar) {
      stm.op = Replicate{op.shape, inner->value};
      return Fired::again;
    }
  }
  return Fired::none;
}

Fired Simplifier::copy(Stm& stm, const Copy& op) {
  const Value result = stm.pattern.front();
  // There is nothing to copy yet.
  if (const auto* scratch = definition<Scratch>(op.array); scratch != nullptr && !values().type(result).memory) {
    stm.op = Scratch{scratch->element, scratch->shape};
    return Fired::again;
  }
  if (!may_be_one(result, op.array)) return Fired::none;
  if (copy_of_transposed(stm, op.array)) return Fired::again;
  return use(stm, op.array);
}

// What a program copies in another order of its dims it wants in that order in memory.
bool Simplifier::copy_of_transposed(Stm& stm, Value array) {
  if (parallel_depth_ > 0 || module_.stage != Stage::soac) return false;
  const auto* reshape = definition<Reshape>(array);
  const auto* view = definition<Rearrange>(reshape == nullptr ? array : reshape->array);
  if (view == nullptr || consumption_.consumed(view->array)) return false;
  Op ordered = Manifest{view->array, view->permutation};
  if (reshape == nullptr) {
    stm.op = std::move(ordered);
  } else {
    const Reshape as = *reshape;
    const Operand made = emit(stm, name_of(stm), std::move(ordered));
    stm.op = Reshape{made.value(), as.shape};
  }
  return true;
}

// Whether an array and its copy may be one array. What the function returns is its own: no parameter, and no other
// result.
bool Simplifier::may_be_one(Value copy, Value array) const {
  if (consumption_.consumed(copy) || consumption_.consumed(array)) return false;
  return !consumption_.escapes(copy) || !consumption_.escapes(array);
}

Fired Simplifier::manifest(Stm& stm, const Manifest& op) {
  if (const auto* inner = definition<Rearrange>(op.array)) {
    stm.op = Manifest{inner->array, compose(inner->permutation, op.permutation)};
    return Fired::again;
  }
  return Fired::none;
}

Fired Simplifier::replicate(Stm& stm, const Replicate& op) {
  if (op.shape.empty()) {
    // A replicate is a fresh array even so.
    const bool array = op.value.is_value() && values().type(op.value).is_array();
    if (!array || !consumption_.consumed(stm.pattern.front())) return use(stm, op.value);
  }
  if (const auto* inner = definition<Replicate>(op.value);
      inner != nullptr && !consumption_.consumed(op.value.value())) {
    std::vector<Poly> shape = op.shape;
    shape.insert(shape.end(), inner->shape.begin(), inner->shape.end());
    stm.op = Replicate{std::move(shape), inner->value};
    return Fired::again;
  }
  return Fired::none;
}

}  // namespace apl
