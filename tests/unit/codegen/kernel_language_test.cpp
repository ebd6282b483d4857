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

TEST_CASE("constants that nothing names are dropped, and those that only these named") {
  for (const char* name : {"c", "cuda"}) {
    Function function;
    function.name = "f";
    function.body = {declare(kIndex, "first", literal(std::int64_t{1})),
                     declare(kIndex, "second", add(variable("first"), variable("n"))),
                     declare(kIndex, "kept", variable("n")), declare(kIndex, "called", call("apl_thread", {})),
                     for_loop(kIndex, "i", variable("n"),
                              {declare(kIndex, "inner", variable("i")), assign(variable("kept"), variable("i"))})};
    drop_unread(function, *apl::find_dialect(name));
    const std::string text = print(function, *apl::find_dialect(name));
    for (const char* dropped : {"first", "second", "inner"}) CHECK(text.find(dropped) == std::string::npos);
    for (const char* kept : {"kept", "called"}) CHECK(text.find(kept) != std::string::npos);
  }
}

}  // namespace
