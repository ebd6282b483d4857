// A thread is the portable way to a stack of a given size that debuggers and sanitizers understand. The caller waits
// for it, so nothing runs at the same time.
#include "frontend/lower/large_stack.h"

#include <pthread.h>

#include <exception>

namespace apl::frontend {

namespace {

struct Task {
  const std::function<void()>& work;
  std::exception_ptr thrown;
};

void* run(void* argument) {
  auto& task = *static_cast<Task*>(argument);
  try {
    task.work();
  } catch (...) {
    task.thrown = std::current_exception();
  }
  return nullptr;
}

}  // namespace

bool run_on_stack(std::size_t bytes, const std::function<void()>& work) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  Task task{work, nullptr};
  pthread_t thread{};
  const bool started =
      pthread_attr_setstacksize(&attributes, bytes) == 0 && pthread_create(&thread, &attributes, &run, &task) == 0;
  pthread_attr_destroy(&attributes);
  if (!started) return false;
  pthread_join(thread, nullptr);
  if (task.thrown) std::rethrow_exception(task.thrown);
  return true;
}

}  // namespace apl::frontend
