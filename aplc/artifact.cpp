#include "aplc/artifact.h"

#include <fmt/format.h>

#include <cstdlib>

namespace aplc {
namespace {

// The words of an environment variable, as a shell would take them.
std::string from_environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}

std::string shell_word(const std::string& word) {
  std::string result = "'";
  for (char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace

std::string artifact_command(const apl::Target& target, const std::string& program, const std::string& source) {
  return fmt::format("{} {} {} -o {} {}", from_environment("CC", "cc"),
                     from_environment("CFLAGS", target.on_device() ? "-O2" : "-O3 -march=native"),
                     target.on_device() ? "" : "-fopenmp", shell_word(program), shell_word(source)) +
         (target.on_device() ? " -lm -ldl -lpthread" : " -lm");
}

}  // namespace aplc
