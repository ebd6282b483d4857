// The mainloop of a contraction: code after the reduction that is done where results are stored, element by element
// or for a vector of neighbours (codegen/contraction/write_back.cpp).
//
// So is code that reads an array along both M and N, as in alpha*A*B + beta*C, and behind matrix units of 8 and 16 bits
// code that reads any array. On the elements that a thread has in registers (epilogue.cpp) it would read a word at a
// time, in sectors of which other lanes use other parts, and the compiler would keep the position of each row and
// column while the loops run: C behind 4096 x 4096 x 4096 spilled 64 bytes of registers in f32. Here the array is read
// as results are stored: whole lines, or vectors where it lies as the results do; position and condition are theirs
// then. What is read along the rows or columns alone is read once for each.
#include <algorithm>

#include <fmt/format.h>

#include "codegen/contraction/mainloop.h"
#include "codegen/lower/lower.h"
#include "ir/layouts.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

// Where the results' element of this place in the block lies, by the code's own indices.
Poly MainloopLowering::stored_position(const SegOp& op) const {
  const SegOp& threads = std::get<SegOp>(mainloop_->stored_stm->op);
  const Screma& each = *mainloop_->stored_each;
  const Lmad& layout = unit_.function.type(stm_.pattern[0]).memory->layout;
  std::vector<Poly> indices;
  for (std::size_t d = 0; d < op.space.size(); ++d) {
    const TileExtent& extent = op.results[0].extents[d];
    Poly at = Poly(op.space[d].index) * extent.tile * extent.reg;
    if (!(extent.tile * extent.reg).is_one()) at += Poly(threads.space[d].index) * extent.reg + Poly(each.indices[d]);
    if (extent.split.empty()) {
      indices.push_back(at);
      continue;
    }
    std::vector<Poly> shape;
    for (const TileExtent::Part& part : extent.split) shape.push_back(part.bound);
    const std::vector<Poly> digits = unflatten_index(at, shape);
    indices.resize(layout.dims().size());
    for (std::size_t p = 0; p < digits.size(); ++p) indices[static_cast<std::size_t>(extent.split[p].axis)] = digits[p];
  }
  return indices.size() == layout.dims().size() ? layout.apply(indices) : Poly(-1);
}

// Splits the code, and of what is left takes out the reads of elements that lie where the results' do.
void MainloopLowering::prepare_stored_code(const SegOp& op) {
  Mainloop& mainloop = *mainloop_;
  const ValueTable& values = unit_.function.values;
  const SegOp& threads = std::get<SegOp>(mainloop.stored_stm->op);
  const Screma& each = *mainloop.stored_each;
  std::array<Poly, 2> sizes;
  for (std::size_t d = 0; d < threads.space.size(); ++d)
    values_.scalars[threads.space[d].index] = values_.scalars[each.indices[d]] = number_of(0);
  for (std::size_t s = 0; s < 2; ++s) {
    const std::size_t d = mainloop.mn_dims[s].dim;
    mainloop.stored_indices[s] = {threads.space[d].index, each.indices[d]};
    sizes[s] = op.results[0].extents[d].bound;
  }
  mainloop.stored = split_epilogue(each.map, mainloop.stored_indices, sizes, true, values);
  mainloop.stored_beside.clear();
  const Poly here = stored_position(op);
  std::map<Value, Poly> known;
  const auto expanded = [&](const Poly& p) {
    return p.substitute([&](Value v) -> std::optional<Poly> {
      const auto found = known.find(v);
      return found == known.end() ? std::nullopt : std::optional(found->second);
    });
  };
  std::vector<Stm> left;
  for (const Stm& stm : mainloop.stored.map.body->stms) {
    if (const SizeExpr* size = get_if<SizeExpr>(stm)) known.emplace(stm.pattern.front(), expanded(size->value));
    const Index* index = get_if<Index>(stm);
    const Type* type = index != nullptr ? &values.type(index->array) : nullptr;
    const bool beside = index != nullptr && !index->checked && type->memory &&
                        !values.type(stm.pattern.front()).is_array() &&
                        expanded(index_layout(type->memory->layout, index->dims).offset()) == here;
    (beside ? mainloop.stored_beside : left).push_back(stm);
  }
  mainloop.stored.map.body = make_body(std::move(left), mainloop.stored.map.body->results);
  for (const Stm& stm : mainloop.stored_beside) mainloop.stored.map.params.push_back(stm.pattern.front());
}

// Positions in the block, for the code that follows. Where they are no result's they are worked out anew each time:
// kept they would be more registers than are left beside the sums.
void MainloopLowering::place_stored(std::size_t s, const ExprPtr& at, const std::vector<Stm>& code, KernelBlock& out) {
  const SegOp& threads = std::get<SegOp>(mainloop_->stored_stm->op);
  const Screma& each = *mainloop_->stored_each;
  const auto& indices = mainloop_->stored_indices[s];
  if (!uses_any(code, indices, unit_.function.values)) return;
  const std::size_t d = mainloop_->mn_dims[s].dim;
  const std::int64_t registers = *unit_.fold(each.widths[d]);
  const std::string name = unit_.fresh(s == 0 ? "m" : "n");
  out.push_back(declare(kInt, name, call("apl_anew", {at})));
  const ExprPtr here = variable(name);
  values_.scalars[threads.space[d].index] = registers == 1 ? here : infix("/", here, number_of(registers));
  values_.scalars[each.indices[d]] = registers == 1 ? number_of(0) : infix("%", here, number_of(registers));
}

// What the code reads once for `count` rows or columns, if it reads anything so: into arrays of as many elements, whose
// names these are. `at` and `inside` (null: all are) are of one of them.
std::vector<std::string> MainloopLowering::stored_reads(std::size_t s, std::int64_t count, const Numbered& at,
                                                        const Numbered& inside, KernelBlock& out) {
  std::vector<std::string> names;
  if (mainloop_->stored_stm == nullptr || mainloop_->stored.shared[s].reads.empty()) return names;
  const Epilogue::Shared& shared = mainloop_->stored.shared[s];
  const ValueTable& values = unit_.function.values;
  std::vector<Stm> code = shared.before;
  code.insert(code.end(), shared.reads.begin(), shared.reads.end());
  const std::string counter = unit_.fresh("k");
  const ExprPtr nth = count == 1 ? number_of(0) : variable(counter);
  KernelBlock one, then, zeros;
  place_stored(s, at(nth), code, one);
  for (const Stm& stm : shared.before) statement(stm, one);
  for (const Stm& read : shared.reads) {
    const Value value = read.pattern.front();
    names.push_back(unit_.fresh(values.name(value) + (s == 0 ? "_of_row" : "_of_column")));
    out.push_back(declare_array({values.type(value).element, false}, names.back(), count));
    values_.scalars.erase(value);  // of the same code before
    statement(read, then);
    then.push_back(assign(kernel::element(names.back(), nth), values_.operand(value)));
    zeros.push_back(assign(kernel::element(names.back(), nth), number_of(0)));
  }
  if (inside)
    one.push_back(kernel::branch(inside(nth), std::move(then), std::move(zeros)));
  else
    append(one, std::move(then));
  out.push_back(unrolled(counter, count, std::move(one)));
  return names;
}

// An element on its way to memory: a result, or the sum that the code makes all results of, which reads `of_row`,
// `of_column` and `beside`.
KernelBlock MainloopLowering::store_element(const Passage& passage, const ExprPtr& value, const ExprPtr& position,
                                            const StoredPlace& place) {
  KernelBlock out;
  std::vector<ExprPtr> made{value};
  if (mainloop_->stored_stm != nullptr) made = stored_results(value, place, read_beside(position), out);
  for (std::size_t k = 0; k < made.size(); ++k)
    out.push_back(assign(kernel::element(passage.targets[k], position), made[k]));
  return out;
}

// In the order of the kernel's results.
std::vector<ExprPtr> MainloopLowering::stored_results(const ExprPtr& sum, const StoredPlace& place,
                                                      const std::vector<ExprPtr>& beside, KernelBlock& out) {
  const std::vector<Stm>& code = mainloop_->stored.map.body->stms;
  place_stored(0, place.row, code, out);
  place_stored(1, place.column, code, out);
  std::vector<ExprPtr> arguments{sum};
  for (const std::string& name : place.of_row) arguments.push_back(kernel::element(name, number_of(0)));
  for (const std::string& name : place.of_column) arguments.push_back(kernel::element(name, place.nth_column));
  arguments.insert(arguments.end(), beside.begin(), beside.end());
  const std::vector<ExprPtr> made = inline_lambda(mainloop_->stored.map, arguments, out);
  std::vector<ExprPtr> results;
  for (const Operand& result : std::get<SegOp>(stm_.op).body->results) {
    const auto at = std::ranges::find(mainloop_->stored_stm->pattern, result.value());
    results.push_back(made[static_cast<std::size_t>(at - mainloop_->stored_stm->pattern.begin())]);
  }
  return results;
}

// Elements of arrays that lie where the result at `position` does.
std::vector<ExprPtr> MainloopLowering::read_beside(const ExprPtr& position) {
  std::vector<ExprPtr> made;
  for (const std::string& name : arrays_beside()) made.push_back(kernel::element(name, position));
  return made;
}

std::vector<std::string> MainloopLowering::arrays_beside() {
  std::vector<std::string> names;
  for (const Stm& stm : mainloop_->stored_beside)
    names.push_back(buffer(unit_.function.type(std::get<Index>(stm.op).array).memory->block, stm_.location).name);
  return names;
}

// A vector of neighbouring sums at `from` of `sums`: arrays beside are read as vectors, too.
KernelBlock MainloopLowering::store_vector(const Passage& passage, const ExprPtr& from, const ExprPtr& position,
                                           const std::function<StoredPlace(const ExprPtr&)>& place) {
  const ValueTable& values = unit_.function.values;
  const std::int64_t vector = mainloop_->mn_dims[1].vector;
  const std::string store = fmt::format("apl_store<{}>", vector);
  if (mainloop_->stored_stm == nullptr)
    return {do_call(store, {variable(passage.targets[0]), position, plus(variable(passage.from), from)})};
  KernelBlock out;
  const std::string e = unit_.fresh("e");
  const ExprPtr nth = vector == 1 ? number_of(0) : variable(e);
  std::vector<ExprPtr> beside;
  const std::vector<std::string> arrays = arrays_beside();
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    const Value value = mainloop_->stored_beside[k].pattern.front();
    const std::string name = unit_.fresh(values.name(value) + "_beside");
    out.push_back(declare_array({values.type(value).element, false}, name, vector));
    out.push_back(do_call(fmt::format("apl_load<{}>", vector), {variable(arrays[k]), position, variable(name)}));
    beside.push_back(kernel::element(name, nth));
  }
  std::vector<std::string> results;
  for (const Value result : stm_.pattern) {
    results.push_back(unit_.fresh(values.name(result) + "_here"));
    out.push_back(declare_array({values.type(result).element, false}, results.back(), vector));
  }
  KernelBlock one;
  const std::vector<ExprPtr> made =
      stored_results(kernel::element(passage.from, plus(from, nth)), place(nth), beside, one);
  for (std::size_t k = 0; k < made.size(); ++k) one.push_back(assign(kernel::element(results[k], nth), made[k]));
  out.push_back(unrolled(e, vector, std::move(one)));
  for (std::size_t k = 0; k < made.size(); ++k)
    out.push_back(do_call(store, {variable(passage.targets[k]), position, variable(results[k])}));
  return out;
}

// What is stored: each result, or the one sum that the code makes all of them of.
std::vector<MainloopLowering::Passage> MainloopLowering::passages(const SegOp& op) {
  const ValueTable& values = unit_.function.values;
  const auto name_of = [&](Value v) { return buffer(values.type(v).memory->block, stm_.location).name; };
  std::vector<Passage> made;
  if (mainloop_->stored_stm != nullptr) {
    const Type& sum = values.type(mainloop_->stored_each->inputs.front());
    made.push_back({buffer(sum.memory->block, stm_.location).name, sum.element, {}});
    for (const Value result : stm_.pattern) made[0].targets.push_back(name_of(result));
    return made;
  }
  for (std::size_t k = 0; k < op.results.size(); ++k)
    made.push_back(
        {name_of(op.body->results[k].value()), values.type(stm_.pattern[k]).element, {name_of(stm_.pattern[k])}});
  return made;
}

}  // namespace apl::lower
