#include "aplc/test/executable.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "aplc/arguments.h"
#include "aplc/artifact.h"
#include "aplc/driver.h"
#include "aplc/registry.h"
#include "aplc/sparse/plans.h"
#include "codegen/codegen.h"
#include "codegen/emit/library.h"
#include "frontend/frontend.h"
#include "ir/interpret.h"
#include "passes/pipeline.h"
#include "runtime/backends/toolchain.h"
#include "runtime/program/sparse_tiles.h"
#include "suite/values.h"

namespace aplc {

FrontEnd run_front_end(const std::string& file, const Parameters& parameters, const FrontOptions& options) {
  FrontEnd result;
  auto text = read_file(file);
  if (!text) {
    result.exit_code = exit_code(text.error());
    result.errors = result.said = apl::render(text.error(), "", "");
    return result;
  }
  result.text = std::move(*text);
  const auto mark = [&](const std::string& name) { result.marked.insert(name); };
  const auto sink = [&](const apl::Diagnostic& reported) {
    const std::optional<apl::Diagnostic> wanted = options.of(reported);
    if (!wanted) return;
    const apl::Diagnostic& diagnostic = *wanted;
    const std::string rendered = apl::render(diagnostic, "", "");
    result.said += rendered;
    if (diagnostic.severity == apl::Severity::error) {
      result.errors += rendered;
      if (result.exit_code == kFine) result.exit_code = exit_code(diagnostic);  // the first decides
    } else {
      result.warnings += rendered;
    }
  };
  auto module = apl::compile({file, result.text, parameters, {}, mark, options.safe}, sink);
  if (module && result.exit_code == kFine) {
    result.module = std::move(*module);
  } else if (result.exit_code == kFine) {
    result.exit_code = kBug;
    result.errors = "refused without a reason";
  }
  return result;
}

apl::Result<Tuning> tuning_beside(const std::string& file, const std::string& ending) {
  const std::string name = file + "." + ending;
  std::error_code none;
  if (!std::filesystem::exists(name, none)) return Tuning{};
  const auto text = read_file(name);
  if (!text) return text.error();
  std::map<std::string, std::uint32_t> lines;
  auto parameters = parse_tuning(*text, &lines);
  if (!parameters) {
    apl::Diagnostic error = std::move(parameters).error();
    error.file = name;
    return error;
  }
  Tuning tuning{*std::move(parameters), {}};
  for (const auto& [given, line] : lines) tuning.names.push_back({given, name, {line, 1, line, 1}});
  return tuning;
}

std::string unknown_names(const Tuning& tuning, const FrontEnd& front) {
  if (!front.module || tuning.names.empty()) return "";
  const auto known = check_parameters(tuning.names, tuning.values, front.marked, *front.module);
  if (known) return "";
  apl::Diagnostic warning = known.error();
  warning.severity = apl::Severity::warning;
  return apl::render(warning, warning.file, "");
}

apl::Result<Executable> Executable::make(const apl::Module& front, const ExecutableOptions& options) {
  Executable executable;
  executable.module_ = front;
  executable.parameters_ = options.parameters;
  if (!options.server.program.empty()) {
    auto server = Server::start(options.server.program, options.server, options.temporary_folder);
    if (!server) return std::move(server).error();
    executable.server_ = std::make_unique<Server>(*std::move(server));
    return executable;
  }
  if (options.server.wanted && options.backend != "c" && options.backend != "cuda")
    return apl::make_error(apl::Code::command_bad_argument, {},
                           fmt::format("no program can be given options, or be profiled, on {}", options.backend));
  if (options.backend == "interp" && !options.tiles.wanted) return executable;
  auto plans = sparse::read_plans(options.plans, front);
  if (!plans) return std::move(plans).error();
  if (options.use_cublas && options.server.wanted)
    return apl::make_error(apl::Code::command_bad_argument, {}, "--use-cublas is not for programs that run as servers");
  auto placing =
      sparse::place_plans(executable.module_, std::move(*plans), options.use_cublas, options.backend, options.remarks);
  if (!placing) return std::move(placing).error();
  sparse::PlacedPlans placed = *std::move(placing);
  if (!placed.dense.empty()) executable.front_ = front;
  executable.dense_plans_ = std::move(placed.dense);
  auto pipeline = apl::parse_pipeline(pipeline_for(options.backend, options.tiles), registry());
  if (!pipeline) return std::move(pipeline).error();
  apl::PipelineOptions pipeline_options;
  pipeline_options.disabled = options.disabled;
  pipeline_options.parameters = options.parameters;
  if (auto status = apl::run_pipeline(executable.module_, *pipeline, pipeline_options); !status)
    return std::move(status).error();
  if (options.backend == "interp") {
    auto tile_plans = apl::program::read_plans(placed.tiles);
    if (!tile_plans) return std::move(tile_plans).error();
    executable.tiles_ = apl::program::tile_maker(std::move(*tile_plans));
    return executable;
  }
  if (options.server.wanted) {
    if (auto served = executable.serve(options); !served) return std::move(served).error();
    return executable;
  }
  apl::CodegenOptions codegen;
  codegen.parameters = options.parameters;
  codegen.plans = plans_for(options.backend);
  auto text = apl::generate(executable.module_, target_of(options.backend, {}), codegen);
  if (!text) return std::move(text).error();
  apl::ProgramOptions program_options;
  program_options.backend = options.backend;
  program_options.temporary_folder = options.temporary_folder;
  program_options.cache = options.cache;
  program_options.sparse_plans = std::move(placed.tiles);
  program_options.use_cublas = options.use_cublas;
  program_options.remarks = options.remarks;
  auto program = apl::Program::load(text->host, program_options);
  if (!program) return std::move(program).error();
  executable.program_ = std::move(*program);
  return executable;
}

// Compiles the module to a server, in a folder that goes with the run, and starts it.
apl::Status Executable::serve(const ExecutableOptions& options) {
  apl::CodegenOptions codegen;
  codegen.parameters = options.parameters;
  codegen.plans = plans_for(options.backend);
  const apl::Target target = target_of(options.backend, {});
  const std::string program = fmt::format("{}/server-{}", options.temporary_folder, getpid()), source = program + ".c";
  auto text = apl::generate_library(module_, target, codegen, {apl::Artifact::server, "server", APL_VERSION});
  if (!text) return std::move(text).error();
  std::ofstream out(source);
  out << text->source;
  out.close();
  if (!out) return apl::make_error(apl::Code::command_no_such_file, {}, "cannot write " + source);
  if (auto compiled = apl::run_tool({"/bin/sh", "-c", artifact_command(target, program, source)}); !compiled)
    return std::move(compiled).error();
  auto server = Server::start(program, options.server, options.temporary_folder);
  if (!server) return std::move(server).error();
  server_ = std::make_unique<Server>(*std::move(server));
  return apl::Unit{};
}

apl::Result<Values> Executable::call(const std::string& entry, const Values& inputs, bool are_checked) {
  if (server_) return server_->call(entry, inputs);
  if (auto fits = are_checked ? apl::Status(apl::Unit{}) : check_plans(entry, inputs, {}); !fits)
    return std::move(fits).error();
  return program_ ? program_->call(entry, inputs) : interpret(entry, inputs);
}

apl::Status Executable::check_plans(const std::string& entry, const Values& inputs,
                                    const GivenMatrices& matrices) const {
  const apl::Function* function = dense_plans_.empty() ? nullptr : front_.find_entry(entry);
  return function == nullptr ? apl::Unit{} : sparse::check_dense_plans(*function, dense_plans_, inputs, matrices);
}

apl::Result<Values> Executable::interpret(const std::string& entry, const Values& inputs) const {
  apl::InterpretOptions options;
  options.parameters = parameters_;
  options.tiles = tiles_;
  return apl::interpret(module_, entry, inputs, options);
}

apl::Result<std::vector<double>> Executable::benchmark(const std::string& entry, const Values& inputs, int runs,
                                                       double seconds) {
  using Clock = std::chrono::steady_clock;
  if (server_) return server_->benchmark(entry, inputs, runs, seconds);
  if (program_) return program_->benchmark(entry, inputs, runs, seconds);
  std::vector<double> times;
  const auto begin = Clock::now();
  for (int k = 0; k < runs && (k == 0 || std::chrono::duration<double>(Clock::now() - begin).count() <= seconds); ++k) {
    const auto start = Clock::now();
    auto results = interpret(entry, inputs);
    if (!results) return std::move(results).error();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  return times;
}

namespace {

// What source cannot say of a script: its builtins, and `empty(...)`. Each is a value that is read before, a parameter
// of the entry that the script becomes.
struct Loaded {
  std::string script;
  std::string params;
  Values values;
};

class ScriptLoader {
 public:
  ScriptLoader(const std::string& file, const std::string& script)
      : folder_(std::filesystem::path(file).parent_path()), text_(script) {}

  apl::Result<Loaded> run() {
    while (at_ < text_.size()) {
      if (auto status = step(); !status) return std::move(status).error();
    }
    return std::move(loaded_);
  }

 private:
  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '\'' || c == '.';
  }

  apl::Status step() {
    const char c = text_[at_];
    if (c == '"') {
      const std::size_t end = std::min(text_.find('"', at_ + 1), text_.size() - 1);
      copy(end + 1 - at_);
    } else if (c == '$') {
      ++at_;
      return builtin(word());
    } else if (is_word(c)) {
      const std::size_t from = at_;
      if (word() == "empty" && is_empty_array()) return empty_array(from);
      loaded_.script += text_.substr(from, at_ - from);
    } else {
      copy(1);
    }
    return apl::Unit{};
  }

  void copy(std::size_t count) {
    loaded_.script += text_.substr(at_, count);
    at_ += count;
  }
  void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  std::string word() {
    const std::size_t from = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }
  // The next "..."; nullopt if there is none.
  std::optional<std::string> quoted() {
    skip_blanks();
    const std::size_t end = at_ < text_.size() && text_[at_] == '"' ? text_.find('"', at_ + 1) : std::string::npos;
    if (end == std::string::npos) return std::nullopt;
    std::string inner = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inner;
  }

  // Behind the word `empty`: `([0]...`, as no expression begins that applies a function of this name.
  bool is_empty_array() const {
    const std::size_t open = text_.find_first_not_of(" \t\r\n", at_);
    const std::size_t next = open == std::string::npos ? open : text_.find_first_not_of(" \t\r\n", open + 1);
    return next != std::string::npos && text_[open] == '(' && text_[next] == '[' &&
           std::isdigit(static_cast<unsigned char>(text_[std::min(next + 1, text_.size() - 1)])) != 0;
  }

  apl::Status empty_array(std::size_t from) {
    const std::size_t close = std::min(text_.find(')', at_), text_.size() - 1);
    at_ = close + 1;
    std::string array = text_.substr(from, at_ - from);
    std::erase_if(array, [](unsigned char c) { return std::isspace(c) != 0; });
    auto values = apl::parse_values(array);
    if (!values) return refuse(values.error().message);
    add(std::move(values->front()));
    return apl::Unit{};
  }

  apl::Status builtin(const std::string& name) {
    if (name != "loaddata" && name != "loadbytes" && name != "restore")
      return refuse(fmt::format("there is no ${}", name));
    const std::optional<std::string> type = name == "restore" ? quoted() : "";
    const std::optional<std::string> file = quoted();
    if (!type || !file) return refuse(fmt::format("${} takes {}\"FILE\"", name, name == "restore" ? "\"TYPE\" " : ""));
    const std::string path = (folder_ / *file).string();
    if (name == "loadbytes") {
      const auto bytes = read_file(path);
      if (!bytes) return bytes.error();
      add(apl::HostValue::array(apl::ScalarType::u8, {static_cast<std::int64_t>(bytes->size())},
                                std::vector<std::uint8_t>(bytes->begin(), bytes->end())));
      return apl::Unit{};
    }
    auto values = apl::suite::read_values(path);
    if (!values) return std::move(values).error();
    if (name == "restore") {
      // The parts of a value, as the entry has them of a parameter of its type.
      add(*type, std::move(*values));
    } else {
      loaded_.script += values->size() == 1 ? "" : "(";
      for (std::size_t k = 0; k < values->size(); ++k) {
        if (k > 0) loaded_.script += ", ";
        add(std::move((*values)[k]));
      }
      loaded_.script += values->size() == 1 ? "" : ")";
    }
    return apl::Unit{};
  }

  void add(apl::HostValue value) {
    std::string type;
    for (std::size_t k = 0; k < value.rank(); ++k) type += "[]";
    type += apl::to_text(value.type);
    add(type, {std::move(value)});
  }
  void add(const std::string& type, Values values) {
    const std::string param = fmt::format("loaded_{}", ++count_);
    loaded_.params += fmt::format(" ({}: {})", param, type);
    loaded_.script += param;
    loaded_.values.insert(loaded_.values.end(), std::make_move_iterator(values.begin()),
                          std::make_move_iterator(values.end()));
  }

  static apl::Diagnostic refuse(const std::string& why) {
    return apl::make_error(apl::Code::unsupported_construct, {}, "the script cannot be run: " + why);
  }

  std::filesystem::path folder_;
  const std::string& text_;
  std::size_t at_ = 0;
  std::size_t count_ = 0;
  Loaded loaded_;
};

// A script is an expression over the program's functions: it becomes one more entry, which the interpreter runs.
apl::Result<Values> run_script(const std::string& file, const std::string& source) {
  const auto loaded = ScriptLoader(file, source).run();
  if (!loaded) return loaded.error();
  const auto text = read_file(file);
  if (!text) return text.error();
  constexpr const char* kEntry = "input_script";
  std::optional<apl::Diagnostic> first;
  const auto sink = [&](const apl::Diagnostic& diagnostic) {
    if (!first && diagnostic.severity == apl::Severity::error) first = diagnostic;
  };
  const auto module =
      apl::compile({file, fmt::format("{}\nentry {}{} =\n{}\n", *text, kEntry, loaded->params, loaded->script)}, sink);
  if (!module)
    return apl::make_error(apl::Code::unsupported_construct, {},
                           fmt::format("the script cannot be run: {}", first ? first->message : ""));
  Values inputs = loaded->values;
  if (auto fits = fit_inputs(*module->find_entry(kEntry), inputs); !fits)
    return apl::make_error(apl::Code::command_bad_argument, {},
                           "what the script loads is not of the types that it is used as: " + fits.error().message);
  return apl::interpret(*module, kEntry, inputs);
}

}  // namespace

apl::Result<Values> case_inputs(const std::string& file, const apl::suite::Input& input, const apl::Function& entry,
                                std::uint64_t seed) {
  using Kind = apl::suite::Input::Kind;
  std::vector<apl::ScalarType> types;
  for (const apl::Value param : entry.given_params()) types.push_back(entry.type(param).element);
  switch (input.kind) {
    case Kind::values: return apl::parse_values(input.text, apl::OutOfRange::wrap);
    case Kind::file: return apl::suite::read_values(std::filesystem::path(file).parent_path() / input.text, types);
    case Kind::random: return apl::suite::generate_values(input.text, seed);
    case Kind::script: return run_script(file, input.text);
    case Kind::script_file: {
      const std::string name = (std::filesystem::path(file).parent_path() / input.text).string();
      const auto script = read_file(name);
      return script ? run_script(file, *script) : script.error();
    }
  }
  return apl::make_error(apl::Code::bug_internal, {}, "an input of no known kind");
}

apl::Status fit_inputs(const apl::Function& entry, Values& inputs) {
  auto describe = [](apl::ScalarType type, std::size_t rank) {
    std::string text;
    for (std::size_t k = 0; k < rank; ++k) text += "[]";
    return text + std::string(apl::to_text(type));
  };
  if (const std::size_t wanted = entry.given_params().size(); inputs.size() != wanted)
    return apl::make_error(
        apl::Code::run_argument, {},
        fmt::format("the entry `{}` takes {} values, {} are given", entry.name, wanted, inputs.size()));
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const apl::Type& type = entry.type(entry.params[k]);
    round_stored(inputs[k], type.element);
    if (inputs[k].type == type.element && inputs[k].rank() == type.rank()) continue;
    return apl::make_error(
        apl::Code::run_argument, {},
        fmt::format("parameter {} of `{}` is a {}, the value given is a {}", k, entry.name,
                    describe(type.element, type.rank()), describe(inputs[k].type, inputs[k].rank())));
  }
  return apl::Unit{};
}

std::string error_text(const apl::Diagnostic& diagnostic, const std::string& file) {
  return "Error: " + apl::render(diagnostic, file, "");
}

}  // namespace aplc
