// Names of a source, and texts that quote them, in generated text.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "codegen/codegen.h"
#include "codegen/emit/kernel_file.h"
#include "codegen/emit/library.h"
#include "codegen/kernel/c_string.h"
#include "runtime/names.h"
#include "tests/unit/codegen/emitted.h"

namespace {

TEST_CASE("names of the C API are Futhark's: identifiers as they are, others z-encoded") {
  CHECK(apl::api_name("main") == "main");
  CHECK(apl::api_name("snake_case2") == "snake_case2");
  CHECK(apl::api_name("Zz") == "Zz");
  CHECK(apl::api_name("x'") == "xzq");
  CHECK(apl::api_name("z'Z") == "zzzqZZ");
  CHECK(apl::api_name("+^") == "zpzc");
  CHECK(apl::api_name("1a") == "z31Ua");
  CHECK(apl::z_encoded("a b") == "az20Ub");
}

TEST_CASE("opaque types are called as Futhark calls them, by a hash where their name is none of C") {
  CHECK(apl::opaque_name("state") == "opaque_state");
  CHECK(apl::opaque_name("m.state") == "opaque_m_state");
  CHECK(apl::opaque_name("(i32, [][]f32, ())") == "opaque_tup3_i32_arr2d_f32_unit");
  CHECK(apl::opaque_name("[](point, i64)") == "opaque_arr1d_tup2_point_i64");
  // What md5sum says of these texts, of one and of two blocks.
  CHECK(apl::opaque_name("{a: i32, b: f32}") == "opaque_75f150a04a0d05e8bd029cfb94ecda7d");
  CHECK(apl::opaque_name("#left i32 | #right i32") == "opaque_183baad3ccccae422b1190b52ed6b9ac");
  const std::string long_record = "{" + std::string(60, 'a') + ": i32}";
  CHECK(apl::opaque_name(long_record) == "opaque_0727d225282452b682f6d5259b29b9e4");
}

TEST_CASE("different names are different symbols") {
  std::set<std::string> symbols;
  const char* const names[] = {"x'", "xzq", "x''", "zx", "x_", "x", "0xzq", "+", "zp", "a.b", "azib"};
  for (const char* name : names) symbols.insert(apl::symbol_part(name));
  CHECK(symbols.size() == std::size(names));
  CHECK(apl::symbol_part("main") == "main");
}

TEST_CASE("no legal name is a word, a macro or a name of the runtime") {
  for (const char* name :
       {"main",     "NULL",       "EOF",      "INT64_MAX",    "unix",     "linux",     "M_PI",
        "M_1_PI",   "PRId64",     "L_tmpnam", "apl_ceil_div", "int64_t",  "while",     "nullptr",
        "expf",     "j0",         "stdin",    "errno",        "cudaFree", "threadIdx", "pthread_create",
        "strtok_r", "APL_KERNEL", "x'",       "_x",           "2",        "",          "float2",
        "uchar4",   "longlong1",  "half2",    "host_to_half", "arg_0",    "arg_12"}) {
    const std::string legal = apl::legal_name(name);
    CAPTURE(name);
    CHECK(legal != name);
    CHECK(legal.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
          std::string::npos);
  }
  for (const char* name :
       {"x", "A", "T_a", "xs_2", "matrix", "Ab", "A_1", "hosts", "u1", "int5", "arg_", "arg_x", "args_0"})
    CHECK(apl::legal_name(name) == name);
  // Functions of the system's headers, which a global name would declare again.
  for (const char* name : {"pthread_create", "sched_yield", "close_range"}) CHECK(apl::legal_name(name) != name);
}

TEST_CASE("a scope gives each name once, with what is derived from it") {
  apl::NameScope file, one, two;
  CHECK(one.add("x'") == "x_");
  CHECK(one.add("x_") == "x__1");
  CHECK(one.add("b_capacity") == "b_capacity");
  CHECK(one.add("b", {"_capacity"}) == "b_1");
  CHECK(one.add("b_1_capacity") == "b_1_capacity_1");
  CHECK(one.add("a_b_c", {}, &file) == "a_b_c");
  CHECK(two.add("a_b_c") == "a_b_c");
  CHECK(two.add("a_b_c", {}, &file) == "a_b_c_1");
}

TEST_CASE("a comment ends where its line ends") {
  CHECK(apl::comment_text("dir/mm.fut") == "dir/mm.fut");
  CHECK(apl::comment_text("a\nint x;\r\t") == "a\\nint x;\\x0d\\x09");
  for (const char* text : {"a\\", "a?\?/", "\\\\\\"}) {
    const std::string made = apl::comment_text(text);
    CHECK(made.back() == '"');
  }
}

TEST_CASE("any text is a string of C") {
  CHECK(apl::c_string("a\"b\\c") == R"("a\"b\\c")");
  CHECK(apl::c_string("what?\?!") == R"("what?\?!")");
  CHECK(apl::c_string(std::string("\0011\t", 3)) == R"("\0011\011")");
  CHECK(apl::c_string("a\nb") == "\"a\\n\"\n  \"b\"");
}

// A file's name is quoted in comments and strings of all that is generated.
TEST_CASE("a file name with a newline or a backslash ends no comment") {
  apl::Module lowered = emitted::at(apl::Stage::memory,
                                    emitted::compiled("a.fut", "entry main [n] (xs: [n]i32) : [n]i32 = map (+ 1) xs"));
  lowered.file = "a\n#error injected\n\\";
  const auto check = [](const std::string& text) { CHECK(text.find("\n#error injected") == std::string::npos); };
  for (const apl::Target& target : {apl::c_target(), apl::cuda_target()}) {
    const auto program = apl::generate(lowered, target, {});
    REQUIRE(program);
    check(program->host);
    check(program->kernels);
    const auto library = apl::generate_library(lowered, target, {}, {.name = "a\n#error injected\n\"", .version = "1"});
    REQUIRE(library);
    check(library->source);
    check(library->header);
    check(library->manifest);
  }
  const auto kernel = apl::generate_kernel_file(lowered, "", {});
  REQUIRE(kernel);
  check(kernel->text);
  CHECK(kernel->text.find("cudaError_t main_1(") != std::string::npos);
}

}  // namespace
