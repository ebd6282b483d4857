// The mainloop of a contraction: the epilogue, on the elements that a thread has (codegen/contraction/tile_loop.cpp).
//
// What it reads along the columns alone, as a bias, or along the rows alone, is read once for each of them, not for
// each element: in the outer of the two loops over a thread's elements, or into registers before both. Element by
// element, each under its own conditions, the compiler has all these reads on their way at once, with an address for
// each: a bias behind 4096 x 4096 x 4096 in f32 spilled 152 bytes of registers so, and takes 235 registers this way.
#include <algorithm>
#include <array>
#include <set>

#include "codegen/contraction/epilogue_split.h"
#include "codegen/contraction/mainloop.h"
#include "codegen/lower/lower.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

// The code says which element it is for by the indices (t, r) of T threads and R registers; here others have them.
void MainloopLowering::mainloop_epilogue(const SegOp& op, const Screma& each, const Stm& stm, KernelBlock& out) {
  Mainloop& mainloop = *mainloop_;
  if (&stm == mainloop.stored_stm) return;
  const ValueTable& values = unit_.function.values;
  const MnDim &m_dim = mainloop.mn_dims[0], &n_dim = mainloop.mn_dims[1];
  const std::string i = unit_.fresh("i"), j = unit_.fresh("j"), row = unit_.fresh("m"), column = unit_.fresh("n");
  KernelBlock inner;
  for (std::size_t d = 0; d < op.space.size(); ++d) {
    ExprPtr thread = number_of(0), reg = number_of(0);
    if (d == m_dim.dim || d == n_dim.dim) {
      const ExprPtr at = variable(d == m_dim.dim ? row : column);
      const std::int64_t registers = *unit_.fold(each.widths[d]);
      thread = registers == 1 ? at : infix("/", at, number_of(registers));
      reg = registers == 1 ? number_of(0) : infix("%", at, number_of(registers));
    }
    values_.scalars[op.space[d].index] = thread;
    values_.scalars[each.indices[d]] = reg;
  }
  const ExprPtr here = plus(mul(variable(i), number_of(n_dim.each)), variable(j));
  const SegOp& kernel_op = std::get<SegOp>(stm_.op);
  std::array<std::set<Value>, 2> indices;
  for (std::size_t s = 0; s < 2; ++s)
    indices[s] = {op.space[mainloop.mn_dims[s].dim].index, each.indices[mainloop.mn_dims[s].dim]};
  const Epilogue epilogue = split_epilogue(
      each.map, indices, {kernel_op.results[0].extents[m_dim.dim].bound, kernel_op.results[0].extents[n_dim.dim].bound},
      false, values);
  std::vector<ExprPtr> elements;
  for (Value input : each.inputs)
    elements.push_back(kernel::element(buffer(values.type(input).memory->block, stm.location).name, here));
  // The outer loop goes over rows, or over columns where less has to be kept so.
  const std::size_t outer = !epilogue.shared[1].reads.empty() && n_dim.each > m_dim.each ? 1 : 0;
  const std::array<std::string, 2> element{i, j}, position{row, column};
  // Of the outer loop's one element, of all elements of the inner one.
  std::array<KernelBlock, 2> before, reads;
  for (std::size_t s = 0; s < 2; ++s) {
    const Epilogue::Shared& shared = epilogue.shared[s];
    if (shared.reads.empty()) continue;
    for (const Stm& made : shared.before) statement(made, reads[s]);
    KernelBlock inside, zeros;
    for (const Stm& read : shared.reads) {
      const Value value = read.pattern.front();
      const std::string name = unit_.fresh(values.name(value) + (s == 0 ? "_of_row" : "_of_column"));
      const std::int64_t kept = s == outer ? 1 : mainloop.mn_dims[s].each;
      before[s].push_back(declare_array({values.type(value).element, false}, name, kept));
      const ExprPtr target = kernel::element(name, s == outer ? number_of(0) : variable(element[s]));
      values_.scalars.erase(value);  // of the same code before, which stands for other tiles
      statement(read, inside);
      inside.push_back(assign(target, values_.operand(value)));
      zeros.push_back(assign(target, number_of(0)));
      elements.push_back(target);
    }
    ExprPtr condition;
    for (const Operand& one : shared.conditions)
      condition = condition ? infix("&&", condition, values_.operand(one)) : values_.operand(one);
    if (condition) {
      append(reads[s], std::move(zeros));
      reads[s].push_back(kernel::branch(condition, std::move(inside)));
    } else {
      append(reads[s], std::move(inside));
    }
  }
  const std::vector<ExprPtr> results = inline_lambda(epilogue.map, elements, inner);
  for (std::size_t k = 0; k < results.size(); ++k)
    inner.push_back(assign(kernel::element(buffer(values.type(stm.pattern[k]).memory->block, stm.location).name, here),
                           results[k]));
  // Element i of a thread's rows: groups of neighbours, one group from each round of the lanes.
  const auto place = [](const MnDim& mn, const std::string& index) {
    const ExprPtr group = mul(infix("/", variable(index), number_of(mn.vector)), number_of(mn.lanes * mn.vector));
    return plus(plus(variable(mn.first), group), infix("%", variable(index), number_of(mn.vector)));
  };
  // Positions, conditions and reads of the columns are the same for all tiles of a block, and those of the inner loop
  // for all rounds of the outer one. Kept they would be more registers than are left beside the accumulators.
  const std::size_t inmost = 1 - outer;
  std::array<bool, 2> code_uses{}, reads_use{};  // a position
  for (std::size_t s = 0; s < 2; ++s) {
    code_uses[s] = uses_any(*epilogue.map.body, indices[s], values);
    reads_use[s] = uses_any(epilogue.shared[s].before, indices[s], values) ||
                   uses_any(epilogue.shared[s].reads, indices[s], values);
  }
  out.push_back(comment("code after the reduction"));
  if (code_uses[0] || code_uses[1] || reads_use[0] || reads_use[1]) declare_results_positions(out);
  const auto at = [&](std::size_t s, bool anew) {
    const ExprPtr where = place(mainloop.mn_dims[s], element[s]);
    return declare(kInt, position[s], anew ? call("apl_anew", {where}) : where);
  };
  KernelBlock one, round;
  if (code_uses[inmost]) one.push_back(at(inmost, true));
  append(one, std::move(inner));
  if (code_uses[outer] || reads_use[outer]) round.push_back(at(outer, outer == 1));
  append(round, std::move(before[outer]));
  append(round, std::move(reads[outer]));
  round.push_back(unrolled(element[inmost], mainloop.mn_dims[inmost].each, std::move(one)));
  if (!before[inmost].empty()) {
    append(out, std::move(before[inmost]));
    KernelBlock along{at(inmost, true)};
    append(along, std::move(reads[inmost]));
    out.push_back(unrolled(element[inmost], mainloop.mn_dims[inmost].each, std::move(along)));
  }
  out.push_back(unrolled(element[outer], mainloop.mn_dims[outer].each, std::move(round)));
}

}  // namespace apl::lower
