#include "ir/sparse_soa.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace apl {
namespace {

constexpr std::string_view kBundle = "sparse ";
constexpr std::string_view kBundleResult = "sparse(";

struct FieldInfo {
  std::string_view name;
  std::string_view element;
  BundleExtent extent;
};
constexpr std::array<FieldInfo, kBundleFields> kFields = {{
#define APL_BUNDLE_FIELD(name, element, extent) {#name, #element, BundleExtent::extent},
#include "ir/soa_fields.def"
}};

const FieldInfo& info(BundleField field) { return kFields[static_cast<std::size_t>(field)]; }

// Words after the last colon; nullopt if one is no field.
std::optional<std::vector<BundleField>> fields_of(std::string_view text) {
  std::vector<BundleField> fields;
  const std::size_t colon = text.rfind(':');
  if (!text.starts_with(kBundle) || colon == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(colon + 1);
  while (!rest.empty()) {
    const std::size_t start = rest.find_first_not_of(' ');
    if (start == std::string_view::npos) break;
    rest.remove_prefix(start);
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(word.size());
    const auto known = std::ranges::find(kFields, word, &FieldInfo::name);
    if (known == kFields.end()) return std::nullopt;
    fields.push_back(static_cast<BundleField>(known - kFields.begin()));
  }
  return fields;
}

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
    if (attribute.name != kSparseAttribute) continue;
    const bool result = attribute.arguments.size() == 2 && attribute.arguments[1] == "result";
    if (!function.entry || (attribute.arguments.size() != 1 && !result))
      return make_error(Code::type_mismatch, function.location,
                        !function.entry ? "#[sparse] is for entries"
                                        : "#[sparse] takes the name of a parameter, and may say `result` after it");
    SparseRequest request{.result = result};
    if (auto error = check_request(function, attribute.arguments.front(), request)) return *error;
    for (const SparseRequest& other : requests)
      if (other.param == request.param || (other.result && result))
        return make_error(Code::type_mismatch, function.location,
                          fmt::format("#[sparse({})]: {}", attribute.arguments.front(),
                                      other.param == request.param ? "said twice" : "the result has one pattern"));
    if (result && function.results.size() != 1)
      return make_error(Code::type_mismatch, function.location,
                        fmt::format("#[sparse({}, result)]: the entry gives {} values, not one matrix",
                                    attribute.arguments.front(), function.results.size()));
    requests.push_back(request);
  }
  return requests;
}

std::string_view to_text(BundleField field) { return info(field).name; }
BundleExtent extent_of(BundleField field) { return info(field).extent; }
ScalarType element_of(BundleField field, ScalarType matrix) {
  return scalar_type_from_text(info(field).element).value_or(matrix);
}

bool is_tile_field(BundleField field) { return field >= BundleField::block_row; }
bool has_tiles(const std::vector<BundleField>& fields) { return std::ranges::any_of(fields, is_tile_field); }

std::vector<BundleExtent> counted_extents() {
  return {BundleExtent::nonzeros,      BundleExtent::block_rows, BundleExtent::block_columns, BundleExtent::lists,
          BundleExtent::list_elements, BundleExtent::run_rows,   BundleExtent::run_elements};
}

std::string count_name(std::string_view operand, BundleExtent extent) {
  const auto called = [](BundleExtent of) {
    switch (of) {
      case BundleExtent::nonzeros: return "nonzeros";
      case BundleExtent::block_rows: return "block_rows";
      case BundleExtent::block_columns: return "block_columns";
      case BundleExtent::lists: return "lists";
      case BundleExtent::list_elements: return "list_elements";
      case BundleExtent::run_rows: return "run_rows";
      case BundleExtent::run_elements: return "run_elements";
      default: return "count";
    }
  };
  return fmt::format("{}_{}", operand, called(extent));
}

std::optional<std::vector<Poly>> bundle_shape(BundleExtent extent, const BundleSizes& sizes) {
  const auto from = [&](BundleExtent counted, std::int64_t factor, std::int64_t more) {
    const auto count = sizes.counts.find(counted);
    return count == sizes.counts.end() ? std::nullopt
                                       : std::optional(std::vector<Poly>{Poly(factor) * count->second + Poly(more)});
  };
  switch (extent) {
    case BundleExtent::none: return std::vector<Poly>{0, sizes.rows, sizes.columns};
    case BundleExtent::rows_and_one: return std::vector<Poly>{sizes.rows + 1};
    case BundleExtent::columns_and_one: return std::vector<Poly>{sizes.columns + 1};
    case BundleExtent::block_elements: return from(BundleExtent::block_rows, kBlockWidth, 0);
    case BundleExtent::lists_and_one: return from(BundleExtent::lists, 1, 1);
    case BundleExtent::run_rows_and_one: return from(BundleExtent::run_rows, 1, 1);
    default: return from(extent, 1, 0);
  }
}

std::vector<Bundle> find_bundles(const Function& function) {
  std::vector<Bundle> bundles;
  if (!function.entry) return bundles;
  const std::vector<Value> params = outer_params(function);
  const EntryInfo& entry = *function.entry;
  std::size_t first = 0;
  for (std::size_t k = 0; k < entry.params.size() && k < entry.param_values.size();
       first += entry.param_values[k], ++k) {
    auto fields = fields_of(entry.params[k].type);
    if (!fields || fields->empty() || fields->front() != BundleField::shape ||
        fields->size() != entry.param_values[k] || first >= params.size())
      continue;
    bundles.push_back({k, first, function.type(params[first]).element, std::move(*fields)});
  }
  return bundles;
}

std::optional<std::string> check_bundles(const Function& function) {
  if (!function.entry) return std::nullopt;
  const std::vector<Value> params = outer_params(function);
  const std::vector<Bundle> bundles = find_bundles(function);
  std::size_t texts = 0;
  for (const EntryInfo::Param& param : function.entry->params) texts += param.type.starts_with(kBundle) ? 1 : 0;
  if (texts != bundles.size()) return "a sparse parameter does not say which arrays it is";
  for (const Bundle& bundle : bundles) {
    const std::string& name = function.entry->params[bundle.param].name;
    const Type& shape = function.type(params[bundle.first]);
    if (!std::ranges::is_sorted(bundle.fields) || std::ranges::adjacent_find(bundle.fields) != bundle.fields.end() ||
        bundle.fields.size() < 2 || bundle.fields[1] != BundleField::values)
      return fmt::format("the arrays of the sparse parameter `{}` are not in their order", name);
    if (shape.rank() != 3 || !shape.shape[0].is_zero())
      return fmt::format("the sparse parameter `{}` does not say its shape", name);
    BundleSizes sizes{shape.shape[1], shape.shape[2], {}};
    const std::vector<BundleExtent> counted = counted_extents();
    for (std::size_t k = 1; k < bundle.fields.size(); ++k) {
      const Type& type = function.type(params[bundle.first + k]);
      const BundleExtent extent = extent_of(bundle.fields[k]);
      if (type.rank() == 1 && std::ranges::find(counted, extent) != counted.end())
        sizes.counts.try_emplace(extent, type.shape[0]);
    }
    for (std::size_t k = 1; k < bundle.fields.size(); ++k) {
      const Type& type = function.type(params[bundle.first + k]);
      const auto wanted = bundle_shape(extent_of(bundle.fields[k]), sizes);
      const bool fits = type.rank() == 1 && type.element == element_of(bundle.fields[k], bundle.element) && wanted &&
                        type.shape == *wanted;
      if (!fits)
        return fmt::format("`{}` of the sparse parameter `{}` has another type", to_text(bundle.fields[k]), name);
    }
  }
  for (std::size_t k = 0; k < function.entry->results.size(); ++k)
    if (function.entry->results[k].starts_with(kBundleResult) && !bundle_of_result(function, k))
      return fmt::format("result {} has the pattern of no sparse parameter", k + 1);
  return std::nullopt;
}

std::string bundle_text(std::string_view dense, const std::vector<BundleField>& fields) {
  std::string text = fmt::format("{}{}:", kBundle, dense);
  for (const BundleField field : fields) text += fmt::format(" {}", to_text(field));
  return text;
}

std::string bundle_result_text(std::string_view dense, std::string_view param) {
  return fmt::format("{}{}) {}", kBundleResult, param, dense);
}

std::optional<std::size_t> bundle_of_result(const Function& function, std::size_t k) {
  if (!function.entry || k >= function.entry->results.size()) return std::nullopt;
  const std::string& text = function.entry->results[k];
  const std::size_t end = text.find(')');
  if (!text.starts_with(kBundleResult) || end == std::string::npos) return std::nullopt;
  const std::string name = text.substr(kBundleResult.size(), end - kBundleResult.size());
  const std::vector<Bundle> bundles = find_bundles(function);
  for (std::size_t b = 0; b < bundles.size(); ++b)
    if (function.entry->params[bundles[b].param].name == name) return b;
  return std::nullopt;
}

}  // namespace apl
