#include "codegen/emit/library/api_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/kernel/writer.h"
#include "runtime/names.h"

namespace apl::library {
namespace {

std::string handle(const ApiType& type) { return fmt::format("struct futhark_{} *", type.c_name); }

// A parameter that a function reads, and one that it writes.
std::string in(const ApiType& type, const std::string& name) {
  if (type.kind == ApiType::Kind::scalar) return fmt::format("const {} {}", api_scalar(type.element), name);
  return fmt::format("const {}{}", handle(type), name);
}
std::string out(const ApiType& type, const std::string& name) {
  if (type.kind == ApiType::Kind::scalar) return fmt::format("{} *{}", api_scalar(type.element), name);
  return fmt::format("{}*{}", handle(type), name);
}

// Each function of the API with its body, or without.
class Functions {
 public:
  Functions(const Api& api, bool bodies) : api_(api), bodies_(bodies) {}

  std::string all() {
    if (!bodies_)
      out_.raw(
          "// Arrays: elements are row-major. What is given is copied, but for raw arrays, whose memory (the "
          "backend's)\n"
          "// stays the caller's and must live as long as they. _values waits for what it copies.\n");
    for (const ApiType& type : api_.types.all())
      if (type.kind == ApiType::Kind::array && type.element != ScalarType::unit) array(type);
    for (const ApiType& type : api_.types.all())
      if (type.kind == ApiType::Kind::opaque && type.soa.empty()) opaque(type);
    for (const ApiType& type : api_.types.all())
      if (!type.soa.empty()) sparse(type);
    if (!bodies_)
      out_.raw(
          fmt::format("\n// Entries. The result is the caller's to free.{}\n",
                      api_.target.on_device()
                          ? " They return before it is there: futhark_context_sync waits and has the errors of kernels."
                          : ""));
    for (std::size_t k = 0; k < api_.entries.size(); ++k) entry(k);
    return out_.take();
  }

 private:
  // `head` with a body of these lines.
  void function(const std::string& head, const std::vector<std::string>& lines) {
    if (!bodies_) return out_.line("{};", head);
    out_.open("{} {{", head);
    for (const std::string& line : lines) out_.line("{}", line);
    out_.close("}}");
  }

  void array(const ApiType& type) {
    const std::string name = type.c_name, element = api_scalar(type.element);
    const std::string raw = api_.target.on_device() ? "unsigned long long " : "unsigned char *";
    std::vector<std::string> dims, names, indices, index_names;
    for (std::size_t d = 0; d < type.rank; ++d) {
      names.push_back(fmt::format("dim{}", d));
      dims.push_back("int64_t " + names.back());
      index_names.push_back(fmt::format("i{}", d));
      indices.push_back("int64_t " + index_names.back());
    }
    const std::string shape = fmt::format("const int64_t shape[] = {{{}}};", fmt::join(names, ", "));
    const std::string object = "(const struct apl_object *)arr";
    out_.line("");
    if (!bodies_) out_.line("struct futhark_{};", name);
    function(fmt::format("struct futhark_{0} *futhark_new_{0}(struct futhark_context *ctx, const {1} *data, {2})", name,
                         element, fmt::join(dims, ", ")),
             {shape, fmt::format("return ({})apl_new_array(ctx, &apl_type_{}, data, shape);", handle(type), name)});
    function(fmt::format("struct futhark_{0} *futhark_new_raw_{0}(struct futhark_context *ctx, {1}data, {2})", name,
                         raw, fmt::join(dims, ", ")),
             {shape, fmt::format("return ({})apl_new_raw_array(ctx, &apl_type_{}, (void *)(uintptr_t)data, shape);",
                                 handle(type), name)});
    function(fmt::format("int futhark_free_{0}(struct futhark_context *ctx, struct futhark_{0} *arr)", name),
             {"return apl_free_object(ctx, (struct apl_object *)arr);"});
    function(
        fmt::format("int futhark_values_{0}(struct futhark_context *ctx, const struct futhark_{0} *arr, {1} *data)",
                    name, element),
        {fmt::format("return apl_values_of(ctx, {}, data);", object)});
    function(
        fmt::format("int futhark_index_{0}(struct futhark_context *ctx, {1} *out, const struct futhark_{0} *arr, {2})",
                    name, element, fmt::join(indices, ", ")),
        {fmt::format("const int64_t indices[] = {{{}}};", fmt::join(index_names, ", ")),
         fmt::format("return apl_index_of(ctx, {}, indices, out);", object)});
    function(
        fmt::format("{1}futhark_values_raw_{0}(struct futhark_context *ctx, const struct futhark_{0} *arr)", name, raw),
        {"(void)ctx;", fmt::format("return ({})(uintptr_t)({})->items[0].value.data;", raw, object)});
    function(fmt::format("const int64_t *futhark_shape_{0}(struct futhark_context *ctx, const struct futhark_{0} *arr)",
                         name),
             {"(void)ctx;", fmt::format("return ({})->items[0].value.shape;", object)});
  }

  void opaque(const ApiType& type) {
    const std::string name = type.c_name;
    const std::string object = "(const struct apl_object *)obj";
    out_.line("");
    if (!bodies_) {
      out_.line("// {}", comment_text(type.name));
      out_.line("struct futhark_{};", name);
    }
    function(fmt::format("int futhark_free_{0}(struct futhark_context *ctx, struct futhark_{0} *obj)", name),
             {"return apl_free_object(ctx, (struct apl_object *)obj);"});
    function(
        fmt::format(
            "int futhark_store_{0}(struct futhark_context *ctx, const struct futhark_{0} *obj, void **p, size_t *n)",
            name),
        {fmt::format("return apl_store(ctx, {}, p, n);", object)});
    function(fmt::format("struct futhark_{0} *futhark_restore_{0}(struct futhark_context *ctx, const void *p)", name),
             {fmt::format("return ({})apl_restore(ctx, &apl_type_{}, p);", handle(type), name)});
    if (!type.variants.empty()) return sum(type);
    if (type.item != nullptr) items(type);
    if (type.item != nullptr && type.fields.empty()) return;
    std::string params;
    std::vector<std::string> fields;
    for (const ApiType::Field& field : type.fields) {
      params += ", " + in(*field.type, "f_" + field.c_name);
      fields.push_back((field.type->kind == ApiType::Kind::scalar ? "&f_" : "f_") + field.c_name);
    }
    const bool is_array = type.item != nullptr;
    makes(type,
          fmt::format("int futhark_{1}_{0}(struct futhark_context *ctx, struct futhark_{0} **out{2})", name,
                      is_array ? "zip" : "new", params),
          {list("const void *", "fields", fields)},
          fmt::format("{}(ctx, &apl_type_{}, fields, &made)", is_array ? "apl_zip" : "apl_new_opaque", name));
    for (std::size_t f = 0; f < type.fields.size(); ++f)
      function(
          fmt::format("int futhark_project_{0}_{1}(struct futhark_context *ctx, {2}, const struct futhark_{0} *obj)",
                      name, type.fields[f].c_name, out(*type.fields[f].type, "out")),
          {fmt::format("return apl_project(ctx, {}, {}, out);", object, f)});
  }

  // Of an array of opaque values: its elements, one by one.
  void items(const ApiType& type) {
    const std::string name = type.c_name;
    const ApiType& item = *type.item;
    std::vector<std::string> dims, sizes, params, indices;
    for (std::size_t d = 0; d < type.outer; ++d) {
      sizes.push_back(fmt::format("dim{}", d));
      dims.push_back("int64_t " + sizes.back());
      indices.push_back(fmt::format("i{}", d));
      params.push_back("int64_t " + indices.back());
    }
    const std::string at = fmt::format("const int64_t indices[] = {{{}}};", fmt::join(indices, ", "));
    const std::string array = "(const struct apl_object *)arr";
    makes(item,
          fmt::format("int futhark_index_{0}(struct futhark_context *ctx, {1}*out, const struct futhark_{0} "
                      "*arr, {2})",
                      name, handle(item), fmt::join(params, ", ")),
          {at}, fmt::format("apl_index_item(ctx, {}, indices, &made)", array));
    function(fmt::format("int futhark_set_{0}(struct futhark_context *ctx, struct futhark_{0} *arr, {1}, {2})", name,
                         in(item, "elem"), fmt::join(params, ", ")),
             {at, "return apl_set_item(ctx, (struct apl_object *)arr, elem, indices);"});
    function(fmt::format("const int64_t *futhark_shape_{0}(struct futhark_context *ctx, const struct futhark_{0} *arr)",
                         name),
             {"(void)ctx;", fmt::format("return apl_outer_shape({});", array)});
    makes(type,
          fmt::format("int futhark_new_{0}(struct futhark_context *ctx, struct futhark_{0} **out, {1}const "
                      "*elems, {2})",
                      name, handle(item), fmt::join(dims, ", ")),
          {fmt::format("const int64_t shape[] = {{{}}};", fmt::join(sizes, ", "))},
          fmt::format("apl_new_of_items(ctx, &apl_type_{}, (const void *const *)elems, shape, &made)", name));
  }

  // A function that gives an object of this type, which `call` makes.
  void makes(const ApiType& type, const std::string& head, std::vector<std::string> lines, const std::string& call) {
    lines.emplace_back("struct apl_object *made = NULL;");
    lines.push_back(fmt::format("const int status = {};", call));
    lines.push_back(fmt::format("if (out) *out = ({})made;", handle(type)));
    lines.emplace_back("return status;");
    function(head, lines);
  }
  static std::string list(const std::string& kind, const std::string& what, const std::vector<std::string>& of) {
    return fmt::format("{} const {}[] = {{{}}};", kind, what,
                       of.empty() ? "NULL" : fmt::format("{}", fmt::join(of, ", ")));
  }

  void sum(const ApiType& type) {
    const std::string name = type.c_name;
    if (!bodies_) out_.line("// Which constructor made it, by its number in the order of the functions below.");
    function(fmt::format("int futhark_variant_{0}(struct futhark_context *ctx, const struct futhark_{0} *obj)", name),
             {"(void)ctx;", "return apl_variant_of((const struct apl_object *)obj);"});
    for (std::size_t k = 0; k < type.variants.size(); ++k) {
      const ApiType::Variant& variant = type.variants[k];
      std::string params, outs;
      std::vector<std::string> parts, places;
      for (const ApiType::Field& part : variant.payload) {
        const std::string v = fmt::format("v{}", parts.size());
        params += ", " + in(*part.type, v);
        outs += ", " + out(*part.type, v);
        parts.push_back((part.type->kind == ApiType::Kind::scalar ? "&" : "") + v);
        places.push_back(v);
      }
      makes(type,
            fmt::format("int futhark_new_{0}_{1}(struct futhark_context *ctx, struct futhark_{0} **out{2})", name,
                        variant.c_name, params),
            {list("const void *", "parts", parts)},
            fmt::format("apl_construct(ctx, &apl_type_{}, {}, parts, &made)", name, k));
      function(
          fmt::format("int futhark_destruct_{0}_{1}(struct futhark_context *ctx{2}, const struct futhark_{0} *obj)",
                      name, variant.c_name, outs),
          {list("void *", "parts", places),
           fmt::format("return apl_destruct(ctx, (const struct apl_object *)obj, {}, parts);", k)});
    }
  }

  void sparse(const ApiType& type) {
    const std::string name = type.c_name;
    const ApiType& values = *type.values[1];
    const std::string object = "(const struct apl_object *)obj";
    out_.line("");
    if (!bodies_) {
      out_.line("// A sparse matrix, from compressed rows, which are copied: row i has the non-zeros row_start[i] to");
      out_.line("// row_start[i + 1] - 1, whose columns rise. Without values all are one.");
      out_.line("struct futhark_{};", name);
    }
    function(fmt::format("struct futhark_{0} *futhark_new_{0}(struct futhark_context *ctx, int64_t rows, int64_t "
                         "columns, const int64_t *row_start, const int32_t *column, const {1} *values)",
                         name, api_scalar(values.element)),
             {fmt::format("return ({})apl_new_sparse(ctx, &apl_type_{}, rows, columns, row_start, column, values);",
                          handle(type), name)});
    function(fmt::format("int futhark_free_{0}(struct futhark_context *ctx, struct futhark_{0} *obj)", name),
             {"return apl_free_object(ctx, (struct apl_object *)obj);"});
    function(fmt::format("const int64_t *futhark_shape_{0}(struct futhark_context *ctx, const struct futhark_{0} *obj)",
                         name),
             {"(void)ctx;", fmt::format("return apl_sparse_shape({});", object)});
    function(
        fmt::format("int64_t futhark_nonzeros_{0}(struct futhark_context *ctx, const struct futhark_{0} *obj)", name),
        {"(void)ctx;", fmt::format("return apl_sparse_nonzeros({});", object)});
    if (!bodies_) {
      out_.line(
          "// A plan of `aplc sparse search` for this matrix, as text; one for products and one for SDDMM may be");
      out_.line("// there. NULL takes them away. One for another matrix is an error.{}",
                api_.target.on_device() ? " It is checked and kept: kernels for GPUs do not follow it." : "");
    }
    function(fmt::format("int futhark_set_plan_{0}(struct futhark_context *ctx, struct futhark_{0} *obj, const char "
                         "*text, size_t length)",
                         name),
             {"return apl_set_plan(ctx, (struct apl_object *)obj, text, length);"});
  }

  void entry(std::size_t k) {
    const ApiEntry& entry = api_.entries[k];
    std::vector<std::string> params = {"struct futhark_context *ctx", out(*entry.output, "out0")}, arguments;
    for (std::size_t i = 0; i < entry.inputs.size(); ++i) {
      const ApiType& type = *entry.inputs[i].type;
      params.push_back(in(type, fmt::format("in{}", i)));
      arguments.push_back(fmt::format("{}in{}", type.kind == ApiType::Kind::scalar ? "&" : "", i));
    }
    if (arguments.empty()) arguments.emplace_back("NULL");
    out_.line("");
    if (!bodies_) {
      std::vector<std::string> inputs;
      for (const ApiEntry::Input& input : entry.inputs)
        inputs.push_back(fmt::format("({}: {})", input.name, input.type->name));
      out_.line("// {}",
                comment_text(fmt::format("{} {} : {}", entry.name, fmt::join(inputs, " "), entry.output->name)));
    }
    function(fmt::format("int futhark_entry_{}({})", entry.c_name, fmt::join(params, ", ")),
             {fmt::format("const void *const inputs[] = {{{}}};", fmt::join(arguments, ", ")),
              fmt::format("return apl_call_entry(ctx, &apl_entries[{}], inputs, out0);", k)});
  }

  const Api& api_;
  const bool bodies_;
  Writer out_;
};

}  // namespace

std::string api_declarations(const Api& api) { return Functions(api, false).all(); }
std::string api_definitions(const Api& api) { return Functions(api, true).all(); }

}  // namespace apl::library
