// The passes of the tree, and the small accessors of passes/pass.h.
#include <stdexcept>

#include "passes/pass.h"

namespace apl {

#define APL_PASS(function, name) PassInfo function##_pass();
#include "passes/passes.def"
#undef APL_PASS

namespace {

template <class T>
const T& option(const std::map<std::string, OptionValue>& options, std::string_view name) {
  const auto found = options.find(std::string(name));
  if (found == options.end()) throw std::out_of_range("undeclared option '" + std::string(name) + "'");
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) throw std::out_of_range("option '" + std::string(name) + "' has another type");
  return *value;
}

}  // namespace

bool PassContext::flag(std::string_view name) const { return option<bool>(options, name); }
std::int64_t PassContext::integer(std::string_view name) const { return option<std::int64_t>(options, name); }
const std::string& PassContext::text(std::string_view name) const { return option<std::string>(options, name); }

PassRegistry PassRegistry::builtin() {
  PassRegistry registry;
#define APL_PASS(function, name) registry.add(function##_pass());
#include "passes/passes.def"
#undef APL_PASS
  return registry;
}

const std::vector<InsertionPointInfo>& insertion_points() {
  static const std::vector<InsertionPointInfo> kPoints{
#define APL_INSERTION_POINT(name, text, stage, where) {InsertionPoint::name, text, Stage::stage, where},
#include "passes/insertion_points.def"
#undef APL_INSERTION_POINT
  };
  return kPoints;
}

std::optional<InsertionPoint> insertion_point(std::string_view name) {
  for (const InsertionPointInfo& info : insertion_points())
    if (info.name == name) return info.point;
  return std::nullopt;
}

const PassInfo* PassRegistry::find(std::string_view name) const {
  for (const PassInfo& pass : passes_) {
    if (pass.name == name) return &pass;
  }
  return nullptr;
}

}  // namespace apl
