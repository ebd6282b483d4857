// Register tiles of the general tiled kernel: a step of the contraction on the elements that each thread holds, and the
// write-back of these.
#include <algorithm>

#include "codegen/lower/lower.h"
#include "codegen/lower/register_loops.h"
#include "codegen/lower/thread_loops.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

// "T_a" and "R_a" give "a".
std::string dim_of(const Poly& tile, const ValueTable& values) {
  auto symbol = tile.symbol();
  if (!symbol) return "x";
  const std::string& name = values.name(*symbol);
  return name.size() > 2 && name[1] == '_' ? name.substr(2) : name;
}

}  // namespace

void Kernel::tile_contract(const TileContract& op, const Stm& stm, KernelBlock& out) {
  const ValueTable& table = unit_.function.values;
  const std::size_t rank = op.space.size();
  std::vector<std::int64_t> tiles, regs;
  std::vector<std::string> names, reg_names;
  for (const TileDim& dim : op.space) {
    tiles.push_back(unit_.constant(dim.tile, "a tile number"));
    regs.push_back(unit_.constant(dim.reg, "a tile number"));
    names.push_back(dim_of(dim.tile, table));
    reg_names.push_back("r_" + names.back());
  }
  for_threads(tiles, names, out, [&](const std::vector<ExprPtr>& thread, KernelBlock& inner) {
    // Depth loops; a depth of one makes none.
    std::vector<ExprPtr> depth_index;
    std::vector<std::string> depth_names;
    for (const Poly& depth : op.depth) {
      bool one = unit_.fold(depth) == 1;
      depth_names.push_back(one ? "" : unit_.fresh("q"));
      depth_index.push_back(one ? literal(std::int64_t{0}) : variable(depth_names.back()));
    }
    KernelBlock step;
    // Each operand's registers: its R-slices, read once a step.
    std::vector<std::string> registers;
    std::vector<std::vector<std::size_t>> operand_dims;
    for (const TileOperand& operand : op.operands) {
      std::vector<std::size_t> dims;
      for (int axis : operand.axes)
        if (static_cast<std::size_t>(axis) < rank && regs[static_cast<std::size_t>(axis)] > 1)
          dims.push_back(static_cast<std::size_t>(axis));
      std::sort(dims.begin(), dims.end());
      std::vector<std::int64_t> counts;
      std::vector<std::string> loop_names;
      for (std::size_t d : dims) counts.push_back(regs[d]), loop_names.push_back(reg_names[d]);
      std::string name = unit_.fresh(table.name(operand.tile).substr(0, table.name(operand.tile).find("_s")) + "_r");
      CType type{table.type(operand.tile).element, false};
      auto read = [&](const std::vector<ExprPtr>& r) {
        std::vector<ExprPtr> at;
        for (int axis : operand.axes) {
          auto d = static_cast<std::size_t>(axis);
          if (d >= rank) {
            at.push_back(depth_index[d - rank]);
            continue;
          }
          auto where = std::find(dims.begin(), dims.end(), d);
          ExprPtr reg =
              where == dims.end() ? literal(std::int64_t{0}) : r[static_cast<std::size_t>(where - dims.begin())];
          at.push_back(plus(mul(thread[d], literal(regs[d])), reg));
        }
        return element_of(operand.tile, at, stm.location);
      };
      if (dims.empty()) {
        step.push_back(declare(type, name, read({})));
      } else {
        step.push_back(declare_array(type, name, count_of(counts)));
        for_registers(counts, loop_names, step, [&](const std::vector<ExprPtr>& r, KernelBlock& body) {
          ExprPtr flat = literal(std::int64_t{0});
          for (std::size_t k = 0; k < r.size(); ++k) flat = plus(mul(flat, literal(counts[k])), r[k]);
          body.push_back(assign(kernel::element(name, flat), read(r)));
        });
      }
      registers.push_back(name);
      operand_dims.push_back(dims);
    }
    for_registers(regs, reg_names, step, [&](const std::vector<ExprPtr>& r, KernelBlock& body) {
      std::vector<ExprPtr> elements;
      for (std::size_t o = 0; o < op.operands.size(); ++o) {
        ExprPtr flat = literal(std::int64_t{0});
        for (std::size_t d : operand_dims[o]) flat = plus(mul(flat, literal(regs[d])), r[d]);
        elements.push_back(operand_dims[o].empty() ? variable(registers[o]) : kernel::element(registers[o], flat));
      }
      std::vector<ExprPtr> mapped = inline_lambda(op.map, elements, body);
      std::vector<ExprPtr> at = thread, arguments;
      at.insert(at.end(), r.begin(), r.end());
      std::vector<ExprPtr> accumulators;
      for (Value acc : op.accumulators) accumulators.push_back(element_of(acc, at, stm.location));
      arguments = accumulators;
      arguments.insert(arguments.end(), mapped.begin(), mapped.end());
      std::vector<ExprPtr> reduced = inline_lambda(op.reduce.op, arguments, body);
      // All results first: one may be computed from another's old value.
      for (std::size_t k = 0; k < reduced.size() && reduced.size() > 1; ++k) {
        std::string name = unit_.fresh("next");
        body.push_back(declare({table.type(op.accumulators[k]).element, false}, name, reduced[k]));
        reduced[k] = variable(name);
      }
      for (std::size_t k = 0; k < reduced.size(); ++k) body.push_back(assign(accumulators[k], reduced[k]));
    });
    for (std::size_t e = op.depth.size(); e-- > 0;)
      if (!depth_names[e].empty()) {
        bool constant = unit_.fold(op.depth[e]).has_value();
        KernelBlock body = std::move(step);
        step.clear();
        step.push_back(for_loop(constant ? kInt : kIndex, depth_names[e], values_.poly(op.depth[e]), std::move(body)));
      }
    inner.insert(inner.end(), step.begin(), step.end());
  });
}

void Kernel::write_regtiles(const SegOp& op, const Stm& stm, KernelBlock& out) {
  for (const KernelResult& result : op.results)
    if (result.kind != KernelResult::Kind::regtile)
      unsupported(stm.location, "a block-level result that is no register tile");
  if (op.results.empty()) return;
  const std::vector<TileExtent>& extents = op.results[0].extents;
  const ValueTable& table = unit_.function.values;
  std::vector<std::int64_t> tiles, regs;
  std::vector<std::string> names;
  for (const TileExtent& extent : extents) {
    tiles.push_back(unit_.constant(extent.tile, "a tile number"));
    regs.push_back(unit_.constant(extent.reg, "a tile number"));
    names.push_back(dim_of(extent.tile, table));
  }
  out.push_back(comment("write-back; what is out of range is dropped"));
  const bool is_split = std::ranges::any_of(extents, [](const TileExtent& extent) { return !extent.split.empty(); });
  const auto lines = std::ranges::count_if(regs, [](std::int64_t each) { return each > 1; });
  if (unit_.target.on_device() && op.results.size() == 1 && !is_split && (lines == 1 || lines == 2)) {
    for_threads(tiles, names, out, [&](const std::vector<ExprPtr>& thread, KernelBlock& inner) {
      write_lines(op, stm, thread, regs, inner);
    });
    return;
  }
  for_threads(tiles, names, out, [&](const std::vector<ExprPtr>& thread, KernelBlock& inner) {
    // A guard as far out as its dim's index is known.
    std::vector<ExprPtr> reg, global;
    std::vector<std::string> loops, index_names;
    for (std::size_t d = 0; d < extents.size(); ++d) {
      loops.push_back(regs[d] == 1 ? "" : unit_.fresh("r_" + names[d]));
      reg.push_back(regs[d] == 1 ? literal(std::int64_t{0}) : variable(loops.back()));
      index_names.push_back(unit_.fresh(names[d] == "x" ? "i" : "i_" + names[d]));
      global.push_back(variable(index_names.back()));
    }
    KernelBlock body;
    std::vector<ExprPtr> at = thread;
    at.insert(at.end(), reg.begin(), reg.end());
    std::vector<ExprPtr> place = global;
    for (std::size_t d = 0; d < extents.size(); ++d) {
      if (extents[d].split.empty()) continue;
      if (d == 0) place.assign(op.results[0].regtile_shape().size(), nullptr);
      std::vector<Poly> bounds;
      for (const TileExtent::Part& part : extents[d].split) bounds.push_back(part.bound);
      const std::vector<ExprPtr> digits = split(global[d], bounds, body);
      for (std::size_t p = 0; p < digits.size(); ++p)
        place[static_cast<std::size_t>(extents[d].split[p].axis)] = digits[p];
    }
    for (std::size_t k = 0; k < op.results.size(); ++k)
      body.push_back(assign(element_of(stm.pattern[k], place, stm.location),
                            element_of(op.body->results[k].value(), at, stm.location)));
    for (std::size_t d = extents.size(); d-- > 0;) {
      ExprPtr start = mul(values_.value(op.space[d].index), literal(tiles[d] * regs[d]));
      ExprPtr index = plus(start, plus(mul(thread[d], literal(regs[d])), reg[d]));
      KernelBlock guarded{declare(kIndex, index_names[d], index)};
      if (tiles[d] * regs[d] == 1) {
        guarded.insert(guarded.end(), body.begin(), body.end());
      } else {
        guarded.push_back(
            kernel::branch(infix("<", variable(index_names[d]), values_.poly(extents[d].bound)), std::move(body)));
      }
      body = std::move(guarded);
      if (regs[d] != 1) {
        Stmt loop = for_loop(kInt, loops[d], literal(regs[d]), std::move(body));
        loop.unroll = true;
        body.clear();
        body.push_back(std::move(loop));
      }
    }
    inner.insert(inner.end(), body.begin(), body.end());
  });
}

// A thread's registers along one dim, or lines of them along another: where the first one goes is worked out once, and
// how many of them are inside.
void Kernel::write_lines(const SegOp& op, const Stm& stm, const std::vector<ExprPtr>& thread,
                         const std::vector<std::int64_t>& regs, KernelBlock& out) {
  const std::vector<TileExtent>& extents = op.results[0].extents;
  const MemoryBinding& target = *unit_.function.type(stm.pattern[0]).memory;
  const auto along = static_cast<std::size_t>(std::ranges::max_element(regs) - regs.begin());
  std::size_t across = extents.size();  // the dim of lines, if there are several
  ExprPtr inside, left, lines_left, position = values_.poly(target.layout.offset());
  KernelBlock body;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const std::int64_t tile = unit_.constant(extents[d].tile, "a tile number") * regs[d];
    const std::string index = unit_.fresh("i");
    const ExprPtr start = mul(values_.value(op.space[d].index), number_of(tile));
    body.push_back(declare(kIndex, index, plus(start, mul(thread[d], number_of(regs[d])))));
    position = plus(position, mul(variable(index), values_.poly(target.layout.dims()[d].stride)));
    const ExprPtr bound = values_.poly(extents[d].bound);
    const ExprPtr inside_of = call("apl_index_min", {number_of(regs[d]), infix("-", bound, variable(index))});
    if (d == along) {
      left = inside_of;
    } else if (regs[d] > 1) {
      across = d;
      lines_left = inside_of;
    } else if (tile > 1) {
      const ExprPtr test = infix("<", variable(index), bound);
      inside = inside ? infix("&&", inside, test) : test;
    }
  }
  const std::string count = unit_.fresh("left"), to = unit_.fresh("to"), apart = unit_.fresh("apart"),
                    r = unit_.fresh("r"), line = unit_.fresh("line"), at_line = unit_.fresh("to");
  body.push_back(declare(kInt, count, inside ? select(inside, left, number_of(0)) : left));
  body.push_back(declare(kIndex, to, position, false));
  body.push_back(declare(kIndex, apart, values_.poly(target.layout.dims()[along].stride)));
  const bool one_line = across == extents.size();
  std::vector<ExprPtr> at = thread;
  for (std::size_t d = 0; d < extents.size(); ++d)
    at.push_back(d == along ? variable(r) : d == across ? variable(line) : number_of(0));
  const std::string& here = one_line ? to : at_line;
  KernelBlock write{assign(element_flat(target.block, variable(here), stm.location),
                           element_of(op.body->results[0].value(), at, stm.location))};
  KernelBlock one{kernel::branch(infix("<", variable(r), variable(count)), std::move(write)), go_on(here, apart)};
  Stmt elements = for_loop(kInt, r, number_of(regs[along]), std::move(one));
  elements.unroll = true;
  if (one_line) {
    body.push_back(std::move(elements));
  } else {
    const std::string lines = unit_.fresh("lines");
    body.push_back(declare(kInt, lines, lines_left));
    KernelBlock each{declare(kIndex, at_line, variable(to), false), std::move(elements)};
    KernelBlock all{kernel::branch(infix("<", variable(line), variable(lines)), std::move(each)),
                    assign(variable(to), plus(variable(to), values_.poly(target.layout.dims()[across].stride)))};
    Stmt loop = for_loop(kInt, line, number_of(regs[across]), std::move(all));
    loop.unroll = true;
    body.push_back(std::move(loop));
  }
  out.insert(out.end(), body.begin(), body.end());
}

}  // namespace apl::lower
