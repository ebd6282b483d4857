#include "runtime/backends/cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "runtime/backends/cuda/cublas.h"
#include "runtime/backends/cuda/driver.h"
#include "runtime/backends/cuda/heap.h"
#include "runtime/backends/cuda/pool.h"

namespace apl {
namespace {

using cuda::CUdeviceptr;
using cuda::CurrentContext;

CUdeviceptr device_address(const void* data) { return reinterpret_cast<CUdeviceptr>(data); }

// Launches that were recorded.
struct Graph {
  explicit Graph(const cuda::Driver& with) : driver(with) {}
  ~Graph() {
    if (executable) driver.graph_exec_destroy(executable);
    if (graph) driver.graph_destroy(graph);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const cuda::Driver& driver;
  cuda::CUgraph graph = nullptr;
  cuda::CUgraphExec executable = nullptr;
};

class CudaBackend : public Backend {
 public:
  CudaBackend(const cuda::Driver& driver, CudaOptions options) : driver_(driver), options_(std::move(options)) {
    pool_.source = {this, take_memory, give_memory, wait_for_work, cuda::kOutOfMemory, 0};
  }

  // Failures here have no one to go to; the device frees what is left with the context.
  ~CudaBackend() override {
    if (!context_) return;
    {
      CurrentContext current(driver_, context_);
      if (stream_) driver_.stream_synchronise(stream_);
      cublas_.reset();
      apl_pool_close(&pool_);
      if (zeros_ != 0) driver_.free(zeros_);
      if (failed_ != 0) driver_.free(failed_);
      if (page_) driver_.host_free(page_);
      for (cuda::CUevent event : {start_, stop_})
        if (event) driver_.event_destroy(event);
      for (cuda::CUmodule module : modules_) driver_.module_unload(module);
      if (stream_ && !options_.stream) driver_.stream_destroy(stream_);
    }
    driver_.primary_release(device_);
  }

  Status open() {
    int count = 0;
    if (auto ok = driver_.check(driver_.device_count(&count), "counting devices"); !ok) return ok;
    if (options_.device < 0 || options_.device >= count)
      return make_error(Code::unsupported_backend, {},
                        fmt::format("no CUDA device {}; there are {}", options_.device, count));
    if (auto ok = driver_.check(driver_.device_get(&device_, options_.device), "opening the device"); !ok) return ok;
    if (auto ok = driver_.check(driver_.primary_retain(&context_, device_), "making a context"); !ok) return ok;
    CurrentContext current(driver_, context_);
    stream_ = static_cast<cuda::CUstream>(options_.stream);
    if (!stream_)
      if (auto ok = driver_.check(driver_.stream_create(&stream_, cuda::kNonBlocking), "making a stream"); !ok)
        return ok;
    for (cuda::CUevent* event : {&start_, &stop_})
      if (auto ok = driver_.check(driver_.event_create(event, 0), "making an event"); !ok) return ok;
    void* page = nullptr;
    if (auto ok = driver_.check(driver_.host_allocate(&page, sizeof(Page), cuda::kHostMapped), "allocating a page");
        !ok)
      return ok;
    page_ = new (page) Page{};
    constexpr std::size_t kWord = sizeof(std::int32_t);
    const char* marking = "allocating the word that says whether a check failed";
    if (auto ok = driver_.check(driver_.allocate(&failed_, kWord), marking); !ok) return ok;
    return driver_.check(driver_.set_bytes(failed_, 0, kWord, stream_), marking);
  }

  const char* name() const override { return "cuda"; }

  Status load(std::string_view text) override {
    if (text.empty()) return Unit{};
    const auto compiled_for = architecture();
    if (!compiled_for) return compiled_for.error();
    const auto cubin = compile_with_nvrtc(text, *compiled_for, options_);
    if (!cubin) return cubin.error();
    make_heap(std::string(text));
    return load_code(*cubin);
  }

  Status load_code(std::string_view machine_code) override {
    CurrentContext current(driver_, context_);
    cuda::CUmodule module = nullptr;
    if (auto ok = driver_.check(driver_.module_load(&module, machine_code.data()), "loading the kernels"); !ok)
      return ok;
    modules_.push_back(module);
    return Unit{};
  }

  Result<std::string> architecture() const override {
    CurrentContext current(driver_, context_);
    int major = 0, minor = 0;
    const char* asking = "asking for the compute capability";
    if (auto ok = driver_.check(driver_.device_attribute(&major, cuda::kCapabilityMajor, device_), asking); !ok)
      return std::move(ok).error();
    if (auto ok = driver_.check(driver_.device_attribute(&minor, cuda::kCapabilityMinor, device_), asking); !ok)
      return std::move(ok).error();
    // Matrix units' asynchronous products are of this one architecture alone (runtime/device/matrix.h).
    const char* own = major == 9 ? "a" : "";
    return fmt::format("sm_{}{}{}", major, minor, own);
  }

  Result<void*> allocate(std::int64_t bytes, const char* what) override {
    CurrentContext current(driver_, context_);
    std::uint64_t data = 0;
    const int result = apl_pool_allocate(&pool_, bytes, &data);
    if (result == 0) return reinterpret_cast<void*>(data);
    const std::string name = fmt::format("allocating {} bytes for {}", bytes, what ? what : "?");
    if (result == cuda::kOutOfMemory) return driver_.error(result, name);
    return kernel_error(result, name);  // of work that the pool waited for
  }
  Status release(void* data) override {
    if (!data || apl_pool_release(&pool_, device_address(data)) != APL_POOL_UNKNOWN) return Unit{};
    return make_error(Code::bug_internal, {}, "a block of device memory is released that is no allocation");
  }

  Status upload(void* data, const void* host, std::int64_t bytes) override {
    if (bytes <= 0) return Unit{};
    CurrentContext current(driver_, context_);
    return driver_.check(driver_.to_device(device_address(data), host, static_cast<std::size_t>(bytes), stream_),
                         fmt::format("copying {} bytes to the device", bytes));
  }
  Status download(void* host, const void* data, std::int64_t bytes) override {
    if (bytes <= 0) return Unit{};
    CurrentContext current(driver_, context_);
    const bool is_staged = bytes <= kStagedBytes;
    const auto size = static_cast<std::size_t>(bytes);
    if (auto ok = driver_.check(driver_.to_host(is_staged ? page_->staged : host, device_address(data), size, stream_),
                                fmt::format("copying {} bytes to the host", bytes));
        !ok)
      return ok;
    if (auto ok = wait(); !ok) return ok;
    if (is_staged) std::memcpy(host, page_->staged, size);
    return Unit{};
  }
  Status copy(void* to, const void* from, std::int64_t bytes) override {
    if (bytes <= 0) return Unit{};
    CurrentContext current(driver_, context_);
    return driver_.check(
        driver_.copy(device_address(to), device_address(from), static_cast<std::size_t>(bytes), stream_),
        fmt::format("copying {} bytes on the device", bytes));
  }

  Result<void*> zeros(std::int64_t bytes) override {
    CurrentContext current(driver_, context_);
    if (bytes > zero_bytes_) {
      // What runs may still use those that were.
      if (auto ok = wait(); !ok) return std::move(ok).error();
      if (zeros_ != 0) driver_.free(std::exchange(zeros_, 0));
      zero_bytes_ = 0;
      const auto size = static_cast<std::size_t>(bytes);
      const std::string name = fmt::format("allocating {} bytes for what blocks publish", bytes);
      if (auto ok = driver_.check(driver_.allocate(&zeros_, size), name); !ok) return std::move(ok).error();
      if (auto ok = driver_.check(driver_.set_bytes(zeros_, 0, size, stream_), name); !ok) return std::move(ok).error();
      zero_bytes_ = bytes;
    }
    return reinterpret_cast<void*>(zeros_);
  }
  Status launch(const apl_launch& launch) override {
    if (launch.blocks <= 0) return Unit{};
    CurrentContext current(driver_, context_);
    auto kernel = find(launch.kernel);
    if (!kernel) return std::move(kernel).error();
    if (launch.blocks > INT32_MAX)
      return make_error(Code::unsupported_backend, {},
                        fmt::format("kernel {} needs {} blocks, {} at most can be launched", launch.kernel,
                                    launch.blocks, INT32_MAX));
    if (launch.shared_bytes > (*kernel)->most_shared_bytes) {
      if (auto ok = driver_.check(
              driver_.set_function_attribute((*kernel)->function, cuda::kMaxDynamicSharedBytes, launch.shared_bytes),
              fmt::format("asking for {} bytes of shared memory for kernel {}", launch.shared_bytes, launch.kernel));
          !ok)
        return ok;
      (*kernel)->most_shared_bytes = launch.shared_bytes;
    }
    (*kernel)->dynamic_shared_bytes = launch.shared_bytes;
    if (times_launches_) return time_launch((*kernel)->function, launch);
    return launch_once((*kernel)->function, launch);
  }

  Status library_product(const DenseProduct& product) override {
    CurrentContext current(driver_, context_);
    if (!cublas_) {
      auto opened = cuda::Cublas::open(options_.library_folders);
      if (!opened) return std::move(opened).error();
      cublas_ = *std::move(opened);
    }
    return cublas_->multiply(product, stream_);
  }
  std::string library_name() const override { return "cuBLAS"; }

  Status begin_launch_times() override {
    times_launches_ = true;
    launch_microseconds_ = 0;
    return Unit{};
  }
  Result<double> end_launch_times() override {
    times_launches_ = false;
    return launch_microseconds_;
  }

  Status synchronise() override {
    CurrentContext current(driver_, context_);
    return wait();
  }
  bool can_borrow(bool on_device) const override { return on_device; }
  Status set_stream(void* stream) override {
    if (stream == options_.stream) return Unit{};
    CurrentContext current(driver_, context_);
    // Blocks of the pool that were released may still be read on the former stream.
    if (auto waited = wait(); !waited) return waited;
    if (!options_.stream) driver_.stream_destroy(std::exchange(stream_, nullptr));
    options_.stream = stream;
    stream_ = static_cast<cuda::CUstream>(stream);
    if (stream_) return Unit{};
    return driver_.check(driver_.stream_create(&stream_, cuda::kNonBlocking), "making a stream");
  }

  apl_failure* failure() override { return &page_->failure; }
  std::int32_t* failed() override { return reinterpret_cast<std::int32_t*>(failed_); }
  Result<apl_failure> take_failure() override {
    CurrentContext current(driver_, context_);
    if (auto ok = wait(); !ok) return std::move(ok).error();
    const apl_failure taken = std::exchange(page_->failure, apl_failure{});
    if (taken.code == APL_OK) return taken;
    if (auto ok = driver_.check(driver_.set_bytes(failed_, 0, sizeof(std::int32_t), stream_), "forgetting a failure");
        !ok)
      return std::move(ok).error();
    return taken;
  }

  Status start_timer() override {
    CurrentContext current(driver_, context_);
    return driver_.check(driver_.event_record(start_, stream_), "starting the clock");
  }
  Result<double> stop_timer() override {
    CurrentContext current(driver_, context_);
    const char* stopping = "stopping the clock";
    float milliseconds = 0;
    if (auto ok = driver_.check(driver_.event_record(stop_, stream_), stopping); !ok) return std::move(ok).error();
    if (auto ok = driver_.check(driver_.event_synchronise(stop_), stopping); !ok) return std::move(ok).error();
    if (auto ok = driver_.check(driver_.event_elapsed(&milliseconds, start_, stop_), stopping); !ok)
      return std::move(ok).error();
    return static_cast<double>(milliseconds) * 1000;
  }

  std::vector<KernelStats> kernels() const override {
    CurrentContext current(driver_, context_);
    std::vector<KernelStats> all;
    for (const auto& [name, kernel] : kernels_) {
      KernelStats stats;
      stats.name = name;
      stats.dynamic_shared_bytes = kernel.dynamic_shared_bytes;
      driver_.function_attribute(&stats.registers, cuda::kRegisters, kernel.function);
      driver_.function_attribute(&stats.local_bytes, cuda::kLocalBytes, kernel.function);
      driver_.function_attribute(&stats.static_shared_bytes, cuda::kStaticSharedBytes, kernel.function);
      driver_.function_attribute(&stats.max_threads, cuda::kMaxThreadsPerBlock, kernel.function);
      all.push_back(std::move(stats));
    }
    return all;
  }

  apl_device device() const override {
    CurrentContext current(driver_, context_);
    const auto fact = [&](int attribute) { return attribute_of_device(attribute); };
    char name[256] = "";
    driver_.device_name(name, sizeof name, device_);
    constexpr double kKiloHertz = 1e-6, kBitsAByte = 8, kTransfersAClock = 2;
    DeviceFacts facts;
    facts.name = name;
    facts.multiprocessors = fact(cuda::kMultiprocessors);
    facts.block_shared = fact(cuda::kBlockShared);
    facts.multiprocessor_shared = fact(cuda::kMultiprocessorShared);
    facts.multiprocessor_threads = fact(cuda::kMultiprocessorThreads);
    facts.registers = fact(cuda::kMultiprocessorRegisters);
    facts.clock_ghz = fact(cuda::kClockRate) * kKiloHertz;
    facts.memory_gbs =
        fact(cuda::kMemoryClockRate) * kKiloHertz * fact(cuda::kMemoryBusWidth) / kBitsAByte * kTransfersAClock;
    return device_from(facts);
  }

  Result<int> spilled_bytes(const std::string& name) override {
    CurrentContext current(driver_, context_);
    auto kernel = find(name);
    if (!kernel) return std::move(kernel).error();
    int bytes = 0;
    if (auto ok = driver_.check(driver_.function_attribute(&bytes, cuda::kLocalBytes, (*kernel)->function),
                                "asking what kernel " + name + " spills");
        !ok)
      return std::move(ok).error();
    return bytes;
  }

 private:
  // Memory of the host that the device writes to. A failed check is seen without a copy, and few bytes come in one that
  // waits for no pages.
  static constexpr std::int64_t kStagedBytes = 1024;
  struct Page {
    apl_failure failure{};
    char staged[kStagedBytes]{};
  };
  struct Kernel {
    cuda::CUfunction function = nullptr;
    int dynamic_shared_bytes = 0;  // of the last launch
    int most_shared_bytes = 0;     // dynamic ones that a launch can have: for more the kernel must ask
  };

  // 0 where the driver does not say.
  int attribute_of_device(int attribute) const {
    int value = 0;
    return driver_.device_attribute(&value, attribute, device_) == 0 ? value : 0;
  }

  // Room for what kernels of this text allocate. Where it stays too small, a thread that gets no memory says so.
  void make_heap(const std::string& text) const {
    CurrentContext current(driver_, context_);
    const std::size_t wanted = apl_heap_bytes(text.c_str(), attribute_of_device(cuda::kMultiprocessors),
                                              attribute_of_device(cuda::kMultiprocessorThreads));
    apl_grow_heap(wanted, driver_.context_limit, driver_.set_context_limit);
  }

  Status launch_once(cuda::CUfunction function, const apl_launch& launch) {
    return driver_.check(
        driver_.launch(function, static_cast<unsigned>(launch.blocks), 1, 1, static_cast<unsigned>(launch.threads), 1,
                       1, static_cast<unsigned>(launch.shared_bytes), stream_, launch.args, nullptr),
        fmt::format("launching kernel {} with {} blocks of {} threads", launch.kernel, launch.blocks, launch.threads));
  }

  // The median of some rounds of kLaunches, one behind the other.
  Status time_launch(cuda::CUfunction function, const apl_launch& launch) {
    constexpr int kLaunches = 20, kRounds = 7;
    const auto launch_all = [&]() -> Status {
      for (int k = 0; k < kLaunches; ++k)
        if (auto ok = launch_once(function, launch); !ok) return ok;
      return Unit{};
    };
    // The first launch brings the code to the device.
    if (auto ok = launch_once(function, launch); !ok) return ok;
    if (auto ok = wait(); !ok) return ok;
    Graph graph(driver_);
    if (driver_.has_graphs()) {
      constexpr int kOfThisThread = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
      const char* recording = "recording launches";
      if (auto ok = driver_.check(driver_.capture_begin(stream_, kOfThisThread), recording); !ok) return ok;
      auto launched = launch_all();
      auto recorded = driver_.check(driver_.capture_end(stream_, &graph.graph), recording);
      if (!launched) return launched;
      if (!recorded) return recorded;
      if (auto ok = driver_.check(driver_.graph_instantiate(&graph.executable, graph.graph, 0), recording); !ok)
        return ok;
    }
    std::vector<double> times;
    for (int round = -1; round < kRounds; ++round) {
      if (auto ok = start_timer(); !ok) return ok;
      if (auto ok = graph.executable
                        ? driver_.check(driver_.graph_launch(graph.executable, stream_), "launching a graph")
                        : launch_all();
          !ok)
        return ok;
      auto time = stop_timer();
      if (!time) return std::move(time).error();
      if (round >= 0) times.push_back(*time / kLaunches);
    }
    std::ranges::nth_element(times, times.begin() + kRounds / 2);
    launch_microseconds_ += times[kRounds / 2];
    return Unit{};
  }

  Status wait() {
    const int result = driver_.stream_synchronise(stream_);
    if (result == 0) return Unit{};
    return kernel_error(result, "running kernels");
  }
  Diagnostic kernel_error(int result, const std::string& what) const {
    Diagnostic error = driver_.error(result, what);
    error.notes.push_back({"backend emulate finds the line of a kernel's fault", {}});
    return error;
  }

  // Where the pool's memory comes from; the context is current.
  static CudaBackend& of(void* user) { return *static_cast<CudaBackend*>(user); }
  static int take_memory(void* user, std::uint64_t bytes, std::uint64_t* data) {
    CUdeviceptr given = 0;
    const int result = of(user).driver_.allocate(&given, bytes);
    *data = given;
    return result;
  }
  static int give_memory(void* user, std::uint64_t data) { return of(user).driver_.free(data); }
  static int wait_for_work(void* user) { return of(user).driver_.stream_synchronise(of(user).stream_); }

  Result<Kernel*> find(const std::string& name) {
    Kernel& kernel = kernels_[name];
    int result = 0;
    for (std::size_t m = modules_.size(); m-- > 0 && !kernel.function;)
      result = driver_.get_function(&kernel.function, modules_[m], name.c_str());
    if (kernel.function && kernel.most_shared_bytes == 0)
      result = driver_.function_attribute(&kernel.most_shared_bytes, cuda::kMaxDynamicSharedBytes, kernel.function);
    if (kernel.function && result == 0) return &kernel;
    kernels_.erase(name);
    if (modules_.empty()) return make_error(Code::bug_internal, {}, "no kernels are loaded");
    return driver_.error(result, "finding kernel " + name);
  }

  cuda::Driver driver_;
  CudaOptions options_;
  cuda::CUdevice device_ = 0;
  cuda::CUcontext context_ = nullptr;
  std::vector<cuda::CUmodule> modules_;
  cuda::CUstream stream_ = nullptr;
  cuda::CUevent start_ = nullptr, stop_ = nullptr;
  Page* page_ = nullptr;
  std::unique_ptr<cuda::Cublas> cublas_;  // once it was asked for
  bool times_launches_ = false;
  double launch_microseconds_ = 0;
  std::map<std::string, Kernel> kernels_;
  apl_pool pool_{};
  CUdeviceptr failed_ = 0;  // the word that kernels look at (struct apl_context)
  CUdeviceptr zeros_ = 0;
  std::int64_t zero_bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_cuda_backend(CudaOptions options) {
  auto driver = cuda::Driver::open(options.library_folders);
  if (!driver) return std::move(driver).error();
  auto backend = std::make_unique<CudaBackend>(*driver, std::move(options));
  if (auto opened = backend->open(); !opened) return std::move(opened).error();
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace apl
