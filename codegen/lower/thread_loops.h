// What each thread of a block does: once with its own indices on GPUs, in loops in C.
#pragma once

#include "codegen/lower/lower.h"

namespace apl::lower {

// How many indices a space of these sizes has.
inline std::int64_t count_of(const std::vector<std::int64_t>& sizes) {
  std::int64_t product = 1;
  for (std::int64_t n : sizes) product *= n;
  return product;
}

// A position goes on by additions, of which compilers would make a multiplication of 64 bits each.
inline kernel::Stmt go_on(const std::string& position, const std::string& by) {
  using namespace kernel;
  return assign(variable(position), call("apl_anew", {plus(variable(position), variable(by))}));
}

template <class Fill>
void Kernel::for_threads(const std::vector<std::int64_t>& space, const std::vector<std::string>& names,
                         kernel::Block& out, Fill&& fill) {
  using namespace kernel;
  if (unit_.target.on_device()) {
    std::vector<ExprPtr> at = thread_indices(space, names, out);
    if (count_of(space) == threads_) {
      fill(at, out);
      return;
    }
    kernel::Block inner;
    fill(at, inner);
    out.push_back(kernel::branch(infix("<", call("apl_thread", {}), literal(count_of(space))), std::move(inner)));
    return;
  }
  std::vector<ExprPtr> at;
  std::vector<std::string> loops;
  ExprPtr flat = literal(std::int64_t{0});
  for (std::size_t k = 0; k < space.size(); ++k) {
    loops.push_back(space[k] == 1 ? "" : unit_.fresh("t_" + names[k]));
    at.push_back(space[k] == 1 ? literal(std::int64_t{0}) : variable(loops.back()));
    flat = plus(mul(flat, literal(space[k])), at.back());
  }
  ExprPtr outer = std::exchange(flat_thread_, flat);
  kernel::Block inner;
  fill(at, inner);
  flat_thread_ = outer;
  for (std::size_t k = space.size(); k-- > 0;)
    if (space[k] != 1) {
      kernel::Block body = std::move(inner);
      inner.clear();
      inner.push_back(for_loop(kInt, loops[k], literal(space[k]), std::move(body)));
    }
  out.insert(out.end(), inner.begin(), inner.end());
}

}  // namespace apl::lower
