#include "ir/interpret/order.h"

#include <numeric>
#include <utility>

namespace apl::interpreter {

IndexOrder::IndexOrder(std::int64_t count, Random& random) : count_(static_cast<std::uint64_t>(count)) {
  constexpr std::int64_t kLongest = std::int64_t{1} << 24;
  if (count <= 1) return;
  if (count > kLongest) {
    start_ = random.below(count_);
    do factor_ = 1 + random.below(65535);
    while (std::gcd(factor_, count_) != 1);
    return;
  }
  shuffled_.resize(static_cast<std::size_t>(count));
  std::iota(shuffled_.begin(), shuffled_.end(), std::uint32_t{0});
  for (std::size_t k = shuffled_.size(); k > 1; --k) std::swap(shuffled_[k - 1], shuffled_[random.below(k)]);
}

}  // namespace apl::interpreter
