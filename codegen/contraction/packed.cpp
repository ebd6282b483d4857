// A contraction on a CPU: functions that pack a panel, compute a micro-tile and store it, and the description of the
// contraction with which runtime/backends/packed.h runs the loops around them. Micro-kernels are loops over vectors'
// worth of columns whose bounds the C compiler knows: it makes vectors of them and keeps accumulators in registers, for
// any map function and operator.
#include <algorithm>
#include <functional>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/contraction/packed_parts.h"
#include "codegen/kernel/writer.h"
#include "codegen/lower/lower.h"
#include "ir/schedule.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

// Steps that pack and compute: the first contraction in the loops over the depth.
std::optional<ScheduleStep> first_step(const Body& body) {
  for (const Stm& stm : body.stms)
    if (const Loop* loop = get_if<Loop>(stm)) {
      auto step = schedule_step(*loop->body);
      return step ? step : first_step(*loop->body);
    }
  return schedule_step(body);
}

Stmt text(std::string line) {
  Stmt s;
  s.kind = Stmt::Kind::text;
  s.name = std::move(line);
  return s;
}

std::string join(const std::vector<std::string>& list) { return fmt::format("{}", fmt::join(list, ", ")); }

}  // namespace

bool Kernel::is_packed(const SegOp& op) const {
  return !unit_.target.on_device() && op.schedule && op.schedule->unit == Schedule::Unit::packed;
}

// What all functions of the kernel begin with: arguments, and what is the same for a batch.
KernelBlock Kernel::packed_head(const SegOp& op, const std::string& type) {
  KernelBlock out;
  out.push_back(text(fmt::format("const struct {} *const apl_arguments = apl_arguments_;", type)));
  for (const Param& param : packed_params_) {
    if (param.buffer) {
      const bool in = *param.buffer == BufferKind::global_in;
      out.push_back(text(fmt::format("{0}{1} *restrict const {2} = apl_arguments->{2};", in ? "const " : "",
                                     c_type(param.type), param.name)));
    } else {
      out.push_back(text(fmt::format("const {0} {1} = apl_arguments->{1};", c_type(param.type), param.name)));
    }
  }
  for (const Value v : outside_)
    if (const auto number = unit_.tile(v)) out.push_back(declare(kInt, unit_.name(v), literal(*number)));
  std::size_t batch = 0;
  for (std::size_t d = 0; d + 2 < op.space.size(); ++d)
    out.push_back(text(fmt::format("const int64_t {} = apl_batch[{}];", unit_.name(op.space[d].index), batch++)));
  // Scalars of the whole block.
  for (const Stm& stm : op.body->stms) {
    const bool scalar = !stm.pattern.empty() &&
                        std::ranges::all_of(stm.pattern, [&](Value v) { return unit_.function.type(v).is_scalar(); });
    if (scalar) statement(stm, out);
  }
  return out;
}

void Kernel::run_packed(const SegOp& op) {
  const ValueTable& values = unit_.function.values;
  const Schedule& schedule = *op.schedule;
  const auto step = first_step(*op.body);
  if (!step) unsupported(stm_.location, "a packed contraction without a step of the depth");
  const TileContract& contract = *step->contract;
  const std::string name = function_.name;
  const std::string type = name + "_arguments";
  packed_params_ = function_.params;

  // Tile numbers are 1: indices of blocks are those of elements.
  const std::map<Value, std::int64_t> numbers = unit_.tiles();
  for (const Schedule::Dim& dim : schedule.dims)
    for (const Poly& number : {dim.tile, dim.reg})
      if (const Value parameter = parameter_of(number)) unit_.set_tile(parameter, 1);
  const Value m_index = op.space[op.space.size() - 2].index, n_index = op.space.back().index;

  // Groups of dims.
  const std::size_t rank = space_rank(schedule);
  std::vector<std::size_t> groups[4];  // batch, M, N, depth
  for (std::size_t d = 0; d < schedule.dims.size(); ++d) {
    const Schedule::Role role = schedule.dims[d].role;
    const std::size_t g = role == Schedule::Role::m       ? 1
                          : role == Schedule::Role::n     ? 2
                          : role == Schedule::Role::depth ? 3
                                                          : 0;
    groups[g].push_back(d);
  }
  // An operand is of N's side if it varies along N, else of M's.
  std::vector<std::size_t> side_of, sides[2];
  for (std::size_t o = 0; o < schedule.operands.size(); ++o) {
    const bool n =
        std::ranges::any_of(groups[2], [&](std::size_t d) { return schedule.operands[o].strides[d] != Poly(0); });
    side_of.push_back(n ? 1 : 0);
    sides[n ? 1 : 0].push_back(o);
  }
  const PackedParts parts(contract.map, side_of, values);
  const bool dots = is_dot_product(parts, contract.reduce, values);
  // Where an element of a panel lies: step by step, or two steps of a row side by side.
  const auto packed_at = [&](const std::string& step, const std::string& count, const std::string& row) {
    return dots ? fmt::format("({0} / 2 * {1} + {2}) * 2 + {0} % 2", step, count, row)
                : fmt::format("{} * {} + {}", step, count, row);
  };

  // Where an operand begins: its window in the first block, in this batch.
  std::map<Value, const CopyTile*> copies;
  for (const auto& [copy, tile] : step->copies) copies[tile] = copy;
  const auto begin_of = [&](std::size_t o) {
    const CopyTile& copy = *copies.at(contract.operands[o].tile);
    const Poly offset = values.type(copy.source).memory->layout.offset() + copy.window.offset();
    std::set<Value> known;
    for (std::size_t d = 0; d + 2 < op.space.size(); ++d) known.insert(op.space[d].index);
    for (const Stm& stm : op.body->stms) known.insert(stm.pattern.begin(), stm.pattern.end());
    return offset.substitute([&](Value v) -> std::optional<Poly> {
      if (v == m_index || v == n_index) return Poly(0);
      if (outside_.contains(v) || known.contains(v) || unit_.tile(v)) return std::nullopt;
      return Poly(0);  // a loop over tiles of the depth
    });
  };
  const auto source_of = [&](std::size_t o) {
    const CopyTile& copy = *copies.at(contract.operands[o].tile);
    return buffer(values.type(copy.source).memory->block, stm_.location).name;
  };

  const auto helper = [&](const std::string& ending, std::string_view kind, std::string_view list, KernelBlock code,
                          bool micro = false) {
    kernel::Function made;
    made.name = name + ending;
    made.signature = fmt::format("{} void {}({})", kind, made.name, list);
    made.body = packed_head(op, type);
    if (micro) made.body.insert(made.body.begin(), text("APL_FUSED"));
    made.body.insert(made.body.end(), code.begin(), code.end());
    function_.before.push_back(std::move(made));
  };
  // A function that does for each width of a panel what `ending`_of does for the one that it is given as a constant.
  const auto for_each_width = [&](const std::string& ending, std::string_view list, std::string_view arguments,
                                  std::string_view width, std::span<const std::size_t> kernels,
                                  std::string_view attributes) {
    kernel::Function made;
    made.name = name + ending;
    made.signature = fmt::format("{}static void {}({})", attributes, made.name, list);
    for (const std::size_t k : kernels)
      made.body.push_back(text(
          k == kernels.back() ? fmt::format("{}_of({}, {}_columns_{});", made.name, arguments, name, k)
                              : fmt::format("if ({0} == {1}_columns_{2}) {{ {3}_of({4}, {1}_columns_{2}); return; }}",
                                            width, name, k, made.name, arguments)));
    function_.before.push_back(std::move(made));
  };
  // Kernels of different widths that pack N, and all; the last one reads N where it lies, too.
  static constexpr std::size_t kWidths[] = {0, 1, 6}, kStored[] = {0, 1, 8, 6}, kInPlace = 8, kKernels = 9;

  // ---- packing ----
  std::int64_t side_bytes[2] = {0, 0};
  static constexpr std::string_view kPack =
      "const void *apl_arguments_, const int64_t *apl_batch, const struct apl_packed_panel *apl_panel, void "
      "*apl_packed";
  for (const std::size_t s : {0U, 1U}) {
    const Lambda& side = parts.side[s];
    const std::string count = s == 0 ? name + "_rows_0" : "apl_columns";
    KernelBlock code;
    std::vector<std::string> targets;
    std::vector<CType> types;
    for (const Operand& result : side.body->results) {
      const ScalarType element = dots ? ScalarType::i16 : values.type(result).element;
      types.push_back({element, false});
      targets.push_back(unit_.fresh("packed_row"));
      code.push_back(
          text(fmt::format("{0} *restrict const {1} = ({0} *)((char *)apl_packed + apl_panel->depth * {2} * {3});",
                           c_type(types.back()), targets.back(), count, side_bytes[s])));
      side_bytes[s] += static_cast<std::int64_t>(byte_size(element));
    }
    std::vector<std::string> begins;
    for (const std::size_t o : sides[s]) {
      begins.push_back(unit_.fresh("begin"));
      code.push_back(declare(kIndex, begins.back(), values_.poly(begin_of(o))));
    }
    const std::string q = unit_.fresh("q"), i = unit_.fresh("i");
    const auto loop = [&](bool contiguous) {
      KernelBlock body, inner;
      std::vector<ExprPtr> elements;
      std::vector<std::string> ats;
      for (std::size_t k = 0; k < sides[s].size(); ++k) {
        const std::string at = ats.emplace_back(unit_.fresh("at"));
        body.push_back(declare(kIndex, at,
                               variable(fmt::format("{} + apl_panel->step[{}][{}]{}", begins[k], k, q,
                                                    contiguous ? fmt::format(" + apl_panel->row[{}][0]", k) : ""))));
        elements.push_back(element(source_of(sides[s][k]),
                                   contiguous
                                       ? plus(variable(at), variable(i))
                                       : plus(variable(at), variable(fmt::format("apl_panel->row[{}][{}]", k, i)))));
      }
      // Lines of the next panel, whose rows mostly are those behind this one's: memory is far, and lines of a step are
      // few.
      for (std::size_t k = 0; contiguous && k < sides[s].size(); ++k) {
        const std::string line = unit_.fresh("line");
        const auto bytes = byte_size(values.type(copies.at(contract.operands[sides[s][k]].tile)->source).element);
        Stmt lines = for_loop(kInt, line, variable(fmt::format("{} * {}", count, bytes)),
                              {text(fmt::format("__builtin_prefetch((const char *)({} + {}) + {} * {} + {});",
                                                source_of(sides[s][k]), ats[k], count, bytes, line))});
        lines.step = variable("kPackedLine");
        body.push_back(std::move(lines));
      }
      const std::vector<ExprPtr> results = inline_lambda(side, elements, inner);
      for (std::size_t k = 0; k < results.size(); ++k)
        inner.push_back(assign(element(targets[k], variable(packed_at(q, count, i))), results[k]));
      body.push_back(for_loop(kInt, i, variable(count), std::move(inner)));
      return for_loop(kIndex, q, variable("apl_panel->depth"), std::move(body));
    };
    // Runs of steps: as many elements of a row at a time, while the next run's are fetched.
    const auto transpose = [&] {
      const std::string run = unit_.fresh("run"), next = unit_.fresh("next"), x_step = unit_.fresh("x"),
                        length = unit_.fresh("length");
      KernelBlock of_run, of_row, inner;
      std::vector<std::string> to;
      std::vector<ExprPtr> elements;
      for (std::size_t k = 0; k < sides[s].size(); ++k) {
        const std::string from = unit_.fresh("from"), source = source_of(sides[s][k]);
        const CType type_of{values.type(copies.at(contract.operands[sides[s][k]].tile)->source).element, false};
        of_row.push_back(
            text(fmt::format("const {0} *const {1} = {2} + {3} + apl_panel->row[{4}][{5}] + apl_panel->step[{4}][{6}];",
                             c_type(type_of), from, source, begins[k], k, i, q)));
        of_row.push_back(text(fmt::format(
            "__builtin_prefetch({0} - apl_panel->step[{1}][{2}] + apl_panel->step[{1}][{3}]);", from, k, q, next)));
        elements.push_back(element(from, variable(x_step)));
      }
      const std::vector<ExprPtr> results = inline_lambda(side, elements, inner);
      for (std::size_t k = 0; k < results.size(); ++k)
        inner.push_back(assign(
            element(targets[k], variable(packed_at(fmt::format("({} + {} * apl_panel->stride)", q, x_step), count, i))),
            results[k]));
      of_row.push_back(for_loop(kIndex, x_step, variable(length), std::move(inner)));
      of_run.push_back(declare(kIndex, length, variable(fmt::format("apl_panel->length[{}]", run))));
      of_run.push_back(declare(kIndex, q, variable(fmt::format("apl_panel->first[{}]", run))));
      of_run.push_back(declare(
          kIndex, next, variable(fmt::format("apl_panel->first[{0} + 1 < apl_panel->runs ? {0} + 1 : {0}]", run))));
      of_run.push_back(for_loop(kIndex, i, variable(count), std::move(of_row)));
      return for_loop(kIndex, run, variable("apl_panel->runs"), std::move(of_run));
    };
    code.push_back(kernel::branch(variable("apl_panel->contiguous"), {loop(true)},
                                  {kernel::branch(variable("apl_panel->runs > 0"), {transpose()}, {loop(false)})}));
    if (dots)
      code.push_back(
          kernel::branch(variable("apl_panel->depth % 2 == 1"),
                         {for_loop(kInt, i, variable(count),
                                   {assign(element(targets[0], variable(packed_at("apl_panel->depth", count, i))),
                                           literal(std::int64_t{0}))})},
                         {}));
    if (s == 0) {
      helper("_pack_m", "static", kPack, std::move(code));
    } else {
      helper("_pack_n_of", "APL_INLINE", fmt::format("{}, const int32_t apl_columns", kPack), std::move(code));
      for_each_width("_pack_n", kPack, "apl_arguments_, apl_batch, apl_panel, apl_packed", "apl_panel->most", kWidths,
                     "");
    }
  }

  // ---- the micro-kernel ----
  // Where the results of a batch begin.
  const Lmad& layout = values.type(stm_.pattern.front()).memory->layout;
  Poly fixed = layout.offset();
  for (std::size_t b = 0; b < groups[0].size(); ++b)
    fixed += Poly(op.space[b].index) * layout.dims()[groups[0][b]].stride;
  std::vector<CType> accumulator_types;
  std::int64_t accumulator_bytes = 0, widest = 1;
  for (const Operand& neutral : contract.reduce.neutral) {
    const ScalarType element = values.type(neutral).element;
    accumulator_types.push_back({element, false});
    widest = std::max(widest, static_cast<std::int64_t>(byte_size(element)));
  }
  for (const Operand& result : parts.side[1].body->results)
    widest = std::max(widest, static_cast<std::int64_t>(byte_size(values.type(result).element)));
  // Accumulators of results lie one behind the other; the widest have the strictest alignment, but all are whole lines.
  std::vector<std::int64_t> offsets;
  for (const CType& of : accumulator_types) {
    offsets.push_back(accumulator_bytes);
    accumulator_bytes += static_cast<std::int64_t>(byte_size(of.scalar));
  }
  // Sums of products of one type of the machine are written as vectors; of other operators compilers make them.
  const bool explicit_vectors = !dots && is_sum_of_products(parts, contract.reduce, values);
  const auto micro_kernel = [&](std::size_t number) {
    const bool direct = number >= 2, in_place = number == kInPlace, vectors = explicit_vectors && !in_place;
    std::string n_elements, first_kept;
    const std::string rows = fmt::format("{}_rows_{}", name, number),
                      columns = fmt::format("{}_columns_{}", name, number);
    KernelBlock micro, row, column;
    const std::string x = unit_.fresh("x"), q = unit_.fresh("q"), i = unit_.fresh("i"), j = unit_.fresh("j");
    // Elements of M where they lie. Rows of the next tile are fetched, one line in so many steps as it has elements.
    KernelBlock fetch;
    const auto rows_of_m = [&](std::size_t k) {
      const std::string begin = unit_.fresh("begin"), from = unit_.fresh("m_row"), source = source_of(sides[0][k]);
      const CType of{values.type(copies.at(contract.operands[sides[0][k]].tile)->source).element, false};
      micro.push_back(declare(kIndex, begin, values_.poly(begin_of(sides[0][k]))));
      micro.push_back(text(fmt::format("const {} *{}[{}];", c_type(of), from, rows)));
      Stmt each = for_loop(kInt, i, variable(rows),
                           {assign(element(from, variable(i)),
                                   variable(fmt::format("{} + {} + apl_m->row[{}][{}]", source, begin, k, i)))});
      each.pragma = "GCC unroll 32";
      micro.push_back(std::move(each));
      const std::size_t per_line = 64 / byte_size(of.scalar);
      Stmt next = for_loop(kInt, i, variable(rows),
                           {text(fmt::format("__builtin_prefetch({} + {} + apl_m->row[{}][{} + {}] + "
                                             "apl_m->step[{}][{}{}]);",
                                             source, begin, k, i, rows, k, dots ? "2 * " : "", q))});
      fetch.push_back(kernel::branch(variable(fmt::format("{} % {} == 0", q, dots ? per_line / 2 : per_line)),
                                     {std::move(next)}, {}));
      return fmt::format("{}[{}]", from, i);
    };
    std::vector<ExprPtr> arguments;
    for (const std::size_t s : {0U, 1U}) {
      if (dots) continue;
      if (s == 0 && direct) {
        std::vector<ExprPtr> elements;
        for (std::size_t k = 0; k < sides[s].size(); ++k)
          elements.push_back(element(rows_of_m(k), variable(fmt::format("apl_m->step[{}][{}]", k, q))));
        for (const ExprPtr& one : inline_lambda(parts.side[s], elements, row)) arguments.push_back(one);
        continue;
      }
      if (s == 1 && in_place) {
        std::vector<ExprPtr> elements;
        for (std::size_t k = 0; k < sides[s].size(); ++k) {
          const std::string start = unit_.fresh("begin"), from = unit_.fresh("n_row"), line = unit_.fresh("line");
          const CType of{values.type(copies.at(contract.operands[sides[s][k]].tile)->source).element, false};
          micro.push_back(declare(kIndex, start, values_.poly(begin_of(sides[s][k]))));
          micro.push_back(text(
              fmt::format("const {} *const {} = {} + {} + ((const struct apl_packed_panel *)apl_n_packed)->row[{}][0];",
                          c_type(of), from, source_of(sides[s][k]), start, k)));
          const std::string at = fmt::format("((const struct apl_packed_panel *)apl_n_packed)->step[{}][{}]", k, q);
          elements.push_back(element(from, variable(fmt::format("{} + {}", at, j))));
          Stmt lines = for_loop(
              kInt, line, variable(fmt::format("{} * {}", columns, byte_size(of.scalar))),
              {text(fmt::format("__builtin_prefetch((const char *)({} + {} + {}) + {});", from, at, columns, line))});
          lines.step = variable("kPackedLine");
          fetch.push_back(std::move(lines));
        }
        for (const ExprPtr& one : inline_lambda(parts.side[s], elements, column)) arguments.push_back(one);
        continue;
      }
      std::int64_t bytes = 0;
      for (const Operand& result : parts.side[s].body->results) {
        const CType of{values.type(result).element, false};
        const std::string from = unit_.fresh(s == 0 ? "m" : "n"), count = s == 0 ? rows : columns;
        micro.push_back(text(
            fmt::format("const {0} *restrict const {1} = (const {0} *)((const char *){2} + apl_depth * {3} * {4});",
                        c_type(of), from, s == 0 ? "apl_m->packed" : "apl_n_packed", count, bytes)));
        bytes += static_cast<std::int64_t>(byte_size(of.scalar));
        if (s == 1) n_elements = from;
        if (s == 1 && vectors) continue;
        const ExprPtr got = element(from, variable(fmt::format("{} * {} + {}", q, count, s == 0 ? i : j)));
        const std::string one = unit_.fresh(s == 0 ? "m_element" : "n_element");
        (s == 0 ? row : column).push_back(declare(of, one, got));
        arguments.push_back(variable(one));
      }
    }
    std::vector<std::string> accumulators;
    KernelBlock begin, resume, keep;
    for (std::size_t k = 0; k < accumulator_types.size(); ++k) {
      const std::string of = c_type(accumulator_types[k]), kept = unit_.fresh("kept");
      accumulators.push_back(unit_.fresh("acc"));
      if (k == 0) first_kept = kept;
      micro.push_back(text(fmt::format("{0} *restrict const {1} = ({0} *)((char *)apl_accumulators + {2} * {3} * {4});",
                                       of, kept, rows, columns, offsets[k])));
      micro.push_back(
          text(fmt::format("{} {}[{} * {}] __attribute__((aligned(64)));", of, accumulators.back(), rows, columns)));
      begin.push_back(assign(element(accumulators[k], variable(x)), values_.operand(contract.reduce.neutral[k])));
      resume.push_back(assign(element(accumulators[k], variable(x)), element(kept, variable(x))));
      keep.push_back(assign(element(kept, variable(x)), element(accumulators[k], variable(x))));
    }
    const ExprPtr all = variable(fmt::format("{} * {}", rows, columns));
    micro.push_back(kernel::branch(variable("apl_first"), {for_loop(kInt, x, all, std::move(begin))},
                                   {for_loop(kInt, x, all, std::move(resume))}));
    // Lines of the results are there when the tile is stored.
    const std::string r = unit_.fresh("r"), line = unit_.fresh("line"), start = unit_.fresh("begin"),
                      run = unit_.fresh("from");
    const auto fetch_lines = [&](const std::string& from, const std::string& count) {
      KernelBlock lines;
      for (const Value result : stm_.pattern) {
        const Type& of = values.type(result);
        const std::string first = fmt::format("{} + {} + apl_tile->row[{}] + apl_tile->column[{}]",
                                              buffer(of.memory->block, stm_.location).name, start, r, from);
        lines.push_back(for_loop(kInt, line, variable(fmt::format("{} * {}", count, byte_size(of.element))),
                                 {text(fmt::format("__builtin_prefetch((const char *)({}) + {}, 1);", first, line))}));
        lines.back().step = variable("kPackedLine");
      }
      return lines;
    };
    const std::string run_here = fmt::format("apl_tile->run[{}]", run);
    Stmt runs = for_loop(kInt, run, variable("apl_tile->columns"), fetch_lines(run, "(int)" + run_here));
    runs.step = variable(run_here);
    micro.push_back(
        kernel::branch(variable("apl_tile"),
                       {declare(kIndex, start, values_.poly(fixed)),
                        kernel::branch(variable(fmt::format("apl_tile->run[0] == {}", columns)),
                                       {for_loop(kInt, r, variable("apl_tile->rows"), fetch_lines("0", columns))},
                                       {for_loop(kInt, r, variable("apl_tile->rows"), {std::move(runs)})})},
                       {}));
    ExprPtr steps = variable("apl_depth");
    KernelBlock each_step;
    const std::string ahead = unit_.fresh("ahead"), ahead_step = unit_.fresh("ahead_step");
    if (!direct) {
      micro.push_back(text(fmt::format("const char *const {} = apl_m->ahead;", ahead)));
      micro.push_back(declare(kIndex, ahead_step, variable("apl_m->ahead_step")));
    }
    if (dots) {
      const std::string lanes = number >= 6 ? "apl_dot_narrow" : "apl_dot_wide", v = unit_.fresh("v");
      steps = variable("(apl_depth + 1) / 2");
      std::string pair = fmt::format("((const apl_dot_pair *)apl_m->packed)[{} * {} + {}]", q, rows, i);
      if (direct) {
        const std::string at = rows_of_m(0), next = unit_.fresh("next");
        // Beside a step that is not there N has zeros.
        each_step.push_back(
            declare(kIndex, next, variable(fmt::format("2 * {0} + 1 < apl_depth ? 2 * {0} + 1 : 2 * {0}", q))));
        pair = fmt::format(
            "(int32_t)((uint32_t)(uint16_t){0}[apl_m->step[0][2 * {1}]] | "
            "(uint32_t)(uint16_t){0}[apl_m->step[0][{2}]] << 16)",
            at, q, next);
      }
      const std::string one = unit_.fresh("m_pair"), sum = unit_.fresh("sum");
      row.push_back(text(fmt::format("const {} {} = {} - ({}){{0}};", lanes, one, pair, lanes)));
      Stmt pairs = for_loop(
          kInt, v, variable(fmt::format("(int){} / (int)(sizeof({}) / 4)", columns, lanes)),
          {text(fmt::format("{0} *const {1} = ({0} *)&{2}[{3} * {4}] + {5};", lanes, sum, accumulators[0], i, columns,
                            v)),
           text(fmt::format(
               "*{0} = {1}_pairs(*{0}, {2}, ((const {1} *)((const apl_dot_pair *)apl_n_packed + {3} * {4}))[{5}]);",
               sum, lanes, one, q, columns, v))});
      pairs.pragma = "GCC unroll 2";
      row.push_back(std::move(pairs));
    } else if (vectors) {
      const CType of = accumulator_types[0];
      const std::string vector = unit_.fresh("vector"), sums = unit_.fresh("sums"), one = unit_.fresh("m_value"),
                        v = unit_.fresh("v"),
                        width = fmt::format("({} * {} / (int)sizeof({}))", columns, byte_size(of.scalar), vector);
      const ExprPtr count = variable(fmt::format("{} * {}", rows, width));
      const std::string there = unit_.fresh("vector_there");
      micro.push_back(text(
          fmt::format("typedef {0} {1} __attribute__((vector_size(APL_PACKED_LEAST(APL_EXPLICIT_BYTES, {2} * {3}))));",
                      c_type(of), vector, columns, byte_size(of.scalar))));
      micro.push_back(text(
          fmt::format("typedef {} {} __attribute__((aligned({}), may_alias));", vector, there, byte_size(of.scalar))));
      micro.push_back(text(fmt::format("{} {}[{} * {}];", vector, sums, rows, width)));
      Stmt load = for_loop(kInt, v, count,
                           {text(fmt::format("{0}[{1}] = ((const {2} *){3})[{1}];", sums, v, there, accumulators[0]))});
      Stmt keep_vectors =
          for_loop(kInt, v, count, {text(fmt::format("(({2} *){3})[{1}] = {0}[{1}];", sums, v, there, first_kept))});
      load.pragma = keep_vectors.pragma = "GCC unroll 64";
      micro.push_back(std::move(load));
      keep = {std::move(keep_vectors)};
      row.push_back(declare(of, one, arguments.front()));
      Stmt across = for_loop(kInt, v, variable(width),
                             {text(fmt::format("{0}[{1} * {2} + {3}] += {4} * ((const {5} *)({6} + {7} * {8}))[{3}];",
                                               sums, i, width, v, one, there, n_elements, q, columns))});
      across.pragma = "GCC unroll 4";
      row.push_back(std::move(across));
    } else {
      std::vector<ExprPtr> folded;
      const std::string here = unit_.fresh("at");
      column.push_back(declare(kInt, here, variable(fmt::format("{} * {} + {}", i, columns, j))));
      for (const std::string& acc : accumulators) folded.push_back(element(acc, variable(here)));
      const std::vector<ExprPtr> mapped = inline_lambda(parts.rest, arguments, column);
      std::vector<ExprPtr> both = folded;
      both.insert(both.end(), mapped.begin(), mapped.end());
      std::vector<ExprPtr> reduced = inline_lambda(contract.reduce.op, both, column);
      for (std::size_t k = 0; k < reduced.size() && reduced.size() > 1; ++k) {
        const std::string next = unit_.fresh("next");
        column.push_back(declare(accumulator_types[k], next, reduced[k]));
        reduced[k] = variable(next);
      }
      for (std::size_t k = 0; k < reduced.size(); ++k) column.push_back(assign(folded[k], reduced[k]));
      Stmt columns_loop = for_loop(kInt, j, variable(columns), std::move(column));
      columns_loop.pragma = "omp simd";
      row.push_back(std::move(columns_loop));
    }
    Stmt rows_loop = for_loop(kInt, i, variable(rows), std::move(row));
    rows_loop.pragma = "GCC unroll 32";
    for (Stmt& stm : fetch) each_step.push_back(std::move(stm));
    if (!direct)
      each_step.push_back(text(fmt::format("__builtin_prefetch({} + {} * {}, 0, 2);", ahead, q, ahead_step)));
    each_step.push_back(std::move(rows_loop));
    Stmt steps_loop = for_loop(kIndex, q, steps, std::move(each_step));
    if (!direct && !dots) steps_loop.pragma = "GCC unroll 2";
    micro.push_back(std::move(steps_loop));
    if (!vectors) keep = {for_loop(kInt, x, all, std::move(keep))};
    micro.insert(micro.end(), std::make_move_iterator(keep.begin()), std::make_move_iterator(keep.end()));
    helper(fmt::format("_compute_{}", number), "APL_MICRO_KERNEL static",
           "const void *apl_arguments_, const int64_t *apl_batch, int64_t apl_depth, const struct apl_packed_panel "
           "*apl_m, "
           "const void *apl_n_packed, void *apl_accumulators, bool apl_first, const struct apl_packed_tile *apl_tile",
           std::move(micro), true);
    // The next one finds for itself what it reads.
    for (const Value v : parts.rest.params) values_.scalars.erase(v);
  };
  for (std::size_t k = 0; k < kKernels; ++k)
    if (k != kInPlace || !dots) micro_kernel(k);

  // ---- combining parts of the depth ----
  {
    KernelBlock combine, inner;
    const std::string x = unit_.fresh("x");
    std::vector<ExprPtr> both, later;
    for (std::size_t k = 0; k < accumulator_types.size(); ++k) {
      const std::string of = c_type(accumulator_types[k]), here = unit_.fresh("acc"), other = unit_.fresh("later");
      combine.push_back(text(fmt::format(
          "{0} *restrict const {1} = ({0} *)((char *)apl_accumulators + apl_tile->height * apl_tile->width * {2});", of,
          here, offsets[k])));
      combine.push_back(
          text(fmt::format("const {0} *restrict const {1} = (const {0} *)((const char *)apl_later + "
                           "apl_tile->height * apl_tile->width * {2});",
                           of, other, offsets[k])));
      both.push_back(element(here, variable(x)));
      later.push_back(element(other, variable(x)));
    }
    const std::vector<ExprPtr> into = both;
    both.insert(both.end(), later.begin(), later.end());
    std::vector<ExprPtr> reduced = inline_lambda(contract.reduce.op, both, inner);
    for (std::size_t k = 0; k < reduced.size(); ++k) {
      const std::string next = unit_.fresh("next");
      inner.push_back(declare(accumulator_types[k], next, reduced[k]));
      reduced[k] = variable(next);
    }
    for (std::size_t k = 0; k < reduced.size(); ++k) inner.push_back(assign(into[k], reduced[k]));
    combine.push_back(for_loop(kIndex, x, variable("apl_tile->height * apl_tile->width"), std::move(inner)));
    helper("_combine", "static",
           "const void *apl_arguments_, const int64_t *apl_batch, const struct apl_packed_tile *apl_tile, "
           "void *apl_accumulators, const void *apl_later",
           std::move(combine));
  }

  // ---- storing ----
  KernelBlock store;
  std::map<Value, ExprPtr> made;  // by the block of a register tile
  const std::string r = unit_.fresh("i"), c = unit_.fresh("j"), at = unit_.fresh("at");
  for (std::size_t k = 0; k < accumulator_types.size(); ++k) {
    const std::string from = unit_.fresh("acc"), of = c_type(accumulator_types[k]);
    store.push_back(text(
        fmt::format("const {0} *restrict const {1} = (const {0} *)((const char *)apl_accumulators + {2} * {3} * {4});",
                    of, from, "apl_tile->height", "apl_tile->width", offsets[k])));
    made[values.type(contract.accumulators[k]).memory->block] = element(from, variable(at));
  }
  const std::string start = unit_.fresh("begin");
  store.push_back(declare(kIndex, start, values_.poly(fixed)));
  const std::string from = unit_.fresh("from");
  // Nothing is computed of a result before it is stored.
  const bool plain_store = std::ranges::none_of(op.body->stms, [&](const Stm& stm) {
    const SegOp* threads = get_if<SegOp>(stm);
    return threads != nullptr && epilogue_map(*threads, values) != nullptr;
  });
  enum class Columns { whole, one_run, runs };
  const auto store_loop = [&](Columns columns_are) {
    KernelBlock inner;
    inner.push_back(declare(kIndex, at, variable(fmt::format("(int64_t){} * apl_columns + {} + {}", r, from, c))));
    std::map<Value, ExprPtr> now = made;
    for (const Stm& stm : op.body->stms) {
      const SegOp* threads = get_if<SegOp>(stm);
      const Screma* each = threads != nullptr ? epilogue_map(*threads, values) : nullptr;
      if (each == nullptr) continue;
      for (std::size_t d = 0; d < threads->space.size(); ++d) {
        values_.scalars[threads->space[d].index] = literal(std::int64_t{0});
        values_.scalars[each->indices[d]] = literal(std::int64_t{0});
      }
      values_.scalars[m_index] = variable(fmt::format("apl_tile->row_index[{}]", r));
      values_.scalars[n_index] = variable(fmt::format("(apl_tile->column_index[{}] + {})", from, c));
      std::vector<ExprPtr> elements;
      for (const Value input : each->inputs) elements.push_back(now.at(values.type(input).memory->block));
      const std::vector<ExprPtr> results = inline_lambda(each->map, elements, inner);
      for (std::size_t k = 0; k < results.size(); ++k) {
        const std::string value = unit_.fresh("y");
        inner.push_back(declare({values.type(stm.pattern[k]).element, false}, value, results[k]));
        now[values.type(stm.pattern[k]).memory->block] = variable(value);
      }
    }
    const std::string line = fmt::format("{} + apl_tile->row[{}] + apl_tile->column[{}] + {}", start, r, from, c);
    for (std::size_t k = 0; k < stm_.pattern.size(); ++k)
      inner.push_back(
          assign(element(buffer(values.type(stm_.pattern[k]).memory->block, stm_.location).name, variable(line)),
                 now.at(values.type(op.body->results[k].value()).memory->block)));
    const std::string count = columns_are == Columns::whole     ? "apl_columns"
                              : columns_are == Columns::one_run ? "apl_tile->columns"
                                                                : fmt::format("apl_tile->run[{}]", from);
    KernelBlock runs;
    runs.push_back(for_loop(kInt, c, variable(count), std::move(inner)));
    if (columns_are == Columns::whole && plain_store) runs.back().pragma = "omp simd";
    if (columns_are == Columns::runs) {
      Stmt loop = for_loop(kInt, from, variable("apl_tile->columns"), std::move(runs));
      loop.step = variable(count);
      runs.clear();
      runs.push_back(std::move(loop));
    } else {
      runs.insert(runs.begin(), declare(kInt, from, literal(std::int64_t{0})));
    }
    return for_loop(kInt, r, variable("apl_tile->rows"), std::move(runs));
  };
  store.push_back(kernel::branch(variable("apl_tile->run[0] == apl_columns"), {store_loop(Columns::whole)},
                                 {kernel::branch(variable("apl_tile->run[0] == apl_tile->columns"),
                                                 {store_loop(Columns::one_run)}, {store_loop(Columns::runs)})}));
  static constexpr std::string_view kStore =
      "const void *apl_arguments_, const int64_t *apl_batch, const struct apl_packed_tile *apl_tile, const void "
      "*apl_accumulators";
  helper("_store_of", "APL_WIDEST APL_INLINE", fmt::format("{}, const int32_t apl_columns", kStore), std::move(store));
  for_each_width("_store", kStore, "apl_arguments_, apl_batch, apl_tile, apl_accumulators", "apl_tile->width", kStored,
                 "APL_WIDEST ");
  values_.scalars.erase(m_index), values_.scalars.erase(n_index);

  // ---- its description ----
  Writer declarations;
  declarations.open("struct {} {{", type);
  std::vector<std::string> given;
  for (const Param& param : packed_params_) {
    const bool in = param.buffer && *param.buffer == BufferKind::global_in;
    declarations.line("{}{} {}{};", in ? "const " : "", c_type(param.type), param.buffer ? "*" : "", param.name);
    given.push_back(param.name);
  }
  if (packed_params_.empty()) declarations.line("char unused;");
  declarations.close("}};");
  const std::size_t wide = accumulator_types.size(), on_n = parts.side[1].body->results.size();
  const char* const bytes = explicit_vectors ? "APL_EXPLICIT_BYTES" : "APL_VECTOR_BYTES";
  // Registers hold the accumulators, N's elements and one of M's.
  declarations.line("enum {{");
  for (std::size_t k = 0; k < kKernels; ++k) {
    const std::size_t vectors = k == kInPlace ? 4 : k == 0 || k == 2 || k == 3 ? 2 : 1;
    const bool narrow = k == 6 || k == 7, few = k >= 2 && k % 2 == 1;
    const std::string vector = fmt::format("{} * {} / {}", vectors, k == kInPlace ? "APL_VECTOR_BYTES" : bytes, widest);
    declarations.line("  {}_columns_{} = {},", name, k,
                      narrow          ? fmt::format("{0} < kPackedNarrow ? {0} : kPackedNarrow", vector)
                      : k == kInPlace ? fmt::format("APL_PACKED_LEAST({}, kPackedRows)", vector)
                                      : vector);
    const std::size_t other = vectors * on_n + 2, by = vectors * wide;
    const std::string most =
        fmt::format("APL_VECTOR_REGISTERS < {} ? 1 : (APL_VECTOR_REGISTERS - {}) / {}", other + by, other, by);
    // Panels of M are as high for narrow tiles as for wide ones.
    declarations.line("  {}_rows_{} = {},", name, k,
                      k == kInPlace ? fmt::format("APL_PACKED_LEAST({}, 4)", most)
                      : k == 1      ? fmt::format("{}_rows_0", name)
                      : k == 0      ? most
                      : !few        ? fmt::format("APL_PACKED_LEAST({}, 16)", most)
                                    : fmt::format("APL_PACKED_LEAST({}_rows_{}, 4)", name, k - 1));
  }
  declarations.line("}};");
  function_.declarations = declarations.take();

  const auto group_text = [&](std::size_t g) {
    std::vector<std::string> sizes;
    for (const std::size_t d : groups[g]) sizes.push_back(print(values_.poly(schedule.dims[d].size), unit_.dialect()));
    if (sizes.empty()) return std::string("{0, {0}}");
    return fmt::format("{{{}, {{{}}}}}", sizes.size(), join(sizes));
  };
  const auto strides_text = [&](std::size_t g, const std::function<Poly(std::size_t)>& stride) {
    std::vector<std::string> list;
    for (const std::size_t d : groups[g]) list.push_back(print(values_.poly(stride(d)), unit_.dialect()));
    if (list.empty()) list.emplace_back("0");
    return fmt::format("{{{{{}}}}}", join(list));
  };
  const auto operands_text = [&](std::size_t s, std::size_t g) {
    std::vector<std::string> list;
    for (const std::size_t o : sides[s])
      list.push_back(strides_text(g, [&](std::size_t d) { return schedule.operands[o].strides[d]; }));
    return fmt::format("{{{}}}", join(list));
  };
  const auto result_text = [&](std::size_t g) {
    return strides_text(g, [&](std::size_t d) { return layout.dims()[d].stride; });
  };
  (void)rank;
  KernelBlock& out = function_.body;
  out.clear();
  out.push_back(text(fmt::format("const struct {} apl_arguments = {{{}}};", type, given.empty() ? "0" : join(given))));
  out.push_back(text("struct apl_packed apl_contraction = {"));
  const auto field = [&](const std::string& field_name, const std::string& value) {
    out.push_back(text(fmt::format("  .{} = {},", field_name, value)));
  };
  field("batch", group_text(0));
  field("m", group_text(1));
  field("n", group_text(2));
  field("k", group_text(3));
  field("m_bytes", fmt::format("{}", side_bytes[0]));
  field("n_bytes", fmt::format("{}", side_bytes[1]));
  field("m_operands", fmt::format("{}", sides[0].size()));
  field("n_operands", fmt::format("{}", sides[1].size()));
  field("m_row", operands_text(0, 1));
  field("m_step", operands_text(0, 3));
  field("n_row", operands_text(1, 2));
  field("n_step", operands_text(1, 3));
  field("m_result", result_text(1));
  field("n_result", result_text(2));
  std::vector<std::string> kernels;
  for (std::size_t k = 0; k < kKernels; ++k)
    kernels.push_back(k == kInPlace && dots
                          ? "{0, 0, 0}"
                          : fmt::format("{{{0}_rows_{1}, {0}_columns_{1}, {0}_compute_{1}}}", name, k));
  field("kernels", fmt::format("{{{}}}", join(kernels)));
  field("accumulator_bytes", fmt::format("{}", accumulator_bytes));
  if (dots) field("pairs", "true");
  field("reorders", contract.reduce.commutative ? "true" : "false");
  for (const char* part : {"pack_m", "pack_n", "combine", "store"}) field(part, fmt::format("{}_{}", name, part));
  out.push_back(text("};"));
  out.push_back(text("return apl_packed_run(&apl_contraction, &apl_arguments, apl_space);"));
  std::vector<std::string> list;
  for (const Param& param : packed_params_) list.push_back(parameter(param, unit_.dialect()));
  list.emplace_back("void *apl_space");
  for (const auto& [value, number] : numbers) unit_.set_tile(value, number);
  function_.signature = fmt::format("static int64_t {}({})", name, join(list));
}

}  // namespace apl::lower
