// Values as the host sees them: arguments and results of entries, in Futhark's text and binary formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/scalar.h"

namespace apl {

// More dims no value has.
constexpr std::size_t kMaxRank = 32;

// A scalar (rank 0) or a regular array, elements row-major; a bool is one byte, floats of 16 bits two.
struct HostValue {
  ScalarType type = ScalarType::unit;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;

  // `elements` has as many elements as the shape; T is the C++ type of `type` (bool arrays: std::uint8_t).
  template <class T>
  static HostValue array(ScalarType type, std::vector<std::int64_t> shape, const std::vector<T>& elements) {
    HostValue value{type, std::move(shape), std::vector<std::byte>(elements.size() * sizeof(T))};
    if (!elements.empty()) std::memcpy(value.data.data(), elements.data(), value.data.size());
    return value;
  }
  static HostValue scalar(const Scalar& scalar);
  static HostValue zeros(ScalarType type, std::vector<std::int64_t> shape);

  std::size_t rank() const { return shape.size(); }
  std::int64_t element_count() const;  // 1 for a scalar
  Scalar at(std::int64_t flat) const;  // 0 <= flat < element_count()
  void set(std::int64_t flat, const Scalar& element);

  // `3i32`, `[[1.0f32, 2.0f32], [3.0f32, 4.0f32]]`, `empty([0][3]f32)`.
  std::string to_text() const;
  // `b`, version 2, rank, type as four characters, rank sizes of 64 bits, elements; all little endian.
  std::string to_binary() const;
  bool operator==(const HostValue&) const = default;  // bit for bit
};

// Values one after the other, in Futhark's text format: numbers, true, false, f32.nan, strings as []u8, nested regular
// arrays, empty([0][2]i32); comments from -- to the end of the line. A number without suffix has the type of the
// array's first element, or else is i32, or f64 if it has a point or an exponent. A value that begins with the letter b
// is in the binary format; both may be mixed. Code run.argument, with a location in the text.
enum class OutOfRange : std::uint8_t { refuse, wrap };
// `wrap`: an integer that its type cannot hold is reduced to the type's width, as Futhark's own reader does.
// The k-th value's numbers without suffix are of type `types[k]`, if there is one.
Result<std::vector<HostValue>> parse_values(std::string_view text, OutOfRange out_of_range = OutOfRange::refuse,
                                            const std::vector<ScalarType>& types = {});

}  // namespace apl
