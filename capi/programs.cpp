// The C API: programs that are compiled, loaded and called, and the interpreter.
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "capi/apl.h"
#include "capi/compiler.h"
#include "capi/handles.h"
#include "capi/messages.h"
#include "capi/objects.h"
#include "codegen/emit/load.h"

using apl::capi::bad_argument;
using apl::capi::borrowed;
using apl::capi::check_lists;
using apl::capi::csr_of;
using apl::capi::free_handle;
using apl::capi::Given;
using apl::capi::guarded;
using apl::capi::is_live;
using apl::capi::store;
using apl::capi::text_copy;

extern "C" {

apl_fault apl_program_load(apl_compiler* compiler, const apl_module* module, const char* backend,
                           apl_program** program) {
  return guarded(compiler, module, {{"module", module}, {"backend", backend}, {"program", program}},
                 [&]() -> apl::Status {
                   auto loaded = compiler->compiler.load(module->module, backend);
                   if (!loaded) return std::move(loaded).error();
                   apl::capi::Entries entries(loaded->entries());
                   *program = new apl_program{{}, *std::move(loaded), std::move(entries), {}, {}, {}};
                   return apl::Unit{};
                 });
}

void apl_program_free(apl_program* program) { free_handle(program); }

size_t apl_program_error_count(const apl_program* program) { return is_live(program) ? program->errors.size() : 0; }
const apl_diagnostic* apl_program_error(const apl_program* program, size_t k) {
  return is_live(program) ? program->errors.at(k) : nullptr;
}
const char* apl_program_error_text(const apl_program* program) {
  return is_live(program) ? program->errors.text() : "";
}
size_t apl_program_entry_count(const apl_program* program) { return is_live(program) ? program->entries.size() : 0; }
const apl_entry_info* apl_program_entry(const apl_program* program, size_t k) {
  return is_live(program) ? program->entries.at(k) : nullptr;
}

apl_fault apl_program_call(apl_program* program, const char* entry, const apl_input* inputs, size_t input_count,
                           int wait, apl_array** outputs, size_t capacity, size_t* output_count) {
  return guarded(program, {{"entry", entry}}, [&]() -> apl::Status {
    if (auto there = check_lists(inputs, input_count, outputs, capacity); !there) return there;
    std::vector<apl::BorrowedValue> values;
    for (std::size_t k = 0; k < input_count; ++k) {
      auto value = borrowed(inputs[k]);
      if (!value) return std::move(value).error();
      values.push_back(*std::move(value));
    }
    auto results = program->program.call_in_place(entry, values, wait != 0);
    if (!results) return std::move(results).error();
    std::vector<std::unique_ptr<apl_array>> made;
    for (apl::OwnedValue& result : *results)
      made.push_back(std::make_unique<apl_array>(apl_array{{}, std::move(result), {}}));
    return store(std::move(made), outputs, capacity, output_count);
  });
}

apl_fault apl_program_wait(apl_program* program) {
  return guarded(program, {}, [&] { return program->program.wait(); });
}

apl_fault apl_program_set_stream(apl_program* program, void* stream) {
  return guarded(program, {}, [&] { return program->program.set_stream(stream); });
}

double apl_program_microseconds(const apl_program* program) {
  return is_live(program) ? program->program.last_microseconds() : 0;
}

apl_fault apl_interpret(apl_compiler* compiler, const apl_module* module, const char* entry, const apl_input* inputs,
                        size_t input_count, apl_array** outputs, size_t capacity, size_t* output_count) {
  return guarded(compiler, module, {{"module", module}, {"entry", entry}}, [&]() -> apl::Status {
    if (auto there = check_lists(inputs, input_count, outputs, capacity); !there) return there;
    std::vector<apl::HostValue> values;
    for (std::size_t k = 0; k < input_count; ++k) {
      auto value = borrowed(inputs[k]);
      if (!value) return std::move(value).error();
      if (value->matrix || value->on_device) return bad_argument("the interpreter takes dense arrays on the host");
      apl::HostValue host = apl::HostValue::zeros(value->type, value->shape);
      if (!host.data.empty()) std::memcpy(host.data.data(), value->data, host.data.size());
      values.push_back(std::move(host));
    }
    auto results = compiler->compiler.interpret(module->module, entry, values);
    if (!results) return std::move(results).error();
    std::vector<std::unique_ptr<apl_array>> made;
    for (apl::HostValue& result : *results)
      made.push_back(std::make_unique<apl_array>(apl_array{{}, std::nullopt, std::move(result)}));
    return store(std::move(made), outputs, capacity, output_count);
  });
}

apl_fault apl_program_matrix(apl_program* program, const char* entry, const char* operand, const apl_csr* matrix,
                             apl_matrix** made) {
  return guarded(program, {{"entry", entry}, {"operand", operand}, {"matrix", matrix}, {"made", made}},
                 [&]() -> apl::Status {
                   auto csr = csr_of(*matrix, true);
                   if (!csr) return std::move(csr).error();
                   auto result = program->program.make_matrix(entry, operand, *std::move(csr));
                   if (!result) return std::move(result).error();
                   *made = new apl_matrix{{}, *std::move(result)};
                   return apl::Unit{};
                 });
}

void apl_matrix_free(apl_matrix* matrix) { free_handle(matrix); }

apl_fault apl_program_set_plan(apl_program* program, const char* operand, const char* plan) {
  return guarded(program, {{"operand", operand}}, [&]() -> apl::Status {
    std::vector<apl::SparsePlan> plans;
    {
      const std::lock_guard turn(program->mutex);
      plans = program->plans;
    }
    std::erase_if(plans, [&](const apl::SparsePlan& other) { return other.operand == operand; });
    if (plan) plans.push_back({operand, fmt::format("of `{}`", operand), plan});
    if (auto set = program->program.set_sparse_plans(plans); !set) return set;
    const std::lock_guard turn(program->mutex);
    program->plans = std::move(plans);
    return apl::Unit{};
  });
}

apl_fault apl_sparse_search(apl_compiler* compiler, const apl_csr* matrix, const char* operation, int64_t width,
                            const char* device, double seconds, char** plan) {
  const std::initializer_list<Given> given = {
      {"matrix", matrix}, {"operation", operation}, {"device", device}, {"plan", plan}};
  return guarded(compiler, nullptr, given, [&]() -> apl::Status {
    auto csr = csr_of(*matrix, false);
    if (!csr) return std::move(csr).error();
    const apl::CsrPattern pattern{csr->rows, csr->columns, std::move(csr->row_start), std::move(csr->column), {}};
    auto found = apl::capi::search_plan(pattern, operation, width, apl::byte_size(csr->values.type), device, seconds);
    if (!found) return std::move(found).error();
    *plan = text_copy(*found);
    return apl::Unit{};
  });
}

}  // extern "C"
