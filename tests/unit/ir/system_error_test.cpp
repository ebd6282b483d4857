#include "ir/system_error.h"

#include <doctest/doctest.h>

#include <cerrno>

namespace apl {
namespace {

TEST_CASE("an error of the operating system has the code of whoever can mend it") {
  struct Row {
    int error;
    Code code;
    const char* message;
  };
  const Row rows[] = {
      {ENOSPC, Code::machine_io, "cannot write x: No space left on device"},
      {EPIPE, Code::machine_io, "cannot write x: Broken pipe"},
      {EBADF, Code::machine_io, "cannot write x: Bad file descriptor"},
      {EMFILE, Code::machine_resources, "cannot write x: Too many open files"},
      {ENOMEM, Code::machine_resources, "cannot write x: Cannot allocate memory"},
      {ENOENT, Code::command_no_such_file, "cannot write x: No such file or directory"},
      {EISDIR, Code::command_no_such_file, "cannot write x: Is a directory"},
      {EACCES, Code::command_no_such_file, "cannot write x: Permission denied"},
  };
  for (const Row& row : rows) {
    const Diagnostic error = system_error(row.error, "cannot write x");
    CHECK(error.code == row.code);
    CHECK(error.message == row.message);
    CHECK(error.severity == Severity::error);
  }
}

}  // namespace
}  // namespace apl
