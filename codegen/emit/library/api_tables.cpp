#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <nlohmann/json.hpp>

#include "codegen/emit/library/api_text.h"
#include "codegen/kernel/c_string.h"
#include "codegen/kernel/writer.h"
#include "runtime/names.h"

namespace apl::library {
namespace {

// A JSON string; what is no UTF-8 is replaced.
std::string quoted_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

bool is_seen(const ApiType& type) { return type.element != ScalarType::unit || type.kind == ApiType::Kind::opaque; }

void variant_tables(const ApiType& type, Writer& out) {
  std::vector<std::string> variants;
  for (const ApiType::Variant& variant : type.variants) {
    const std::string name = type.c_name + "_" + variant.c_name;
    std::vector<std::string> parts;
    for (const ApiType::Field& part : variant.payload)
      parts.push_back(fmt::format("{{\"\", &apl_type_{}, {}}}", part.type->c_name, part.first));
    if (!parts.empty()) {
      out.line("static const struct apl_api_field apl_payload_{}[] = {{{}}};", name, fmt::join(parts, ", "));
      // A payload of units has no places.
      out.line("static const int32_t apl_places_{}[] = {{{}}};", name,
               variant.places.empty() ? "0" : fmt::format("{}", fmt::join(variant.places, ", ")));
    }
    variants.push_back(fmt::format("{{{}, {}, {}, {}, {}}}", c_string(variant.name), parts.size(),
                                   parts.empty() ? "NULL" : "apl_payload_" + name, variant.places.size(),
                                   parts.empty() ? "NULL" : "apl_places_" + name));
  }
  if (!variants.empty())
    out.line("static const struct apl_api_variant apl_variants_{}[] = {{{}}};", type.c_name, fmt::join(variants, ", "));
}

void type_table(const ApiType& type, Writer& out) {
  const std::string& name = type.c_name;
  if (type.kind != ApiType::Kind::opaque) {
    out.line(
        "static const struct apl_api_type apl_type_{} = {{{}, {}, {}, {}, 1, NULL, 0, NULL, NULL, 0, NULL, NULL, 0}};",
        name, c_string(type.name), type.kind == ApiType::Kind::scalar ? "APL_API_SCALAR" : "APL_API_ARRAY",
        type_constant(type.element), type.rank);
    return;
  }
  std::vector<std::string> values, fields;
  for (const ApiType* value : type.values) values.push_back("&apl_type_" + value->c_name);
  for (const ApiType::Field& field : type.fields)
    fields.push_back(fmt::format("{{{}, &apl_type_{}, {}}}", c_string(field.name), field.type->c_name, field.first));
  out.line("static const struct apl_api_type *const apl_values_{}[] = {{{}}};", name, fmt::join(values, ", "));
  if (!fields.empty())
    out.line("static const struct apl_api_field apl_fields_{}[] = {{{}}};", name, fmt::join(fields, ", "));
  std::vector<std::string> soa;
  for (const SoaField field : type.soa) soa.push_back("APL_FIELD_" + upper(to_text(field)));
  if (!soa.empty()) out.line("static const int32_t apl_soa_{}[] = {{{}}};", name, fmt::join(soa, ", "));
  variant_tables(type, out);
  out.line(
      "static const struct apl_api_type apl_type_{0} = {{{1}, APL_API_OPAQUE, 0, 0, {2}, apl_values_{0}, {3}, {4}, "
      "{5}, {6}, {7}, {8}, {9}}};",
      name, c_string(type.name), values.size(), fields.size(), fields.empty() ? "NULL" : "apl_fields_" + name,
      soa.empty() ? "NULL" : "apl_soa_" + name, type.variants.size(),
      type.variants.empty() ? "NULL" : "apl_variants_" + name, type.item ? "&apl_type_" + type.item->c_name : "NULL",
      type.outer);
}

}  // namespace

std::string api_tables(const Api& api) {
  Writer out;
  for (const ApiType& type : api.types.all()) type_table(type, out);
  out.open("static const struct apl_api_type *const apl_types[] = {{");
  for (const ApiType& type : api.types.all())
    if (is_seen(type)) out.line("&apl_type_{},", type.c_name);
  out.line("NULL,");
  out.close("}};");
  out.line("");
  for (const ApiEntry& entry : api.entries) {
    std::vector<std::string> inputs;
    for (const ApiEntry::Input& input : entry.inputs) inputs.push_back("&apl_type_" + input.type->c_name);
    if (inputs.empty()) continue;
    out.line("static const struct apl_api_type *const apl_inputs_{}[] = {{{}}};", entry.c_name,
             fmt::join(inputs, ", "));
    std::vector<std::string> names, picks;
    for (std::size_t k = 0; k < entry.inputs.size(); ++k) {
      const ApiEntry::Input& input = entry.inputs[k];
      names.push_back(c_string(input.name));
      picks.push_back(input.picks.empty() ? "NULL" : fmt::format("apl_pick_{}_{}", k, entry.c_name));
      if (!input.picks.empty())
        out.line("static const int32_t {}[] = {{{}, {}}};", picks.back(), input.picks.size(),
                 fmt::join(input.picks, ", "));
    }
    out.line("static const char *const apl_names_{}[] = {{{}}};", entry.c_name, fmt::join(names, ", "));
    out.line("static const int32_t *const apl_picks_{}[] = {{{}}};", entry.c_name, fmt::join(picks, ", "));
  }
  out.open("static const struct apl_api_entry apl_entries[] = {{");
  for (const ApiEntry& entry : api.entries)
    out.line("{{{}, apl_entry_{}, {}, {}, &apl_type_{}, {}, {}}},", c_string(entry.name), symbol_part(entry.name),
             entry.inputs.size(), entry.inputs.empty() ? "NULL" : "apl_inputs_" + entry.c_name, entry.output->c_name,
             entry.inputs.empty() ? "NULL" : "apl_names_" + entry.c_name,
             entry.inputs.empty() ? "NULL" : "apl_picks_" + entry.c_name);
  out.line("{{NULL, NULL, 0, NULL, NULL, NULL, NULL}},");
  out.close("}};");
  out.open("static const struct apl_api_parameter apl_parameters[] = {{");
  for (const ProgramParameter& parameter : api.parameters)
    out.line("{{{}, \"{}\"}},", c_string(parameter.name), parameter.kind);
  out.line("{{NULL, NULL}},");
  out.close("}};");
  return out.take();
}

std::string api_manifest(const Api& api, const std::string& version) {
  const std::string backend(api.target.dialect->name);
  Writer out;
  const auto list = [&](std::size_t k, std::size_t count) { return k + 1 < count ? "," : ""; };
  out.open("{{");
  out.line("\"backend\": \"{}\",", backend);
  out.line("\"version\": {},", quoted_text("aplc " + version));
  out.open("\"entry_points\": {{");
  for (std::size_t e = 0; e < api.entries.size(); ++e) {
    const ApiEntry& entry = api.entries[e];
    std::vector<std::string> inputs, parameters;
    for (const ApiEntry::Input& input : entry.inputs)
      inputs.push_back(fmt::format("{{\"name\": {}, \"type\": {}, \"unique\": false}}", quoted_text(input.name),
                                   quoted_text(input.type->name)));
    for (const ProgramParameter& parameter : api.parameters)
      if (parameter.name.starts_with(entry.name + ".")) parameters.push_back(quoted_text(parameter.name));
    out.open("{}: {{", quoted_text(entry.name));
    out.line("\"cfun\": \"futhark_entry_{}\",", entry.c_name);
    out.line("\"inputs\": [{}],", fmt::join(inputs, ", "));
    const std::string output = fmt::format("{{\"type\": {}, \"unique\": true}}", quoted_text(entry.output->name));
    out.line("\"output\": {},", output);
    // As it was called when there could be several.
    out.line("\"outputs\": [{}],", output);
    out.line("\"tuning_params\": [{}],", fmt::join(parameters, ", "));
    out.line("\"attributes\": []");
    out.close("}}{}", list(e, api.entries.size()));
  }
  out.close("}},");
  out.open("\"types\": {{");
  std::vector<const ApiType*> types;
  for (const ApiType& type : api.types.all())
    if (is_seen(type) && type.kind != ApiType::Kind::scalar) types.push_back(&type);
  for (std::size_t t = 0; t < types.size(); ++t) {
    const ApiType& type = *types[t];
    const std::string name = type.c_name;
    out.open("{}: {{", quoted_text(type.name));
    out.line("\"ctype\": \"struct futhark_{} *\",", name);
    if (type.kind == ApiType::Kind::array) {
      out.line("\"kind\": \"array\",");
      out.line("\"rank\": {},", type.rank);
      out.line("\"elemtype\": \"{}\",", apl::to_text(type.element));
      out.line(
          "\"ops\": {{\"new\": \"futhark_new_{0}\", \"new_raw\": \"futhark_new_raw_{0}\", \"free\": "
          "\"futhark_free_{0}\", "
          "\"shape\": \"futhark_shape_{0}\", \"values\": \"futhark_values_{0}\", \"values_raw\": "
          "\"futhark_values_raw_{0}\", \"index\": \"futhark_index_{0}\"}}",
          name);
    } else {
      out.line("\"kind\": \"opaque\",");
      std::vector<std::string> fields;
      for (const ApiType::Field& field : type.fields)
        fields.push_back(fmt::format("{{\"name\": {}, \"type\": {}, \"project\": \"futhark_project_{}_{}\"}}",
                                     quoted_text(field.name), quoted_text(field.type->name), name, field.c_name));
      if (type.item != nullptr) {
        out.open("\"{}_array\": {{", fields.empty() ? "opaque" : "record");
        out.line("\"rank\": {},", type.outer);
        out.line("\"elemtype\": {},", quoted_text(type.item->name));
        for (const std::string_view what : {"index", "shape", "set"})
          out.line("\"{0}\": \"futhark_{0}_{1}\",", what, name);
        if (!fields.empty()) {
          out.line("\"zip\": \"futhark_zip_{}\",", name);
          out.line("\"fields\": [{}],", fmt::join(fields, ", "));
        }
        out.line("\"new\": \"futhark_new_{}\"", name);
        out.close("}},");
      } else if (type.variants.empty() && type.soa.empty()) {
        out.line("\"record\": {{\"new\": \"futhark_new_{}\", \"fields\": [{}]}},", name, fmt::join(fields, ", "));
      }
      if (!type.variants.empty()) {
        std::vector<std::string> variants;
        for (const ApiType::Variant& variant : type.variants) {
          std::vector<std::string> payload;
          for (const ApiType::Field& part : variant.payload) payload.push_back(quoted_text(part.type->name));
          variants.push_back(fmt::format(
              "{{\"name\": {}, \"construct\": \"futhark_new_{}_{}\", \"destruct\": \"futhark_destruct_{}_{}\", "
              "\"payload\": [{}]}}",
              quoted_text(variant.name), name, variant.c_name, name, variant.c_name, fmt::join(payload, ", ")));
        }
        out.line("\"sum\": {{\"variant\": \"futhark_variant_{}\", \"variants\": [{}]}},", name,
                 fmt::join(variants, ", "));
      }
      if (!type.soa.empty()) {
        // To those who know nothing of non-zeros, an array whose elements they cannot have one by one.
        out.line("\"opaque_array\": {{\"rank\": 2, \"elemtype\": \"{}\", \"shape\": \"futhark_shape_{}\"}},",
                 apl::to_text(type.values[1]->element), name);
        out.line(
            "\"sparse\": {{\"new\": \"futhark_new_{0}\", \"nonzeros\": \"futhark_nonzeros_{0}\", \"set_plan\": "
            "\"futhark_set_plan_{0}\"}},",
            name);
        out.line("\"ops\": {{\"free\": \"futhark_free_{}\"}}", name);
        out.close("}}{}", list(t, types.size()));
        continue;
      }
      out.line(
          "\"ops\": {{\"free\": \"futhark_free_{0}\", \"store\": \"futhark_store_{0}\", \"restore\": "
          "\"futhark_restore_{0}\"}}",
          name);
    }
    out.close("}}{}", list(t, types.size()));
  }
  out.close("}}");
  out.close("}}");
  return out.take();
}

}  // namespace apl::library
