#include "tests/batch/compiler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/backends/toolchain.h"

namespace apl::testing {

void CompilerOptions::add_to(CommandLine& line) {
  line.option("--cc", compiler, "the C compiler, such as gcc or clang");
  line.option("--march", machine, "machine that C is compiled for: native, haswell, skylake-avx512, znver3, ..");
  line.option("--c-flags", flags, "flags after those that users get, such as -O1");
}

ProgramOptions CompilerOptions::program_options() const {
  ProgramOptions options;
  options.c_compiler = compiler;
  if (machine != "native") options.c_flags.push_back("-march=" + machine);
  options.c_flags.insert(options.c_flags.end(), flags.begin(), flags.end());
  return options;
}

std::string CompilerOptions::text() const {
  std::string text;
  if (compiler != "cc") text += " --cc=" + compiler;
  if (machine != "native") text += " --march=" + machine;
  if (!flags.empty()) text += fmt::format(" --c-flags={}", fmt::join(flags, ","));
  return text;
}

Status check_machine(const CompilerOptions& options) {
  // A program of the compiler's own asks the processor: what the compiler may use is what it defines.
  constexpr std::string_view kText = R"(
#define NEED(name) if (!__builtin_cpu_supports(name)) return name;
const char* apl_missing(void) {
  __builtin_cpu_init();
#ifdef __AVX2__
  NEED("avx2")
#endif
#ifdef __FMA__
  NEED("fma")
#endif
#ifdef __AVX512F__
  NEED("avx512f")
#endif
#ifdef __AVX512VNNI__
  NEED("avx512vnni")
#endif
  return 0;
}
)";
  if (options.machine == "native") return Unit{};
  Compilation compilation;
  // Nothing of it may be what the processor lacks.
  compilation.command = {options.compiler, "-shared", "-fPIC", "-O0", "-march=" + options.machine};
  compilation.files = {{"machine.c", kText}};
  compilation.output = "machine.so";
  auto object = compile_shared(compilation, {});
  if (!object) return std::move(object).error();
  const char* missing = object->function<const char* (*)()>("apl_missing")();
  if (missing == nullptr) return Unit{};
  return make_error(Code::unsupported_backend, {},
                    fmt::format("this processor does not run code for {}: it has no {}", options.machine, missing));
}

}  // namespace apl::testing
