#include "aplc/calibrate/host_record.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string_view>

#include "machine/target/records.h"

namespace apl {

std::string_view host_peaks_code_text();  // aplc/calibrate/host_peaks.c

}  // namespace apl

namespace aplc {
namespace {

// Three digits say all that such a measurement knows.
std::string to_text(double value) {
  return value == static_cast<double>(static_cast<std::int64_t>(value)) ? fmt::format("{:.0f}", value)
                                                                        : fmt::format("{:.3g}", value);
}

// What the system says of a cache, in bytes; none where it does not know.
void add_system_figure(std::vector<HostFigure>& figures, const char* name, int which, const char* how) {
  const long value = ::sysconf(which);
  if (value > 0) figures.push_back({name, static_cast<double>(value), how});
}

}  // namespace

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const std::size_t colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "a CPU";
}

apl::Result<std::vector<HostFigure>> measure_host(const std::string& c_compiler, const apl::Workplace& workplace,
                                                  const std::function<void(const std::string&)>& progress) {
  progress("compiling the probe");
  const auto object =
      apl::compile_shared({.command = {c_compiler, "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"},
                           .libraries = {},
                           .files = {{"host_peaks.c", apl::host_peaks_code_text()}},
                           .output = "host_peaks.so"},
                          workplace);
  if (!object) return object.error();
  std::vector<HostFigure> figures;
  const int threads = object->function<int (*)()>("threads_of")();
  figures.push_back({"multiprocessors", static_cast<double>(threads), "threads that OpenMP starts"});
  progress("the clock");
  const double clock = object->function<double (*)()>("clock_of")();
  figures.push_back({"clock_ghz", clock * 1e-9, "sums that wait for each other, on one thread"});
  progress("products");
  const double operations = object->function<double (*)(int)>("peak_of")(4);
  figures.push_back({"fmas_per_clock", operations / 2 / clock / threads, "fused products of f32 in registers"});
  figures.push_back({"thread_registers", static_cast<double>(object->function<int (*)()>("register_floats_of")()),
                     "vector registers of the compiler's target"});
  progress("memory");
  figures.push_back(
      {"memory_gbs", object->function<double (*)(int)>("bytes_of")(3) * 1e-9, "a triad: two arrays read, one written"});
  add_system_figure(figures, "near_cache_bytes", _SC_LEVEL1_DCACHE_SIZE, "the system's, level 1");
  add_system_figure(figures, "block_shared", _SC_LEVEL2_CACHE_SIZE, "the system's, level 2");
  add_system_figure(figures, "cache_bytes", _SC_LEVEL3_CACHE_SIZE, "the system's, level 3");
  add_system_figure(figures, "line_bytes", _SC_LEVEL1_DCACHE_LINESIZE, "the system's");
  add_system_figure(figures, "sector_bytes", _SC_LEVEL1_DCACHE_LINESIZE, "the system's");
  progress("caches");
  constexpr std::int64_t kUsualCache = 1 << 20;
  const auto near = std::ranges::find(figures, "block_shared", &HostFigure::name);
  const std::int64_t bytes = (near == figures.end() ? kUsualCache : static_cast<std::int64_t>(near->value)) / 2;
  figures.push_back({"cache_gbs", object->function<double (*)(std::int64_t)>("read_of")(bytes) * 1e-9,
                     "each thread reads half of its second cache, again and again"});
  return figures;
}

std::string host_record_text(const std::string& machine, const std::vector<HostFigure>& figures) {
  std::string text =
      fmt::format("# {}, as `aplc calibrate` measured it; lines without a comment are those of any CPU.\n", machine);
  const std::string usual = *apl::device_record_text("cpu");
  // Behind the figures of the model of tiles are those of the search for sparse formats, which have a calibration of
  // their own.
  const std::size_t rest = std::min(usual.find("\n# Of the search"), usual.size());
  std::istringstream lines(usual.substr(0, rest));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find(" = ");
    const std::string name = line.substr(0, equals);
    const auto figure = std::ranges::find(figures, name, &HostFigure::name);
    if (equals == std::string::npos) continue;  // remarks on the figures that are replaced
    if (name == "name")
      text += "name = this-cpu\n";
    else if (figure != figures.end())
      text += fmt::format("{} = {}  # {}\n", name, to_text(figure->value), figure->how);
    else
      text += line + "\n";
  }
  return text + usual.substr(rest);
}

}  // namespace aplc
