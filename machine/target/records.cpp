#include "machine/target/records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <thread>

#include "ir/read_file.h"
#include "machine/texts.h"

namespace apl {
namespace {

struct BuiltIn {
  std::string_view name;
  std::string_view (*text)();
};
constexpr BuiltIn kBuiltIn[] = {
    {"a100", device_a100_text},   {"h100", device_h100_text},       {"h200", device_h200_text},
    {"mi300", device_mi300_text}, {"gfx1100", device_gfx1100_text}, {"gpu", device_gpu_text},
    {"cpu", device_cpu_text},
};

constexpr std::string_view kAnyGpu = "gpu";

Result<apl_device> parse_device(const std::string& text, const std::string& file);

// Those of any GPU, for one whose record has none.
void take_sparse_figures(apl_device& device) {
  const apl_device any = *parse_device(std::string(device_gpu_text()), std::string(kAnyGpu));
#define APL_TAKE_ANY(name)
#define APL_TAKE_GPU(name)
#define APL_TAKE_CPU(name)
#define APL_TAKE_SPARSE(name) std::memcpy(&device.name, &any.name, sizeof device.name);
#define APL_DEVICE_FIELD(type, name, needed) APL_TAKE_##needed(name)
#include "machine/tiles/device_fields.def"
#undef APL_TAKE_ANY
#undef APL_TAKE_GPU
#undef APL_TAKE_CPU
#undef APL_TAKE_SPARSE
}

Result<apl_device> parse_device(const std::string& text, const std::string& file) {
  apl_device device{};
  int line = 0;
  if (apl_device_parse(text.c_str(), &device, &line) != 0) {
    if (device.kind == APL_DEVICE_GPU && device.sparse_fitted_on[0] == '\0' && file != kAnyGpu)
      take_sparse_figures(device);
    return device;
  }
  if (text.starts_with("apl-device-profile"))
    return make_error(
        Code::command_bad_argument, {},
        fmt::format("{}: a profile for sparse products, which `aplc explain` and `aplc sparse` take", file));
  return make_error(Code::command_bad_argument, {},
                    fmt::format("{}: line {}: no device record: lines `name = value` with all that a {} has", file,
                                line, device.kind == APL_DEVICE_CPU ? "CPU" : "GPU"));
}

apl_device built_in(std::string_view name) {
  for (const BuiltIn& known : kBuiltIn)
    if (known.name == name) return *parse_device(std::string(known.text()), std::string(name));
  return {};
}

}  // namespace

std::vector<std::string_view> device_names() {
  std::vector<std::string_view> names;
  for (const BuiltIn& known : kBuiltIn) names.push_back(known.name);
  return names;
}

Result<std::string> device_record_text(const std::string& name) {
  for (const BuiltIn& known : kBuiltIn)
    if (known.name == name) return std::string(known.text());
  if (name.find_first_of("./") == std::string::npos)
    return make_error(
        Code::command_bad_argument, {},
        fmt::format("no device `{}`; there are {}, or a file's name", name, fmt::join(device_names(), ", ")));
  return read_bytes(name);
}

Result<apl_device> find_device(const std::string& name) {
  auto text = device_record_text(name);
  if (!text) return std::move(text).error();
  return parse_device(*text, name);
}

apl_device device_from(const DeviceFacts& facts) {
  std::string name = facts.name;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  apl_device device = built_in(kAnyGpu);
  for (const BuiltIn& known : kBuiltIn)
    if (known.name != kAnyGpu && known.name != "cpu" && name.find(known.name) != std::string::npos)
      device = built_in(known.name);
  const auto take = [](auto& field, auto fact) {
    if (fact > 0) field = fact;
  };
  take(device.multiprocessors, facts.multiprocessors);
  take(device.block_shared, facts.block_shared);
  take(device.multiprocessor_shared, facts.multiprocessor_shared);
  take(device.multiprocessor_threads, facts.multiprocessor_threads);
  take(device.registers, facts.registers);
  if (std::string_view(device.name) == kAnyGpu) {
    take(device.clock_ghz, facts.clock_ghz);
    take(device.memory_gbs, facts.memory_gbs);
  }
  return device;
}

apl_device host_device() {
  apl_device device = built_in("cpu");
  device.multiprocessors = std::max<int>(1, static_cast<int>(std::thread::hardware_concurrency()));
  return device;
}

}  // namespace apl
