#include "bench/sparse_gpu/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "runtime/backends/cuda/library.h"
#include "runtime/backends/emulate.h"

namespace apl::bench {

namespace {

constexpr int kCompareBlocks = 1024;

const char* const kHelpers = R"(APL_DEVICE float some_number(uint64_t i, uint32_t seed) {
  uint64_t z = i * 0x9E3779B97F4A7C15ull + seed * 0xD1B54A32D192ED03ull + 0x1234567;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  // All digits that the type has: who multiplies with fewer is to be seen.
  if (sizeof(Element) == 4) return float(int64_t(z >> 40) - (int64_t(1) << 23)) * (1.0f / (1 << 23));
  const int q = int(z & 1023) - 512;
  return float(q == 0 ? 1 : q) * (1.0f / 512);
}
APL_KERNEL(256) void bench_fill(apl_out<Element> x, int64_t count, int64_t seed) {
  for (int64_t i = apl_block() * 256 + apl_thread(); i < count; i += int64_t(256) * 4096) x(i) = Element(some_number(i, uint32_t(seed)));
}
APL_EXPORT(bench_fill)
APL_KERNEL(128) void bench_spmm(apl_in<int32_t> start, apl_in<int32_t> column, apl_in<Element> value,
                                apl_in<Element> b, int64_t width, apl_out<float> c) {
  const int64_t row = apl_block();
  const int first = start(row), last = start(row + 1);
  for (int64_t j = apl_thread(); j < width; j += 128) {
    float sum = 0;
    for (int k = first; k < last; ++k) sum += float(value(k)) * float(b(column(k) * width + j));
    c(row * width + j) = sum;
  }
}
APL_EXPORT(bench_spmm)
APL_KERNEL(128) void bench_sddmm(apl_in<int32_t> start, apl_in<int32_t> column, apl_in<Element> x,
                                 apl_in<Element> y, int64_t depth, apl_out<float> c) {
  const int64_t row = apl_block();
  const int last = start(row + 1);
  for (int n = start(row) + apl_thread(); n < last; n += 128) {
    const int64_t from = column(n) * depth;
    float sum = 0;
    for (int64_t k = 0; k < depth; ++k) sum += float(x(row * depth + k)) * float(y(from + k));
    c(n) = sum;
  }
}
APL_EXPORT(bench_sddmm)
APL_KERNEL(256) void bench_compare(apl_in<Element> x, apl_in<float> wanted, int64_t count, apl_out<double> sums) {
  const apl_shared<double> part = apl_shared_at<double>(0, 512);
  double off = 0, all = 0;
  for (int64_t i = apl_block() * 256 + apl_thread(); i < count; i += int64_t(256) * 1024) {
    const double w = wanted(i), d = double(float(x(i))) - w;
    off += d * d;
    all += w * w;
  }
  part(apl_thread()) = off;
  part(256 + apl_thread()) = all;
  apl_barrier();
  if (apl_thread() >= 2) return;
  double sum = 0;
  for (int i = 0; i < 256; ++i) sum += part(apl_thread() * 256 + i);
  sums(apl_block() * 2 + apl_thread()) = sum;
}
APL_EXPORT(bench_compare)
APL_KERNEL(256) void bench_place(apl_in<Element> values, apl_in<int32_t> slot, int64_t count, apl_out<Element> to) {
  const int64_t at = apl_block() * 256 + apl_thread();
  if (at < count) to(slot(at)) = Element(values(at));
}
APL_EXPORT(bench_place)
)";

}  // namespace

void give_up(const std::string& why) {
  fmt::print(stderr, "sparse benchmark: {}\n", why);
  std::exit(1);
}

Gpu::Gpu(bool emulated, bool once, ScalarType type) : once_(once || emulated), type_(type) {
  std::unique_ptr<Backend> backend;
  if (emulated) {
    backend = make_emulate_backend({});
  } else {
    clock_ = need(cuda::Clock::open());
    backend = need(clock_->backend());
  }
  bridge_ = std::make_unique<program::Bridge>(std::move(backend), nullptr);
  const std::string text =
      fmt::format("#include \"device.h\"\ntypedef {} Element;\n{}", facts(type).kernel_type, kHelpers);
  check(context()->backend->load(context(), "bench_helpers", text.c_str()));
  sums_ = scratch(kCompareBlocks * 2 * 8, "sums");
}

Gpu::~Gpu() { bridge_.reset(); }

void* Gpu::scratch(std::int64_t bytes, const char* what) {
  // Compared and copied in full words.
  return need(bridge_->allocate(bytes + 256, what));
}

template <class... Arguments>
void Gpu::launch(const char* kernel, std::int64_t blocks, int threads, Arguments... arguments) {
  void* pointers[] = {static_cast<void*>(&arguments)...};
  const apl_launch launch{kernel, blocks, threads, 512 * 8, sizeof...(arguments), pointers};
  check(context()->backend->launch(context(), &launch));
}

void Gpu::fill(void* elements, std::int64_t count, std::int32_t seed) {
  launch("bench_fill", emulated() ? (count + 255) / 256 : 4096, 256, elements, count, std::int64_t{seed});
}

void Gpu::clear(void* data, std::int64_t bytes) {
  if (!emulated()) set_bytes(data, 0, bytes);
}

void Gpu::place(const void* values, const void* slot, std::int64_t count, void* to) {
  launch("bench_place", (count + 255) / 256, 256, values, slot, count, to);
}

void Gpu::poison(void* data, std::int64_t bytes) {
  if (!emulated()) set_bytes(data, 0xff, bytes);
}

void Gpu::plain_spmm(const void* start, const void* column, const void* value, std::int64_t rows, const void* b,
                     std::int64_t width, void* wanted) {
  launch("bench_spmm", rows, 128, start, column, value, b, width, wanted);
}

void Gpu::plain_sddmm(const void* start, const void* column, std::int64_t rows, const void* x, const void* y,
                      std::int64_t depth, void* wanted) {
  launch("bench_sddmm", rows, 128, start, column, x, y, depth, wanted);
}

double Gpu::error_of(const void* results, const void* wanted, std::int64_t count) {
  launch("bench_compare", kCompareBlocks, 256, results, wanted, count, sums_);
  std::vector<double> sums(kCompareBlocks * 2);
  need(bridge_->backend().download(sums.data(), sums_, kCompareBlocks * 2 * 8));
  double off = 0, all = 0;
  for (std::size_t k = 0; k < sums.size(); k += 2) off += sums[k], all += sums[k + 1];
  return std::sqrt(off / std::max(all, 1e-300));
}

double Gpu::time(const std::function<void()>& launch) {
  launch();
  need(bridge_->backend().synchronise());
  if (once_) return 0;
  return need(clock_->time([&]() -> Status {
    launch();
    return Unit{};
  }));
}

void Gpu::set_bytes(void* data, int byte, std::int64_t bytes) {
  const cuda::Driver& driver = clock_->driver();
  need(driver.check(driver.set_bytes(reinterpret_cast<cuda::CUdeviceptr>(data), static_cast<unsigned char>(byte),
                                     static_cast<std::size_t>(bytes), clock_->stream()),
                    "filling an array"));
}

}  // namespace apl::bench
