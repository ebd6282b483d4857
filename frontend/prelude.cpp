#include "frontend/prelude.h"

#include <algorithm>
#include <array>

namespace apl::frontend {

namespace {

enum class Class : std::uint8_t { any, numbers, integers, floats, bits, ordered, equality };

constexpr Constraint constraint_of(Class c) {
  switch (c) {
    case Class::numbers: return {.scalars = kNumbers};
    case Class::integers: return {.scalars = kIntegers};
    case Class::floats: return {.scalars = kFloats};
    case Class::bits: return {.scalars = kBits};
    case Class::ordered: return {.scalars = kOrdered};
    case Class::equality: return {.equality = true};
    default: return {};
  }
}

constexpr PreludeEntry kBuiltins[] = {
#define APL_BUILTIN(id, name, arity, constraint, signature) \
  {Builtin::id, name, arity, constraint_of(Class::constraint), signature},
#include "frontend/prelude.def"
};

constexpr PreludeEntry kMembers[] = {
#define APL_MEMBER(id, name, arity, domain, signature) \
  {Builtin::id, name, arity, constraint_of(Class::domain), signature},
#include "frontend/prelude.def"
};

constexpr PreludeEntry kConversion = {Builtin::convert, "convert", 1, {}, ""};

}  // namespace

const PreludeEntry* find_builtin(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kBuiltins), std::end(kBuiltins), [&](const auto& e) { return e.name == name; });
  return found == std::end(kBuiltins) ? nullptr : found;
}

const PreludeEntry* find_member(ScalarType module, std::string_view name) {
  if (find_conversion(module, name)) return &kConversion;
  for (const PreludeEntry& entry : kMembers)
    if (entry.name == name && contains(entry.constraint.scalars, module)) return &entry;
  return nullptr;
}

void each_member_name(const std::function<void(std::string_view)>& visit) {
  for (const PreludeEntry& entry : kMembers) visit(entry.name);
  for (std::string_view type : {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "bool"})
    visit(type);
}

std::optional<ScalarType> find_conversion(ScalarType /* each has all */, std::string_view name) {
  return find_module(name);
}

ScalarType bits_type(ScalarType type) {
  switch (bit_width(type)) {
    case 8: return ScalarType::u8;
    case 16: return ScalarType::u16;
    case 32: return ScalarType::u32;
    default: return ScalarType::u64;
  }
}

std::optional<ScalarType> find_module(std::string_view name) {
  const auto type = scalar_type_from_text(name);
  if (!type || *type == ScalarType::unit || is_storage(*type)) return std::nullopt;
  return type;
}

std::vector<std::string> builtin_names() {
  std::vector<std::string> names;
  for (const PreludeEntry& entry : kBuiltins) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> member_names(ScalarType module) {
  std::vector<std::string> names = module_names();
  for (const PreludeEntry& entry : kMembers)
    if (contains(entry.constraint.scalars, module)) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> module_names() {
  std::vector<std::string> names;
  for (int k = 0; k <= static_cast<int>(ScalarType::unit); ++k) {
    const std::string_view name = apl::to_text(static_cast<ScalarType>(k));
    if (find_module(name)) names.emplace_back(name);
  }
  return names;
}

}  // namespace apl::frontend
