// The C API: compilers, and passes that callers give them.
#include "capi/apl.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capi/compiler.h"
#include "capi/handles.h"
#include "capi/messages.h"
#include "capi/objects.h"
#include "ir/parse.h"
#include "ir/print.h"

using apl::capi::bad_argument;
using apl::capi::check_given;
using apl::capi::free_handle;
using apl::capi::guarded;
using apl::capi::is_live;
using apl::capi::text_of;

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

}  // extern "C"
