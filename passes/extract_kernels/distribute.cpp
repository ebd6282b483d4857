// Imperfect nests:
//
//   map(i < m, {xss}, \ {xs} -> {
//     let {s} = reduce(j < n, {xs}, add, {0.0f32})
//     let {ys} = map(j < n, {xs}, \ {x} -> {div(x, s)})
//     in {ys}
//   })
// =>
//   let {ss} = map(i < m) { let {xs} = xss[i]  let {s} = reduce(j < n, {xs}, add, {0.0f32})  in {s} }
//   let {yss} = map(i < m, j < n) { let {xs} = xss[i]  let {s} = ss[i]  let {x} = xs[j]  in {div(x, s)} }
//
// Each parallel part of the lambda (parts.h) becomes an operation over the outer widths and its own, work becomes a
// map; what crosses from one part to another becomes an array.
//
//   map { loop { map } }      =>  loop { map { map } }                       the loop runs on the host
//   map { if c { map } .. }   =>  if c { map { map } } ..                    c is the same for all indices
//   map { reduce }, { scan }  =>  a reduction, scan over segments (reductions.cpp, scans.cpp)
//   map { scatter }           =>  scatter into the array of the targets, over both widths
#include "passes/extract_kernels/distribute.h"

#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <set>

#include "ir/attributes.h"
#include "ir/builder.h"
#include "ir/walk.h"
#include "passes/extract_kernels/nest.h"
#include "passes/extract_kernels/parts.h"
#include "passes/extract_kernels/reductions.h"
#include "passes/extract_kernels/scans.h"

namespace apl {

namespace {

class Splitter {
 public:
  Splitter(const Stm& flat, const Parts& parts, const ChunksFor& chunks, bool overwritten, ValueTable& values)
      : flat_(flat),
        map_(std::get<Screma>(flat.op)),
        parts_(parts),
        stms_(parts.stms()),
        chunks_(chunks),
        overwritten_(overwritten),
        values_(values) {}

  Distributed run() {
    Distributed result;
    result.parts = parts_.list().size();
    for (const Stm& stm : stms_)
      if (const std::optional<Value> whole = parts_.adopted(stm)) arrays_.emplace(stm.pattern.front(), *whole);
    if (result.parts == 1) result.form = form_of(stms_[parts_.list().front().members.front()]);
    for (const Part& part : parts_.list()) emit(part);
    bind_results();
    result.stms = std::move(made_);
    result.work = std::move(work_);
    return result;
  }

 private:
  // Everything a part of the lambda reads: rows of what other parts made, then what is done again.
  std::vector<Stm> prefix(const std::set<Value>& direct, std::vector<Stm> uses, const Part* own) {
    const std::set<Value> needed = parts_.through_repeated(direct);
    // A view between a row and what overwrites it does not hide it.
    for (std::size_t k = 0; k < stms_.size(); ++k)
      if (parts_.is_repeated(k)) uses.push_back(stms_[k]);
    std::vector<Stm> result;
    std::vector<DimIndex> here;
    for (const Value index : map_.indices) here.push_back(DimIndex::fix(index));
    for (std::size_t k = 0; k < stms_.size(); ++k) {
      const bool inside = own != nullptr && std::ranges::find(own->members, k) != own->members.end();
      if (inside) continue;
      const Stm& stm = stms_[k];
      const auto read = [&](Value v) { return needed.contains(v); };
      if (std::ranges::none_of(stm.pattern, read)) continue;
      if (parts_.is_repeated(k)) {
        result.push_back(stm);
        continue;
      }
      for (const Value v : stm.pattern)
        if (read(v)) add_row(v, Index{arrays_.at(v), here}, uses, stm.location, values_, result);
    }
    return result;
  }

  // A copy of the statements for fresh indices over the map's widths; the copied results.
  struct Copied {
    std::vector<Value> indices;
    std::vector<Stm> stms;
    std::vector<Operand> results;
  };
  Copied copied(std::vector<Stm> stms, std::vector<Operand> results) {
    Copied copy;
    Substitution here;
    for (const Value index : map_.indices) {
      copy.indices.push_back(values_.add(values_.type(index), values_.name(index)));
      here.insert_or_assign(index, Operand(copy.indices.back()));
    }
    // Shapes of what is copied do not mention the indices: they are regular, or used inside only.
    const BodyPtr body = copy_fresh(make_body(std::move(stms), std::move(results)), here, values_, values_);
    copy.stms = body->stms;
    copy.results = body->results;
    return copy;
  }

  Value array_of(Value v) {
    const auto made = arrays_.find(v);
    if (made != arrays_.end()) return made->second;
    Type type = values_.type(v);
    std::vector<Poly> shape = map_.widths;
    shape.insert(shape.end(), type.shape.begin(), type.shape.end());
    const Value array = values_.add(Type::array(type.element, std::move(shape)), values_.name(v));
    arrays_.emplace(v, array);
    return array;
  }

  Stm map_stm(Copied copy, std::vector<Value> pattern, Location location) {
    Screma map{.widths = map_.widths, .indices = copy.indices};
    map.map.body = make_body(std::move(copy.stms), std::move(copy.results));
    return {.pattern = std::move(pattern),
            .op = std::move(map),
            .location = location,
            .certificates = flat_.certificates,
            .attributes = flat_.attributes};
  }

  void emit(const Part& group) {
    if (!group.parallel) return emit_work(group);
    const Stm& stm = stms_[group.members.front()];
    if (const Screma* screma = get_if<Screma>(stm)) {
      if (screma->reduces.empty()) return emit_nest(group, stm, *screma);
      return emit_segments(group, stm, *screma);
    }
    if (const Scatter* scatter = get_if<Scatter>(stm)) return emit_scatter(group, stm, *scatter);
    if (const Loop* loop = get_if<Loop>(stm)) return emit_loop(group, stm, *loop);
    emit_branch(group, stm, std::get<If>(stm.op));
  }

  // Checks that no index has a say in are the host's, unless there is no index.
  bool emit_checks_of_host(const Part& group) {
    const auto is_bound_here = [&](Value v) {
      return parts_.definer(v) || std::ranges::find(map_.indices, v) != map_.indices.end() ||
             std::ranges::find(map_.map.params, v) != map_.map.params.end();
    };
    if (group.members.empty() || !group.exports.empty() || !group.extra.empty()) return false;
    for (const std::size_t k : group.members) {
      const std::set<Value> read = free_values(stms_[k].op, values_);
      if (!std::holds_alternative<Assert>(stms_[k].op) || !stms_[k].certificates.empty() ||
          std::ranges::any_of(read, is_bound_here))
        return false;
    }
    Builder host(values_);
    host.set_location(location(group));
    std::optional<Operand> none;
    for (const Poly& width : map_.widths) {
      const Value empty = host.compare(CompareOp::le, host.size(width), Operand(Scalar::integer(ScalarType::i64, 0)));
      none = none ? Operand(host.let("none", Binary{BinaryOp::disj, *none, empty})) : Operand(empty);
    }
    for (const std::size_t k : group.members) {
      Assert check = std::get<Assert>(stms_[k].op);
      if (none) check.condition = host.let("passed", Binary{BinaryOp::disj, check.condition, *none});
      host.append({.pattern = {values_.add(values_.type(stms_[k].pattern.front()), "c")},
                   .op = std::move(check),
                   .location = stms_[k].location,
                   .certificates = flat_.certificates});
    }
    std::vector<Stm> stms = host.take();
    for (Stm& stm : stms) made_.push_back(std::move(stm));
    return true;
  }

  void emit_work(const Part& group) {
    if (emit_checks_of_host(group)) return;
    std::vector<Stm> own;
    std::set<Value> needed;
    for (const std::size_t k : group.members) {
      own.push_back(stms_[k]);
      needed.merge(parts_.needs(stms_[k]));
    }
    std::vector<Operand> results(group.exports.begin(), group.exports.end());
    std::vector<Value> pattern;
    for (const Value v : group.exports) pattern.push_back(array_of(v));
    for (const Operand& result : group.extra) {
      if (result.is_value()) needed.insert(result.value());
      results.push_back(result);
      Type type = values_.type(result);
      type.shape.insert(type.shape.begin(), map_.widths.begin(), map_.widths.end());
      pattern.push_back(values_.add(Type::array(type.element, type.shape), "extra"));
      extra_arrays_.emplace_back(result, pattern.back());
    }
    // In the lambda's order: what is done again stands between the group's own.
    std::vector<Stm> before = prefix(needed, own, &group);
    std::vector<Stm> all = in_order(std::move(before), std::move(own));
    made_.push_back(map_stm(copied(std::move(all), std::move(results)), std::move(pattern), location(group)));
    work_.insert(made_.size() - 1);
  }

  // Statements sorted by where their values are bound in the lambda; rows of other parts' arrays first.
  std::vector<Stm> in_order(std::vector<Stm> before, std::vector<Stm> own) const {
    std::vector<Stm> rows, rest;
    for (Stm& stm : before) {
      const std::optional<std::size_t> from = stm.pattern.empty() ? std::nullopt : parts_.definer(stm.pattern.front());
      const bool again = from && parts_.is_repeated(*from);
      (again ? rest : rows).push_back(std::move(stm));
    }
    for (Stm& stm : own) rest.push_back(std::move(stm));
    std::ranges::stable_sort(rest, {}, [&](const Stm& stm) {
      return stm.pattern.empty() ? stms_.size() : *parts_.definer(stm.pattern.front());
    });
    rows.insert(rows.end(), rest.begin(), rest.end());
    return rows;
  }

  Location location(const Part& group) const {
    return group.members.empty() ? flat_.location : stms_[group.members.front()].location;
  }

  // The operation that relied on checks is gone: each of its statements does.
  static void rely(std::vector<Stm>& stms, std::size_t first, const std::vector<Value>& checks) {
    for (std::size_t k = first; k < stms.size(); ++k)
      stms[k].certificates.insert(stms[k].certificates.end(), checks.begin(), checks.end());
  }

  // map { map } over all widths.
  void emit_nest(const Part& group, const Stm& stm, const Screma& screma) {
    const Lambda& lambda = screma.map;
    std::vector<Stm> stms = prefix(parts_.needs(stm), {stm}, &group);
    const std::size_t first = stms.size();
    std::vector<DimIndex> own;
    for (const Value index : screma.indices) own.push_back(DimIndex::fix(index));
    // Inner indices are bound by the new map, so that they are copied by hand.
    Substitution fresh;
    std::vector<Value> indices;
    for (const Value index : screma.indices) {
      indices.push_back(values_.add(values_.type(index), values_.name(index)));
      fresh.insert_or_assign(index, Operand(indices.back()));
    }
    const std::set<Value> read = free_values(*lambda.body, values_);
    for (const auto& [param, input] : ranges::views::zip(lambda.params, screma.inputs))
      if (read.contains(param)) add_row(param, Index{input, own}, lambda.body->stms, stm.location, values_, stms);
    stms.insert(stms.end(), lambda.body->stms.begin(), lambda.body->stms.end());
    rely(stms, first, stm.certificates);
    std::vector<Operand> results;
    std::vector<Value> pattern;
    for (const auto& [made, result] : ranges::views::zip(stm.pattern, lambda.body->results)) {
      if (std::ranges::find(group.exports, made) == group.exports.end()) continue;
      results.push_back(result);
      pattern.push_back(array_of(made));
    }
    const BodyPtr renamed = substitute(make_body(std::move(stms), std::move(results)), fresh, values_);
    Stm made = map_stm(copied(renamed->stms, renamed->results), std::move(pattern), stm.location);
    Screma& map = std::get<Screma>(made.op);
    map.widths.insert(map.widths.end(), screma.widths.begin(), screma.widths.end());
    map.indices.insert(map.indices.end(), indices.begin(), indices.end());
    made.attributes.insert(made.attributes.end(), stm.attributes.begin(), stm.attributes.end());
    made_.push_back(std::move(made));
  }

  void emit_segments(const Part& group, const Stm& stm, const Screma& screma) {
    Copied copy = copied(in_order(prefix(parts_.needs(stm), {stm}, &group), {stm}), {});
    Stm inner = std::move(copy.stms.back());
    copy.stms.pop_back();
    BodyPtr& body = std::get<Screma>(inner.op).map.body;
    std::vector<Stm> stms = body->stms;
    rely(stms, 0, inner.certificates);
    body = make_body(std::move(stms), body->results);
    for (const auto& [array, made] : ranges::views::zip(inner.pattern, stm.pattern)) array = array_of(made);
    inner.certificates = flat_.certificates;
    const Segments segments{map_.widths, copy.indices, std::move(copy.stms)};
    const std::vector<Stm> all = screma.scans()
                                     ? make_chunked_scan(inner, segments, chunks_(inner, segments), values_)
                                     : make_chunked_reduction(inner, segments, chunks_(inner, segments), values_);
    made_.insert(made_.end(), all.begin(), all.end());
  }

  // One scatter over both widths, into the arrays of the targets.
  void emit_scatter(const Part& group, const Stm& stm, const Scatter& scatter) {
    std::set<Value> needed = free_values(scatter.map, values_);
    if (scatter.op) needed.merge(free_values(scatter.op->op, values_));
    needed.insert(scatter.inputs.begin(), scatter.inputs.end());
    needed.insert(stm.certificates.begin(), stm.certificates.end());
    // The targets are not read.
    std::vector<Stm> stms = prefix(needed, {}, &group);
    Stm alone = stm;
    Scatter& op = std::get<Scatter>(alone.op);
    const std::vector<Value> targets = op.targets;
    stms.push_back(alone);
    Copied copy = copied(std::move(stms), {});
    Scatter inner = std::get<Scatter>(copy.stms.back().op);
    const std::vector<Value> checks = copy.stms.back().certificates;
    copy.stms.pop_back();
    const std::size_t first = copy.stms.size();
    Scatter wide = inner;
    wide.widths = map_.widths;
    wide.widths.insert(wide.widths.end(), inner.widths.begin(), inner.widths.end());
    wide.indices = copy.indices;
    wide.indices.insert(wide.indices.end(), inner.indices.begin(), inner.indices.end());
    wide.rank = map_.widths.size() + inner.rank;
    std::vector<DimIndex> own;
    for (const Value index : inner.indices) own.push_back(DimIndex::fix(index));
    for (const auto& [param, input] : ranges::views::zip(inner.map.params, inner.inputs))
      add_row(param, Index{input, own}, inner.map.body->stms, stm.location, values_, copy.stms);
    copy.stms.insert(copy.stms.end(), inner.map.body->stms.begin(), inner.map.body->stms.end());
    rely(copy.stms, first, checks);
    std::vector<Operand> results(copy.indices.begin(), copy.indices.end());
    results.insert(results.end(), inner.map.body->results.begin(), inner.map.body->results.end());
    wide.inputs.clear();
    wide.map.params.clear();
    wide.map.body = make_body(std::move(copy.stms), std::move(results));
    for (const auto& [array, target] : ranges::views::zip(wide.targets, targets)) array = arrays_.at(target);
    push_host(stm, std::move(wide));
  }

  // The arrays that hold `wanted` for every index: those of other parts, or made here.
  std::vector<Value> arrays_for(const std::vector<Operand>& wanted, const Part& group, Location at) {
    std::vector<Value> result(wanted.size(), Value());
    std::vector<Operand> results;
    std::vector<Value> pattern;
    std::set<Value> needed;
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      const Operand& x = wanted[k];
      if (x.is_value() && parts_.is_kept(x.value())) {
        result[k] = arrays_.at(x.value());
        continue;
      }
      if (const std::optional<Value> whole = x.is_value() ? parts_.rows_of(x.value()) : std::nullopt) {
        result[k] = *whole;
        if (!overwritten_) continue;
        result[k] = values_.add(values_.type(*whole), values_.name(x.value()));
        made_.push_back({.pattern = {result[k]}, .op = Copy{*whole}, .location = at});
        continue;
      }
      if (x.is_value()) needed.insert(x.value());
      Type type = values_.type(x);
      type.shape.insert(type.shape.begin(), map_.widths.begin(), map_.widths.end());
      result[k] =
          values_.add(Type::array(type.element, type.shape), x.is_value() ? values_.name(x.value()) : "initial");
      results.push_back(x);
      pattern.push_back(result[k]);
    }
    if (!pattern.empty()) {
      std::vector<Stm> stms = prefix(needed, {}, &group);
      made_.push_back(map_stm(copied(std::move(stms), std::move(results)), std::move(pattern), at));
    }
    return result;
  }

  // A body of `stm`, a loop or branch, as a map over the widths whose results are arrays; of `rows`, which are rows of
  // arrays, the body overwrites those in `adopted` and does nothing else with them. A row that it yields unchanged is
  // its array.
  BodyPtr mapped(const Body& body, const std::vector<std::pair<Value, Value>>& rows, const std::set<Value>& adopted,
                 const Part& group, const Stm& stm) {
    std::set<Value> needed = free_values(body, values_);
    needed.insert(stm.certificates.begin(), stm.certificates.end());
    for (const auto& [row, array] : rows) needed.erase(row);
    std::vector<Stm> stms = prefix(needed, body.stms, &group);
    const std::size_t first = stms.size();
    std::vector<DimIndex> here;
    for (const Value index : map_.indices) here.push_back(DimIndex::fix(index));
    for (const auto& [row, array] : rows) {
      add_row(row, Index{array, here}, body.stms, stm.location, values_, stms);
      if (adopted.contains(row)) stms.back().attributes.push_back(make_attribute(attribute::adopted));
    }
    stms.insert(stms.end(), body.stms.begin(), body.stms.end());
    rely(stms, first, stm.certificates);
    std::vector<Value> pattern;
    std::vector<Operand> made, results;
    std::set<Value> yielded;
    for (const auto& [v, result] : ranges::views::zip(stm.pattern, body.results)) {
      const auto row = std::ranges::find_if(rows, [&](const auto& each) { return Operand(each.first) == result; });
      if (row != rows.end() && yielded.insert(row->first).second) {
        results.emplace_back(row->second);
        continue;
      }
      pattern.push_back(values_.add(values_.type(array_of(v)), values_.name(v)));
      results.emplace_back(pattern.back());
      made.push_back(result);
    }
    if (pattern.empty()) return make_body({}, std::move(results));
    Stm map = map_stm(copied(std::move(stms), std::move(made)), std::move(pattern), stm.location);
    return make_body({std::move(map)}, std::move(results));
  }

  void emit_loop(const Part& group, const Stm& stm, const Loop& loop) {
    Loop outer{.index = loop.index, .bound = loop.bound};
    const std::vector<Value> initial = arrays_for(loop.initial, group, stm.location);
    outer.initial.assign(initial.begin(), initial.end());
    std::vector<std::pair<Value, Value>> rows;
    for (std::size_t k = 0; k < loop.params.size(); ++k) {
      outer.params.push_back(values_.add(values_.type(initial[k]), values_.name(loop.params[k])));
      rows.emplace_back(loop.params[k], outer.params[k]);
    }
    outer.body = mapped(*loop.body, rows, scattered_params(loop), group, stm);
    push_host(stm, std::move(outer));
  }

  void emit_branch(const Part& group, const Stm& stm, const If& branch) {
    If outer{.condition = branch.condition};
    outer.then_body = mapped(*branch.then_body, {}, {}, group, stm);
    outer.else_body = mapped(*branch.else_body, {}, {}, group, stm);
    push_host(stm, std::move(outer));
  }

  void push_host(const Stm& stm, Op op) {
    std::vector<Value> pattern;
    for (const Value v : stm.pattern) pattern.push_back(array_of(v));
    made_.push_back({.pattern = std::move(pattern),
                     .op = std::move(op),
                     .location = stm.location,
                     .certificates = flat_.certificates,
                     .attributes = stm.attributes});
  }

  // The map's own results are other names of the arrays; two of one array are no names but arrays.
  void bind_results() {
    const std::vector<Operand>& results = map_.map.body->results;
    std::set<Value> bound;
    for (std::size_t k = 0; k < results.size(); ++k) {
      Value array;
      if (results[k].is_value() && parts_.is_kept(results[k].value())) {
        array = arrays_.at(results[k].value());
      } else {
        const auto made = std::ranges::find(extra_arrays_, results[k], &std::pair<Operand, Value>::first);
        array = made->second;
      }
      const Op name = bound.insert(array).second ? Op(Use{Operand(array)}) : Op(Copy{array});
      made_.push_back({.pattern = {flat_.pattern[k]}, .op = name, .location = flat_.location});
    }
  }

  Distributed::Form form_of(const Stm& stm) const {
    using Form = Distributed::Form;
    if (std::holds_alternative<Loop>(stm.op)) return Form::loop;
    if (std::holds_alternative<If>(stm.op)) return Form::branch;
    if (std::holds_alternative<Scatter>(stm.op)) return Form::scatter;
    const Screma& screma = std::get<Screma>(stm.op);
    return screma.reduces.empty() ? Form::split : screma.scans() ? Form::scan : Form::reduction;
  }

  const Stm& flat_;
  const Screma& map_;
  const Parts& parts_;
  const std::vector<Stm>& stms_;
  const ChunksFor& chunks_;
  const bool overwritten_;
  ValueTable& values_;
  std::vector<std::pair<Operand, Value>> extra_arrays_;
  std::unordered_map<Value, Value> arrays_;  // values of the lambda for every index
  std::vector<Stm> made_;
  std::set<std::size_t> work_;  // positions in made_
};

}  // namespace

std::optional<Distributed> distribute(const Stm& flat, const Replicated& replicated, const ChunksFor& chunks,
                                      bool overwritten, ValueTable& values) {
  if (has_attribute(flat.attributes, attribute::sequential_inner)) return std::nullopt;
  const Parts parts(flat, replicated, values);
  if (!parts.any_parallel()) return std::nullopt;
  std::optional<Distributed> apart = Splitter(flat, parts, chunks, overwritten, values).run();
  if (apart) apart->not_tiled = parts.not_tiled();
  return apart;
}

}  // namespace apl
