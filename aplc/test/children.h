// Work in child processes, several at a time: a crash or a hang of one is an outcome and not the end of the run.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace aplc {

// How a child ended.
struct Outcome {
  enum class Kind : std::uint8_t { finished, crashed, timed_out };
  Kind kind = Kind::finished;
  std::string message;  // of a crash: the signal or exit status, and the end of what the child printed
  double seconds = 0;
};

// What a line means for the clock that ChildLimits::seconds is about.
enum class Clock : std::uint8_t { unchanged, restarts, runs, stands };

struct Child {
  // Runs in the child, which ends when it returns; `send` gives the parent a line without newlines.
  std::function<void(const std::function<void(std::string_view)>& send)> body;
  // Both run in the parent: for each line in order, and at the end.
  std::function<Clock(std::string_view line)> line;
  std::function<void(const Outcome& outcome)> end;
  bool clock_stands = false;  // until a line says that it runs
};

struct ChildLimits {
  std::size_t concurrency = 1;
  double seconds = 60;            // of a child, while its clock runs
  double standing_seconds = 600;  // without a break while it stands
  double gibibytes = 0;           // address space of a child; 0: no limit
  std::string folder;             // where what children print is kept meanwhile
};

// Runs the children, and those that their `end` adds, until none is left or the user interrupts (Ctrl-C, SIGTERM):
// then the running ones are killed, with the compilers they started, without outcome, and the result is false.
bool run_children(std::deque<Child>& waiting, const ChildLimits& limits);

}  // namespace aplc
