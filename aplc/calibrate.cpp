// aplc calibrate: a record of this machine's CPU, measured.
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <system_error>
#include <vector>

#include "aplc/calibrate/host_record.h"
#include "aplc/cleanup.h"
#include "aplc/driver.h"
#include "aplc/output.h"
#include "aplc/test/executable.h"
#include "frontend/frontend.h"
#include "ir/system_error.h"

namespace aplc {
namespace {

// A product for the packed micro-kernels, and kernels that do hardly more than start.
constexpr const char* kPrograms = R"(
entry product [n] (A: [n][n]f32) (B: [n][n]f32) : [n][n]f32 =
  map (\a -> map (\b -> f32.sum (map2 (*) a b)) (transpose B)) A
entry steps [n] (times: i64) (x: [n]f32) : [n]f32 = loop x for _i < times do map (\a -> a * 0.5 + 1) x
)";
constexpr std::int64_t kProductSize = 1024, kSteps = 2000, kStepElements = 8192;
constexpr int kRuns = 7;

apl::HostValue floats(const std::vector<std::int64_t>& shape) {
  const std::size_t count = static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<std::int64_t>()));
  return apl::HostValue::array(apl::ScalarType::f32, shape, std::vector<float>(count, 1.0F));
}

class Calibrator {
 public:
  explicit Calibrator(std::string temporary_folder) : folder_(std::move(temporary_folder)) {}

  apl::Result<std::vector<HostFigure>> run() {
    auto figures = measure_host("cc", {.temporary_folder = folder_}, progress_);
    if (!figures) return figures;
    progress_("compiled programs");
    const auto front = apl::compile({"calibrate.fut", kPrograms}, [](const apl::Diagnostic&) {});
    auto made = Executable::make(*front, {.temporary_folder = folder_});
    if (!made) return std::move(made).error();
    Executable& programs = *made;
    const auto number = [&](const char* name) { return std::ranges::find(*figures, name, &HostFigure::name)->value; };
    const auto product =
        least_time(programs, "product", {floats({kProductSize, kProductSize}), floats({kProductSize, kProductSize})});
    if (!product) return product.error();
    const double peak = number("multiprocessors") * number("clock_ghz") * 1e9 * number("fmas_per_clock");
    const double products = static_cast<double>(kProductSize * kProductSize * kProductSize);
    figures->push_back({"packed_rate", std::min(1.0, products / *product / peak),
                        fmt::format("a product of {0} x {0}", kProductSize)});
    // What is left where arrays have no elements.
    const auto few = steps(programs, kStepElements), more = steps(programs, 2 * kStepElements);
    if (!few) return few.error();
    if (!more) return more.error();
    figures->push_back({"launch_us", std::max(0.1, 1e6 * (2 * *few - *more) / kSteps),
                        "kernels of few elements, one after the other"});
    progress_("");
    return figures;
  }

 private:
  // Of several calls, in seconds.
  static apl::Result<double> least_time(Executable& programs, const std::string& entry, const Values& inputs) {
    const auto times = programs.benchmark(entry, inputs, kRuns);
    if (!times) return times.error();
    return *std::ranges::min_element(*times) * 1e-6;
  }
  static apl::Result<double> steps(Executable& programs, std::int64_t elements) {
    return least_time(programs, "steps",
                      {apl::HostValue::scalar(apl::Scalar::integer(apl::ScalarType::i64, kSteps)), floats({elements})});
  }

  std::string folder_;
  std::function<void(const std::string&)> progress_ = [terminal = ::isatty(2) != 0](const std::string& what) {
    if (terminal) print_error("\r\033[K{}", what);
  };
};

int calibrate(const std::string& asked) {
  const std::string output = asked.empty() ? calibrated_record() : asked;
  if (output.empty())
    return report(apl::make_error(apl::Code::command_bad_argument, {},
                                  "there is no folder for configuration (XDG_CONFIG_HOME, HOME); give a file with -o"));
  if (asked.empty()) {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(output).parent_path(), error);
    if (error) return report(apl::system_error(error.value(), output));
  }
  if (auto writable = check_output(output, Inputs::overwritten); !writable) return report(writable.error());
  double load = 0;
  const bool is_busy = ::getloadavg(&load, 1) == 1 && load > 0.5;
  auto folder = WorkFolder::make();
  if (!folder) return report(folder.error());
  const auto figures = Calibrator(folder->path()).run();
  if (!figures) return report(figures.error());
  if (auto written = write_file(output, host_record_text(processor_name(), *figures), Inputs::overwritten); !written)
    return report(written.error());
  for (const HostFigure& figure : *figures) print_out("{:<18} {:>12.6g}  {}\n", figure.name, figure.value, figure.how);
  if (is_busy)
    print_error("aplc: warning: {:.1f} other programs ran on this machine: measure again when it is idle\n", load);
  print_out("{}: {}\n", output, asked.empty() ? "what `aplc explain` takes for the CPU" : "for --device");
  return kFine;
}

}  // namespace

void add_calibrate(CLI::App& app, int& exit) {
  auto output = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("calibrate", "measure this machine's CPU for predictions of times");
  command
      ->add_option("-o,--output", *output,
                   "file to write (default: cpu.txt in aplc's configuration, which `aplc explain` reads)")
      ->type_name("FILE");
  command->callback([output, &exit] { exit = calibrate(*output); });
}

}  // namespace aplc
