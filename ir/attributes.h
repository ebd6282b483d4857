// Attributes of functions and statements by what they mean. In the IR an attribute is a name with arguments as text
// (ir/op.h), so that anybody may have some of his own; those that apl gives a meaning are declared in
// ir/attributes.def with the types of their arguments, and are set and read by key:
//
//   stm.attributes.push_back(make_attribute(attribute::sparse_product, name, attribute::SparseProduct::spmm));
//   if (const auto product = find_attribute(stm.attributes, attribute::sparse_product)) use(std::get<0>(*product));
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/op.h"

namespace apl {

namespace attribute {

// Types of arguments: std::string (one name), std::int64_t, these words, std::optional of one of those as the last, and
// Names (one or more, to the end).
using Names = std::vector<std::string>;
enum class SparseResult : std::uint8_t { result };
enum class SparseProduct : std::uint8_t { spmm, sddmm };
enum class Warning : std::uint8_t { safety_checks };

template <class Word>
inline constexpr std::array<std::string_view, 0> kWords{};
template <>
inline constexpr std::array<std::string_view, 1> kWords<SparseResult>{"result"};
template <>
inline constexpr std::array<std::string_view, 2> kWords<SparseProduct>{"spmm", "sddmm"};
template <>
inline constexpr std::array<std::string_view, 1> kWords<Warning>{"safety_checks"};

}  // namespace attribute

template <class... Arguments>
struct AttributeKey {
  std::string_view name;
};

namespace attribute {
template <class Signature>
struct KeyOf;
template <class... Arguments>
struct KeyOf<void(Arguments...)> {
  using Type = AttributeKey<Arguments...>;
};
#define APL_ATTRIBUTE(id, text, arguments, place, set_by, summary) \
  inline constexpr KeyOf<void arguments>::Type id{text};
#include "ir/attributes.def"
}  // namespace attribute

// What it stands before. `entry` is a definition that callers of the program see; an expression's is that of the
// statement which gives its value.
enum class AttributePlace : std::uint8_t { definition, entry, expression, any };

struct AttributeInfo {
  std::string_view name;
  std::string_view arguments;  // as messages say it: "", "(NAME)", "(NAME, spmm or sddmm)"
  AttributePlace place;
  std::string_view set_by;
  std::string_view summary;
  bool (*fits)(const std::vector<std::string>& arguments);

  bool is_users() const { return set_by == "user"; }
  // In source it means nothing, or not yet.
  bool is_ignored() const { return set_by == "futhark" || set_by == "planned"; }
};

std::span<const AttributeInfo> declared_attributes();
// Null if it is not declared.
const AttributeInfo* find_attribute_info(std::string_view name);
// The declared attribute that a user may set and whose name is like this one; empty if there is none.
std::string similar_attribute(std::string_view name);
// What is wrong with a declared attribute of a function, or of a statement, in the IR: arguments, or where it stands.
std::optional<std::string> check_attribute(const Attribute& attribute, bool of_function);

// ---- arguments as values ----------------------------------------------------------------------------

namespace attribute_detail {

using Rest = std::span<const std::string>;

inline bool read(Rest& rest, std::string& value) {
  if (rest.empty()) return false;
  value = rest.front();
  rest = rest.subspan(1);
  return true;
}
inline bool read(Rest& rest, std::int64_t& value) {
  if (rest.empty()) return false;
  const char* end = rest.front().data() + rest.front().size();
  const auto [stopped, error] = std::from_chars(rest.front().data(), end, value);
  rest = rest.subspan(1);
  return error == std::errc() && stopped == end;
}
inline bool read(Rest& rest, attribute::Names& value) {
  value.assign(rest.begin(), rest.end());
  rest = {};
  return !value.empty();
}
template <class Word>
requires std::is_enum_v<Word>
bool read(Rest& rest, Word& value) {
  if (rest.empty()) return false;
  const auto& words = attribute::kWords<Word>;
  const auto found = std::find(words.begin(), words.end(), rest.front());
  value = static_cast<Word>(found - words.begin());
  rest = rest.subspan(1);
  return found != words.end();
}
template <class T>
bool read(Rest& rest, std::optional<T>& value) {
  return rest.empty() || read(rest, value.emplace());
}

inline void write(std::vector<std::string>& to, std::string value) { to.push_back(std::move(value)); }
inline void write(std::vector<std::string>& to, std::int64_t value) { to.push_back(std::to_string(value)); }
inline void write(std::vector<std::string>& to, const attribute::Names& value) {
  to.insert(to.end(), value.begin(), value.end());
}
template <class Word>
requires std::is_enum_v<Word>
void write(std::vector<std::string>& to, Word value) {
  to.emplace_back(attribute::kWords<Word>[static_cast<std::size_t>(value)]);
}
template <class T>
void write(std::vector<std::string>& to, const std::optional<T>& value) {
  if (value) write(to, *value);
}

template <class... Arguments>
std::optional<std::tuple<Arguments...>> read_all(const std::vector<std::string>& arguments) {
  std::tuple<Arguments...> values;
  Rest rest(arguments);
  const bool fits = std::apply([&](auto&... value) { return (read(rest, value) && ...); }, values);
  return fits && rest.empty() ? std::optional(std::move(values)) : std::nullopt;
}

}  // namespace attribute_detail

// The arguments of an attribute, if it is that one and they are of its types.
template <class... Arguments>
std::optional<std::tuple<Arguments...>> read_attribute(const Attribute& attribute, AttributeKey<Arguments...> key) {
  if (attribute.name != key.name) return std::nullopt;
  return attribute_detail::read_all<Arguments...>(attribute.arguments);
}

template <class... Arguments>
bool has_attribute(const std::vector<Attribute>& attributes, AttributeKey<Arguments...> key) {
  return std::any_of(attributes.begin(), attributes.end(), [&](const Attribute& a) { return a.name == key.name; });
}

template <class... Arguments>
std::optional<std::tuple<Arguments...>> find_attribute(const std::vector<Attribute>& attributes,
                                                       AttributeKey<Arguments...> key) {
  for (const Attribute& attribute : attributes)
    if (auto values = read_attribute(attribute, key)) return values;
  return std::nullopt;
}

template <class... Arguments>
Attribute make_attribute(AttributeKey<Arguments...> key, std::type_identity_t<Arguments>... arguments) {
  Attribute attribute{std::string(key.name), {}};
  (attribute_detail::write(attribute.arguments, std::move(arguments)), ...);
  return attribute;
}

template <class... Arguments>
void erase_attribute(std::vector<Attribute>& attributes, AttributeKey<Arguments...> key) {
  std::erase_if(attributes, [&](const Attribute& a) { return a.name == key.name; });
}

}  // namespace apl
