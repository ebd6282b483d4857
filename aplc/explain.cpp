// aplc explain FILE[:LINE]: what became of the program on one screen; or every decision of the passes on it, or on one
// line of it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "aplc/driver.h"
#include "aplc/explain_overview.h"
#include "aplc/explain_plan.h"
#include "aplc/report/report.h"
#include "aplc/sparse/constants.h"
#include "aplc/sparse/explain.h"
#include "aplc/sparse/explain_sections.h"
#include "aplc/sparse/files.h"
#include "aplc/sparse/picture.h"
#include "aplc/sparse/plans.h"
#include "aplc/spills.h"
#include "aplc/tune_log.h"
#include "codegen/codegen.h"
#include "ir/sparse_arguments.h"
#include "machine/target/records.h"
#include "machine/target/target.h"
#include "runtime/program/sparse_plans.h"
#include "runtime/sparse/csr_view.h"

namespace aplc {
namespace {

constexpr std::size_t kScreen = 25;  // lines

std::string_view kind_text(apl::RemarkKind kind) {
  switch (kind) {
    case apl::RemarkKind::applied: return "applied";
    case apl::RemarkKind::missed: return "missed";
    case apl::RemarkKind::analysis: return "analysis";
  }
  return "?";
}

void show(const apl::Remark& remark, const std::string& file) {
  print_out("{}:{}:{}: {}: {} ({}) in {}\n", file, remark.location.line, remark.location.column, remark.pass,
            remark.message, kind_text(remark.kind), remark.function);
  for (const auto& [key, value] : remark.facts) print_out("    {:<23} {}\n", key, value);
  if (!remark.suggestion.empty()) print_out("    {:<23} {}\n", "suggestion", remark.suggestion);
}

nlohmann::ordered_json to_json(const apl::Remark& remark) {
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
  for (const auto& [key, value] : remark.facts) facts[key] = value;
  return {{"pass", remark.pass},
          {"kind", kind_text(remark.kind)},
          {"code", remark.code},
          {"function", remark.function},
          {"line", remark.location.line},
          {"column", remark.location.column},
          {"message", remark.message},
          {"facts", facts},
          {"suggestion", remark.suggestion}};
}

std::string usual_gpu() { return std::string(apl::find_dialect("cuda")->record); }

// A record of a CPU has the C backend's pipeline.
apl::Machine machine_of(const CompileOptions& options) {
  const auto device = options.device.empty() ? apl::Result<apl_device>(apl_device{}) : apl::find_device(options.device);
  return device && !options.device.empty() && device->warp == 0 ? apl::Machine::cpu : apl::Machine::gpu;
}

// Numbers of `--size`.
bool read_sizes(Session& session, const std::vector<std::string>& texts, Sizes& sizes) {
  for (const std::string& text : texts) {
    const auto parsed = parse_size(text);
    if (!parsed) {
      session.report(parsed.error());
      return false;
    }
    sizes.insert(*parsed);
  }
  return true;
}

// What tile numbers the contractions run with.
bool add_plans(Session& session, const CompileOptions& options, const Sizes& sizes, const apl::SpillCheck& check,
               std::vector<apl::Remark>& remarks) {
  auto device = apl::find_device(options.device.empty() ? usual_gpu() : options.device);
  if (!device) {
    session.report(device.error());
    return false;
  }
  for (const apl::FunctionPtr& function : session.module().functions) {
    if (!function->entry) continue;
    for (const PlannedContraction& planned :
         find_planned(session.module(), function->entry->name, sizes, session.parameters()))
      if (const auto refusal = apl::refuse_given(planned.data, *function, planned.forced, *device)) {
        session.report(*refusal);
        return false;
      }
  }
  for (apl::Remark& remark :
       explain_plans(session.module(), sizes, options.file, session.text(), *device, session.parameters(), check))
    remarks.push_back(std::move(remark));
  return true;
}

struct SparseExplain {
  std::vector<std::string> operands, plans;  // as they were given
  bool measure = false, use_cublas = false;
  std::map<std::string, sparse::ExplainedMatrix> matrices;
  std::vector<apl::SparsePlan> tiles;
  std::optional<apl::sparse::Profile> profile;  // of --device
};

// A profile for products over non-zeros stands for its machine; contractions are explained for any of its kind. False
// with an error, if it is damaged.
bool take_profile(CompileOptions& options, SparseExplain& given, int& exit) {
  if (options.device.empty()) return true;
  const sparse::FileText file(options.device);
  if (file.problem() || !file.text().starts_with("apl-device-profile")) return true;
  given.profile = sparse::load_profile(options.device, exit);
  if (given.profile) options.device = given.profile->gpu ? "" : "cpu";
  return given.profile.has_value();
}

// Reads what was given for sparse operands; plans that say `form dense` make the program dense.
apl::Status read_sparse(Session& session, SparseExplain& given, const std::string& backend,
                        std::vector<apl::Remark>& remarks) {
  auto matrices = sparse::read_explained(given.operands);
  if (!matrices) return std::move(matrices).error();
  given.matrices = std::move(*matrices);
  auto plans = sparse::read_plans(given.plans, session.module());
  if (!plans) return std::move(plans).error();
  auto placing = sparse::place_plans(session.module(), std::move(*plans), given.use_cublas, backend,
                                     [&](const apl::Remark& remark) { remarks.push_back(remark); });
  if (!placing) return std::move(placing).error();
  sparse::PlacedPlans placed = *std::move(placing);
  given.tiles = std::move(placed.tiles);
  const auto dense = apl::program::read_plans(placed.dense);
  if (!dense) return dense.error();
  for (const auto& [operand, matrix] : given.matrices)
    if (auto fits = apl::program::plans_for(*dense, operand, apl::csr_view(matrix.matrix)); !fits)
      return std::move(fits).error();
  return apl::Unit{};
}

// Those of constant operands are compiled into the program.
apl::Status read_constants(Session& session, const SparseExplain& given) {
  std::vector<std::string> texts;
  for (const std::string& text : given.operands)
    for (const apl::FunctionPtr& function : session.module().functions) {
      const auto operands = sparse::constant_operands(*function);
      const auto is_it = [&](const auto& operand) { return text.starts_with(operand.first + "=@"); };
      if (std::ranges::none_of(operands, is_it)) continue;
      texts.push_back(text);
      break;
    }
  return sparse::read_known(session.module(), texts);
}

// The matrices' sizes are those of the program, unless others are given.
void add_sizes(const apl::Module& module, const SparseExplain& given, Sizes& sizes) {
  const auto add = [&](const apl::Function& function, const apl::Poly& dim, std::int64_t size) {
    if (const auto value = dim.symbol()) sizes.emplace(function.values.name(*value), size);
  };
  for (const apl::FunctionPtr& function : module.functions) {
    if (!function->entry) continue;
    const auto requests = apl::sparse_requests(*function);
    if (!requests) continue;  // said where the program is compiled
    for (const apl::SparseRequest& request : *requests) {
      const auto found = given.matrices.find(function->entry->params[request.param].name);
      if (found == given.matrices.end()) continue;
      const auto& shape = function->type(function->params[request.value]).shape;
      add(*function, shape[0], found->second.matrix.rows);
      add(*function, shape[1], found->second.matrix.columns);
      sizes.emplace(apl::count_name(found->first, apl::SoaExtent::nonzeros), found->second.matrix.nonzeros());
    }
  }
}

// The matrices of the first dataset, which stand for those that nobody gives.
void take_matrices_of_dataset(const apl::Module& module, const std::string& file, const std::string& text,
                              SparseExplain& given) {
  for (const apl::FunctionPtr& function : module.functions) {
    const auto requests = apl::sparse_requests(*function);
    if (!function->entry || !requests || requests->empty()) continue;
    const auto inputs = first_inputs(file, text, *function);
    if (!inputs) continue;
    for (const apl::SparseRequest& request : *requests) {
      if (request.value >= inputs->size() || (*inputs)[request.value].rank() != 2) continue;
      apl::HostCsr matrix = apl::to_csr((*inputs)[request.value]);
      given.matrices.emplace(
          function->entry->params[request.param].name,
          sparse::ExplainedMatrix{
              "the first dataset",
              {matrix.rows, matrix.columns, std::move(matrix.row_start), std::move(matrix.column), {}}});
    }
  }
}

// The products over non-zeros.
apl::Status add_products(Session& session, const CompileOptions& options, const SparseExplain& given,
                         const Sizes& sizes, std::vector<apl::Remark>& remarks,
                         std::vector<sparse::ComparedPlans>& compared) {
  const bool gpu = machine_of(options) == apl::Machine::gpu;
  const apl::sparse::Profile profile =
      given.profile ? *given.profile : *apl::sparse::builtin_profile(apl::find_dialect(gpu ? "cuda" : "c")->record);
  std::string device;
  if (const auto asked = apl::find_device(options.device); asked && !options.device.empty() && !given.profile)
    device = asked->name;
  const auto known = [&](const apl::Function& function) {
    return sizes.empty() && !given.matrices.empty() ? first_dataset(options.file, session.text(), function) : sizes;
  };
  auto products = sparse::explain_products(
      session.module(), {given.matrices, given.tiles, known, profile, device, gpu, given.measure, given.use_cublas,
                         [&](const sparse::ComparedPlans& plans) { compared.push_back(plans); }});
  if (!products) return std::move(products).error();
  remarks.insert(remarks.end(), products->begin(), products->end());
  return apl::Unit{};
}

// What is code.
apl::Status add_constants(const Session& session, const CompileOptions& options, const std::string& log,
                          std::vector<apl::Remark>& remarks) {
  const bool gpu = machine_of(options) == apl::Machine::gpu;
  const auto device = apl::find_device(options.device.empty() ? usual_gpu() : options.device);
  if (!device) return device.error();
  const auto text = log.empty() ? apl::Result<std::string>(std::string()) : read_file(log);
  if (!text) return text.error();
  for (apl::Remark& remark : sparse::explain_sections(session.module(), gpu, *device, *text))
    remarks.push_back(std::move(remark));
  return apl::Unit{};
}

// The trials of a tuning log that succeeded.
apl::Result<std::vector<std::pair<std::string, double>>> read_trials(const std::string& name) {
  std::vector<std::pair<std::string, double>> trials;
  if (name.empty()) return trials;
  const auto text = read_file(name);
  if (!text) return text.error();
  for (std::size_t begin = 0; begin < text->size();) {
    const std::size_t end = std::min(text->find('\n', begin), text->size());
    const auto line = nlohmann::json::parse(text->substr(begin, end - begin), nullptr, false);
    begin = end + 1;
    if (!line.is_object() || !line.contains("times") || !line["times"].is_object()) continue;
    std::map<std::string, double> times;
    for (const auto& [dataset, time] : line["times"].items())
      if (time.is_number()) times[dataset] = time.get<double>();
    const auto parameters = line.find("parameters");
    if (times.empty() || parameters == line.end() || !parameters->is_string()) continue;
    trials.emplace_back(parameters->get<std::string>(), geometric_mean(times));
  }
  return trials;
}

// A picture of a product's matrix with the tiles of its plan, and the times of all plans.
report_page::SparseProduct described(const sparse::ComparedPlans& compared, const sparse::ExplainedMatrix& matrix) {
  report_page::SparseProduct product{compared.title, {}, {}, compared.times};
  int exit = kFine;
  const auto plan = sparse::parse_plan(compared.plan, matrix.file, exit);
  const auto tiles = plan && !plan->dense ? sparse::make_tiles(matrix.matrix, *plan, exit) : sparse::TilesPointer();
  product.picture = sparse::picture(matrix.matrix, tiles.get());
  const std::string whose = compared.is_given ? "the plan that was given" : "a plan that a short search finds";
  product.note = !tiles ? fmt::format("The pattern of {}; {} is the dense product.", matrix.file, whose)
                        : fmt::format("The pattern of {}, with the tiles of {}.", matrix.file, whose);
  if (!compared.is_given)
    product.note += " The program follows a plan if it is given one with --plan, and built-in rules if not.";
  return product;
}

int write_report(Session& session, const CompileOptions& options, const SparseExplain& given,
                 const std::vector<apl::Remark>& remarks, const std::vector<sparse::ComparedPlans>& compared,
                 const Sizes& sizes, std::string output, const std::string& log) {
  const bool is_cpu = machine_of(options) == apl::Machine::cpu;
  report_page::Input input;
  input.file = options.file.substr(options.file.rfind('/') + 1);
  input.text = session.text();
  input.module = &session.module();
  input.remarks = remarks;
  for (const auto& [pass, text] : session.stages()) input.stages.push_back({pass, text});
  input.sizes = sizes;
  input.device = *apl::find_device(options.device.empty() ? usual_gpu() : options.device);
  input.parameters = session.parameters();
  for (const sparse::ComparedPlans& plans : compared)
    input.products.push_back(described(plans, given.matrices.at(plans.operand)));
  // Matrices that no product goes over.
  for (const auto& [operand, matrix] : given.matrices)
    if (std::ranges::find(compared, operand, &sparse::ComparedPlans::operand) == compared.end())
      input.products.push_back({fmt::format("`{}`", operand),
                                fmt::format("The pattern of {}; no product goes over its non-zeros.", matrix.file),
                                sparse::picture(matrix.matrix, nullptr),
                                {}});
  auto trials = read_trials(log);
  if (!trials) return aplc::report(trials.error());
  input.trials = std::move(*trials);
  apl::CodegenOptions codegen;
  codegen.parameters = session.parameters();
  codegen.plans = plans_for(is_cpu ? "c" : "cuda");
  codegen.device = options.device;
  auto program = apl::generate(session.module(), target_of(is_cpu ? "c" : "cuda", options.device), codegen);
  if (!program) {
    session.report(program.error());
    return session.exit_code();
  }
  input.generated = is_cpu ? program->host : program->kernels;
  if (output.empty()) output = input.file.substr(0, input.file.rfind('.')) + ".html";
  const int exit = emit(output, report_page::page(input));
  if (exit == kFine && output != "-") print_out("{}\n", output);
  return exit;
}

// Leaves the entry asked for alone in the module; all of them where none is.
apl::Status keep_entry(apl::Module& module, const std::string& wanted) {
  if (wanted.empty()) return apl::Unit{};
  std::string names;
  for (const apl::FunctionPtr& function : module.functions)
    if (function->is_entry()) names += (names.empty() ? "" : ", ") + function->entry->name;
  if (module.find_entry(wanted) == nullptr)
    return apl::make_error(apl::Code::command_bad_argument, {},
                           fmt::format("no entry `{}`; there are: {}", wanted, names));
  std::erase_if(module.functions, [&](const apl::FunctionPtr& function) {
    return function->is_entry() && function->entry->name != wanted;
  });
  return apl::Unit{};
}

// Where something was decided, if not on the line asked for.
void show_nearest(const std::vector<apl::Remark>& remarks, std::uint32_t line, const std::string& text) {
  std::uint32_t before = 0, after = 0;
  for (const apl::Remark& remark : remarks) {
    const std::uint32_t at = remark.location.line;
    if (at == 0) continue;
    if (at > line && (after == 0 || at < after)) after = at;
    if (at < line && at > before) before = at;
  }
  const std::uint32_t nearest = after ? after : before;
  if (nearest == 0) {
    print_out("no pass decided anything about this program\n");
    return;
  }
  std::size_t begin = 0;
  for (std::uint32_t k = 1; k < nearest; ++k) begin = text.find('\n', begin) + 1;
  begin = std::min(text.find_first_not_of(" \t", begin), text.size());
  print_out("nothing was decided about line {}; the {} line with a decision is {}: {}\n", line, after ? "next" : "last",
            nearest, text.substr(begin, text.find('\n', begin) - begin));
}

}  // namespace

namespace {

// `aplc explain`, or `aplc report`, which says the same on a page.
void add_command(CLI::App& app, int& exit, bool report) {
  struct Options : CompileOptions {
    std::string output, log;  // of a report; the log of an explanation is of constant operands
    std::string entry;        // the only one that is explained
    bool json = false, all = false;
    std::vector<std::string> sizes;
    std::uint32_t line = 0;
    std::string ptxas;  // an architecture
    SparseExplain sparse;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      report ? app.add_subcommand("report", "write a page about the program: decisions, kernels, passes, code")
             : app.add_subcommand("explain",
                                  "say what became of each line of the program, or what each pass did to it and why");
  options->add_to(*command);
  command->get_option("--device")
      ->description(fmt::format(
          "machine: {}, a file of lines `name = value`, or a profile of `aplc sparse calibrate` (default: {} "
          "of --all, --json and FILE:LINE, else {})",
          fmt::join(apl::device_names(), ", "), usual_gpu(), apl::c_dialect().record));
  command->add_option("-e,--entry", options->entry, "the entry to explain (default: all)");
  if (report) {
    command->add_option("-o,--output", options->output, "file to write (default: the program's name with .html)");
    command->add_option("--log", options->log, "what `aplc tune --log` measured")->type_name("FILE");
  } else {
    command->get_option("FILE")->description("program, or PROGRAM:LINE for the decisions on one line");
    command->add_option("--log", options->log, "what `aplc sections --log` measured of constant operands")
        ->type_name("FILE");
  }
  if (!report)
    command->add_flag("--all", options->all, "every decision with its facts, not only what became of each line");
  if (!report)
    command->add_flag(fmt::format("--ptxas{{{}}}", kUsualArchitecture), options->ptxas,
                      fmt::format("ask nvcc which plans a program drops when it loads them, as their kernels spill; "
                                  "--ptxas=ARCHITECTURE for another one than {}",
                                  kUsualArchitecture));
  if (!report) command->add_flag("--json", options->json, "every decision as JSON");
  command
      ->add_option("--size", options->sizes,
                   "a size of the program for which plans are explained, as n=1024; default: those of the first "
                   "dataset")
      ->type_name("NAME=NUMBER")
      ->allow_extra_args(false);
  command->add_option("OPERAND", options->sparse.operands, "matrices of sparse operands, as A=@M.mtx");
  command->add_option("--plan", options->sparse.plans, sparse::kPlanHelp)
      ->type_name("OPERAND=PLAN")
      ->allow_extra_args(false);
  command->add_flag("--use-cublas", options->sparse.use_cublas, sparse::kCublasHelp);
  options->tiles.add_to(*command);
  command->add_flag("--measure", options->sparse.measure, "run the products of given matrices on this machine, too");
  command->callback([options, &exit, report] {
    std::size_t colon = options->file.rfind(':');
    if (!report && colon != std::string::npos) {
      std::uint32_t line = 0;
      const char* last = options->file.data() + options->file.size();
      auto [end, error] = std::from_chars(options->file.data() + colon + 1, last, line);
      if (error == std::errc() && end == last) {
        options->line = line;
        options->file.resize(colon);
      }
    }
    options->keep_remarks = true;
    options->keep_stages = report;
    const bool overview = !options->all && !options->json && options->line == 0;
    // What `aplc run` would use.
    if (overview && options->device.empty()) options->device = usual_cpu();
    if (!take_profile(*options, options->sparse, exit)) return;
    Session session(*options);
    std::vector<apl::Remark> dense, remarks;
    std::vector<sparse::ComparedPlans> compared;
    Sizes sizes;
    bool fine = session.read() && read_sizes(session, options->sizes, sizes);
    const auto check = [&](const apl::Status& status) {
      if (!status) session.report(status.error());
      fine = fine && status;
    };
    const std::string backend = machine_of(*options) == apl::Machine::cpu ? "c" : "cuda";
    if (fine) check(keep_entry(session.module(), options->entry));
    if (fine) check(read_sparse(session, options->sparse, backend, dense));
    if (fine) check(read_constants(session, options->sparse));
    if (fine) add_sizes(session.module(), options->sparse, sizes);
    if (fine && (overview || report) && sizes.empty() && options->sparse.plans.empty())
      take_matrices_of_dataset(session.module(), options->file, session.text(), options->sparse);
    if (fine) fine = session.run(pipeline_for(backend, options->tiles)) && session.check_parameters();
    if (fine) check(check_sizes(sizes, session.front(), session.module()));
    const apl::SpillCheck check_spills = options->ptxas.empty() ? nullptr : spill_check(options->ptxas);
    remarks = session.remarks();
    remarks.insert(remarks.begin(), dense.begin(), dense.end());
    if (fine) fine = add_plans(session, *options, sizes, check_spills, remarks);
    if (fine) check(add_products(session, *options, options->sparse, sizes, remarks, compared));
    if (fine) check(add_constants(session, *options, report ? std::string() : options->log, remarks));
    exit = session.exit_code();
    if (exit != kFine) return;
    if (report) {
      exit = write_report(session, *options, options->sparse, remarks, compared, sizes, options->output, options->log);
      return;
    }
    if (overview) {
      const bool colour = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
      const auto device = apl::find_device(options->device.empty() ? usual_gpu() : options->device);
      std::set<std::string> matrices;
      for (const auto& [operand, matrix] : options->sparse.matrices) matrices.insert(operand);
      const std::vector<Overview> all = overviews(session.module(), remarks, sizes, options->file, session.text(),
                                                  *device, session.parameters(), check_spills, matrices);
      print_out("{}", overview_text(all, options->file, *device, kScreen, colour));
      return;
    }
    bool any = false;
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const apl::Remark& remark : remarks) {
      bool here = options->line == 0 || (remark.location.line <= options->line &&
                                         options->line <= std::max(remark.location.line, remark.location.end_line));
      if (!here) continue;
      any = true;
      if (options->json) {
        all.push_back(to_json(remark));
      } else {
        show(remark, options->file);
      }
    }
    if (options->json) {
      print_out("{}\n", all.dump(2));
    } else if (!any && options->line != 0) {
      show_nearest(remarks, options->line, session.text());
    }
  });
}

}  // namespace

void add_explain(CLI::App& app, int& exit) { add_command(app, exit, false); }
void add_report(CLI::App& app, int& exit) { add_command(app, exit, true); }

}  // namespace aplc
