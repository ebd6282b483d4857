// Maps on GPUs whose results lie in rows, so that neighbouring elements of theirs can be read and written at once: a
// thread takes several neighbours of a row by accesses of 16 bytes where rows are long and arrays aligned enough, and
// as many elements a block apart where they are not.
//
//   const int64_t first = (apl_block() * 256 + apl_thread()) * 4;
//   const bool wide = m % 4 == 0 && apl_aligned<16>(xs) && apl_aligned<16>(ys);
//   if (wide && first + 4 <= n * m) {
//     const int64_t i = first / m, j_first = first % m;
//     apl_load<4>(xs, i * m + j_first, x_r);
//     for (next < 4) y_r[next] = f(x_r[next], j_first + next);
//     apl_store<4>(ys, i * m + j_first, y_r);
//   } else {
//     for (next < 4) { its own elements if wide, elsewhere the block's elements thread + next * 256 }
//   }
//
// A grid has a fourth of the blocks then, which are started at a limited rate, and indices are split once for all
// neighbours. Reads that are no neighbours', under a condition, or of what the kernel writes stay one by one. Bodies
// with loops, arrays or checks keep one element a thread: starting threads costs little beside what these do.
#include "codegen/lower/map_vectors.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/layouts.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

bool is_scalar_code(const Stm& stm, const ValueTable& values) {
  if (get_if<Index>(stm) || get_if<Rearrange>(stm) || get_if<Reshape>(stm)) return true;
  const bool scalar = get_if<Use>(stm) || get_if<Unary>(stm) || get_if<Binary>(stm) || get_if<Compare>(stm) ||
                      get_if<Convert>(stm) || get_if<SizeExpr>(stm);
  return scalar && values.type(stm.pattern.front()).is_scalar();
}

namespace {

// Statements of a body that is done for neighbours in turn, and of one for more than four of small types.
constexpr std::size_t kMostStatements = 64, kFewStatements = 8;
constexpr std::int64_t kFour = 4;
// Indices of a map that is known to be too short for this to matter.
constexpr std::int64_t kShort = 256;

// Nothing but scalars and elements; counts the statements. nullopt: there is something else.
std::optional<std::size_t> plain_statements(const Body& body, const ValueTable& values) {
  std::size_t count = 0;
  for (const Stm& stm : body.stms) {
    if (const If* branch = get_if<If>(stm)) {
      const bool scalars = std::ranges::all_of(stm.pattern, [&](Value v) { return values.type(v).is_scalar(); });
      const auto yes = plain_statements(*branch->then_body, values), no = plain_statements(*branch->else_body, values);
      if (!scalars || !yes || !no) return std::nullopt;
      count += *yes + *no + 1;
      continue;
    }
    if (!is_scalar_code(stm, values)) return std::nullopt;
    ++count;
  }
  return count;
}

// Whether positions of rows can be multiples of `width` at all, as far as the indices' own factors say.
bool can_be_multiple(const Poly& position, std::int64_t width, const SegOp& op) {
  return std::ranges::all_of(position.terms(), [&](const Term& term) {
    if (term.coefficient % width == 0) return true;
    return std::ranges::any_of(term.factors, [&](const Factor& factor) {
      return factor.opaque || std::ranges::find(op.space, factor.symbol, &SegDim::index) == op.space.end();
    });
  });
}

}  // namespace

MapVectors::MapVectors(Kernel& kernel, const SegOp& op) : KernelPart(kernel), op_(op) {
  const ValueTable& table = unit_.function.values;
  if (op.space.empty() || stm_.pattern.empty() || op.space.back().bound.is_one()) return;
  if (apl::can_fail(*op.body, table)) return;
  Poly total = 1;
  for (const SegDim& dim : op.space) total *= dim.bound;
  if (const std::optional<std::int64_t> known = total.constant(); known && *known <= kShort) return;
  const std::optional<std::size_t> statements = plain_statements(*op.body, table);
  if (!statements || *statements > kMostStatements) return;
  std::int64_t widest = 1;
  for (const Value result : stm_.pattern) {
    const Type& type = table.type(result);
    if (type.element == ScalarType::unit || type.rank() != op.space.size()) return;
    widest = std::max<std::int64_t>(widest, byte_size(type.element));
  }
  for (const Stm& stm : op.body->stms)
    if (neighbours_of(stm)) widest = std::max<std::int64_t>(widest, byte_size(table.type(stm.pattern.front()).element));
  const std::int64_t most = *statements > kFewStatements ? kFour : kBytesOfAccess;
  const std::int64_t neighbours = std::min(kBytesOfAccess / widest, most);
  for (const Value result : stm_.pattern) {
    const std::optional<Poly> row = row_of(element_position(result));
    if (!row || !can_be_multiple(*row, neighbours, op)) return;
  }
  const std::optional<std::int64_t> width = op.space.back().bound.constant();
  if (is_split() && width && *width % neighbours != 0) return;
  neighbours_ = neighbours;
}

// Whether the space has several dims of more than one index.
bool MapVectors::is_split() const {
  return std::ranges::count_if(op_.space, [](const SegDim& dim) { return !dim.bound.is_one(); }) > 1;
}

// The position of a result's element at the indices of the space.
Poly MapVectors::element_position(Value result) const {
  std::vector<DimIndex> dims;
  for (const SegDim& dim : op_.space) dims.push_back(DimIndex::fix(Poly(dim.index)));
  return index_layout(unit_.function.type(result).memory->layout, dims).offset();
}

// What must be a multiple beside the last dim's size for positions to be of neighbours along it that begin at one;
// nullopt: they are no neighbours.
std::optional<Poly> MapVectors::row_of(const Poly& position) const {
  const Value last = op_.space.back().index;
  Poly row = position - Poly(last), in_order;
  if (row.mentions(last)) return std::nullopt;
  for (const SegDim& dim : op_.space) in_order = in_order * dim.bound + Poly(dim.index);
  // As far as it is the space's own order, the last dim's size divides where a row begins.
  Poly rest = position - in_order;
  return rest.terms().size() < row.terms().size() ? rest : row;
}

// The position of the first neighbour that the statement reads; nullopt: it does not read neighbours.
std::optional<Poly> MapVectors::neighbours_of(const Stm& stm) const {
  const Index* index = get_if<Index>(stm);
  if (index == nullptr || !unit_.function.type(stm.pattern.front()).is_scalar()) return std::nullopt;
  const Type& source = unit_.function.type(index->array);
  if (!source.memory || source.element == ScalarType::unit || !outside_.contains(index->array)) return std::nullopt;
  const Poly position = index_layout(source.memory->layout, index->dims).offset();
  const std::optional<Poly> row = row_of(position);
  // What the body computes is not known where neighbours are read.
  bool is_known = row.has_value();
  position.for_each_symbol([&](Value v) {
    const bool indexed = std::ranges::find(op_.space, v, &SegDim::index) != op_.space.end();
    is_known = is_known && (indexed || outside_.contains(v));
  });
  return is_known ? std::optional(position) : std::nullopt;
}

void MapVectors::run() {
  KernelBlock& out = function_.body;
  for (const SegDim& dim : op_.space) {
    names_.push_back(unit_.name(dim.index));
    sizes_.push_back(values_.poly(dim.bound));
  }
  ExprPtr total = number_of(1);
  for (const ExprPtr& size : sizes_) total = mul(total, size);
  const std::string vector = unit_.fresh("vector"), first = unit_.fresh("first"), wide = unit_.fresh("wide"),
                    from = unit_.fresh("from"), next = unit_.fresh("next"), flat = unit_.fresh("element");
  const ExprPtr block_start = infix("*", call("apl_block", {}), number_of(threads_));
  const ExprPtr each = number_of(neighbours_);
  out.push_back(declare(kIndex, vector, infix("+", block_start, call("apl_thread", {}))));
  out.push_back(declare(kIndex, first, infix("*", variable(vector), each)));
  out.push_back(declare({ScalarType::boolean, false}, wide, can_be_wide()));
  const ExprPtr whole = infix("<=", infix("+", variable(first), each), total);
  // One by one: the thread's own neighbours, or elements a block's threads apart.
  const ExprPtr apart = infix("+", infix("*", block_start, each), call("apl_thread", {}));
  const ExprPtr step = select(variable(wide), number_of(1), number_of(threads_));
  KernelBlock others{declare(kIndex, from, select(variable(wide), variable(first), apart))}, single;
  single.push_back(declare(kIndex, flat, infix("+", variable(from), infix("*", variable(next), step))));
  single.push_back(kernel::branch(infix("<", variable(flat), total), one_by_one(flat)));
  Stmt all = for_loop(kInt, next, each, std::move(single));
  all.unroll = true;
  others.push_back(std::move(all));
  out.push_back(kernel::branch(infix("&&", variable(wide), whole), at_once(first), std::move(others)));
  function_.indices = neighbours_;
}

// Whether rows are long and arrays aligned enough; which reads are of neighbours then.
ExprPtr MapVectors::can_be_wide() {
  ExprPtr all = is_split() ? infix("==", infix("%", sizes_.back(), number_of(neighbours_)), number_of(0)) : nullptr;
  const auto also = [&](const ExprPtr& e) {
    if (e) all = all ? infix("&&", all, e) : e;
  };
  std::set<std::string> arrays;
  std::vector<Poly> rows;
  const auto access = [&](const Kernel::Buffer& buffer, const Poly& row) {
    const std::int64_t bytes = std::min(kBytesOfAccess, neighbours_ * byte_size(buffer.element));
    if (arrays.insert(buffer.name).second) also(call(fmt::format("apl_aligned<{}>", bytes), {variable(buffer.name)}));
    rows.push_back(row);
  };
  for (const Value result : stm_.pattern)
    access(buffer(unit_.function.type(result).memory->block, stm_.location), *row_of(element_position(result)));
  for (const Stm& stm : op_.body->stms) {
    const std::optional<Poly> position = neighbours_of(stm);
    if (!position || !can_be_multiple(*row_of(*position), neighbours_, op_)) continue;
    const Value array = std::get<Index>(stm.op).array;
    const Kernel::Buffer& source = buffer(unit_.function.type(array).memory->block, stm.location);
    if (source.kind != BufferKind::global_in) continue;
    access(source, *row_of(*position));
    reads_.push_back(
        {&stm, *position, source.name, unit_.fresh(unit_.function.values.name(stm.pattern.front()) + "_r")});
  }
  also(aligned(rows, neighbours_));
  return all;
}

KernelBlock MapVectors::at_once(const std::string& first) {
  const Value last = op_.space.back().index;
  const std::string next = unit_.fresh("next"), start = unit_.fresh(names_.back() + "_first");
  std::vector<std::string> names = names_;
  names.back() = start;
  KernelBlock out, body;
  indices_from(first, names, out);
  for (const Read& read : reads_) {
    const ScalarType element = unit_.function.type(read.stm->pattern.front()).element;
    out.push_back(declare_array({element, false}, read.array, neighbours_));
    out.push_back(do_call(fmt::format("apl_load<{}>", neighbours_),
                          {variable(read.source), values_.poly(read.position), variable(read.array)}));
  }
  std::vector<std::string> made;
  for (const Value result : stm_.pattern) {
    made.push_back(unit_.fresh(unit_.function.values.name(result) + "_r"));
    out.push_back(declare_array({unit_.function.type(result).element, false}, made.back(), neighbours_));
  }
  values_.scalars[last] = plus(variable(start), variable(next));
  for (const Stm& stm : op_.body->stms) {
    const auto read = std::ranges::find(reads_, &stm, &Read::stm);
    if (read == reads_.end()) {
      statement(stm, body);
    } else {
      const Value v = stm.pattern.front();
      body.push_back(
          declare({unit_.function.type(v).element, false}, unit_.name(v), element(read->array, variable(next))));
    }
  }
  for (std::size_t k = 0; k < made.size(); ++k)
    body.push_back(assign(element(made[k], variable(next)), values_.operand(op_.body->results[k])));
  Stmt all = for_loop(kInt, next, number_of(neighbours_), std::move(body));
  all.unroll = true;
  out.push_back(std::move(all));
  values_.scalars[last] = variable(start);
  for (std::size_t k = 0; k < made.size(); ++k) {
    const Type& type = unit_.function.type(stm_.pattern[k]);
    const std::int64_t width = std::min(neighbours_, kBytesOfAccess / byte_size(type.element));
    const ExprPtr position = values_.poly(element_position(stm_.pattern[k]));
    for (std::int64_t at = 0; at < neighbours_; at += width)
      out.push_back(do_call(fmt::format("apl_store<{}>", width),
                            {variable(buffer(type.memory->block, stm_.location).name), plus(position, number_of(at)),
                             at == 0 ? variable(made[k]) : infix("+", variable(made[k]), number_of(at))}));
  }
  return out;
}

KernelBlock MapVectors::one_by_one(const std::string& flat) {
  KernelBlock out;
  const std::vector<ExprPtr> indices = indices_from(flat, names_, out);
  body(*op_.body, out);
  for (std::size_t k = 0; k < stm_.pattern.size(); ++k)
    store(stm_.pattern[k], indices, op_.body->results[k], stm_.location, out);
  return out;
}

// The indices at a position of the space, by the names given.
std::vector<ExprPtr> MapVectors::indices_from(const std::string& flat, const std::vector<std::string>& names,
                                              KernelBlock& out) {
  std::vector<ExprPtr> indices = unflatten(flat, sizes_, names, kIndex, out);
  for (std::size_t k = 0; k < indices.size(); ++k) values_.scalars[op_.space[k].index] = indices[k];
  return indices;
}

}  // namespace apl::lower
