#include "aplc/kernel_compilers.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <memory>

#include "aplc/driver.h"
#include "ir/system_error.h"
#include "runtime/backends/cuda.h"

namespace aplc {
namespace {

bool send_bytes(int to, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = send(to, data, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool receive_bytes(int from, char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = recv(from, data, size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool send_text(int to, const std::string& text) {
  const std::uint64_t size = text.size();
  return send_bytes(to, reinterpret_cast<const char*>(&size), sizeof size) && send_bytes(to, text.data(), size);
}

bool receive_text(int from, std::string& text) {
  std::uint64_t size = 0;
  if (!receive_bytes(from, reinterpret_cast<char*>(&size), sizeof size)) return false;
  text.resize(size);
  return receive_bytes(from, text.data(), size);
}

// Compiles what comes until nothing comes any more. An answer is `y` and the code, or `n` and the compiler's words.
[[noreturn]] void work(int socket) {
  apl::CudaOptions options;
  options.workplace.cache = std::make_shared<apl::ObjectCache>(cache_folder());
  options.has_lines = false;
  std::string architecture, text;
  while (receive_text(socket, architecture) && receive_text(socket, text)) {
    const auto code = apl::compile_with_nvrtc(text, architecture, options);
    if (!send_text(socket, code ? "y" : "n") || !send_text(socket, code ? *code : code.error().message)) break;
  }
  _exit(0);
}

}  // namespace

apl::Result<KernelCompilers> KernelCompilers::start(int count) {
  KernelCompilers compilers;
  for (int k = 0; k < count; ++k) {
    int ends[2];
    const char* what = "cannot start a compiler";
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return apl::system_error(errno, what);
    const pid_t process = fork();
    if (process == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      // Else the others would not see that the parent has closed theirs.
      for (const Worker& other : compilers.workers_) close(other.socket);
      close(ends[0]);
      work(ends[1]);
    }
    const int error = errno;
    close(ends[1]);
    if (process < 0) {
      close(ends[0]);
      return apl::system_error(error, what);
    }
    compilers.workers_.push_back({process, ends[0]});
  }
  return compilers;
}

KernelCompilers::~KernelCompilers() {
  for (const Worker& worker : workers_) close(worker.socket);
  for (const Worker& worker : workers_)
    while (waitpid(worker.process, nullptr, 0) < 0 && errno == EINTR) continue;
}

apl::Result<std::string> KernelCompilers::compile(int worker, const std::string& text,
                                                  const std::string& architecture) {
  const int socket = workers_[static_cast<std::size_t>(worker)].socket;
  std::string answer, code;
  if (!send_text(socket, architecture) || !send_text(socket, text) || !receive_text(socket, answer) ||
      !receive_text(socket, code))
    return apl::make_error(apl::Code::machine_resources, {}, "a process that compiles kernels has ended");
  if (answer == "y") return code;
  return apl::make_error(apl::Code::bug_internal, {}, code);
}

}  // namespace aplc
