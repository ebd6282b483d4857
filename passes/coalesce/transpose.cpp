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
  // The dim of a block's tiles, if there is one.
  std::size_t further = rank;
  for (const std::size_t d : order)
    if (further == rank && d != fast && d != partner && type.shape[d].constant() != 1) further = d;
  constexpr std::int64_t kWide = 8;
  const std::int64_t tiles = further == rank ? 1 : byte_size(type.element) < kWide ? kTiles : kTiles / 2;
  // Of a block; a thread has several neighbours along `partner`, in each tile.
  const auto threads_of = [&](std::size_t d) { return d == fast ? kFast : d == partner ? kPartner / kEach : 1; };
  const auto each_of = [&](std::size_t d) { return d == partner ? kEach : d == further ? tiles : 1; };
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
    const std::vector<Poly> strides = Lmad::row_major(type.shape).strides();
    Poly offset;
    for (std::size_t d = 0; d < rank; ++d) offset += start[d] * strides[d];
    // One element more in each row, so that a column lies in different banks.
    std::vector<LmadDim> padded{{Poly(kFast), Poly(kPartner + 1)}, {Poly(kPartner), Poly(1)}},
        window{{Poly(kFast), strides[fast]}, {Poly(kPartner), strides[partner]}};
    CopyTile copy;
    copy.guards = {{start[fast], type.shape[fast]}, {start[partner], type.shape[partner]}};
    if (tiles > 1) {
      padded.insert(padded.begin(), {Poly(tiles), Poly(kFast * (kPartner + 1))});
      window.insert(window.begin(), {Poly(tiles), strides[further]});
      copy.guards.insert(copy.guards.begin(), {start[further], type.shape[further]});
    }
    const Value shared =
        block.let(values.name(array) + "_s", SharedArray{type.element, Lmad(Poly(0), std::move(padded))});
    copy.window = Lmad(offset, std::move(window));
    copy.target = shared;
    copy.source = array;
    copy.pad = Scalar::zero(type.element);
    const Value filled = block.let(values.name(array) + "_s", std::move(copy));
    SegOp threads{.level = SegLevel::inblock, .space = {}, .body = {}, .results = {}};
    std::vector<Poly> at(2), each;
    std::size_t of_partner = 0, of_tiles = 0;
    for (const std::size_t d : order) {
      const Value thread = values.add(Type::scalar(ScalarType::i64), "t");
      threads.space.push_back({thread, Poly(threads_of(d))});
      if (d == fast) at[0] = Poly(thread);
      if (d == partner) at[1] = Poly(thread) * Poly(each_of(d)), of_partner = each.size();
      if (d == further) of_tiles = each.size();
      each.push_back(Poly(each_of(d)));
    }
    threads.body = block.body([&](Builder& thread) {
      return std::vector<Operand>{thread.tabulate("r", each, [&](Builder& one, BoundValues register_index) {
        std::vector<Poly> element{at[0], at[1] + Poly(register_index[of_partner])};
        if (tiles > 1) element.insert(element.begin(), Poly(register_index[of_tiles]));
        return Operand(one.index(filled, element, "x"));
      })};
    });
    threads.results = {{KernelResult::Kind::private_, {}}};
    return std::vector<Operand>{block.let("r", std::move(threads))};
  });
  kernel.results = {{KernelResult::Kind::regtile, extents}};
  return kernel;
}

}  // namespace apl::coalesce
