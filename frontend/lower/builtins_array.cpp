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

StaticValue Lowerer::iota(const Poly& number) {
  const Poly count = safe_size(number);
  check_count(count, [&] { return Message{"Range 0..1..<", operand(StaticValue(count)), " is invalid"}; });
  const Value result = builder_->let("is", Iota{ScalarType::i64, count, i64_constant(0), i64_constant(1)});
  iotas_.insert(result);
  return StaticValue(Operand(result));
}

StaticValue Lowerer::replicate(const Poly& number, const StaticValue& value) {
  const Poly count = safe_size(number);
  check_size(count, "replicate");
  if (value.fields() && value.fields()->empty())
    return StaticValue(Operand(builder_->let("x", Replicate{{count}, Operand(Scalar::unit())})));
  return map_leaves(value, [&](const StaticValue& leaf) {
    const Value made = builder_->let("x", Replicate{{count}, operand(leaf)});
    if (type_of(made).rank() > 1) made_at_[made] = location_;
    return StaticValue(Operand(made));
  });
}

// Arrays like the given one but for their length, each in one map over all of its dims.
StaticValue Lowerer::elements(const StaticValue& like, const Poly& length,
                              const std::function<Operand(std::size_t leaf, std::vector<Poly> indices)>& element) {
  std::size_t next = 0;
  return map_leaves(like, [&](const StaticValue& leaf) {
    std::vector<Poly> widths = shape(leaf);
    widths.front() = length;
    const std::size_t which = next++;
    return screma(widths, {}, [&](const Values&, const std::vector<Value>& indices) {
      return StaticValue(element(which, {indices.begin(), indices.end()}));
    });
  });
}

StaticValue Lowerer::rotate(const StaticValue& array, const Poly& by) {
  const std::vector<Operand> from = leaves(array);
  const Poly count = length(array);
  return elements(array, count, [&](std::size_t leaf, std::vector<Poly> indices) -> Operand {
    indices.front() = remainder(indices.front() + by, count);
    std::vector<DimIndex> dims;
    for (const Poly& index : indices) dims.push_back(DimIndex::fix(index));
    return builder_->let("x", Index{from[leaf].value(), dims});
  });
}

StaticValue Lowerer::concat(const StaticValue& first, const StaticValue& second) {
  const std::vector<Operand> left = leaves(first);
  const std::vector<Operand> right = leaves(second);
  const Poly middle = length(first);
  const Poly both = short_size(limited(middle + length(second)));
  return elements(first, both, [&](std::size_t leaf, std::vector<Poly> indices) -> Operand {
    const auto part = [&](const Operand& array, const Poly& before) {
      std::vector<DimIndex> dims;
      for (const Poly& index : indices) dims.push_back(DimIndex::fix(index));
      dims.front() = DimIndex::fix(indices.front() - before);
      return body([&] { return std::vector<Operand>{builder_->let("x", Index{array.value(), dims})}; });
    };
    const Value is_left =
        builder_->compare(CompareOp::lt, operand(StaticValue(indices.front())), operand(StaticValue(middle)));
    return builder_->let("x", If{is_left, part(left[leaf], 0), part(right[leaf], middle)});
  });
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
  return take_dims(array, {DimIndex::slice(start, safe_size(count), stride)}, checked_indices_);
}

std::optional<StaticValue> Lowerer::run_array_builtin(const Closure::Builtin& builtin, const Values& x) {
  switch (builtin.entry->builtin) {
    case Builtin::zip: return zip(x);
    case Builtin::unzip: return x[0];  // an array of tuples is a tuple of arrays
    case Builtin::iota: return iota(index(x[0]));
    case Builtin::indices: return iota(length(x[0]));
    case Builtin::length: return StaticValue(length(x[0]));
    case Builtin::null: return compare(CompareOp::eq, StaticValue(length(x[0])), StaticValue(Poly(0)));
    case Builtin::replicate: return replicate(index(x[0]), x[1]);
    case Builtin::rep: return replicate(signature_sizes(builtin).front(), x[0]);
    case Builtin::transpose: return transpose(x[0]);
    case Builtin::flatten: {
      const std::size_t dims = dims_of_name(builtin.entry->name);
      const Value base = array(StaticValue(leaves(x[0]).front()));
      const auto made = made_at_.find(base);
      check_elements(type_of(base).shape, made == made_at_.end() ? location_ : made->second);
      return reshape(x[0], dims, [&](const std::vector<Poly>& shape) {
        Poly size = 1;
        for (std::size_t k = 0; k < dims; ++k) size = limited(size * shape[k]);
        return std::vector<Poly>{size};
      });
    }
    case Builtin::unflatten: {
      std::vector<Poly> sizes = signature_sizes(builtin);
      for (Poly& size : sizes) size = safe_size(size);
      for (const Poly& size : sizes)
        check_count(size, [&] {
          Message message = {"Cannot unflatten array of shape [", operand(StaticValue(length(x[0]))),
                             "] to array of shape ["};
          for (const Poly& dim : sizes) {
            message.emplace_back(operand(StaticValue(dim)));
            message.emplace_back(&dim == &sizes.back() ? "]." : "][");
          }
          return message;
        });
      check_elements(sizes, location_);
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
    case Builtin::rotate: return rotate(x[1], index(x[0]));
    case Builtin::concat: return concat(x[0], x[1]);
    case Builtin::sized: {
      const Poly count = safe_size(index(x[0]));
      const std::vector<Poly> actual = shape(x[1]);
      std::vector<Poly> wanted = actual;
      if (wanted.empty()) unsupported(location_, "an array of units");
      wanted.front() = count;
      const std::string element(x[1].operand() ? to_text(type_of(*x[1].operand()).element) : "");
      require_shape(wanted, actual, element);
      return map_leaves(x[1], [&](const StaticValue& leaf) { return with_sizes(leaf, {count}); });
    }
    case Builtin::copy:
      return map_leaves(x[0], [&](const StaticValue& leaf) {
        if (shape(leaf).empty()) return leaf;
        return StaticValue(Operand(builder_->let("a", Copy{array(leaf)})));
      });
    default: return std::nullopt;
  }
}

}  // namespace apl::frontend
