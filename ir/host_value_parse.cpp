// Futhark's text and binary formats of values, read.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "ir/host_value.h"

namespace apl {

namespace {

constexpr std::string_view kWordCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-";

// The first error ends the reading: after it every method returns as soon as it can.
class ValueParser {
 public:
  ValueParser(std::string_view text, OutOfRange out_of_range, const std::vector<ScalarType>& types)
      : text_(text), out_of_range_(out_of_range), types_(types) {}

  Result<std::vector<HostValue>> run() {
    std::vector<HostValue> values;
    for (skip_blanks(); at_ < text_.size() && error_.empty(); skip_blanks()) {
      number_type_ = values.size() < types_.size() ? std::optional(types_[values.size()]) : std::nullopt;
      values.push_back(value());
    }
    if (error_.empty()) return values;
    std::uint32_t line = 1, column = 1;
    for (char c : text_.substr(0, error_at_)) {
      ++column;
      if (c == '\n') ++line, column = 1;
    }
    return make_error(Code::run_argument, {line, column, line, column}, error_);
  }

 private:
  void fail(std::string message) { fail_at(at_, std::move(message)); }
  void fail_at(std::size_t at, std::string message) {
    if (!error_.empty()) return;
    error_ = std::move(message);
    error_at_ = at;
  }

  bool next_is(std::string_view text) const { return text_.substr(at_, text.size()) == text; }
  void skip_blanks() {
    while (at_ < text_.size()) {
      if (next_is("--")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) {
        ++at_;
      } else {
        break;
      }
    }
  }
  bool take(std::string_view token) {
    skip_blanks();
    if (!next_is(token)) return false;
    at_ += token.size();
    return true;
  }
  void want(std::string_view token) {
    if (!take(token)) fail(fmt::format("expected `{}`, found {}", token, found()));
  }
  // A comma may follow the last element.
  bool closes() {
    skip_blanks();
    return next_is("]");
  }
  std::string found() const { return at_ < text_.size() ? fmt::format("`{}`", text_[at_]) : "the end"; }
  std::string_view word() {
    skip_blanks();
    const std::size_t from = at_;
    at_ = std::min(text_.find_first_not_of(kWordCharacters, at_), text_.size());
    return text_.substr(from, at_ - from);
  }

  HostValue value() {
    if (next_is("b") && !next_is("bf16.")) return binary();
    if (take("empty(")) return empty();
    if (take("\"")) return string();
    shape_.clear();
    elements_.clear();
    rank_.reset();
    type_.reset();
    if (next_is("[")) {
      row(0);
    } else {
      scalar();
    }
    if (!error_.empty()) return {};
    HostValue result = HostValue::zeros(*type_, std::move(shape_));
    for (std::size_t k = 0; k < elements_.size(); ++k) result.set(static_cast<std::int64_t>(k), elements_[k]);
    return result;
  }

  // `[a, b, c]` at a nesting depth; the first row of a depth fixes its size, the first number the rank.
  void row(std::size_t depth) {
    const std::size_t start = at_;
    want("[");
    if (depth >= kMaxRank) return fail_at(start, fmt::format("an array of more than {} dims", kMaxRank));
    if (rank_ && depth >= *rank_) return fail_at(start, "a row where other rows have a number");
    const bool is_first = shape_.size() == depth;
    if (is_first) shape_.push_back(0);
    if (take("]")) return fail_at(start, "an array without elements is written with its type, such as empty([0]i32)");
    std::int64_t count = 0;
    do {
      skip_blanks();
      if (next_is("[")) {
        row(depth + 1);
      } else if (next_is("\"") || next_is("empty(")) {
        part(depth + 1);
      } else if (rank_.value_or(depth + 1) != depth + 1) {
        fail("a number where other rows have a row");
      } else {
        rank_ = depth + 1;
        scalar();
      }
      if (!error_.empty()) return;
      ++count;
    } while (take(",") && !closes());
    if (!take("]")) return fail(fmt::format("expected `,` or `]`, found {}", found()));
    if (is_first) shape_[depth] = count;
    if (shape_[depth] != count)
      fail_at(start, fmt::format("a row of {} elements where the first has {}", count, shape_[depth]));
  }

  // A string or an array without elements as a row.
  void part(std::size_t depth) {
    const std::size_t start = at_;
    const HostValue part = take("\"") ? string() : (take("empty("), empty());
    if (!error_.empty()) return;
    const std::size_t rank = depth + part.shape.size();
    if (rank > kMaxRank) return fail_at(start, fmt::format("an array of more than {} dims", kMaxRank));
    if (rank_.value_or(rank) != rank)
      return fail_at(start, fmt::format("a row of {} dims where other rows have {}", rank - depth, *rank_ - depth));
    if (type_.value_or(part.type) != part.type)
      return fail_at(start, fmt::format("a row of type {} in an array of {}", to_text(part.type), to_text(*type_)));
    rank_ = rank;
    type_ = part.type;
    for (std::size_t k = 0; k < part.shape.size(); ++k) {
      if (shape_.size() == depth + k) shape_.push_back(part.shape[k]);
      if (shape_[depth + k] != part.shape[k])
        return fail_at(start,
                       fmt::format("a row of {} elements where the first has {}", part.shape[k], shape_[depth + k]));
    }
    for (std::int64_t k = 0; k < part.element_count(); ++k) elements_.push_back(part.at(k));
  }

  // Appends to elements_.
  void scalar() {
    skip_blanks();
    const std::size_t start = at_;
    std::string text;
    for (char c : word())
      if (c != '_') text += c;
    const std::optional<ScalarType> array_type = type_;
    // A number with a fraction is no integer, whatever is asked for.
    const bool fits = number_type_ && (is_float(*number_type_) ||
                                       (is_integer(*number_type_) && text.find_first_of(".eE") == std::string::npos));
    auto element = read(text, array_type ? array_type : fits ? number_type_ : std::nullopt);
    if (!element && out_of_range_ == OutOfRange::wrap) element = wrapped(text);
    if (!element)
      return fail_at(start, text.empty()
                                ? fmt::format("expected a value, found {}", found())
                                : fmt::format("`{}` is no value{}", text_.substr(start, at_ - start),
                                              array_type ? fmt::format(" of type {}", to_text(*array_type)) : ""));
    if (array_type && element->type() != *array_type)
      return fail_at(start, fmt::format("an element of type {} in an array of {}", to_text(element->type()),
                                        to_text(*array_type)));
    elements_.push_back(*element);
    type_ = element->type();
  }

  // The same number for a hexadecimal or binary one.
  static std::optional<std::string> decimal_of(std::string_view text) {
    const bool is_negative = text.starts_with('-');
    if (is_negative) text.remove_prefix(1);
    const int base = text.starts_with("0x") ? 16 : text.starts_with("0b") ? 2 : 0;
    if (base == 0) return std::nullopt;
    std::uint64_t number = 0;
    const auto [end, problem] = std::from_chars(text.data() + 2, text.data() + text.size(), number, base);
    if (problem != std::errc()) return std::nullopt;
    const std::string_view suffix = text.substr(static_cast<std::size_t>(end - text.data()));
    return fmt::format("{}{}{}", is_negative ? "-" : "", number, suffix);
  }

  // An integer that is too large or too small for its type.
  static std::optional<Scalar> wrapped(std::string text) {
    if (auto decimal = decimal_of(text)) text = *decimal;
    for (const auto type : {ScalarType::i8, ScalarType::i16, ScalarType::i32, ScalarType::i64, ScalarType::u8,
                            ScalarType::u16, ScalarType::u32, ScalarType::u64}) {
      if (!text.ends_with(to_text(type))) continue;
      const std::string digits = text.substr(0, text.size() - to_text(type).size());
      for (std::string_view wide : {"i64", "u64"})
        if (auto number = Scalar::parse(digits + std::string(wide))) return Scalar::from_bits(type, number->bits());
    }
    return std::nullopt;
  }

  // `wanted`: the type of a number without suffix, if it is known.
  static std::optional<Scalar> read(const std::string& text, std::optional<ScalarType> wanted) {
    if (text == "true" || text == "false") return Scalar::boolean(text == "true");
    if (auto exact = Scalar::parse(text)) return exact;
    if (auto decimal = decimal_of(text)) return read(*decimal, wanted);
    // As in Futhark's data, a signed number may be written as its bits, and a float is rounded to what there is.
    for (const auto type : {ScalarType::i8, ScalarType::i16, ScalarType::i32, ScalarType::i64, ScalarType::f32}) {
      if (!text.ends_with(to_text(type))) continue;
      const std::string digits = text.substr(0, text.size() - to_text(type).size());
      const std::string wider = is_float(type) ? "f64" : "u" + std::string(to_text(type).substr(1));
      if (auto number = Scalar::parse(digits + wider))
        return is_float(type) ? convert(*number, type) : Scalar::from_bits(type, number->bits());
    }
    // A whole number with a float's suffix: 3f32.
    for (std::string_view suffix : {"f16", "f32", "f64"})
      if (text.ends_with(suffix))
        if (auto whole = Scalar::parse(fmt::format("{}.0{}", text.substr(0, text.size() - suffix.size()), suffix)))
          return whole;
    const bool has_fraction = text.find_first_of(".eE") != std::string::npos;
    const ScalarType type = wanted.value_or(has_fraction ? ScalarType::f64 : ScalarType::i32);
    if (auto plain = Scalar::parse(fmt::format("{}{}", text, to_text(type)))) return plain;
    return is_float(type) ? Scalar::parse(fmt::format("{}.0{}", text, to_text(type))) : std::nullopt;
  }

  // After `empty(`: sizes and type of an array without elements.
  HostValue empty() {
    std::vector<std::int64_t> shape;
    bool has_zero = false;
    while (error_.empty() && take("[")) {
      skip_blanks();
      const std::size_t start = at_;
      const std::string_view digits = word();
      std::int64_t size = -1;
      const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
      if (problem != std::errc() || end != digits.data() + digits.size() || size < 0) fail_at(start, "expected a size");
      has_zero = has_zero || size == 0;
      shape.push_back(size);
      want("]");
    }
    skip_blanks();
    const std::size_t start = at_;
    const auto type = scalar_type_from_text(word());
    if (!type) fail_at(start, "expected the type of the elements");
    if (!has_zero) fail_at(start, "one size of an array without elements is 0");
    if (shape.size() > kMaxRank) fail_at(start, fmt::format("an array of more than {} dims", kMaxRank));
    want(")");
    return error_.empty() ? HostValue::zeros(*type, std::move(shape)) : HostValue();
  }

  // `b`, version, rank, type, sizes, elements.
  HostValue binary() {
    const std::size_t start = at_;
    constexpr std::size_t kHeader = 7;
    if (text_.size() - at_ < kHeader || text_[at_ + 1] != 2) {
      fail("`b` begins a value in the binary format of version 2, but this is none");
      return {};
    }
    const auto rank = static_cast<std::size_t>(static_cast<unsigned char>(text_[at_ + 2]));
    std::string_view type_text = text_.substr(at_ + 3, 4);
    type_text.remove_prefix(std::min(type_text.find_first_not_of(' '), type_text.size()));
    const auto type = scalar_type_from_text(type_text);
    at_ += kHeader;
    if (!type || *type == ScalarType::unit || rank > kMaxRank || text_.size() - at_ < rank * 8) {
      fail_at(start, "the header of this binary value has no such type or rank, or is cut off");
      return {};
    }
    std::vector<std::int64_t> shape(rank);
    if (rank != 0)
      std::memcpy(shape.data(), text_.data() + at_, rank * 8);  // little endian, as every machine we run on
    at_ += rank * 8;
    const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
    auto bytes = is_empty ? std::int64_t{0} : static_cast<std::int64_t>(byte_size(*type));
    bool fits = true;
    for (std::int64_t size : shape) fits = fits && size >= 0 && !__builtin_mul_overflow(bytes, size, &bytes);
    if (!fits || text_.size() - at_ < static_cast<std::size_t>(bytes)) {
      fail_at(start, "this binary value has fewer elements than its sizes say");
      return {};
    }
    HostValue value{*type, std::move(shape), std::vector<std::byte>(static_cast<std::size_t>(bytes))};
    if (bytes != 0) std::memcpy(value.data.data(), text_.data() + at_, value.data.size());
    at_ += static_cast<std::size_t>(bytes);
    if (*type == ScalarType::boolean)
      for (std::byte& byte : value.data) byte = std::byte{byte != std::byte{0}};
    return value;
  }

  // After the opening quote: the bytes.
  HostValue string() {
    static constexpr std::pair<char, char> kEscapes[] = {
        {'n', '\n'}, {'t', '\t'}, {'r', '\r'}, {'\\', '\\'}, {'"', '"'}};
    const std::size_t start = at_ - 1;
    std::vector<std::uint8_t> bytes;
    for (; at_ < text_.size() && text_[at_] != '"' && error_.empty(); ++at_) {
      char c = text_[at_];
      if (c == '\\') {
        const char* escaped = nullptr;
        for (const auto& [letter, meaning] : kEscapes)
          if (at_ + 1 < text_.size() && text_[at_ + 1] == letter) escaped = &meaning;
        if (!escaped) fail("an escape that is not known; there are \\n, \\t, \\r, \\\\ and \\\"");
        if (escaped) c = *escaped, ++at_;
      }
      bytes.push_back(static_cast<std::uint8_t>(c));
    }
    if (at_ >= text_.size()) fail_at(start, "a string without an end");
    ++at_;
    return HostValue::array(ScalarType::u8, {static_cast<std::int64_t>(bytes.size())}, bytes);
  }

  std::string_view text_;
  OutOfRange out_of_range_;
  const std::vector<ScalarType>& types_;
  std::size_t at_ = 0;
  std::string error_;
  std::size_t error_at_ = 0;
  // The value being read.
  std::vector<std::int64_t> shape_;
  std::vector<Scalar> elements_;
  std::optional<std::size_t> rank_;
  std::optional<ScalarType> type_;         // of its elements
  std::optional<ScalarType> number_type_;  // of numbers without suffix
};

}  // namespace

Result<std::vector<HostValue>> parse_values(std::string_view text, OutOfRange out_of_range,
                                            const std::vector<ScalarType>& types) {
  return ValueParser(text, out_of_range, types).run();
}

}  // namespace apl
