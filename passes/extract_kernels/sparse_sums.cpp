#include "passes/extract_kernels/sparse_sums.h"

#include <algorithm>
#include <set>

#include "ir/attributes.h"
#include "ir/builder.h"
#include "ir/layouts.h"
#include "ir/sparse_soa.h"
#include "ir/walk.h"
#include "passes/analysis/absent.h"

namespace apl {
namespace {

class SparseSums {
 public:
  SparseSums(Function& function, std::set<Value> operands)
      : function_(function), layouts_(function), operands_(std::move(operands)) {
    for (const Value operand : operands_) shapes_.push_back(function.values.type(operand).shape);
  }

  BodyPtr run(const BodyPtr& body, bool in_map) {
    std::vector<Stm> stms;
    for (const Stm& stm : body->stms) {
      const Screma* screma = get_if<Screma>(stm);
      if (screma != nullptr && !in_map && goes_over_all(*screma)) {
        row_by_row(stm, *screma, stms);
        continue;
      }
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

  // A reduction over all elements of an operand whose absent ones are known to change nothing, or little.
  bool goes_over_all(const Screma& screma) const {
    if (screma.widths.size() < 2 || screma.reduces.empty() || screma.scans() ||
        screma.map.body->results.size() != screma.reduced_count())
      return false;
    const std::size_t last = screma.widths.size() - 1;
    Poly here, stride = 1;
    for (std::size_t d = screma.widths.size(); d-- > 0; stride = stride * screma.widths[d])
      here += stride * Poly(screma.indices[d]);
    std::vector<Value> zero;
    const auto look = [&](Value v) {
      const Layout* layout = layouts_.find(v);
      if (layout == nullptr || !operands_.contains(layout->base) || layout->lmad.rank() != 0) return;
      const std::vector<Poly>& shape = function_.values.type(layout->base).shape;
      if (shape == screma.widths && layout->lmad.offset() == here) zero.push_back(v);
    };
    for (const Value param : screma.map.params) look(param);
    for (const Stm& stm : screma.map.body->stms)
      for (const Value v : stm.pattern) look(v);
    if (zero.empty()) return false;
    const auto absent = sparsify::absent_terms(screma, last, zero, Op(screma), {}, function_.values);
    return std::holds_alternative<sparsify::AbsentTerms>(absent);
  }

  void row_by_row(const Stm& stm, const Screma& screma, std::vector<Stm>& stms) {
    ValueTable& values = function_.values;
    Screma row = screma, rows;
    rows.widths.assign(screma.widths.begin(), screma.widths.end() - 1);
    rows.indices.assign(screma.indices.begin(), screma.indices.end() - 1);
    rows.inputs = screma.inputs;
    row.widths = {screma.widths.back()};
    row.indices = {screma.indices.back()};
    row.inputs.clear();
    for (const Value param : screma.map.params) {
      const Type& element = values.type(param);
      std::vector<Poly> shape{screma.widths.back()};
      shape.insert(shape.end(), element.shape.begin(), element.shape.end());
      row.inputs.push_back(values.add(Type::array(element.element, shape), "row"));
    }
    rows.map.params = row.inputs;
    Builder out(values);
    out.set_location(stm.location);
    rows.map.body = out.body([&](Builder& body) {
      const std::vector<Value> sums = body.let_many({"sum"}, Op(row));
      body.stms().back().attributes = {make_attribute(attribute::sparse_sum)};
      return std::vector<Operand>(sums.begin(), sums.end());
    });
    const std::vector<Value> sums = out.let_many({"sums"}, std::move(rows));
    std::vector<ReduceOp> reduces = screma.reduces;
    for (ReduceOp& reduce : reduces) reduce.op = copy_fresh(reduce.op, {}, values, values);
    out.screma(
        {"sum"}, {screma.widths.begin(), screma.widths.end() - 1}, sums,
        [](Builder&, BoundValues params) {
          // After the indices, the rows' sums.
          return std::vector<Operand>(params.begin(), params.end());
        },
        std::move(reduces));
    std::vector<Stm> made = out.take();
    Stm& reduced = made.back();
    if (Screma* all = std::get_if<Screma>(&reduced.op))
      all->map.body = make_body({}, {all->map.params.begin(), all->map.params.end()});
    reduced.pattern = stm.pattern;
    reduced.certificates = stm.certificates;
    reduced.attributes = stm.attributes;
    for (Stm& one : made) stms.push_back(std::move(one));
  }

  // What is computed from an operand, and has its rows and columns, may be sparse, too.
  bool has_operand_shape(Value v) const {
    const std::vector<Poly>& shape = function_.values.type(v).shape;
    return shape.size() >= 2 &&
           std::ranges::find(shapes_, std::vector<Poly>(shape.end() - 2, shape.end())) != shapes_.end();
  }

  Function& function_;
  const Layouts layouts_;
  std::set<Value> operands_;
  std::vector<std::vector<Poly>> shapes_;
};

}  // namespace

BodyPtr keep_sparse_sums(Function& function) {
  const auto requests = sparse_requests(function);
  if (!requests || requests->empty()) return function.body;
  std::set<Value> operands;
  for (const SparseRequest& request : *requests) operands.insert(function.params[request.value]);
  return SparseSums(function, std::move(operands)).run(function.body, false);
}

}  // namespace apl
