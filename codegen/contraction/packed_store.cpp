// Functions that combine accumulators of parts of the depth, and that store a micro-tile behind the epilogue.
#include <fmt/format.h>

#include "codegen/contraction/packed_kernel.h"
#include "codegen/lower/lower.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

// Accumulators of a tile with those of later steps of the depth.
void PackedLowering::combine_packed(const PackedKernel& packed) {
  const TileContract& contract = packed.contract;
  const std::vector<CType>& accumulator_types = packed.accumulator_types;
  const std::vector<std::int64_t>& offsets = packed.accumulator_offsets;
  KernelBlock combine, inner;
  const std::string x = unit_.fresh("x");
  std::vector<ExprPtr> both, later;
  for (std::size_t k = 0; k < accumulator_types.size(); ++k) {
    const std::string of = c_type(accumulator_types[k]), here = unit_.fresh("acc"), other = unit_.fresh("later");
    combine.push_back(statement_text(fmt::format(
        "{0} *restrict const {1} = ({0} *)((char *)apl_accumulators + apl_tile->height * apl_tile->width * {2});", of,
        here, offsets[k])));
    combine.push_back(
        statement_text(fmt::format("const {0} *restrict const {1} = (const {0} *)((const char *)apl_later + "
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
  packed_function(packed, "_combine", "static",
                  "const void *apl_arguments_, const int64_t *apl_batch, const struct apl_packed_tile *apl_tile, "
                  "void *apl_accumulators, const void *apl_later",
                  std::move(combine));
}

// The results of a tile, behind the epilogue.
void PackedLowering::store_packed(const PackedKernel& packed) {
  const ValueTable& values = unit_.function.values;
  const TileContract& contract = packed.contract;
  const std::vector<CType>& accumulator_types = packed.accumulator_types;
  const std::vector<std::int64_t>& offsets = packed.accumulator_offsets;
  const SegOp& op = packed.op;
  const Value m_index = packed.m_index, n_index = packed.n_index;
  KernelBlock store;
  std::map<Value, ExprPtr> made;  // by the block of a register tile
  const std::string r = unit_.fresh("i"), c = unit_.fresh("j"), at = unit_.fresh("at");
  for (std::size_t k = 0; k < accumulator_types.size(); ++k) {
    const std::string from = unit_.fresh("acc"), of = c_type(accumulator_types[k]);
    store.push_back(statement_text(
        fmt::format("const {0} *restrict const {1} = (const {0} *)((const char *)apl_accumulators + {2} * {3} * {4});",
                    of, from, "apl_tile->height", "apl_tile->width", offsets[k])));
    made[values.type(contract.accumulators[k]).memory->block] = element(from, variable(at));
  }
  const std::string start = unit_.fresh("begin");
  store.push_back(declare(kIndex, start, values_.poly(packed.results_begin)));
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
  // Kernels whose tiles differ in width; the last one is of the others.
  static constexpr std::size_t kStored[] = {0, 1, 8, 6};
  static constexpr std::string_view kStore =
      "const void *apl_arguments_, const int64_t *apl_batch, const struct apl_packed_tile *apl_tile, const void "
      "*apl_accumulators";
  packed_function(packed, "_store_of", "APL_WIDEST APL_INLINE", fmt::format("{}, const int32_t apl_columns", kStore),
                  std::move(store));
  packed_widths(packed, "_store", "APL_WIDEST static", kStore, "apl_arguments_, apl_batch, apl_tile, apl_accumulators",
                "apl_tile->width", kStored);
  values_.scalars.erase(m_index), values_.scalars.erase(n_index);
}

}  // namespace apl::lower
