// What extract-kernels says of what it did.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "passes/analysis/contractions.h"
#include "passes/extract_kernels/distribute.h"
#include "passes/extract_kernels/nest.h"
#include "passes/extract_kernels/view_copies.h"
#include "passes/pass.h"

namespace apl {

class KernelRemarks {
 public:
  KernelRemarks(const Function& function, const PassContext& context) : function_(function), context_(context) {}

  bool wanted() const { return context_.remarks != nullptr; }
  // From now on remarks go to `held`, which may be null, instead: what is said of a nest that may not be taken apart
  // after all. Gives what held them before.
  std::vector<Remark>* hold(std::vector<Remark>* held) { return std::exchange(held_, held); }
  bool holds() const { return held_ != nullptr; }

  void say(const Remark& remark) const;
  void add(RemarkKind kind, std::string code, const Stm& at, std::string message,
           std::vector<std::pair<std::string, std::string>> facts = {}) const;
  std::string name_of(const Stm& stm) const;
  void explain(const Stm& stm, const Distributed& apart) const;
  void explain(const Stm& stm, const Nest& nest) const;
  // What tile-contraction never gets to see.
  void explain_not_tiled(const Refusal& refusal) const;
  void explain_not_streamed(const Refusal& refusal) const;
  void explain(const ViewCopy& copy) const;
  void explain_serial(const Stm& stm, const Scatter& op) const;

 private:
  const Function& function_;
  const PassContext& context_;
  std::vector<Remark>* held_ = nullptr;
};

}  // namespace apl
