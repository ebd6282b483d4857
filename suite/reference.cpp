#include "suite/reference.h"

#include <algorithm>
#include <cmath>

#include "suite/values.h"

namespace apl::suite {
namespace {

// Half the distance of 1 to the next number.
double unit_roundoff(ScalarType type) {
  return std::ldexp(1, -1 - facts(is_float(type) ? type : ScalarType::f64).mantissa);
}

double largest_distance(const HostValue& a, const HostValue& b) {
  double largest = 0;
  for (std::int64_t k = 0; k < a.element_count(); ++k) {
    const double distance = std::abs(a.at(k).as_float() - b.at(k).as_float());
    if (std::isfinite(distance)) largest = std::max(largest, distance);
  }
  return largest;
}

double largest_number(const HostValue& value) {
  double largest = 0;
  for (std::int64_t k = 0; k < value.element_count(); ++k) {
    const double magnitude = std::abs(value.at(k).as_float());
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  }
  return largest;
}

bool same_type(const HostValue& a, const HostValue& b) { return a.type == b.type && a.shape == b.shape; }

// A sum may overflow in one order, and not in another: then the one is infinite, or no number.
bool is_between(double x, double a, double b, double beyond) {
  if (std::isnan(a) || std::isnan(b)) {
    const double other = std::isnan(a) ? b : a;
    return std::isnan(x) || x == other || std::abs(x - other) <= beyond;
  }
  return x >= std::min(a, b) - beyond && x <= std::max(a, b) + beyond;
}

}  // namespace

void Rounding::reduced(ScalarType type, std::int64_t terms) {
  relative_ = std::max(relative_, std::sqrt(static_cast<double>(terms)) * unit_roundoff(type));
}

std::optional<std::string> difference(const std::vector<HostValue>& got, const std::vector<HostValue>& wide,
                                      const std::vector<HostValue>& plain, const Rounding& rounding) {
  std::vector<double> beyond;  // by value; negative: both are the same
  for (std::size_t k = 0; k < wide.size(); ++k) {
    const bool rounds =
        k < plain.size() && is_float(wide[k].type) && same_type(wide[k], plain[k]) && wide[k].data != plain[k].data;
    beyond.push_back(!rounds ? -1
                             : std::max({tolerance(wide[k]), largest_distance(wide[k], plain[k]),
                                         rounding.relative() * largest_number(wide[k])}));
  }
  return difference(got, wide, [&](std::size_t k, std::int64_t flat) {
    return beyond[k] >= 0 &&
           is_between(got[k].at(flat).as_float(), wide[k].at(flat).as_float(), plain[k].at(flat).as_float(), beyond[k]);
  });
}

}  // namespace apl::suite
