// NVRTC: kernel text to machine code.
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <fstream>
#include <utility>

#include "runtime/backends/cuda.h"
#include "runtime/backends/cuda/library.h"
#include "runtime/embed.h"

namespace apl {

namespace {

// What is used of nvrtc.h.
struct Nvrtc {
  using Program = void*;
  int (*create)(Program*, const char* source, const char* name, int headers, const char* const* texts,
                const char* const* names) = nullptr;
  int (*compile)(Program, int count, const char* const* options) = nullptr;
  int (*log_size)(Program, std::size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*cubin_size)(Program, std::size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*version)(int* major, int* minor) = nullptr;
  const char* (*error_string)(int) = nullptr;

  static Result<Nvrtc> open(const std::vector<std::string>& folders) {
    auto library = cuda::open_library({"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"}, folders);
    if (!library) return std::move(library).error();
    Nvrtc nvrtc;
    bool found = true;
    auto bind = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(*library, name));
      found = found && function;
    };
    bind("nvrtcCreateProgram", nvrtc.create);
    bind("nvrtcCompileProgram", nvrtc.compile);
    bind("nvrtcGetProgramLogSize", nvrtc.log_size);
    bind("nvrtcGetProgramLog", nvrtc.log);
    bind("nvrtcGetCUBINSize", nvrtc.cubin_size);
    bind("nvrtcGetCUBIN", nvrtc.cubin);
    bind("nvrtcDestroyProgram", nvrtc.destroy);
    bind("nvrtcVersion", nvrtc.version);
    bind("nvrtcGetErrorString", nvrtc.error_string);
    if (!found)
      return make_error(Code::unsupported_backend, {},
                        "the NVRTC of this machine is too old; CUDA 12 or later is needed");
    return nvrtc;
  }
};

// One program, destroyed at the end.
class NvrtcProgram {
 public:
  explicit NvrtcProgram(const Nvrtc& nvrtc) : nvrtc_(nvrtc) {}
  ~NvrtcProgram() {
    if (program_) nvrtc_.destroy(&program_);
  }
  NvrtcProgram(const NvrtcProgram&) = delete;
  NvrtcProgram& operator=(const NvrtcProgram&) = delete;

  Result<std::string> compile(const std::string& text, const std::vector<std::string>& flags) {
    const std::string header(device_header_text());
    const char* texts[] = {header.c_str()};
    const char* names[] = {"device.h"};
    if (auto ok = check(nvrtc_.create(&program_, text.c_str(), "kernels.cu", 1, texts, names), "creating a program");
        !ok)
      return std::move(ok).error();
    std::vector<const char*> options;
    for (const std::string& flag : flags) options.push_back(flag.c_str());
    const int compiled = nvrtc_.compile(program_, static_cast<int>(options.size()), options.data());
    log_ = text_of(nvrtc_.log_size, nvrtc_.log).value_or("");
    while (!log_.empty() && (log_.back() == '\0' || log_.back() == '\n')) log_.pop_back();
    if (compiled != 0)
      return make_error(Code::bug_internal, {},
                        fmt::format("NVRTC refuses the kernels ({}):\n{}", nvrtc_.error_string(compiled), log_));
    auto cubin = text_of(nvrtc_.cubin_size, nvrtc_.cubin);
    if (!cubin) return make_error(Code::bug_internal, {}, "NVRTC gives no machine code");
    return std::move(*cubin);
  }
  const std::string& log() const { return log_; }

 private:
  Status check(int result, const char* what) const {
    if (result == 0) return Unit{};
    return make_error(Code::bug_internal, {}, fmt::format("NVRTC: {}: {}", what, nvrtc_.error_string(result)));
  }
  std::optional<std::string> text_of(int (*size_of)(Nvrtc::Program, std::size_t*),
                                     int (*get)(Nvrtc::Program, char*)) const {
    std::size_t size = 0;
    if (size_of(program_, &size) != 0) return std::nullopt;
    std::string text(size, '\0');
    if (get(program_, text.data()) != 0) return std::nullopt;
    return text;
  }

  const Nvrtc& nvrtc_;
  Nvrtc::Program program_ = nullptr;
  std::string log_;
};

}  // namespace

Result<std::string> compile_with_nvrtc(std::string_view kernel_text, const std::string& architecture,
                                       const CudaOptions& options) {
  auto nvrtc = Nvrtc::open(options.library_folders);
  if (!nvrtc) return std::move(nvrtc).error();
  const Workplace& workplace = options.workplace;
  auto keep = [&](const char* name, std::string_view text) {
    if (workplace.keep_folder.empty()) return;
    std::ofstream out(workplace.keep_folder + "/" + name, std::ios::binary);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
  };
  std::vector<std::string> flags{"--gpu-architecture=" + architecture, "--std=c++17"};
  if (options.has_lines) flags.push_back("-lineinfo");
  flags.insert(flags.end(), options.flags.begin(), options.flags.end());
  keep("kernels.cu", kernel_text);
  keep("device.h", device_header_text());
  int major = 0, minor = 0;
  nvrtc->version(&major, &minor);
  const std::string key =
      fmt::format("nvrtc {}.{} {}\n{}\n{}", major, minor, fmt::join(flags, " "), device_header_text(), kernel_text);
  if (auto known = workplace.cache ? workplace.cache->find(key) : std::nullopt) {
    keep("kernels.cubin", *known);
    return std::move(*known);
  }
  const auto start = std::chrono::steady_clock::now();
  NvrtcProgram program(*nvrtc);
  auto cubin = program.compile(std::string(kernel_text), flags);
  if (!cubin) return cubin;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (workplace.log) {
    workplace.log(
        fmt::format("nvrtc {}.{} {} kernels.cu ({:.2f} s)", major, minor, fmt::join(flags, " "), seconds.count()));
    if (!program.log().empty()) workplace.log(program.log());
  }
  if (workplace.cache) workplace.cache->add(key, *cubin);
  keep("kernels.cubin", *cubin);
  return cubin;
}

}  // namespace apl
