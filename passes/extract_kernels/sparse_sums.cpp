#include "passes/extract_kernels/sparse_sums.h"

#include <algorithm>
#include <set>

#include "ir/attributes.h"
#include "ir/layouts.h"
#include "ir/sparse_soa.h"
#include "ir/walk.h"

namespace apl {
namespace {

class SparseSums {
 public:
  SparseSums(const Function& function, std::set<Value> operands)
      : function_(function), layouts_(function), operands_(std::move(operands)) {
    for (const Value operand : operands_) shapes_.push_back(function.values.type(operand).shape);
  }

  BodyPtr run(const BodyPtr& body, bool in_map) {
    std::vector<Stm> stms;
    for (const Stm& stm : body->stms) {
      const Screma* screma = get_if<Screma>(stm);
      stms.push_back(stm);
      if (screma != nullptr && in_map && !screma->reduces.empty() && !screma->scans() && reads_operand(*screma)) {
        stms.back().attributes.push_back(make_attribute(attribute::sparse_sum));
      } else {
        stms.back().op =
            map_bodies(stm.op, [&](const BodyPtr& inner) { return run(inner, in_map || screma != nullptr); });
      }
      if (screma != nullptr && reads_operand(*screma))
        for (const Value made : stm.pattern)
          if (has_operand_shape(made)) operands_.insert(made);
    }
    return make_body(std::move(stms), body->results);
  }

 private:
  bool is_operand(Value v) const {
    const Layout* layout = layouts_.find(v);
    return layout != nullptr && operands_.contains(layout->base);
  }
  bool reads_operand(const Screma& screma) const {
    for (const Value input : screma.inputs)
      if (is_operand(input)) return true;
    for (const Value v : free_values(screma.map, function_.values))
      if (is_operand(v)) return true;
    return false;
  }

  // What is computed from an operand, and has its rows and columns, may be sparse, too.
  bool has_operand_shape(Value v) const {
    const std::vector<Poly>& shape = function_.values.type(v).shape;
    return shape.size() >= 2 &&
           std::ranges::find(shapes_, std::vector<Poly>(shape.end() - 2, shape.end())) != shapes_.end();
  }

  const Function& function_;
  const Layouts layouts_;
  std::set<Value> operands_;
  std::vector<std::vector<Poly>> shapes_;
};

}  // namespace

BodyPtr keep_sparse_sums(const Function& function) {
  const auto requests = sparse_requests(function);
  if (!requests || requests->empty()) return function.body;
  std::set<Value> operands;
  for (const SparseRequest& request : *requests) operands.insert(function.params[request.value]);
  return SparseSums(function, std::move(operands)).run(function.body, false);
}

}  // namespace apl
