#include "tests/random/child.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <utility>

namespace apl::random_tests {

namespace {

using ChildClock = std::chrono::steady_clock;

// Messages from the child: a kind, then fields that end with zeros.
void write_all(int file, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(file, text.data() + done, text.size() - done);
    if (n <= 0) std::_Exit(3);
    done += static_cast<std::size_t>(n);
  }
}

[[noreturn]] void run_child(int file, const std::function<void(const Send&)>& work) {
  ::setpgid(0, 0);  // the compilers it starts end with it
  work([file](const Message& message) {
    std::string all = fmt::format("{}{}", message.kind, message.number);
    all += '\0' + message.where + '\0' + message.text + '\0';
    write_all(file, all);
  });
  std::_Exit(0);
}

}  // namespace

std::vector<Message> in_child(const std::function<void(const Send&)>& work, int patience_s,
                              const std::function<bool()>& stop) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    run_child(ends[1], work);
  }
  ::close(ends[1]);
  std::vector<Message> messages;
  std::string text;
  Message begun;
  bool hangs = false;
  auto last = ChildClock::now();
  for (;;) {
    pollfd waits{ends[0], POLLIN, 0};
    const int ready = ::poll(&waits, 1, 200);
    if (stop()) break;
    // A compilation is of many programs.
    const bool compiling = begun.where.ends_with("compiling");
    const std::chrono::seconds patience(patience_s * (compiling ? 10 : 1));
    if (ready <= 0) {
      if (ChildClock::now() - last < patience) continue;
      hangs = true;
      break;
    }
    std::array<char, 4096> buffer{};
    const ssize_t n = ::read(ends[0], buffer.data(), buffer.size());
    if (n <= 0) break;
    last = ChildClock::now();
    text.append(buffer.data(), static_cast<std::size_t>(n));
    for (;;) {
      const std::size_t a = text.find('\0'), b = a == std::string::npos ? a : text.find('\0', a + 1);
      const std::size_t c = b == std::string::npos ? b : text.find('\0', b + 1);
      if (c == std::string::npos) break;
      Message message{text[0], std::strtoull(text.c_str() + 1, nullptr, 10), text.substr(a + 1, b - a - 1),
                      text.substr(b + 1, c - b - 1)};
      if (message.kind == 'b') {
        begun = std::move(message);
      } else {
        messages.push_back(std::move(message));
      }
      text.erase(0, c + 1);
    }
  }
  ::close(ends[0]);
  if (hangs || stop()) ::kill(-child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (stop()) return messages;
  if (hangs) {
    messages.push_back({'f', begun.number, "hangs in " + begun.where, ""});
  } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    messages.push_back({'f', begun.number, "crashes in " + begun.where,
                        WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                            : fmt::format("exit code {}", WEXITSTATUS(status))});
  }
  return messages;
}

}  // namespace apl::random_tests
