// The contraction examples: sizes, inputs, programs, and whether a result is right.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/program/program.h"

namespace apl::bench {

struct Case {
  std::string name, file, entry;
  std::string x, y, z;  // dims of operands and result, one letter each
  std::map<char, std::int64_t> sizes;
};
std::vector<Case> cases(bool small);
double operations(const Case& c);  // multiplications and additions

std::vector<HostValue> random_inputs(const Case& c);

struct Check {
  bool ok = true;
  double worst = 0;       // largest error as a part of the bound
  double norm_error = 0;  // ||got - ref|| / ||ref|| over the sample
  std::string message;
};
Check check(const Case& c, const std::vector<HostValue>& inputs, const HostValue& result);

// The text of a program, or compiled and loaded.
using Parameters = std::map<std::string, std::int64_t>;
// With more than one plan numbers that are not given are chosen when sizes are known.
Result<std::string> generate_host(const std::string& file, const std::string& text, const std::string& backend,
                                  const Parameters& parameters, int plans);
Result<Program> load_file(const std::string& file, const Parameters& parameters, const ProgramOptions& options,
                          int plans);
inline int usual_plans(const std::string& backend) { return backend == "c" ? 4 : 12; }

double median(std::vector<double> times);

}  // namespace apl::bench
