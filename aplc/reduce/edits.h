// Edits that make a function smaller. None keeps its meaning; each gives a function that may still be well-formed, or
// nothing where it does not apply. What is not well-formed is sorted out by the verifier.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/module.h"

namespace aplc::reduce {

// Without statements that nothing reads.
apl::BodyPtr without_dead_code(const apl::BodyPtr& body, const apl::ValueTable& values);
// Such a body, no results that nothing reads in what has several, no unused inputs of SOACs.
apl::Function pruned(const apl::Function& function);

// The first value of each statement's pattern, nested statements included, in the order of the text.
std::vector<apl::Value> statements(const apl::Function& function);

// How the values of a statement that is removed are replaced, as far as it can be; otherwise as in the next case.
enum class Cut {
  forward,    // by its first operand of the same type
  last,       // by its last
  parameter,  // by a new parameter of the function
  consumed,   // likewise, and arrays are the function's to overwrite
  constant,   // by zero
};
// The function without these statements; empty if none can be removed.
std::optional<apl::Function> cut(const apl::Function& function, const std::set<apl::Value>& removed, Cut how);

// Only the first `count` statements of the function's own body; results are what the others read of them.
std::optional<apl::Function> truncated(const apl::Function& function, std::size_t count);
// Only these results.
std::optional<apl::Function> with_results(const apl::Function& function, const std::vector<std::size_t>& kept);

// A nested body as the function's own: what it reads from outside becomes parameters. Bodies are numbered in the order
// of the text.
std::size_t count_bodies(const apl::Function& function);
std::optional<apl::Function> focused(const apl::Function& function, std::size_t body);

// A branch in place of its `if`, the body of a loop once in place of the loop: for each statement at most two.
std::vector<apl::Function> unwrapped(const apl::Function& function, apl::Value statement);

// A size or parameter replaced by another value or a number, and removed.
std::optional<apl::Function> replaced(const apl::Function& function, apl::Value param, const apl::Operand& by);
std::optional<apl::Function> without_unused_params(const apl::Function& function);

}  // namespace aplc::reduce
