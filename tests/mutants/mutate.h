// Kernels with one barrier or guard less. All mutants of a kernel are one text: at each point it asks which mutant it
// is, so that a compilation serves for all.
#pragma once

#include <string>
#include <vector>

#include "codegen/kernel/kernel_language.h"

namespace apl::mutants {

struct Mutant {
  int number = 0;    // over all kernels
  std::string what;  // "barrier 2", "guard `at < m` 1": with the names' suffixes left out, counted in the kernel
};

class Mutator {
 public:
  // Puts a switch at each point of the kernel, and adds its mutants.
  void mutate(kernel::Function& function, std::vector<Mutant>& mutants);

  // What the kernels' text needs: to stand behind its first include.
  static std::string prologue();
  // Mutants are chosen by number; 0 is the kernel itself.
  static void choose(int number);

 private:
  int count_ = 0;
};

}  // namespace apl::mutants
