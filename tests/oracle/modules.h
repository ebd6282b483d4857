// Operators that a program defines in modules. The oracle evaluates them as it does those that are written where they
// are used; the front end has to resolve the module's names and to apply parametric modules first.
//
//   module type monoid_p7 = { type t val neutral: t val (<+>): t -> t -> t }
//   module turned_p7 (M: monoid_p7): monoid_p7 with t = M.t = { ... def (<+>) (a: t) (b: t): t = b M.<+> a }
//   module folds_p7 (M: monoid_p7) = { open M def total [n] (xs: [n]t): t = reduce (<+>) neutral xs ... }
//   module m1_p7 = { type t = i32 def neutral: t = 0i32 def (<+>) (a1: i32) (b2: i32): t = (a1 + b2) }
//   entry p7 ... = (scan (m1_p7.<+>) m1_p7.neutral xs)
//
// ModuleUse::How: `own` is such a module, `turned` is one whose operands were exchanged twice, `folds` is one with
// functions of its own for reductions and scans.
#pragma once

#include <string>
#include <vector>

#include "tests/oracle/tree.h"

namespace apl::oracle {

// The node as source, whose kids are given so.
std::string text_with_module(const Node& node, std::vector<std::string> kids);

// All modules that the tree's nodes use; nothing if none does.
std::string module_definitions(const Tree& tree);

}  // namespace apl::oracle
