// Parallel loops of generated C as functions of their own, and what runs them (runtime/backends/threads.h).
#include "codegen/kernel/loop_functions.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "codegen/kernel/kernel_language.h"
#include "machine/target/target.h"
#include "runtime/backends/toolchain.h"
#include "runtime/embed.h"
#include "tests/unit/codegen/kernels.h"

namespace {

using namespace apl::kernel;
using kernels::contains;

LoopName pointer_name(std::string name) { return {.name = std::move(name), .type = "float *", .is_alone = true}; }
LoopName number_name(std::string name) { return {.name = std::move(name), .type = "int64_t"}; }

// ---- programs that are compiled and run ----

// out[at] = 100 * (100 * i + j) + k, and how often that was done is counted at `cells` behind it, for all i from 1 up
// to a, j from 2 up to b by 3 and k below c; `shared` of the three loops are shared by threads.
Function shared_nest(int shared) {
  const auto var = [](const char* name) { return variable(name); };
  const auto times = [](std::int64_t factor, ExprPtr e) { return mul(literal(factor), std::move(e)); };
  const ExprPtr number = infix("+", times(100, infix("+", times(100, var("i")), var("j"))), var("k"));
  Block body{declare(kIndex, "at",
                     infix("+", infix("*", infix("+", infix("*", var("i"), var("b")), var("j")), var("c")), var("k"))),
             assign(element("out", var("at")), number),
             assign(element("out", infix("+", var("cells"), var("at"))),
                    infix("+", element("out", infix("+", var("cells"), var("at"))), literal(std::int64_t{1})))};
  Stmt inner = for_loop(kIndex, "k", var("c"), std::move(body));
  Stmt middle = for_loop(kIndex, "j", var("b"), {std::move(inner)});
  middle.from = literal(std::int64_t{2}), middle.step = literal(std::int64_t{3});
  Stmt outer = for_loop(kIndex, "i", var("a"), {std::move(middle)});
  outer.from = literal(std::int64_t{1});
  outer.parallel = true;
  outer.collapse = shared;
  Function function;
  function.name = "nest_" + std::to_string(shared);
  function.signature = "void " + function.name + "(int64_t *restrict out, int64_t a, int64_t b, int64_t c)";
  function.params = {{"out", kIndex, BufferKind::global_out},
                     {"a", kIndex, std::nullopt},
                     {"b", kIndex, std::nullopt},
                     {"c", kIndex, std::nullopt}};
  function.body = {declare(kIndex, "cells", literal(std::int64_t{1000})), std::move(outer)};
  return function;
}

// A runner that does the units of a call from the last to the first, and notes how many there were and of how many
// threads.
constexpr const char* kLoopRunner = R"(
int64_t units, threads;
static void run_from_the_last(int64_t some, const struct apl_work *work) {
  units = work->width[0], threads = some;
  for (int64_t unit = units; unit-- > 0;) work->body(work->job, 0, unit, 0);
}
__attribute__((constructor)) static void begin(void) { apl_thread_pool = run_from_the_last; }

static void count_round(const void *names, int64_t begin, int64_t end) {
  int64_t *const all = *(int64_t *const *)names;
  for (int64_t k = begin; k < end; ++k) ++all[k];
}
void rounds(int64_t *all, int64_t count, int64_t most) { apl_loop(count_round, &all, count, most); }
int64_t units_of(int64_t elements) { return apl_units_of(elements); }
)";

struct CompiledLoops {
  explicit CompiledLoops(const std::string& text) {
    auto made = apl::TemporaryFolder::make("/tmp");
    REQUIRE(made);
    const std::string folder = made->path(), source = folder + "/loops.c", object = folder + "/loops.so";
    std::ofstream(folder + "/context.h") << apl::context_header_text();
    std::ofstream(folder + "/threads.h") << apl::threads_header_text();
    std::ofstream(source) << "#define APL_PROGRAM\n#include \"threads.h\"\n" << text;
    const auto compiled = apl::run_tool({"cc", "-std=c11", "-Wall", "-Wextra", "-Wno-unused-function", "-Werror", "-O2",
                                         "-shared", "-fPIC", source, "-o", object});
    REQUIRE_MESSAGE(compiled, compiled.error().message);
    handle = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE(handle);
  }
  CompiledLoops(const CompiledLoops&) = delete;
  CompiledLoops& operator=(const CompiledLoops&) = delete;
  ~CompiledLoops() {
    if (handle) dlclose(handle);
  }

  template <class T>
  T* symbol(const char* name) const {
    void* const found = dlsym(handle, name);
    REQUIRE(found);
    return reinterpret_cast<T*>(found);
  }

  void* handle = nullptr;
};

}  // namespace

TEST_CASE("loop functions: a loop gets the names that it reads, in the order of their declarations") {
  LoopFunctions loops("f");
  loops.declare(pointer_name("B"));
  loops.declare(pointer_name("A"));
  loops.declare(number_name("n"));
  loops.declare(number_name("n_1"));
  CHECK(loops.add("  A[n_1] = B[0];\n", "n", "8") ==
        "apl_loop(apl_part_of_f, &(const struct apl_names_of_f){B, A, n_1}, n, 8);");
  const std::string text = loops.take();
  CHECK(contains(text, "struct apl_names_of_f {\n  float *B;\n  float *A;\n  int64_t n_1;\n};\n"));
  CHECK(contains(text, "(int64_t apl_begin, int64_t apl_end, float *restrict B, float *restrict A, int64_t n_1) {\n"));
  CHECK(contains(text, "apl_loop_of_f(begin, end, all->B, all->A, all->n_1);"));
}

TEST_CASE("loop functions: names end with their block") {
  LoopFunctions loops("f");
  loops.declare(pointer_name("A"));
  loops.begin_block();
  loops.declare(number_name("x"));
  CHECK(contains(loops.add("  A[0] = x;\n", "n", "8"), "{A, x}"));
  loops.end_block();
  CHECK(contains(loops.add("  float x = 1; A[0] = x;\n", "n", "8"), "apl_part_2_of_f"));
  CHECK(contains(loops.take(), "struct apl_names_2_of_f {\n  float *A;\n};\n"));
}

TEST_CASE("loop functions: literals are declared again, and a loop may read nothing else") {
  LoopFunctions loops("f");
  loops.declare({.name = "n", .type = "int64_t", .literal = "32"});
  CHECK(loops.add("  g(n);\n", "n", "8") == "apl_loop(apl_part_of_f, NULL, n, 8);");
  const std::string text = loops.take();
  CHECK(contains(text, "apl_loop_of_f(int64_t apl_begin, int64_t apl_end) {\n  const int64_t n = 32;\n"));
  CHECK_FALSE(contains(text, "struct"));
  // The function around it does not declare what only the loop reads.
  const std::string declarations = "  const int64_t n = 32;\n  const int64_t n_1 = 8;\n  g(n_1);\n";
  CHECK(loops.without_unread(declarations) == "  const int64_t n_1 = 8;\n  g(n_1);\n");
  CHECK(loops.without_unread(declarations + "  g(n);\n") == declarations + "  g(n);\n");
}

TEST_CASE("loop functions: each round of a nest is done once, however the rounds are cut") {
  ::setenv("OMP_NUM_THREADS", "3", 1);
  std::string text = kLoopRunner;
  for (const int shared : {1, 2, 3}) text += print(shared_nest(shared), *apl::find_dialect("c"));
  const CompiledLoops compiled(text);
  for (const int shared : {1, 2, 3}) {
    auto* const run = compiled.symbol<void(std::int64_t*, std::int64_t, std::int64_t, std::int64_t)>(
        ("nest_" + std::to_string(shared)).c_str());
    for (const std::int64_t a : {0, 1, 2, 7})
      for (const std::int64_t b : {0, 2, 3, 5, 9})
        for (const std::int64_t c : {0, 1, 4}) {
          std::vector<std::int64_t> got(2000), wanted(2000);
          run(got.data(), a, b, c);
          for (std::int64_t i = 1; i < a; ++i)
            for (std::int64_t j = 2; j < b; j += 3)
              for (std::int64_t k = 0; k < c; ++k) {
                const auto at = static_cast<std::size_t>((i * b + j) * c + k);
                wanted[at] = 100 * (100 * i + j) + k;
                ++wanted[1000 + at];
              }
          CHECK_MESSAGE(got == wanted, shared << " loops of " << a << ", " << b << ", " << c);
        }
  }
  ::unsetenv("OMP_NUM_THREADS");
}

TEST_CASE("loop functions: rounds are cut into at most four units for each thread, and few elements are not cut") {
  ::setenv("OMP_NUM_THREADS", "3", 1);
  const CompiledLoops compiled(kLoopRunner);
  auto* const rounds = compiled.symbol<void(std::int64_t*, std::int64_t, std::int64_t)>("rounds");
  auto* const units_of = compiled.symbol<std::int64_t(std::int64_t)>("units_of");
  auto* const units = compiled.symbol<std::int64_t>("units");
  auto* const threads = compiled.symbol<std::int64_t>("threads");
  struct Case {
    std::int64_t count, most, units, threads;
  };
  for (const Case& c : {Case{0, INT64_MAX, 0, 0}, Case{1, INT64_MAX, 0, 0}, Case{2, INT64_MAX, 2, 2},
                        Case{50, INT64_MAX, 12, 3}, Case{50, 1, 0, 0}, Case{50, 5, 5, 3}, Case{12, 100, 12, 3}}) {
    *units = *threads = 0;
    std::vector<std::int64_t> done(static_cast<std::size_t>(c.count) + 1);
    rounds(done.data(), c.count, c.most);
    CHECK(*units == c.units);
    CHECK(*threads == c.threads);
    std::vector<std::int64_t> once(done.size(), 1);
    once.back() = 0;
    CHECK(done == once);
  }
  CHECK(units_of(0) == 1);
  CHECK(units_of(4095) == 1);
  CHECK(units_of(4096) == 4);
  CHECK(units_of(std::int64_t{1} << 20) == 1024);
  ::unsetenv("OMP_NUM_THREADS");
}
