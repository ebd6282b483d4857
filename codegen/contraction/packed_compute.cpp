// The micro-kernel of a packed contraction: a loop over the depth whose accumulators stay in registers. It reads
// panels, or M, or both where they lie, and is one of three: sums of dot instructions, sums of products written as
// vectors, or a loop over columns with any map function and operator, of which the C compiler makes vectors.
#include <iterator>

#include <fmt/format.h>

#include "codegen/contraction/packed_kernel.h"
#include "codegen/lower/lower.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

// Lines of `count` bytes from an address on, which are needed soon.
Stmt prefetch(const std::string& line, const std::string& bytes, const std::string& address, std::string_view more) {
  Stmt lines =
      for_loop(kInt, line, variable(bytes),
               {statement_text(fmt::format("__builtin_prefetch((const char *)({}) + {}{});", address, line, more))});
  lines.step = variable("kPackedLine");
  return lines;
}

}  // namespace

// Rows of operand `k` of M where they lie: what row i is called. Rows of the next tile are fetched, one line in so many
// steps as it has elements.
std::string PackedLowering::micro_rows_of_m(MicroKernel& m, std::size_t k) {
  const PackedKernel& packed = m.packed;
  const std::string begin = unit_.fresh("begin"), from = unit_.fresh("m_row"),
                    source = packed_source(packed, packed.mn_operands[0][k]);
  const CType of = packed_type(packed, packed.mn_operands[0][k]);
  m.begin.push_back(declare(kIndex, begin, values_.poly(packed_begin(packed, packed.mn_operands[0][k]))));
  m.begin.push_back(statement_text(fmt::format("const {} *{}[{}];", c_type(of), from, m.rows)));
  Stmt each = for_loop(kInt, m.i, variable(m.rows),
                       {assign(element(from, variable(m.i)),
                               variable(fmt::format("{} + {} + apl_m->row[{}][{}]", source, begin, k, m.i)))});
  each.pragma = "GCC unroll 32";
  m.begin.push_back(std::move(each));
  const std::size_t per_line = 64 / byte_size(of.scalar);
  Stmt next = for_loop(
      kInt, m.i, variable(m.rows),
      {statement_text(fmt::format("__builtin_prefetch({} + {} + apl_m->row[{}][{} + {}] + apl_m->step[{}][{}{}]);",
                                  source, begin, k, m.i, m.rows, k, packed.dots ? "2 * " : "", m.q))});
  m.fetch.push_back(kernel::branch(variable(fmt::format("{} % {} == 0", m.q, packed.dots ? per_line / 2 : per_line)),
                                   {std::move(next)}, {}));
  return fmt::format("{}[{}]", from, m.i);
}

// Elements of M (`s` is 0) or N at a step: those of a panel, or what the map function makes of operands where they lie.
void PackedLowering::micro_elements(MicroKernel& m, std::size_t s) {
  const PackedKernel& packed = m.packed;
  const std::vector<std::size_t>& operands = packed.mn_operands[s];
  KernelBlock& into = s == 0 ? m.row : m.column;
  if (s == 0 ? m.kind.direct : m.kind.in_place) {
    std::vector<ExprPtr> elements;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (s == 0) {
        elements.push_back(element(micro_rows_of_m(m, k), variable(fmt::format("apl_m->step[{}][{}]", k, m.q))));
        continue;
      }
      const std::string start = unit_.fresh("begin"), from = unit_.fresh("n_row"), line = unit_.fresh("line");
      const CType of = packed_type(packed, operands[k]);
      m.begin.push_back(declare(kIndex, start, values_.poly(packed_begin(packed, operands[k]))));
      m.begin.push_back(statement_text(
          fmt::format("const {} *const {} = {} + {} + ((const struct apl_packed_panel *)apl_n_packed)->row[{}][0];",
                      c_type(of), from, packed_source(packed, operands[k]), start, k)));
      const std::string at = fmt::format("((const struct apl_packed_panel *)apl_n_packed)->step[{}][{}]", k, m.q);
      elements.push_back(element(from, variable(fmt::format("{} + {}", at, m.j))));
      m.fetch.push_back(prefetch(line, fmt::format("{} * {}", m.columns, byte_size(of.scalar)),
                                 fmt::format("{} + {} + {}", from, at, m.columns), ""));
    }
    for (const ExprPtr& one : inline_lambda(packed.parts.mn[s], elements, into)) m.arguments.push_back(one);
    return;
  }
  std::int64_t bytes = 0;
  for (const Operand& result : packed.parts.mn[s].body->results) {
    const CType of{unit_.function.values.type(result).element, false};
    const std::string from = unit_.fresh(s == 0 ? "m" : "n"), count = s == 0 ? m.rows : m.columns;
    m.begin.push_back(statement_text(
        fmt::format("const {0} *restrict const {1} = (const {0} *)((const char *){2} + apl_depth * {3} * {4});",
                    c_type(of), from, s == 0 ? "apl_m->packed" : "apl_n_packed", count, bytes)));
    bytes += static_cast<std::int64_t>(byte_size(of.scalar));
    if (s == 1) m.n_packed = from;
    if (s == 1 && m.vectors) continue;
    const ExprPtr got = element(from, variable(fmt::format("{} * {} + {}", m.q, count, s == 0 ? m.i : m.j)));
    const std::string one = unit_.fresh(s == 0 ? "m_element" : "n_element");
    into.push_back(declare(of, one, got));
    m.arguments.push_back(variable(one));
  }
}

// Accumulators in registers: neutral elements at first, then what was kept of the steps before.
void PackedLowering::micro_accumulators(MicroKernel& m) {
  const PackedKernel& packed = m.packed;
  KernelBlock begin, resume, keep;
  for (std::size_t k = 0; k < packed.accumulator_types.size(); ++k) {
    const std::string of = c_type(packed.accumulator_types[k]), kept = unit_.fresh("kept"), here = unit_.fresh("acc");
    m.begin.push_back(
        statement_text(fmt::format("{0} *restrict const {1} = ({0} *)((char *)apl_accumulators + {2} * {3} * {4});", of,
                                   kept, m.rows, m.columns, packed.accumulator_offsets[k])));
    m.begin.push_back(
        statement_text(fmt::format("{} {}[{} * {}] __attribute__((aligned(64)));", of, here, m.rows, m.columns)));
    begin.push_back(assign(element(here, variable(m.x)), values_.operand(packed.contract.reduce.neutral[k])));
    resume.push_back(assign(element(here, variable(m.x)), element(kept, variable(m.x))));
    keep.push_back(assign(element(kept, variable(m.x)), element(here, variable(m.x))));
    m.kept.push_back(kept);
    m.accumulators.push_back(here);
  }
  const ExprPtr all = variable(fmt::format("{} * {}", m.rows, m.columns));
  m.begin.push_back(kernel::branch(variable("apl_first"), {for_loop(kInt, m.x, all, std::move(begin))},
                                   {for_loop(kInt, m.x, all, std::move(resume))}));
  m.keep.push_back(for_loop(kInt, m.x, all, std::move(keep)));
}

// Lines of the results are there when the tile is stored.
void PackedLowering::micro_fetch_results(MicroKernel& m) {
  const std::string r = unit_.fresh("r"), line = unit_.fresh("line"), start = unit_.fresh("begin"),
                    run = unit_.fresh("from");
  const auto lines_of = [&](const std::string& from, const std::string& count) {
    KernelBlock lines;
    for (const Value result : stm_.pattern) {
      const Type& of = unit_.function.values.type(result);
      lines.push_back(prefetch(line, fmt::format("{} * {}", count, byte_size(of.element)),
                               fmt::format("{} + {} + apl_tile->row[{}] + apl_tile->column[{}]",
                                           buffer(of.memory->block, stm_.location).name, start, r, from),
                               ", 1"));
    }
    return lines;
  };
  const std::string run_here = fmt::format("apl_tile->run[{}]", run);
  Stmt runs = for_loop(kInt, run, variable("apl_tile->columns"), lines_of(run, "(int)" + run_here));
  runs.step = variable(run_here);
  m.begin.push_back(
      kernel::branch(variable("apl_tile"),
                     {declare(kIndex, start, values_.poly(m.packed.results_begin)),
                      kernel::branch(variable(fmt::format("apl_tile->run[0] == {}", m.columns)),
                                     {for_loop(kInt, r, variable("apl_tile->rows"), lines_of("0", m.columns))},
                                     {for_loop(kInt, r, variable("apl_tile->rows"), {std::move(runs)})})},
                     {}));
}

// Dot instructions, two steps of the depth at once.
void PackedLowering::micro_dots(MicroKernel& m) {
  const std::string lanes = m.kind.narrow ? "apl_dot_narrow" : "apl_dot_wide", v = unit_.fresh("v");
  std::string pair = fmt::format("((const apl_dot_pair *)apl_m->packed)[{} * {} + {}]", m.q, m.rows, m.i);
  if (m.kind.direct) {
    const std::string at = micro_rows_of_m(m, 0), next = unit_.fresh("next");
    // Beside a step that is not there N has zeros.
    m.step.push_back(
        declare(kIndex, next, variable(fmt::format("2 * {0} + 1 < apl_depth ? 2 * {0} + 1 : 2 * {0}", m.q))));
    pair = fmt::format(
        "(int32_t)((uint32_t)(uint16_t){0}[apl_m->step[0][2 * {1}]] | "
        "(uint32_t)(uint16_t){0}[apl_m->step[0][{2}]] << 16)",
        at, m.q, next);
  }
  const std::string one = unit_.fresh("m_pair"), sum = unit_.fresh("sum");
  m.row.push_back(statement_text(fmt::format("const {} {} = {} - ({}){{0}};", lanes, one, pair, lanes)));
  Stmt pairs = for_loop(
      kInt, v, variable(fmt::format("(int){} / (int)(sizeof({}) / 4)", m.columns, lanes)),
      {statement_text(fmt::format("{0} *const {1} = ({0} *)&{2}[{3} * {4}] + {5};", lanes, sum, m.accumulators[0], m.i,
                                  m.columns, v)),
       statement_text(fmt::format(
           "*{0} = {1}_pairs(*{0}, {2}, ((const {1} *)((const apl_dot_pair *)apl_n_packed + {3} * {4}))[{5}]);", sum,
           lanes, one, m.q, m.columns, v))});
  pairs.pragma = "GCC unroll 2";
  m.row.push_back(std::move(pairs));
}

// Sums of products as vectors of the machine.
void PackedLowering::micro_vectors(MicroKernel& m) {
  const CType of = m.packed.accumulator_types[0];
  const std::string vector = unit_.fresh("vector"), sums = unit_.fresh("sums"), one = unit_.fresh("m_value"),
                    v = unit_.fresh("v"), there = unit_.fresh("vector_there"),
                    width = fmt::format("({} * {} / (int)sizeof({}))", m.columns, byte_size(of.scalar), vector);
  const ExprPtr count = variable(fmt::format("{} * {}", m.rows, width));
  m.begin.push_back(statement_text(
      fmt::format("typedef {0} {1} __attribute__((vector_size(APL_PACKED_LEAST(APL_EXPLICIT_BYTES, {2} * {3}))));",
                  c_type(of), vector, m.columns, byte_size(of.scalar))));
  m.begin.push_back(statement_text(
      fmt::format("typedef {} {} __attribute__((aligned({}), may_alias));", vector, there, byte_size(of.scalar))));
  m.begin.push_back(statement_text(fmt::format("{} {}[{} * {}];", vector, sums, m.rows, width)));
  Stmt load =
      for_loop(kInt, v, count,
               {statement_text(fmt::format("{0}[{1}] = ((const {2} *){3})[{1}];", sums, v, there, m.accumulators[0]))});
  Stmt keep = for_loop(kInt, v, count,
                       {statement_text(fmt::format("(({2} *){3})[{1}] = {0}[{1}];", sums, v, there, m.kept[0]))});
  load.pragma = keep.pragma = "GCC unroll 64";
  m.begin.push_back(std::move(load));
  m.keep = {std::move(keep)};
  m.row.push_back(declare(of, one, m.arguments.front()));
  Stmt across =
      for_loop(kInt, v, variable(width),
               {statement_text(fmt::format("{0}[{1} * {2} + {3}] += {4} * ((const {5} *)({6} + {7} * {8}))[{3}];", sums,
                                           m.i, width, v, one, there, m.n_packed, m.q, m.columns))});
  across.pragma = "GCC unroll 4";
  m.row.push_back(std::move(across));
}

// Any map function and operator: a loop over columns.
void PackedLowering::micro_columns(MicroKernel& m) {
  std::vector<ExprPtr> folded;
  const std::string here = unit_.fresh("at");
  m.column.push_back(declare(kInt, here, variable(fmt::format("{} * {} + {}", m.i, m.columns, m.j))));
  for (const std::string& accumulator : m.accumulators) folded.push_back(element(accumulator, variable(here)));
  const std::vector<ExprPtr> mapped = inline_lambda(m.packed.parts.combined, m.arguments, m.column);
  std::vector<ExprPtr> both = folded;
  both.insert(both.end(), mapped.begin(), mapped.end());
  std::vector<ExprPtr> reduced = inline_lambda(m.packed.contract.reduce.op, both, m.column);
  for (std::size_t k = 0; k < reduced.size() && reduced.size() > 1; ++k) {
    const std::string next = unit_.fresh("next");
    m.column.push_back(declare(m.packed.accumulator_types[k], next, reduced[k]));
    reduced[k] = variable(next);
  }
  for (std::size_t k = 0; k < reduced.size(); ++k) m.column.push_back(assign(folded[k], reduced[k]));
  Stmt columns = for_loop(kInt, m.j, variable(m.columns), std::move(m.column));
  columns.pragma = "omp simd";
  m.row.push_back(std::move(columns));
}

void PackedLowering::compute_packed(const PackedKernel& packed, std::size_t number) {
  MicroKernel m(packed, number);
  m.x = unit_.fresh("x"), m.q = unit_.fresh("q"), m.i = unit_.fresh("i"), m.j = unit_.fresh("j");
  for (const std::size_t s : {0U, 1U})
    if (!packed.dots) micro_elements(m, s);
  micro_accumulators(m);
  micro_fetch_results(m);
  // A packed panel's neighbour is on its way to the second cache.
  const std::string ahead = unit_.fresh("ahead"), ahead_step = unit_.fresh("ahead_step");
  if (!m.kind.direct) {
    m.begin.push_back(statement_text(fmt::format("const char *const {} = apl_m->ahead;", ahead)));
    m.begin.push_back(declare(kIndex, ahead_step, variable("apl_m->ahead_step")));
  }
  if (packed.dots)
    micro_dots(m);
  else if (m.vectors)
    micro_vectors(m);
  else
    micro_columns(m);
  Stmt rows = for_loop(kInt, m.i, variable(m.rows), std::move(m.row));
  rows.pragma = "GCC unroll 32";
  for (Stmt& stm : m.fetch) m.step.push_back(std::move(stm));
  if (!m.kind.direct)
    m.step.push_back(statement_text(fmt::format("__builtin_prefetch({} + {} * {}, 0, 2);", ahead, m.q, ahead_step)));
  m.step.push_back(std::move(rows));
  Stmt steps = for_loop(kIndex, m.q, variable(packed.dots ? "(apl_depth + 1) / 2" : "apl_depth"), std::move(m.step));
  if (!m.kind.direct && !packed.dots) steps.pragma = "GCC unroll 2";
  m.begin.push_back(std::move(steps));
  m.begin.insert(m.begin.end(), std::make_move_iterator(m.keep.begin()), std::make_move_iterator(m.keep.end()));
  packed_function(packed, fmt::format("_compute_{}", number), "APL_MICRO_KERNEL static",
                  "const void *apl_arguments_, const int64_t *apl_batch, int64_t apl_depth, const struct "
                  "apl_packed_panel *apl_m, const void *apl_n_packed, void *apl_accumulators, bool apl_first, const "
                  "struct apl_packed_tile *apl_tile",
                  std::move(m.begin), "APL_FUSED");
  // The next one finds for itself what it reads.
  for (const Value v : packed.parts.combined.params) values_.scalars.erase(v);
}

}  // namespace apl::lower
