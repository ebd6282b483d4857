// Operators beside others, each as a statement of its own.
//
//   let {s, cs, B} = screma(i < n, {A}, f, reduce op, scan op')    with rows B
// =>
//   let {cs, B} = screma(i < n, {A}, f, scan op')
//   let {s} = screma(i < n, {A}, f, reduce op)
//
// What both need is computed twice if it is cheap. If not, the reduction streams the rows that are made anyway; where
// that does not help, a map before them makes the operands of both.
#include "passes/extract_kernels/split_operators.h"

#include <algorithm>
#include <set>

#include "ir/walk.h"
#include "passes/analysis/cheap.h"

namespace apl {

namespace {

using Operands = std::vector<Operand>;

PartOfScrema operators_of(const Screma& screma, bool scan) {
  PartOfScrema part;
  std::size_t next = 0;
  for (const ReduceOp& reduce : screma.reduces) {
    for (std::size_t k = 0; k < reduce.neutral.size(); ++k, ++next)
      if (reduce.scan == scan) part.operands.push_back(next);
    if (reduce.scan == scan) part.reduces.push_back(reduce);
  }
  return part;
}

// The statements that a part's results need, by position; what `given` holds is there already.
std::set<std::size_t> slice_for(const PartOfScrema& part, const Body& body, const std::set<Value>& given,
                                const ValueTable& values) {
  std::set<Value> needed;
  const auto need = [&](Value v) {
    if (!given.contains(v)) needed.insert(v);
  };
  for (const std::vector<std::size_t>& positions : {part.operands, part.rows})
    for (const std::size_t k : positions)
      if (body.results[k].is_value()) need(body.results[k].value());
  std::set<std::size_t> slice;
  for (std::size_t k = body.stms.size(); k-- > 0;) {
    const Stm& stm = body.stms[k];
    if (std::ranges::none_of(stm.pattern, [&](Value v) { return needed.contains(v); })) continue;
    slice.insert(k);
    for (const Value v : free_values(stm.op, values)) need(v);
    for (const Value v : stm.certificates) need(v);
    for (const Value v : stm.pattern) for_each_use(values.type(v), need);
  }
  return slice;
}

bool shares_only_cheap_work(const Body& body, const std::set<std::size_t>& one, const std::set<std::size_t>& other,
                            const ValueTable& values) {
  Body shared;
  for (const std::size_t k : one)
    if (other.contains(k)) shared.stms.push_back(body.stms[k]);
  return is_cheap(shared, values);
}

class OperatorSplitter {
 public:
  OperatorSplitter(const Stm& stm, ValueTable& values)
      : stm_(stm),
        screma_(std::get<Screma>(stm.op)),
        body_(*screma_.map.body),
        values_(values),
        folds_(operators_of(screma_, false)),
        makes_(operators_of(screma_, true)) {
    for (std::size_t k = screma_.reduced_count(); k < body_.results.size(); ++k) makes_.rows.push_back(k);
  }

  std::vector<Stm> run() {
    if (folds_.empty() || makes_.empty()) return {stm_};
    const std::set<std::size_t> makes = slice_for(makes_, body_, {}, values_);
    if (shares_only_cheap_work(body_, slice_for(folds_, body_, {}, values_), makes, values_))
      return {part(folds_, screma_), part(makes_, screma_)};
    std::set<Value> made;
    for (const std::size_t k : makes_.rows)
      if (defining_stm(body_, body_.results[k].is_value() ? body_.results[k].value() : Value()) != nullptr)
        made.insert(body_.results[k].value());
    const std::set<std::size_t> rest = slice_for(folds_, body_, made, values_);
    if (shares_only_cheap_work(body_, rest, makes, values_))
      return {part(makes_, screma_), part(folds_, streaming(made, rest))};
    return after_a_map();
  }

 private:
  // The reduction, with the rows that are made as inputs.
  Screma streaming(const std::set<Value>& made, const std::set<std::size_t>& rest) {
    Screma source = screma_;
    Substitution rows;
    for (const std::size_t k : makes_.rows) {
      const Operand& row = body_.results[k];
      if (!row.is_value() || !made.contains(row.value()) || rows.contains(row.value())) continue;
      const Value param = values_.add(values_.type(row), values_.name(row.value()));
      source.inputs.push_back(stm_.pattern[k]);
      source.map.params.push_back(param);
      rows.emplace(row.value(), param);
    }
    std::vector<Stm> stms;
    for (const std::size_t k : rest) stms.push_back(body_.stms[k]);
    source.map.body = substitute(make_body(std::move(stms), body_.results), rows, values_);
    return source;
  }

  // A map that makes all rows and operands; the operators only stream those.
  std::vector<Stm> after_a_map() {
    Stm map = stm_;
    std::get<Screma>(map.op).reduces.clear();
    Screma source = screma_;
    source.inputs.clear();
    source.map = {};
    Operands elements;
    for (std::size_t k = 0; k < screma_.reduced_count(); ++k) {
      Type type = values_.type(body_.results[k]);
      const Value element = values_.add(type, values_.name(stm_.pattern[k]));
      type.shape.insert(type.shape.begin(), screma_.widths.begin(), screma_.widths.end());
      map.pattern[k] = values_.add(Type::array(type.element, type.shape), values_.name(stm_.pattern[k]));
      source.inputs.push_back(map.pattern[k]);
      source.map.params.push_back(element);
      elements.emplace_back(element);
    }
    source.map.body = make_body({}, std::move(elements));
    std::vector<Stm> result{std::move(map), part(folds_, source)};
    PartOfScrema scans = makes_;
    scans.rows.clear();
    if (!scans.empty()) result.push_back(part(scans, source));
    return result;
  }

  Stm part(const PartOfScrema& which, const Screma& source) { return part_of(stm_, source, which, values_); }

  const Stm& stm_;
  const Screma& screma_;
  const Body& body_;
  ValueTable& values_;
  PartOfScrema folds_;  // operators that reduce
  PartOfScrema makes_;  // operators that scan, and the mapped rows
};

}  // namespace

PartOfScrema operator_alone(const Screma& screma, std::size_t which) {
  PartOfScrema part{.operands = {}, .rows = {}, .reduces = {screma.reduces[which]}};
  std::size_t first = 0;
  for (std::size_t k = 0; k < which; ++k) first += screma.reduces[k].neutral.size();
  for (std::size_t k = 0; k < screma.reduces[which].neutral.size(); ++k) part.operands.push_back(first + k);
  return part;
}

Stm part_of(const Stm& stm, const Screma& source, const PartOfScrema& part, ValueTable& values) {
  Screma own = source;
  own.reduces = part.reduces;
  Stm result = stm;
  result.pattern.clear();
  Operands results;
  for (const std::vector<std::size_t>& positions : {part.operands, part.rows})
    for (const std::size_t k : positions) {
      results.push_back(source.map.body->results[k]);
      result.pattern.push_back(stm.pattern[k]);
    }
  std::vector<Stm> stms;
  for (const std::size_t k : slice_for(part, *source.map.body, {}, values)) stms.push_back(source.map.body->stms[k]);
  own.map.body = make_body(std::move(stms), std::move(results));
  Substitution indices;
  for (Value& index : own.indices) {
    const Value fresh = values.add(values.type(index), values.name(index));
    indices.insert_or_assign(index, Operand(fresh));
    index = fresh;
  }
  own.map = copy_fresh(own.map, std::move(indices), values, values);
  result.op = std::move(own);
  return result;
}

std::vector<Stm> split_operators(const Stm& stm, ValueTable& values) {
  return std::holds_alternative<Screma>(stm.op) ? OperatorSplitter(stm, values).run() : std::vector<Stm>{stm};
}

}  // namespace apl
