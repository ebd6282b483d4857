#include "passes/extract_kernels/sparse_sums.h"

#include <set>

#include "ir/layouts.h"
#include "ir/sparse_bundle.h"
#include "ir/walk.h"

namespace apl {
namespace {

class SparseSums {
 public:
  SparseSums(const Function& function, std::set<Value> operands)
      : function_(function), layouts_(function), operands_(std::move(operands)) {}

  BodyPtr run(const BodyPtr& body, bool in_map) {
    std::vector<Stm> stms;
    for (const Stm& stm : body->stms) {
      const Screma* screma = get_if<Screma>(stm);
      stms.push_back(stm);
      if (screma != nullptr && in_map && !screma->reduces.empty() && !screma->scans() && reads_operand(*screma)) {
        stms.back().attributes.push_back({"sequential", {}});
      } else {
        stms.back().op =
            map_bodies(stm.op, [&](const BodyPtr& inner) { return run(inner, in_map || screma != nullptr); });
      }
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

  const Function& function_;
  const Layouts layouts_;
  const std::set<Value> operands_;
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
