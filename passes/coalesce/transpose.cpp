#include "passes/coalesce/transpose.h"

namespace apl::coalesce {

Value moved_to_end(Value array, std::size_t fast, std::size_t partner, Builder& host) {
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < host.values().type(array).rank(); ++d)
    if (d != fast) order.push_back(d);
  order.push_back(fast);
  return host.let(host.values().name(array) + "_t", transposition(array, order, partner, host));
}

SegOp transposition(Value array, const std::vector<std::size_t>& order, std::size_t partner, Builder& host) {
  ValueTable& values = host.values();
  const Type type = values.type(array);
  const std::size_t rank = type.rank(), fast = order.back();
  // Of a block; a thread has several neighbours along `partner`.
  const auto threads_of = [&](std::size_t d) { return d == fast ? kFast : d == partner ? kPartner / kEach : 1; };
  const auto each_of = [&](std::size_t d) { return d == partner ? kEach : 1; };
  const auto tile = [&](std::size_t d) { return Poly(threads_of(d) * each_of(d)); };

  SegOp kernel{.level = SegLevel::block, .space = {}, .body = {}, .results = {}};
  std::vector<Poly> start(rank);
  std::vector<TileExtent> extents;
  for (const std::size_t d : order) {
    const Value block = values.add(Type::scalar(ScalarType::i64), "b");
    kernel.space.push_back({block, ceil_div(type.shape[d], tile(d))});
    start[d] = Poly(block) * tile(d);
    extents.push_back({type.shape[d], Poly(threads_of(d)), Poly(each_of(d))});
  }
  kernel.body = host.body([&](Builder& block) {
    // One element more in each row, so that a column lies in different banks.
    const Lmad padded(Poly(0), {{Poly(kFast), Poly(kPartner + 1)}, {Poly(kPartner), Poly(1)}});
    const Value shared = block.let(values.name(array) + "_s", SharedArray{type.element, padded});
    CopyTile copy;
    const std::vector<Poly> strides = Lmad::row_major(type.shape).strides();
    Poly offset;
    for (std::size_t d = 0; d < rank; ++d) offset += start[d] * strides[d];
    copy.window = Lmad(offset, {{Poly(kFast), strides[fast]}, {Poly(kPartner), strides[partner]}});
    copy.guards = {{start[fast], type.shape[fast]}, {start[partner], type.shape[partner]}};
    copy.target = shared;
    copy.source = array;
    copy.pad = Scalar::zero(type.element);
    const Value filled = block.let(values.name(array) + "_s", std::move(copy));
    SegOp threads{.level = SegLevel::inblock, .space = {}, .body = {}, .results = {}};
    std::vector<Poly> at(2), each;
    std::size_t nth = 0;
    for (const std::size_t d : order) {
      const Value thread = values.add(Type::scalar(ScalarType::i64), "t");
      threads.space.push_back({thread, Poly(threads_of(d))});
      if (d == fast) at[0] = Poly(thread);
      if (d == partner) at[1] = Poly(thread) * Poly(each_of(d)), nth = each.size();
      each.push_back(Poly(each_of(d)));
    }
    threads.body = block.body([&](Builder& thread) {
      return std::vector<Operand>{thread.tabulate("r", each, [&](Builder& one, BoundValues register_index) {
        return Operand(one.index(filled, {at[0], at[1] + Poly(register_index[nth])}, "x"));
      })};
    });
    threads.results = {{KernelResult::Kind::private_, {}}};
    return std::vector<Operand>{block.let("r", std::move(threads))};
  });
  kernel.results = {{KernelResult::Kind::regtile, extents}};
  return kernel;
}

}  // namespace apl::coalesce
