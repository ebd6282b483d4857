#include "passes/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <set>

#include "ir/read_file.h"
#include "ir/similar_name.h"
#include "passes/pipeline.h"

namespace apl {

namespace {

Diagnostic plugin_error(Code code, const std::string& path, std::string message) {
  Diagnostic error = make_error(code, {}, std::move(message));
  error.file = path;
  return error;
}

// Why the two cannot work together, or nothing.
std::string mismatch(const PassPlugin& plugin) {
  if (plugin.api_version != kPluginApiVersion)
    return fmt::format("the plug-in was built for version {} of the plug-in interface, this program has version {}",
                       plugin.api_version, kPluginApiVersion);
  if (std::string_view(plugin.build) != APL_PLUGIN_BUILD)
    return fmt::format("the plug-in was built by {}, this program by {}", plugin.build, APL_PLUGIN_BUILD);
  if (plugin.layout != plugin_layout())
    return "the plug-in was built with the headers of another version of apl: its structures have other sizes";
  return {};
}

// Whether every insertion is a pipeline that begins at the stage of its point.
Status check_insertions(const PassRegistry& registry) {
  for (const auto& [point, pipelines] : registry.insertions()) {
    const InsertionPointInfo& info = insertion_points()[static_cast<std::size_t>(point)];
    for (const std::string& text : pipelines) {
      const auto pipeline = parse_pipeline(text, registry);
      if (!pipeline) return pipeline.error();
      Stage stage = info.stage;
      for (const std::size_t k : pipeline->order) {
        const PassInfo& pass = registry.passes()[k];
        if ((pass.takes & stage_bit(stage)) == 0 || pass.gives(stage) != stage)
          return make_error(
              Code::command_bad_argument, {},
              fmt::format("pass '{}' cannot stand at '{}', where the module is at stage {} and stays there", pass.name,
                          info.name, to_text(info.stage)));
      }
    }
  }
  return Unit{};
}

// Whether no pass has a name that another has.
Status check_names(const PassRegistry& registry, const PassPlugin& plugin) {
  std::set<std::string> names;
  for (const PassInfo& pass : registry.passes()) {
    if (!names.insert(pass.name).second)
      return make_error(
          Code::command_plugin_conflict, {},
          fmt::format("plug-in '{}' adds a pass '{}', but there is one of that name", plugin.name, pass.name));
    if (!pass.run)
      return make_error(Code::command_plugin_conflict, {},
                        fmt::format("plug-in '{}' adds a pass '{}' without a function", plugin.name, pass.name));
  }
  return Unit{};
}

}  // namespace

Status load_plugin(const std::string& path, PassRegistry& registry) {
  if (auto readable = read_bytes(path); !readable) return std::move(readable).error();
  // Without a slash the system would look in its own folders.
  const std::string place = path.find('/') == std::string::npos ? "./" + path : path;
  void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* why = dlerror();
    return plugin_error(Code::command_plugin_not_loadable, path,
                        fmt::format("cannot be loaded as a shared library: {}", why ? why : "no reason is known"));
  }
  using Entry = const PassPlugin* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "apl_pass_plugin"));
  if (entry == nullptr)
    return plugin_error(Code::command_plugin_no_entry, path,
                        "not a plug-in: the library does not define the C function `apl_pass_plugin` "
                        "(APL_PASS_PLUGIN of <apl/passes/plugin.h> defines it)");
  const PassPlugin* plugin = entry();
  if (plugin == nullptr)
    return plugin_error(Code::command_plugin_no_entry, path, "not a plug-in: `apl_pass_plugin` returns null");
  if (std::string why = mismatch(*plugin); !why.empty())
    return plugin_error(Code::command_plugin_mismatch, path, fmt::format("{}; compile it again", why));
  PassRegistry next = registry;
  if (const std::string why = plugin->add(next); !why.empty())
    return plugin_error(Code::command_plugin_conflict, path,
                        fmt::format("plug-in '{}' cannot add its passes: {}", plugin->name, why));
  for (const Status& status : {check_names(next, *plugin), check_insertions(next)}) {
    if (status) continue;
    Diagnostic error = plugin_error(Code::command_plugin_conflict, path, status.error().message);
    error.hint = status.error().hint;
    return error;
  }
  registry = std::move(next);
  return Unit{};
}

Status insert_pipeline(std::string_view text, PassRegistry& registry) {
  const std::size_t colon = text.find(':');
  std::vector<std::string> names;
  for (const InsertionPointInfo& info : insertion_points()) names.emplace_back(info.name);
  const std::string name(text.substr(0, colon));
  const auto point = insertion_point(name);
  if (colon == std::string_view::npos || !point) {
    Diagnostic error =
        make_error(Code::command_bad_argument, {},
                   colon == std::string_view::npos
                       ? fmt::format("--insert takes POINT:PIPELINE, as soac-end:simplify, not '{}'", text)
                       : fmt::format("there is no insertion point '{}'", name));
    if (const auto similar = similar_name(name, names)) error.hint = fmt::format("did you mean '{}'?", *similar);
    error.notes.push_back({fmt::format("the insertion points are: {}", fmt::join(names, ", ")), {}});
    return error;
  }
  PassRegistry next = registry;
  next.insert(*point, std::string(text.substr(colon + 1)));
  if (auto fits = check_insertions(next); !fits) return std::move(fits).error();
  registry = std::move(next);
  return Unit{};
}

}  // namespace apl
