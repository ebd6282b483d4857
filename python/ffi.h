// Calls from XLA: the handler (python/apl/_jax_ffi.c) is compiled against its headers when it is first needed, and
// hands over what it is given in this form.
#pragma once

#include "python/program.h"

namespace apl::python {

namespace nb = nanobind;
using namespace nb::literals;

struct FfiArray {
  std::int32_t type;
  std::int64_t rank;
  const std::int64_t* shape;
  void* data;
};

// What one FFI call calls: loaded for a device when it is first called on it. They stay until the process ends:
// compiled programs of XLA have their addresses.
struct FfiTarget {
  apl::capi::Compiler compiler;
  apl::Module module;
  std::string backend, entry;
  std::mutex mutex;
  std::map<int, apl::Program> programs;  // by the number of the device

  apl::Result<apl::Program> program(int device) {
    const std::lock_guard turn(mutex);
    if (const auto found = programs.find(device); found != programs.end()) return found->second;
    if (auto set = compiler.set("cuda-device", std::to_string(device)); !set) return set.error();
    auto loaded = compiler.load(module, backend);
    if (loaded) programs.emplace(device, *loaded);
    return loaded;
  }
};

inline int fail(const apl::Diagnostic& diagnostic, char* message, std::size_t capacity) {
  const std::string text = diagnostic.message + " [" + std::string(apl::code_text(diagnostic.code)) + "]";
  const std::size_t size = std::min(text.size(), capacity - 1);
  std::memcpy(message, text.data(), size);
  message[size] = '\0';
  return 1;
}

// Called by XLA's threads, without the interpreter's lock. Numbers are arrays of rank 0, on the host even for a device.
inline int ffi_call(std::int64_t address, int device, const FfiArray* arguments, std::int64_t argument_count,
                    const FfiArray* results, std::int64_t result_count, void* stream, char* message,
                    std::size_t capacity) {
  auto& target = *reinterpret_cast<FfiTarget*>(address);
  try {
    auto program = target.program(device);
    if (!program) return fail(program.error(), message, capacity);
    const bool on_device = target.backend == "cuda";
    if (on_device)
      if (auto set = program->set_stream(stream); !set) return fail(set.error(), message, capacity);
    std::vector<apl::BorrowedValue> values;
    for (std::int64_t k = 0; k < argument_count; ++k) {
      apl::BorrowedValue value;
      value.type = static_cast<apl::ScalarType>(arguments[k].type);
      value.shape.assign(arguments[k].shape, arguments[k].shape + arguments[k].rank);
      value.data = arguments[k].data;
      value.on_device = on_device;
      values.push_back(std::move(value));
    }
    auto made = program->call_in_place(target.entry, values, !on_device);
    if (!made) return fail(made.error(), message, capacity);
    if (std::ssize(*made) != result_count) return fail(bad("another number of results"), message, capacity);
    for (std::int64_t k = 0; k < result_count; ++k) {
      const apl::OwnedValue& value = (*made)[static_cast<std::size_t>(k)];
      if (value.type() != static_cast<apl::ScalarType>(results[k].type) ||
          !std::ranges::equal(value.shape(), std::span(results[k].shape, static_cast<std::size_t>(results[k].rank))))
        return fail(bad("a result of another type or shape than was declared"), message, capacity);
      if (auto copied = program->copy_to(value, results[k].data); !copied)
        return fail(copied.error(), message, capacity);
    }
    return 0;
  } catch (const std::exception& exception) {
    return fail(apl::make_error(apl::Code::bug_internal, {}, exception.what()), message, capacity);
  }
}

}  // namespace apl::python
