// Expressions of the language that kernels are generated in.
#include "codegen/kernel/kernel_language.h"

#include <doctest/doctest.h>

#include <string>

#include "machine/target/target.h"

namespace {

using namespace apl::kernel;

std::string text_of(const ExprPtr& e) { return print(e, *apl::find_dialect("cuda")); }

TEST_CASE("a product with a large number is no int, whatever it is multiplied by") {
  const ExprPtr row = variable("row");
  CHECK(text_of(mul(row, literal(std::int64_t{400'000'000}))) == "row * 400000000LL");
  CHECK(text_of(mul(literal(std::int64_t{400'000'000}), row)) == "400000000LL * row");
  CHECK(text_of(mul(row, literal(std::int64_t{4096}))) == "row * 4096");
  CHECK(text_of(mul(row, literal(std::int64_t{5'000'000'000}))) == "row * 5000000000");
  CHECK(text_of(mul(literal(std::int64_t{1'000'000}), literal(std::int64_t{3}))) == "3000000");
}

}  // namespace
