// Names that do not exist, with the one that was meant.
#include <doctest/doctest.h>

#include "tests/unit/frontend/support.h"

namespace apl::frontend::test {
namespace {

TEST_CASE("the name that was meant is a hint: prelude, modules, members, variables, types, fields") {
  struct Case {
    const char* text;
    const char* message;
    const char* meant;
  };
  for (const Case& c : {
           Case{"entry f (xs: []i32) : i32 = recude (+) 0 xs", "Unknown name \"recude\"", "reduce"},
           {"entry f (xs: []i32) : i32 = i32.summ xs", "Unknown name \"i32.summ\": module \"i32\" does not define it",
            "sum"},
           {"entry f (x: f32) : f32 = f23.sqrt x", "Unknown module or variable \"f23\"", "f32"},
           {"entry f (length_of: i64) : i64 = lenght_of + 1", "Unknown name \"lenght_of\"", "length_of"},
           {"def helper (x: i32) = x\nentry f (x: i32) : i32 = hepler x", "Unknown name \"hepler\"", "helper"},
           {"entry f (x: i23) : i32 = 1", "Unknown type \"i23\"", "i32"},
           {"type point = (f32, f32)\nentry f (p: piont) : f32 = p.0", "Unknown type \"piont\"", "point"},
           {"entry f (r: {total: i32, count: i32}) : i32 = r.totl", "has no field \"totl\"", "total"},
           {"entry f (x: f32) : f32 = f32.(sqtr x)", "Unknown name \"sqtr\"", "sqrt"},
       }) {
    CAPTURE(c.text);
    const Outcome outcome = check_text(c.text);
    REQUIRE_FALSE(outcome.diagnostics.empty());
    CHECK(outcome.diagnostics[0].message.find(c.message) != std::string::npos);
    CHECK(outcome.diagnostics[0].hint == "did you mean \"" + std::string(c.meant) + "\"?");
  }
}

TEST_CASE("no hint where nothing is near") {
  for (const char* text : {"entry f (x: i32) : i32 = y", "entry f (xs: []i32) : i32 = frobnicate xs",
                           "entry f (r: {total: i32}) : i32 = r.length", "entry f (x: i32) : i32 = ab + x"}) {
    CAPTURE(text);
    const Outcome outcome = check_text(text);
    REQUIRE_FALSE(outcome.diagnostics.empty());
    CHECK(outcome.diagnostics[0].hint == "");
  }
}

}  // namespace
}  // namespace apl::frontend::test
