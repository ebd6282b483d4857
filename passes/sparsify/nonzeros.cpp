#include "passes/sparsify/nonzeros.h"

namespace apl::sparsify {
namespace {

Value read_field(const Pattern& pattern, SoaField field, const Poly& at, Builder& out, std::string name = {}) {
  return out.index(pattern.field(field), {at}, name.empty() ? std::string(to_text(field)) : std::move(name));
}

}  // namespace

NonzeroRange nonzero_range(const Pattern& pattern, const Poly& at, bool by_columns, Builder& out,
                           const std::vector<Value>& certificates) {
  const SoaField starts = by_columns ? SoaField::column_start : SoaField::row_start;
  const std::size_t begin = out.stms().size();
  const Value first = read_field(pattern, starts, at, out, "first"),
              last = read_field(pattern, starts, at + 1, out, "last");
  for (std::size_t s = begin; s < out.stms().size(); ++s) out.stms()[s].certificates = certificates;
  return {first, last, out.size(Poly(last) - Poly(first), "count")};
}

NonzeroAt nonzero_at(const Pattern& pattern, const Poly& position, bool by_columns, const std::string& name,
                     Builder& out) {
  Poly nonzero = position;
  if (by_columns)
    nonzero =
        Poly(out.convert(ScalarType::i64, read_field(pattern, SoaField::by_column, position, out, "which"), "nonzero"));
  const Value other = read_field(pattern, by_columns ? SoaField::row : SoaField::column, nonzero, out);
  return {nonzero, out.convert(ScalarType::i64, other, name)};
}

void look_up(Value element, const SparseArray& array, const std::vector<Poly>& batches, const Poly& row,
             const Poly& column, const std::vector<Value>& certificates, Builder& out) {
  const Pattern& pattern = *array.pattern;
  const NonzeroRange range = nonzero_range(pattern, row, false, out, certificates);
  const Value wanted = out.convert(ScalarType::i32, out.size(column, "j"), "wanted");
  const Value any = out.compare(CompareOp::lt, range.first, range.last, "any");
  // The first non-zero of the row that is not before the column.
  const std::vector<Value> found = out.while_loop(
      {"searching", "from", "to"}, {any, range.first, range.last}, [&](Builder& step, BoundValues params) {
        const Poly from(params[1]), to(params[2]);
        const Value middle = step.size(from + floor_div(to - from, 2), "middle");
        const Value here = read_field(pattern, SoaField::column, Poly(middle), step);
        const Value before = step.compare(CompareOp::lt, here, wanted, "before");
        const std::vector<Value> next = step.if_else_many(
            {"from", "to"}, before,
            [&](Builder& then) {
              return std::vector<Operand>{then.size(Poly(middle) + 1), params[2]};
            },
            [&](Builder&) {
              return std::vector<Operand>{params[1], middle};
            });
        return std::vector<Operand>{step.compare(CompareOp::lt, next[0], next[1], "searching"), next[0], next[1]};
      });
  const Value at = found[1];
  const Operand zero = Scalar::zero(out.values().type(array.values).element);
  If is_there{.condition = out.compare(CompareOp::lt, at, range.last, "left"), .then_body = {}, .else_body = {}};
  is_there.then_body = out.body([&](Builder& body) {
    const Value here = read_field(pattern, SoaField::column, Poly(at), body);
    const Value same = body.compare(CompareOp::eq, here, wanted, "same");
    std::vector<Poly> position = batches;
    position.emplace_back(at);
    return std::vector<Operand>{body.if_else(
        "a", same, [&](Builder& then) { return Operand(then.index(array.values, position, "a")); },
        [&](Builder&) { return zero; })};
  });
  is_there.else_body = make_body({}, {zero});
  out.append({.pattern = {element}, .op = std::move(is_there)});
}

Value check_index(const Index& index, const Location& location, ValueTable& values, Builder& out) {
  const std::vector<Poly> shape = values.type(index.array).shape;
  out.set_location(location);
  Assert check{.condition = Operand(Scalar::boolean(true)), .message = {"Index ["}};
  for (std::size_t d = 0; d < index.dims.size(); ++d) {
    const Value at = out.size(index.dims[d].start, "at");
    const Value bound = out.size(shape[d], "bound");
    const Value above = out.compare(CompareOp::le, i64_constant(0), at, "above");
    const Value below = out.compare(CompareOp::lt, at, bound, "below");
    const Value inside = out.binary(BinaryOp::conj, above, below, "inside");
    check.condition = d == 0 ? Operand(inside) : Operand(out.binary(BinaryOp::conj, check.condition, inside, "inside"));
    if (d > 0) check.message.emplace_back(", ");
    check.message.emplace_back(Operand(at));
  }
  check.message.emplace_back("] out of bounds for array of shape ");
  for (const Poly& size : shape) {
    check.message.emplace_back("[");
    check.message.emplace_back(Operand(out.size(size, "bound")));
    check.message.emplace_back("]");
  }
  check.message.emplace_back(".");
  const Value certificate = out.let("checked", std::move(check));
  out.set_location({});
  return certificate;
}

}  // namespace apl::sparsify
