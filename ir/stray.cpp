#include "ir/stray.h"

#include <algorithm>
#include <set>

#include "ir/walk.h"

namespace apl {
namespace {

class Strays {
 public:
  explicit Strays(const ValueTable& values) : values_(values) {}

  // Whether the statement, or one inside of it, may. What it makes is noted in any case.
  bool operator()(const Stm& stm) {
    const bool found = in_op(stm.op);
    const bool computes = std::holds_alternative<Unary>(stm.op) || std::holds_alternative<Binary>(stm.op) ||
                          std::holds_alternative<Compare>(stm.op) || std::holds_alternative<Convert>(stm.op) ||
                          std::holds_alternative<SizeExpr>(stm.op) || std::holds_alternative<Use>(stm.op) ||
                          std::holds_alternative<GetSize>(stm.op);
    if (!computes || reads_data(stm.op)) read_.insert(stm.pattern.begin(), stm.pattern.end());
    return found;
  }

  bool in_op(const Op& op) {
    if (const Loop* loop = std::get_if<Loop>(&op)) {
      if (!loop->index || is_read(loop->bound)) return true;
      read_.insert(loop->params.begin(), loop->params.end());
    } else if (const Screma* screma = std::get_if<Screma>(&op)) {
      if (any_read(screma->widths)) return true;
      read_.insert(screma->map.params.begin(), screma->map.params.end());
      for (const ReduceOp& reduce : screma->reduces) read_.insert(reduce.op.params.begin(), reduce.op.params.end());
    } else if (const Scatter* scatter = std::get_if<Scatter>(&op)) {
      if (any_read(scatter->widths)) return true;  // positions are checked always
      read_.insert(scatter->map.params.begin(), scatter->map.params.end());
      if (scatter->op) read_.insert(scatter->op->op.params.begin(), scatter->op->op.params.end());
    } else if (const Index* index = std::get_if<Index>(&op)) {
      if (!index->checked && any_read(index->dims)) return true;
    } else if (const Update* update = std::get_if<Update>(&op)) {
      if (!update->checked && any_read(update->dims)) return true;
    } else if (std::holds_alternative<Apply>(op)) {
      if (reads_data(op)) return true;  // its loops may run as often as an argument says
    } else if (const CopyTile* copy = std::get_if<CopyTile>(&op)) {
      if (!copy->gathers.empty()) return true;
    }
    bool found = false;
    for_each_body(op, [&](const BodyPtr& body) {
      for (const Stm& stm : body->stms) found = (*this)(stm) || found;
    });
    return found;
  }

 private:
  bool is_read(const Poly& p) const {
    bool found = false;
    p.for_each_symbol([&](Value v) { found = found || read_.contains(v); });
    return found;
  }
  bool any_read(const std::vector<Poly>& sizes) const {
    return std::ranges::any_of(sizes, [&](const Poly& p) { return is_read(p); });
  }
  bool any_read(const std::vector<DimIndex>& dims) const {
    return std::ranges::any_of(dims, [&](const DimIndex& dim) {
      return is_read(dim.start) || (dim.is_slice() && (is_read(*dim.count) || is_read(dim.stride)));
    });
  }
  bool reads_data(const Op& op) const {
    bool found = false;
    for_each_use(op, [&](Value v) { found = found || read_.contains(v) || !values_.type(v).is_scalar(); });
    return found;
  }

  const ValueTable& values_;
  std::set<Value> read_;  // what depends on elements of arrays
};

}  // namespace

bool may_stray(const Op& kernel, const ValueTable& values) { return Strays(values).in_op(kernel); }

bool may_stray_beside(const Body& body, const Stm& apart, const ValueTable& values) {
  Strays strays(values);
  bool found = false;
  for (const Stm& stm : body.stms) {
    const bool strays_here = strays(stm);
    found = found || (strays_here && &stm != &apart);
  }
  return found;
}

}  // namespace apl
