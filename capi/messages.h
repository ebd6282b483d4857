// Diagnostics, remarks, entries and passes as structures of C.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "capi/apl.h"
#include "ir/module.h"
#include "passes/pass.h"
#include "passes/plugin.h"
#include "runtime/program/program.h"

namespace apl::capi {

apl_fault fault_of(const Diagnostic& diagnostic);

// What went wrong in one call. Pointers into it stay until the next.
class Errors {
 public:
  Errors() = default;
  Errors(Errors&&) = default;
  Errors& operator=(Errors&&) = default;

  std::size_t size() const { return static_cast<std::size_t>(views_.size()) + (no_memory_ ? 1 : 0); }
  const apl_diagnostic* at(std::size_t k) const;
  const char* text() const;

  // While `collect` runs.
  DiagnosticSink sink();
  // Of work whose errors went to the sink.
  static Status failed();

  // Forgets what was, and does `work`, which gives a Status. Nothing is thrown.
  template <class Work>
  apl_fault collect(std::string_view file, std::string_view source, Work work) noexcept {
    try {
      begin(file, source);
      const Status status = work();
      return end(status ? nullptr : &status.error());
    } catch (...) {
      return caught();
    }
  }

 private:
  struct View {
    Diagnostic diagnostic;
    std::string file, code;
    std::vector<const char*> notes;
    std::vector<apl_place> note_places;
    apl_diagnostic view{};
  };
  void begin(std::string_view file, std::string_view source);
  apl_fault end(const Diagnostic* error);
  apl_fault caught() noexcept;
  void add(const Diagnostic& diagnostic);

  std::string file_, source_, text_;
  std::deque<View> views_;
  bool no_memory_ = false;
};

// A remark for as long as this lasts.
struct RemarkView {
  explicit RemarkView(const Remark& from);
  RemarkView(const RemarkView&) = delete;
  RemarkView& operator=(const RemarkView&) = delete;
  std::vector<const char*> names, values;
  apl_remark remark{};
};
Remark remark_of(const apl_remark& remark);

// Entries, which stay where they are.
class Entries {
 public:
  explicit Entries(const std::vector<EntryType>& types);
  std::size_t size() const { return entries_.size(); }
  const apl_entry_info* at(std::size_t k) const { return k < entries_.size() ? &entries_[k].info : nullptr; }

 private:
  struct Entry {
    EntryType type;
    std::vector<apl_param> params;
    std::vector<apl_value_type> inputs, outputs;
    std::vector<const char*> results;
    apl_entry_info info{};
  };
  std::deque<Entry> entries_;
};

// Without its function.
Result<PassInfo> pass_info(const apl_pass& pass);
std::string option_text(const OptionValue& value);

}  // namespace apl::capi
