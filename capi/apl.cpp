// The C API over capi/compiler.h: objects, errors that stay with them, and a border that nothing is thrown across.
#include "capi/apl.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capi/compiler.h"
#include "capi/handles.h"
#include "capi/messages.h"
#include "capi/walk.h"
#include "codegen/emit/load.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"

using apl::capi::bad_argument;
using apl::capi::check_given;
using apl::capi::Errors;
using apl::capi::Given;
using apl::capi::is_live;
using apl::capi::Mark;

struct apl_compiler {
  Mark<0x61706c63> mark{};
  apl::capi::Compiler compiler;
  Errors errors;
  void (*sink)(void*, const apl_remark*) = nullptr;
  void* user = nullptr;
};

struct apl_module {
  Mark<0x61706c6d> mark{};
  apl::Module module;
  // What apl_module_entry gave.
  mutable std::optional<apl::capi::Entries> entries;
};

struct apl_program {
  Mark<0x61706c70> mark{};
  apl::Program program;
  apl::capi::Entries entries;
  Errors errors;
  std::mutex mutex;  // of the errors and plans
  std::vector<apl::SparsePlan> plans;
};

struct apl_matrix {
  Mark<0x61706c78> mark{};
  apl::ProgramMatrix matrix;
};

struct apl_array {
  Mark<0x61706c61> mark{};
  std::optional<apl::OwnedValue> owned;
  apl::HostValue host;  // without it
};

struct apl_pass_context {
  Mark<0x61706c74> mark{};
  apl::PassContext* context;
  std::string pass;
  std::optional<apl::Diagnostic> error;
  std::string text;  // of the option that was asked for last
};

namespace {

char* text_copy(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

// What a function does with arguments that must be there; what went wrong in it is kept in `errors`. `work` gives a
// Status.
template <class Work>
apl_fault guarded(Errors& errors, const apl::Module* module, std::initializer_list<Given> given, Work work) noexcept {
  return errors.collect(module ? module->file : std::string_view(), module ? module->source : std::string_view(),
                        [&]() -> apl::Status {
                          if (auto there = check_given(given); !there) return there;
                          return work();
                        });
}

// Without a compiler there is nowhere to say what is wrong.
template <class Work>
apl_fault guarded(apl_compiler* compiler, const apl_module* module, std::initializer_list<Given> given,
                  Work work) noexcept {
  if (!is_live(compiler)) return APL_FAULT_COMMAND_LINE;
  return guarded(compiler->errors, is_live(module) ? &module->module : nullptr, given, work);
}

// With the program's lock held while errors are stored, not while it runs.
template <class Work>
apl_fault guarded(apl_program* program, std::initializer_list<Given> given, Work work) noexcept {
  if (!is_live(program)) return APL_FAULT_COMMAND_LINE;
  Errors errors;
  const apl_fault fault = guarded(errors, nullptr, given, work);
  if (fault != APL_FINE) {
    const std::lock_guard turn(program->mutex);
    program->errors = std::move(errors);
  }
  return fault;
}

// A text of the caller's, which may be empty.
apl::Result<std::string_view> text_of(const char* text, size_t length) {
  if (text == nullptr && length > 0) return bad_argument("`text` is null");
  if (length > PTRDIFF_MAX) return bad_argument(fmt::format("a text of {} bytes", length));
  return std::string_view(text, length);
}

template <class Handle>
void free_handle(Handle* handle) {
  if (is_live(handle)) delete handle;
}

apl::Result<apl::BorrowedValue> borrowed(const apl_input& input) {
  if (input.size < sizeof(apl_input)) return bad_argument("apl_input::size is smaller than the structure");
  apl::BorrowedValue value;
  if (input.matrix) {
    if (!is_live(input.matrix)) return bad_argument("`matrix` was freed or is no such object");
    value.matrix = input.matrix->matrix;
    return value;
  }
  if (input.type < APL_TYPE_I8 || input.type > APL_TYPE_UNIT) return bad_argument("no scalar type has this number");
  value.type = static_cast<apl::ScalarType>(input.type);
  std::int64_t count = 1;
  if (input.rank > apl::kMaxRank)
    return bad_argument(fmt::format("an array has {} dims at most, not {}", apl::kMaxRank, input.rank));
  if (input.rank > 0 && input.shape == nullptr) return bad_argument("an array without a shape");
  for (std::size_t k = 0; k < input.rank; ++k) {
    if (input.shape[k] < 0) return bad_argument(fmt::format("an array's dim {} has size {}", k, input.shape[k]));
    if (__builtin_mul_overflow(count, input.shape[k], &count))
      return bad_argument("an array of more than 2^63 elements");
  }
  if (std::int64_t bytes = 0; __builtin_mul_overflow(count, apl::byte_size(value.type), &bytes))
    return bad_argument("an array of more than 2^63 bytes");
  value.shape.assign(input.shape, input.shape + input.rank);
  value.data = input.data;
  value.on_device = input.on_device != 0;
  if (input.data == nullptr && count > 0 && apl::byte_size(value.type) > 0)
    return bad_argument("an argument without data");
  return value;
}

apl::Status check_lists(const apl_input* inputs, size_t input_count, apl_array** outputs, size_t capacity) {
  if (inputs == nullptr && input_count > 0) return bad_argument("`inputs` is null");
  if (outputs == nullptr && capacity > 0) return bad_argument("`outputs` is null");
  return apl::Unit{};
}

// Stores as many as there is room for.
apl::Status store(std::vector<std::unique_ptr<apl_array>> made, apl_array** outputs, std::size_t capacity,
                  std::size_t* count) {
  if (count) *count = made.size();
  for (std::size_t k = 0; k < made.size() && k < capacity; ++k) outputs[k] = made[k].release();
  return apl::Unit{};
}

apl::Result<apl::HostCsr> csr_of(const apl_csr& given, bool values) {
  if (given.size < sizeof(apl_csr)) return bad_argument("apl_csr::size is smaller than the structure");
  if (given.rows < 0 || given.columns < 0 || given.row_start == nullptr)
    return bad_argument("a matrix has sizes of 0 or more, and starts of rows");
  if (given.rows >= std::int64_t{1} << 59) return bad_argument(fmt::format("a matrix of {} rows", given.rows));
  for (std::int64_t row = 0; row < given.rows; ++row)
    if (given.row_start[row + 1] < given.row_start[row])
      return bad_argument(fmt::format("row {} of a matrix ends before it starts", row));
  const std::int64_t nonzeros = given.row_start[given.rows];
  if (nonzeros < 0 || (nonzeros > 0 && given.column == nullptr) || (values && nonzeros > 0 && given.values == nullptr))
    return bad_argument("a matrix has a column and a value for each non-zero");
  if (given.type < APL_TYPE_I8 || given.type > APL_TYPE_BOOL) return bad_argument("no scalar type has this number");
  apl::HostCsr matrix;
  matrix.rows = given.rows;
  matrix.columns = given.columns;
  matrix.row_start.assign(given.row_start, given.row_start + given.rows + 1);
  matrix.column.assign(given.column, given.column + nonzeros);
  matrix.values = apl::HostValue::zeros(static_cast<apl::ScalarType>(given.type), {nonzeros});
  if (values && !matrix.values.data.empty())
    std::memcpy(matrix.values.data.data(), given.values, matrix.values.data.size());
  return matrix;
}

// A text of the module by one of the compiler's functions.
template <class Make>
apl_fault give_text(apl_compiler* compiler, const apl_module* module, char** text, Make make) {
  return guarded(compiler, module, {{"module", module}, {"text", text}}, [&]() -> apl::Status {
    apl::Result<std::string> made = make();
    if (!made) return std::move(made).error();
    *text = text_copy(*made);
    return apl::Unit{};
  });
}

}  // namespace

extern "C" {

const char* apl_version(void) { return APL_VERSION; }

void apl_text_free(char* text) { std::free(text); }

// -- A compiler

apl_compiler* apl_compiler_new(void) {
  try {
    auto made = std::make_unique<apl_compiler>();
    return made.release();
  } catch (...) {
    return nullptr;
  }
}

void apl_compiler_free(apl_compiler* compiler) { free_handle(compiler); }

size_t apl_compiler_error_count(const apl_compiler* compiler) {
  return is_live(compiler) ? compiler->errors.size() : 0;
}
const apl_diagnostic* apl_compiler_error(const apl_compiler* compiler, size_t k) {
  return is_live(compiler) ? compiler->errors.at(k) : nullptr;
}
const char* apl_compiler_error_text(const apl_compiler* compiler) {
  return is_live(compiler) ? compiler->errors.text() : "";
}

void apl_compiler_on_remark(apl_compiler* compiler, void (*sink)(void*, const apl_remark*), void* user) {
  if (!is_live(compiler)) return;
  compiler->sink = sink;
  compiler->user = user;
  compiler->compiler.remarks = nullptr;
  if (sink)
    compiler->compiler.remarks = [compiler](const apl::Remark& remark) {
      const apl::capi::RemarkView view(remark);
      compiler->sink(compiler->user, &view.remark);
    };
}

apl_fault apl_compiler_set(apl_compiler* compiler, const char* name, const char* value) {
  return guarded(compiler, nullptr, {{"name", name}, {"value", value}},
                 [&] { return compiler->compiler.set(name, value); });
}

static apl_fault set_number(apl_compiler* compiler, std::map<std::string, std::int64_t> apl::capi::Compiler::*numbers,
                            const char* name, int64_t value) {
  return guarded(compiler, nullptr, {{"name", name}}, [&]() -> apl::Status {
    if (value < 0) return bad_argument(fmt::format("{} is at least 1, not {}", name, value));
    if (value == 0) {
      (compiler->compiler.*numbers).erase(name);
    } else {
      (compiler->compiler.*numbers)[name] = value;
    }
    return apl::Unit{};
  });
}

apl_fault apl_compiler_set_parameter(apl_compiler* compiler, const char* name, int64_t value) {
  return set_number(compiler, &apl::capi::Compiler::parameters, name, value);
}

apl_fault apl_compiler_set_size(apl_compiler* compiler, const char* name, int64_t value) {
  return set_number(compiler, &apl::capi::Compiler::sizes, name, value);
}

apl_fault apl_compiler_add_pass(apl_compiler* compiler, const apl_pass* pass) {
  return guarded(compiler, nullptr, {{"pass", pass}}, [&]() -> apl::Status {
    if (pass->size < sizeof(apl_pass)) return bad_argument("apl_pass::size is smaller than the structure");
    if (!pass->name || !pass->run) return bad_argument("a pass has a name and a function");
    if (compiler->compiler.registry.find(pass->name))
      return bad_argument(fmt::format("there is a pass `{}`", pass->name));
    auto info = apl::capi::pass_info(*pass);
    if (!info) return std::move(info).error();
    info->run = [name = info->name, run = pass->run, user = pass->user](
                    apl::Module& module, apl::PassContext& context) -> apl::Result<apl::Change> {
      apl_pass_context given{{}, &context, name, {}, {}};
      apl_module theirs{{}, module, {}};
      const apl_fault fault = run(user, &theirs, &given);
      if (given.error) return *std::move(given.error);
      if (fault != APL_FINE) return bad_argument("the pass failed and did not say why");
      const bool changed = apl::print(theirs.module, {.locations = true}) != apl::print(module, {.locations = true});
      module = std::move(theirs.module);
      return changed ? apl::Change::yes : apl::Change::no;
    };
    compiler->compiler.registry.add(*std::move(info));
    return apl::Unit{};
  });
}

apl_fault apl_compiler_insert(apl_compiler* compiler, const char* insertion) {
  return guarded(compiler, nullptr, {{"insertion", insertion}},
                 [&] { return apl::insert_pipeline(insertion, compiler->compiler.registry); });
}

apl_fault apl_compiler_load_plugin(apl_compiler* compiler, const char* path) {
  return guarded(compiler, nullptr, {{"path", path}},
                 [&] { return apl::load_plugin(path, compiler->compiler.registry); });
}

size_t apl_compiler_pass_count(const apl_compiler* compiler) {
  return is_live(compiler) ? compiler->compiler.registry.passes().size() : 0;
}
const char* apl_compiler_pass_name(const apl_compiler* compiler, size_t k) {
  if (!is_live(compiler)) return nullptr;
  const auto& passes = compiler->compiler.registry.passes();
  return k < passes.size() ? passes[k].name.c_str() : nullptr;
}
const char* apl_compiler_pass_summary(const apl_compiler* compiler, size_t k) {
  if (!is_live(compiler)) return nullptr;
  const auto& passes = compiler->compiler.registry.passes();
  return k < passes.size() ? passes[k].summary.c_str() : nullptr;
}

const char* apl_pass_option(apl_pass_context* context, const char* name) {
  if (!is_live(context) || name == nullptr) return nullptr;
  try {
    const auto found = context->context->options.find(name);
    if (found == context->context->options.end()) return nullptr;
    context->text = apl::capi::option_text(found->second);
    return context->text.c_str();
  } catch (...) {
    return nullptr;
  }
}

void apl_pass_remark(apl_pass_context* context, const apl_remark* remark) {
  if (!is_live(context) || remark == nullptr) return;
  try {
    apl::Remark made = apl::capi::remark_of(*remark);
    made.pass = context->pass;
    context->context->remark(made);
  } catch (...) {  // a remark that there is no memory for
  }
}

apl_fault apl_pass_fail(apl_pass_context* context, const char* message) {
  if (!is_live(context)) return APL_FAULT_COMMAND_LINE;
  try {
    context->error = bad_argument(message ? message : "the pass failed and did not say why");
  } catch (...) {
    return APL_FAULT_MACHINE;
  }
  return APL_FAULT_COMMAND_LINE;
}

apl_fault apl_pass_replace(apl_pass_context* context, apl_module* module, const char* text, size_t length) {
  if (!is_live(context)) return APL_FAULT_COMMAND_LINE;
  try {
    const auto refused = [&](const apl::Diagnostic& error) {
      context->error = error;
      return apl::capi::fault_of(error);
    };
    if (auto there = check_given({{"module", module}}); !there) return refused(there.error());
    const auto given = text_of(text, length);
    if (!given) return refused(given.error());
    auto parsed = apl::parse_module(*given, module->module.file);
    if (!parsed) return refused(parsed.error());
    parsed->source = module->module.source;
    module->module = *std::move(parsed);
    module->entries.reset();
    return APL_FINE;
  } catch (...) {
    return APL_FAULT_MACHINE;
  }
}

// -- Modules

// A text by the compiler's function for it.
static apl_fault parse_text(apl_compiler* compiler, const char* name, const char* text, size_t length,
                            apl_module** module, decltype(&apl::capi::Compiler::parse_ir) parse) {
  if (!is_live(compiler)) return APL_FAULT_COMMAND_LINE;
  const auto view = text_of(text, length);
  return compiler->errors.collect(name ? name : "", view ? *view : std::string_view(), [&]() -> apl::Status {
    if (auto there = check_given({{"name", name}, {"module", module}}); !there) return there;
    if (!view) return view.error();
    auto parsed = (compiler->compiler.*parse)(name, std::string(*view), compiler->errors.sink());
    if (!parsed) return compiler->errors.failed();
    *module = new apl_module{{}, *std::move(parsed), {}};
    return apl::Unit{};
  });
}

apl_fault apl_parse_source(apl_compiler* compiler, const char* name, const char* text, size_t length,
                           apl_module** module) {
  return parse_text(compiler, name, text, length, module, &apl::capi::Compiler::parse_source);
}

apl_fault apl_parse_ir(apl_compiler* compiler, const char* name, const char* text, size_t length, apl_module** module) {
  return parse_text(compiler, name, text, length, module, &apl::capi::Compiler::parse_ir);
}

apl_fault apl_module_copy(apl_compiler* compiler, const apl_module* module, apl_module** copy) {
  return guarded(compiler, module, {{"module", module}, {"copy", copy}}, [&]() -> apl::Status {
    *copy = new apl_module{{}, module->module, {}};
    return apl::Unit{};
  });
}

void apl_module_free(apl_module* module) { free_handle(module); }

const char* apl_module_stage(const apl_module* module) {
  return is_live(module) ? apl::to_text(module->module.stage).data() : "";
}

apl_fault apl_module_print(apl_compiler* compiler, const apl_module* module, int locations, char** text) {
  return guarded(compiler, module, {{"module", module}, {"text", text}}, [&]() -> apl::Status {
    *text = text_copy(apl::print(module->module, {.locations = locations != 0}));
    return apl::Unit{};
  });
}

apl_fault apl_module_replace(apl_compiler* compiler, apl_module* module, const char* text, size_t length) {
  if (!is_live(compiler)) return APL_FAULT_COMMAND_LINE;
  const auto view = text_of(text, length);
  return compiler->errors.collect(is_live(module) ? std::string_view(module->module.file) : "",
                                  view ? *view : std::string_view(), [&]() -> apl::Status {
                                    if (auto there = check_given({{"module", module}}); !there) return there;
                                    if (!view) return view.error();
                                    auto parsed = compiler->compiler.parse_ir(module->module.file, std::string(*view),
                                                                              compiler->errors.sink());
                                    if (!parsed) return compiler->errors.failed();
                                    parsed->source = module->module.source;
                                    module->module = *std::move(parsed);
                                    module->entries.reset();
                                    return apl::Unit{};
                                  });
}

apl_fault apl_module_verify(apl_compiler* compiler, const apl_module* module) {
  return guarded(compiler, module, {{"module", module}}, [&]() -> apl::Status {
    const std::vector<apl::Diagnostic> broken = apl::verify(module->module);
    for (const apl::Diagnostic& diagnostic : broken) compiler->errors.sink()(diagnostic);
    return broken.empty() ? apl::Status(apl::Unit{}) : compiler->errors.failed();
  });
}

apl_fault apl_module_walk(apl_compiler* compiler, const apl_module* module, int (*visit)(void*, const apl_statement*),
                          void* user) {
  return guarded(compiler, module, {{"module", module}, {"visit", visit}}, [&]() -> apl::Status {
    const apl::Module kept = module->module;  // whatever is done to the module meanwhile
    apl::capi::walk(kept, [&](const apl::Function& function, const apl::Stm& statement, unsigned depth) {
      const std::string text = apl::print(statement, function);
      const apl::Location& at = statement.location;
      const apl_statement given{function.name.c_str(),
                                apl::op_name(statement.op).data(),
                                text.c_str(),
                                depth,
                                {kept.file.c_str(), at.line, at.column, at.end_line, at.end_column}};
      return visit(user, &given) == 0;
    });
    return apl::Unit{};
  });
}

apl_fault apl_run_pipeline(apl_compiler* compiler, apl_module* module, const char* pipeline) {
  return guarded(compiler, module, {{"module", module}, {"pipeline", pipeline}}, [&] {
    module->entries.reset();
    return compiler->compiler.run(module->module, pipeline);
  });
}

apl_fault apl_standard_pipeline(apl_compiler* compiler, const char* backend, const char* stage, char** text) {
  return guarded(compiler, nullptr, {{"backend", backend}, {"stage", stage}, {"text", text}}, [&]() -> apl::Status {
    auto pipeline = compiler->compiler.standard_pipeline(backend, stage);
    if (!pipeline) return std::move(pipeline).error();
    *text = text_copy(*pipeline);
    return apl::Unit{};
  });
}

size_t apl_module_entry_count(const apl_module* module) {
  std::size_t count = 0;
  if (!is_live(module)) return count;
  for (const apl::FunctionPtr& function : module->module.functions) count += function->entry.has_value();
  return count;
}

const apl_entry_info* apl_module_entry(const apl_module* module, size_t k) {
  if (!is_live(module)) return nullptr;
  try {
    if (!module->entries) module->entries.emplace(apl::entry_types(module->module));
    return module->entries->at(k);
  } catch (...) {
    return nullptr;
  }
}

// -- Texts

apl_fault apl_emit_program(apl_compiler* compiler, const apl_module* module, const char* dialect, char** text) {
  return give_text(compiler, module, text, [&]() -> apl::Result<std::string> {
    if (auto there = check_given({{"dialect", dialect}}); !there) return there.error();
    return compiler->compiler.emit_program(module->module, dialect);
  });
}

apl_fault apl_emit_kernel(apl_compiler* compiler, const apl_module* module, const char* dialect, const char* entry,
                          char** text) {
  return give_text(compiler, module, text, [&]() -> apl::Result<std::string> {
    if (auto there = check_given({{"dialect", dialect}}); !there) return there.error();
    return compiler->compiler.emit_kernel(module->module, dialect, entry ? entry : "");
  });
}

apl_fault apl_emit_library(apl_compiler* compiler, const apl_module* module, const char* dialect, const char* name,
                           char** source, char** header, char** manifest) {
  const std::initializer_list<Given> given = {{"module", module}, {"dialect", dialect}, {"name", name},
                                              {"source", source}, {"header", header},   {"manifest", manifest}};
  return guarded(compiler, module, given, [&]() -> apl::Status {
    auto library = compiler->compiler.emit_library(module->module, dialect, name);
    if (!library) return std::move(library).error();
    const auto make = [](const std::string& text) {
      return std::unique_ptr<char, decltype(&std::free)>(text_copy(text), &std::free);
    };
    auto a = make(library->source), b = make(library->header), c = make(library->manifest);
    *source = a.release();
    *header = b.release();
    *manifest = c.release();
    return apl::Unit{};
  });
}

apl_fault apl_explain(apl_compiler* compiler, const apl_module* module, char** text) {
  return give_text(compiler, module, text, [&] { return compiler->compiler.explain(module->module); });
}

apl_fault apl_report(apl_compiler* compiler, const apl_module* module, char** html) {
  return give_text(compiler, module, html, [&] { return compiler->compiler.report(module->module); });
}

// -- Running

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

void apl_array_free(apl_array* array) { free_handle(array); }
apl_scalar_type apl_array_type(const apl_array* array) {
  if (!is_live(array)) return APL_TYPE_UNIT;
  return static_cast<apl_scalar_type>(array->owned ? array->owned->type() : array->host.type);
}
size_t apl_array_rank(const apl_array* array) {
  if (!is_live(array)) return 0;
  return array->owned ? array->owned->shape().size() : array->host.shape.size();
}
const int64_t* apl_array_shape(const apl_array* array) {
  if (!is_live(array)) return nullptr;
  return array->owned ? array->owned->shape().data() : array->host.shape.data();
}
void* apl_array_data(const apl_array* array) {
  if (!is_live(array)) return nullptr;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): the handle is not what it holds
  return array->owned ? array->owned->data() : const_cast<std::byte*>(array->host.data.data());
}
int apl_array_on_device(const apl_array* array) {
  return is_live(array) && array->owned && array->owned->on_device() ? 1 : 0;
}
size_t apl_array_bytes(const apl_array* array) {
  if (!is_live(array)) return 0;
  if (!array->owned) return array->host.data.size();
  auto bytes = static_cast<std::size_t>(apl::byte_size(array->owned->type()));
  for (const std::int64_t size : array->owned->shape()) bytes *= static_cast<std::size_t>(size);
  return bytes;
}

apl_fault apl_array_read(const apl_array* array, void* host) {
  Errors errors;  // an array has no place for them
  return guarded(errors, nullptr, {{"array", array}}, [&]() -> apl::Status {
    if (host == nullptr && apl_array_bytes(array) > 0) return bad_argument("`host` is null");
    if (!array->owned) {
      if (!array->host.data.empty()) std::memcpy(host, array->host.data.data(), array->host.data.size());
      return apl::Unit{};
    }
    auto value = array->owned->fetch();
    if (!value) return std::move(value).error();
    if (!value->data.empty()) std::memcpy(host, value->data.data(), value->data.size());
    return apl::Unit{};
  });
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
