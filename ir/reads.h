// What a function reads again after one of its statements: in what comes later in the text, and in what a loop or
// lambda around the statement does once more. Branches beside the one that holds the statement do not run, and do not
// count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ir/module.h"

namespace apl {

class Reads {
 public:
  enum class Renaming : std::uint8_t {
    is_read,
    is_no_read
  };  // whether a statement that gives a value another name reads it

  // Statements are known by their addresses: those of the function's bodies.
  explicit Reads(const Function& function, Renaming renaming = Renaming::is_read);

  // Whether `v` is read again after `stm` has run. What is bound by it, or later, is not there yet: false.
  bool after(const Stm& stm, Value v) const;
  // The same after the operands of `stm` were read, before its bodies run.
  bool in_or_after(const Stm& stm, Value v) const;

 private:
  // Positions in the order of the text: those of a statement's operands, of its results, and of the ends of its bodies.
  struct Place {
    std::size_t begin = 0, end = 0;
    std::vector<std::size_t> ends;
    bool repeats = false;  // its bodies run any number of times
    const Place* around = nullptr;
    std::size_t body = 0;  // of `around`
  };

  void enter(const Body& body, const Place* around, std::size_t number);
  void statement(const Stm& stm, const Place* around, std::size_t number);
  void read(Value v) { reads_[v].push_back(clock_); }
  bool again(const Place& place, std::size_t position, Value v) const;

  const Renaming renaming_;
  std::size_t clock_ = 1;
  std::unordered_map<const Stm*, Place> places_;
  std::unordered_map<Value, std::vector<std::size_t>> reads_;  // ascending
  std::unordered_map<Value, std::size_t> bound_;
};

}  // namespace apl
