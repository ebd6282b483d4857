// Every barrier and every guard of an emitted kernel is needed, and emulation sees it when one is missing: each is
// taken out of the text in turn. So emulation would also see code generation forget one.
#include <fmt/format.h>

#include <regex>

#include "ir/interpret.h"
#include "runtime/program/program.h"
#include "tests/testing.h"
#include "tests/unit/codegen/emitted.h"

namespace {

using apl::HostValue;
using emitted::contains;
using emitted::take;
using Sizes = apl::testing::Sizes;

// A text with one piece replaced by another, which leaves the numbers of the lines alone.
struct Mutant {
  std::string what;  // the piece, with its line
  std::string text;
};

Mutant mutant(const std::string& text, std::size_t at, const std::string& piece, const std::string& other) {
  REQUIRE(text.compare(at, piece.size(), piece) == 0);
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  std::string changed = text;
  changed.replace(at, piece.size(), other);
  REQUIRE(changed.size() + piece.size() == text.size() + other.size());
  REQUIRE(emitted::lines_of(changed).size() == emitted::lines_of(text).size());
  return {fmt::format("line {}: {}", line, piece), std::move(changed)};
}

std::vector<Mutant> without_barriers(const std::string& text) {
  const std::string barrier = "apl_barrier();";
  std::vector<Mutant> mutants;
  for (std::size_t at = text.find(barrier); at != std::string::npos; at = text.find(barrier, at + 1))
    mutants.push_back(mutant(text, at, barrier, ";"));
  return mutants;
}

// Each term of a condition `(a && b) && c` is a guard of its own.
void without_terms(const std::string& text, std::size_t at, const std::string& condition,
                   std::vector<Mutant>& mutants) {
  for (std::size_t from = 0; from < condition.size();) {
    const std::size_t next = std::min(condition.find(" && ", from), condition.size());
    std::size_t to = next;
    auto surplus = [&](char c, char other) {
      const std::string term = condition.substr(from, to - from);
      return std::count(term.begin(), term.end(), c) > std::count(term.begin(), term.end(), other);
    };
    while (surplus('(', ')')) ++from;
    while (surplus(')', '(')) --to;
    mutants.push_back(mutant(text, at + from, condition.substr(from, to - from), "true"));
    from = next + 4;
  }
}

// Mutants of what a pattern's groups match in a part of the text.
std::vector<Mutant> without_matches(const std::string& text, std::size_t begin, std::size_t end,
                                    const std::regex& guard) {
  std::vector<Mutant> mutants;
  const auto at = [&](std::size_t k) { return text.begin() + static_cast<std::ptrdiff_t>(k); };
  for (std::sregex_iterator found(at(begin), at(end), guard), none; found != none; ++found)
    for (std::size_t k = 1; k < found->size(); ++k)
      if ((*found)[k].matched)
        without_terms(text, begin + static_cast<std::size_t>(found->position(k)), found->str(k), mutants);
  return mutants;
}

// Where a thread's first element is inside it has some `left`.
const char* const kLeft = R"(|int left\w* = ([^;=?]* < [^;=?]*) \?)";

// `X_s(...) = i < n && j < m ? X(...) : 0;`
std::vector<Mutant> without_load_guards(const std::string& text) {
  const std::regex guard(std::string(R"(\) = ([^;=?]* < [^;=?]*) \? \w+\()") + kLeft);
  return without_matches(text, 0, text.find("// write-back"), guard);
}

// The mainloop: rows beyond the end, tiles beyond the last, depth beyond the end.
std::vector<Mutant> without_mainloop_guards(const std::string& text) {
  const std::regex guard(
      R"(bool inside\w* = ([^;]*);|if \((ahead\w* < tiles)\) \{|if \(([^;{(]* < left\w*)(?: && inside\w*)?\) \{|if \((z\w* >= 0 && [^;{]*)\) \{)");
  return without_matches(text, 0, text.size(), guard);
}

// `if (i_a < a) {`
std::vector<Mutant> without_store_guards(const std::string& text) {
  const std::regex guard(std::string(R"(if \((\w+ < \w+)\) \{)") + kLeft);
  return without_matches(text, text.find("// write-back"), text.size(), guard);
}

// An entry of an example with inputs of several sizes and what the interpreter makes of them.
class Subject {
 public:
  Subject(const std::string& name, const std::string& entry, const std::vector<Sizes>& sizes,
          const emitted::Numbers& more = {})
      : entry_(entry) {
    const apl::Module source = emitted::example(name, entry);
    numbers_ = emitted::small_tiles(source);
    numbers_.insert(more.begin(), more.end());
    text_ = emitted::text_of(source, apl::cuda_target(), numbers_);
    REQUIRE(text_.kernel_infos.size() == 1);
    for (const Sizes& each : sizes) {
      inputs_.push_back(take(apl::testing::random_arguments(*source.functions.back(), each, inputs_.size() + 1)));
      expected_.push_back(take(apl::interpret(source, entry, inputs_.back())));
    }
    options_.backend = "emulate";
    options_.cache = std::make_shared<apl::ObjectCache>();  // the host's text is always the same
  }

  const std::string& kernel() const { return text_.kernels; }
  const std::string& name() const { return text_.kernel_infos.front().name; }
  std::size_t runs() const { return inputs_.size(); }

  apl::Program load(const std::string& kernel_text, std::uint64_t seed = 1) {
    options_.seed = seed;
    return take(apl::Program::load(text_.host, kernel_text, options_));
  }
  apl::Result<std::vector<HostValue>> run(apl::Program& program, std::size_t k) const {
    return program.call(entry_, inputs_[k]);
  }

  void is_right() {
    for (std::uint64_t seed : {1, 2, 3}) {
      apl::Program program = load(kernel(), seed);
      for (std::size_t k = 0; k < runs(); ++k) {
        CAPTURE(seed);
        CAPTURE(k);
        auto got = run(program, k);
        CHECK_MESSAGE(got, got.error().message);
        if (got) CHECK(*got == expected_[k]);
      }
    }
  }

  // At some size the mutant is stopped for one of these reasons; `first` is the fault it was stopped for.
  bool is_caught(const Mutant& mutant, const std::vector<apl::Code>& reasons, apl::Diagnostic& first) {
    apl::Program program = load(mutant.text);
    for (std::size_t k = 0; k < runs(); ++k) {
      auto got = run(program, k);
      if (got || std::find(reasons.begin(), reasons.end(), got.error().code) == reasons.end()) continue;
      first = got.error();
      return true;
    }
    return false;
  }

  // Every barrier orders accesses of shared arrays; the message names the array and quotes a line that accesses it.
  void needs_its_barriers(std::size_t barriers) {
    const auto mutants = without_barriers(kernel());
    CHECK(mutants.size() == barriers);
    for (const Mutant& mutant : mutants) {
      CAPTURE(mutant.what);
      apl::Diagnostic fault;
      const bool caught = is_caught(mutant, {apl::Code::run_race, apl::Code::run_undefined_read}, fault);
      CHECK_MESSAGE(caught, "nothing needs this barrier");
      if (!caught) continue;
      CHECK_MESSAGE(contains(fault.message, "kernel " + name() + ": "), fault.message);
      CHECK_MESSAGE(contains(fault.message, " of the shared array at byte "), fault.message);
      const std::regex access(R"(\n +\d+ \| [^\n]*\w+_(s|rows|columns)\b)");
      CHECK_MESSAGE(std::regex_search(fault.message, access), fault.message);
    }
  }

  void needs_its_guards(const std::vector<Mutant>& mutants, std::size_t guards, const std::string& verb) {
    CHECK(mutants.size() == guards);
    for (const Mutant& mutant : mutants) {
      CAPTURE(mutant.what);
      apl::Diagnostic fault;
      const bool caught = is_caught(mutant, {apl::Code::run_index_out_of_bounds}, fault);
      CHECK_MESSAGE(caught, "nothing needs this guard");
      if (caught) CHECK_MESSAGE(contains(fault.message, verb + " element "), fault.message);
    }
  }

 private:
  std::string entry_;
  emitted::Numbers numbers_;
  apl::ProgramText text_;
  apl::ProgramOptions options_;
  std::vector<std::vector<HostValue>> inputs_, expected_;
};

// Several tiles a dim, all partial; reduction tiles all full, so that the main loop reads the last row; a single row,
// where a column too many is out of bounds and not in the next row.
Subject mm1() {
  return Subject("mm1", "mm1",
                 {{{"a", 5}, {"b", 5}, {"q", 7}},
                  {{"a", 5}, {"b", 5}, {"q", 6}},
                  {{"a", 1}, {"b", 5}, {"q", 7}},
                  {{"a", 1}, {"b", 1}, {"q", 0}}});
}

// The mainloop. With one element a dim, an index too many is out of bounds whichever dim it is in.
// Rows of four are stored as vectors. A block computes three tiles if there are so many, and the copies of one run
// into the next.
Subject sd2_3() {
  return Subject("sd2_3", "sd2_3",
                 {{{"a", 1}, {"b", 1}, {"c", 1}, {"i", 1}, {"j", 1}, {"k", 1}, {"q", 4}},
                  {{"a", 1}, {"b", 1}, {"c", 1}, {"i", 1}, {"j", 1}, {"k", 4}, {"q", 4}},
                  {{"a", 1}, {"b", 1}, {"c", 1}, {"i", 1}, {"j", 1}, {"k", 1}, {"q", 7}},
                  {{"a", 3}, {"b", 1}, {"c", 3}, {"i", 1}, {"j", 3}, {"k", 3}, {"q", 7}},
                  {{"a", 3}, {"b", 3}, {"c", 3}, {"i", 3}, {"j", 3}, {"k", 3}, {"q", 5}},
                  {{"a", 1}, {"b", 4}, {"c", 5}, {"i", 1}, {"j", 5}, {"k", 3}, {"q", 0}}},
                 {{"sd2_3.tiles_per_block", 3}});
}

}  // namespace

TEST_CASE("emitted: the product's kernel is right and without faults in emulation") { mm1().is_right(); }

TEST_CASE("emitted: the product's kernel needs every barrier") { mm1().needs_its_barriers(4); }

TEST_CASE("emitted: the product's kernel needs every guard") {
  Subject subject = mm1();
  // Of each tile in the main loop and in the remainder; one whose elements follow one another has two conditions.
  subject.needs_its_guards(without_load_guards(subject.kernel()), 7, "reads");
  subject.needs_its_guards(without_store_guards(subject.kernel()), 2, "writes");
}

TEST_CASE("emitted: the kernel of a contraction of rank six is right and without faults in emulation") {
  sd2_3().is_right();
}

TEST_CASE("emitted: the kernel of a contraction of rank six needs every barrier") { sd2_3().needs_its_barriers(3); }

TEST_CASE("emitted: the kernel of a contraction of rank six needs every guard") {
  Subject subject = sd2_3();
  // M and N, and the next tile's rows; rows outside of an operand, in each copy; copies of the remainder, ahead of and
  // in the loop; rows and columns of both ways to write.
  subject.needs_its_guards(without_mainloop_guards(subject.kernel()), 19, "");
}
