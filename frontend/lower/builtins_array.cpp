// Array functions of the prelude that need no function argument.
#include <algorithm>
#include <numeric>
#include <utility>

#include "frontend/lower/lowerer.h"

namespace apl::frontend {

namespace {

// The outermost `count` dims of each leaf replaced by `outer`.
std::vector<Poly> with_outer(std::vector<Poly> shape, std::size_t count, const std::vector<Poly>& outer) {
  shape.erase(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(std::min(count, shape.size())));
  shape.insert(shape.begin(), outer.begin(), outer.end());
  return shape;
}

// How many dims the function joins or makes: `flatten_3d` 3.
std::size_t dims_of_name(std::string_view name) {
  if (name.ends_with("_3d")) return 3;
  return name.ends_with("_4d") ? 4 : 2;
}

}  // namespace

// The sizes that inference found for the signature's size parameters, in their order.
std::vector<Poly> Lowerer::signature_sizes(const Closure::Builtin& builtin) {
  std::vector<std::pair<BinderId, Size>> sizes(builtin.use->instance.sizes.begin(), builtin.use->instance.sizes.end());
  std::sort(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Poly> result;
  for (const auto& [binder, size] : sizes) {
    const auto value = size_value(size, builtin.frame);
    if (!value)
      unsupported(location_, "\"" + std::string(builtin.entry->name) + "\" to sizes that only the context knows");
    result.push_back(*value);
  }
  return result;
}

StaticValue Lowerer::zip(const Values& arrays) {
  Values parts;
  for (const StaticValue& array : arrays) parts.push_back(with_length(array, length(arrays.front())));
  return tuple_value(std::move(parts));
}

StaticValue Lowerer::iota(const Poly& count) {
  const Value result = builder_->let("is", Iota{ScalarType::i64, count, i64_constant(0), i64_constant(1)});
  iotas_.insert(result);
  return StaticValue(Operand(result));
}

StaticValue Lowerer::transpose(const StaticValue& array) {
  return map_leaves(array, [&](const StaticValue& leaf) {
    const Value base = this->array(leaf);
    std::vector<int> permutation(builder_->values().type(base).rank());
    std::iota(permutation.begin(), permutation.end(), 0);
    if (permutation.size() >= 2) std::swap(permutation[0], permutation[1]);
    return StaticValue(Operand(builder_->rearrange(base, std::move(permutation), builder_->values().name(base))));
  });
}

StaticValue Lowerer::reshape(const StaticValue& array, std::size_t dims,
                             const std::function<std::vector<Poly>(const std::vector<Poly>&)>& outer) {
  return map_leaves(array, [&](const StaticValue& leaf) {
    const Value base = this->array(leaf);
    const std::vector<Poly> shape = builder_->values().type(base).shape;
    return StaticValue(
        Operand(builder_->let(builder_->values().name(base), Reshape{base, with_outer(shape, dims, outer(shape))})));
  });
}

StaticValue Lowerer::slice(const StaticValue& array, const Poly& start, const Poly& count, std::int64_t stride) {
  return take_dims(array, {DimIndex::slice(start, count, stride)}, checked_indices_);
}

std::optional<StaticValue> Lowerer::run_array_builtin(const Closure::Builtin& builtin, const Values& x) {
  switch (builtin.entry->builtin) {
    case Builtin::zip: return zip(x);
    case Builtin::unzip: return x[0];  // an array of tuples is a tuple of arrays
    case Builtin::iota: return iota(index(x[0]));
    case Builtin::indices: return iota(length(x[0]));
    case Builtin::length: return StaticValue(length(x[0]));
    case Builtin::null: return compare(CompareOp::eq, StaticValue(length(x[0])), StaticValue(Poly(0)));
    case Builtin::replicate: {
      const Poly count = index(x[0]);
      if (x[1].fields() && x[1].fields()->empty())
        return StaticValue(Operand(builder_->let("x", Replicate{{count}, Operand(Scalar::unit())})));
      return map_leaves(x[1], [&](const StaticValue& leaf) {
        return StaticValue(Operand(builder_->let("x", Replicate{{count}, operand(leaf)})));
      });
    }
    case Builtin::transpose: return transpose(x[0]);
    case Builtin::flatten: {
      const std::size_t dims = dims_of_name(builtin.entry->name);
      return reshape(x[0], dims, [&](const std::vector<Poly>& shape) {
        Poly size = 1;
        for (std::size_t k = 0; k < dims; ++k) size = limited(size * shape[k]);
        return std::vector<Poly>{size};
      });
    }
    case Builtin::unflatten: {
      const std::vector<Poly> sizes = signature_sizes(builtin);
      return reshape(x[0], 1, [&](const std::vector<Poly>&) { return sizes; });
    }
    case Builtin::head: return take_dims(x[0], {DimIndex::fix(0)}, checked_indices_);
    case Builtin::last: return take_dims(x[0], {DimIndex::fix(length(x[0]) - 1)}, checked_indices_);
    case Builtin::tail: return slice(x[0], 1, length(x[0]) - 1);
    case Builtin::init: return slice(x[0], 0, length(x[0]) - 1);
    case Builtin::take: return slice(x[1], 0, index(x[0]));
    case Builtin::drop: return slice(x[1], index(x[0]), length(x[1]) - index(x[0]));
    case Builtin::split: {
      const std::vector<Poly> sizes = signature_sizes(builtin);
      return tuple_value({slice(x[0], 0, sizes[0]), slice(x[0], sizes[0], sizes[1])});
    }
    case Builtin::reverse: return slice(x[0], length(x[0]) - 1, length(x[0]), -1);
    case Builtin::copy:
      return map_leaves(x[0], [&](const StaticValue& leaf) {
        if (shape(leaf).empty()) return leaf;
        return StaticValue(Operand(builder_->let("a", Copy{array(leaf)})));
      });
    default: return std::nullopt;
  }
}

}  // namespace apl::frontend
