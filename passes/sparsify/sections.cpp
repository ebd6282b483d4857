#include "passes/sparsify/sections.h"

#include <fmt/format.h>
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <cmath>

#include "ir/sparse_arguments.h"
#include "ir/sparse_schedule.h"

namespace apl::sparsify {
namespace {

// Multiply-adds that are code, each for a vector of columns. On a CPU the C compiler takes 0.1 ms for each; on a GPU a
// multiprocessor's instruction cache decides, and 80,000 are what paid at best.
constexpr std::int64_t kMostOnHost = 200'000, kMostOnDevice = 80'000;
constexpr std::int64_t kVectorBytes = 64;

// Whether the operand's numbers are the argument's own.
bool is_argument(const SparseSchedule::Operand& values, const SparseSchedule& schedule, const Function& function) {
  if (!values.offset.is_zero()) return false;
  for (const auto& [dim, stride] : ranges::views::zip(schedule.dims, values.strides))
    if (dim.role != SparseSchedule::Role::nonzero && !stride.is_zero()) return false;
  return std::ranges::find(function.params, values.array) != function.params.end();
}

bool is_finite(const HostValue& values) {
  for (std::int64_t k = 0; is_float(values.type) && k < values.element_count(); ++k)
    if (!std::isfinite(values.at(k).as_float())) return false;
  return true;
}

// L's M1 and N1 where nobody searched for them.
SparseSchedule::Sections usual(const KnownMatrix& known, bool is_vector, bool on_host) {
  const std::int64_t bytes = std::max(4, byte_size(known.matrix->values.type));
  SparseSchedule::Sections sections{.key = known.key};
  if (on_host) {
    sections.rows = 12;
    sections.columns = is_vector ? 1 : kVectorBytes / bytes;
  } else {
    sections.rows = 6;
    sections.columns = is_vector ? 1 : 128;
    sections.pieces = 3;
  }
  return sections;
}

}  // namespace

SectionPlan plan_sections(const SegOp& kernel, const Function& function, const KnownMatrix* known, bool on_host,
                          const std::map<std::string, std::int64_t>& parameters) {
  const SparseSchedule& schedule = *kernel.sparse;
  const auto missed = [&](std::string code, const std::string& why, std::string suggestion) {
    return SectionPlan{std::nullopt, RemarkKind::missed, std::move(code),
                       fmt::format("`{}` is not compiled into the program: {}", schedule.matrix, why),
                       std::move(suggestion)};
  };
  const std::string prefix = fmt::format("{}.{}.", function.entry->name, schedule.matrix);
  const auto given = [&](const char* name) {
    const auto found = parameters.find(prefix + name);
    return found == parameters.end() ? std::optional<std::int64_t>() : found->second;
  };
  if (known == nullptr)
    return missed("constant-not-given", "its values were not given to the compiler",
                  fmt::format("give it as {}=@FILE", schedule.matrix));
  if (given("variant") == 1) return missed("constant-not-wanted", fmt::format("{}variant=1 says so", prefix), {});
  if (schedule.family == SparseSchedule::Family::general) return missed("constant-general", schedule.why, {});
  if (schedule.family == SparseSchedule::Family::sddmm)
    return missed("constant-general", "it is an SDDMM, which has no such code", {});
  if (!is_argument(schedule.operands.front(), schedule, function))
    return missed("constant-computed", "the program computes with its elements before it multiplies by them", {});
  const HostCsr& matrix = *known->matrix;
  if (!is_finite(matrix.values)) return missed("constant-not-finite", "some of its elements are not finite", {});
  if (matrix.nonzeros() == 0) return missed("constant-general", "it has no non-zeros", {});
  SparseSchedule::Sections sections = usual(*known, !dim_of(schedule, SparseSchedule::Role::n), on_host);
  const auto take = [&](const char* name, std::int64_t& number) {
    if (const auto wanted = given(name)) number = *wanted;
  };
  take("rows", sections.rows);
  if (dim_of(schedule, SparseSchedule::Role::n)) take("columns", sections.columns);
  take("pieces", sections.pieces);
  const std::int64_t lanes = kVectorBytes / std::max(4, byte_size(matrix.values.type));
  const std::int64_t terms = matrix.nonzeros() * (on_host ? (sections.columns + lanes - 1) / lanes : 1);
  const std::int64_t most = on_host ? kMostOnHost : kMostOnDevice;
  if (terms > most && given("variant") != 2)
    return missed(
        "constant-too-large",
        fmt::format("its {} non-zeros would be {} multiply-adds, more than {}", matrix.nonzeros(), terms, most),
        fmt::format("{}variant=2 asks for them all the same", prefix));
  return {sections,
          RemarkKind::applied,
          "constant",
          fmt::format("`{}` is compiled into the program: {} non-zeros in sections of {} rows, {} columns at a time",
                      schedule.matrix, matrix.nonzeros(), sections.rows, sections.columns),
          {}};
}

}  // namespace apl::sparsify
