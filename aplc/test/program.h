// What `aplc test` does with a program, and what came of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "aplc/driver.h"
#include "aplc/parameters.h"
#include "aplc/tiles.h"
#include "suite/test_block.h"

namespace aplc {

enum class TestMode : std::uint8_t { run, compile, typecheck };

// What --pass-compiler-option says.
struct CompilerOptions {
  FrontOptions front;
  Parameters parameters;
  std::vector<std::string> disabled;  // passes to leave out

  // Texts as `--safe` and `--param=main.T_a=8`. Code command.bad-argument, command.bad-parameter.
  static apl::Result<CompilerOptions> read(const std::vector<std::string>& texts);
};

// What `aplc test` and `aplc bench` are told alike of programs with test blocks.
struct BlockOptions {
  std::vector<std::string> paths;
  std::string backend = "c";
  std::string entry;  // empty: all
  std::vector<std::string> excluded;
  std::vector<std::string> plans;  // OPERAND=FILE of sparse operands
  bool use_cublas = false;
  double timeout = 60;
  std::string json;
  std::string tuning = "tuning";  // the ending of the file beside a program that has its tuning parameters
  bool no_tuning = false;
  bool no_cache = false;
  std::vector<std::string> pass_options;      // for programs that run as servers
  std::string runner;                         // starts them
  std::vector<std::string> compiler_options;  // texts
  CompilerOptions compiler;                   // the same, read
  std::uint64_t seed = 1;                     // of random inputs
  std::string spec_file;                      // has the test blocks of all programs; empty: each has its own
  std::string temporary_folder;               // set by the run

  // The options that are called alike in both.
  void add_to(CLI::App& command);
  // What texts say; after the command line was read. Throws CommandError.
  void read();
  // Whether programs run as servers.
  bool serves() const { return !pass_options.empty() || !runner.empty(); }
};

// How properties are tested.
struct PropertyOptions {
  std::uint64_t seed = 1;      // of all random numbers
  int tests = 100;             // arguments that are tried
  std::int64_t size = 50;      // of arguments, unless #[prop] says another
  int tries = 100;             // of a shrinker in a row that make nothing smaller, until it is done
  double shrink_seconds = 10;  // an argument is not made smaller for longer
};

struct TestOptions : BlockOptions {
  TestMode mode = TestMode::run;
  TileOptions tiles;
  std::size_t concurrency = 0;       // 0: as many as there are processors
  std::string reference = "interp";  // or c, or interp-or-c
  double reference_timeout = 20;
  double memory = 8;  // gibibytes of address space; not for cuda
  bool structure = false;
  bool no_terminal = false;  // no line of progress
  PropertyOptions property;  // without seed and time
};

enum class TestStatus : std::uint8_t { waiting, passed, failed, skipped };

// Why a test failed, or was skipped.
enum class TestKind : std::uint8_t {
  none,
  compile_error,  // a program that should compile is refused as wrong
  unsupported,    // a limitation of ours
  bug,            // we said so ourselves
  wrong_result,
  false_property,  // an argument was found for which it is false
  run_time_error,  // where none is expected
  no_error,        // where one is expected
  wrong_message,   // an error, but not that one
  no_reference,    // there is no result to compare with
  wrong_warning,
  wrong_structure,
  bad_test,  // the block, its patterns or its files
  crash,
  time_out,
  machine,  // a full disk, no memory, no open files
};
std::string_view to_text(TestKind kind);
TestKind kind_from_text(std::string_view text);
std::string_view to_text(TestStatus status);

// A case for an entry, an entry that is a property, or with another `what` the program itself.
struct Test {
  enum class What : std::uint8_t { run, property, compile, error, warning, structure };
  What what = What::run;
  std::string entry;
  apl::suite::Case test_case;         // of run
  std::size_t structure = 0;          // of structure: which stanza
  std::map<std::string, int> counts;  // of structure: ours
  TestStatus status = TestStatus::waiting;
  TestKind kind = TestKind::none;
  std::string message;
  double seconds = 0;
};
std::string_view to_text(Test::What what);

struct TestedProgram {
  std::string file;
  apl::suite::TestSpec spec;
  std::vector<Test> tests;  // at least one
};

// Reads the blocks of a file. Cases that do not concern the backend are there, skipped, with the reason.
TestedProgram find_tests(const std::string& file, const TestOptions& options);

// All .fut files of files and folders, sorted within each folder.
std::vector<std::string> find_programs(const std::vector<std::string>& paths);

}  // namespace aplc
