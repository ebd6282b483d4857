#include "tests/contractions/sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace apl::contraction_tests {

namespace {

using Sum = std::uint64_t;                      // wraps
using Weights = std::vector<std::vector<Sum>>;  // of each dim's indices

const float* floats(const HostValue& value) { return reinterpret_cast<const float*>(value.data.data()); }

std::vector<std::int64_t> shape_of(const Spec& spec, const std::vector<Axis>& axes, const testing::Sizes& sizes) {
  std::vector<std::int64_t> shape;
  for (const Axis& axis : axes) shape.push_back(sizes.at(spec.dims[axis.dim].size));
  return shape;
}

// Sums with weights along all axes but those whose sum is kept apart, in `sums`, an element for each of their indices.
class WeightedSum {
 public:
  WeightedSum(const float* data, const std::vector<Axis>& axes, std::vector<std::int64_t> shape, const Weights& weights,
              std::size_t kept_from, std::vector<Sum>& sums, const std::vector<std::int64_t>& kept_strides)
      : data_(data),
        axes_(axes),
        shape_(std::move(shape)),
        weights_(weights),
        kept_from_(kept_from),
        sums_(sums),
        kept_strides_(kept_strides) {}

  // False if an element is no integer.
  bool run() {
    if (shape_.empty()) return add(1, 0);
    return level(0, 1, 0);
  }

 private:
  bool add(Sum weight, std::size_t place) {
    const float x = *data_++;
    if (!(std::fabs(x) < 16777216.0F)) return false;
    const auto n = static_cast<std::int64_t>(x);
    sums_[place] += weight * static_cast<Sum>(n);
    return static_cast<float>(n) == x;
  }

  bool level(std::size_t k, Sum weight, std::size_t place) {
    const std::size_t dim = axes_[k].dim;
    const bool kept = dim >= kept_from_;
    bool good = true;
    for (std::int64_t i = 0; i < shape_[k]; ++i) {
      const Sum inner = kept ? weight : weight * weights_[dim][static_cast<std::size_t>(i)];
      const std::size_t at = kept ? place + static_cast<std::size_t>(i * kept_strides_[dim - kept_from_]) : place;
      good = (k + 1 == axes_.size() ? add(inner, at) : level(k + 1, inner, at)) && good;
    }
    return good;
  }

  const float* data_;
  const std::vector<Axis>& axes_;
  const std::vector<std::int64_t> shape_;
  const Weights& weights_;
  const std::size_t kept_from_;
  std::vector<Sum>& sums_;
  const std::vector<std::int64_t>& kept_strides_;
};

// One element of the result in f64.
double element(const Spec& spec, const testing::Sizes& sizes, const std::vector<HostValue>& inputs,
               std::vector<std::int64_t>& at) {
  double sum = 0;
  std::int64_t depth = 1;
  for (std::size_t d = spec.space_rank; d < spec.dims.size(); ++d) depth *= sizes.at(spec.dims[d].size);
  for (std::int64_t q = 0; q < depth; ++q) {
    std::int64_t rest = q;
    for (std::size_t d = spec.dims.size(); d-- > spec.space_rank;) {
      const std::int64_t size = sizes.at(spec.dims[d].size);
      at[d] = rest % size;
      rest /= size;
    }
    double product = 1;
    for (std::size_t o = 0; o < inputs.size(); ++o) {
      std::int64_t flat = 0;
      for (const Axis& axis : spec.operands[o]) flat = flat * sizes.at(spec.dims[axis.dim].size) + at[axis.dim];
      product *= static_cast<double>(floats(inputs[o])[flat]);
    }
    sum += product;
  }
  return sum;
}

std::optional<std::string> wrong_at(const Spec& spec, const testing::Sizes& sizes, const std::vector<HostValue>& inputs,
                                    const HostValue& result, std::int64_t flat) {
  const double got = static_cast<double>(floats(result)[flat]);
  std::vector<std::int64_t> at(spec.dims.size());
  std::string where;
  for (std::size_t d = spec.space_rank; d-- > 0;) {
    const std::int64_t size = sizes.at(spec.dims[d].size);
    at[d] = flat % size;
    flat /= size;
    where = fmt::format("[{}]", at[d]) + where;
  }
  const double expected = element(spec, sizes, inputs, at);
  if (got == expected) return std::nullopt;
  return fmt::format("element {} is {}, should be {}", where, got, expected);
}

std::optional<std::string> wrong_sample(const Spec& spec, const testing::Sizes& sizes,
                                        const std::vector<HostValue>& inputs, const HostValue& result) {
  constexpr int kSamples = 4096;
  std::mt19937_64 random(7);
  const std::int64_t count = result.element_count();
  for (int sample = 0; sample < kSamples && count > 0; ++sample) {
    // The last elements, too, which partial tiles and large indices reach.
    const std::int64_t flat =
        sample < 64 ? count - 1 - sample % count : static_cast<std::int64_t>(random() % static_cast<Sum>(count));
    if (auto wrong = wrong_at(spec, sizes, inputs, result, flat)) return wrong;
  }
  return std::nullopt;
}

}  // namespace

std::vector<HostValue> small_integers(const Spec& spec, const testing::Sizes& sizes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<HostValue> values;
  for (const std::vector<Axis>& axes : spec.operands) {
    HostValue value = HostValue::zeros(ScalarType::f32, shape_of(spec, axes, sizes));
    auto* data = reinterpret_cast<float*>(value.data.data());
    for (std::int64_t k = 0; k < value.element_count(); ++k) data[k] = static_cast<float>(random() % 5) - 2;
    values.push_back(std::move(value));
  }
  return values;
}

std::optional<std::string> wrong_sum(const Spec& spec, const testing::Sizes& sizes,
                                     const std::vector<HostValue>& inputs, const HostValue& result) {
  std::vector<Axis> axes;
  for (std::size_t d = 0; d < spec.space_rank; ++d) axes.push_back({d});
  if (result.type != ScalarType::f32 || result.shape != shape_of(spec, axes, sizes)) return "wrong type or shape";
  if (auto wrong = wrong_sample(spec, sizes, inputs, result)) return wrong;
  std::mt19937_64 random(11);
  Weights weights;
  std::vector<std::int64_t> strides(spec.dims.size() - spec.space_rank, 1);
  std::int64_t depth = 1;
  for (std::size_t d = spec.dims.size(); d-- > spec.space_rank;) {
    strides[d - spec.space_rank] = depth;
    depth *= sizes.at(spec.dims[d].size);
  }
  for (std::size_t d = 0; d < spec.space_rank; ++d) {
    auto& row = weights.emplace_back(static_cast<std::size_t>(sizes.at(spec.dims[d].size)));
    for (Sum& w : row) w = random() | 1;
  }
  std::vector<Sum> products(static_cast<std::size_t>(depth), 1);
  for (std::size_t o = 0; o < inputs.size(); ++o) {
    std::vector<Sum> sums(products.size());
    WeightedSum(floats(inputs[o]), spec.operands[o], inputs[o].shape, weights, spec.space_rank, sums, strides).run();
    for (std::size_t q = 0; q < products.size(); ++q) products[q] *= sums[q];
  }
  Sum expected = 0;
  for (Sum product : products) expected += product;
  std::vector<Sum> got(1);
  if (!WeightedSum(floats(result), axes, result.shape, weights, spec.space_rank, got, strides).run())
    return "an element is no integer";
  if (got[0] == expected) return std::nullopt;
  constexpr std::int64_t kSearched = 1 << 22;
  for (std::int64_t flat = 0; flat < std::min(result.element_count(), kSearched); ++flat)
    if (auto wrong = wrong_at(spec, sizes, inputs, result, flat)) return wrong;
  return "the weighted sum of all elements is wrong; none that was looked at is";
}

}  // namespace apl::contraction_tests
