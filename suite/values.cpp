#include "suite/values.h"

#include <unistd.h>

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <limits>
#include <new>

#include "ir/read_file.h"
#include "ir/system_error.h"

namespace apl::suite {
namespace {

Diagnostic bad(std::string message) { return make_error(Code::run_argument, {}, std::move(message)); }

std::string type_text(const HostValue& value) {
  std::string text;
  for (std::int64_t size : value.shape) text += fmt::format("[{}]", size);
  return text + std::string(to_text(value.type));
}

std::string index_text(std::int64_t flat, const std::vector<std::int64_t>& shape) {
  std::string text;
  for (std::size_t dim = shape.size(); dim-- > 0;) {
    text = fmt::format("{}{}{}", flat % shape[dim], text.empty() ? "" : ", ", text);
    flat /= shape[dim];
  }
  return text;
}

bool equal(const Scalar& got, const Scalar& expected, double allowed) {
  if (!is_float(expected.type())) return got == expected;
  const double a = got.as_float(), b = expected.as_float();
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::abs(a - b) <= allowed;
}

class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

// The upper 64 bits of a product.
std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t a_low = a & 0xffffffffu, a_high = a >> 32, b_low = b & 0xffffffffu, b_high = b >> 32;
  const std::uint64_t middle = a_high * b_low + ((a_low * b_low) >> 32);
  return a_high * b_high + (middle >> 32) + (((middle & 0xffffffffu) + a_low * b_high) >> 32);
}

Bounds all_of(ScalarType type) {
  if (is_float(type)) return {Scalar::floating(type, 0), Scalar::floating(type, 1)};
  if (type == ScalarType::boolean) return {Scalar::boolean(false), Scalar::boolean(true)};
  const std::uint64_t ones = ~std::uint64_t{0} >> (64 - bit_width(type));
  if (!is_signed(type)) return {Scalar::zero(type), Scalar::from_bits(type, ones)};
  return {Scalar::from_bits(type, (ones >> 1) + 1), Scalar::from_bits(type, ones >> 1)};
}

}  // namespace

Result<std::string> unpacked(std::string text) {
  if (!text.starts_with("\x1f\x8b")) return text;
  z_stream stream{};
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) return bad("cannot start to unpack gzip data");
  std::string result;
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  std::size_t left = text.size();
  int status = Z_OK;
  std::array<char, 1 << 16> buffer{};
  while (status == Z_OK) {
    if (stream.avail_in == 0) {
      stream.avail_in = static_cast<uInt>(std::min<std::size_t>(left, 1u << 30));
      left -= stream.avail_in;
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    status = inflate(&stream, Z_NO_FLUSH);
    result.append(buffer.data(), buffer.size() - stream.avail_out);
    // A file may hold several packed parts.
    if (status == Z_STREAM_END && stream.avail_in + left > 0) status = inflateReset(&stream);
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END) return bad("damaged gzip data");
  return result;
}

Result<std::string> read_unpacked(const std::string& name) {
  auto text = read_bytes(name);
  if (!text) return text;
  auto plain = unpacked(std::move(*text));
  if (plain) return plain;
  Diagnostic error = std::move(plain).error();
  error.message = fmt::format("{}: {}", name == "-" ? "standard input" : name, error.message);
  return error;
}

Result<std::vector<HostValue>> read_values(const std::string& file, const std::vector<ScalarType>& types) {
  const auto text = read_unpacked(file);
  if (!text) return text.error();
  auto values = parse_values(*text, OutOfRange::wrap, types);
  if (values) return values;
  Diagnostic error = values.error();
  error.message = fmt::format("{}: {}", file, error.message);
  return error;
}

double tolerance(const HostValue& expected) {
  constexpr double kTolerance = 0.002;
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t k = 0; k < expected.element_count(); ++k) {
    const double element = expected.at(k).as_float();
    if (std::isfinite(element)) largest = std::max(largest, element);
  }
  return std::max(kTolerance, kTolerance * largest);
}

std::optional<std::string> difference(const std::vector<HostValue>& got, const std::vector<HostValue>& expected,
                                      const Accepts& accepts) {
  if (got.size() != expected.size())
    return fmt::format("{} value{}, {} expected", got.size(), got.size() == 1 ? "" : "s", expected.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    const std::string which = got.size() == 1 ? "" : fmt::format("value {}: ", k);
    if (got[k].type != expected[k].type || got[k].shape != expected[k].shape)
      return fmt::format("{}type {}, expected {}", which, type_text(got[k]), type_text(expected[k]));
    if (got[k].data == expected[k].data) continue;
    const double allowed = is_float(expected[k].type) ? tolerance(expected[k]) : 0;
    for (std::int64_t flat = 0; flat < got[k].element_count(); ++flat) {
      const Scalar a = got[k].at(flat), b = expected[k].at(flat);
      if (equal(a, b, allowed) || (accepts && accepts(k, flat))) continue;
      const std::string place = got[k].shape.empty() ? "" : fmt::format("at [{}]: ", index_text(flat, got[k].shape));
      return fmt::format("{}{}{}, expected {}", which, place, a.to_text(), b.to_text());
    }
  }
  return std::nullopt;
}

HostValue random_value(ScalarType type, std::vector<std::int64_t> shape, std::uint64_t seed, const AllBounds& bounds) {
  HostValue value = HostValue::zeros(type, std::move(shape));
  const auto found = bounds.find(type);
  const Bounds range = found != bounds.end() ? found->second : all_of(type);
  SplitMix64 numbers(seed);
  const std::int64_t count = value.element_count();
  for (std::int64_t k = 0; k < count; ++k) {
    const std::uint64_t number = numbers.next();
    if (is_float(type)) {
      const double fraction = static_cast<double>(number >> 11) * 0x1p-53;
      const double low = range.low.as_float(), high = range.high.as_float();
      value.set(k, Scalar::floating(type, low + (high - low) * fraction));
    } else if (type == ScalarType::boolean) {
      value.set(k, found == bounds.end() ? Scalar::boolean(number >> 63) : (number >> 63) ? range.high : range.low);
    } else {
      const auto low = static_cast<std::uint64_t>(range.low.as_int());
      const std::uint64_t span = static_cast<std::uint64_t>(range.high.as_int()) - low + 1;  // 0: all 2^64
      const std::uint64_t element = low + (span == 0 ? number : high_product(number, span));
      value.set(k, Scalar::integer(type, static_cast<std::int64_t>(element)));
    }
  }
  return value;
}

Result<HostValue> generate_value(std::string_view text, std::uint64_t seed, const AllBounds& bounds) {
  std::vector<std::int64_t> shape;
  std::string_view rest = text;
  std::int64_t count = 1;
  while (rest.starts_with('[')) {
    std::int64_t size = -1;
    const auto [end, problem] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), size);
    if (problem != std::errc() || size < 0 || end == rest.data() + rest.size() || *end != ']') break;
    shape.push_back(size);
    if (size != 0 && __builtin_mul_overflow(count, size, &count)) return bad(fmt::format("{} is too large", text));
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()) + 1);
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const auto type = scalar_type_from_text(rest);
  if (type && *type != ScalarType::unit) {
    if (count > kMost) return bad(fmt::format("{} is too large", text));
    const std::int64_t bytes = count * bit_width(*type) / 8, pages = sysconf(_SC_PHYS_PAGES);
    const std::string what = fmt::format("{} bytes for {}", std::max(bytes, count), text);
    // A system that promises more memory than there is would end the process when it is used.
    if (pages > 0 && bytes / sysconf(_SC_PAGESIZE) >= pages) return system_error(ENOMEM, what);
    try {
      return random_value(*type, std::move(shape), seed, bounds);
    } catch (const std::bad_alloc&) {
      return system_error(ENOMEM, what);
    }
  }
  auto values = parse_values(text);
  if (!values || values->size() != 1)
    return bad(fmt::format("`{}` is no type with constant sizes, such as [10][20]f32, and no value", text));
  return std::move((*values)[0]);
}

Result<std::vector<HostValue>> generate_values(std::string_view text, std::uint64_t seed) {
  std::vector<HostValue> values;
  constexpr std::string_view kBlanks = " \t\r\n";
  for (std::size_t at = text.find_first_not_of(kBlanks); at < text.size(); at = text.find_first_not_of(kBlanks, at)) {
    // A word, unless brackets or a string hold blanks.
    const std::size_t from = at;
    int depth = 0;
    for (bool quoted = false; at < text.size(); ++at) {
      const char c = text[at];
      if (c == '"') quoted = !quoted;
      if (quoted) continue;
      if (c == '[' || c == '(') ++depth;
      if (c == ']' || c == ')') --depth;
      if (depth == 0 && kBlanks.find(c) != std::string_view::npos) break;
    }
    auto value = generate_value(text.substr(from, at - from), seed);
    if (!value) return std::move(value).error();
    values.push_back(std::move(*value));
  }
  return values;
}

}  // namespace apl::suite
