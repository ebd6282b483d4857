#include "ir/differentiate/forward.h"

#include <range/v3/view/zip.hpp>

#include <algorithm>

namespace apl::differentiation {

namespace {

class Forward {
 public:
  explicit Forward(ValueTable& values) : values_(values), activity_(values) {}

  std::vector<Operand> run(Builder& b, const Derivative& op) {
    // The parameters stay values of their own: what they stand for may be a constant of the function, too.
    for (std::size_t k = 0; k < op.arguments.size(); ++k) {
      const Value param = op.function.params[k];
      b.append({.pattern = {param}, .op = Use{op.arguments[k]}, .location = {}, .certificates = {}, .attributes = {}});
      if (activity_.add(param)) tangents_.insert_or_assign(param, op.seeds[k]);
    }
    activity_.learn(*op.function.body);
    statements(b, *op.function.body);
    std::vector<Operand> results = op.function.body->results;
    const std::size_t n = results.size();
    for (std::size_t k = 0; k < n; ++k) results.push_back(tangent(b, results[k]));
    return results;
  }

 private:
  bool active(const Operand& x) const { return activity_.contains(x); }

  Operand tangent(Builder& b, const Operand& x) {
    if (x.is_value())
      if (const auto found = tangents_.find(x.value()); found != tangents_.end()) return found->second;
    return zero_of(b, b.type(x));
  }
  Value array_tangent(Builder& b, Value v) { return tangent(b, Operand(v)).value(); }

  // A new value for the tangent of `v`.
  Value twin(Value v) {
    Type type = values_.type(v);
    type.memory = nullptr;
    type.unique = false;
    const Value result = values_.add(std::move(type), values_.name(v) + "_tan");
    tangents_.insert_or_assign(v, result);
    return result;
  }

  void statements(Builder& b, const Body& body) {
    for (const Stm& stm : body.stms) {
      b.set_location(stm.location);
      statement(b, stm);
    }
  }

  // The statements of a body whose results are followed by the tangents of some.
  BodyPtr body(Builder& b, const Body& old, const std::vector<bool>& with_tangent) {
    return b.body([&](Builder& inner) {
      statements(inner, old);
      std::vector<Operand> results = old.results;
      for (const auto& [result, wanted] : ranges::views::zip(old.results, with_tangent))
        if (wanted) results.push_back(tangent(inner, result));
      return results;
    });
  }

  std::vector<bool> varying(const std::vector<Value>& pattern) const {
    std::vector<bool> result;
    for (const Value v : pattern) result.push_back(activity_.contains(v));
    return result;
  }

  void statement(Builder& b, const Stm& stm) {
    if (!has_bodies(stm.op)) {
      b.append(stm);
      if (std::ranges::any_of(stm.pattern, [&](Value v) { return activity_.contains(v); })) simple(b, stm);
      return;
    }
    Stm both = stm;
    if (const If* op = get_if<If>(stm)) {
      const std::vector<bool> varies = varying(stm.pattern);
      both.op = If{op->condition, body(b, *op->then_body, varies), body(b, *op->else_body, varies)};
    } else if (const Loop* op = get_if<Loop>(stm)) {
      both.op = loop(b, *op);
    } else if (const Screma* op = get_if<Screma>(stm)) {
      return screma(b, stm, *op);
    } else if (const Scatter* op = get_if<Scatter>(stm)) {
      both.op = scatter(b, stm, *op);
    }
    for (const Value v : stm.pattern)
      if (activity_.contains(v)) both.pattern.push_back(twin(v));
    b.append(std::move(both));
  }

  Op loop(Builder& b, const Loop& op) {
    Loop result = op;
    for (const auto& [param, initial] : ranges::views::zip(op.params, op.initial)) {
      if (!activity_.contains(param)) continue;
      result.initial.push_back(tangent(b, initial));
      result.params.push_back(twin(param));
    }
    result.body = body(b, *op.body, varying(op.params));
    return result;
  }

  // The operator on pairs: the operands that vary are followed by their tangents, on either side.
  ReduceOp dual(Builder& b, const ReduceOp& op, const std::vector<bool>& varies) {
    const std::size_t n = op.neutral.size();
    ReduceOp result{.op = {}, .neutral = op.neutral, .commutative = op.commutative, .scan = op.scan};
    for (std::size_t k = 0; k < n; ++k)
      if (varies[k]) result.neutral.push_back(tangent(b, op.neutral[k]));
    for (const std::size_t side : {std::size_t{0}, n}) {
      for (std::size_t k = 0; k < n; ++k) result.op.params.push_back(op.op.params[side + k]);
      for (std::size_t k = 0; k < n; ++k)
        if (varies[k]) result.op.params.push_back(twin(op.op.params[side + k]));
    }
    result.op.body = body(b, *op.op.body, varies);
    return result;
  }

  void add_tangents(Builder& b, std::vector<Value>& inputs, Lambda& map) {
    const std::size_t n = inputs.size();
    for (std::size_t k = 0; k < n; ++k) {
      if (!activity_.contains(inputs[k])) continue;
      inputs.push_back(array_tangent(b, inputs[k]));
      map.params.push_back(twin(map.params[k]));
    }
  }

  void screma(Builder& b, const Stm& stm, const Screma& op) {
    Screma result = op;
    add_tangents(b, result.inputs, result.map);
    const std::vector<bool> varies = varying(stm.pattern);
    std::size_t first = 0;
    for (ReduceOp& reduce : result.reduces) {
      const std::size_t n = reduce.neutral.size();
      const auto from = varies.begin() + static_cast<std::ptrdiff_t>(first);
      reduce = dual(b, reduce, {from, from + static_cast<std::ptrdiff_t>(n)});
      first += n;
    }
    // Results of each operator and their tangents, then rows and theirs.
    Stm both = stm;
    both.pattern.clear();
    const auto sorted = [&](auto put, auto put_tangent) {
      std::size_t begin = 0;
      const auto range = [&](std::size_t end) {
        for (std::size_t k = begin; k < end; ++k) put(k);
        for (std::size_t k = begin; k < end; ++k)
          if (varies[k]) put_tangent(k);
        begin = end;
      };
      for (const ReduceOp& reduce : op.reduces) range(begin + reduce.neutral.size());
      range(stm.pattern.size());
    };
    result.map.body = b.body([&](Builder& inner) {
      statements(inner, *op.map.body);
      std::vector<Operand> results;
      sorted([&](std::size_t k) { results.push_back(op.map.body->results[k]); },
             [&](std::size_t k) { results.push_back(tangent(inner, op.map.body->results[k])); });
      return results;
    });
    sorted([&](std::size_t k) { both.pattern.push_back(stm.pattern[k]); },
           [&](std::size_t k) { both.pattern.push_back(twin(stm.pattern[k])); });
    both.op = std::move(result);
    b.append(std::move(both));
  }

  Op scatter(Builder& b, const Stm& stm, const Scatter& op) {
    Scatter result = op;
    add_tangents(b, result.inputs, result.map);
    std::vector<bool> varies = varying(stm.pattern);
    for (const auto& [target, varying] : ranges::views::zip(op.targets, varies))
      if (varying) result.targets.push_back(array_tangent(b, target));
    if (op.op) result.op = dual(b, *op.op, varies);
    std::vector<bool> rows(op.rank, false);
    rows.insert(rows.end(), varies.begin(), varies.end());
    result.map.body = body(b, *op.map.body, rows);
    return result;
  }

  void define(Builder& b, const Stm& stm, Op op) {
    const Value made = b.let(values_.name(stm.pattern.front()) + "_tan", std::move(op));
    tangents_.insert_or_assign(stm.pattern.front(), made);
  }
  void define(const Stm& stm, const Operand& x) { tangents_.insert_or_assign(stm.pattern.front(), x); }

  // One result, no bodies.
  void simple(Builder& b, const Stm& stm) {
    const Value y = stm.pattern.front();
    if (const Use* op = get_if<Use>(stm)) {
      define(stm, tangent(b, op->x));
    } else if (const Unary* op = get_if<Unary>(stm)) {
      define(stm, times_derivative(b, *op, y, tangent(b, op->x), stm.location));
    } else if (const Binary* op = get_if<Binary>(stm)) {
      std::optional<Operand> sum;
      for (const bool by_y : {false, true}) {
        const Operand& x = by_y ? op->y : op->x;
        if (!active(x)) continue;
        const std::optional<Operand> part = times_derivative(b, *op, by_y, y, tangent(b, x), stm.location);
        if (part) sum = sum ? sum_of(b, *sum, *part) : part;
      }
      if (sum) define(stm, *sum);
    } else if (const Convert* op = get_if<Convert>(stm)) {
      define(b, stm, Convert{op->to, tangent(b, op->x), op->same_bits});
    } else if (const SizeExpr* op = get_if<SizeExpr>(stm); op != nullptr && has_opaque_factors(op->value)) {
      const std::vector<Stm> parts = as_operations(values_, op->value, stm.location);
      for (const Stm& part : parts) {
        activity_.learn(part);
        statement(b, part);
      }
      define(stm, tangent(b, Operand(parts.back().pattern.front())));
    } else if (op != nullptr) {
      std::set<Value> symbols;
      op->value.for_each_symbol([&](Value v) { symbols.insert(v); });
      Poly sum;
      for (const Value v : symbols)
        if (activity_.contains(v)) sum += derivative(op->value, v) * as_poly(tangent(b, Operand(v)));
      define(b, stm, SizeExpr{sum});
    } else if (const Index* op = get_if<Index>(stm)) {
      define(b, stm, Index{array_tangent(b, op->array), op->dims, false});
    } else if (const Update* op = get_if<Update>(stm)) {
      const Operand row = tangent(b, op->value);
      define(b, stm, Update{array_tangent(b, op->array), op->dims, row, false});
    } else if (const Iota* op = get_if<Iota>(stm)) {
      const Operand start = tangent(b, op->start);
      define(b, stm, Iota{op->element, op->count, start, tangent(b, op->stride)});
    } else if (const Replicate* op = get_if<Replicate>(stm)) {
      define(b, stm, Replicate{op->shape, tangent(b, op->value)});
    } else if (const Copy* op = get_if<Copy>(stm)) {
      define(b, stm, Copy{array_tangent(b, op->array)});
    } else if (const Rearrange* op = get_if<Rearrange>(stm)) {
      define(b, stm, Rearrange{array_tangent(b, op->array), op->permutation});
    } else if (const Manifest* op = get_if<Manifest>(stm)) {
      define(b, stm, Manifest{array_tangent(b, op->array), op->permutation});
    } else if (const Reshape* op = get_if<Reshape>(stm)) {
      define(b, stm, Reshape{array_tangent(b, op->array), op->shape});
    } else if (const ArrayLit* op = get_if<ArrayLit>(stm)) {
      ArrayLit result = *op;
      for (Operand& x : result.elements) x = tangent(b, x);
      define(b, stm, std::move(result));
    } else {
      refuse_derivative(op_name(stm.op), stm.location);
    }
  }

  ValueTable& values_;
  Activity activity_;
  Substitution tangents_;
};

}  // namespace

std::vector<Operand> forward(Builder& b, const Derivative& op) { return Forward(b.values()).run(b, op); }

}  // namespace apl::differentiation
