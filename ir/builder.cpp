#include "ir/builder.h"

namespace apl {

void Builder::append(Stm stm) { stms_.push_back(std::move(stm)); }
void Builder::append_all(const std::vector<Stm>& stms) { stms_.insert(stms_.end(), stms.begin(), stms.end()); }
BodyPtr Builder::finish(std::vector<Operand> results) { return make_body(std::move(stms_), std::move(results)); }

Value Builder::let(std::string name, Op op) {
  const std::vector<Value> pattern = let_many({name}, std::move(op));
  // A call of a function that does not exist, say: the verifier reports the statement.
  return pattern.empty() ? values_.add(Type::scalar(ScalarType::unit), std::move(name)) : pattern.front();
}

std::vector<Value> Builder::let_many(const std::vector<std::string>& names, Op op) {
  std::vector<Type> types = result_types(op, values_, module_);
  std::vector<Value> pattern = let_typed(names, types, std::move(op));
  const Op& made = stms_.back().op;
  if (!std::holds_alternative<If>(made) && !std::holds_alternative<Loop>(made)) return pattern;
  types = result_types(made, values_, module_, pattern);
  for (std::size_t k = 0; k < pattern.size(); ++k) values_.set_type(pattern[k], types[k]);
  return pattern;
}

std::vector<Value> Builder::let_typed(const std::vector<std::string>& names, const std::vector<Type>& types, Op op) {
  std::vector<Value> pattern;
  for (std::size_t k = 0; k < types.size(); ++k)
    pattern.push_back(values_.add(types[k], names.empty() ? "x" : names[k % names.size()]));
  stms_.push_back(
      {.pattern = pattern, .op = std::move(op), .location = location_, .certificates = {}, .attributes = {}});
  return pattern;
}

Value Builder::binary(BinaryOp op, Operand x, Operand y, std::string name) {
  return let(std::move(name), Binary{op, x, y});
}

Value Builder::unary(UnaryOp op, Operand x, std::string name) { return let(std::move(name), Unary{op, x}); }

Value Builder::compare(CompareOp op, Operand x, Operand y, std::string name) {
  return let(std::move(name), Compare{op, x, y});
}

Value Builder::convert(ScalarType to, Operand x, std::string name) { return let(std::move(name), Convert{to, x}); }
Value Builder::bitcast(ScalarType to, Operand x, std::string name) {
  return let(std::move(name), Convert{to, x, true});
}

Value Builder::size(Poly value, std::string name) { return let(std::move(name), SizeExpr{std::move(value)}); }

Value Builder::index(Value array, std::vector<Poly> at, std::string name, bool checked) {
  std::vector<DimIndex> dims;
  for (Poly& i : at) dims.push_back(DimIndex::fix(std::move(i)));
  return let(std::move(name), Index{array, std::move(dims), checked});
}

Value Builder::rearrange(Value array, std::vector<int> permutation, std::string name) {
  return let(std::move(name), Rearrange{array, std::move(permutation)});
}

BodyPtr Builder::body(const std::function<std::vector<Operand>(Builder&)>& fill) {
  Builder inner(values_, module_);
  inner.set_location(location_);
  std::vector<Operand> results = fill(inner);
  return inner.finish(std::move(results));
}

Lambda Builder::lambda(const std::vector<Type>& params, const std::vector<std::string>& names,
                       const std::function<std::vector<Operand>(Builder&, const std::vector<Value>&)>& fill) {
  Lambda lambda;
  for (std::size_t k = 0; k < params.size(); ++k)
    lambda.params.push_back(values_.add(params[k], names.empty() ? "x" : names[k % names.size()]));
  lambda.body = body([&](Builder& inner) { return fill(inner, lambda.params); });
  return lambda;
}

std::optional<Operand> as_operand(const Poly& p) {
  if (auto constant = p.constant()) return i64_constant(*constant);
  if (auto symbol = p.symbol()) return Operand(*symbol);
  return std::nullopt;
}

Poly as_poly(const Operand& operand) {
  return operand.is_value() ? Poly(operand.value()) : Poly(operand.constant().as_int());
}

}  // namespace apl
