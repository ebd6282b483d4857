// What `aplc tune` has measured, in a file from run to run.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "aplc/driver.h"

namespace aplc {

// "mm.T_a=16 mm.T_b=8"
std::string parameters_text(const Parameters& parameters);

// Times of all datasets with some parameters: microseconds by name, or what went wrong.
struct Trial {
  std::map<std::string, double> times;
  std::string error;
};
double geometric_mean(const std::map<std::string, double>& times);

// One JSON line for each trial, appended as soon as it is known. `key` says for which program, backend and device lines
// are; others stay where they are.
class TuneLog {
 public:
  TuneLog(std::string file, std::string key) : file_(std::move(file)), key_(std::move(key)) {}

  void read();
  const Trial* find(const Parameters& parameters) const;
  apl::Status add(const Parameters& parameters, const Trial& trial);
  std::size_t size() const { return known_.size(); }

 private:
  std::string file_, key_;
  std::map<std::string, Trial> known_;
};

}  // namespace aplc
