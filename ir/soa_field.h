// The arrays that a sparse operand is made of (ir/sparse_soa.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/scalar.h"

namespace apl {

enum class SoaField : std::uint8_t {
#define APL_SOA_FIELD(name, element, extent) name,
#include "ir/soa_fields.def"
};
inline constexpr std::size_t kSoaFields = 0
#define APL_SOA_FIELD(name, element, extent) +1
#include "ir/soa_fields.def"
    ;

enum class SoaExtent : std::uint8_t {
  none,
  nonzeros,
  rows_and_one,
  columns_and_one,
  block_rows,
  block_columns,
  block_elements,  // kBlockWidth a row of a block
  ell_rows,
  ell_rows_and_one,
  ell_elements,
  segment_rows,
  segment_rows_and_one,
  segment_elements,
};
inline constexpr int kBlockWidth = 16;

std::string_view to_text(SoaField field);
std::optional<SoaField> soa_field_from_text(std::string_view text);
SoaExtent extent_of(SoaField field);
ScalarType element_of(SoaField field, ScalarType matrix);
bool is_tile_field(SoaField field);
bool has_tiles(const std::vector<SoaField>& fields);

}  // namespace apl
