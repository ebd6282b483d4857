// Reductions in f64.
//
//   let {r : f32} = reduce(i < n, {xs}, \{x : f32} -> { in {x} },
//                     {\{a : f32, b : f32} -> { let {s : f32} = add(a, b) in {s} }, {0.0f32}})
// =>
//   let {w : f64} = reduce(i < n, {xs}, \{x : f32} -> { let {y : f64} = convert(x, f64) in {y} },
//                     {\{a : f64, b : f64} -> { let {s : f64} = add(a, b) in {s} }, {0.0f64}})
//   let {r : f32} = convert(w, f32)
//
// The values that an operator binds get other types in place; what it reads from outside is converted before.
#include "suite/wide_sums.h"

#include <algorithm>
#include <set>
#include <utility>

#include "ir/builder.h"
#include "ir/walk.h"

namespace apl::suite {
namespace {

bool is_narrow(const Type& type) {
  return type.kind == Type::Kind::data && (type.element == ScalarType::f16 || type.element == ScalarType::f32);
}

Type wide(Type type) {
  if (is_narrow(type)) type.element = ScalarType::f64;
  return type;
}

Operand wide_constant(const Operand& x) {
  if (x.is_value() || !is_narrow(Type::scalar(x.constant().type()))) return x;
  return convert(x.constant(), ScalarType::f64);
}

// An operation of which the types may change and the meaning stays.
bool keeps_meaning(const Op& op) {
  if (const auto* change = std::get_if<Convert>(&op)) return !change->same_bits;
  if (const auto* binary = std::get_if<Binary>(&op)) return binary->op != BinaryOp::nextafter;
  return std::holds_alternative<Use>(op) || std::holds_alternative<Unary>(op) || std::holds_alternative<Compare>(op) ||
         std::holds_alternative<SizeExpr>(op) || std::holds_alternative<If>(op) || std::holds_alternative<Index>(op) ||
         std::holds_alternative<Screma>(op) || std::holds_alternative<Replicate>(op) ||
         std::holds_alternative<Copy>(op) || std::holds_alternative<Rearrange>(op) ||
         std::holds_alternative<Reshape>(op);
}

class Widener {
 public:
  explicit Widener(Function& function) : values_(function.values) {}

  BodyPtr body(const BodyPtr& old) {
    Builder out(values_);
    for (const Stm& stm : old->stms) statement(stm, out);
    return out.finish(old->results);
  }
  bool changed() const { return changed_; }

 private:
  void statement(Stm stm, Builder& out) {
    stm.op = map_bodies(stm.op, [this](const BodyPtr& inner) { return body(inner); });
    const Op op = stm.op;
    if (const auto* screma = std::get_if<Screma>(&op)) return this->screma(std::move(stm), *screma, out);
    const auto* scatter = std::get_if<Scatter>(&op);
    if (scatter != nullptr && scatter->op) return histogram(std::move(stm), *scatter, out);
    if (const auto* loop = std::get_if<Loop>(&op)) return this->loop(std::move(stm), *loop, out);
    out.append(std::move(stm));
  }

  void screma(Stm stm, Screma op, Builder& out) {
    std::set<std::size_t> widened;
    std::size_t first = 0;
    for (ReduceOp& reduce : op.reduces) {
      const std::size_t count = reduce.neutral.size();
      if (can_widen(reduce)) {
        for (std::size_t k = 0; k < count; ++k)
          if (is_narrow(values_.type(reduce.neutral[k]))) widened.insert(first + k);
        widen(reduce, out);
      }
      first += count;
    }
    op.map.body = with_wide_results(op.map.body, widened);
    stm.op = std::move(op);
    append(std::move(stm), widened, out);
  }

  void histogram(Stm stm, Scatter op, Builder& out) {
    std::set<std::size_t> rows, targets;
    if (can_widen(*op.op)) {
      for (std::size_t k = 0; k < op.targets.size(); ++k) {
        if (!is_narrow(values_.type(op.targets[k]))) continue;
        rows.insert(op.rank + k);
        targets.insert(k);
        op.targets[k] = converted(op.targets[k], ScalarType::f64, out).value();
      }
      widen(*op.op, out);
    }
    op.map.body = with_wide_results(op.map.body, rows);
    stm.op = std::move(op);
    append(std::move(stm), targets, out);
  }

  // Loops with scalars that do nothing but take summands.
  void loop(Stm stm, Loop op, Builder& out) {
    std::set<std::size_t> widened;
    std::set<Value> sums;
    for (std::size_t k = 0; k < op.params.size(); ++k) {
      const Type& type = values_.type(op.params[k]);
      std::vector<Value> chain;
      if (!type.is_scalar() || !is_narrow(type) || !add_up(*op.body, op.body->results[k], op.params[k], chain) ||
          chain.empty())
        continue;
      widened.insert(k);
      sums.insert(op.params[k]);
      sums.insert(chain.begin(), chain.end());
      op.initial[k] = converted(op.initial[k], ScalarType::f64, out);
    }
    if (!widened.empty()) {
      Builder inner(values_);
      for (Stm addition : op.body->stms) {
        if (addition.pattern.size() == 1 && sums.contains(addition.pattern.front())) {
          auto& sum = std::get<Binary>(addition.op);
          for (Operand* x : {&sum.x, &sum.y})
            if (!x->is_value() || !sums.contains(x->value())) *x = converted(*x, ScalarType::f64, inner);
        }
        inner.append(std::move(addition));
      }
      for (const Value v : sums) values_.set_type(v, wide(values_.type(v)));
      op.body = inner.finish(op.body->results);
    }
    stm.op = std::move(op);
    append(std::move(stm), widened, out);
  }

  // Whether `sum` is `start` with numbers added or taken away, and nothing else reads what is between: `chain`.
  static bool add_up(const Body& body, const Operand& sum, Value start, std::vector<Value>& chain) {
    if (sum.is_constant() || reads(body, sum.value()) != 1) return false;
    if (sum.value() == start) return true;
    const Stm* stm = defining_stm(body, sum.value());
    const auto* binary = stm == nullptr ? nullptr : get_if<Binary>(*stm);
    if (binary == nullptr || (binary->op != BinaryOp::add && binary->op != BinaryOp::sub)) return false;
    chain.push_back(sum.value());
    if (add_up(body, binary->x, start, chain)) return true;
    if (binary->op == BinaryOp::add && add_up(body, binary->y, start, chain)) return true;
    chain.pop_back();
    return false;
  }

  static int reads(const Body& body, Value value) {
    int count = static_cast<int>(std::ranges::count(body.results, Operand(value)));
    for_each_stm(body, [&](const Stm& stm) {
      for_each_use(stm.op, [&](Value used) { count += used == value ? 1 : 0; });
      for_each_body(stm.op, [&](const BodyPtr& inner) {
        count += static_cast<int>(std::ranges::count(inner->results, Operand(value)));
      });
    });
    return count;
  }

  bool can_widen(const ReduceOp& reduce) const {
    bool can = std::ranges::any_of(reduce.neutral, [&](const Operand& x) { return is_narrow(values_.type(x)); });
    for_each_stm(*reduce.op.body, [&](const Stm& stm) { can = can && keeps_meaning(stm.op); });
    return can;
  }

  void widen(ReduceOp& reduce, Builder& out) {
    for (Operand& neutral : reduce.neutral)
      if (is_narrow(values_.type(neutral))) neutral = converted(neutral, ScalarType::f64, out);
    Substitution outside;
    for (const Value v : free_values(reduce.op, values_))
      if (is_narrow(values_.type(v))) outside.insert_or_assign(v, converted(v, ScalarType::f64, out));
    reduce.op = substitute(reduce.op, outside, values_);
    for (const Value param : reduce.op.params) retype(param);
    reduce.op.body = widened(reduce.op.body);
  }

  void retype(Value v) { values_.set_type(v, wide(values_.type(v))); }

  BodyPtr widened(const BodyPtr& old) {
    Body result = *old;
    for (Stm& stm : result.stms) {
      for_each_binder(stm.op, [this](Value v) { retype(v); });
      for (const Value v : stm.pattern) retype(v);
      std::visit([this](auto& op) { constants(op); }, stm.op);
      stm.op = map_bodies(stm.op, [this](const BodyPtr& inner) { return widened(inner); });
    }
    for (Operand& operand : result.results) operand = wide_constant(operand);
    return make_body(std::move(result.stms), std::move(result.results));
  }

  template <class Operation>
  static void constants(Operation&) {}
  static void constants(Use& op) { op.x = wide_constant(op.x); }
  static void constants(Unary& op) { op.x = wide_constant(op.x); }
  static void constants(Binary& op) { op.x = wide_constant(op.x), op.y = wide_constant(op.y); }
  static void constants(Compare& op) { op.x = wide_constant(op.x), op.y = wide_constant(op.y); }
  static void constants(Replicate& op) { op.value = wide_constant(op.value); }
  static void constants(Convert& op) {
    op.x = wide_constant(op.x);
    op.to = wide(Type::scalar(op.to)).element;
  }
  static void constants(Screma& op) {
    for (ReduceOp& reduce : op.reduces)
      for (Operand& neutral : reduce.neutral) neutral = wide_constant(neutral);
  }

  // In `out`: the number in another type, or an array with all of them.
  Operand converted(const Operand& x, ScalarType to, Builder& out) {
    changed_ = true;
    if (x.is_constant()) return convert(x.constant(), to);
    const Type type = values_.type(x);
    if (type.is_scalar()) return out.convert(to, x);
    Screma op;
    op.widths = type.shape;
    for (std::size_t k = 0; k < type.rank(); ++k) op.indices.push_back(values_.add(Type::scalar(ScalarType::i64), "i"));
    op.inputs = {x.value()};
    op.map = out.lambda({Type::scalar(type.element)}, {"x"}, [to](Builder& inner, const std::vector<Value>& params) {
      return std::vector<Operand>{inner.convert(to, params.front())};
    });
    return out.let(values_.name(x.value()), std::move(op));
  }

  BodyPtr with_wide_results(const BodyPtr& old, const std::set<std::size_t>& which) {
    if (which.empty()) return old;
    Builder out(values_);
    out.append_all(old->stms);
    std::vector<Operand> results = old->results;
    for (const std::size_t k : which) results[k] = converted(results[k], ScalarType::f64, out);
    return out.finish(std::move(results));
  }

  // The statement with those results in f64, and what they were before after it.
  void append(Stm stm, const std::set<std::size_t>& which, Builder& out) {
    std::vector<std::pair<Value, Value>> back;
    for (const std::size_t k : which) {
      const Value narrow = stm.pattern[k];
      stm.pattern[k] = values_.add(wide(values_.type(narrow)), values_.name(narrow));
      back.emplace_back(stm.pattern[k], narrow);
    }
    out.append(std::move(stm));
    for (const auto& [from, to] : back) {
      converted(from, values_.type(to).element, out);
      out.stms().back().pattern = {to};
    }
  }

  ValueTable& values_;
  bool changed_ = false;
};

}  // namespace

Module with_wide_sums(const Module& module) {
  Module result = module;
  for (FunctionPtr& function : result.functions) {
    Function copy = *function;
    Widener widener(copy);
    copy.body = widener.body(copy.body);
    if (widener.changed()) function = std::make_shared<const Function>(std::move(copy));
  }
  return result;
}

}  // namespace apl::suite
