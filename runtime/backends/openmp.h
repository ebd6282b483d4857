// The threads that programs for C run on: our own pool's, or those of one of the process's OpenMP runtime libraries,
// which knows how many threads there may be, and runs loops and products itself where it binds threads to cores.
#pragma once

#include <string>
#include <vector>

namespace apl {

class SharedObject;

// The path of an OpenMP runtime that another library of this process brought under a name of its own, as torch's wheel
// does (libgomp-a34b3233.so.1), if it has every function that generated code calls; else empty. Two runtimes may have
// two numbers of threads, and would have two pools.
std::string openmp_of_process();

// Flags after the files that link `openmp`, a path, and not the runtime that the compiler would choose.
std::vector<std::string> link_openmp(const std::string& openmp);

// The threads of an OpenMP runtime outlive the parallel regions that they were made for; unloading the runtime with the
// last program that used it would take the code away under them.
void keep_openmp_loaded();

// Parallel loops and products of `object` run on the process's pool of threads, which all programs share.
void share_pool(const SharedObject& object);

// While it lives, calls of `object` run on one thread if this process was forked from one that called programs and
// OpenMP's threads run them: the runtime's threads are the parent's, and a parallel region would wait for them forever.
class ForkedThreads {
 public:
  explicit ForkedThreads(const SharedObject& object);
  ~ForkedThreads();
  ForkedThreads(const ForkedThreads&) = delete;
  ForkedThreads& operator=(const ForkedThreads&) = delete;

 private:
  void (*set_threads_)(int) = nullptr;
  int threads_ = 0;
};

}  // namespace apl
