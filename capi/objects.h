// The objects that callers of the C API hold, and the border that nothing is thrown across: errors stay with objects.
#pragma once

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capi/apl.h"
#include "capi/compiler.h"
#include "capi/handles.h"
#include "capi/messages.h"

struct apl_compiler {
  apl::capi::Mark<0x61706c63> mark{};
  apl::capi::Compiler compiler;
  apl::capi::Errors errors;
  void (*sink)(void*, const apl_remark*) = nullptr;
  void* user = nullptr;
};

struct apl_module {
  apl::capi::Mark<0x61706c6d> mark{};
  apl::Module module;
  // What apl_module_entry gave.
  mutable std::optional<apl::capi::Entries> entries;
};

struct apl_program {
  apl::capi::Mark<0x61706c70> mark{};
  apl::Program program;
  apl::capi::Entries entries;
  apl::capi::Errors errors;
  std::mutex mutex;  // of the errors and plans
  std::vector<apl::SparsePlan> plans;
};

struct apl_matrix {
  apl::capi::Mark<0x61706c78> mark{};
  apl::ProgramMatrix matrix;
};

struct apl_array {
  apl::capi::Mark<0x61706c61> mark{};
  std::optional<apl::OwnedValue> owned;
  apl::HostValue host;  // without it
};

struct apl_pass_context {
  apl::capi::Mark<0x61706c74> mark{};
  apl::PassContext* context;
  std::string pass;
  std::optional<apl::Diagnostic> error;
  std::string text;  // of the option that was asked for last
};

namespace apl::capi {

inline char* text_copy(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

// What a function does with arguments that must be there; what went wrong in it is kept in `errors`. `work` gives a
// Status.
template <class Work>
apl_fault guarded(Errors& errors, const Module* module, std::initializer_list<Given> given, Work work) noexcept {
  return errors.collect(module ? module->file : std::string_view(), module ? module->source : std::string_view(),
                        [&]() -> Status {
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

// A text of the module by one of the compiler's functions.
template <class Make>
apl_fault give_text(apl_compiler* compiler, const apl_module* module, char** text, Make make) {
  return guarded(compiler, module, {{"module", module}, {"text", text}}, [&]() -> Status {
    Result<std::string> made = make();
    if (!made) return std::move(made).error();
    *text = text_copy(*made);
    return Unit{};
  });
}

// A text of the caller's, which may be empty.
inline Result<std::string_view> text_of(const char* text, size_t length) {
  if (text == nullptr && length > 0) return bad_argument("`text` is null");
  if (length > PTRDIFF_MAX) return bad_argument(fmt::format("a text of {} bytes", length));
  return std::string_view(text, length);
}

template <class Handle>
void free_handle(Handle* handle) {
  if (is_live(handle)) delete handle;
}

// What an argument of the caller's says, if it can be (values.cpp): command.bad-argument.
Result<BorrowedValue> borrowed(const apl_input& input);
Status check_lists(const apl_input* inputs, std::size_t input_count, apl_array** outputs, std::size_t capacity);
Result<HostCsr> csr_of(const apl_csr& given, bool values);
// Stores as many as there is room for.
Status store(std::vector<std::unique_ptr<apl_array>> made, apl_array** outputs, std::size_t capacity,
             std::size_t* count);

}  // namespace apl::capi
