// The threads of a block as fibers.
//
// On Boost.Context's lowest level, because a fiber that met a fault is left where it is and its stack reused:
// unwinding it would run an exception through the kernel's frames, which belong to another compiler's runtime.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace apl::emulate {

class Team {
 public:
  Team();
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // New fibers, each of which will run `body`; those that were there are dropped where they stand. False if there is
  // no memory for their stacks.
  bool start(int threads, std::function<void()> body);
  int size() const { return size_; }

  enum class State { waiting, ended };
  State state(int thread) const;
  void resume(int thread);  // until it suspends or ends
  void suspend();           // called on a fiber: back to resume()

 private:
  struct Fiber;
  struct Scheduler;  // where resume() goes on
  struct Switch;     // what Boost's function type needs to know

  std::vector<std::unique_ptr<Fiber>> fibers_;
  int size_ = 0;
  std::function<void()> body_;
  Fiber* running_ = nullptr;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace apl::emulate
