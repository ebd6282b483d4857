// A packed contraction while its functions are written: what they have in common.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "codegen/contraction/packed_parts.h"
#include "codegen/lower/lower.h"
#include "ir/schedule.h"

namespace apl::lower {

// Micro-kernels by their numbers in runtime/backends/packed_panels.h. Those of few rows stand behind those of many.
struct MicroKernelKind {
  int vectors = 1;        // of columns
  bool direct = false;    // M is read where it lies
  bool few_rows = false;  // for what is left of M
  bool narrow = false;    // fewer columns than a vector, kPackedNarrow at most
  bool in_place = false;  // N is read where it lies, too
};
inline constexpr std::array<MicroKernelKind, 9> kMicroKernels = {{
    {.vectors = 2},
    {},
    {.vectors = 2, .direct = true},
    {.vectors = 2, .direct = true, .few_rows = true},
    {.direct = true},
    {.direct = true, .few_rows = true},
    {.direct = true, .narrow = true},
    {.direct = true, .few_rows = true, .narrow = true},
    {.vectors = 4, .direct = true, .in_place = true},
}};

// A number that M or N has a table of, as of positions: what a condition of an operand asks for, or where in an array
// of indices to look.
struct PackedNumber {
  std::size_t operand = 0;
  const TileAffine* at = nullptr;
  const std::vector<Poly>* strides = nullptr;  // one a dim of the contraction
  const TileCondition* condition = nullptr;    // or
  const TileGather* gather = nullptr;
};

struct PackedKernel {
  const SegOp& op;
  const TileContract& contract;
  std::string name;
  Value m_index, n_index;
  std::array<std::vector<std::size_t>, 4> groups;            // dims: batch, M, N, depth
  std::array<std::vector<std::size_t>, 2> mn_operands = {};  // of M, of N
  std::map<Value, const CopyTile*> copies = {};              // by the tile that is filled
  std::array<std::vector<PackedNumber>, 2> numbers = {};     // whose tables come behind those of the operands
  PackedParts parts;
  bool dots = false;              // by dot instructions, two steps of the depth at once
  bool explicit_vectors = false;  // sums of products, written as vectors; of other operators compilers make them
  Poly results_begin = {};        // where the results of a batch begin
  std::array<std::int64_t, 2> side_bytes = {0, 0};  // of a row of a panel for one step
  // Accumulators of results lie one behind the other; the widest have the strictest alignment, but all are whole lines.
  std::vector<kernel::CType> accumulator_types = {};
  std::vector<std::int64_t> accumulator_offsets = {};
  std::int64_t accumulator_bytes = 0, widest = 1;

  std::string type() const { return name + "_arguments"; }
  const CopyTile& copy(std::size_t operand) const { return *copies.at(contract.operands[operand].tile); }
  // Kernels that read an operand where it lies know no conditions.
  bool has(std::size_t number) const {
    const MicroKernelKind& kind = kMicroKernels[number];
    return (!kind.in_place || (!dots && numbers[1].empty())) && (!kind.direct || numbers[0].empty());
  }
};

// A micro-kernel while it is written.
struct MicroKernel {
  MicroKernel(const PackedKernel& packed, std::size_t number) : packed(packed), number(number) {}

  const PackedKernel& packed;
  const std::size_t number;
  const MicroKernelKind kind = kMicroKernels.at(number);
  const bool vectors = packed.explicit_vectors && !kind.in_place;           // of the machine, not a loop over columns
  const std::string rows = fmt::format("{}_rows_{}", packed.name, number);  // constants of C
  const std::string columns = fmt::format("{}_columns_{}", packed.name, number);  // the same
  std::string x, q, i, j;  // an accumulator, a step of the depth, a row, a column
  // Its code: before the loop over steps; of a step, of its rows, of a column of a row; behind that loop.
  kernel::Block begin, step, row, column, keep;
  kernel::Block fetch;                     // of a step: lines that are needed soon
  std::vector<kernel::ExprPtr> arguments;  // of what is left of the map function
  std::string n_packed;                    // N's elements, if they are packed
  std::vector<std::string> accumulators, kept;
};

class PackedLowering : KernelPart {
 public:
  explicit PackedLowering(Kernel& kernel) : KernelPart(kernel) {}

  void run_packed(const SegOp& op);

 private:
  Block packed_head(const PackedKernel& packed);
  void packed_function(const PackedKernel& packed, const std::string& ending, std::string_view kind,
                       std::string_view list, Block code, std::string_view first = "");
  void packed_widths(const PackedKernel& packed, const std::string& ending, std::string_view kind,
                     std::string_view list, std::string_view arguments, std::string_view width,
                     std::span<const std::size_t> kernels);
  Poly packed_begin(const PackedKernel& packed, std::size_t operand);
  Poly packed_start(const PackedKernel& packed, const Poly& start);
  kernel::ExprPtr packed_element(const PackedKernel& packed, std::size_t s, std::size_t k,
                                 const std::function<kernel::ExprPtr(std::size_t)>& number);
  std::string packed_source(const PackedKernel& packed, std::size_t operand);
  kernel::CType packed_type(const PackedKernel& packed, std::size_t operand) const;
  void pack_panels(PackedKernel& packed, std::size_t s);
  void compute_packed(const PackedKernel& packed, std::size_t number);
  std::string micro_rows_of_m(MicroKernel& m, std::size_t k);
  void micro_elements(MicroKernel& m, std::size_t s);
  void micro_accumulators(MicroKernel& m);
  void micro_fetch_results(MicroKernel& m);
  void micro_dots(MicroKernel& m);
  void micro_vectors(MicroKernel& m);
  void micro_columns(MicroKernel& m);
  void combine_packed(const PackedKernel& packed);
  void store_packed(const PackedKernel& packed);
  void describe_packed(const PackedKernel& packed);

  std::vector<kernel::Param> packed_params_;
};

// A line of C.
inline kernel::Stmt statement_text(std::string line) {
  kernel::Stmt s;
  s.kind = kernel::Stmt::Kind::text;
  s.name = std::move(line);
  return s;
}

}  // namespace apl::lower
