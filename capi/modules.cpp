// The C API: modules, and the texts that are made of them.
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "capi/apl.h"
#include "capi/compiler.h"
#include "capi/handles.h"
#include "capi/objects.h"
#include "capi/walk.h"
#include "codegen/emit/load.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"

using apl::capi::check_given;
using apl::capi::free_handle;
using apl::capi::give_text;
using apl::capi::Given;
using apl::capi::guarded;
using apl::capi::is_live;
using apl::capi::text_copy;
using apl::capi::text_of;

extern "C" {

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
  for (const apl::FunctionPtr& function : module->module.functions) count += function->is_entry();
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

}  // extern "C"
