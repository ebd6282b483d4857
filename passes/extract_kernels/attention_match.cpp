// What a map over queries must be so that its scores can be streamed: docs/firing.md derives it.
//
//   map(i < n) {
//     {s : [m]} = map(j < m) { r = redomap(l < d) {Q[i, l] * K[j, l]}  ..  in s }
//     {x} = reduce(j < m, {s}, max, {-inf})
//     {t, w : [m]} = redomap(j < m, {s}, \{s} -> {exp(s - x), exp(s - x)}, {add, 0})
//     {o : [e]} = map(c < e) { z = redomap(j < m) {w[j] * V[j, c]}  in z / t }
//   }
//
// Rows over the keys become code for one key: everything is inlined, so that it does not matter which operation makes
// which row. A product of several factors is taken apart: those that are the same for all keys go behind the sum, one
// belongs to the column, and one is the weight.
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>

#include "ir/builder.h"
#include "ir/walk.h"
#include "passes/extract_kernels/attention.h"

namespace apl {
namespace {

struct Factor {
  Operand x;
  bool divides = false;
};

bool is_sum(const ReduceOp& reduce) {
  return !reduce.scan && reduce.neutral.size() == 1 && as_binary_op(reduce.op) == BinaryOp::add;
}

// The redomap in a branch, if it may be done before: it reads nothing that the branch makes.
std::optional<Stm> take_from_branch(const BodyPtr& body, BodyPtr& rest, const ValueTable& values);

std::optional<Stm> take_contraction(const Stm& stm, Stm& rest, const ValueTable& values) {
  const If* branch = get_if<If>(stm);
  if (branch == nullptr) return std::nullopt;
  If changed = *branch;
  std::optional<Stm> taken = take_from_branch(branch->then_body, changed.then_body, values);
  if (!taken) taken = take_from_branch(branch->else_body, changed.else_body, values);
  if (taken) rest.op = std::move(changed);
  return taken;
}

std::optional<Stm> take_from_branch(const BodyPtr& body, BodyPtr& rest, const ValueTable& values) {
  std::set<Value> made;
  for (std::size_t k = 0; k < body->stms.size(); ++k) {
    const Stm& stm = body->stms[k];
    const bool reads = std::ranges::any_of(free_values(stm.op, values), [&](Value v) { return made.contains(v); });
    std::vector<Stm> stms = body->stms;
    if (get_if<Screma>(stm) && !reads) {
      stms.erase(stms.begin() + static_cast<std::ptrdiff_t>(k));
      rest = make_body(std::move(stms), body->results);
      return stm;
    }
    if (std::optional<Stm> inner = take_contraction(stm, stms[k], values)) {
      const bool reads_made =
          std::ranges::any_of(free_values(inner->op, values), [&](Value v) { return made.contains(v); });
      if (reads_made) return std::nullopt;
      rest = make_body(std::move(stms), body->results);
      return inner;
    }
    made.insert(stm.pattern.begin(), stm.pattern.end());
  }
  return std::nullopt;
}

class Matcher {
 public:
  Matcher(const Stm& flat, const Replicated& replicated, ValueTable& values)
      : flat_(flat),
        map_(std::get<Screma>(flat.op)),
        body_(*map_.map.body),
        replicated_(replicated),
        values_(values),
        code_(values) {}

  std::optional<AttentionMatch> run() {
    for (std::size_t k = 0; k < body_.stms.size(); ++k)
      for (const Value v : body_.stms[k].pattern) made_by_[v] = k;
    if (!find_sum()) return std::nullopt;
    const std::optional<Operand> term = summand();
    if (!term) return std::nullopt;
    note_dependences();
    std::vector<Factor> factors;
    split(*term, false, factors);
    if (!classify(factors)) return std::nullopt;
    if (!find_contraction()) return std::nullopt;
    // From here on it is worth a word.
    if (auto refusal = refuse()) return AttentionMatch(std::move(*refusal));
    // Two contractions one after the other have kernels of their own that lose nothing.
    if (!made_.most && made_.sums.empty()) return std::nullopt;
    return AttentionMatch(std::move(made_));
  }

 private:
  Refusal refusal(std::string code, std::string message, std::string suggestion = {}) const {
    return {std::move(code), made_.location, std::move(message), std::move(suggestion)};
  }

  const Stm* definer(Value v) const {
    const auto found = made_by_.find(v);
    return found == made_by_.end() ? nullptr : &body_.stms[found->second];
  }

  // ---- the sum that makes the result ----

  bool find_sum() {
    if (flat_.pattern.size() != 1 || body_.results.size() != 1 || !body_.results[0].is_value()) return false;
    const Value row = body_.results[0].value();
    sum_ = definer(row);
    const Screma* screma = sum_ == nullptr ? nullptr : get_if<Screma>(*sum_);
    if (screma == nullptr || screma->widths.size() != 1 || values_.type(row).rank() != 1) return false;
    made_.location = sum_->location ? sum_->location : flat_.location;
    made_.indices.assign(map_.indices.begin(), map_.indices.end());
    made_.widths = map_.widths;
    made_.key = values_.add(Type::scalar(ScalarType::i64), "j");
    made_.column = values_.add(Type::scalar(ScalarType::i64), "c");
    made_.element = values_.type(row).element;
    if (!is_float(made_.element)) return false;
    if (screma->reduces.empty()) {
      // A map over columns of sums over keys.
      inner_ = nullptr;
      for (const Stm& stm : screma->map.body->stms)
        if (const Screma* inner = get_if<Screma>(stm)) {
          if (inner_ != nullptr || inner->reduces.size() != 1 || inner->widths.size() != 1) return false;
          inner_ = &stm;
          if (!is_sum(inner->reduces[0]) || inner->reduced_count() != stm.pattern.size()) return false;
        }
      if (inner_ == nullptr || screma->map.body->results.size() != 1) return false;
      made_.keys = std::get<Screma>(inner_->op).widths[0];
      made_.columns = screma->widths[0];
      return true;
    }
    // A sum over keys of rows.
    if (screma->reduces.size() != 1 || sum_->pattern.size() != 1 || screma->reduces[0].scan) return false;
    const ReduceOp& reduce = screma->reduces[0];
    const auto& stms = reduce.op.body->stms;
    const Screma* rows = stms.size() == 1 ? get_if<Screma>(stms[0]) : nullptr;
    if (rows == nullptr || rows->widths.size() != 1 || !rows->reduces.empty() || reduce.neutral.size() != 1)
      return false;
    const Lambda& each = rows->map;
    const bool adds = as_binary_op(each) == BinaryOp::add && rows->inputs.size() == 2 &&
                      std::ranges::is_permutation(rows->inputs, reduce.op.params);
    if (!adds || !is_zero_row(reduce.neutral[0])) return false;
    made_.keys = screma->widths[0];
    made_.columns = rows->widths[0];
    return true;
  }

  bool is_zero_row(const Operand& x) const {
    const auto found = x.is_value() ? replicated_.find(x.value()) : replicated_.end();
    return found != replicated_.end() && found->second == Operand(Scalar::zero(made_.element));
  }

  // ---- code for one key ----

  bool is_over_keys(const Stm& stm) const {
    const Screma* screma = get_if<Screma>(stm);
    return screma != nullptr && screma->widths.size() == 1 && screma->widths[0] == made_.keys && &stm != sum_;
  }

  // Element j of a row over the keys, or row j of more dims.
  Operand element(Value row) {
    if (const auto known = elements_.find(row); known != elements_.end()) return known->second;
    if (const Stm* stm = definer(row); stm != nullptr && is_over_keys(*stm)) {
      inline_keys(*stm);
      if (const auto known = elements_.find(row); known != elements_.end()) return known->second;
    }
    const Operand made = code_.let(values_.name(row), Index{row, {DimIndex::fix(Poly(made_.key))}});
    elements_.insert_or_assign(row, made);
    return made;
  }

  // The lambda of an operation over the keys, for key j: its rows' elements, and what its operators fold.
  void inline_keys(const Stm& stm) {
    const Screma& screma = std::get<Screma>(stm.op);
    const std::vector<Operand> results = inlined(screma.map, screma.inputs, screma.indices);
    for (const auto& [made, result] : ranges::views::zip(stm.pattern, results))
      elements_.insert_or_assign(made, result);
  }

  std::vector<Operand> inlined(const Lambda& lambda, const std::vector<Value>& inputs,
                               const std::vector<Value>& indices) {
    Substitution here;
    for (const Value index : indices) here.insert_or_assign(index, Operand(made_.key));
    for (const auto& [input, param] : ranges::views::zip(inputs, lambda.params))
      here.insert_or_assign(param, element(input));
    const BodyPtr copy = copy_fresh(lambda.body, here, values_, values_);
    return append(*copy);
  }

  // Reads of rows at the key's index are their elements.
  std::vector<Operand> append(const Body& body) {
    Substitution known;
    for (const Stm& stm : body.stms) {
      const Index* index = get_if<Index>(stm);
      const Stm* maker = index == nullptr ? nullptr : definer(index->array);
      const bool own = maker != nullptr && is_over_keys(*maker) && index->dims.size() == 1 &&
                       !index->dims[0].is_slice() && index->dims[0].start == Poly(made_.key);
      if (own) {
        known.insert_or_assign(stm.pattern[0], element(index->array));
      } else {
        code_.append(substitute(stm, known, values_));
      }
    }
    std::vector<Operand> results;
    for (const Operand& result : body.results) results.push_back(substitute(result, known));
    return results;
  }

  // What is summed for key j and column c.
  std::optional<Operand> summand() {
    const Screma& outer = std::get<Screma>(sum_->op);
    if (inner_ == nullptr) {
      const std::vector<Operand> rows = inlined(outer.map, outer.inputs, outer.indices);
      // The row is a map over the columns.
      std::vector<Stm>& stms = code_.stms();
      const auto made = std::ranges::find_if(stms, [&](const Stm& stm) {
        return rows[0].is_value() && std::ranges::find(stm.pattern, rows[0].value()) != stm.pattern.end();
      });
      const Screma* row = made == stms.end() ? nullptr : get_if<Screma>(*made);
      if (row == nullptr || row->widths.size() != 1 || !row->reduces.empty() || made->pattern.size() != 1)
        return std::nullopt;
      const Screma each = *row;
      stms.erase(made);
      Substitution here;
      here.insert_or_assign(each.indices[0], Operand(made_.column));
      for (std::size_t k = 0; k < each.inputs.size(); ++k)
        here.insert_or_assign(each.map.params[k], Operand(code_.index(each.inputs[k], {Poly(made_.column)},
                                                                      values_.name(each.map.params[k]))));
      const BodyPtr copy = copy_fresh(each.map.body, here, values_, values_);
      code_.append_all(copy->stms);
      made_.summed = values_.add(Type::scalar(made_.element), "o");
      made_.result = made_.summed;
      return copy->results[0];
    }
    // Column c of the map: what stands before the sum, the sum's lambda, what stands behind it.
    Substitution here;
    here.insert_or_assign(outer.indices[0], Operand(made_.column));
    for (std::size_t k = 0; k < outer.inputs.size(); ++k)
      here.insert_or_assign(outer.map.params[k],
                            Operand(code_.let(values_.name(outer.map.params[k]),
                                              Index{outer.inputs[k], {DimIndex::fix(Poly(made_.column))}})));
    const BodyPtr column = copy_fresh(outer.map.body, here, values_, values_);
    std::optional<Operand> term;
    std::vector<Stm> behind;
    for (const Stm& stm : column->stms) {
      const Screma* inner = get_if<Screma>(stm);
      if (inner == nullptr) {
        (term ? behind : code_.stms()).push_back(stm);
        continue;
      }
      made_.summed = stm.pattern[0];
      term = inlined(inner->map, inner->inputs, inner->indices)[0];
    }
    behind_ = std::move(behind);
    made_.result = column->results[0];
    return term;
  }

  // ---- factors ----

  const Stm* coded(const Operand& x) const {
    if (!x.is_value()) return nullptr;
    const auto found = coded_.find(x.value());
    return found == coded_.end() ? nullptr : &code_of_[found->second];
  }

  void note_dependences() {
    code_of_ = code_.stms();
    by_key_.insert(made_.key);
    by_column_.insert(made_.column);
    for (std::size_t k = 0; k < code_of_.size(); ++k) {
      const Stm& stm = code_of_[k];
      bool key = false, column = false;
      for (const Value v : free_values(stm.op, values_)) {
        key = key || by_key_.contains(v);
        column = column || by_column_.contains(v);
      }
      for (const Value v : stm.pattern) {
        coded_[v] = k;
        if (key) by_key_.insert(v);
        if (column) by_column_.insert(v);
      }
    }
    // What depends on a reduction over the keys.
    for (const Stm& stm : body_.stms) {
      bool reduces = false;
      for (const Value v : free_values(stm.op, values_)) reduces = reduces || reduced_.contains(v);
      for (const Value v : stm.pattern)
        if (reduces || (is_over_keys(stm) && values_.type(v).is_scalar())) reduced_.insert(v);
    }
  }

  bool depends(const Operand& x, const std::set<Value>& on) const { return x.is_value() && on.contains(x.value()); }

  void split(const Operand& x, bool divides, std::vector<Factor>& factors) const {
    const Stm* stm = coded(x);
    const Binary* binary = stm == nullptr ? nullptr : get_if<Binary>(*stm);
    if (binary != nullptr && (binary->op == BinaryOp::mul || binary->op == BinaryOp::div)) {
      split(binary->x, divides, factors);
      split(binary->y, divides != (binary->op == BinaryOp::div), factors);
      return;
    }
    factors.push_back({x, divides});
  }

  // Whether there is one factor of the column and one of the key alone.
  bool classify(const std::vector<Factor>& factors) {
    int columns = 0, weights = 0;
    for (const Factor& factor : factors) {
      if (depends(factor.x, by_column_)) {
        ++columns;
        made_.valued = factor.x;
        if (factor.divides) return false;
      } else if (depends(factor.x, by_key_)) {
        ++weights;
        weight_ = factor.x;
        divided_ = divided_ || factor.divides;
      } else {
        outer_.push_back(factor);
      }
    }
    several_ = weights > 1;
    return columns == 1 && weights >= 1;
  }

  // All statements of the code that `roots` need.
  std::vector<Stm> slice(const std::vector<Operand>& roots, const std::set<Value>& without = {}) const {
    std::set<Value> needed;
    for (const Operand& x : roots)
      if (x.is_value()) needed.insert(x.value());
    std::vector<Stm> result;
    for (std::size_t k = code_of_.size(); k-- > 0;) {
      const Stm& stm = code_of_[k];
      const auto wanted = [&](Value v) { return needed.contains(v) && !without.contains(v); };
      if (std::ranges::none_of(stm.pattern, wanted)) continue;
      needed.merge(free_values(stm.op, values_));
      needed.insert(stm.certificates.begin(), stm.certificates.end());
      result.insert(result.begin(), stm);
    }
    return result;
  }

  // The one contraction among what the weight is made of; where it stands in a branch it is taken out.
  bool find_contraction() {
    int found = 0;
    for (const Stm& needed : slice({weight_})) {
      const auto place = coded_.at(needed.pattern.front());
      if (get_if<Screma>(needed)) {
        ++found;
        made_.contraction = needed;
        continue;
      }
      Stm rest = needed;
      if (auto taken = take_contraction(needed, rest, values_)) {
        ++found;
        made_.contraction = *taken;
        made_.branched = true;
        code_of_[place] = std::move(rest);
      }
    }
    contractions_ = found;
    if (found == 0) return false;
    const Screma& screma = std::get<Screma>(made_.contraction.op);
    return screma.reduces.size() == 1 && !screma.scans() && made_.contraction.pattern.size() == 1 &&
           screma.reduces[0].neutral.size() == 1;
  }

  // ---- what makes it legal ----

  std::optional<Refusal> refuse() {
    if (contractions_ > 1)
      return refusal("several-contractions", "the weights are made of several reductions for each key");
    if (several_ || divided_)
      return refusal("weights", "the weight of a key is a product or quotient of several terms that differ by key",
                     "multiply them in the map that makes the scores");
    if (auto refusal = rescaling()) return refusal;
    if (!made_.contraction.certificates.empty()) return refusal("can-fail", "the code that makes a score can fail");
    const std::set<Value> contracted(made_.contraction.pattern.begin(), made_.contraction.pattern.end());
    std::vector<Operand> needed;
    for (const Value v : free_values(made_.contraction.op, values_)) needed.emplace_back(v);
    made_.before = slice(needed);
    made_.score = slice({made_.most ? made_.scored : weight_}, contracted);
    made_.weighted = weight_;
    made_.value = slice({made_.valued});
    if (auto refusal = plain(made_.score, "a score")) return refusal;
    if (auto refusal = plain(made_.value, "what is summed")) return refusal;
    return finish();
  }

  // Code for one key runs for padded keys, too, and several times: scalars and reads that cannot fail.
  std::optional<Refusal> plain(const std::vector<Stm>& stms, const std::string& what) const {
    for (const Stm& stm : stms) {
      const bool view = get_if<Index>(stm) || get_if<Rearrange>(stm) || get_if<Reshape>(stm);
      bool arrays = false, loops = get_if<Loop>(stm) != nullptr || get_if<Screma>(stm) != nullptr;
      for (const Value v : stm.pattern) arrays = arrays || (!values_.type(v).is_scalar() && !view);
      for_each_body(stm.op, [&](const BodyPtr& inner) {
        for_each_stm(*inner, [&](const Stm& each) { loops = loops || get_if<Loop>(each) || get_if<Screma>(each); });
      });
      if (arrays || loops) return refusal("code", what + " is made by a loop or of arrays");
      if (can_fail(stm.op, values_) || !stm.certificates.empty())
        return refusal("can-fail", "the code that makes " + what + " can fail");
    }
    return std::nullopt;
  }

  // The weights may depend on one reduction over the keys: the maximum of the scores, as exp(s - m).
  std::optional<Refusal> rescaling() {
    std::set<Value> on;
    std::vector<Stm> all = slice({weight_});
    for (const Stm& stm : all)
      for (const Value v : free_values(stm.op, values_))
        if (reduced_.contains(v)) on.insert(v);
    if (on.empty()) return std::nullopt;
    const std::string why =
        "what was summed is rescaled as the maximum grows, which takes weights exp(s - m) of scores "
        "s and their maximum m";
    const Stm* made = coded(weight_);
    const Unary* exponential = made == nullptr ? nullptr : get_if<Unary>(*made);
    const Stm* inside = exponential == nullptr ? nullptr : coded(exponential->x);
    const Binary* difference = inside == nullptr ? nullptr : get_if<Binary>(*inside);
    if (exponential == nullptr || exponential->op != UnaryOp::exp)
      return refusal("no-exponential", why + ": these are no exponentials");
    if (difference == nullptr || difference->op != BinaryOp::sub || !difference->y.is_value() ||
        !on.contains(difference->y.value()))
      return refusal("no-difference", why + ": the exponent is no score less a maximum");
    if (on.size() > 1) return refusal("several-reductions", why + ": these need another reduction over the keys, too");
    const Value most = difference->y.value();
    const Stm* reduction = definer(most);
    const Screma* screma = reduction == nullptr || !is_over_keys(*reduction) ? nullptr : get_if<Screma>(*reduction);
    const std::size_t place =
        screma == nullptr
            ? 0
            : static_cast<std::size_t>(std::ranges::find(reduction->pattern, most) - reduction->pattern.begin());
    const ReduceOp* reduce = screma == nullptr ? nullptr : operator_of(*screma, place);
    if (reduce == nullptr || as_binary_op(reduce->op) != BinaryOp::max || reduce->scan)
      return refusal("no-maximum", why + ": what is subtracted is not the maximum of a row");
    if (reduce->neutral[0] != Operand(Scalar::floating(made_.element, -std::numeric_limits<double>::infinity())))
      return refusal("no-maximum", why + ": the maximum is at least a given number");
    if (!elements_.contains(most)) inline_again(*reduction);
    if (elements_.at(most) != difference->x)
      return refusal("other-scores", why + ": the maximum is not that of the scores that it is subtracted from");
    for (const Stm& stm : slice({difference->x}))
      for (const Value v : free_values(stm.op, values_))
        if (reduced_.contains(v))
          return refusal("several-reductions", why + ": the scores need a reduction over the keys");
    made_.most = most;
    made_.scored = difference->x;
    return std::nullopt;
  }

  static const ReduceOp* operator_of(const Screma& screma, std::size_t result) {
    for (const ReduceOp& reduce : screma.reduces) {
      if (result < reduce.neutral.size()) return reduce.neutral.size() == 1 ? &reduce : nullptr;
      result -= reduce.neutral.size();
    }
    return nullptr;
  }

  // What an operation that nothing needed so far folds.
  void inline_again(const Stm& reduction) {
    const std::size_t before = code_.stms().size();
    inline_keys(reduction);
    for (std::size_t k = before; k < code_.stms().size(); ++k) {
      for (const Value v : code_.stms()[k].pattern) coded_[v] = code_of_.size();
      code_of_.push_back(code_.stms()[k]);
    }
  }

  // The code around rows, and what is done behind the sum; all of it may need sums of the weights.
  std::optional<Refusal> finish() {
    std::set<Value> sums;
    std::optional<Refusal> wrong;
    std::vector<Operand> roots;
    for (const Factor& factor : outer_) roots.push_back(factor.x);
    std::vector<Stm> after = slice(roots);  // in the code of one key, but the same for all
    Operand value = made_.summed;
    Builder builder(values_);
    const Value raw = values_.add(Type::scalar(made_.element), values_.name(made_.summed));
    value = raw;
    for (const Factor& factor : outer_)
      value = builder.binary(factor.divides ? BinaryOp::div : BinaryOp::mul, value, factor.x, "o");
    for (Stm& stm : builder.stms()) after.push_back(stm);
    Substitution scaled;
    scaled.insert_or_assign(made_.summed, value);
    const BodyPtr behind = substitute(make_body(behind_, {made_.result}), scaled, values_);
    for (const Stm& stm : behind->stms) after.push_back(stm);
    made_.result = behind->results[0];
    made_.summed = raw;
    // What the column's code before the sum makes for the code behind it.
    std::vector<Operand> read;
    for (const Stm& stm : after)
      for (const Value v : free_values(stm.op, values_)) read.emplace_back(v);
    read.push_back(made_.result);
    std::vector<Stm> all = slice(read);
    for (const Stm& stm : after)
      if (std::ranges::none_of(all, [&](const Stm& other) { return other.pattern == stm.pattern; })) all.push_back(stm);
    made_.after = std::move(all);
    // Statements of the lambda: those that are no rows.
    std::set<Value> needed;
    const auto need = [&](const std::vector<Stm>& stms) {
      for (const Stm& stm : stms) {
        needed.merge(free_values(stm.op, values_));
        needed.insert(stm.certificates.begin(), stm.certificates.end());
      }
    };
    need({made_.contraction}), need(made_.before), need(made_.score), need(made_.value), need(made_.after);
    for (std::size_t k = body_.stms.size(); k-- > 0;) {
      const Stm& stm = body_.stms[k];
      if (std::ranges::none_of(stm.pattern, [&](Value v) { return needed.contains(v); })) continue;
      if (is_over_keys(stm)) {
        for (const Value v : stm.pattern)
          if (needed.contains(v) && v != made_.most && !is_sum_of_weights(stm, v))
            return refusal("other-reduction",
                           "what is done with the sums needs another reduction over the keys than sums of the weights");
        for (const Value v : stm.pattern)
          if (needed.contains(v) && v != made_.most) made_.sums.push_back(v);
        continue;
      }
      needed.merge(free_values(stm.op, values_));
      made_.around.insert(made_.around.begin(), stm);
    }
    if (auto refusal = plain(made_.around, "what is the same for all keys")) return refusal;
    return plain(made_.after, "the result");
  }

  bool is_sum_of_weights(const Stm& stm, Value v) {
    const Screma& screma = std::get<Screma>(stm.op);
    const auto place = static_cast<std::size_t>(std::ranges::find(stm.pattern, v) - stm.pattern.begin());
    const ReduceOp* reduce = operator_of(screma, place);
    if (reduce == nullptr || !is_sum(*reduce)) return false;
    if (!elements_.contains(v)) inline_again(stm);
    return elements_.at(v) == weight_;
  }

  const Stm& flat_;
  const Screma& map_;
  const Body& body_;
  const Replicated& replicated_;
  ValueTable& values_;
  Builder code_;
  Attention made_;
  const Stm* sum_ = nullptr;
  const Stm* inner_ = nullptr;
  std::vector<Stm> behind_;
  std::vector<Stm> code_of_;
  std::unordered_map<Value, std::size_t> made_by_, coded_;
  std::unordered_map<Value, Operand> elements_;  // by row; by a reduction's result, what it folds
  std::set<Value> by_key_, by_column_, reduced_;
  std::vector<Factor> outer_;
  Operand weight_;
  bool several_ = false, divided_ = false;
  int contractions_ = 0;
};

}  // namespace

bool may_be_attention(const Stm& map, const ValueTable& values) {
  const Screma& op = std::get<Screma>(map.op);
  const Body& body = *op.map.body;
  const auto operations =
      std::ranges::count_if(body.stms, [](const Stm& stm) { return get_if<Screma>(stm) != nullptr; });
  return operations >= 2 && op.reduces.empty() && body.results.size() == 1 && values.type(body.results[0]).rank() == 1;
}

std::optional<AttentionMatch> match_attention(const Stm& flat, const Replicated& replicated, ValueTable& values) {
  if (!may_be_attention(flat, values)) return std::nullopt;
  return Matcher(flat, replicated, values).run();
}

}  // namespace apl
