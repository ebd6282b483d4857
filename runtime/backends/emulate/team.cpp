#include "runtime/backends/emulate/team.h"

#include <sys/mman.h>
#include <unistd.h>

#include <boost/context/detail/fcontext.hpp>

#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define APL_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define APL_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef APL_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace apl::emulate {

namespace {

// The address sanitizer must be told which stack the program is on. Without it these do nothing.
struct StackRange {
  const void* bottom = nullptr;
  std::size_t bytes = 0;
};
#ifdef APL_ADDRESS_SANITIZER
// `here` keeps what belongs to the stack that is left; null if it is left for good.
void leave_stack(void** here, StackRange to) { __sanitizer_start_switch_fiber(here, to.bottom, to.bytes); }
void enter_stack(void* here, StackRange* from) {
  __sanitizer_finish_switch_fiber(here, from ? &from->bottom : nullptr, from ? &from->bytes : nullptr);
}
void forget_frames(StackRange stack) { __asan_unpoison_memory_region(stack.bottom, stack.bytes); }
#else
void leave_stack(void**, StackRange) {}
void enter_stack(void*, StackRange*) {}
void forget_frames(StackRange) {}
#endif

namespace context = boost::context::detail;

// A kernel's private arrays live here. Only pages that are touched cost memory.
constexpr std::size_t kStackBytes = 256 * 1024;
// Stacks begin at different places of their pages: else the frames of all threads would want the same few sets of a
// cache.
constexpr std::size_t kColours = 16, kColourBytes = 192;

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

class Stack {
 public:
  explicit Stack(std::size_t number) : unused_(number % kColours * kColourBytes) {
    void* pages =
        mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) return;
    pages_ = pages;
    // The lowest page faults: a kernel that needs more stack must not write into another's.
    mprotect(pages_, page_bytes(), PROT_NONE);
  }
  ~Stack() {
    if (pages_) munmap(pages_, kStackBytes);
  }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  bool is_there() const { return pages_ != nullptr; }
  void* top() const { return static_cast<char*>(pages_) + kStackBytes - unused_; }
  std::size_t bytes() const { return kStackBytes - unused_; }
  StackRange range() const { return {static_cast<char*>(pages_) + page_bytes(), kStackBytes - page_bytes()}; }

 private:
  void* pages_ = nullptr;
  std::size_t unused_;  // at the top
};

}  // namespace

struct Team::Fiber {
  explicit Fiber(std::size_t number) : stack(number) {}

  Stack stack;
  context::fcontext_t resume = nullptr;
  State state = State::ended;
  void* sanitizer = nullptr;
};

struct Team::Scheduler {
  context::fcontext_t resume = nullptr;
  StackRange stack;
  void* sanitizer = nullptr;
};

struct Team::Switch {
  static void main(context::transfer_t from) {
    Team& team = *static_cast<Team*>(from.data);
    enter_stack(nullptr, &team.scheduler_->stack);
    team.scheduler_->resume = from.fctx;
    team.body_();
    team.running_->state = State::ended;
    leave_stack(nullptr, team.scheduler_->stack);
    context::jump_fcontext(team.scheduler_->resume, nullptr);
  }
};

Team::Team() : scheduler_(std::make_unique<Scheduler>()) {}
Team::~Team() = default;

bool Team::start(int threads, std::function<void()> body) {
  body_ = std::move(body);
  size_ = threads;
  while (fibers_.size() < static_cast<std::size_t>(threads)) {
    auto fiber = std::make_unique<Fiber>(fibers_.size());
    if (!fiber->stack.is_there()) return false;
    fibers_.push_back(std::move(fiber));
  }
  for (int i = 0; i < threads; ++i) {
    Fiber& fiber = *fibers_[static_cast<std::size_t>(i)];
    if (fiber.state == State::waiting) forget_frames(fiber.stack.range());
    fiber.resume = context::make_fcontext(fiber.stack.top(), fiber.stack.bytes(), &Switch::main);
    fiber.state = State::waiting;
  }
  return true;
}

Team::State Team::state(int thread) const { return fibers_[static_cast<std::size_t>(thread)]->state; }

void Team::resume(int thread) {
  Fiber& fiber = *fibers_[static_cast<std::size_t>(thread)];
  running_ = &fiber;
  leave_stack(&scheduler_->sanitizer, fiber.stack.range());
  fiber.resume = context::jump_fcontext(fiber.resume, this).fctx;
  enter_stack(scheduler_->sanitizer, nullptr);
}

void Team::suspend() {
  Fiber& fiber = *running_;
  leave_stack(&fiber.sanitizer, scheduler_->stack);
  scheduler_->resume = context::jump_fcontext(scheduler_->resume, nullptr).fctx;
  enter_stack(fiber.sanitizer, &scheduler_->stack);
}

}  // namespace apl::emulate
