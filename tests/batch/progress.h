// How far a long run of random programs is: told in lines, and kept in a file from which a later run goes on.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "ir/diagnostic.h"

namespace apl::testing {

class Progress {
 public:
  // `key` names the run: a file that another run wrote is not continued. No file is read or written if `file` is empty.
  Progress(std::string file, std::string key, std::uint64_t total);

  std::uint64_t done() const { return done_; }
  std::uint64_t total() const { return total_; }
  bool is_resumed() const { return resumed_at_ > 0; }
  // What is counted beside programs: by name.
  std::uint64_t& count(const std::string& name) { return counts_[name]; }
  // Counts whose names begin so.
  std::uint64_t sum(std::string_view prefix) const;
  const std::map<std::string, std::uint64_t>& counts() const { return counts_; }

  // `programs` more are done. Whole or not at all in the file; machine.io if it cannot be written.
  Status advance(std::uint64_t programs);
  // "200 of 3000, 1 failed, 12 min left": the time by what this run has needed so far.
  std::string line() const;

 private:
  void load();
  Status save() const;

  std::string file_, key_;
  std::uint64_t total_ = 0, done_ = 0, resumed_at_ = 0;
  std::map<std::string, std::uint64_t> counts_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace apl::testing
