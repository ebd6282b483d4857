// Passes in shared libraries: what a plug-in defines, and how a program loads it.
//
//   #include <apl/passes/plugin.h>
//   APL_PASS_PLUGIN("hello", "1.0", [](apl::PassRegistry& registry) {
//     registry.add(hello_pass());
//     registry.insert(apl::InsertionPoint::soac_end, "hello");  // in the standard pipelines, too
//   })
//
// The only symbol that a program looks for is the C function `apl_pass_plugin`. What it returns begins with the
// version of this interface; C++ is used between the two only after that and the build have been compared.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <variant>

#include "passes/pass.h"

namespace apl {

// Counts up with every change that plug-ins must be compiled again for.
inline constexpr std::uint32_t kPluginApiVersion = 2;

// What has to be equal beside the version: the compiler with its major version, the ABI of its standard library, and
// the sizes of the structures that both sides use.
#define APL_STRING_OF_(x) #x
#define APL_STRING_OF(x) APL_STRING_OF_(x)
#if defined(__clang__)
#define APL_PLUGIN_COMPILER "clang " APL_STRING_OF(__clang_major__)
#elif defined(__GNUC__)
#define APL_PLUGIN_COMPILER "g++ " APL_STRING_OF(__GNUC__)
#else
#define APL_PLUGIN_COMPILER "unknown compiler"
#endif
#if defined(_GLIBCXX_DEBUG)
#define APL_PLUGIN_LIBRARY "libstdc++ in debug mode"
#elif defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
#define APL_PLUGIN_LIBRARY "libstdc++ with the ABI before C++11"
#elif defined(__GLIBCXX__)
#define APL_PLUGIN_LIBRARY "libstdc++"
#elif defined(_LIBCPP_VERSION)
#define APL_PLUGIN_LIBRARY "libc++ ABI " APL_STRING_OF(_LIBCPP_ABI_VERSION)
#else
#define APL_PLUGIN_LIBRARY "unknown library"
#endif
#define APL_PLUGIN_BUILD APL_PLUGIN_COMPILER ", " APL_PLUGIN_LIBRARY

constexpr std::uint64_t plugin_layout() {
  std::uint64_t layout = 0;
  for (const std::size_t number :
       {sizeof(Module), sizeof(Function), sizeof(ValueTable::Info), sizeof(Type), sizeof(Stm), sizeof(Op),
        std::variant_size_v<AnyOp>, sizeof(Screma), sizeof(SegOp), sizeof(TileContract), sizeof(Diagnostic),
        sizeof(Remark), sizeof(PassInfo), sizeof(PassOption), sizeof(PassContext), sizeof(PassRegistry)})
    layout = layout * 1'000'003 + number;
  return layout;
}

// Plain C, and the first four fields are those of every version.
struct PassPlugin {
  std::uint32_t api_version;
  const char* build;  // APL_PLUGIN_BUILD
  const char* name;
  const char* version;  // of the plug-in, for people
  std::uint64_t layout;
  std::string (*add)(PassRegistry&);  // gives what went wrong, or nothing
};

// Adds a plug-in's passes so that no exception leaves the plug-in: a program may have a standard library of its own
// linked in, whose handlers do not see it. Compiled in the plug-in; `registry` is as it was if something goes wrong.
inline std::string add_plugin_passes(PassRegistry& registry, void (*add)(PassRegistry&)) {
  try {
    PassRegistry theirs = registry, guarded;
    add(theirs);
    for (PassInfo pass : theirs.passes()) {
      if (guarded.passes().size() >= registry.passes().size() && pass.run)
        pass.run = [name = pass.name, run = pass.run](Module& module, PassContext& context) -> Result<Change> {
          try {
            return run(module, context);
          } catch (const std::exception& exception) {
            return make_error(Code::bug_internal, {}, "pass '" + name + "' threw: " + exception.what());
          } catch (...) {
            return make_error(Code::bug_internal, {}, "pass '" + name + "' threw an object that is no std::exception");
          }
        };
      guarded.add(std::move(pass));
    }
    for (const auto& [point, pipelines] : theirs.insertions())
      for (const std::string& pipeline : pipelines) guarded.insert(point, pipeline);
    registry = std::move(guarded);
    return {};
  } catch (const std::exception& exception) {
    return std::string("an exception was thrown: ") + exception.what();
  } catch (...) {
    return "an object that is no std::exception was thrown";
  }
}

// Defines the entry point. `function`: a lambda without captures, or a function, that takes a PassRegistry&.
#define APL_PASS_PLUGIN(name, version, ...)                                                      \
  extern "C" __attribute__((visibility("default"))) const ::apl::PassPlugin* apl_pass_plugin() { \
    static constexpr void (*kAdd)(::apl::PassRegistry&) = __VA_ARGS__;                           \
    static constexpr ::apl::PassPlugin kPlugin{                                                  \
        ::apl::kPluginApiVersion,                                                                \
        APL_PLUGIN_BUILD,                                                                        \
        name,                                                                                    \
        version,                                                                                 \
        ::apl::plugin_layout(),                                                                  \
        [](::apl::PassRegistry& registry) { return ::apl::add_plugin_passes(registry, kAdd); }}; \
    return &kPlugin;                                                                             \
  }

// Loads the shared library `path` and lets it add its passes and insertions; on error `registry` is as it was. The
// library stays loaded until the process ends: its passes are code in it. Codes: command.no-such-file, and
// command.plugin-not-loadable, -no-entry, -mismatch, -conflict.
Status load_plugin(const std::string& path, PassRegistry& registry);

// Adds the pipeline of a text POINT:PIPELINE, as --insert takes it. Codes command.bad-argument, command.bad-pipeline.
Status insert_pipeline(std::string_view text, PassRegistry& registry);

}  // namespace apl
