// Which operations and types a stage holds, and how the levels of a kernel nest.
#include <fmt/format.h>

#include "ir/calls.h"
#include "ir/node_info.h"
#include "ir/verify/check.h"
#include "ir/walk.h"

namespace apl::verifier {

void check_stage(Check& check, const Stm& stm, const Surroundings& around) {
  const Stage stage = check.module.stage;
  auto refuse = [&](const char* where) {
    check.broken(stm, fmt::format("{} does not belong to the {} stage{}", op_name(stm.op), to_text(stage), where));
  };
  if (node_info(stm.op).stage > stage) refuse("");
  if (get_if<Screma>(stm) && stage != Stage::soac && around.level == Surroundings::Level::host)
    refuse(" outside a segmap");
}

void check_levels(Check& check, const Stm& stm, const Surroundings& around) {
  using Level = Surroundings::Level;
  const bool in_block = around.level == Level::block && !around.in_lambda;
  if (const SegOp* seg = get_if<SegOp>(stm)) {
    if (seg->level == SegLevel::inblock && !in_block)
      check.broken(stm, "an inblock segmap stands directly inside a block");
    if (seg->level != SegLevel::inblock && (around.level != Level::host || around.in_lambda))
      check.broken(stm, "a segmap at thread or block level stands outside all others");
  }
  const bool tile_node = get_if<SharedArray>(stm) || get_if<CopyTile>(stm) || get_if<TileContract>(stm);
  if (tile_node && !in_block) check.broken(stm, fmt::format("{} stands directly inside a block", op_name(stm.op)));
  if (get_if<Choose>(stm) && around.level != Level::host) check.broken(stm, "a choice stands outside kernels");
  const Apply* call = get_if<Apply>(stm);
  if (call != nullptr && around.level != Level::host) {
    const Function* callee = check.find(call->function);
    if (callee != nullptr && !is_scalar_function(*callee, [&](const std::string& name) { return check.find(name); }))
      check.broken(stm, fmt::format("a kernel calls functions of scalars alone, and `{}` is none", call->function));
  }
  if (const Alloc* alloc = get_if<Alloc>(stm)) {
    const bool inside = around.level != Level::host;
    if (alloc->space == Space::global && inside) check.broken(stm, "global memory is allocated outside kernels");
    if (alloc->space == Space::shared && !in_block)
      check.broken(stm, "shared memory is allocated directly inside a block");
    if (alloc->space == Space::thread && !inside) check.broken(stm, "thread memory is allocated inside a kernel");
  }
}

namespace {

// `v` is bound by `stm`, or by the function.
void check_binding(Check& check, Value v, const Stm* stm, bool in_lambda) {
  const Type& type = check.type(v);
  auto report = [&](const std::string& what) { stm ? check.broken(*stm, what) : check.broken(what); };
  if (check.module.stage != Stage::memory) {
    if (type.memory || type.is_memory()) report(fmt::format("{} has memory before the memory stage", check.name(v)));
    return;
  }
  if (!type.memory) {
    // The rows that a lambda gets lie where its caller's arrays lie.
    if (type.is_array() && !in_lambda) report(fmt::format("array {} is bound to no memory", check.name(v)));
    return;
  }
  if (!type.is_array()) return report(fmt::format("{} is no array, but is bound to memory", check.name(v)));
  const MemoryBinding& binding = *type.memory;
  if (!check.type(binding.block).is_memory())
    report(fmt::format("{} is bound to {}, which is no memory", check.name(v), check.name(binding.block)));
  const Type layout = Type::array(type.element, binding.layout.shape());
  if (!check.compatible(layout, type))
    report(fmt::format("{} has type {}, but its layout is of shape {}", check.name(v), check.text(type),
                       check.text(layout)));
}

}  // namespace

void check_memory(Check& check) {
  for (Value v : check.function.params) check_binding(check, v, nullptr, false);
  walk(check.function, [&](const Stm& stm, const Surroundings& around) {
    for (Value v : stm.pattern) check_binding(check, v, &stm, around.in_lambda);
    const bool lambda =
        get_if<Screma>(stm) || get_if<Scatter>(stm) || get_if<CopyTile>(stm) || get_if<TileContract>(stm);
    for_each_binder(stm.op, [&](Value v) { check_binding(check, v, &stm, around.in_lambda || lambda); });
  });
}

}  // namespace apl::verifier
