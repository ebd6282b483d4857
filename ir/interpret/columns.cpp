// From lambdas to steps over columns.
#include "ir/interpret/columns.h"

#include <algorithm>
#include <unordered_map>

#include "ir/attributes.h"
#include "ir/walk.h"

namespace apl::interpreter {
namespace {

class ColumnCompiler {
 public:
  ColumnCompiler(const std::vector<Value>& indices, const Lambda& lambda, const ValueTable& values)
      : lambda_(lambda), values_(values) {
    for (const Value v : indices) code_.indices.push_back(bind(v));
    for (std::size_t k = 0; k < lambda.params.size(); ++k) {
      const Value v = lambda.params[k];
      code_.params.push_back(plain(values.type(v)) ? bind(v) : ColumnCode::kNone);
      if (values.type(v).is_array()) rows_.emplace(v, k);
    }
  }

  std::optional<ColumnCode> run() {
    for (const Stm& stm : lambda_.body->stms)
      if (!statement(stm)) return std::nullopt;
    for (const Operand& result : lambda_.body->results) {
      const std::optional<std::size_t> column = operand(result);
      if (!column) return std::nullopt;
      code_.results.push_back(*column);
    }
    drop_unread();
    return std::move(code_);
  }

 private:
  static bool plain(const Type& type) { return type.is_scalar() && type.element != ScalarType::unit; }

  std::size_t column(ScalarType type) {
    code_.types.push_back(type);
    return code_.types.size() - 1;
  }

  std::size_t bind(Value v) {
    const std::size_t made = column(values_.type(v).element);
    columns_.insert_or_assign(v, made);
    return made;
  }

  std::optional<std::size_t> operand(const Operand& x) {
    if (x.is_value())
      if (const auto found = columns_.find(x.value()); found != columns_.end()) return found->second;
    const Type type = values_.type(x);
    if (!plain(type)) return std::nullopt;
    const std::size_t made = column(type.element);
    code_.uniforms.emplace_back(made, x);
    if (x.is_value()) columns_.emplace(x.value(), made);
    return made;
  }

  std::size_t step(ColumnStep step, std::size_t target) {
    step.target = target;
    code_.steps.push_back(std::move(step));
    return target;
  }

  std::optional<std::size_t> combine(BinaryOp op, std::optional<std::size_t> x, std::optional<std::size_t> y) {
    if (!x || !y) return std::nullopt;
    return step({.kind = ColumnStep::Kind::binary, .binary = op, .x = *x, .y = *y}, column(ScalarType::i64));
  }

  std::optional<std::size_t> constant(std::int64_t x) { return operand(i64_constant(x)); }

  std::optional<std::size_t> poly(const Poly& p) {
    std::optional<std::size_t> sum;
    for (const Term& term : p.terms()) {
      std::optional<std::size_t> product;
      if (term.coefficient != 1 || term.factors.empty()) product = constant(term.coefficient);
      for (const Factor& factor : term.factors) {
        if (factor.opaque) return std::nullopt;
        const std::optional<std::size_t> x = operand(Operand(factor.symbol));
        product = product ? combine(BinaryOp::mul, product, x) : x;
        if (!product) return std::nullopt;
      }
      sum = sum ? combine(BinaryOp::add, sum, product) : product;
    }
    return sum ? sum : constant(0);
  }

  bool statement(const Stm& stm) {
    using Kind = ColumnStep::Kind;
    if (const Assert* assertion = get_if<Assert>(stm)) {
      if (has_attribute(stm.attributes, attribute::trace)) return false;  // a line for each index
      const auto x = operand(assertion->condition);
      if (x) code_.steps.push_back({.kind = Kind::check, .x = *x});
      return x.has_value();
    }
    if (stm.pattern.size() != 1 || !plain(values_.type(stm.pattern.front()))) return false;
    const Value to = stm.pattern.front();
    std::optional<std::size_t> made;
    if (const Use* use = get_if<Use>(stm)) {
      made = operand(use->x);
    } else if (const SizeExpr* size = get_if<SizeExpr>(stm)) {
      made = poly(size->value);
    } else if (const Unary* unary = get_if<Unary>(stm)) {
      if (const auto x = operand(unary->x)) made = step({.kind = Kind::unary, .unary = unary->op, .x = *x}, bind(to));
    } else if (const Binary* binary = get_if<Binary>(stm)) {
      const auto x = operand(binary->x), y = operand(binary->y);
      if (x && y) made = step({.kind = Kind::binary, .binary = binary->op, .x = *x, .y = *y}, bind(to));
    } else if (const Compare* compare = get_if<Compare>(stm)) {
      const auto x = operand(compare->x), y = operand(compare->y);
      if (x && y) made = step({.kind = Kind::compare, .compare = compare->op, .x = *x, .y = *y}, bind(to));
    } else if (const Convert* convert = get_if<Convert>(stm)) {
      const auto x = operand(convert->x);
      if (x) made = step({.kind = Kind::convert, .same_bits = convert->same_bits, .x = *x}, bind(to));
    } else if (const Index* index = get_if<Index>(stm)) {
      made = element(*index, to);
    }
    if (made) columns_.insert_or_assign(to, *made);
    return made.has_value();
  }

  std::optional<std::size_t> element(const Index& index, Value to) {
    ColumnStep step{.kind = ColumnStep::Kind::element, .array = array(index.array)};
    if (step.array == ColumnCode::kNone) return std::nullopt;
    for (const DimIndex& dim : index.dims) {
      const auto at = dim.is_slice() ? std::nullopt : poly(dim.start);
      if (!at) return std::nullopt;
      step.dims.push_back(*at);
    }
    return this->step(std::move(step), bind(to));
  }

  std::size_t array(Value v) {
    const auto row = rows_.find(v);
    const bool outside = row == rows_.end() && defining_stm(*lambda_.body, v) == nullptr;
    if ((row == rows_.end() && !outside) || values_.type(v).memory) return ColumnCode::kNone;
    const auto found = std::ranges::find(code_.arrays, v, &ColumnArray::value);
    if (found != code_.arrays.end()) return static_cast<std::size_t>(found - code_.arrays.begin());
    code_.arrays.push_back({v, outside ? std::nullopt : std::optional(row->second)});
    return code_.arrays.size() - 1;
  }

  void drop_unread() {
    std::vector<bool> read(code_.types.size(), false);
    for (const ColumnStep& step : code_.steps) {
      if (step.kind != ColumnStep::Kind::element) read[step.x] = true;
      if (step.kind == ColumnStep::Kind::binary || step.kind == ColumnStep::Kind::compare) read[step.y] = true;
      for (const std::size_t dim : step.dims) read[dim] = true;
    }
    for (const std::size_t result : code_.results) read[result] = true;
    for (std::vector<std::size_t>* list : {&code_.indices, &code_.params})
      for (std::size_t& column : *list)
        if (column != ColumnCode::kNone && !read[column]) column = ColumnCode::kNone;
  }

  const Lambda& lambda_;
  const ValueTable& values_;
  ColumnCode code_;
  std::unordered_map<Value, std::size_t> columns_;
  std::unordered_map<Value, std::size_t> rows_;  // parameters that are arrays, and their positions
};

}  // namespace

std::optional<ColumnCode> compile_columns(const std::vector<Value>& indices, const Lambda& lambda,
                                          const ValueTable& values) {
  return ColumnCompiler(indices, lambda, values).run();
}

}  // namespace apl::interpreter
