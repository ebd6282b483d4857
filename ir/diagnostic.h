// Diagnostics, remarks and Result<T>: how every part of the library speaks to its caller.
// The library never prints: it returns a Diagnostic or hands it to a sink that the caller gave.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace apl {

// A location in a source file. Lines and columns count from 1, columns in bytes; line 0 means "no location".
// The range is inclusive: [line:column, end_line:end_column]. What was inlined into another function knows by which
// call: `call` counts in Module::calls from 1, and 0 means "no call" (ir/call_table.h).
struct Location {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t end_line = 0;
  std::uint32_t end_column = 0;
  std::uint32_t call = 0;

  explicit operator bool() const { return line != 0; }
  bool operator==(const Location&) const = default;
};

// Whose fault it is; decides aplc's exit code (2, 64, 3, 71, 70).
enum class Fault : std::uint8_t { program, command_line, limitation, machine, bug };

enum class Severity : std::uint8_t { error, warning, note };

// The stable codes, one line each in ir/diagnostics.def, e.g. Code::type_size_mismatch.
enum class Code : std::uint16_t {
#define APL_DIAGNOSTIC(name, text, fault, summary) name,
#include "ir/diagnostics.def"
#undef APL_DIAGNOSTIC
};

// "type.size-mismatch" for Code::type_size_mismatch.
std::string_view code_text(Code code);
Fault code_fault(Code code);
std::string_view code_summary(Code code);

struct Note {
  std::string message;
  Location location;
};

struct Diagnostic {
  Severity severity = Severity::error;
  Code code{};
  std::string message;
  Location location;
  std::vector<Note> notes;
  std::string hint;  // empty unless it is surely right
  std::string file;  // empty: the file being compiled
};

using DiagnosticSink = std::function<void(const Diagnostic&)>;

// `file.fut:3:8: error: message [code]`, then the source line with a caret range, then the notes.
// `source` is the whole text of the file and may be empty. Every line ends in a newline.
std::string render(const Diagnostic& diagnostic, std::string_view file, std::string_view source);

// A value or the diagnostic that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}           // NOLINT(google-explicit-constructor)
  Result(Diagnostic error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return state_.index() == 0; }
  const T& operator*() const& { return std::get<0>(state_); }
  T& operator*() & { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  const T* operator->() const { return &std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  const Diagnostic& error() const& { return std::get<1>(state_); }
  Diagnostic&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Diagnostic> state_;
};

struct Unit {};
using Status = Result<Unit>;

Diagnostic make_error(Code code, Location location, std::string message);
// The note that an error in a called function has for the call.
Note called_from(Location call);

// What a pass did, did not do, or found out (LLVM's sense of the word).
enum class RemarkKind : std::uint8_t { applied, missed, analysis };

struct Remark {
  RemarkKind kind = RemarkKind::applied;
  std::string pass;  // "tile-contraction"
  std::string code;  // stable within the pass: "operand-variant-to-all"
  Location location;
  std::string function;
  std::string message;
  std::vector<std::pair<std::string, std::string>> facts;  // key=value, in order
  std::string suggestion;                                  // what change would alter the outcome; may be empty
};

using RemarkSink = std::function<void(const Remark&)>;

// `file.fut:3:8: remark: message {key=value, ...} [tile-contraction:code]`, the suggestion in a line of its own.
// No newline at the end.
std::string render(const Remark& remark, std::string_view file);

}  // namespace apl
