#include "ir/differentiate/prepare.h"

#include <algorithm>

#include "ir/builder.h"

namespace apl::differentiation {

namespace {

class Preparing {
 public:
  Preparing(ValueTable& values, bool reverse) : values_(values), reverse_(reverse) {}

  BodyPtr body(const BodyPtr& old) {
    Builder b(values_);
    Substitution sizes;
    for (const Stm& stm : old->stms) {
      Stm next = substitute(stm, sizes, values_);
      next.op = map_bodies(next.op, [&](const BodyPtr& inner) { return body(inner); });
      if (get_if<Loop>(next) != nullptr) drop_constant_sizes(next, sizes);
      b.set_location(stm.location);
      statement(b, std::move(next));
    }
    std::vector<Operand> results;
    for (const Operand& result : old->results) results.push_back(substitute(result, sizes));
    return b.finish(results);
  }

 private:
  // What a number of the body is another name for.
  static Operand origin(const Body& body, Operand operand) {
    while (operand.is_value()) {
      const Stm* stm = defining_stm(body, operand.value());
      const Use* use = stm == nullptr ? nullptr : get_if<Use>(*stm);
      const SizeExpr* size = stm == nullptr ? nullptr : get_if<SizeExpr>(*stm);
      const std::optional<Value> symbol = size == nullptr ? std::nullopt : size->value.symbol();
      if (use != nullptr)
        operand = use->x;
      else if (symbol)
        operand = Operand(*symbol);
      else
        break;
    }
    return operand;
  }

  // A parameter that every iteration yields unchanged is what the loop starts with, also where it is the size of
  // others.
  void drop_constant_sizes(Stm& stm, Substitution& sizes) {
    Loop op = *get_if<Loop>(stm);
    Body body = *op.body;
    Substitution inside;
    for (std::size_t k = op.params.size(); k-- > 0;) {
      const auto at = static_cast<std::ptrdiff_t>(k);
      const Type& type = values_.type(op.params[k]);
      if (!type.is_scalar() || type.element != ScalarType::i64 ||
          origin(*op.body, body.results[k]) != Operand(op.params[k]))
        continue;
      inside.insert_or_assign(op.params[k], op.initial[k]);
      sizes.insert_or_assign(stm.pattern[k], op.initial[k]);
      op.params.erase(op.params.begin() + at);
      op.initial.erase(op.initial.begin() + at);
      body.results.erase(body.results.begin() + at);
      stm.pattern.erase(stm.pattern.begin() + at);
    }
    if (inside.empty()) return;
    op.body = make_body(std::move(body.stms), std::move(body.results));
    stm.op = std::move(op);
    stm.op = substitute(stm.op, inside, values_);
    for (const Value v : stm.pattern) values_.set_type(v, substitute(values_.type(v), sizes));
  }

  // Sums, products, minima and maxima of sizes as the scalar operations that rules for operators know.
  static void name_operation(ReduceOp& reduce) {
    std::vector<Stm> stms = reduce.op.body->stms;
    for (Stm& stm : stms) {
      const SizeExpr* size = get_if<SizeExpr>(stm);
      if (size == nullptr) continue;
      std::set<Value> symbols;
      size->value.for_each_symbol([&](Value v) { symbols.insert(v); });
      if (symbols.size() != 2) continue;
      const Value x = *symbols.begin(), y = *symbols.rbegin();
      const std::pair<Poly, BinaryOp> known[] = {{Poly(x) + Poly(y), BinaryOp::add},
                                                 {Poly(x) * Poly(y), BinaryOp::mul},
                                                 {poly_min(x, y), BinaryOp::min},
                                                 {poly_max(x, y), BinaryOp::max}};
      for (const auto& [poly, op] : known)
        if (size->value == poly) {
          stm.op = Binary{op, x, y};
          break;
        }
    }
    reduce.op.body = make_body(std::move(stms), reduce.op.body->results);
  }

  void statement(Builder& b, Stm stm) {
    if (Screma* screma = std::get_if<Screma>(&stm.op))
      for (ReduceOp& reduce : screma->reduces) name_operation(reduce);
    if (Scatter* scatter = std::get_if<Scatter>(&stm.op); scatter != nullptr && scatter->op)
      name_operation(*scatter->op);
    if (Update* update = std::get_if<Update>(&stm.op)) {
      update->array = b.let(values_.name(update->array), Copy{update->array});
    } else if (Scatter* scatter = std::get_if<Scatter>(&stm.op)) {
      for (Value& target : scatter->targets) target = b.let(values_.name(target), Copy{target});
      if (reverse_) apart(b, *scatter);
    } else if (const Screma* screma = get_if<Screma>(stm); screma != nullptr && reverse_ && !screma->reduces.empty()) {
      const bool alone = screma->reduces.size() == 1 && screma->widths.size() == 1 && is_identity(screma->map) &&
                         screma->map.params.size() == screma->reduced_count();
      if (!alone) return apart(b, stm, *screma);
    }
    b.append(std::move(stm));
  }

  // Arrays of all rows of the lambda, by a map.
  std::vector<Value> mapped(Builder& b, const std::vector<Poly>& widths, const Binders& indices,
                            const std::vector<Value>& inputs, const Lambda& map) {
    return b.let_many({"xs"},
                      Screma{.widths = widths, .indices = indices, .inputs = inputs, .map = map, .reduces = {}});
  }

  // One width for all.
  std::vector<Value> flat(Builder& b, std::vector<Value> arrays, std::size_t widths) {
    if (widths == 1) return arrays;
    for (Value& array : arrays) {
      const Type type = values_.type(array);
      const auto end = type.shape.begin() + static_cast<std::ptrdiff_t>(widths);
      std::vector<Poly> shape{product({type.shape.begin(), end})};
      shape.insert(shape.end(), end, type.shape.end());
      array = b.let("flat", Reshape{array, std::move(shape)});
    }
    return arrays;
  }

  Lambda identity(const std::vector<Value>& arrays) {
    Lambda result;
    for (const Value array : arrays) result.params.push_back(values_.add(values_.type(array).row(), "x"));
    result.body = make_body({}, {result.params.begin(), result.params.end()});
    return result;
  }
  Binders one_index() { return std::vector<Value>{values_.add(Type::scalar(ScalarType::i64), "i")}; }

  void apart(Builder& b, const Stm& stm, const Screma& op) {
    const std::vector<Value> rows = mapped(b, op.widths, op.indices, op.inputs, op.map);
    std::size_t first = 0;
    for (const ReduceOp& reduce : op.reduces) {
      const std::size_t n = reduce.neutral.size();
      const auto begin = static_cast<std::ptrdiff_t>(first), end = static_cast<std::ptrdiff_t>(first + n);
      const std::vector<Value> arrays = flat(b, {rows.begin() + begin, rows.begin() + end}, op.widths.size());
      const std::vector<Value> pattern(stm.pattern.begin() + begin, stm.pattern.begin() + end);
      Stm one = stm;
      one.op = Screma{.widths = {product(op.widths)},
                      .indices = one_index(),
                      .inputs = arrays,
                      .map = identity(arrays),
                      .reduces = {reduce}};
      one.pattern = pattern;
      const bool reshaped = reduce.scan && op.widths.size() > 1;
      if (reshaped)
        for (std::size_t k = 0; k < n; ++k) one.pattern[k] = values_.add(values_.type(arrays[k]), "flat");
      b.append(one);
      if (reshaped)
        for (std::size_t k = 0; k < n; ++k)
          b.append({.pattern = {pattern[k]},
                    .op = Reshape{one.pattern[k], values_.type(pattern[k]).shape},
                    .location = stm.location,
                    .certificates = {},
                    .attributes = {}});
      first += n;
    }
    for (std::size_t k = first; k < rows.size(); ++k)
      b.append({.pattern = {stm.pattern[k]},
                .op = Use{Operand(rows[k])},
                .location = stm.location,
                .certificates = {},
                .attributes = {}});
  }

  void apart(Builder& b, Scatter& op) {
    const std::vector<Value> rows = flat(b, mapped(b, op.widths, op.indices, op.inputs, op.map), op.widths.size());
    op.widths = {product(op.widths)};
    op.indices = one_index();
    op.inputs = rows;
    op.map = identity(rows);
  }

  ValueTable& values_;
  bool reverse_;
};

}  // namespace

BodyPtr prepare(const BodyPtr& body, ValueTable& values, bool reverse) { return Preparing(values, reverse).body(body); }

}  // namespace apl::differentiation
