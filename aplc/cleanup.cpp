#include "aplc/cleanup.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace aplc {
namespace {

constexpr std::array kEndings{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGPIPE};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::array<int, 0> kCrashes{};  // the sanitizer reports them
#else
constexpr std::array kCrashes{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#endif

// Read by the handler, so of a fixed size and without locks.
struct Slot {
  std::atomic<const char*> path{nullptr};
  std::atomic<pid_t> owner{0};  // children have copies of what is not theirs
};
std::array<Slot, 16> slots;

// The form of what getdents64 gives.
struct FolderEntry {
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[1];
};

// Calls nothing that a signal handler may not.
void remove_tree(int parent, const char* name, int depth) {
  constexpr int kDeepest = 16, kTries = 4;
  if (unlinkat(parent, name, 0) == 0 || (errno != EISDIR && errno != EPERM) || depth > kDeepest) return;
  // Somebody may still write into it.
  for (int k = 0; k < kTries && unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT; ++k) {
    const int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) return;
    alignas(FolderEntry) char buffer[2048];
    for (;;) {
      const long bytes = syscall(SYS_getdents64, folder, buffer, sizeof buffer);
      if (bytes <= 0) break;
      for (long at = 0; at < bytes;) {
        const auto* entry = reinterpret_cast<const FolderEntry*>(buffer + at);
        at += entry->length;
        if (std::strcmp(entry->name, ".") != 0 && std::strcmp(entry->name, "..") != 0)
          remove_tree(folder, entry->name, depth + 1);
      }
    }
    close(folder);
  }
}

// What a crash says, ready to be written.
std::array<char, 512> crash_text;
std::atomic<std::size_t> crash_bytes{0};

void report_crash(int signal) {
  if (std::find(kCrashes.begin(), kCrashes.end(), signal) == kCrashes.end()) return;
  const std::size_t bytes = crash_bytes;
  // Nothing can be done about a standard error that is closed.
  if (bytes > 0 && write(STDERR_FILENO, crash_text.data(), bytes) < 0) return;
}

void end_by(int signal) {
  report_crash(signal);
  for (Slot& slot : slots)
    if (const char* path = slot.path; path && slot.owner == getpid()) remove_tree(AT_FDCWD, path, 0);
  // The handler was reset when it was called: this is the end, with the status that the signal gives.
  raise(signal);
}

}  // namespace

RemovedBySignals::RemovedBySignals(const std::string& path) : path_(std::make_unique<std::string>(path)) {
  for (Slot& slot : slots) {
    const char* nothing = nullptr;
    if (!slot.path.compare_exchange_strong(nothing, path_->c_str())) continue;
    slot.owner = getpid();
    return;
  }
}

RemovedBySignals::~RemovedBySignals() {
  if (!path_) return;
  for (Slot& slot : slots) {
    const char* mine = path_->c_str();
    if (slot.path.compare_exchange_strong(mine, nullptr)) return;
  }
}

struct SignalsWait::Mask {
  sigset_t set;
};

SignalsWait::SignalsWait() : before_(std::make_unique<Mask>()) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kEndings) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, &before_->set);
}

SignalsWait::~SignalsWait() { pthread_sigmask(SIG_SETMASK, &before_->set, nullptr); }

apl::Result<WorkFolder> WorkFolder::make() {
  const char* parent = std::getenv("TMPDIR");
  const SignalsWait wait;
  auto folder = apl::TemporaryFolder::make(parent && *parent ? parent : "/tmp");
  if (!folder) return std::move(folder).error();
  return WorkFolder(std::move(*folder));
}

void name_pass_for_crashes(const std::string& name) {
  crash_bytes = 0;
  if (name.empty()) return;
  const std::string text =
      "error: pass '" + name.substr(0, 128) +
      "' crashed [bug.internal]\n"
      "hint: --reproducer=FILE keeps the module before the pass, and the command that replays it\n";
  std::copy(text.begin(), text.end(), crash_text.begin());
  crash_bytes = text.size();
}

void handle_signals() {
  // A stack that overflowed is of no use.
  static std::array<char, 1 << 16> stack;
  const stack_t other{stack.data(), 0, stack.size()};
  sigaltstack(&other, nullptr);
  const auto handle = [](int signal) {
    struct sigaction action {
    }, before{};
    action.sa_handler = end_by;
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_NODEFER | SA_ONSTACK;
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL) sigaction(signal, &action, nullptr);
  };
  for (const int signal : kEndings) handle(signal);
  for (const int signal : kCrashes) handle(signal);
}

}  // namespace aplc
