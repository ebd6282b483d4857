#include "runtime/backends/openmp.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>

#include "runtime/backends/thread_pool.h"
#include "runtime/backends/toolchain.h"

namespace apl {

namespace {

// What gcc makes of the pragmas and calls of generated text.
constexpr std::array kFunctions{"GOMP_parallel",      "omp_in_parallel",     "omp_get_max_threads",
                                "omp_get_thread_num", "omp_set_num_threads", "omp_get_proc_bind"};

std::string_view name_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool is_openmp(std::string_view name) {
  return name.starts_with("libgomp") || name.starts_with("libiomp5") || name.starts_with("libomp.") ||
         name.starts_with("libomp-");
}

// The one that gcc links, which programs share with whoever uses it.
bool is_default(std::string_view name) { return name.starts_with("libgomp.so"); }

bool has_functions(const char* path) {
  void* const handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return false;
  const bool all = std::ranges::all_of(kFunctions, [&](const char* name) { return dlsym(handle, name) != nullptr; });
  dlclose(handle);
  return all;
}

// The process that called a program first; its forked children inherit the number, not the threads. A fact of the
// process, as the runtime's pool is, and so no state of a program.
std::atomic<pid_t> first_caller{0};

}  // namespace

std::string openmp_of_process() {
  std::string found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        const std::string_view name = name_of(info->dlpi_name);
        if (!is_openmp(name) || is_default(name)) return 0;
        *static_cast<std::string*>(result) = info->dlpi_name;
        return 1;
      },
      &found);
  return !found.empty() && has_functions(found.c_str()) ? found : std::string();
}

std::vector<std::string> link_openmp(const std::string& openmp) {
  return {"-nodefaultlibs", "-Wl,--no-as-needed", openmp, "-Wl,--as-needed", "-lm", "-lc", "-lgcc", "-lgcc_s"};
}

void keep_openmp_loaded() {
  for (const char* name : {"libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so"})
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)) dlclose(handle);
}

void share_pool(const SharedObject& object) {
  if (void* const pool = object.symbol("apl_thread_pool")) *static_cast<apl_work_runner**>(pool) = apl_pool_run;
}

ForkedThreads::ForkedThreads(const SharedObject& object) {
  const pid_t me = getpid();
  pid_t first = 0;
  if (first_caller.compare_exchange_strong(first, me) || first == me) return;
  const auto get_threads = object.function<int (*)()>("omp_get_max_threads");
  const auto set_threads = object.function<void (*)(int)>("omp_set_num_threads");
  const auto binding = object.function<int (*)()>("omp_get_proc_bind");
  if (!get_threads || !set_threads || !binding || binding() == 0) return;  // the pool makes threads of the child's own
  threads_ = get_threads();
  set_threads(1);
  set_threads_ = set_threads;
}

ForkedThreads::~ForkedThreads() {
  if (set_threads_) set_threads_(threads_);
}

}  // namespace apl
