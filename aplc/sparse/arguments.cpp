#include "aplc/sparse/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/attributes.h"
#include "passes/sparse/read.h"

namespace aplc::sparse {
namespace {

apl::Scalar number(double x, apl::ScalarType type) {
  return apl::is_float(type) ? apl::Scalar::floating(type, x)
                             : apl::Scalar::integer(type, static_cast<std::int64_t>(x));
}

}  // namespace

bool has_operands(const apl::Module& module) {
  return std::ranges::any_of(module.functions, [](const apl::FunctionPtr& function) {
    return apl::has_attribute(function->attributes, apl::attribute::sparse);
  });
}

std::optional<apl::Diagnostic> made_dense_warning(const apl::Remark& remark) {
  std::string array, stores, bytes, reason;
  for (const auto& [key, value] : remark.facts) {
    if (key == "array") array = value;
    if (key == "stores") stores = value;
    if (key == "bytes") bytes = value;
    if (key == "reason") reason = value;
  }
  if (remark.pass != "sparsify" || remark.kind != apl::RemarkKind::missed || stores.empty()) return std::nullopt;
  apl::Diagnostic warning = apl::make_error(
      apl::Code::warning_sparse_became_dense, remark.location,
      fmt::format("{} is copied to a dense {} ({} bytes) and read as such: {}", array, stores, bytes, reason));
  warning.severity = apl::Severity::warning;
  warning.hint = remark.suggestion;
  return warning;
}

bool is_matrix_file(const std::string& file, std::string_view text) {
  const std::string_view name = std::string_view(file).substr(0, file.size() - (file.ends_with(".gz") ? 3 : 0));
  return text.starts_with('%') || name.ends_with(".mtx") || name.ends_with(".smtx");
}

apl::Result<apl::HostCsr> read_operand(std::string_view text, apl::ScalarType type) {
  auto read = apl::sparse::read_matrix(text, {});
  if (!read) return std::move(read).error();
  apl::HostCsr matrix;
  matrix.rows = read->rows;
  matrix.columns = read->columns;
  matrix.row_start = std::move(read->row_start);
  matrix.column = std::move(read->column);
  matrix.values = apl::HostValue::zeros(type, {matrix.nonzeros()});
  for (std::int64_t k = 0; k < matrix.nonzeros(); ++k) {
    const double x = read->values.empty() ? 1.0 : read->values[static_cast<std::size_t>(k)];
    if (!apl::is_float(type) && (x != std::floor(x) || std::abs(x) > 0x1p53))
      return apl::make_error(apl::Code::run_argument, {},
                             fmt::format("an element is {}, a {} is wanted", x, apl::to_text(type)));
    matrix.values.set(k, number(x, type));
  }
  return matrix;
}

apl::Result<apl::PackedArguments> place_operands(const apl::Function& compiled,
                                                 const std::vector<apl::HostValue>& arguments,
                                                 const GivenMatrices& matrices, const apl::TileMaker& tiles) {
  const std::vector<apl::SparseSoa> soas = apl::find_soas(compiled);
  apl::PackedArguments placed;
  std::size_t next = 0;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    const auto given = matrices.find(k);
    const bool soa = next < soas.size() && placed.values.size() == soas[next].first;
    if (soa) placed.matrices.emplace_back();
    if (given == matrices.end()) {
      if (!soa) {
        placed.values.push_back(arguments[k]);
        continue;
      }
      placed.matrices.back() = apl::to_csr(arguments[k]);
    } else if (soa) {
      placed.matrices.back() = given->second;
    } else {
      placed.values.push_back(apl::to_dense(given->second));
      continue;
    }
    const std::string& operand = compiled.entry->params[soas[next].param].name;
    auto values = apl::soa_values(operand, *placed.matrices.back(), soas[next++].fields, tiles);
    if (!values) return std::move(values).error();
    for (apl::HostValue& value : *values) placed.values.push_back(std::move(value));
  }
  return placed;
}

std::string to_matrix_market(const apl::HostCsr& matrix) {
  apl::sparse::Csr csr{matrix.rows, matrix.columns, matrix.row_start, matrix.column, {}};
  for (std::int64_t k = 0; k < matrix.nonzeros(); ++k) {
    const apl::Scalar x = matrix.values.at(k);
    csr.values.push_back(apl::is_float(x.type()) ? x.as_float() : static_cast<double>(x.as_int()));
  }
  return apl::sparse::to_matrix_market(csr);
}

}  // namespace aplc::sparse
