#include "ir/attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/scalar.h"
#include "ir/similar_name.h"

namespace apl {
namespace {

template <class T>
struct Said {
  static std::string text() { return fmt::format("{}", fmt::join(attribute::kWords<T>, " or ")); }
};
template <>
struct Said<std::string> {
  static std::string text() { return "NAME"; }
};
template <>
struct Said<std::int64_t> {
  static std::string text() { return "NUMBER"; }
};
template <>
struct Said<attribute::Names> {
  static std::string text() { return "NAME, ..."; }
};
template <class T>
struct Said<std::optional<T>> {
  static std::string text() { return fmt::format("[{}]", Said<T>::text()); }
};

template <class Signature>
struct Signed;
template <class... Arguments>
struct Signed<void(Arguments...)> {
  static bool fits(const std::vector<std::string>& arguments) {
    return attribute_detail::read_all<Arguments...>(arguments).has_value();
  }
  static std::string_view said() {
    if constexpr (sizeof...(Arguments) > 0) {
      static const std::string types = fmt::format(
          "({})", fmt::join(std::array<std::string, sizeof...(Arguments)>{Said<Arguments>::text()...}, ", "));
      return types;
    }
    return "";
  }
};

}  // namespace

std::span<const AttributeInfo> declared_attributes() {
  using namespace attribute;
  static const std::vector<AttributeInfo> all = [] {
    std::vector<AttributeInfo> made;
    constexpr ScalarType kTypes[] = {
#define APL_SCALAR(name, ...) ScalarType::name,
#include "ir/scalar_types.def"
    };
    for (const ScalarType type : kTypes)
      if (is_storage(type))
        made.push_back({to_text(type), Signed<void(Names)>::said(), AttributePlace::entry, "user",
                        "parameters that are kept in this type", &Signed<void(Names)>::fits});
    const auto declared = std::to_array<AttributeInfo>({
#define APL_ATTRIBUTE(id, text, arguments, place, set_by, summary) \
  {text, Signed<void arguments>::said(), AttributePlace::place, set_by, summary, &Signed<void arguments>::fits},
#include "ir/attributes.def"
    });
    made.insert(made.end(), declared.begin(), declared.end());
    return made;
  }();
  return all;
}

const AttributeInfo* find_attribute_info(std::string_view name) {
  const auto all = declared_attributes();
  const auto found = std::find_if(all.begin(), all.end(), [&](const AttributeInfo& info) { return info.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::string similar_attribute(std::string_view name) {
  std::vector<std::string> names;
  for (const AttributeInfo& info : declared_attributes())
    if (info.is_users()) names.emplace_back(info.name);
  return similar_name(name, names).value_or("");
}

std::optional<std::string> check_attribute(const Attribute& attribute, bool of_function) {
  const AttributeInfo* info = find_attribute_info(attribute.name);
  if (info == nullptr || info->is_ignored()) return std::nullopt;
  const bool is_here = info->place == AttributePlace::any || (info->place != AttributePlace::expression) == of_function;
  if (!is_here)
    return fmt::format("the attribute `{}` is one of {}", info->name, of_function ? "statements" : "functions");
  if (!info->fits(attribute.arguments))
    return fmt::format("the attribute `{}` takes {}, not ({})", info->name,
                       info->arguments.empty() ? "no arguments" : info->arguments,
                       fmt::join(attribute.arguments, ", "));
  return std::nullopt;
}

}  // namespace apl
