// A value of a function: a typed name, identified by a number unique in that function.
// Its type and name hint live in the function's ValueTable (ir/module.h).
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace apl {

struct Value {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint32_t id = kNone;

  explicit operator bool() const { return id != kNone; }
  auto operator<=>(const Value&) const = default;
};

}  // namespace apl

template <>
struct std::hash<apl::Value> {
  std::size_t operator()(apl::Value value) const noexcept { return std::hash<std::uint32_t>{}(value.id); }
};
