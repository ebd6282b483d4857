// For the files of the generator alone.
#pragma once

#include <algorithm>
#include <utility>

#include "tests/oracle/generator.h"

namespace apl::oracle {

class Generator::Scope {
 public:
  explicit Scope(Generator& generator)
      : generator_(generator), variables_(generator.scope_), sizes_(generator.sizes_), nonempty_(generator.nonempty_) {}
  Scope(const Scope&) = delete;
  ~Scope() {
    generator_.scope_ = std::move(variables_);
    generator_.sizes_ = std::move(sizes_);
    generator_.nonempty_ = std::move(nonempty_);
  }

 private:
  Generator& generator_;
  std::vector<Variable> variables_;
  std::vector<std::string> sizes_;
  std::set<std::string> nonempty_;
};

}  // namespace apl::oracle
