// aplc run FILE [ARG ...]: compile and call an entry on values.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "aplc/arguments.h"
#include "aplc/driver.h"
#include "aplc/sparse/constants.h"
#include "aplc/sparse/plans.h"
#include "codegen/emit/load.h"
#include "ir/interpret.h"
#include "ir/sparse_soa.h"
#include "runtime/program/program.h"
#include "runtime/program/sparse_tiles.h"

namespace aplc {
namespace {

struct RunOptions : CompileOptions {
  std::string entry;
  std::string backend = "c";
  std::vector<std::string> arguments;
  std::vector<std::string> plans;  // OPERAND=FILE
  bool use_cublas = false;
  std::uint64_t seed = 1;
  bool time = false;
  bool binary = false;
  bool no_cache = false;
};

// The entry asked for; without one `main`, or the only one there is.
const apl::Function* choose_entry(Session& session, const std::string& wanted) {
  const apl::Module& module = session.module();
  std::string names;
  const apl::Function* only = nullptr;
  std::size_t count = 0;
  for (const apl::FunctionPtr& function : module.functions) {
    if (!function->is_entry()) continue;
    names += (names.empty() ? "" : ", ") + function->entry->name;
    only = function.get();
    ++count;
  }
  if (!wanted.empty()) {
    if (const apl::Function* found = module.find_entry(wanted)) return found;
  } else if (const apl::Function* main = module.find_entry("main")) {
    return main;
  } else if (count == 1) {
    return only;
  }
  session.report(apl::make_error(apl::Code::command_bad_argument, {},
                                 wanted.empty() ? fmt::format("which entry? -e with one of: {}", names)
                                                : fmt::format("no entry `{}`; there are: {}", wanted, names)));
  return nullptr;
}

using Values = std::vector<apl::HostValue>;

struct Arguments {
  Values values;
  GivenMatrices matrices;
  std::vector<apl::SparsePlan> plans;
  // The operand whose non-zeros are to be written of a result that is dense because of a plan; as in `matrices`.
  std::optional<std::size_t> wanted;
};
struct Results {
  Values values;
  std::map<std::size_t, apl::HostCsr> matrices;  // in place of values
};

// The arguments as the function takes them.
apl::Result<apl::PackedArguments> place(const apl::Function& function, const std::string& entry,
                                        const Arguments& inputs, const RunOptions& options) {
  auto plans = apl::program::read_plans(inputs.plans);
  if (!plans) return std::move(plans).error();
  const apl::TileMaker tiles = apl::program::tile_maker(std::move(*plans), [&](const apl::program::PlanUse& use) {
    if (options.remarks || !use.used) sparse::print_plan_remark(apl::program::plan_remark(use, entry, {}));
  });
  return sparse::place_operands(function, inputs.values, inputs.matrices, tiles);
}

// Those with a sparse operand's pattern: as files have it where one was given, since it may be too large to be dense.
Results sparse_results(const apl::Function& function, const Arguments& inputs, const apl::PackedArguments& placed,
                       Values values) {
  const apl::SoaInterface sparse = apl::soa_interface(function);
  Results results{std::move(values), {}};
  if (inputs.matrices.empty()) {
    apl::unpack_results(sparse, placed, results.values);
    return results;
  }
  if (inputs.wanted && !results.values.empty())
    if (auto matrix = sparse::at_nonzeros(results.values.front(), inputs.matrices.at(*inputs.wanted)))
      results.matrices.emplace(0, *std::move(matrix));
  for (const auto& [result, soa] : sparse.results) {
    apl::HostCsr& matrix = results.matrices.insert_or_assign(result, *placed.matrices[soa]).first->second;
    matrix.values = std::move(results.values[result]);
  }
  return results;
}

apl::Result<Results> interpret(Session& session, const std::string& entry, const Arguments& inputs,
                               const RunOptions& options) {
  apl::InterpretOptions interpret;
  interpret.seed = options.seed;
  interpret.parameters = session.parameters();
  interpret.trace = [](const std::string& line) { print_error("{}\n", line); };
  const apl::Function& function = *session.module().find_entry(entry);
  auto placed = place(function, entry, inputs, options);
  if (!placed) return std::move(placed).error();
  const auto start = std::chrono::steady_clock::now();
  auto results = apl::interpret(session.module(), entry, placed->values, interpret);
  if (!results) return std::move(results).error();
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  if (options.time) print_error("{}: {}\n", entry, microseconds_text(time.count()));
  return sparse_results(function, inputs, *placed, std::move(*results));
}

apl::Result<Results> compile_and_call(Session& session, const std::string& entry, const Arguments& inputs,
                                      const RunOptions& options) {
  // Kernels may be compiled when they are called.
  auto folder = WorkFolder::make();
  if (!folder) return std::move(folder).error();
  apl::ProgramOptions program_options;
  program_options.temporary_folder = folder->path();
  program_options.backend = options.backend;
  program_options.seed = options.seed;
  program_options.device_record = options.device;
  program_options.sparse_plans = inputs.plans;
  program_options.use_cublas = options.use_cublas;
  program_options.remarks = [&](const apl::Remark& remark) {
    if (options.remarks || remark.kind == apl::RemarkKind::missed) sparse::print_plan_remark(remark);
  };
  if (!options.no_cache) program_options.cache = std::make_shared<apl::ObjectCache>(cache_folder());
  apl::CodegenOptions codegen;
  codegen.parameters = session.parameters();
  auto program = apl::load_program(session.module(), program_options, codegen);
  if (!program) return std::move(program).error();
  const apl::Function& function = *session.module().find_entry(entry);
  auto placed = place(function, entry, inputs, options);
  if (!placed) return std::move(placed).error();
  auto values = program->call(entry, placed->values, options.time);
  if (!values) return std::move(values).error();
  if (options.time) print_error("{}: {}\n", entry, microseconds_text(program->last_microseconds()));
  return sparse_results(function, inputs, *placed, std::move(*values));
}

void run(const RunOptions& options, int& exit) {
  Session session(options);
  exit = kFine;
  bool ok = session.read();
  const apl::Function* entry = ok ? choose_entry(session, options.entry) : nullptr;
  if (!entry) {
    exit = session.exit_code();
    return;
  }
  std::string name = entry->entry->name;
  Arguments inputs;
  auto values = read_arguments(*entry, options.arguments, inputs.matrices);
  if (!values) {
    session.report(values.error());
    exit = session.exit_code();
    return;
  }
  inputs.values = std::move(*values);
  auto plans = sparse::read_plans(options.plans, session.module());
  if (!plans) {
    session.report(plans.error());
    exit = session.exit_code();
    return;
  }
  // The interpreter checks the others, so it runs the program as the front end gave it; tiles are there after passes.
  const bool compile = options.backend != "interp" || options.tiles.wanted;
  if (compile) {
    const apl::FunctionPtr kept = *std::ranges::find(session.module().functions, entry, &apl::FunctionPtr::get);
    const auto say = [&](const apl::Remark& r) {
      if (options.remarks || r.kind == apl::RemarkKind::missed) sparse::print_plan_remark(r);
    };
    auto fitting = sparse::plans_of_call(*kept, *plans, inputs.values, inputs.matrices);
    auto placed =
        fitting ? sparse::place_plans(session.module(), *std::move(fitting), options.use_cublas, options.backend, say)
                : apl::Result<sparse::PlacedPlans>(fitting.error());
    if (!placed) {
      session.report(placed.error());
      exit = session.exit_code();
      return;
    }
    inputs.plans = std::move(placed->tiles);
    const auto requests = apl::sparse_requests(*kept);
    for (const apl::SparseRequest& request : requests ? *requests : std::vector<apl::SparseRequest>())
      if (request.result && inputs.matrices.contains(request.value) &&
          std::ranges::find(placed->dense, kept->entry->params[request.param].name, &apl::SparsePlan::operand) !=
              placed->dense.end())
        inputs.wanted = request.value;
    sparse::add_known(session.module(), name, inputs.values, inputs.matrices);
  }
  if (compile && !session.run(pipeline_for(options.backend, options.tiles))) {
    exit = session.exit_code();
    return;
  }
  if (!session.check_parameters()) {
    exit = session.exit_code();
    return;
  }
  auto results = options.backend == "interp" ? interpret(session, name, inputs, options)
                                             : compile_and_call(session, name, inputs, options);
  if (!results) {
    session.report(results.error());
    exit = session.exit_code();
    return;
  }
  for (std::size_t k = 0; k < results->values.size(); ++k) {
    const apl::HostValue& value = results->values[k];
    if (const auto matrix = results->matrices.find(k); matrix != results->matrices.end()) {
      write_out(sparse::to_matrix_market(matrix->second));
    } else {
      write_out(options.binary ? value.to_binary() : value.to_text() + "\n");
    }
  }
}

}  // namespace

void add_run(CLI::App& app, int& exit, const std::vector<std::string>& values) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "run an entry of a program");
  options->add_to(*command);
  // Values are taken as they stand: CLI11 would split `[1, 2]` into two arguments, and read -1 as an option.
  command->allow_extras();
  command->footer(
      "ARG: a value, @FILE, or name=VALUE, name=@FILE (a Matrix Market or .smtx file for a sparse operand); with none "
      "all values come from standard input. Values are text "
      "or binary, files may be packed by gzip; numbers without suffix are of the parameter's type. Values after -- may "
      "begin with a dash.");
  command->add_option("-e,--entry", options->entry, "entry to run (default: main, or the only one)");
  command->add_option("--backend", options->backend, "c, interp, emulate or cuda")
      ->check(CLI::IsMember({"c", "interp", "emulate", "cuda"}))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "order of threads in interpreter and emulation")->capture_default_str();
  command->add_option("--plan", options->plans, sparse::kPlanHelp)->type_name("OPERAND=PLAN")->allow_extra_args(false);
  command->add_flag("--use-cublas", options->use_cublas, sparse::kCublasHelp);
  options->tiles.add_to(*command);
  command->add_flag("-b,--binary-output", options->binary, "print results in the binary format");
  command->add_flag("--no-cache", options->no_cache, "compile even what was compiled before, and keep nothing");
  command->add_flag(
      "--time", options->time,
      "print the time of the call, without compiling and loading: it is made twice, and the second one counts");
  command->callback([options, command, &exit, &values] {
    for (const std::string& text : command->remaining()) {
      if (text.starts_with("--")) throw CLI::ExtrasError({text});
      options->arguments.push_back(text);
    }
    options->arguments.insert(options->arguments.end(), values.begin(), values.end());
    run(*options, exit);
  });
}

}  // namespace aplc
