#include "runtime/backends/cuda/ptxas.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <regex>

#include "runtime/backends/toolchain.h"
#include "runtime/embed.h"

namespace apl {

Result<std::map<std::string, KernelResources>> ask_ptxas(std::string_view kernels, const std::string& architecture,
                                                         const std::string& temporary_folder) {
  const auto folder = TemporaryFolder::make(temporary_folder);
  if (!folder) return folder.error();
  const std::string &path = folder->path(), source = path + "/kernels.cu";
  std::ofstream(path + "/device.h") << device_header_text();
  std::ofstream text(source);
  text << "#include \"device.h\"\n\n" << kernels;
  text.close();
  if (!text) return make_error(Code::machine_io, {}, "cannot write " + source);
  const auto said = run_tool({"nvcc", "-arch=" + architecture, "-std=c++17", "-lineinfo", "-Xptxas", "-v", "-cubin",
                              "-o", path + "/kernels.cubin", source});
  if (!said) return said.error();
  static const std::regex kSaid(
      R"(Function properties for (\w+)\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\s+)"
      R"(ptxas info\s+: Used (\d+) registers)");
  std::map<std::string, KernelResources> made;
  for (std::sregex_iterator at(said->begin(), said->end(), kSaid), end; at != end; ++at)
    made[(*at)[1]] = {std::stoi((*at)[5]), std::max(std::stoi((*at)[3]), std::stoi((*at)[4])), std::stoi((*at)[2])};
  return made;
}

}  // namespace apl
