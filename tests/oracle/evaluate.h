// What a program gives, from its tree: every rule of the language that the generator uses, written down once more.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/host_value.h"
#include "tests/oracle/tree.h"

namespace apl::oracle {

// A scalar, a tuple's fields, or an array's rows.
struct Value {
  Number number;
  std::vector<Value> parts;
};

// The arguments of a program: values of its size parameters, and of its parameters.
struct Arguments {
  std::map<std::string, std::int64_t> sizes;
  std::vector<Value> values;
};

struct Outcome {
  std::vector<HostValue> results;     // one for each scalar part, as entries give them
  std::vector<std::string> failures;  // the messages of which one must be said; empty: it ends well
};

// Throws std::length_error where it becomes too long: more than `most_steps` nodes.
Outcome evaluate(const Program& program, const Arguments& arguments, std::int64_t most_steps);

// What the entry is called with.
std::vector<HostValue> host_arguments(const Program& program, const Arguments& arguments);

}  // namespace apl::oracle
