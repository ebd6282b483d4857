#include "ir/system_error.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace apl {
namespace {

Code code_of(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EIO:
    case EPIPE:
    case EBADF:
    case EFBIG:
    case ENXIO:
    case ESTALE: return Code::machine_io;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN: return Code::machine_resources;
    default: return Code::command_no_such_file;
  }
}

}  // namespace

Diagnostic system_error(int error, std::string_view what) {
  return make_error(code_of(error), {}, fmt::format("{}: {}", what, std::generic_category().message(error)));
}

}  // namespace apl
