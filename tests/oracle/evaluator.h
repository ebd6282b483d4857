// Evaluates trees. Lanes of maps all run, even if one fails: programs may say what is wrong with any of them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/oracle/evaluate.h"

namespace apl::oracle {

struct Failures {
  std::vector<std::string> messages;
};
[[noreturn]] inline void fail(std::string message) { throw Failures{{std::move(message)}}; }

std::size_t field_number(const Type& type, const std::string& name);

class Evaluator {
 public:
  explicit Evaluator(std::int64_t most_steps) : most_steps_(most_steps) {}

  std::vector<HostValue> run(const Program& program, const Arguments& arguments);
  std::vector<HostValue> host_values(const Type& type, const Value& value) const;
  void bind(const Pattern& pattern, Value value);
  std::int64_t size(const std::string& dim) const;

 private:
  struct Slice {
    std::int64_t first = 0, count = 0, stride = 1;
  };

  Value eval(const Tree& tree);
  Number number(const Tree& tree);
  std::int64_t whole(const Tree& tree);
  const Value& borrow(const Tree& tree, Value& storage);
  Value call(const Lambda& lambda, std::vector<Value> arguments);
  std::vector<Value> run_lanes(std::int64_t count, const std::function<Value(std::int64_t)>& lane);
  const Value* find(const std::string& name) const;
  void bind_sizes(const std::vector<std::string>& names, const Pattern& pattern, const Value& value);
  std::vector<std::int64_t> position(const Node& node, std::size_t last, const Value& array);
  std::vector<std::int64_t> shape_of(const Value& array, const Type& type, std::size_t rank) const;
  Slice slice(const Node& node, std::int64_t length);
  Value run_loop(const Node& node);
  Value scalar(const Node& node);

  // evaluate_arrays.cpp
  Value array(const Node& node);
  Value soac(const Node& node);
  Value folded(const Node& node);
  Value placed(const Node& node);
  Value updated(const Node& node);
  Value made(const Node& node);
  Value rearranged(const Node& node);
  std::int64_t count(const Tree& tree, const char* what);
  void spend(std::int64_t elements);
  Value repeated(std::int64_t count, const Value& row);

  std::int64_t most_steps_ = 0, steps_ = 0;
  std::map<std::string, std::int64_t> sizes_;
  std::vector<std::pair<std::string, Value>> bound_;
};

}  // namespace apl::oracle
