// Sums over non-zeros. A contraction in which A[i, k] is summed over k becomes
//
//   let {C : [n][b]f32} =
//     segmap(thread) (i < n, j < b) {
//       let {first : i64} = A_row_start[i]
//       let {last : i64} = A_row_start[i + 1]
//       let {c : f32} = redomap(p < last - first, ..., \{} -> {
//           a = A_values[first + p], k = A_column[first + p], x = B[k, j]
//           in {the map function of a and x} }, ...)
//       return {returns c}
//     }
//
// or, for few threads, rows of sums that grow in place, so that neighbouring elements of B are read together:
//
//     segmap(thread) (i < n) {
//       zeros = replicate([b], 0)
//       sums = loop {row = zeros} for p < count { loop {..} for j < b { row with [j] = row[j] + a * B[k, j] } }
//       return {returns sums}
//     }
//
// Where B is sparse as well, a row of sums goes over the non-zeros of B's row k (Gustavson's product of two sparse
// matrices, with a dense row of the result):
//
//       sums = loop {row = zeros} for p < count { loop {..} for q < count_of_row_k { j = B_column[..] ... row[j] + a *
//       b } }
//
// A thread owns its sum: no two write one element, and sums have the order of the dense program's, so that any
// associative operator will do. Over i the rows of a column are gone through in the same way.
#include "passes/sparsify/sums.h"

#include <algorithm>

#include "ir/walk.h"

namespace apl::sparsify {
namespace {

Reader make_reader(const ContractionOperand& operand, const Contraction& contraction, Builder& host) {
  Reader reader{.operand = &operand, .array = operand.base, .by_axis = {}};
  if (operand.index) return {.operand = &operand, .array = {}, .by_axis = {}};
  const Type type = host.values().type(operand.base);
  Poly stride = 1;
  std::vector<std::optional<std::size_t>> axes(type.rank());
  std::vector<bool> used(contraction.dims.size());
  for (std::size_t axis = type.rank(); axis-- > 0; stride = stride * type.shape[axis])
    for (std::size_t d = 0; d < contraction.dims.size() && !axes[axis]; ++d) {
      if (used[d] || operand.strides[d] != stride || !(contraction.dims[d].size == type.shape[axis])) continue;
      axes[axis] = d;
      used[d] = true;
    }
  bool whole = operand.offset.is_zero();
  for (std::size_t axis = 0; axis < type.rank(); ++axis) whole = whole && (axes[axis] || type.shape[axis].is_one());
  for (std::size_t d = 0; d < contraction.dims.size(); ++d) whole = whole && used[d] == operand.varies(d);
  if (whole) {
    reader.by_axis = std::move(axes);
  } else if (type.rank() > 1) {
    reader.array = host.let(host.values().name(operand.base), Reshape{operand.base, {product(type.shape)}});
  }
  return reader;
}

Value read(const Reader& reader, const Contraction& contraction, const Substitution& here, Builder& body) {
  const ContractionOperand& operand = *reader.operand;
  const std::string name = body.values().name(operand.element);
  const auto index = [&](std::size_t d) { return substitute(Poly(contraction.dims[d].index), here); };
  if (!reader.by_axis.empty()) {
    std::vector<Poly> at;
    for (const auto& d : reader.by_axis) at.push_back(d ? index(*d) : Poly(0));
    return body.index(reader.array, at, name);
  }
  Poly position = operand.offset;
  for (std::size_t d = 0; d < contraction.dims.size(); ++d) position += operand.strides[d] * index(d);
  return reader.array ? body.index(reader.array, {position}, name) : body.size(position, name);
}

}  // namespace

Sums::Sums(const Contraction& contraction, const Pattern& pattern, const SparseOperands& ours, std::size_t own,
           std::size_t summed, bool by_columns, Builder& host)
    : contraction_(contraction),
      pattern_(pattern),
      ours_(ours),
      own_(own),
      summed_(summed),
      by_columns_(by_columns),
      host_(host),
      values_(host.values()) {
  for (const ContractionOperand& operand : contraction.operands)
    readers_.push_back(ours.contains(operand.element) ? Reader{.operand = &operand, .array = {}, .by_axis = {}}
                                                      : make_reader(operand, contraction, host));
  for (const ContractionOperand& operand : contraction.uniform)
    uniform_.push_back(make_reader(operand, contraction, host));
}

Value Sums::index_value(const std::string& hint) { return values_.add(Type::scalar(ScalarType::i64), hint); }

void Sums::open_space(SegOp& made, std::size_t dims) {
  made.level = SegLevel::thread;
  for (std::size_t d = 0; d < dims; ++d) {
    const Value index = index_value(values_.name(contraction_.dims[d].index));
    made.space.push_back({index, contraction_.dims[d].size});
    here_.insert_or_assign(contraction_.dims[d].index, Operand(index));
  }
}

NonzeroRange Sums::range(const SegOp& made, Builder& thread) {
  return nonzero_range(pattern_, Poly(made.space[own_].index), by_columns_, thread);
}

Sums::Nonzero Sums::nonzero(const NonzeroRange& range, Value p, Builder& term) {
  const std::string& name = values_.name(contraction_.dims[summed_].index);
  const NonzeroAt at = nonzero_at(pattern_, Poly(range.first) + Poly(p), by_columns_, name, term);
  return elements_at(at.other, at.nonzero, here_, term);
}

Sums::Nonzero Sums::elements_at(Value other, const Poly& at, const Substitution& here, Builder& term) {
  return {other, read_at(ours_, at, here, term)};
}

std::map<Value, Value> Sums::read_at(const SparseOperands& operands, const Poly& at, const Substitution& here,
                                     Builder& term) {
  std::map<Value, Value> elements;
  std::map<std::pair<Value, std::vector<std::size_t>>, Value> read;
  for (const auto& [element, operand] : operands) {
    Value& a = read[{operand.array->values, operand.batches}];
    if (!a) {
      std::vector<Poly> position;
      for (const std::size_t batch : operand.batches)
        position.push_back(substitute(Poly(contraction_.dims[batch].index), here));
      position.push_back(at);
      a = term.index(operand.array->values, position, "a");
    }
    elements.emplace(element, a);
  }
  return elements;
}

std::vector<Operand> Sums::term(const Nonzero& nonzero, Substitution here, Builder& out) {
  here.insert_or_assign(contraction_.dims[summed_].index, Operand(nonzero.other));
  for (const Reader& reader : uniform_)
    here.insert_or_assign(reader.operand->element, Operand(read(reader, contraction_, here, out)));
  std::vector<Operand> arguments;
  for (const Reader& reader : readers_) {
    const auto ours = nonzero.elements.find(reader.operand->element);
    arguments.emplace_back(ours != nonzero.elements.end() ? ours->second : read(reader, contraction_, here, out));
  }
  return inline_lambda(copy_fresh(contraction_.map, here, values_, values_), arguments, values_, out.stms());
}

std::vector<Operand> Sums::epilogue(const std::vector<Operand>& sums, const Substitution& here, Builder& out) {
  if (contraction_.after)
    return inline_lambda(copy_fresh(*contraction_.after, here, values_, values_), sums, values_, out.stms());
  std::vector<Operand> results;
  for (const std::size_t r : contraction_.results) results.push_back(sums[r]);
  return results;
}

SegOp Sums::elements() {
  SegOp made;
  open_space(made, contraction_.space_rank);
  made.body = host_.body([&](Builder& thread) {
    const NonzeroRange mine = range(made, thread);
    Screma sum;
    Substitution here = here_;
    for (std::size_t d = contraction_.space_rank; d < contraction_.dims.size(); ++d) {
      sum.widths.push_back(d == summed_ ? Poly(mine.count) : contraction_.dims[d].size);
      sum.indices.push_back(index_value(d == summed_ ? "p" : values_.name(contraction_.dims[d].index)));
      here.insert_or_assign(contraction_.dims[d].index, Operand(sum.indices.back()));
    }
    sum.map.body = thread.body([&](Builder& body) {
      return term(nonzero(mine, sum.indices[summed_ - contraction_.space_rank], body), here, body);
    });
    ReduceOp reduce = contraction_.reduce;
    reduce.op = copy_fresh(contraction_.reduce.op, here_, values_, values_);
    sum.reduces = {std::move(reduce)};
    const std::vector<Value> sums = thread.let_many({"sum"}, std::move(sum));
    return epilogue({sums.begin(), sums.end()}, here_, thread);
  });
  made.results.assign(made.body->results.size(), {KernelResult::Kind::returns, {}});
  return made;
}

bool Sums::has_rows() const {
  for (const auto& [element, operand] : ours_)
    if (std::ranges::find(operand.batches, contraction_.space_rank - 1) != operand.batches.end()) return false;
  return contraction_.space_rank >= 2 && own_ + 1 < contraction_.space_rank &&
         contraction_.dims.size() == contraction_.space_rank + 1;
}

std::vector<Value> Sums::add_to_row(const Nonzero& nonzero, const std::vector<Value>& rows,
                                    const std::vector<Type>& types, Builder& step) {
  const ContractionDim& row = contraction_.dims[contraction_.space_rank - 1];
  const auto theirs =
      second_ ? std::optional(nonzero_range(*second_->pattern, Poly(nonzero.other), second_->by_columns, step))
              : std::nullopt;
  Loop along{.params = {},
             .initial = {rows.begin(), rows.end()},
             .index = index_value(second_ ? "q" : values_.name(row.index)),
             .bound = theirs ? Poly(theirs->count) : row.size,
             .body = {}};
  for (const Type& type : types) along.params.push_back(values_.add(type, "row"));
  along.body = step.body([&](Builder& element) {
    Nonzero met = nonzero;
    Poly at(along.index);
    Substitution here = here_;
    if (theirs) {
      const NonzeroAt second = nonzero_at(*second_->pattern, Poly(theirs->first) + at, second_->by_columns,
                                          values_.name(row.index), element);
      at = Poly(second.other);
      met.elements.merge(read_at(second_->elements, second.nonzero, here, element));
    }
    here.insert_or_assign(row.index, Operand(*at.symbol()));
    const std::vector<Operand> terms = term(met, here, element);
    std::vector<Operand> arguments;
    for (const Value sums : along.params) arguments.emplace_back(element.index(sums, {at}, "sum"));
    arguments.insert(arguments.end(), terms.begin(), terms.end());
    const Lambda op = copy_fresh(contraction_.reduce.op, here_, values_, values_);
    const std::vector<Operand> sums = inline_lambda(op, arguments, values_, element.stms());
    std::vector<Operand> results;
    for (std::size_t k = 0; k < sums.size(); ++k)
      results.emplace_back(element.let("row", Update{along.params[k], {DimIndex::fix(at)}, sums[k]}));
    return results;
  });
  return step.let_typed({"row"}, types, std::move(along));
}

SegOp Sums::rows() {
  SegOp made;
  open_space(made, contraction_.space_rank - 1);
  const ContractionDim& row = contraction_.dims[contraction_.space_rank - 1];
  const auto at = [&](Value index) {
    Substitution here = here_;
    here.insert_or_assign(row.index, Operand(index));
    return here;
  };
  made.body = host_.body([&](Builder& thread) {
    const NonzeroRange mine = range(made, thread);
    std::vector<Operand> zeros;
    std::vector<Type> types;
    for (const Operand& neutral : contraction_.reduce.neutral) {
      zeros.emplace_back(thread.let("zeros", Replicate{{row.size}, neutral}));
      types.push_back(values_.type(zeros.back()));
    }
    const auto carried = [&](const char* name) {
      std::vector<Value> params;
      for (const Type& type : types) params.push_back(values_.add(type, name));
      return params;
    };
    Loop over{
        .params = carried("row"), .initial = zeros, .index = index_value("p"), .bound = Poly(mine.count), .body = {}};
    over.body = thread.body([&](Builder& step) {
      const std::vector<Value> rows = add_to_row(nonzero(mine, over.index, step), over.params, types, step);
      return std::vector<Operand>(rows.begin(), rows.end());
    });
    const std::vector<Value> sums = thread.let_typed({"sums"}, types, std::move(over));
    if (!contraction_.after) return epilogue({sums.begin(), sums.end()}, here_, thread);
    Screma after{.widths = {row.size},
                 .indices = {index_value(values_.name(row.index))},
                 .inputs = sums,
                 .map = {},
                 .reduces = {}};
    std::vector<Type> elements;
    for (const Type& type : types) elements.push_back(Type::scalar(type.element));
    after.map = thread.lambda(elements, {"sum"}, [&](Builder& element, const std::vector<Value>& params) {
      return epilogue({params.begin(), params.end()}, at(after.indices.front()), element);
    });
    const std::vector<Value> results = thread.let_many({"results"}, std::move(after));
    return std::vector<Operand>(results.begin(), results.end());
  });
  made.results.assign(made.body->results.size(), {KernelResult::Kind::returns, {}});
  return made;
}

}  // namespace apl::sparsify
