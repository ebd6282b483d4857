#include "aplc/test/children.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <list>
#include <optional>

namespace aplc {
namespace {

using SteadyClock = std::chrono::steady_clock;

volatile std::sig_atomic_t interrupted = 0;
void interrupt(int) { interrupted = 1; }

// While one lives, Ctrl-C and SIGTERM only set a flag.
class Interruptible {
 public:
  Interruptible() {
    interrupted = 0;
    struct sigaction action {};
    action.sa_handler = interrupt;
    sigaction(SIGINT, &action, &old_int_);
    sigaction(SIGTERM, &action, &old_term_);
  }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible() {
    sigaction(SIGINT, &old_int_, nullptr);
    sigaction(SIGTERM, &old_term_, nullptr);
  }

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

struct Running {
  Child child;
  pid_t pid = -1;
  int pipe = -1;
  std::string text;  // received, the last line not yet whole
  std::string printed;
  SteadyClock::time_point start;
  SteadyClock::time_point since;  // the clock has run, or stood, without a break
  double counted = 0;             // seconds that it ran before

  double seconds_since() const { return std::chrono::duration<double>(SteadyClock::now() - since).count(); }
  double left(const ChildLimits& limits) const {
    return child.clock_stands ? limits.standing_seconds - seconds_since() : limits.seconds - counted - seconds_since();
  }
  double used() const { return child.clock_stands ? seconds_since() : counted + seconds_since(); }
  void set_clock(Clock clock) {
    if (clock == Clock::unchanged) return;
    if (!child.clock_stands) counted += seconds_since();
    if (clock == Clock::restarts) counted = 0;
    child.clock_stands = clock == Clock::stands;
    since = SteadyClock::now();
  }
};

void write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) _exit(1);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

[[noreturn]] void be_child(const Child& child, int pipe, const std::string& printed, const ChildLimits& limits) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  const int output = open(printed.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int nothing = open("/dev/null", O_RDONLY);
  if (output >= 0) dup2(output, STDOUT_FILENO), dup2(output, STDERR_FILENO);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (limits.gibibytes > 0) {
    const auto bytes = static_cast<rlim_t>(limits.gibibytes * 0x1p30);
    const rlimit memory{bytes, bytes};
    setrlimit(RLIMIT_AS, &memory);
  }
  int status = 0;
  try {
    child.body([pipe](std::string_view line) { write_all(pipe, std::string(line) + "\n"); });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "exception: %s\n", error.what());
    status = 1;
  }
  std::fflush(nullptr);
  _exit(status);
}

std::optional<Running> start(Child child, std::size_t number, const ChildLimits& limits) {
  const auto now = SteadyClock::now();
  Running running{std::move(child), -1, -1, "", fmt::format("{}/child{}.log", limits.folder, number), now, now};
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  std::fflush(nullptr);
  running.pid = fork();
  if (running.pid == 0) {
    close(ends[0]);
    be_child(running.child, ends[1], running.printed, limits);
  }
  close(ends[1]);
  running.pipe = ends[0];
  if (running.pid < 0) {
    close(ends[0]);
    return std::nullopt;
  }
  setpgid(running.pid, running.pid);  // whoever comes first
  return running;
}

std::string tail(const std::string& file) {
  constexpr std::size_t kMost = 2000;
  std::ifstream in(file, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (text.size() > kMost) text = "..." + text.substr(text.size() - kMost);
  return text;
}

// Everything of it is gone afterwards, also the compilers it had started.
int stop(Running& running) {
  kill(-running.pid, SIGKILL);
  int status = 0;
  while (waitpid(running.pid, &status, 0) < 0 && errno == EINTR) {
  }
  close(running.pipe);
  return status;
}

void finish(Running& running, bool timed_out) {
  int status = 0;
  if (timed_out) {
    status = stop(running);
  } else {
    while (waitpid(running.pid, &status, 0) < 0 && errno == EINTR) {
    }
    kill(-running.pid, SIGKILL);
    close(running.pipe);
  }
  Outcome outcome;
  outcome.seconds = std::chrono::duration<double>(SteadyClock::now() - running.start).count();
  if (timed_out) {
    outcome.kind = Outcome::Kind::timed_out;
    outcome.message =
        fmt::format("no end after {:.0f} s{}", running.used(),
                    running.child.clock_stands ? ", not counting runs: while compiling or comparing" : "");
  } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    outcome.kind = Outcome::Kind::crashed;
    outcome.message =
        WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : fmt::format("exit status {}", WEXITSTATUS(status));
    const std::string printed = tail(running.printed);
    if (!printed.empty()) outcome.message += ": " + printed;
  }
  std::remove(running.printed.c_str());
  running.child.end(outcome);
}

// False at the end of the pipe.
bool receive(Running& running) {
  std::array<char, 1 << 16> buffer{};
  const ssize_t count = read(running.pipe, buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) return false;
  running.text.append(buffer.data(), static_cast<std::size_t>(count));
  std::size_t from = 0;
  for (std::size_t end = running.text.find('\n'); end != std::string::npos; end = running.text.find('\n', from)) {
    running.set_clock(running.child.line(std::string_view(running.text).substr(from, end - from)));
    from = end + 1;
  }
  running.text.erase(0, from);
  return true;
}

}  // namespace

bool run_children(std::deque<Child>& waiting, const ChildLimits& limits) {
  const Interruptible interruptible;
  std::list<Running> running;
  std::size_t number = 0;
  while (!interrupted && (!waiting.empty() || !running.empty())) {
    while (!waiting.empty() && running.size() < std::max<std::size_t>(limits.concurrency, 1)) {
      Child child = std::move(waiting.front());
      waiting.pop_front();
      auto end = child.end;
      if (auto started = start(std::move(child), number++, limits)) {
        running.push_back(std::move(*started));
      } else {
        end({Outcome::Kind::crashed, fmt::format("cannot start a process: {}", std::strerror(errno)), 0});
      }
    }
    std::vector<pollfd> files;
    double left = limits.seconds;
    for (const Running& one : running) {
      files.push_back({one.pipe, POLLIN, 0});
      left = std::min(left, one.left(limits));
    }
    const int wait = static_cast<int>(std::clamp(left, 0.0, 3600.0) * 1000) + 1;
    if (poll(files.data(), files.size(), wait) < 0 && errno != EINTR) break;
    if (interrupted) break;
    std::size_t k = 0;
    for (auto one = running.begin(); one != running.end(); ++k) {
      bool ended = files[k].revents != 0 && !receive(*one);
      const bool timed_out = !ended && one->left(limits) < 0;
      if (ended || timed_out) {
        Running done = std::move(*one);
        one = running.erase(one);
        finish(done, timed_out);
      } else {
        ++one;
      }
    }
  }
  for (Running& one : running) stop(one), std::remove(one.printed.c_str());
  return !interrupted;
}

}  // namespace aplc
