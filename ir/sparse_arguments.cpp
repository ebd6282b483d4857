#include "ir/sparse_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace apl {
namespace {

// Whether all bits are 0, the sign of a float aside.
bool is_zero(const std::byte* element, ScalarType type) {
  const int size = byte_size(type);
  for (int k = 0; k < size; ++k) {
    const bool sign = is_float(type) && k + 1 == size;  // little endian
    if ((element[k] & std::byte(sign ? 0x7F : 0xFF)) != std::byte{0}) return false;
  }
  return true;
}

HostValue starts(const std::vector<std::int64_t>& of) {
  return HostValue::array(ScalarType::i64, {static_cast<std::int64_t>(of.size())}, of);
}
HostValue indices(const std::vector<std::int32_t>& of) {
  return HostValue::array(ScalarType::i32, {static_cast<std::int64_t>(of.size())}, of);
}

std::vector<std::int32_t> row_of_each(const HostCsr& matrix) {
  std::vector<std::int32_t> rows;
  rows.reserve(matrix.column.size());
  for (std::size_t row = 0; row + 1 < matrix.row_start.size(); ++row)
    rows.insert(rows.end(), static_cast<std::size_t>(matrix.row_start[row + 1] - matrix.row_start[row]),
                static_cast<std::int32_t>(row));
  return rows;
}

std::vector<std::int64_t> column_starts(const HostCsr& matrix) {
  std::vector<std::int64_t> start(static_cast<std::size_t>(matrix.columns) + 1);
  for (const std::int32_t column : matrix.column) ++start[static_cast<std::size_t>(column) + 1];
  for (std::size_t k = 1; k < start.size(); ++k) start[k] += start[k - 1];
  return start;
}

// Non-zeros are in the order of rows, so that rows rise within each column.
std::vector<std::int32_t> by_column(const HostCsr& matrix) {
  std::vector<std::int64_t> next = column_starts(matrix);
  std::vector<std::int32_t> result(matrix.column.size());
  for (std::size_t k = 0; k < matrix.column.size(); ++k)
    result[static_cast<std::size_t>(next[static_cast<std::size_t>(matrix.column[k])]++)] = static_cast<std::int32_t>(k);
  return result;
}

// The row of each element of ELL rows or nnz segments.
std::vector<std::int32_t> row_of_elements(const std::vector<std::int32_t>& row,
                                          const std::vector<std::int64_t>& start) {
  std::vector<std::int32_t> rows;
  rows.reserve(static_cast<std::size_t>(start.back()));
  for (std::size_t k = 0; k < row.size(); ++k)
    rows.insert(rows.end(), static_cast<std::size_t>(start[k + 1] - start[k]), row[k]);
  return rows;
}

HostValue field_value(const HostCsr& matrix, const HostTiles& tiles, SoaField field) {
  switch (field) {
    case SoaField::shape: return HostValue::zeros(matrix.values.type, {0, matrix.rows, matrix.columns});
    case SoaField::values: return matrix.values;
    case SoaField::row_start: return starts(matrix.row_start);
    case SoaField::row: return indices(row_of_each(matrix));
    case SoaField::column: return indices(matrix.column);
    case SoaField::column_start: return starts(column_starts(matrix));
    case SoaField::by_column: return indices(by_column(matrix));
    case SoaField::block_row: return indices(tiles.block_row);
    case SoaField::block_step: return indices(tiles.block_step);
    case SoaField::block_column: return indices(tiles.block_column);
    case SoaField::block_source: return indices(tiles.block_source);
    case SoaField::ell_row: return indices(tiles.ell_row);
    case SoaField::ell_start: return starts(tiles.ell_start);
    case SoaField::ell_column: return indices(tiles.ell_column);
    case SoaField::ell_source: return indices(tiles.ell_source);
    case SoaField::ell_element_row: return indices(row_of_elements(tiles.ell_row, tiles.ell_start));
    case SoaField::segment_row: return indices(tiles.segment_row);
    case SoaField::segment_start: return starts(tiles.segment_start);
    case SoaField::segment_column: return indices(tiles.segment_column);
    case SoaField::segment_source: return indices(tiles.segment_source);
    case SoaField::segment_element_row: return indices(row_of_elements(tiles.segment_row, tiles.segment_start));
  }
  return {};
}

std::size_t number(std::string_view& text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.empty()) text.remove_prefix(1);
  return value;
}

}  // namespace

HostCsr to_csr(const HostValue& dense) {
  HostCsr matrix{.rows = dense.shape[0], .columns = dense.shape[1], .row_start = {0}, .column = {}, .values = {}};
  matrix.values.type = dense.type;
  const auto size = static_cast<std::size_t>(byte_size(dense.type));
  const std::byte* element = dense.data.data();
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t column = 0; column < matrix.columns; ++column, element += size) {
      if (is_zero(element, dense.type)) continue;
      matrix.column.push_back(static_cast<std::int32_t>(column));
      matrix.values.data.insert(matrix.values.data.end(), element, element + size);
    }
    matrix.row_start.push_back(matrix.nonzeros());
  }
  matrix.values.shape = {matrix.nonzeros()};
  return matrix;
}

HostValue to_dense(const HostCsr& matrix) {
  HostValue dense = HostValue::zeros(matrix.values.type, {matrix.rows, matrix.columns});
  const auto size = static_cast<std::size_t>(byte_size(dense.type));
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    for (std::int64_t k = matrix.row_start[static_cast<std::size_t>(row)];
         k < matrix.row_start[static_cast<std::size_t>(row) + 1]; ++k) {
      const std::int64_t at = row * matrix.columns + matrix.column[static_cast<std::size_t>(k)];
      std::memcpy(dense.data.data() + static_cast<std::size_t>(at) * size,
                  matrix.values.data.data() + static_cast<std::size_t>(k) * size, size);
    }
  return dense;
}

std::vector<HostValue> soa_values(const HostCsr& matrix, const std::vector<SoaField>& fields) {
  std::vector<HostValue> values;
  for (const SoaField field : fields) values.push_back(field_value(matrix, {}, field));
  return values;
}

Result<std::vector<HostValue>> soa_values(const std::string& operand, const HostCsr& matrix,
                                          const std::vector<SoaField>& fields, const TileMaker& tiles) {
  if (!has_tiles(fields)) return soa_values(matrix, fields);
  if (!tiles)
    return make_error(Code::unsupported_construct, {},
                      fmt::format("the sparse operand `{}` is wanted as tiles, which cannot be made here.", operand));
  const auto made = tiles(operand, matrix, fields);
  if (!made) return made.error();
  std::vector<HostValue> values;
  for (const SoaField field : fields) values.push_back(field_value(matrix, *made, field));
  return values;
}

std::string SoaInterface::to_text() const {
  std::string text;
  for (std::size_t k = 0; k < soas.size(); ++k) {
    text += fmt::format("{} {} ", names[k], soas[k].first);
    for (const SoaField field : soas[k].fields) text += fmt::format("{} ", static_cast<int>(field));
    text.back() = ';';
  }
  for (const SparseResult& result : results) text += fmt::format("={} {};", result.result, result.soa);
  return text;
}

SoaInterface SoaInterface::from_text(std::string_view text) {
  SoaInterface interface;
  while (!text.empty()) {
    std::string_view part = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    if (part.starts_with('=')) {
      part.remove_prefix(1);
      const std::size_t result = number(part);
      interface.results.push_back({result, number(part)});
      continue;
    }
    SparseSoa soa;
    interface.names.emplace_back(part.substr(0, part.find(' ')));
    part.remove_prefix(std::min(part.size(), interface.names.back().size() + 1));
    soa.first = number(part);
    while (!part.empty()) soa.fields.push_back(static_cast<SoaField>(number(part)));
    interface.soas.push_back(std::move(soa));
  }
  return interface;
}

SoaInterface soa_interface(const Function& function) {
  SoaInterface interface {
    .soas = find_soas(function), .names = {}, .results = {}
  };
  for (const SparseSoa& soa : interface.soas) interface.names.push_back(function.entry->params[soa.param].name);
  for (std::size_t k = 0; k < function.results.size(); ++k)
    if (const auto soa = soa_of_result(function, k)) interface.results.push_back({k, *soa});
  return interface;
}

Result<PackedArguments> pack_arguments(const SoaInterface& interface, const std::vector<HostValue>& arguments,
                                       const TileMaker& tiles) {
  PackedArguments packed;
  auto next = interface.soas.begin();
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    const bool here = next != interface.soas.end() && packed.values.size() == next->first;
    if (!here) {
      packed.values.push_back(arguments[k]);
      continue;
    }
    packed.matrices.emplace_back();
    if (arguments[k].rank() == 2) {
      packed.matrices.back() = to_csr(arguments[k]);
      const auto soa = static_cast<std::size_t>(next - interface.soas.begin());
      auto values = soa_values(interface.names[soa], *packed.matrices.back(), next->fields, tiles);
      if (!values) return std::move(values).error();
      for (HostValue& value : *values) packed.values.push_back(std::move(value));
    } else {
      // One that is no struct of arrays either is refused by its shape; the others must be there for that.
      packed.values.push_back(arguments[k]);
      if (arguments[k].rank() != 3)
        for (std::size_t f = 1; f < next->fields.size(); ++f)
          packed.values.push_back(HostValue::zeros(element_of(next->fields[f], arguments[k].type), {0}));
    }
    ++next;
  }
  return packed;
}

void unpack_results(const SoaInterface& interface, const PackedArguments& arguments, std::vector<HostValue>& results) {
  for (const auto& [result, soa] : interface.results) {
    if (soa >= arguments.matrices.size() || !arguments.matrices[soa] || result >= results.size()) continue;
    HostCsr matrix = *arguments.matrices[soa];
    matrix.values = std::move(results[result]);
    results[result] = to_dense(matrix);
  }
}

}  // namespace apl
