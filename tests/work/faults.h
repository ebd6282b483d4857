// Passes with a fault that the law of work has to notice.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/module.h"

namespace apl::work_tests {

struct Planted {
  std::string name;
  std::string pass;                      // which has it
  std::function<void(Function&)> plant;  // in what the pass gives
  std::string source;                    // a program whose work grows by it
  std::string grown;                     // what the statement that grew begins with
};
const std::vector<Planted>& faults();

// Why the fault does not show, or nothing: without it the program has to obey the law, with it to break it.
std::string unnoticed(const Planted& fault);

}  // namespace apl::work_tests
