// Whatever the bytes are, the frontend reports errors; it does not crash, hang or run out of memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "ir/verify.h"
#include "tests/unit/frontend/support.h"

namespace apl::frontend {

namespace {

std::vector<std::string> examples() {
  const auto folder = std::filesystem::path(__FILE__).parent_path() / "../../../examples";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".fut") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (const auto& file : files) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    texts.push_back(text.str());
  }
  return texts;
}

// One change: a byte replaced, a piece removed, doubled, or moved in from elsewhere.
void mutate(std::string& text, std::mt19937& random, const std::vector<std::string>& pool) {
  auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  static const std::vector<std::string> kPieces = {
      "(",  ")",           "[",    "]",  "\\x -> ", "let x = ", " in ", "if ",       "#[",          "'t ",   "[n]",
      "-1", "1e400",       "0x",   "\"", "--",      "=",        ":>",   "map ",      "iota ",       "loop ", "i64.f32 ",
      ".0", "with [0] = ", "\xff", "\n", "entry ",  "def ",     " ",    "-- note\n", " #[unsafe] ", "\n\n"};
  const std::size_t at = below(text.size());
  const std::size_t length = 1 + below(12);
  switch (below(6)) {
    case 0: text[at] = static_cast<char>(random() % 256); break;
    case 1: text.erase(at, length); break;
    case 2: text.insert(at, text.substr(below(text.size()), length)); break;
    case 3: text.insert(at, kPieces[below(kPieces.size())]); break;
    case 4: text.replace(at, length, kPieces[below(kPieces.size())]); break;
    default: {
      const std::string& other = pool[below(pool.size())];
      text.insert(at, other.substr(below(other.size()), 40));
    }
  }
}

}  // namespace

TEST_CASE("mutations of the examples do not crash") {
  // Without the tables of values, which are comments: mutations are to meet code.
  std::vector<std::string> pool;
  for (const std::string& text : examples()) {
    std::istringstream lines(text);
    std::string code, line;
    while (std::getline(lines, line))
      if (!line.starts_with("--")) code += line + "\n";
    pool.push_back(code);
  }
  REQUIRE(pool.size() >= 9);
  int accepted = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::string text = pool[seed % pool.size()];
    for (unsigned k = 0; k <= seed % 4; ++k) mutate(text, random, pool);
    const test::Outcome outcome = test::compile_text(text);
    CHECK(outcome.accepted == outcome.diagnostics.empty());
    if (!outcome.accepted) continue;
    ++accepted;
    for (const Diagnostic& d : verify(*outcome.module)) FAIL_CHECK(d.message);
  }
  // Some changes are harmless, most are not: the test sees both sides.
  CHECK(accepted > 0);
  CHECK(accepted < 600);
}

TEST_CASE("random bytes do not crash") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::string text;
    for (int k = 0; k < 300; ++k) text += static_cast<char>(random() % 256);
    CHECK_FALSE(test::compile_text(text).accepted);
  }
  CHECK(test::compile_text("").accepted);
  CHECK_FALSE(test::compile_text(std::string(3, '\0')).accepted);
}

TEST_CASE("500 functions that call each other are no limit") {
  struct Case {
    std::string first, next, entry;
    int functions = 500;
  };
  for (const Case& c : std::vector<Case>{
           {"(x: i32) = x * 2", "(x: i32) = f (x + 1) * 2 + 1", "(x: i32) = f x"},
           {"'a (x: a) = x", "'a (x: a): a = f x", "(x: i32) = f x"},
           {"(g: i32 -> i32) (x: i32) = g x", "(g: i32 -> i32) (x: i32) = f g x", "(x: i32) = f (+ 1) x"},
           {"[n] (xs: [n]i32) = xs", "[n] (xs: [n]i32) = f (map (+ 1) xs)", "(xs: []i32) = f xs"},
           {"(n: i64) = iota n", "(n: i64) = f (n + 1)", "(n: i64) = f n", 100},
       }) {
    CAPTURE(c.next);
    const auto calling = [](std::string text, int k) {
      return text.replace(text.find("f ", text.find('=')), 1, "f" + std::to_string(k));
    };
    std::string text = "def f0 " + c.first + "\n";
    for (int k = 1; k <= c.functions; ++k) text += "def f" + std::to_string(k) + " " + calling(c.next, k - 1) + "\n";
    const test::Outcome outcome = test::compile_text(text + "entry main " + calling(c.entry, c.functions));
    CHECK_MESSAGE(outcome.accepted, outcome.messages());
    if (outcome.accepted) CHECK(verify(*outcome.module).empty());
  }
}

TEST_CASE("programs that grow without bound are refused") {
  std::string doubled = "def f0 x = (x, x)\n";
  for (int k = 1; k <= 40; ++k)
    doubled += "def f" + std::to_string(k) + " x = let y = f" + std::to_string(k - 1) + " x in (y, y)\n";
  CHECK_FALSE(test::compile_text(doubled + "entry e (x: i32) = f40 x").accepted);
  std::string calls = "def f0 (g: i32 -> i32) (x: i32) = g x\n";
  for (int k = 1; k <= 40; ++k) {
    const std::string before = "f" + std::to_string(k - 1);
    calls += "def f" + std::to_string(k) + " (g: i32 -> i32) (x: i32) = " + before + " g (" + before + " g x)\n";
  }
  CHECK_FALSE(test::compile_text(calls + "entry e x = f40 (+ 1) x").accepted);
  std::string sizes = "entry e (n0: i64) =\n";
  for (int k = 1; k <= 60; ++k)
    sizes += "  let n" + std::to_string(k) + " = n" + std::to_string(k - 1) + " * n" + std::to_string(k - 1) + "\n";
  test::compile_text(sizes + "  in iota n60");
}

TEST_CASE("long programs compile") {
  std::string text = "entry e (x0: i32) =\n";
  for (int k = 1; k <= 3000; ++k)
    text += "  let x" + std::to_string(k) + " = x" + std::to_string(k - 1) + " + " + std::to_string(k) + "\n";
  CHECK(test::compile_text(text + "  in x3000").accepted);
}

}  // namespace apl::frontend
