// The one place where doctest's own code and main() are compiled.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <set>

#include "tests/unit/skip.h"

namespace {

constexpr int kSkipped = 77;  // SKIP_RETURN_CODE in tests/CMakeLists.txt

std::set<std::string>& reasons() {
  static std::set<std::string> all;
  return all;
}

}  // namespace

void tests::skip(const std::string& reason) { reasons().insert(reason); }

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int result = context.run();
  if (context.shouldExit() || result != 0 || reasons().empty()) return result;
  for (const std::string& reason : reasons()) std::printf("skipped: %s\n", reason.c_str());
  return kSkipped;
}
