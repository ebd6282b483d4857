// Random arguments for an entry.
#include <fmt/format.h>

#include <random>
#include <range/v3/algorithm/contains.hpp>
#include <ranges>
#include <unordered_map>

#include "tests/testing.h"

namespace apl::testing {

namespace {

constexpr std::int64_t kMaxElements = 1'000'000;  // a law that needs more is no unit test

class Inputs {
 public:
  Inputs(const Function& function, const Sizes& sizes, std::uint64_t seed)
      : function_(function), sizes_(sizes), random_(seed) {}

  Result<std::vector<HostValue>> run() {
    const std::vector<std::pair<Value, Poly>> computed = computed_sizes();
    const auto is_computed = [&](Value size) { return ranges::contains(computed | std::views::keys, size); };
    for (Value size : function_.sizes)
      if (!is_computed(size)) known_.emplace(size, size_value(size));
    for (Value param : function_.given_params())
      if (is_integer_scalar(param)) known_.emplace(param, size_value(param));
    if (used_ != sizes_.size()) return unknown_name();
    for (const auto& [size, poly] : computed)
      if (const auto value = evaluated(poly)) known_.emplace(size, *value);
    std::vector<HostValue> values;
    for (Value param : function_.given_params()) {
      if (function_.type(param).is_memory()) continue;  // follows from the arrays in it
      auto value = argument(param);
      if (!value) return value.error();
      values.push_back(*std::move(value));
    }
    return values;
  }

 private:
  // The generator alone is the same everywhere; the distributions of the standard library are not.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }

  // Sizes that follow from others and from arguments, and what the function asserts them to be.
  std::vector<std::pair<Value, Poly>> computed_sizes() const {
    std::unordered_map<Value, Poly> polys;
    std::unordered_map<Value, std::pair<Value, Poly>> equal;  // by condition
    std::vector<std::pair<Value, Poly>> computed;
    for (const Stm& stm : function_.body->stms) {
      if (const auto* size = get_if<SizeExpr>(stm)) {
        polys.emplace(stm.pattern.front(), size->value);
      } else if (const auto* compare = get_if<Compare>(stm); compare && compare->op == CompareOp::eq) {
        for (const auto& [size, of] : {std::pair{compare->x, compare->y}, std::pair{compare->y, compare->x}})
          if (size.is_value() && of.is_value() && ranges::contains(function_.sizes, size.value()) &&
              polys.contains(of.value()) && is_given(polys.at(of.value()), size.value()))
            equal.emplace(stm.pattern.front(), std::pair{size.value(), polys.at(of.value())});
      } else if (const auto* check = get_if<Assert>(stm); check && check->condition.is_value()) {
        if (const auto found = equal.find(check->condition.value()); found != equal.end())
          if (!ranges::contains(computed | std::views::keys, found->second.first)) computed.push_back(found->second);
      }
    }
    return computed;
  }

  // Whether arguments other than that size tell the polynomial's value.
  bool is_given(const Poly& poly, Value size) const {
    bool given = true;
    poly.for_each_symbol([&](Value symbol) {
      given = given && symbol != size &&
              (ranges::contains(function_.sizes, symbol) ||
               (ranges::contains(function_.params, symbol) && is_integer_scalar(symbol)));
    });
    return given;
  }

  std::optional<std::int64_t> evaluated(const Poly& poly) const {
    bool closed = true;
    const auto value = poly.evaluate([&](Value symbol) {
      const auto place = known_.find(symbol);
      closed = closed && place != known_.end();
      return place == known_.end() ? std::int64_t{1} : place->second;
    });
    return closed && value ? std::optional<std::int64_t>(*value) : std::nullopt;
  }

  bool is_integer_scalar(Value value) const {
    const Type& type = function_.type(value);
    return type.is_scalar() && is_integer(type.element);
  }

  std::int64_t size_value(Value value) {
    const auto place = sizes_.find(function_.values.name(value));
    if (place == sizes_.end()) return between(0, 7);
    ++used_;
    return place->second;
  }

  Diagnostic unknown_name() const {
    std::string names;
    for (Value size : function_.sizes) names += " " + function_.values.name(size);
    for (Value param : function_.params)
      if (is_integer_scalar(param)) names += " " + function_.values.name(param);
    std::string given;
    for (const auto& [name, size] : sizes_) given += fmt::format(" {}={}", name, size);
    return make_error(Code::command_bad_argument, function_.location,
                      fmt::format("the sizes are{}, but the sizes and integers of `{}` are{}", given, function_.name,
                                  names.empty() ? " none" : names));
  }

  Scalar element(ScalarType type) {
    if (type == ScalarType::boolean) return Scalar::boolean(between(0, 1) != 0);
    if (type == ScalarType::unit) return Scalar::unit();
    // Few bits in a product: sums of them stay exact in half precision.
    const bool narrow = type == ScalarType::f16 || type == ScalarType::bf16;
    const std::int64_t limit = narrow ? 2 : 4;
    if (is_float(type)) return Scalar::floating(type, static_cast<double>(between(-limit, limit)));
    return Scalar::integer(type, between(is_signed(type) ? -limit : 0, limit));
  }

  Result<HostValue> argument(Value param) {
    const Type& type = function_.type(param);
    if (type.is_scalar()) {
      const auto place = known_.find(param);
      return HostValue::scalar(place == known_.end() ? element(type.element)
                                                     : Scalar::integer(type.element, place->second));
    }
    std::vector<std::int64_t> shape;
    std::int64_t count = 1;
    for (const Poly& dim : type.shape) {
      const auto size = evaluated(dim);
      if (!size || *size < 0 || (count > 0 && *size > kMaxElements / count))
        return make_error(Code::run_negative_size, function_.location,
                          fmt::format("these sizes give `{}` no possible shape", function_.values.name(param)));
      shape.push_back(*size);
      count *= *size;
    }
    HostValue value = HostValue::zeros(type.element, shape);
    for (std::int64_t k = 0; k < count; ++k) value.set(k, element(type.element));
    return value;
  }

  const Function& function_;
  const Sizes& sizes_;
  std::mt19937_64 random_;
  std::unordered_map<Value, std::int64_t> known_;
  std::size_t used_ = 0;
};

}  // namespace

Result<std::vector<HostValue>> random_arguments(const Function& function, const Sizes& sizes, std::uint64_t seed) {
  return Inputs(function, sizes, seed).run();
}

}  // namespace apl::testing
