#include "aplc/command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>

#include "ir/system_error.h"

namespace aplc {
namespace {

std::string quoted(const std::string& word) {
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace

std::string command_on(const std::string& command, const std::string& file) {
  std::string result;
  std::size_t begin = 0;
  bool found = false;
  for (std::size_t at; (at = command.find("{}", begin)) != std::string::npos; begin = at + 2) {
    result += command.substr(begin, at - begin) + quoted(file);
    found = true;
  }
  result += command.substr(begin);
  return found ? result : result + " " + quoted(file);
}

apl::Result<CommandOutcome> run_command(const std::string& command, double seconds) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return apl::system_error(errno, "a command cannot be started");
  const pid_t child = fork();
  if (child < 0) {
    const int error = errno;
    close(ends[0]);
    close(ends[1]);
    return apl::system_error(error, "a command cannot be started");
  }
  if (child == 0) {
    setpgid(0, 0);
    const int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  setpgid(child, child);
  CommandOutcome outcome;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (char buffer[4096];;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd waiting{ends[0], POLLIN, 0};
    const int ready = left.count() > 0 ? poll(&waiting, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      outcome.timed_out = true;
      kill(-child, SIGKILL);
      break;
    }
    const ssize_t count = read(ends[0], buffer, sizeof buffer);
    if (count <= 0) break;
    constexpr std::size_t kMost = 1 << 20;
    if (outcome.errors.size() < kMost) outcome.errors.append(buffer, static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

}  // namespace aplc
