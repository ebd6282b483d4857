#include "ir/call_table.h"

#include <doctest/doctest.h>

#include "ir/parse.h"
#include "ir/print.h"

namespace apl {

TEST_CASE("a call has one number, and the calls around it have smaller ones") {
  CallTable table;
  const std::uint32_t outer = table.add({.line = 9, .column = 1, .end_line = 9, .end_column = 4});
  const Location call{.line = 3, .column = 5, .end_line = 3, .end_column = 9, .call = outer};
  const std::uint32_t inner = table.add(call);
  CHECK(outer == 1);
  CHECK(inner == 2);
  CHECK(table.add(call) == inner);
  Location elsewhere = call;
  elsewhere.call = 0;
  CHECK(table.add(elsewhere) == 3);
  CHECK(table.calls().size() == 3);
  CHECK(table.calls()[inner - 1] == call);
}

TEST_CASE("a call whose location is not known is that of the call around it") {
  CallTable table;
  CHECK(table.add({}) == 0);
  CHECK(table.calls().empty());
}

TEST_CASE("the notes of an error are its calls, the innermost first, however wrong the table is") {
  const std::vector<Location> calls{
      {.line = 9, .column = 1}, {.line = 3, .column = 5, .call = 1}, {.line = 7, .call = 3}};
  const auto lines = [&](std::uint32_t call) {
    Diagnostic error = make_error(Code::run_assertion, {.line = 2, .column = 1, .call = call}, "no");
    note_calls(error, calls);
    std::vector<std::uint32_t> result;
    for (const Note& note : error.notes) result.push_back(note.location.line);
    return result;
  };
  CHECK(lines(0).empty());
  CHECK(lines(1) == std::vector<std::uint32_t>{9});
  CHECK(lines(2) == std::vector<std::uint32_t>{3, 9});
  CHECK(lines(3).front() == 7);  // it says that it is inside itself
  CHECK(lines(4).empty());
}

TEST_CASE("what is parsed shares its calls") {
  const auto module = parse_module(R"(stage soac

fun f [] (x : i32) : {i32} = {
  let {a : i32} = add(x, x) @1:1-1:5 from 4:1-4:5 from 8:1-8:5
  let {b : i32} = add(a, a) @2:1-2:5 from 4:1-4:5 from 8:1-8:5
  let {c : i32} = add(b, b) @3:1-3:5 from 8:1-8:5
  let {d : i32} = add(c, c) @1:1-1:5 from 4:1-4:5
  in {d}
}
)",
                                   "test");
  REQUIRE(module);
  CHECK(module->calls.size() == 3);
  const std::vector<Stm>& stms = module->functions.front()->body->stms;
  CHECK(stms[0].location.call == stms[1].location.call);
  CHECK(module->calls[stms[0].location.call - 1].call == stms[2].location.call);
  CHECK(module->calls[stms[3].location.call - 1].call == 0);
}

}  // namespace apl
