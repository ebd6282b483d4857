// Kernels in which a contraction stands beside or inside of other code, said as kernels that the matcher takes.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/module.h"
#include "passes/analysis/contraction_facts.h"

namespace apl::tile {

struct Isolated {
  std::vector<Stm> stms;  // in place of the kernel; at least one of them, or of their bodies', is a contraction
  std::vector<std::string> steps;  // what was done, as sentences
};

// nullopt: the kernel is a contraction as it is, or nothing makes one of it.
std::optional<Isolated> isolate_contractions(const Stm& kernel, ValueTable& values);

// Of a kernel that is refused for what stands beside a reduction or around it: why each reduction alone is no
// contraction, with what is known of it. Empty: that cannot be said.
std::vector<std::pair<Refusal, RemarkFacts>> refuse_parts(const Stm& kernel, const Function& function);

// Steps on a kernel's body. They change nothing where they return false.
// Reductions in branches are computed before the branch, which then chooses, where that is harmless.
bool lift_reductions(const SegOp& kernel, std::vector<Stm>& stms, const ValueTable& values);
// Reductions over the same widths that read a common array become one.
bool merge_reductions(std::vector<Stm>& stms, ValueTable& values);

// A reduction of scalars that gives nothing else.
bool is_plain_reduction(const Stm& stm);
bool holds_reduction(const Body& body);
// The statements, in order, that `roots` come from.
std::vector<const Stm*> needed_stms(const std::vector<Stm>& stms, std::set<Value> roots, const ValueTable& values);

}  // namespace apl::tile
