// Everything that commands write goes through here: standard output, messages, files.
#pragma once

#include <fmt/core.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "aplc/cleanup.h"
#include "ir/diagnostic.h"

namespace aplc {

// To standard output. Whether it took all of it is known at the end: finish_output.
void write_out(std::string_view text);
// What was written so far is seen now.
void flush_out();
// To standard error, as far as that takes it.
void write_error(std::string_view text);

template <class... Arguments>
void print_out(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write_out(fmt::format(format, std::forward<Arguments>(arguments)...));
}
template <class... Arguments>
void print_error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write_error(fmt::format(format, std::forward<Arguments>(arguments)...));
}

// `aplc: error: ...` on standard error; the exit code for it.
int report(const apl::Diagnostic& error);

// Before anything else: standard files that are closed are opened as such that fail, so that no other file gets their
// numbers.
void open_standard_files();
// At the end of a command that ended with `exit`: that code, or kMachine with a message where standard output could not
// take all.
int finish_output(int exit);

// A file that this command reads: it is not overwritten.
void note_input(const std::string& name);

enum class Inputs : std::uint8_t { kept, overwritten };

// A file that appears whole or not at all: what is written goes to another one beside it, which no other process has,
// and which takes its name in the end. Where there is a file already it must be writable and no input; its mode and
// owner are kept, and links to it. Devices and pipes are written to as they are.
class OutputFile {
 public:
  // Codes command.bad-argument, and those of system_error.
  static apl::Result<OutputFile> open(const std::string& name, Inputs inputs = Inputs::kept);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  // Where it is until then, for programs that write it.
  const std::string& path() const { return path_; }
  apl::Status write(std::string_view text);
  // With `executable` it may be run by whoever may read it.
  apl::Status finish(bool executable = false);

 private:
  OutputFile() = default;
  apl::Status open_directly();
  apl::Status failed(int error) const;

  std::string name_, target_, path_;  // as given; without links; the file that is written
  mode_t mode_ = 0;
  bool is_direct_ = false;  // path_ is target_
  int file_ = -1;
  std::optional<RemovedBySignals> removed_;  // not if it is direct
};

// Whether it could be written, before long work for it. Nothing is asked of an empty name. `-` is standard output,
// which then has nothing else: what write_out gets afterwards goes to standard error.
apl::Status check_output(const std::string& name, Inputs inputs = Inputs::kept);
apl::Status write_file(const std::string& name, std::string_view text, Inputs inputs = Inputs::kept);
// To the end of a file, which is made where there is none.
apl::Status append_file(const std::string& name, std::string_view text);
// To `name`, or to standard output if it is empty or `-`; what fails is reported. The exit code.
int emit(const std::string& name, std::string_view text);

}  // namespace aplc
