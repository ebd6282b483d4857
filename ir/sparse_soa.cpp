#include "ir/sparse_soa.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/attributes.h"

namespace apl {
namespace {

struct FieldInfo {
  std::string_view name;
  std::string_view element;
  SoaExtent extent;
};
constexpr std::array<FieldInfo, kSoaFields> kFields = {{
#define APL_SOA_FIELD(name, element, extent) {#name, #element, SoaExtent::extent},
#include "ir/soa_fields.def"
}};

const FieldInfo& info(SoaField field) { return kFields[static_cast<std::size_t>(field)]; }

// Parameters as they are seen from outside.
std::vector<Value> outer_params(const Function& function) {
  std::vector<Value> params;
  for (Value param : function.params)
    if (!function.type(param).is_memory()) params.push_back(param);
  return params;
}

std::optional<Diagnostic> check_request(const Function& function, const std::string& name, SparseRequest& request) {
  const EntryInfo& entry = *function.entry;
  const auto refuse = [&](Code code, std::string message) {
    return make_error(code, function.location, std::move(message));
  };
  std::size_t value = 0;
  for (std::size_t k = 0; k < entry.params.size(); value += entry.param_values[k], ++k) {
    if (entry.params[k].name != name) continue;
    request.param = k;
    request.value = value;
    const Type* type = entry.param_values[k] == 1 ? &function.type(function.params[value]) : nullptr;
    if (type == nullptr || type->rank() != 2 || !(is_integer(type->element) || is_float(type->element)))
      return refuse(Code::type_mismatch,
                    fmt::format("#[sparse({})]: a sparse operand is a matrix of numbers, `{}` is {}", name, name,
                                entry.params[k].type));
    return std::nullopt;
  }
  return refuse(Code::type_unknown_name,
                fmt::format("#[sparse({})]: the entry `{}` has no parameter `{}`", name, entry.name, name));
}

}  // namespace

Result<std::vector<SparseRequest>> sparse_requests(const Function& function) {
  std::vector<SparseRequest> requests;
  for (const Attribute& attribute : function.attributes) {
    if (attribute.name != attribute::sparse.name) continue;
    const auto arguments = read_attribute(attribute, attribute::sparse);
    if (!function.entry || !arguments)
      return make_error(Code::type_mismatch, function.location,
                        !function.entry ? "#[sparse] is for entries"
                                        : "#[sparse] takes the name of a parameter, and may say `result` after it");
    const std::string& name = std::get<0>(*arguments);
    const bool result = std::get<1>(*arguments).has_value();
    SparseRequest request{.result = result};
    if (auto error = check_request(function, name, request)) return *error;
    for (const SparseRequest& other : requests)
      if (other.param == request.param || (other.result && result))
        return make_error(Code::type_mismatch, function.location,
                          fmt::format("#[sparse({})]: {}", name,
                                      other.param == request.param ? "said twice" : "the result has one pattern"));
    if (result && function.results.size() != 1)
      return make_error(Code::type_mismatch, function.location,
                        fmt::format("#[sparse({}, result)]: the entry gives {} values, not one matrix", name,
                                    function.results.size()));
    requests.push_back(request);
  }
  return requests;
}

std::string_view to_text(SoaField field) { return info(field).name; }
std::optional<SoaField> soa_field_from_text(std::string_view text) {
  const auto known = std::ranges::find(kFields, text, &FieldInfo::name);
  if (known == kFields.end()) return std::nullopt;
  return static_cast<SoaField>(known - kFields.begin());
}
SoaExtent extent_of(SoaField field) { return info(field).extent; }
ScalarType element_of(SoaField field, ScalarType matrix) {
  return scalar_type_from_text(info(field).element).value_or(matrix);
}

bool is_tile_field(SoaField field) { return field >= SoaField::block_row; }
bool has_tiles(const std::vector<SoaField>& fields) { return std::ranges::any_of(fields, is_tile_field); }

std::vector<SoaExtent> counted_extents() {
  return {SoaExtent::nonzeros,     SoaExtent::block_rows,   SoaExtent::block_columns,   SoaExtent::ell_rows,
          SoaExtent::ell_elements, SoaExtent::segment_rows, SoaExtent::segment_elements};
}

std::string count_name(std::string_view operand, SoaExtent extent) {
  const auto called = [](SoaExtent of) {
    switch (of) {
      case SoaExtent::nonzeros: return "nonzeros";
      case SoaExtent::block_rows: return "block_rows";
      case SoaExtent::block_columns: return "block_columns";
      case SoaExtent::ell_rows: return "ell_rows";
      case SoaExtent::ell_elements: return "ell_elements";
      case SoaExtent::segment_rows: return "segment_rows";
      case SoaExtent::segment_elements: return "segment_elements";
      default: return "count";
    }
  };
  return fmt::format("{}_{}", operand, called(extent));
}

std::optional<std::vector<Poly>> soa_shape(SoaExtent extent, const SoaSizes& sizes) {
  const auto from = [&](SoaExtent counted, std::int64_t factor, std::int64_t more) {
    const auto count = sizes.counts.find(counted);
    return count == sizes.counts.end() ? std::nullopt
                                       : std::optional(std::vector<Poly>{Poly(factor) * count->second + Poly(more)});
  };
  switch (extent) {
    case SoaExtent::none: return std::vector<Poly>{0, sizes.rows, sizes.columns};
    case SoaExtent::rows_and_one: return std::vector<Poly>{sizes.rows + 1};
    case SoaExtent::columns_and_one: return std::vector<Poly>{sizes.columns + 1};
    case SoaExtent::block_elements: return from(SoaExtent::block_rows, kBlockWidth, 0);
    case SoaExtent::ell_rows_and_one: return from(SoaExtent::ell_rows, 1, 1);
    case SoaExtent::segment_rows_and_one: return from(SoaExtent::segment_rows, 1, 1);
    default: return from(extent, 1, 0);
  }
}

std::vector<SparseSoa> find_soas(const Function& function) {
  std::vector<SparseSoa> soas;
  if (!function.entry) return soas;
  const std::vector<Value> params = outer_params(function);
  const EntryInfo& entry = *function.entry;
  std::size_t first = 0;
  for (std::size_t k = 0; k < entry.params.size() && k < entry.param_values.size();
       first += entry.param_values[k], ++k) {
    const std::vector<SoaField>& fields = entry.params[k].fields;
    if (fields.empty() || fields.front() != SoaField::shape || fields.size() != entry.param_values[k] ||
        first >= params.size())
      continue;
    soas.push_back({k, first, function.type(params[first]).element, fields});
  }
  return soas;
}

std::optional<std::string> check_soas(const Function& function) {
  if (!function.entry) return std::nullopt;
  const std::vector<Value> params = outer_params(function);
  const std::vector<SparseSoa> soas = find_soas(function);
  const auto is_sparse = [](const EntryInfo::Param& param) { return !param.fields.empty(); };
  if (std::ranges::count_if(function.entry->params, is_sparse) != std::ssize(soas))
    return "a sparse parameter does not begin with its shape, or is another number of arrays";
  for (const SparseSoa& soa : soas) {
    const std::string& name = function.entry->params[soa.param].name;
    const Type& shape = function.type(params[soa.first]);
    if (!std::ranges::is_sorted(soa.fields) || std::ranges::adjacent_find(soa.fields) != soa.fields.end() ||
        soa.fields.size() < 2 || soa.fields[1] != SoaField::values)
      return fmt::format("the arrays of the sparse parameter `{}` are not in their order", name);
    if (shape.rank() != 3 || !shape.shape[0].is_zero())
      return fmt::format("the sparse parameter `{}` does not say its shape", name);
    SoaSizes sizes{shape.shape[1], shape.shape[2], {}};
    const std::vector<SoaExtent> counted = counted_extents();
    for (std::size_t k = 1; k < soa.fields.size(); ++k) {
      const Type& type = function.type(params[soa.first + k]);
      const SoaExtent extent = extent_of(soa.fields[k]);
      if (type.rank() == 1 && std::ranges::find(counted, extent) != counted.end())
        sizes.counts.try_emplace(extent, type.shape[0]);
    }
    for (std::size_t k = 1; k < soa.fields.size(); ++k) {
      const Type& type = function.type(params[soa.first + k]);
      const auto wanted = soa_shape(extent_of(soa.fields[k]), sizes);
      const bool fits =
          type.rank() == 1 && type.element == element_of(soa.fields[k], soa.element) && wanted && type.shape == *wanted;
      if (!fits) return fmt::format("`{}` of the sparse parameter `{}` has another type", to_text(soa.fields[k]), name);
    }
  }
  for (std::size_t k = 0; k < function.entry->results.size(); ++k)
    if (function.entry->results[k].pattern && !soa_of_result(function, k))
      return fmt::format("result {} has the pattern of no sparse parameter", k + 1);
  return std::nullopt;
}

std::optional<std::size_t> soa_of_result(const Function& function, std::size_t k) {
  if (!function.entry || k >= function.entry->results.size()) return std::nullopt;
  const std::vector<SparseSoa> soas = find_soas(function);
  for (std::size_t s = 0; s < soas.size(); ++s)
    if (function.entry->results[k].pattern == soas[s].param) return s;
  return std::nullopt;
}

}  // namespace apl
