#include "tests/testing/matcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/print.h"
#include "tests/testing.h"

namespace apl::testing {

bool Matcher::bind(Value x, Value y) {
  if (!x || !y) return !x && !y;
  return there_.emplace(x, y).second && back_.emplace(y, x).second;
}

bool Matcher::bind(const std::vector<Value>& x, const std::vector<Value>& y) {
  if (x.size() != y.size()) return false;
  for (std::size_t k = 0; k < x.size(); ++k)
    if (!bind(x[k], y[k])) return false;
  // Types after all are bound: they may mention each other.
  return bound_types(x, y);
}

bool Matcher::bound_types(const std::vector<Value>& x, const std::vector<Value>& y) {
  for (std::size_t k = 0; k < x.size(); ++k)
    if (!same(a_.type(x[k]), b_.type(y[k]))) return false;
  return true;
}

bool Matcher::same(Value x, Value y) const {
  const auto place = there_.find(x);
  return place == there_.end() ? !x && !y : place->second == y;
}

bool Matcher::same(const Poly& x, const Poly& y) const {
  bool known = true;
  const Poly renamed = x.substitute([&](Value symbol) -> std::optional<Poly> {
    const auto place = there_.find(symbol);
    if (place == there_.end()) {
      known = false;
      return std::nullopt;
    }
    return Poly(place->second);
  });
  return known && renamed == y;
}

bool Matcher::same(const Operand& x, const Operand& y) const {
  if (x.is_constant() || y.is_constant()) return x == y;
  return same(x.value(), y.value());
}

bool Matcher::same(const Lmad& x, const Lmad& y) const {
  return same(x.offset(), y.offset()) && same(x.shape(), y.shape()) && same(x.strides(), y.strides());
}

bool Matcher::same(const Type& x, const Type& y) const {
  if (x.kind != y.kind || x.element != y.element || x.unique != y.unique || x.space != y.space) return false;
  if (!same(x.shape, y.shape) || (x.memory == nullptr) != (y.memory == nullptr)) return false;
  return !x.memory || (same(x.memory->block, y.memory->block) && same(x.memory->layout, y.memory->layout));
}

bool Matcher::same(const DimIndex& x, const DimIndex& y) const {
  return same(x.start, y.start) && same(x.count, y.count) && same(x.stride, y.stride);
}

bool Matcher::same(const Attribute& x, const Attribute& y) const {
  return x.name == y.name && x.arguments == y.arguments;
}

bool Matcher::same(const KernelResult& x, const KernelResult& y) const {
  if (x.kind != y.kind || x.extents.size() != y.extents.size()) return false;
  for (std::size_t k = 0; k < x.extents.size(); ++k) {
    const TileExtent& a = x.extents[k];
    const TileExtent& b = y.extents[k];
    if (!same(a.bound, b.bound) || !same(a.tile, b.tile) || !same(a.reg, b.reg)) return false;
    if (a.split.size() != b.split.size()) return false;
    for (std::size_t p = 0; p < a.split.size(); ++p)
      if (a.split[p].axis != b.split[p].axis || !same(a.split[p].bound, b.split[p].bound)) return false;
  }
  return true;
}

bool Matcher::same(const TileGuard& x, const TileGuard& y) const {
  if (!same(x.start, y.start) || !same(x.bound, y.bound) || x.split.size() != y.split.size()) return false;
  for (std::size_t p = 0; p < x.split.size(); ++p)
    if (!same(x.split[p].bound, y.split[p].bound) || !same(x.split[p].stride, y.split[p].stride)) return false;
  return true;
}

bool Matcher::same(const TileOperand& x, const TileOperand& y) const {
  return same(x.tile, y.tile) && x.axes == y.axes;
}

bool Matcher::same(const std::variant<std::string, Operand>& x, const std::variant<std::string, Operand>& y) const {
  if (x.index() != y.index()) return false;
  if (const auto* text = std::get_if<std::string>(&x)) return *text == std::get<std::string>(y);
  return same(std::get<Operand>(x), std::get<Operand>(y));
}

bool Matcher::match(const BodyPtr& x, const BodyPtr& y) {
  if (!x || !y) return !x && !y;
  for (std::size_t k = 0; k < x->stms.size() && k < y->stms.size(); ++k) {
    if (match(x->stms[k], y->stms[k])) continue;
    if (where_.empty()) where_ = fmt::format("{}\n---- and ----\n{}", print(x->stms[k], a_), print(y->stms[k], b_));
    return false;
  }
  if (x->stms.size() != y->stms.size()) {
    if (where_.empty()) where_ = fmt::format("bodies of {} and {} statements", x->stms.size(), y->stms.size());
    return false;
  }
  return same(x->results, y->results);
}

bool Matcher::match(const Lambda& x, const Lambda& y) { return bind(x.params, y.params) && match(x.body, y.body); }

bool Matcher::match(const ReduceOp& x, const ReduceOp& y) {
  return match(x.op, y.op) && same(x.neutral, y.neutral) && x.commutative == y.commutative && x.scan == y.scan;
}

bool Matcher::match(const Stm& x, const Stm& y) {
  if (x.op.index() != y.op.index()) return false;
  if (!same(x.certificates, y.certificates) || !same(x.attributes, y.attributes)) return false;
  const bool ops =
      std::visit([&](const auto& op) { return match(op, std::get<std::decay_t<decltype(op)>>(y.op)); }, x.op);
  return ops && bind(x.pattern, y.pattern);
}

bool Matcher::match(const If& x, const If& y) {
  return same(x.condition, y.condition) && match(x.then_body, y.then_body) && match(x.else_body, y.else_body);
}

bool Matcher::match(const Choose& x, const Choose& y) {
  if (x.by != y.by || x.parameter != y.parameter || x.alternatives.size() != y.alternatives.size()) return false;
  for (std::size_t k = 0; k < x.alternatives.size(); ++k) {
    const Choose::Alternative &a = x.alternatives[k], &b = y.alternatives[k];
    if (a.name != b.name || !same(a.condition, b.condition) || !match(a.body, b.body)) return false;
  }
  return true;
}

bool Matcher::match(const Loop& x, const Loop& y) {
  return same(x.initial, y.initial) && same(x.bound, y.bound) && bind(x.params, y.params) && bind(x.index, y.index) &&
         match(x.body, y.body);
}

bool Matcher::match(const Screma& x, const Screma& y) {
  if (!same(x.widths, y.widths) || !same(x.inputs, y.inputs) || x.reduces.size() != y.reduces.size()) return false;
  if (!bind(x.indices, y.indices) || !match(x.map, y.map)) return false;
  for (std::size_t k = 0; k < x.reduces.size(); ++k)
    if (!match(x.reduces[k], y.reduces[k])) return false;
  return true;
}

bool Matcher::match(const Scatter& x, const Scatter& y) {
  const bool alike = same(x.widths, y.widths) && same(x.inputs, y.inputs) && same(x.targets, y.targets) &&
                     x.rank == y.rank && x.op.has_value() == y.op.has_value();
  return alike && bind(x.indices, y.indices) && match(x.map, y.map) && (!x.op || match(*x.op, *y.op));
}

bool Matcher::match(const Derivative& x, const Derivative& y) {
  return x.mode == y.mode && same(x.arguments, y.arguments) && same(x.seeds, y.seeds) && match(x.function, y.function);
}

bool Matcher::match(const SegOp& x, const SegOp& y) {
  if (x.level != y.level || x.space.size() != y.space.size()) return false;
  for (std::size_t k = 0; k < x.space.size(); ++k)
    if (!same(x.space[k].bound, y.space[k].bound) || !bind(x.space[k].index, y.space[k].index)) return false;
  if (x.schedule.has_value() != y.schedule.has_value() || (x.schedule && !same(*x.schedule, *y.schedule))) return false;
  if (x.sparse.has_value() != y.sparse.has_value() || (x.sparse && !same(*x.sparse, *y.sparse))) return false;
  return match(x.body, y.body) && same(x.results, y.results);
}

bool Matcher::same(const SparseSchedule& x, const SparseSchedule& y) const {
  if (x.family != y.family || x.matrix != y.matrix || x.why != y.why || x.dims.size() != y.dims.size() ||
      x.operands.size() != y.operands.size())
    return false;
  for (std::size_t d = 0; d < x.dims.size(); ++d)
    if (x.dims[d].role != y.dims[d].role || !same(x.dims[d].size, y.dims[d].size)) return false;
  for (std::size_t o = 0; o < x.operands.size(); ++o) {
    const SparseSchedule::Operand &a = x.operands[o], &b = y.operands[o];
    if (!same(a.array, b.array) || !same(a.offset, b.offset) || !same(a.strides, b.strides)) return false;
  }
  return true;
}

bool Matcher::same(const Schedule& x, const Schedule& y) const {
  if (x.unit != y.unit || x.parameters != y.parameters || x.remainder != y.remainder || x.stages != y.stages ||
      x.tiles_per_block != y.tiles_per_block || !same(x.splits, y.splits) || x.dims.size() != y.dims.size() ||
      x.operands.size() != y.operands.size())
    return false;
  for (std::size_t d = 0; d < x.dims.size(); ++d) {
    const Schedule::Dim &a = x.dims[d], &b = y.dims[d];
    if (a.role != b.role || !same(a.size, b.size) || !same(a.tile, b.tile) || !same(a.reg, b.reg)) return false;
  }
  for (std::size_t o = 0; o < x.operands.size(); ++o) {
    const Schedule::Operand &a = x.operands[o], &b = y.operands[o];
    if (a.name != b.name || a.element != b.element || !same(a.strides, b.strides) ||
        !same(a.conditions, b.conditions) || !same(a.gathers, b.gathers) || a.copy_bytes != b.copy_bytes ||
        a.swizzled != b.swizzled)
      return false;
  }
  return true;
}

bool Matcher::match(const CopyTile& x, const CopyTile& y) {
  return same(x.target, y.target) && same(x.source, y.source) && same(x.window, y.window) && same(x.guards, y.guards) &&
         same(x.where, y.where) && same(x.gathers, y.gathers) && same(x.pad, y.pad) && same(x.also, y.also) &&
         x.map.has_value() == y.map.has_value() && (!x.map || match(*x.map, *y.map));
}

bool Matcher::match(const TileContract& x, const TileContract& y) {
  if (x.space.size() != y.space.size()) return false;
  for (std::size_t k = 0; k < x.space.size(); ++k)
    if (!same(x.space[k].tile, y.space[k].tile) || !same(x.space[k].reg, y.space[k].reg)) return false;
  return same(x.depth, y.depth) && same(x.accumulators, y.accumulators) && same(x.operands, y.operands) &&
         match(x.map, y.map) && match(x.reduce, y.reduce);
}

std::string Matcher::function() {
  const auto differ = [&](std::string_view what) {
    return fmt::format("function {}: {} differ{}{}", a_.name, what, where_.empty() ? "" : ":\n", where_);
  };
  if (a_.name != b_.name) return fmt::format("functions {} and {}", a_.name, b_.name);
  if (a_.entry.has_value() != b_.entry.has_value()) return differ("entries");
  if (a_.entry) {
    const EntryInfo& x = *a_.entry;
    const EntryInfo& y = *b_.entry;
    const bool equal = x.name == y.name && x.param_values == y.param_values && x.results == y.results &&
                       x.params == y.params && x.constants == y.constants && x.is_constant == y.is_constant;
    if (!equal) return differ("entries");
  }
  if (!same(a_.attributes, b_.attributes)) return differ("attributes");
  // The caller's blocks are bound by the types of the parameters.
  for (std::size_t k = 0; k < a_.params.size() && k < b_.params.size(); ++k) {
    const auto &x = a_.type(a_.params[k]).memory, &y = b_.type(b_.params[k]).memory;
    const bool parameter = x && std::ranges::find(a_.params, x->block) != a_.params.end();
    if (x && y && !parameter && !there_.contains(x->block)) bind(x->block, y->block);
  }
  if (!bind(a_.sizes, b_.sizes) || !bind(a_.params, b_.params)) return differ("parameters");
  if (!bind(a_.result_sizes, b_.result_sizes)) return differ("sizes of results");
  if (!same(a_.results, b_.results)) return differ("result types");
  if (!match(a_.body, b_.body)) return differ("bodies");
  return {};
}

std::optional<std::string> difference(const Module& a, const Module& b) {
  if (a.stage != b.stage) return fmt::format("stages {} and {}", to_text(a.stage), to_text(b.stage));
  if (a.file != b.file) return fmt::format("files {} and {}", a.file, b.file);
  if (a.functions.size() != b.functions.size())
    return fmt::format("{} and {} functions", a.functions.size(), b.functions.size());
  for (std::size_t k = 0; k < a.functions.size(); ++k) {
    std::string where = Matcher(*a.functions[k], *b.functions[k]).function();
    if (!where.empty()) return where;
  }
  return std::nullopt;
}

}  // namespace apl::testing
