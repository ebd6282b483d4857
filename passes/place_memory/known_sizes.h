// What the host knows of sizes where it allocates: an array that exists has no size below 0.
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "ir/poly.h"

namespace apl::memory {

// Grows statement by statement and shrinks where a body ends. Programs have thousands of sizes, and a question is about
// two of them: it gets what is known of its own symbols alone.
class KnownSizes {
 public:
  using Mark = std::size_t;

  void non_negative(const Poly& size);

  Mark mark() const { return known_.size(); }
  void release(Mark mark);

  // Whether `question` is surely at least 0, by what was known at `mark`.
  bool surely_non_negative(const Poly& question, Mark mark) const;
  bool surely_non_negative(const Poly& question) const { return surely_non_negative(question, mark()); }

 private:
  std::vector<Poly> known_;
  std::set<Poly> all_;
  std::unordered_map<Value, std::vector<Mark>> by_newest_;  // by the newest symbol of each
  // Blocks of a program have few different sizes, and each new one is compared with all: what was known, the question.
  mutable std::map<std::vector<Poly>, bool> answers_;
};

}  // namespace apl::memory
