// The test kit: what unit tests of IR transformations need. Nothing here depends on a test framework, and
// nothing prints or aborts: a check gives a Verdict, which converts to bool and explains itself.
//
//   const auto run = apl::testing::run_text("simplify,tile-contraction{tile=4}", text);
//   REQUIRE(run);
//   CHECK(apl::testing::has_structure(run->after, "segmap(block)/loop/tile_contract 1"));
//   const auto verdict = apl::testing::same_meaning(run->before, run->after, "mm1");
//   CHECK_MESSAGE(verdict, verdict.explanation);
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/host_value.h"
#include "ir/module.h"
#include "ir/sparse_arguments.h"
#include "passes/pass.h"

namespace apl::testing {

// Whether a law holds, and if not, why not: a text for people, of one or more lines.
struct [[nodiscard]] Verdict {
  bool holds = true;
  std::string explanation;
  bool decided = true;         // false: nothing could be checked, and `holds` is false
  std::optional<Code> code{};  // of the error by which `before` cannot be run, where that is not the program's fault

  explicit operator bool() const { return holds; }
  static Verdict no(std::string why) { return {false, std::move(why)}; }
  static Verdict undecided(std::string why) { return {false, std::move(why), false}; }
};

// ---- running ----------------------------------------------------------------------------------------

struct RunOptions {
  std::map<std::string, std::int64_t> parameters;   // tuning parameters: "mm.T_a" -> 2
  PassRegistry registry = PassRegistry::builtin();  // add passes from outside the tree here
};

struct PipelineRun {
  Module before;
  Module after;
  std::string output;           // `after` as text
  std::vector<Remark> remarks;  // in the order in which they were given
  std::string remark_text;      // one rendered remark a line
};

// Parses and verifies `text`, runs the pipeline with verification after each pass. "" and "none" run nothing.
Result<PipelineRun> run_text(std::string_view pipeline, std::string_view text, const RunOptions& options = {});
Result<PipelineRun> run_module(std::string_view pipeline, Module module, const RunOptions& options = {});

// ---- looking ----------------------------------------------------------------------------------------

// Every path of operations of the module from a function down, with how often it occurs. The names are the
// keywords of the textual IR: `segmap`, `loop`, `add`, ... Besides, `segmap(block)` names a level, `loop(for)`
// and `loop(while)` a kind, and `screma` any of map, reduce and redomap. `segmap/loop` counts loops
// whose direct parent is a segmap; `/segmap` counts segmaps that stand in a function's own body. Scalar operations
// also count as `unary`, `binary` and `compare`. Branches of an `if` count as inside it, lambdas as inside
// their operation.
std::size_t count_structure(const Module& module, std::string_view path);
// The expectation is any number of pairs, path and count: "segmap/loop/segmap 2  loop 1".
Verdict has_structure(const Module& module, std::string_view expectation);

// Nothing if the modules are equal up to the names and numbers of values and to locations in the source;
// else where they first differ.
std::optional<std::string> difference(const Module& a, const Module& b);

// Printing and parsing again gives an equal module and the same text.
Verdict round_trips(const Module& module);

// The lines of two texts, in the manner of `diff -u`; empty for equal texts.
std::string text_diff(std::string_view expected, std::string_view actual, std::string_view expected_name = "expected",
                      std::string_view actual_name = "actual");

// ---- meaning ----------------------------------------------------------------------------------------

using Sizes = std::map<std::string, std::int64_t>;  // by name: a function's sizes, and its scalar parameters

// One value for each parameter, of the shapes that the sizes give. A size or integer scalar that `sizes` does
// not name is drawn from 0..7, one that the function asserts to be computed from others is that. Elements are small
// integers stored in the element type, so that any order of additions and multiplications gives the same bits. The same
// seed gives the same values.
Result<std::vector<HostValue>> random_arguments(const Function& function, const Sizes& sizes, std::uint64_t seed);

// Equal bit for bit, but for the signs of zeros and the bits of what is not a number: which zero min and max give for
// -0 and +0, and which of such numbers an operation gives, is left to the machine.
bool same_results(std::vector<HostValue> a, std::vector<HostValue> b);

// A value for each tile parameter that the kernels of a module of the soac stage have: small and unequal numbers, so
// that no dim is like another and small inputs have full and partial tiles.
std::map<std::string, std::int64_t> small_tiles(const Module& module);
// `number` for each size at which another version of the program is taken: 1, and a number larger than all sizes, force
// them.
std::map<std::string, std::int64_t> thresholds(const Module& module, std::int64_t number);

struct LawOptions {
  std::vector<Sizes> sizes;  // added to the usual ones, or instead of them
  bool only_these_sizes = false;
  int random_sizes = 4;                            // how many random assignments of 0..7 the usual ones have
  std::uint64_t seed = 1;                          // of the inputs and random sizes
  std::vector<std::uint64_t> orders = {1, 2};      // interpreter seeds that `after` is run with
  std::map<std::string, std::int64_t> parameters;  // values of get_size
  TileMaker tiles{};                               // where `after` takes tiles
};

// The law every transformation obeys: both modules give the same results for the entry on random inputs.
// Tried are: all sizes 0; all 1; different primes up to 7, each size being each of them once; each size alone 0
// and 1; random ones. Where `before` fails (a false assertion, say) nothing is claimed; that no run was left
// to compare breaks the law too, because then nothing was checked.
Verdict same_meaning(const Module& before, const Module& after, std::string_view entry, const LawOptions& options = {});
// The same for every entry of `before`.
Verdict same_meaning(const Module& before, const Module& after, const LawOptions& options = {});

}  // namespace apl::testing
