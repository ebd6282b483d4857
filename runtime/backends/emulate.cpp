// Backend emulate: kernel text compiled by the host's compiler, launches run by emulate/machine.h.
#include "runtime/backends/emulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "ir/host_value.h"
#include "machine/target/target.h"
#include "runtime/backends/emulate/machine.h"
#include "runtime/backends/host_timer.h"
#include "runtime/embed.h"

namespace apl {
namespace {

using emulate::Allocation;
using emulate::Machine;

class EmulateBackend : public Backend {
 public:
  explicit EmulateBackend(EmulateOptions options)
      : options_(std::move(options)),
        device_(record_of(options_.device)),
        machine_(options_.seed, device_.block_shared) {}

  const char* name() const override { return "emulate"; }

  Status load(std::string_view text) override {
    if (text.empty()) return Unit{};
    Loaded loaded;
    loaded.text = text;
    Compilation kernels;
    // Arithmetic as the IR means it: integers wrap, no operation is fused with another. Shared memory is used for one
    // type after the other. -O1 compiles fastest for what is, after all, checked access by access; -Og takes less
    // still, but calls fmin and fmax of the library, which take the other zero.
    kernels.command = {options_.compiler,
                       "-std=c++17",
                       "-O1",
                       "-shared",
                       "-fPIC",
                       "-DAPL_EMULATE",
                       "-fno-exceptions",
                       "-fno-rtti",
                       "-fwrapv",
                       "-ffp-contract=off",
                       "-fno-strict-aliasing",
                       "-w",
                       "-Wl,--as-needed"};
    kernels.libraries = {"-lm"};
    kernels.files = {{"kernels.cpp", loaded.text}, {"device.h", device_header_text()}};
    kernels.output = "kernels.so";
    auto object = compile_shared(kernels, options_.workplace);
    if (!object) return std::move(object).error();
    loaded.object = std::move(*object);
    loaded_.push_back(std::move(loaded));
    return Unit{};
  }

  Result<void*> allocate(std::int64_t bytes, const char* what) override {
    if (void* data = machine_.memory.allocate(bytes, what)) return data;
    return make_error(Code::run_out_of_memory, {},
                      fmt::format("out of memory: {} bytes for {}", bytes, what ? what : "?"));
  }
  Status release(void* data) override {
    if (!data || machine_.memory.release(data)) return Unit{};
    return make_error(Code::bug_internal, {}, "a block of device memory is released that is no allocation");
  }

  Status upload(void* data, const void* host, std::int64_t bytes) override {
    if (bytes <= 0) return Unit{};
    auto to = range(data, bytes, "an upload");
    if (!to) return std::move(to).error();
    std::memcpy(data, host, static_cast<std::size_t>(bytes));
    return watch(**to, [&] { (*to)->shadow.define((*to)->offset_of(data), bytes); });
  }
  Status download(void* host, const void* data, std::int64_t bytes) override {
    if (bytes <= 0) return Unit{};
    auto from = range(data, bytes, "a download");
    if (!from) return std::move(from).error();
    const auto undefined = (*from)->shadow.first_undefined((*from)->offset_of(data), bytes);
    // After a failed check results are undefined, and nobody will look at them.
    if (undefined && machine_.failure.code == APL_OK)
      return make_error(
          Code::run_undefined_read, {},
          fmt::format("the host reads byte {} of `{}`, which no kernel has written", *undefined, (*from)->what));
    std::memcpy(host, data, static_cast<std::size_t>(bytes));
    return Unit{};
  }
  Status copy(void* to, const void* from, std::int64_t bytes) override {
    if (bytes <= 0) return Unit{};
    auto target = range(to, bytes, "a copy");
    if (!target) return std::move(target).error();
    auto source = range(from, bytes, "a copy");
    if (!source) return std::move(source).error();
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return watch(**target, [&] {
      (*target)->shadow.copy((*target)->offset_of(to), (*source)->shadow, (*source)->offset_of(from), bytes);
    });
  }

  // Of exactly that size, so that accesses beyond are seen.
  Result<void*> zeros(std::int64_t bytes) override {
    if (zeros_ && bytes == zero_bytes_) return zeros_;
    forget_zeros();
    auto data = allocate(bytes, "what blocks publish");
    if (!data) return data;
    const std::vector<unsigned char> start(static_cast<std::size_t>(bytes));
    if (auto ok = upload(*data, start.data(), bytes); !ok) return std::move(ok).error();
    zeros_ = *data;
    zero_bytes_ = bytes;
    return zeros_;
  }
  Status launch(const apl_launch& launch) override {
    for (const Loaded& loaded : loaded_) {
      auto kernel = loaded.object.function<Machine::Kernel>(std::string(launch.kernel) + "_call");
      auto attach = loaded.object.function<Machine::Attach>("apl_emulator_attach");
      auto warp = loaded.object.function<Machine::Warp>("apl_emulator_warp");
      if (!kernel || !attach || !warp) continue;
      auto fault = machine_.run(launch, kernel, attach, warp);
      // A launch that stopped did not leave zeros as they were.
      if (!fault || *fault || machine_.failure.code != APL_OK) forget_zeros();
      if (!fault) return std::move(fault).error();
      if (*fault) machine_.failure = {};  // a failure before is not what is to be told
      if (*fault) return emulate::describe(**fault, launch.kernel, loaded.text);
      return check_zeros(launch.kernel);
    }
    return make_error(Code::bug_internal, {}, fmt::format("the kernel text exports no kernel {}", launch.kernel));
  }
  Status synchronise() override { return Unit{}; }

  // As cuBLAS would, one element after the other, in f64.
  Status library_product(const DenseProduct& p) override {
    if (!is_float(p.type) || !is_float(p.result))
      return make_error(Code::unsupported_backend, {}, fmt::format("cuBLAS has no product of {}", to_text(p.type)));
    auto a = rows_of(p.a, p.type, p.rows, p.depth, p.a_row);
    if (!a) return std::move(a).error();
    auto b = p.b_by_columns ? rows_of(p.b, p.type, p.columns, p.depth, p.b_row)
                            : rows_of(p.b, p.type, p.depth, p.columns, p.b_row);
    if (!b) return std::move(b).error();
    for (std::int64_t i = 0; i < p.rows; ++i) {
      HostValue row = HostValue::zeros(p.result, {p.columns});
      for (std::int64_t j = 0; j < p.columns; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < p.depth; ++k)
          sum += a->at(i * p.depth + k).as_float() *
                 b->at(p.b_by_columns ? j * p.depth + k : k * p.columns + j).as_float();
        row.set(j, Scalar::floating(p.result, sum));
      }
      void* to = static_cast<char*>(p.c) + i * p.c_row * byte_size(p.result);
      if (auto written = upload(to, row.data.data(), std::ssize(row.data)); !written) return written;
    }
    return Unit{};
  }
  std::string library_name() const override { return "plain loops in cuBLAS's place"; }

  apl_device device() const override { return device_; }

  apl_failure* failure() override { return &machine_.failure; }
  std::int32_t* failed() override { return &machine_.failure.code; }
  Result<apl_failure> take_failure() override { return std::exchange(machine_.failure, {}); }

  Status start_timer() override {
    timer_.start();
    return Unit{};
  }
  Result<double> stop_timer() override { return timer_.microseconds(); }

 private:
  // A shadow grows when it is first looked at in parts.
  template <typename Change>
  static Status watch(const Allocation& allocation, const Change& change) {
    try {
      change();
    } catch (const std::bad_alloc&) {
      return make_error(
          Code::run_out_of_memory, {},
          fmt::format("out of memory: to watch the {} bytes of `{}`", allocation.shadow.bytes(), allocation.what));
    }
    return Unit{};
  }

  Result<HostValue> rows_of(const void* data, ScalarType type, std::int64_t rows, std::int64_t length,
                            std::int64_t row) {
    HostValue value = HostValue::zeros(type, {rows, length});
    const std::int64_t size = byte_size(type);
    for (std::int64_t i = 0; i < rows; ++i)
      if (auto read = download(value.data.data() + i * length * size, static_cast<const char*>(data) + i * row * size,
                               length * size);
          !read)
        return std::move(read).error();
    return value;
  }

  // The allocation that has these bytes.
  Result<Allocation*> range(const void* data, std::int64_t bytes, const char* who) {
    Allocation* allocation = machine_.memory.find(data);
    if (!allocation)
      return make_error(Code::bug_internal, {}, fmt::format("{} uses device memory that is no allocation", who));
    const std::int64_t offset = allocation->offset_of(data);
    if (bytes > allocation->shadow.bytes() - offset)
      return make_error(Code::bug_internal, {},
                        fmt::format("{} of {} bytes from byte {} of `{}`, which has {}", who, bytes, offset,
                                    allocation->what, allocation->shadow.bytes()));
    return allocation;
  }

  static apl_device record_of(const std::string& name) {
    auto found = find_device(name.empty() ? std::string(find_dialect("cuda")->record) : name);
    return found ? *found : host_device();
  }

  // The next kernel takes them for zeros.
  Status check_zeros(const char* kernel) {
    if (!zeros_) return Unit{};
    const auto* const first = static_cast<const unsigned char*>(zeros_);
    const auto* const end = first + zero_bytes_;
    const auto* const left = std::find_if(first, end, [](unsigned char byte) { return byte != 0; });
    if (left == end) return Unit{};
    forget_zeros();
    return make_error(
        Code::bug_internal, {},
        fmt::format("kernel {} leaves byte {} of what blocks publish other than zero", kernel, left - first));
  }
  void forget_zeros() {
    if (zeros_) machine_.memory.release(std::exchange(zeros_, nullptr));
  }

  EmulateOptions options_;
  const apl_device device_;
  Machine machine_;
  struct Loaded {
    std::string text;
    SharedObject object;
  };
  std::vector<Loaded> loaded_;
  void* zeros_ = nullptr;
  std::int64_t zero_bytes_ = 0;
  HostTimer timer_;
};

}  // namespace

std::unique_ptr<Backend> make_emulate_backend(EmulateOptions options) {
  return std::make_unique<EmulateBackend>(std::move(options));
}

}  // namespace apl
