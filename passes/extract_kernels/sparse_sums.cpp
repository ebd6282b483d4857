#include "passes/extract_kernels/sparse_sums.h"

#include <algorithm>
#include <set>

#include "ir/attributes.h"
#include "ir/builder.h"
#include "ir/layouts.h"
#include "ir/sparse_soa.h"
#include "ir/walk.h"
#include "passes/analysis/absent.h"
#include "passes/extract_kernels/split_operators.h"

namespace apl {
namespace {

class SparseSums {
 public:
  SparseSums(Function& function, SparseValues operands)
      : function_(function), layouts_(function), operands_(std::move(operands)) {
    for (const Value operand : operands_) shapes_.push_back(function.values.type(operand).shape);
  }

  // Reductions that make rows come apart.
  BodyPtr split(const BodyPtr& body, bool in_map) {
    std::vector<Stm> stms;
    for (const Stm& stm : body->stms) {
      const Screma* screma = get_if<Screma>(stm);
      if (in_map && screma != nullptr && reduces(*screma) && makes_rows(*screma) && reads_operand(*screma)) {
        for (Stm& part : split_operators(stm, function_.values)) {
          drop_unread_inputs(std::get<Screma>(part.op));
          note(part, in_map);
          stms.push_back(std::move(part));
        }
        continue;
      }
      stms.push_back(stm);
      stms.back().op =
          map_bodies(stm.op, [&](const BodyPtr& inner) { return split(inner, in_map || screma != nullptr); });
      note(stm, in_map);
    }
    return make_body(std::move(stms), body->results);
  }

  BodyPtr mark(const BodyPtr& body, bool in_map) {
    std::vector<Stm> stms;
    for (const Stm& stm : body->stms) {
      const Screma* screma = get_if<Screma>(stm);
      if (screma != nullptr && !in_map && goes_over_all(*screma)) {
        row_by_row(stm, *screma, stms);
        continue;
      }
      stms.push_back(stm);
      if (screma != nullptr && in_map && reduces(*screma) && reads_operand(*screma)) {
        stms.back().attributes.push_back(make_attribute(attribute::sparse_sum));
      } else {
        stms.back().op =
            map_bodies(stm.op, [&](const BodyPtr& inner) { return mark(inner, in_map || screma != nullptr); });
      }
      note(stm, in_map);
    }
    return make_body(std::move(stms), body->results);
  }

  // With rows and views.
  SparseValues arrays() const {
    SparseValues all = operands_;
    const auto add = [&](Value v) {
      if (function_.values.type(v).is_array() && is_operand(v)) all.insert(v);
    };
    for_each_stm(*function_.body, [&](const Stm& stm) {
      std::ranges::for_each(stm.pattern, add);
      for_each_binder(stm.op, add);
    });
    return all;
  }

 private:
  static bool reduces(const Screma& screma) { return !screma.reduces.empty() && !screma.scans(); }
  static bool makes_rows(const Screma& screma) { return screma.map.body->results.size() > screma.reduced_count(); }

  void drop_unread_inputs(Screma& screma) const {
    const std::set<Value> read = free_values(*screma.map.body, function_.values);
    for (std::size_t k = screma.inputs.size(); k-- > 0;) {
      if (read.contains(screma.map.params[k])) continue;
      screma.inputs.erase(screma.inputs.begin() + static_cast<std::ptrdiff_t>(k));
      screma.map.params.erase(screma.map.params.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }

  // What is computed from an operand and has its rows and columns, or in a map from the elements of a row, may be
  // sparse, too.
  void note(const Stm& stm, bool in_map) {
    const Screma* screma = get_if<Screma>(stm);
    if (screma == nullptr || !reads_operand(*screma)) return;
    const bool by_element = in_map && reads_elements(*screma);
    for (std::size_t k = 0; k < stm.pattern.size(); ++k)
      if (screma->is_array(k) && (by_element || has_operand_shape(stm.pattern[k]))) operands_.insert(stm.pattern[k]);
  }
  bool reads_elements(const Screma& screma) const {
    for (std::size_t k = 0; k < screma.inputs.size(); ++k)
      if (is_operand(screma.inputs[k]) && function_.values.type(screma.map.params[k]).is_scalar()) return true;
    return false;
  }

  bool is_operand(Value v) const {
    const Layout* layout = layouts_.find(v);
    return operands_.contains(v) || (layout != nullptr && operands_.contains(layout->base));
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

  bool has_operand_shape(Value v) const {
    const std::vector<Poly>& shape = function_.values.type(v).shape;
    return shape.size() >= 2 &&
           std::ranges::find(shapes_, std::vector<Poly>(shape.end() - 2, shape.end())) != shapes_.end();
  }

  Function& function_;
  const Layouts layouts_;
  SparseValues operands_;
  std::vector<std::vector<Poly>> shapes_;
};

// Maps in a body that make rows from sparse arrays.
class SparseRowFinder {
 public:
  SparseRowFinder(SparseValues arrays, const ValueTable& values) : arrays_(std::move(arrays)), values_(values) {}

  bool any(const Body& body) {
    return std::ranges::any_of(body.stms, [&](const Stm& stm) { return makes_row(stm); });
  }

 private:
  bool makes_row(const Stm& stm) {
    bool found = false;
    if (const Screma* screma = get_if<Screma>(stm)) {
      const bool makes = screma->map.body->results.size() > screma->reduced_count() || screma->scans();
      for (std::size_t k = 0; k < screma->inputs.size(); ++k) {
        if (!arrays_.contains(screma->inputs[k])) continue;
        arrays_.insert(screma->map.params[k]);
        found = found || (makes && values_.type(screma->map.params[k]).is_scalar());
      }
      found = found || (makes && reads_own_elements(*screma));
    }
    for_each_body(stm.op, [&](const BodyPtr& inner) { found = found || any(*inner); });
    if (get_if<Index>(stm) && values_.type(stm.pattern.front()).is_array() &&
        arrays_.contains(std::get<Index>(stm.op).array))
      arrays_.insert(stm.pattern.front());
    return found;
  }
  // Whether the lambda reads an element of a sparse array at the map's own index.
  bool reads_own_elements(const Screma& screma) const {
    const std::set<Value> indices(screma.indices.begin(), screma.indices.end());
    bool found = false;
    for (const Stm& stm : screma.map.body->stms) {
      const Index* index = get_if<Index>(stm);
      if (index == nullptr || !arrays_.contains(index->array) || values_.type(stm.pattern.front()).is_array()) continue;
      for (const DimIndex& dim : index->dims)
        dim.start.for_each_symbol([&](Value v) { found = found || indices.contains(v); });
    }
    return found;
  }

  SparseValues arrays_;
  const ValueTable& values_;
};

}  // namespace

SparseValues keep_sparse_sums(Function& function) {
  const auto requests = sparse_requests(function);
  if (!requests || requests->empty()) return {};
  SparseValues operands;
  for (const SparseRequest& request : *requests) operands.insert(function.params[request.value]);
  function.body = SparseSums(function, operands).split(function.body, false);
  SparseSums sums(function, std::move(operands));
  function.body = sums.mark(function.body, false);
  return sums.arrays();
}

bool makes_sparse_rows(const Stm& flat, SparseValues arrays, const ValueTable& values) {
  return SparseRowFinder(std::move(arrays), values).any(*std::get<Screma>(flat.op).map.body);
}

}  // namespace apl
