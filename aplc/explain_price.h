// A rough prediction of one kernel that is no contraction: what it reads and writes, what it computes, and how long one
// thread's chain of steps is.
#pragma once

#include <map>
#include <optional>

#include "aplc/parameters.h"
#include "ir/layouts.h"
#include "ir/module.h"
#include "machine/target/records.h"

namespace aplc {

// Scalars of a function whose numbers are known with given sizes.
class KnownScalars {
 public:
  // `parameters` are tuning parameters that are given.
  explicit KnownScalars(const Parameters& parameters) : parameters_(parameters) {}

  // None where a symbol is not known.
  std::optional<double> number(const apl::Poly& poly) const;
  std::optional<apl::Scalar> scalar(const apl::Operand& operand) const;
  // What a statement on scalars computes of known ones.
  void learn(const apl::Stm& stm);
  void know(apl::Value value, const apl::Scalar& scalar) { known_[value] = scalar; }
  void know_index(apl::Value index, double at);
  void forget(apl::Value value) { known_.erase(value); }

 private:
  const Parameters& parameters_;
  std::map<apl::Value, apl::Scalar> known_;
};

struct KernelPrice {
  std::optional<double> seconds;     // with the launch; none where a size of the kernel is not known
  double bytes = 0, operations = 0;  // of memory traffic and scalars
  bool unknown_work = false;         // a width or a loop of it has a length that is not known: one step counts
};

// Of the kernel that a statement of the function's host code launches. Indices of its threads are known afterwards.
KernelPrice kernel_price(const apl::Stm& kernel, const apl::Function& function, const apl::Layouts& layouts,
                         const apl_device& device, KnownScalars& known);

}  // namespace aplc
