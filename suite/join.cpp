#include "suite/join.h"

#include <fmt/format.h>

#include <utility>

#include "ir/walk.h"

namespace apl::suite {

namespace {

// Renames what one module's functions call, and moves the numbers of inlined calls behind those of the modules before.
class Renaming {
 public:
  Renaming(std::size_t number, std::size_t calls_before)
      : number_(number), calls_before_(static_cast<std::uint32_t>(calls_before)) {}

  Location location(Location location) const {
    if (location.call != 0) location.call += calls_before_;
    return location;
  }

  BodyPtr body(const BodyPtr& body) const {
    std::vector<Stm> stms = body->stms;
    for (Stm& stm : stms) {
      stm.location = location(stm.location);
      if (const auto* call = get_if<Apply>(stm)) {
        stm.op = Apply{joined_name(number_, call->function), call->arguments};
      } else if (has_bodies(stm.op)) {
        stm.op = map_bodies(stm.op, [&](const BodyPtr& inner) { return this->body(inner); });
      }
    }
    return make_body(std::move(stms), body->results);
  }

  FunctionPtr function(const Function& function) const {
    Function renamed = function;
    renamed.name = joined_name(number_, function.name);
    if (renamed.entry) {
      renamed.entry->name = joined_name(number_, function.entry->name);
      for (EntryInfo::Constant& constant : renamed.entry->constants)
        constant.function = joined_name(number_, constant.function);
    }
    renamed.location = location(function.location);
    renamed.body = body(function.body);
    return std::make_shared<const Function>(std::move(renamed));
  }

 private:
  std::size_t number_;
  std::uint32_t calls_before_;
};

}  // namespace

std::string joined_name(std::size_t number, std::string_view name) { return fmt::format("p{}_{}", number, name); }

Module join(const std::vector<const Module*>& modules) {
  Module joined;
  for (std::size_t number = 0; number < modules.size(); ++number) {
    const Module& module = *modules[number];
    joined.stage = module.stage;
    const Renaming renaming(number, joined.calls.size());
    for (const FunctionPtr& function : module.functions) joined.functions.push_back(renaming.function(*function));
    for (const Location& call : module.calls) joined.calls.push_back(renaming.location(call));
    for (KnownMatrix known : module.known) {
      known.entry = joined_name(number, known.entry);
      joined.known.push_back(std::move(known));
    }
  }
  return joined;
}

std::map<std::string, std::int64_t> joined_parameters(std::size_t number, const Module& module,
                                                      const std::map<std::string, std::int64_t>& parameters) {
  std::map<std::string, std::int64_t> joined;
  for (const auto& [name, value] : parameters) {
    const std::string_view owner = std::string_view(name).substr(0, name.find('.'));
    const Function* function = module.find(owner);
    const bool is_of_entry = module.find_entry(owner) != nullptr || (function != nullptr && function->is_constant());
    joined.emplace(is_of_entry ? joined_name(number, name) : name, value);
  }
  return joined;
}

}  // namespace apl::suite
