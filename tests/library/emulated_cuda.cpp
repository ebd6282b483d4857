// The CUDA driver, NVRTC and cuBLAS, as far as programs and generated libraries use them, over the emulator: they find
// it by dlopen as they find the real ones, so that all of their own code runs on machines without a GPU.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/backends/context.h"
#include "runtime/backends/emulate.h"

namespace {

constexpr int kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY
constexpr int kUnknown = 999;    // CUDA_ERROR_UNKNOWN
constexpr std::size_t kTotalBytes = std::size_t{512} << 20;

// Dynamic shared memory of a block that a kernel has without asking: less than that of GPUs, so that most must ask.
constexpr int kUsualSharedBytes = 1024;
constexpr int kMallocHeapSize = 2;  // CU_LIMIT_MALLOC_HEAP_SIZE
constexpr std::size_t kUsualHeap = std::size_t{8} << 20;
constexpr int kMaxDynamicSharedBytes = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES

struct Function {
  std::string name;
  int most_shared_bytes = kUsualSharedBytes;
};

struct Driver {
  std::unique_ptr<apl::Backend> backend = apl::make_emulate_backend({"c++", 1, "h200", {"/tmp", "", nullptr, {}}});
  std::vector<std::string> texts;  // of modules
  std::vector<std::unique_ptr<Function>> functions;
  std::map<unsigned long long, std::size_t> blocks;
  std::size_t held = 0;
  std::string error;
  int pushed = 0;
  std::size_t heap = kUsualHeap;
  std::int64_t* records = nullptr;  // where launches are counted that are recorded: their threads
  std::int64_t replayed = 0;        // threads of graphs that ran
};
Driver& driver() {
  static Driver it;
  return it;
}

template <class T>
int finish(const apl::Result<T>& result) {
  if (result) return 0;
  driver().error = result.error().message;
  return kUnknown;
}
int refuse(std::string why) {
  driver().error = std::move(why);
  return kUnknown;
}

void* address(unsigned long long data) { return reinterpret_cast<void*>(data); }

}  // namespace

extern "C" {

int cuInit(unsigned) { return 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int) { return *device = 0, 0; }
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : 0;  // the compute capability; nothing of what the record knows
  return 0;
}
int cuDeviceGetName(char* name, int capacity, int) {
  return std::snprintf(name, static_cast<std::size_t>(capacity), "Emulated H200"), 0;
}
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &driver(), 0; }
int cuDevicePrimaryCtxRelease_v2(int) { return driver().pushed == 0 ? 0 : refuse("a context is current at the end"); }
int cuCtxPushCurrent_v2(void*) { return ++driver().pushed, 0; }
int cuCtxPopCurrent_v2(void**) { return driver().pushed-- > 0 ? 0 : refuse("no context is current"); }
int cuCtxGetLimit(std::size_t* value, int limit) {
  if (driver().pushed == 0 || limit != kMallocHeapSize) return refuse("no context is current, or another limit");
  return *value = driver().heap, 0;
}
int cuCtxSetLimit(int limit, std::size_t value) {
  if (driver().pushed == 0 || limit != kMallocHeapSize) return refuse("no context is current, or another limit");
  return driver().heap = value, 0;
}
int cuStreamCreate(void** stream, unsigned) { return *stream = &driver(), 0; }
int cuStreamDestroy_v2(void*) { return 0; }
int cuStreamSynchronize(void*) { return 0; }
int cuEventCreate(void**, unsigned) { return 0; }
int cuEventRecord(void*, void*) { return 0; }
int cuEventSynchronize(void*) { return 0; }
// A graph's threads take a nanosecond each, all else takes a millisecond.
int cuEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = 1.0F + 1e-6F * static_cast<float>(std::exchange(driver().replayed, 0));
  return 0;
}
int cuEventDestroy_v2(void*) { return 0; }

int cuMemAlloc_v2(unsigned long long* data, std::size_t bytes) {
  if (driver().pushed == 0) return refuse("no context is current");
  if (bytes > kTotalBytes - driver().held) return kOutOfMemory;
  auto block = driver().backend->allocate(static_cast<std::int64_t>(bytes), "an allocation");
  if (!block) return finish(block);
  *data = reinterpret_cast<unsigned long long>(*block);
  driver().blocks[*data] = bytes;
  driver().held += bytes;
  return 0;
}
int cuMemFree_v2(unsigned long long data) {
  const auto block = driver().blocks.find(data);
  if (block == driver().blocks.end()) return refuse("what is freed is no allocation");
  driver().held -= block->second;
  driver().blocks.erase(block);
  return finish(driver().backend->release(address(data)));
}
int cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total) {
  return *free_bytes = kTotalBytes - driver().held, *total = kTotalBytes, 0;
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, std::size_t bytes, void*) {
  return finish(driver().backend->upload(address(to), from, static_cast<std::int64_t>(bytes)));
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, std::size_t bytes, void*) {
  return finish(driver().backend->download(to, address(from), static_cast<std::int64_t>(bytes)));
}
int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, std::size_t bytes, void*) {
  return finish(driver().backend->copy(address(to), address(from), static_cast<std::int64_t>(bytes)));
}
int cuMemsetD8Async(unsigned long long to, unsigned char byte, std::size_t bytes, void*) {
  const std::vector<unsigned char> filled(bytes, byte);
  return finish(driver().backend->upload(address(to), filled.data(), static_cast<std::int64_t>(bytes)));
}
// Kernels may write to it as to memory of the device, which is the host's here.
int cuMemHostAlloc(void** data, std::size_t bytes, unsigned) {
  auto block = driver().backend->allocate(static_cast<std::int64_t>(bytes), "memory of the host");
  if (!block) return finish(block);
  *data = *block;
  return 0;
}
int cuMemFreeHost(void* data) { return finish(driver().backend->release(data)); }

// Machine code is the kernels' text.
int cuModuleLoadData(void** module, const void* code) {
  driver().texts.emplace_back(static_cast<const char*>(code));
  if (driver().texts.back().find("apl_heap<") != std::string::npos && driver().heap <= kUsualHeap)
    return refuse("kernels that allocate are loaded where the heap has its usual size");
  *module = reinterpret_cast<void*>(driver().texts.size());
  return finish(driver().backend->load(driver().texts.back()));
}
int cuModuleUnload(void*) { return 0; }
int cuModuleGetFunction(void** function, void* module, const char* name) {
  const std::string& text = driver().texts[reinterpret_cast<std::size_t>(module) - 1];
  // Some kernels' names are macros.
  const auto has = [&](const std::string& words) { return text.find(words) != std::string::npos; };
  if (!has(" " + std::string(name) + "(") && !has(" " + std::string(name) + "\n")) return refuse("no such kernel");
  driver().functions.push_back(std::make_unique<Function>(Function{name}));
  *function = driver().functions.back().get();
  return 0;
}
int cuFuncGetAttribute(int* value, int attribute, void* function) {
  *value = attribute == kMaxDynamicSharedBytes ? static_cast<const Function*>(function)->most_shared_bytes : 0;
  return 0;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  if (attribute == kMaxDynamicSharedBytes) static_cast<Function*>(function)->most_shared_bytes = value;
  return 0;
}
int cuLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                   unsigned shared_bytes, void*, void** args, void**) {
  const auto& kernel = *static_cast<const Function*>(function);
  if (shared_bytes > static_cast<unsigned>(kernel.most_shared_bytes))
    return refuse("a kernel has more shared memory than it asked for");
  const apl_launch launch{kernel.name.c_str(),
                          blocks,
                          static_cast<std::int32_t>(threads),
                          static_cast<std::int32_t>(shared_bytes),
                          0,
                          args};
  if (driver().records) *driver().records += std::int64_t{blocks} * threads;
  return finish(driver().backend->launch(launch));
}
// What is recorded runs at once, and takes time when it is replayed.
int cuStreamBeginCapture_v2(void*, int) { return driver().records = new std::int64_t(0), 0; }
int cuStreamEndCapture(void*, void** graph) { return *graph = std::exchange(driver().records, nullptr), 0; }
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  return *executable = new std::int64_t(*static_cast<std::int64_t*>(graph)), 0;
}
int cuGraphLaunch(void* executable, void*) { return driver().replayed += *static_cast<std::int64_t*>(executable), 0; }
int cuGraphExecDestroy(void* executable) { return delete static_cast<std::int64_t*>(executable), 0; }
int cuGraphDestroy(void* graph) { return delete static_cast<std::int64_t*>(graph), 0; }

int cuGetErrorName(int result, const char** name) {
  return *name = result == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "emulated", 0;
}
int cuGetErrorString(int, const char** text) { return *text = driver().error.c_str(), 0; }

const char* nvrtcGetErrorString(int) { return "an error"; }
int nvrtcVersion(int* major, int* minor) { return *major = 12, *minor = 0, 0; }
int nvrtcCreateProgram(void** program, const char* text, const char*, int, const char* const*, const char* const*) {
  return *program = new std::string(text), 0;
}
int nvrtcDestroyProgram(void** program) { return delete static_cast<std::string*>(*program), 0; }
int nvrtcCompileProgram(void*, int, const char* const*) { return 0; }
int nvrtcGetProgramLogSize(void*, std::size_t* size) { return *size = 1, 0; }
int nvrtcGetProgramLog(void*, char* log) { return *log = '\0', 0; }
int nvrtcGetCUBINSize(void* program, std::size_t* size) {
  return *size = static_cast<std::string*>(program)->size() + 1, 0;
}
int nvrtcGetCUBIN(void* program, char* code) {
  const auto* text = static_cast<std::string*>(program);
  std::memcpy(code, text->c_str(), text->size() + 1);
  return 0;
}

int cublasCreate_v2(void** handle) { return *handle = &driver(), 0; }
int cublasDestroy_v2(void*) { return 0; }
int cublasSetStream_v2(void*, void*) { return 0; }
// All arrays by columns there, by rows here.
int cublasGemmEx(void*, int first_transposed, int second_transposed, int m, int n, int k, const void*, const void* a,
                 int a_type, int a_row, const void* b, int b_type, int b_row, const void*, void* c, int c_type,
                 int c_row, int, int) {
  const std::map<int, apl::ScalarType> types = {
      {0, apl::ScalarType::f32}, {1, apl::ScalarType::f64}, {2, apl::ScalarType::f16}, {14, apl::ScalarType::bf16}};
  if (second_transposed != 0 || a_type != b_type) return refuse("a product that nobody asks for");
  apl::DenseProduct product{.type = types.at(a_type), .result = types.at(c_type), .rows = n, .columns = m, .depth = k};
  product.a = b, product.b = a, product.c = c;
  product.a_row = b_row, product.b_row = a_row, product.c_row = c_row;
  product.b_by_columns = first_transposed != 0;
  return finish(driver().backend->library_product(product));
}

}  // extern "C"
