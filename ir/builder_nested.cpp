// Operations with bodies: SOACs, branches and loops.
#include "ir/builder.h"
#include "ir/walk.h"

namespace apl {

namespace {

FillMany many(const FillOne& fill) {
  return [&fill](Builder& builder, BoundValues values) { return std::vector<Operand>{fill(builder, values)}; };
}

Value first(Builder& builder, const std::vector<Value>& values, const std::string& name) {
  return values.empty() ? builder.values().add(Type::scalar(ScalarType::unit), name) : values.front();
}

// The outermost size of the first input that is an array.
std::vector<Poly> width_of(const ValueTable& values, const std::vector<Value>& inputs) {
  for (const Value input : inputs)
    if (const Type& type = values.type(input); type.is_array()) return {type.shape.front()};
  return {Poly(0)};
}

}  // namespace

ReduceOp Builder::reduce_op(BinaryOp op, Scalar neutral) {
  ReduceOp reduce =
      reduce_op({neutral}, [op](Builder& b, BoundValues x) { return std::vector<Operand>{b.binary(op, x[0], x[1])}; });
  reduce.commutative = is_commutative(op);
  return reduce;
}

ReduceOp Builder::reduce_op(const std::vector<Operand>& neutral, const FillMany& fill) {
  std::vector<Type> types;
  std::vector<std::string> names;
  for (const char* name : {"a", "b"})
    for (const Operand& operand : neutral) {
      Type type = values_.type(operand);
      type.memory = nullptr;
      type.unique = false;
      types.push_back(std::move(type));
      names.emplace_back(name);
    }
  return {.op = lambda(types, names, fill), .neutral = neutral};
}

std::vector<Value> Builder::screma(const std::vector<std::string>& names, std::vector<Poly> widths,
                                   const std::vector<Value>& inputs, const FillMany& fill,
                                   std::vector<ReduceOp> reduces) {
  Screma soac{.widths = std::move(widths), .indices = {}, .inputs = inputs, .map = {}, .reduces = {}};
  for (std::size_t k = 0; k < soac.widths.size(); ++k)
    soac.indices.push_back(values_.add(Type::scalar(ScalarType::i64), "i"));
  std::vector<Type> rows;
  for (const Value input : inputs) rows.push_back(values_.type(input).row(soac.widths.size()));
  soac.map = lambda(rows, {"x"}, [&](Builder& inner, BoundValues params) {
    std::vector<Value> all = soac.indices;
    all.insert(all.end(), params.begin(), params.end());
    return fill(inner, all);
  });
  // An operator that stands at several places has values of its own at each.
  for (ReduceOp& reduce : reduces) {
    ReduceOp own = reduce;
    own.op = copy_fresh(reduce.op, {}, values_, values_);
    soac.reduces.push_back(std::move(own));
  }
  return let_many(names, std::move(soac));
}

std::vector<Value> Builder::map_many(const std::vector<std::string>& names, const std::vector<Value>& inputs,
                                     const FillMany& fill) {
  const auto rows = [&fill](Builder& inner, BoundValues all) {
    return fill(inner, std::vector<Value>(all.begin() + 1, all.end()));
  };
  return screma(names, width_of(values_, inputs), inputs, rows, {});
}

Value Builder::map(std::string name, const std::vector<Value>& inputs, const FillOne& fill) {
  return first(*this, map_many({name}, inputs, many(fill)), name);
}

Value Builder::tabulate(std::string name, std::vector<Poly> widths, const FillOne& fill) {
  return first(*this, screma({name}, std::move(widths), {}, many(fill), {}), name);
}

Value Builder::redomap(std::string name, ReduceOp op, const std::vector<Value>& inputs, const FillOne& fill) {
  const auto rows = [&fill](Builder& inner, BoundValues all) {
    return std::vector<Operand>{fill(inner, std::vector<Value>(all.begin() + 1, all.end()))};
  };
  return first(*this, screma({name}, width_of(values_, inputs), inputs, rows, {std::move(op)}), name);
}

Value Builder::reduce(std::string name, ReduceOp op, Value input) {
  return redomap(std::move(name), std::move(op), {input}, [](Builder&, BoundValues x) { return Operand(x[0]); });
}

Value Builder::scan(std::string name, ReduceOp op, Value input) {
  op.scan = true;
  return reduce(std::move(name), std::move(op), input);
}

std::vector<Value> Builder::if_else_many(const std::vector<std::string>& names, Operand condition,
                                         const std::function<std::vector<Operand>(Builder&)>& then_fill,
                                         const std::function<std::vector<Operand>(Builder&)>& else_fill) {
  BodyPtr then_body = body(then_fill);
  BodyPtr else_body = body(else_fill);
  return let_many(names, If{condition, std::move(then_body), std::move(else_body)});
}

Value Builder::if_else(std::string name, Operand condition, const std::function<Operand(Builder&)>& then_fill,
                       const std::function<Operand(Builder&)>& else_fill) {
  return first(*this,
               if_else_many(
                   {name}, condition, [&](Builder& b) { return std::vector<Operand>{then_fill(b)}; },
                   [&](Builder& b) { return std::vector<Operand>{else_fill(b)}; }),
               name);
}

std::vector<Value> Builder::for_loop_many(const std::vector<std::string>& names, Poly bound,
                                          const std::vector<Operand>& initial, const FillMany& fill) {
  Loop loop{.params = {},
            .initial = initial,
            .index = values_.add(Type::scalar(ScalarType::i64), "i"),
            .bound = std::move(bound),
            .body = {}};
  for (const Operand& x : initial) loop.params.push_back(values_.add(values_.type(x), "acc"));
  std::vector<Value> all{loop.index};
  all.insert(all.end(), loop.params.begin(), loop.params.end());
  loop.body = body([&](Builder& inner) { return fill(inner, all); });
  return let_many(names, std::move(loop));
}

Value Builder::for_loop(std::string name, Poly bound, Operand initial, const FillOne& fill) {
  return first(*this, for_loop_many({name}, std::move(bound), {initial}, many(fill)), name);
}

std::vector<Value> Builder::while_loop(const std::vector<std::string>& names, const std::vector<Operand>& initial,
                                       const FillMany& fill) {
  Loop loop{.params = {}, .initial = initial, .index = {}, .bound = 0, .body = {}};
  for (const Operand& x : initial) loop.params.push_back(values_.add(values_.type(x), "acc"));
  loop.body = body([&](Builder& inner) { return fill(inner, loop.params); });
  return let_many(names, std::move(loop));
}

}  // namespace apl
