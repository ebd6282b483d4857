// Delta debugging: the smallest variant of a program that is still interesting, as far as local edits find it.
#pragma once

#include <functional>
#include <string>

#include "ir/module.h"

namespace aplc::reduce {

// Says of a text whether it still shows what is looked for. Also asked whether the time is over.
struct Oracle {
  std::function<bool(const std::string&)> interesting;
  std::function<bool()> stopped;
  std::function<void(const std::string&)> progress;  // what is being tried
};

// Functions, statements, bodies, results, sizes, parameters and constants are tried, in rounds until nothing helps.
// What the verifier refuses is never asked for.
apl::Module reduce_ir(const apl::Module& module, const Oracle& oracle);
std::string reduce_source(const std::string& name, const std::string& text, const Oracle& oracle);

}  // namespace aplc::reduce
