#include "aplc/driver.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "frontend/frontend.h"
#include "ir/parse.h"
#include "ir/verify.h"

namespace aplc {

int exit_code(const apl::Diagnostic& diagnostic) {
  switch (apl::code_fault(diagnostic.code)) {
    case apl::Fault::program: return kProgram;
    case apl::Fault::command_line: return kCommandLine;
    case apl::Fault::limitation: return kLimitation;
    case apl::Fault::bug: return kBug;
  }
  return kBug;
}

std::optional<std::string> read_file(const std::string& name) {
  if (name == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::error_code ignored;
  if (std::filesystem::is_directory(name, ignored)) return std::nullopt;
  std::ifstream in(name, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

namespace {

bool write_at(const std::string& name, std::string_view text) {
  std::ofstream out(name, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.flush();
  return out.good();
}

}  // namespace

bool write_file(const std::string& name, std::string_view text) {
  std::error_code ignored;
  const auto status = std::filesystem::status(name, ignored);
  if (std::filesystem::is_directory(status)) return false;
  // Devices and pipes are written to, never replaced, and so is what a link points to.
  const bool is_link = std::filesystem::is_symlink(name, ignored), is_there = std::filesystem::exists(status);
  if (is_there ? !std::filesystem::is_regular_file(status) : is_link) return write_at(name, text);
  const std::string target = is_link ? std::filesystem::canonical(name, ignored).string() : name;
  const std::string temporary = target + ".tmp";
  if (!target.empty() && write_at(temporary, text) && std::rename(temporary.c_str(), target.c_str()) == 0) return true;
  std::remove(temporary.c_str());
  return false;
}

int emit(const std::string& name, std::string_view text) {
  if (name.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return kFine;
  }
  if (write_file(name, text)) return kFine;
  fmt::print(stderr, "aplc: error: cannot write {} [command.no-such-file]\n", name);
  return kCommandLine;
}

void CompileOptions::add_to(CLI::App& app) {
  app.add_option("FILE", file, "program: .fut (Futhark source) or .aplir (textual IR)")->required();
  app.add_option("--param", parameters, "tuning parameter NAME=VALUE, as mm1.T_a=16")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  app.add_option("--tuning", tuning, "file of tuning parameters, a line NAME=VALUE each; --param goes first")
      ->type_name("FILE");
  app.add_option("--device", device,
                 "machine for which tile numbers are chosen: a100, h100, h200, gpu, cpu, or a file like those of "
                 "codegen/runtime/devices (default: h200, or cpu; when the program runs, the one that is there)")
      ->type_name("NAME|FILE");
  app.add_option("--disable", disabled, "leave out a pass of the standard pipeline")
      ->allow_extra_args(false)
      ->type_name("PASS");
  app.add_flag("--remarks", remarks, "print what the passes did and did not do, and why");
  app.add_flag("--timing", timing, "print the time that each pass took");
  app.add_flag("--verify-each,!--no-verify-each", verify_each, "verify the IR after every pass (default: yes)");
}

void Session::report(const apl::Diagnostic& diagnostic) {
  const std::string& file = diagnostic.file.empty() ? options_.file : diagnostic.file;
  fmt::print(stderr, "{}", apl::render(diagnostic, file, diagnostic.file.empty() ? text_ : std::string()));
  // The first error decides: what follows may come of it.
  if (diagnostic.severity == apl::Severity::error && exit_code_ == kFine) exit_code_ = aplc::exit_code(diagnostic);
}

namespace {

// NAME=VALUE with a number of at least `least`.
std::optional<std::pair<std::string, std::int64_t>> parse_parameter(const std::string& text, std::int64_t least) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return std::nullopt;
  std::int64_t value = 0;
  const char* first = text.data() + equals + 1;
  const char* last = text.data() + text.size();
  auto [end, error] = std::from_chars(first, last, value);
  if (error != std::errc() || end != last || first == last || value < least) return std::nullopt;
  return std::pair(text.substr(0, equals), value);
}

}  // namespace

apl::Result<Parameters> parse_tuning(const std::string& text) {
  Parameters parameters;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    const auto parameter = parse_parameter(line, 0);
    if (!parameter)
      return apl::make_error(apl::Code::command_bad_parameter, {},
                             fmt::format("tuning file: expected NAME=VALUE with a whole number, found `{}`", line));
    parameters.erase(parameter->first);
    if (parameter->second > 0) parameters.insert(*parameter);
  }
  return parameters;
}

int plans_for(const std::string& backend) {
  constexpr int kCompiled = 4, kChosen = 12;
  return backend == "c" ? kCompiled : kChosen;
}

std::string pipeline_for(const std::string& backend, const TileOptions& tiles) {
  std::string text = apl::standard_pipeline(backend == "interp" ? apl::Stage::kernel : apl::Stage::memory,
                                            backend == "c" ? apl::Machine::cpu : apl::Machine::gpu, true);
  constexpr std::string_view kPass = "sparsify";
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

std::string cache_folder() {
  const auto variable = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
  if (const std::string folder = variable("XDG_CACHE_HOME"); folder.starts_with('/')) return folder + "/aplc";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/aplc";
}

bool Session::read_parameters() {
  if (!options_.tuning.empty()) {
    const auto text = read_file(options_.tuning);
    if (!text) {
      report(apl::make_error(apl::Code::command_no_such_file, {}, fmt::format("cannot read {}", options_.tuning)));
      return false;
    }
    auto tuning = parse_tuning(*text);
    if (!tuning) {
      report(tuning.error());
      return false;
    }
    parameters_ = std::move(*tuning);
  }
  for (const std::string& text : options_.parameters) {
    const auto parameter = parse_parameter(text, 1);
    if (!parameter) {
      report(apl::make_error(apl::Code::command_bad_parameter, {},
                             fmt::format("--param {}: expected NAME=VALUE with a whole number of at least 1", text)));
      return false;
    }
    parameters_[parameter->first] = parameter->second;
  }
  return true;
}

bool Session::read() {
  if (!read_parameters()) return false;
  auto text = read_file(options_.file);
  if (!text) {
    report(apl::make_error(apl::Code::command_no_such_file, {}, fmt::format("cannot read {}", options_.file)));
    return false;
  }
  text_ = std::move(*text);
  if (options_.file.ends_with(".aplir")) {
    auto parsed = apl::parse_module(text_, options_.file);
    if (!parsed) {
      report(parsed.error());
      return false;
    }
    module_ = std::move(*parsed);
    for (const apl::Diagnostic& broken : apl::verify(module_)) report(broken);
  } else {
    auto compiled = apl::compile({options_.file, text_, parameters_}, [this](const apl::Diagnostic& d) { report(d); });
    if (compiled) module_ = std::move(*compiled);
  }
  return exit_code_ == kFine;
}

bool Session::run(std::string_view text) {
  auto pipeline = apl::parse_pipeline(text, apl::PassRegistry::builtin());
  if (!pipeline) {
    report(pipeline.error());
    return false;
  }
  apl::PipelineOptions options;
  options.parameters = parameters_;
  options.disabled = options_.disabled;
  options.verify_each = options_.verify_each;
  if (options_.remarks || options_.keep_remarks)
    options.remarks = [this](const apl::Remark& remark) {
      if (options_.keep_remarks) remarks_.push_back(remark);
      if (options_.remarks) fmt::print(stderr, "{}\n", apl::render(remark, options_.file));
    };
  options.after_pass = [this](const apl::PassReport& pass, const apl::Module&) {
    passes_.push_back(pass);
    if (options_.timing)
      fmt::print(stderr, "{:>10.3f} ms  {}{}\n", std::chrono::duration<double, std::milli>(pass.time).count(),
                 pass.pass, pass.change == apl::Change::no ? " (nothing to do)" : "");
  };
  auto status = apl::run_pipeline(module_, *pipeline, options);
  if (!status) report(status.error());
  return bool(status);
}

}  // namespace aplc
