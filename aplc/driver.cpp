#include "aplc/driver.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "aplc/registry.h"
#include "aplc/sparse/constants.h"
#include "frontend/frontend.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/read_file.h"
#include "ir/verify.h"
#include "machine/target/records.h"
#include "suite/values.h"

namespace aplc {

int exit_code(const apl::Diagnostic& diagnostic) {
  switch (apl::code_fault(diagnostic.code)) {
    case apl::Fault::program: return kProgram;
    case apl::Fault::command_line: return kCommandLine;
    case apl::Fault::limitation: return kLimitation;
    case apl::Fault::machine: return kMachine;
    case apl::Fault::bug: return kBug;
  }
  return kBug;
}

apl::Result<std::string> read_file(const std::string& name) {
  note_input(name);
  return apl::read_bytes(name);
}

apl::Result<std::string> read_unpacked_file(const std::string& name) {
  note_input(name);
  return apl::suite::read_unpacked(name);
}

void FrontOptions::add_to(CLI::App& app) {
  app.add_flag("--safe", safe, "check indices inside #[unsafe], too");
  app.add_flag("-W,-w,--no-warnings", no_warnings, "print no warnings");
  app.add_flag("--Werror", warnings_are_errors, "a warning is an error");
}

std::optional<apl::Diagnostic> FrontOptions::of(const apl::Diagnostic& diagnostic) const {
  if (diagnostic.severity != apl::Severity::warning) return diagnostic;
  if (no_warnings) return std::nullopt;
  apl::Diagnostic result = diagnostic;
  if (warnings_are_errors) result.severity = apl::Severity::error;
  return result;
}

void CompileOptions::add_to(CLI::App& app) {
  app.add_option("FILE", file, "program: .fut (Futhark source) or .aplir (textual IR)")->required();
  app.add_option("--param", parameters, "tuning parameter NAME=VALUE, as mm1.T_a=16")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  app.add_option("--tuning", tuning, "file of tuning parameters, a line NAME=VALUE each; --param goes first")
      ->type_name("FILE");
  app.add_option(
         "--device", device,
         fmt::format("machine for which tile numbers are chosen: {}, or a file of "
                     "lines `name = value` (default: {}, or {}; when the program runs, the one that is there)",
                     fmt::join(apl::device_names(), ", "), apl::find_dialect("cuda")->record, apl::c_dialect().record))
      ->type_name("NAME|FILE");
  app.add_option("--disable", disabled, "leave out a pass of the standard pipeline")
      ->allow_extra_args(false)
      ->type_name("PASS");
  front.add_to(app);
  app.add_flag("--remarks", remarks, "print what the passes did and did not do, and why");
  app.add_flag("--verify-each,!--no-verify-each", verify_each, "verify the IR after every pass (default: yes)");
  observe.add_to(app);
}

void Session::report(const apl::Diagnostic& reported) {
  const std::optional<apl::Diagnostic> wanted = options_.front.of(reported);
  if (!wanted) return;
  const apl::Diagnostic& diagnostic = *wanted;
  const std::string& file = diagnostic.file.empty() ? options_.file : diagnostic.file;
  if (sink_) {
    sink_(diagnostic);
  } else {
    print_error("{}", apl::render(diagnostic, file, diagnostic.file.empty() ? text_ : std::string()));
  }
  // The first error decides: what follows may come of it.
  if (diagnostic.severity == apl::Severity::error && exit_code_ == kFine) exit_code_ = aplc::exit_code(diagnostic);
}

apl::Target target_of(const std::string& backend, const std::string& device) {
  apl::Target usual = backend == "c" ? apl::c_target() : apl::cuda_target();
  if (device.empty()) return usual;
  auto asked = apl::find_target(device);
  return asked && asked->on_device() == usual.on_device() ? *asked : usual;
}

int plans_for(const std::string& backend) {
  constexpr int kCompiled = 4;
  return backend == "c" ? kCompiled : APL_MAX_PLANS;
}

std::string pipeline_for(const std::string& backend, const TileOptions& tiles) {
  std::string text = apl::standard_pipeline(backend == "interp" ? apl::Stage::kernel : apl::Stage::memory,
                                            backend == "c" ? apl::Machine::cpu : apl::Machine::gpu, true, registry());
  constexpr std::string_view kPass = ",sparsify";
  const std::size_t end = text.find(kPass) + kPass.size();
  const std::string asked = tiles.deterministic ? "tiles deterministic" : "tiles";
  if (tiles.wanted) text.insert(text[end] == '{' ? end + 1 : end, text[end] == '{' ? asked + " " : "{" + asked + "}");
  return text;
}

void TileOptions::add_to(CLI::App& command) {
  command.add_flag("--tiles", wanted,
                   "sparse operands as the tiles of their plans, or of the built-in plan: kernels of the program's own "
                   "over them");
  command.add_flag(
      "--deterministic", deterministic,
      "with --tiles: floats are still added row by row, as they are without, since tiles come in any order");
}

std::string microseconds_text(double microseconds) {
  constexpr double kShort = 100;
  return microseconds < kShort ? fmt::format("{:.2f} us", microseconds) : fmt::format("{:.0f} us", microseconds);
}

namespace {

// Our folder below the one that a variable names, or that is usual in the home folder; empty if there is neither.
std::string folder_of(const char* variable, const char* usual) {
  const auto value_of = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
  if (const std::string folder = value_of(variable); folder.starts_with('/')) return folder + "/aplc";
  const std::string home = value_of("HOME");
  return home.empty() ? "" : fmt::format("{}/{}/aplc", home, usual);
}

}  // namespace

std::string cache_folder() { return folder_of("XDG_CACHE_HOME", ".cache"); }

std::string calibrated_record() {
  const std::string folder = folder_of("XDG_CONFIG_HOME", ".config");
  return folder.empty() ? "" : folder + "/cpu.txt";
}

std::string usual_cpu() {
  const std::string record = calibrated_record();
  std::error_code error;
  return !record.empty() && std::filesystem::exists(record, error) ? record : "cpu";
}

bool Session::read_parameters() {
  if (!options_.tuning.empty()) {
    const auto text = read_file(options_.tuning);
    if (!text) {
      aplc::report(text.error());
      exit_code_ = aplc::exit_code(text.error());
      return false;
    }
    std::map<std::string, std::uint32_t> lines;
    auto tuning = parse_tuning(*text, &lines);
    if (!tuning) {
      apl::Diagnostic error = std::move(tuning).error();
      error.file = options_.tuning;
      report(error);
      return false;
    }
    parameters_ = std::move(*tuning);
    for (const auto& [name, line] : lines) given_.push_back({name, options_.tuning, {line, 1, line, 1}});
  }
  for (const std::string& text : options_.parameters) {
    const auto parameter = parse_parameter(text);
    if (!parameter) {
      report(parameter.error());
      return false;
    }
    parameters_[parameter->first] = parameter->second;
    given_.push_back({parameter->first, "", {}});
  }
  return true;
}

bool is_ir(const std::string& name, const std::string& text) {
  if (name != "-") return name.ends_with(".aplir");
  std::size_t at = 0;
  for (;;) {
    at = text.find_first_not_of(" \t\r\n", at);
    if (at == std::string::npos) return false;
    if (text.compare(at, 2, "--") != 0) return text.compare(at, 6, "stage ") == 0;
    at = text.find('\n', at);
    if (at == std::string::npos) return false;
  }
}

bool Session::read() {
  auto text = read_file(options_.file);
  if (!text) {
    if (read_parameters()) report(text.error());
    return false;
  }
  return read_text(std::move(*text));
}

bool Session::read_text(std::string text) {
  if (!read_parameters()) return false;
  text_ = std::move(text);
  if (is_ir(options_.file, text_)) {
    auto parsed = apl::parse_module(text_, options_.file);
    if (!parsed) {
      report(parsed.error());
      return false;
    }
    module_ = std::move(*parsed);
    for (const apl::Diagnostic& broken : apl::verify(module_)) report(broken);
  } else {
    auto compiled = apl::compile({.name = options_.file,
                                  .text = text_,
                                  .parameters = parameters_,
                                  .read = {},
                                  .parameter = [this](const std::string& name) { marked_.insert(name); },
                                  .safe = options_.front.safe},
                                 [this](const apl::Diagnostic& d) { report(d); });
    if (compiled) module_ = std::move(*compiled);
  }
  front_ = module_;
  return exit_code_ == kFine;
}

bool Session::check_parameters() {
  const auto known = aplc::check_parameters(given_, parameters_, marked_, front_, &module_);
  if (!known) report(known.error());
  return bool(known);
}

bool Session::run(std::string_view text) {
  auto pipeline = apl::parse_pipeline(text, registry());
  if (!pipeline) {
    report(pipeline.error());
    return false;
  }
  apl::PipelineOptions options;
  options.parameters = parameters_;
  options.disabled = options_.disabled;
  options.verify_each = options_.verify_each;
  if (options_.remarks || options_.keep_remarks || sparse::has_operands(module_))
    options.remarks = [this](const apl::Remark& remark) {
      if (options_.keep_remarks) remarks_.push_back(remark);
      if (options_.remarks) print_error("{}\n", apl::render(remark, options_.file));
      // Who asks for remarks reads this one among them.
      if (const auto warning = sparse::made_dense_warning(remark);
          warning && !options_.remarks && !options_.keep_remarks)
        report(*warning);
    };
  sparse::make_dense(module_, parameters_, options.remarks);
  if (options_.keep_stages) stages_.emplace_back("", apl::print(module_));
  options.after_pass = [this](const apl::PassReport& pass, const apl::Module& module) {
    passes_.push_back(pass);
    if (options_.keep_stages && pass.change == apl::Change::yes) stages_.emplace_back(pass.pass, apl::print(module));
  };
  Observer observer(options_.observe, parameters_);
  if (const auto prepared = observer.prepare(*pipeline, options_.disabled); !prepared) {
    report(prepared.error());
    return false;
  }
  observer.attach(options);
  auto status = apl::run_pipeline(module_, *pipeline, options);
  if (!status) report(status.error());
  observer.finish(bool(status));
  return bool(status) && exit_code_ == kFine;  // a warning may be an error
}

}  // namespace aplc
