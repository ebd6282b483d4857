// The mainloop of a contraction: the epilogue, on the elements that a thread has (codegen/contraction/tile_loop.cpp).
#include "codegen/contraction/mainloop.h"
#include "codegen/lower/lower.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

// The code says which element it is for by the indices (t, r) of T threads and R registers; here others have them.
void MainloopLowering::mainloop_epilogue(const SegOp& op, const Screma& each, const Stm& stm, KernelBlock& out) {
  Mainloop& mainloop = *mainloop_;
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
  std::vector<ExprPtr> elements;
  for (Value input : each.inputs)
    elements.push_back(kernel::element(buffer(values.type(input).memory->block, stm.location).name, here));
  const std::vector<ExprPtr> results = inline_lambda(each.map, elements, inner);
  for (std::size_t k = 0; k < results.size(); ++k)
    inner.push_back(assign(kernel::element(buffer(values.type(stm.pattern[k]).memory->block, stm.location).name, here),
                           results[k]));
  // Element i of a thread's rows: groups of neighbours, one group from each round of the lanes.
  const auto place = [](const MnDim& mn, const std::string& index) {
    const ExprPtr group = mul(infix("/", variable(index), number_of(mn.vector)), number_of(mn.lanes * mn.vector));
    return plus(plus(variable(mn.first), group), infix("%", variable(index), number_of(mn.vector)));
  };
  // Positions and conditions of all columns, kept for the other rows, would be more registers than are left beside the
  // accumulators (4096 x 4096 x 4096 with a bias: 104 bytes spilled, 250 registers this way).
  KernelBlock columns{declare(kInt, column, call("apl_anew", {place(n_dim, j)}))};
  append(columns, std::move(inner));
  KernelBlock rows{declare(kInt, row, place(m_dim, i))};
  rows.push_back(unrolled(j, n_dim.each, std::move(columns)));
  out.push_back(comment("code after the reduction"));
  out.push_back(unrolled(i, m_dim.each, std::move(rows)));
}

}  // namespace apl::lower
