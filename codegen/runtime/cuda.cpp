#include "codegen/runtime/cuda.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <utility>

#include "codegen/runtime/cuda/driver.h"

namespace apl {
namespace {

using cuda::CUdeviceptr;
using cuda::CurrentContext;

CUdeviceptr device_address(const void* data) { return reinterpret_cast<CUdeviceptr>(data); }

class CudaBackend : public Backend {
 public:
  CudaBackend(const cuda::Driver& driver, CudaOptions options) : driver_(driver), options_(std::move(options)) {}

  // Failures here have no one to go to; the device frees what is left with the context.
  ~CudaBackend() override {
    if (!context_) return;
    {
      CurrentContext current(driver_, context_);
      if (stream_) driver_.stream_synchronise(stream_);
      for (const auto& [data, size] : live_) driver_.free(data);
      for (const auto& [size, data] : free_) driver_.free(data);
      if (failure_) driver_.free(failure_);
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
    if (auto ok = driver_.check(driver_.allocate(&failure_, sizeof(apl_failure)), "allocating the failure cell"); !ok)
      return ok;
    return clear_failure();
  }

  const char* name() const override { return "cuda"; }

  Status load(std::string_view text) override {
    if (text.empty()) return Unit{};
    CurrentContext current(driver_, context_);
    int major = 0, minor = 0;
    const char* asking = "asking for the compute capability";
    if (auto ok = driver_.check(driver_.device_attribute(&major, cuda::kCapabilityMajor, device_), asking); !ok)
      return ok;
    if (auto ok = driver_.check(driver_.device_attribute(&minor, cuda::kCapabilityMinor, device_), asking); !ok)
      return ok;
    auto cubin = compile_with_nvrtc(text, fmt::format("sm_{}{}", major, minor), options_);
    if (!cubin) return std::move(cubin).error();
    cuda::CUmodule module = nullptr;
    if (auto ok = driver_.check(driver_.module_load(&module, cubin->data()), "loading the kernels"); !ok) return ok;
    modules_.push_back(module);
    return Unit{};
  }

  // Blocks are kept for the next allocation of their size: all work is on one stream, so reuse needs no waiting, and a
  // repeated call allocates nothing.
  Result<void*> allocate(std::int64_t bytes, const char* what) override {
    const std::string name = fmt::format("allocating {} bytes for {}", bytes, what ? what : "?");
    if (bytes < 0) return driver_.error(cuda::kOutOfMemory, name);
    const std::size_t size = bytes > 0 ? static_cast<std::size_t>(bytes) : 1;  // an address even for nothing
    CUdeviceptr data = 0;
    if (auto kept = free_.find(size); kept != free_.end()) {
      data = kept->second;
      free_.erase(kept);
    } else {
      CurrentContext current(driver_, context_);
      int result = driver_.allocate(&data, size);
      if (result == cuda::kOutOfMemory && !free_.empty()) {
        if (auto ok = free_kept(); !ok) return std::move(ok).error();
        result = driver_.allocate(&data, size);
      }
      if (result != 0) return driver_.error(result, name);
    }
    live_.emplace(data, size);
    return reinterpret_cast<void*>(data);
  }
  Status release(void* data) override {
    if (!data) return Unit{};
    auto known = live_.find(device_address(data));
    if (known == live_.end())
      return make_error(Code::bug_internal, {}, "a block of device memory is released that is no allocation");
    free_.emplace(known->second, known->first);
    live_.erase(known);
    return Unit{};
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
    if (auto ok = driver_.check(driver_.to_host(host, device_address(data), static_cast<std::size_t>(bytes), stream_),
                                fmt::format("copying {} bytes to the host", bytes));
        !ok)
      return ok;
    return wait();
  }
  Status copy(void* to, const void* from, std::int64_t bytes) override {
    if (bytes <= 0) return Unit{};
    CurrentContext current(driver_, context_);
    return driver_.check(
        driver_.copy(device_address(to), device_address(from), static_cast<std::size_t>(bytes), stream_),
        fmt::format("copying {} bytes on the device", bytes));
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
    // Only above this size must a kernel ask.
    constexpr int kUsualSharedBytes = 48 * 1024;
    if (launch.shared_bytes > kUsualSharedBytes && launch.shared_bytes > (*kernel)->dynamic_shared_bytes)
      if (auto ok = driver_.check(
              driver_.set_function_attribute((*kernel)->function, cuda::kMaxDynamicSharedBytes, launch.shared_bytes),
              fmt::format("asking for {} bytes of shared memory for kernel {}", launch.shared_bytes, launch.kernel));
          !ok)
        return ok;
    (*kernel)->dynamic_shared_bytes = launch.shared_bytes;
    return driver_.check(
        driver_.launch((*kernel)->function, static_cast<unsigned>(launch.blocks), 1, 1,
                       static_cast<unsigned>(launch.threads), 1, 1, static_cast<unsigned>(launch.shared_bytes), stream_,
                       launch.args, nullptr),
        fmt::format("launching kernel {} with {} blocks of {} threads", launch.kernel, launch.blocks, launch.threads));
  }

  Status synchronise() override {
    CurrentContext current(driver_, context_);
    return wait();
  }

  apl_failure* failure() override { return reinterpret_cast<apl_failure*>(failure_); }
  Result<apl_failure> take_failure() override {
    apl_failure taken{};
    if (auto ok = download(&taken, failure(), sizeof taken); !ok) return std::move(ok).error();
    if (taken.code == APL_OK) return taken;
    CurrentContext current(driver_, context_);
    if (auto ok = clear_failure(); !ok) return std::move(ok).error();
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
    const auto fact = [&](int attribute) {
      int value = 0;
      return driver_.device_attribute(&value, attribute, device_) == 0 ? value : 0;
    };
    char name[256] = "";
    driver_.device_name(name, sizeof name, device_);
    constexpr double kKiloHertz = 1e-6, kBitsAByte = 8, kTransfersAClock = 2;
    DeviceFacts facts;
    facts.name = name;
    facts.processors = fact(cuda::kProcessors);
    facts.block_shared = fact(cuda::kBlockShared);
    facts.processor_shared = fact(cuda::kProcessorShared);
    facts.processor_threads = fact(cuda::kProcessorThreads);
    facts.registers = fact(cuda::kProcessorRegisters);
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
  struct Kernel {
    cuda::CUfunction function = nullptr;
    int dynamic_shared_bytes = 0;
  };

  Status wait() {
    auto ok = driver_.check(driver_.stream_synchronise(stream_), "running kernels");
    if (ok) return ok;
    Diagnostic error = std::move(ok).error();
    error.notes.push_back({"backend emulate finds the line of a kernel's fault", {}});
    return error;
  }
  Status clear_failure() {
    return driver_.check(driver_.set_bytes(failure_, 0, sizeof(apl_failure), stream_), "clearing the failure cell");
  }
  Status free_kept() {
    if (auto ok = wait(); !ok) return ok;
    for (const auto& [size, data] : free_)
      if (auto ok = driver_.check(driver_.free(data), fmt::format("freeing {} bytes", size)); !ok) return ok;
    free_.clear();
    return Unit{};
  }

  Result<Kernel*> find(const std::string& name) {
    Kernel& kernel = kernels_[name];
    int result = 0;
    for (std::size_t m = modules_.size(); m-- > 0 && !kernel.function;)
      result = driver_.get_function(&kernel.function, modules_[m], name.c_str());
    if (kernel.function) return &kernel;
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
  CUdeviceptr failure_ = 0;
  std::map<std::string, Kernel> kernels_;
  std::map<CUdeviceptr, std::size_t> live_;
  std::multimap<std::size_t, CUdeviceptr> free_;
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
