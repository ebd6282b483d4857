// aplc sparse: looks at sparse matrices, and searches for plans (docs/sparse.md).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aplc/driver.h"
#include "aplc/sparse/calibrate.h"
#include "aplc/sparse/estimate.h"
#include "aplc/sparse/files.h"
#include "aplc/sparse/on_device.h"
#include "aplc/sparse/picture.h"
#include "aplc/test/executable.h"
#include "ir/sparse_soa.h"
#include "machine/target/target.h"
#include "passes/sparse/order.h"
#include "passes/sparse/read.h"
#include "passes/sparse/search.h"
#include "runtime/sparse/csr_view.h"
#include "suite/sparse/calibrate.h"
#include "suite/sparse/measure.h"

namespace aplc {
namespace {

struct SparseOptions {
  std::string input, output, matrix, svg, device = std::string(apl::find_dialect("cuda")->record),
                                          name = "this-machine", machine = "cpu";
  std::string op = "spmm", formats = "block,ell,1d";
  std::string type, program, entry;  // empty: not said
  std::int64_t dense = 128, element_bytes = 0;
  double ratio = 1.2, seconds = 0;
  int levels = 0, threads = 0;
  bool keep_order = false, no_withdraw = false, measure = false, quiet = false;
  bool use_cublas = false;
};

int draw(const SparseOptions& options, const apl::sparse::Csr& matrix, const apl_sparse_tiles* tiles) {
  return options.svg.empty() ? kFine : emit(options.svg, sparse::picture(matrix, tiles));
}

// Said before a search, not after it.
bool are_writable(const std::vector<std::string>& files, int& exit) {
  for (const std::string& file : files)
    if (auto writable = check_output(file); !writable) {
      exit = report(writable.error());
      return false;
    }
  return true;
}

int inspect(const SparseOptions& options) {
  int exit = kFine;
  const auto matrix = sparse::load_matrix(options.input, true, exit);
  if (!matrix) return exit;
  const auto nonzeros = static_cast<double>(matrix->nonzeros());
  std::int64_t longest = 0, empty = 0;
  std::array<std::int64_t, 32> histogram{};
  for (std::int64_t row = 0; row < matrix->rows; ++row) {
    longest = std::max(longest, matrix->length(row));
    empty += matrix->length(row) == 0;
    ++histogram[static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(matrix->length(row))))];
  }
  std::vector<char> used(static_cast<std::size_t>(matrix->columns));
  for (const std::int32_t column : matrix->column) used[static_cast<std::size_t>(column)] = 1;
  print_out("{} by {}, {} non-zeros", matrix->rows, matrix->columns, matrix->nonzeros());
  if (matrix->rows > 0 && matrix->columns > 0)
    print_out(" ({:.3g} %)", 100 * nonzeros / static_cast<double>(matrix->rows) / static_cast<double>(matrix->columns));
  print_out("\nkey {:016x}\n", apl::sparse::pattern_hash(*matrix));
  if (!matrix->values.empty())
    print_out("explicit zeros: {}\n", std::count(matrix->values.begin(), matrix->values.end(), 0.0));
  print_out("empty rows: {}, empty columns: {}\n", empty, std::count(used.begin(), used.end(), 0));
  const apl::sparse::Sharing sharing = apl::sparse::column_sharing(*matrix, {});
  print_out("non-zeros for each column of 8 rows: {:.2f}, of 32 rows: {:.2f}\n", sharing.eight, sharing.thirty_two);
  print_out("longest row: {}; rows by length:\n", longest);
  const std::int64_t most = std::max<std::int64_t>(1, *std::max_element(histogram.begin(), histogram.end()));
  for (std::size_t k = 0; k < histogram.size(); ++k) {
    if (histogram[k] == 0) continue;
    const std::int64_t low = k == 0 ? 0 : std::int64_t{1} << (k - 1);
    const std::int64_t high = k == 0 ? 0 : (std::int64_t{1} << k) - 1;
    print_out("{:>10} {:>9}  {}\n", low == high ? fmt::format("{}", low) : fmt::format("{}-{}", low, high),
              histogram[k], std::string(static_cast<std::size_t>((histogram[k] * 50 + most - 1) / most), '#'));
  }
  return draw(options, *matrix, nullptr);
}

// What the tiles hold, for people.
void print_tiles(const apl_sparse_tiles& t) {
  const auto share = [&](std::int64_t count) {
    return t.nonzeros == 0 ? 0 : 100 * static_cast<double>(count) / static_cast<double>(t.nonzeros);
  };
  const auto held = [](const std::int32_t* sources, std::int64_t count) {
    return std::count_if(sources, sources + count, [](std::int32_t source) { return source >= 0; });
  };
  const std::int64_t in_blocks = held(t.block_source, t.block_elements);
  const std::int64_t in_ell = held(t.ell_source, t.ell_elements);
  std::array<std::int64_t, 4> by_height{};
  for (std::int64_t k = 0; k < t.blocks; ++k)
    ++by_height[static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(t.block[k].height)) - 3)];
  print_out("block: {:.1f} % of the non-zeros in {} tiles ({} of 8, {} of 16, {} of 32, {} of 64 rows), {} elements\n",
            share(in_blocks), t.blocks, by_height[0], by_height[1], by_height[2], by_height[3], t.block_elements);
  print_out("ell:   {:.1f} % in {} tiles of {} rows, {} elements\n", share(in_ell), t.ell_tiles, t.ell_rows,
            t.ell_elements);
  print_out("1d:    {:.1f} % in {} tiles\n", share(t.segment_elements), t.segments);
}

// The type of the elements of sparse operands in the program; an error of the command if it is not one.
std::optional<apl::ScalarType> type_in_program(const SparseOptions& options, int& exit) {
  const auto fail = [&](const std::string& why) {
    print_error("aplc: error: --for {}: {} [command.bad-argument]\n", options.program, why);
    exit = kCommandLine;
    return std::nullopt;
  };
  const FrontEnd front = run_front_end(options.program);
  if (!front.module) {
    print_error("{}", front.said);
    exit = front.exit_code;
    return std::nullopt;
  }
  std::map<apl::ScalarType, std::string> types;  // of whose operands
  bool has_entry = false;
  for (const apl::FunctionPtr& function : front.module->functions) {
    if (!function->is_entry() || (!options.entry.empty() && function->entry->name != options.entry)) continue;
    has_entry = true;
    const auto requests = apl::sparse_requests(*function);
    if (!requests) continue;
    for (const apl::SparseRequest& request : *requests)
      types.try_emplace(
          function->type(function->params[request.value]).element,
          fmt::format("`{}` of `{}`", function->entry->params[request.param].name, function->entry->name));
  }
  if (!has_entry) return fail(fmt::format("no entry `{}`", options.entry));
  if (types.empty()) return fail("no entry has a sparse operand");
  if (types.size() == 1) return types.begin()->first;
  std::vector<std::string> all;
  for (const auto& [type, whose] : types) all.push_back(fmt::format("{} in {}", apl::to_text(type), whose));
  return fail(fmt::format("sparse operands differ: {}; choose by -e or --type", fmt::join(all, ", ")));
}

// The type of elements that a search is for.
std::optional<apl::ScalarType> searched_type(const SparseOptions& options, int& exit) {
  if (!options.program.empty()) return type_in_program(options, exit);
  if (!options.type.empty()) return apl::scalar_type_from_text(options.type);
  switch (options.element_bytes) {
    case 1: return apl::ScalarType::i8;
    case 4: return apl::ScalarType::f32;
    case 8: return apl::ScalarType::f64;
    default: return apl::ScalarType::f16;
  }
}

bool is_half(apl::ScalarType type) { return apl::is_float(type) && apl::byte_size(type) == 2; }

// The runtime's kernels for GPUs have a model on the usual machine. For larger matrices it takes longer than a search.
constexpr std::int64_t kMostForKernelModel = 4'000'000;
bool has_kernel_model(const SparseOptions& options) { return options.device == apl::find_dialect("cuda")->record; }

// What the runtime's own kernels are expected to take with the plan (may be null), where there is a model of them.
void print_estimate(const SparseOptions& options, const apl::sparse::Csr& matrix, const apl_sparse_plan* plan,
                    apl::ScalarType type) {
  if (!has_kernel_model(options)) return;
  const auto times =
      sparse::estimate(apl::csr_view(matrix), plan, options.op == "sddmm", type, options.dense, options.use_cublas);
  if (!times) return;
  const std::string_view fitted = sparse::fitted_in(type, options.op == "sddmm");
  print_out("the runtime's kernels in {}: {:.2f} us, dense {:.2f} us, by their models{}; dense: {}\n",
            apl::to_text(type), times->sparse, times->dense,
            fitted.empty() ? "" : fmt::format(", which were fitted in {}", fitted), times->verdict());
}

std::optional<apl::sparse::CoverFormats> parse_formats(const std::string& text) {
  apl::sparse::CoverFormats formats{false, false, false};
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (word != "block" && word != "ell" && word != "1d") return std::nullopt;
    (word == "block" ? formats.block : word == "ell" ? formats.ell : formats.segment) = true;
    at = end + 1;
  }
  return formats;
}

// Ctrl-C ends a search, which keeps what it has found; a second one ends the program.
class StopAtInterrupt {
 public:
  StopAtInterrupt()
      : before_(std::signal(SIGINT, [](int) {
          asked() = true;
          std::signal(SIGINT, SIG_DFL);
        })) {}
  ~StopAtInterrupt() { std::signal(SIGINT, before_); }
  StopAtInterrupt(const StopAtInterrupt&) = delete;
  StopAtInterrupt& operator=(const StopAtInterrupt&) = delete;

  static std::atomic<bool>& asked() {
    static std::atomic<bool> flag = false;
    return flag;
  }

 private:
  void (*before_)(int);
};

void print_search(const apl::sparse::Plan& plan) {
  print_out("searched for {:.2f} s{}\n", plan.seconds, plan.complete ? "" : ", then stopped");
  for (const auto& [name, time] : plan.measured)
    print_out("{:>12}  {}, {}\n", sparse::time_text(time), name, plan.how_measured);
  for (const auto& [name, cost] : plan.considered)
    print_out("{:>12}  {}, by the model\n", sparse::time_text(cost), name);
}

int search(const SparseOptions& options) {
  int exit = kFine;
  auto formats = parse_formats(options.formats);
  if (!formats) {
    print_error("aplc: error: formats are block, ell and 1d, not `{}` [command.bad-argument]\n", options.formats);
    return kCommandLine;
  }
  const auto type = searched_type(options, exit);
  if (!type) return exit;
  if (options.program.empty() && options.type.empty() && options.element_bytes == 0 && !options.quiet)
    print_error(
        "aplc: note: elements are taken for {}; --type says otherwise, or --for PROGRAM that they are its own\n",
        apl::to_text(*type));
  const auto profile = sparse::load_profile(options.device, exit);
  if (!profile) return exit;
  // Costs of blocks of 2 bytes are those of matrix units, which multiply floats.
  if (profile->gpu && apl::byte_size(*type) == 2 && !is_half(*type)) formats->block = false;
  const auto matrix = sparse::load_matrix(options.input, false, exit);
  if (!matrix || !are_writable({options.output, options.svg}, exit)) return exit;
  apl::sparse::SearchOptions how;
  how.problem = {options.op == "spmm" ? apl::sparse::Operator::spmm : apl::sparse::Operator::sddmm, options.dense,
                 apl::byte_size(*type)};
  how.greedy = {options.ratio, !options.no_withdraw, options.levels};
  how.formats = *formats;
  how.reorder = !options.keep_order;
  how.as_run = profile->gpu;
  how.threads = options.threads;
  how.seconds = options.seconds;
  const bool terminal = ::isatty(2) != 0 && !options.quiet;
  how.progress = [terminal](const apl::sparse::Progress& p) {
    if (terminal)
      print_error("\r\033[K{:3.0f} % ({}), {}best so far {}", 100 * p.done, p.stage,
                  p.done > 0 ? fmt::format("about {:.0f} s left, ", p.seconds_left) : "",
                  p.best > 0 ? sparse::time_text(p.best) : "-");
    return !StopAtInterrupt::asked();
  };
  std::optional<apl::sparse::Measure> measure;
  std::unique_ptr<sparse::OnDevice> on_device;
  if (options.measure && profile->gpu) {
    auto made = sparse::OnDevice::make(*matrix, how.problem, *type);
    if (made) {
      on_device = *std::move(made);
      how.measure = std::ref(*on_device);
      how.measured = "run on this machine's GPU";
    } else {
      print_error("aplc: warning: no plan is run: {}\n", made.error().message);
    }
  } else if (options.measure) {
    measure.emplace(*matrix, how.problem);
    how.measure = std::ref(*measure);
  }
  sparse::KernelModel model(*matrix, *type, options.use_cublas);
  if (!how.measure && has_kernel_model(options) && matrix->nonzeros() <= kMostForKernelModel) {
    how.measure = std::ref(model);
    how.measured = options.use_cublas ? "by the kernels' model, dense by that of cuBLAS" : "by the kernels' model";
  }
  const apl::sparse::Plan plan = [&] {
    const StopAtInterrupt stop;
    return apl::sparse::search(*matrix, *profile, how);
  }();
  if (terminal) print_error("\r\033[K");
  const std::string text = to_text(plan);
  if (const int code = emit(options.output, text); code != kFine) return code;
  const bool talks = !options.quiet && !options.output.empty();
  if (talks) print_search(plan);
  if (plan.dense && talks) print_estimate(options, *matrix, nullptr, *type);
  if (plan.dense) return draw(options, *matrix, nullptr);
  if (!talks && options.svg.empty()) return kFine;
  const auto parsed = sparse::parse_plan(text, options.output, exit);
  if (!parsed) return exit;
  const auto tiles = sparse::make_tiles(*matrix, *parsed, exit);
  if (!tiles) return exit;
  if (talks) print_tiles(*tiles);
  if (talks) print_estimate(options, *matrix, parsed.get(), *type);
  return draw(options, *matrix, tiles.get());
}

int show(const SparseOptions& options) {
  int exit = kFine;
  if (options.matrix.empty() && !options.svg.empty()) {
    print_error("aplc: error: --svg draws the plan's matrix: give it, too [command.bad-argument]\n");
    return kCommandLine;
  }
  std::vector<std::string> notes;
  const auto plan = sparse::load_plan(options.input, exit, &notes);
  if (!plan || !are_writable({options.svg}, exit)) return exit;
  std::optional<apl::sparse::Csr> matrix;
  if (!options.matrix.empty()) {
    matrix = sparse::load_matrix(options.matrix, false, exit);
    if (!matrix || !sparse::check_plan(*matrix, *plan, exit)) return exit;
  }
  print_out("for a matrix of {} by {} with {} non-zeros, key {:016x}\n", plan->rows, plan->columns, plan->nonzeros,
            plan->hash);
  print_out("{}, dense loop of {} in parts of {}\n", plan->sddmm ? "sddmm" : "spmm", plan->dense_size,
            plan->dense_part);
  for (const std::string& note : notes) print_out("  {}\n", note);
  if (plan->dense) print_out("no tiles: the dense product is cheaper\n");
  if (!plan->dense)
    print_out("rows {}, stretches of groups that are alike: {}\n", plan->row_order ? "reordered" : "as they are",
              plan->stretches);
  if (!matrix) return kFine;
  if (plan->dense) return draw(options, *matrix, nullptr);
  const auto tiles = sparse::make_tiles(*matrix, *plan, exit);
  if (!tiles) return exit;
  print_tiles(*tiles);
  return draw(options, *matrix, tiles.get());
}

int convert(const SparseOptions& options) {
  int exit = kFine;
  const std::string ending = std::filesystem::path(options.output).extension();
  if (ending != ".mtx" && ending != ".smtx") {
    print_error("aplc: error: {}: matrices are written as .mtx or .smtx [command.bad-argument]\n", options.output);
    return kCommandLine;
  }
  const auto matrix = sparse::load_matrix(options.input, ending == ".mtx", exit);
  if (!matrix) return exit;
  return emit(options.output,
              ending == ".mtx" ? apl::sparse::to_matrix_market(*matrix) : apl::sparse::to_smtx(*matrix));
}

int calibrate(const SparseOptions& options) {
  if (options.machine == "cpu") return emit(options.output, to_text(apl::sparse::calibrate(options.name)));
  sparse::Calibration how;
  how.start = sparse::modelled_device();
  if (!options.type.empty()) how.type = *apl::scalar_type_from_text(options.type);
  if (options.seconds > 0) how.seconds = options.seconds;
  const bool terminal = ::isatty(2) != 0;
  how.progress = [terminal](const std::string& what) {
    if (terminal) print_error("\r\033[K{}", what);
  };
  const auto text = sparse::calibrate(how);
  if (terminal) print_error("\r\033[K");
  return text ? emit(options.output, *text) : report(text.error());
}

}  // namespace

void add_sparse(CLI::App& app, int& exit) {
  CLI::App* command = app.add_subcommand("sparse", "look at sparse matrices, search for plans of their tiles");
  command->require_subcommand(1);
  auto options = std::make_shared<SparseOptions>();
  const auto add = [&](const char* name, const char* help, int (*run)(const SparseOptions&)) {
    CLI::App* sub = command->add_subcommand(name, help);
    sub->callback([options, run, &exit] { exit = run(*options); });
    return sub;
  };
  const char* const matrix_help = "matrix: .mtx (Matrix Market) or .smtx";

  CLI::App* sub = add("inspect", "sizes, lengths of rows, how much neighbouring rows share", inspect);
  sub->add_option("MATRIX", options->input, matrix_help)->required();
  sub->add_option("--svg", options->svg, "draw the pattern")->type_name("FILE");

  sub = add("search", "search for a plan", search);
  sub->add_option("MATRIX", options->input, matrix_help)->required();
  sub->add_option("-o,--output", options->output, "the plan (default: standard output)")->type_name("PLAN");
  sub->add_option("--operator", options->op, "spmm (default) or sddmm")->check(CLI::IsMember({"spmm", "sddmm"}));
  sub->add_option("--dense", options->dense, "iterations of the dense loop (default 128)")
      ->check(CLI::Range(1, 1 << 20));
  CLI::Option* type =
      sub->add_option("--type", options->type, "of the elements (default f16)")->check([](const std::string& text) {
        const auto type = apl::scalar_type_from_text(text);
        return type && (apl::is_integer(*type) || apl::is_float(*type)) ? "" : "is no type of numbers";
      });
  CLI::Option* bytes = sub->add_option("--bytes", options->element_bytes, "bytes of an element: i8, f16, f32, f64")
                           ->check(CLI::IsMember({1, 2, 4, 8}))
                           ->excludes(type);
  CLI::Option* program = sub->add_option("--for", options->program, "a program: the type of its sparse operand")
                             ->type_name("FILE")
                             ->excludes(type)
                             ->excludes(bytes);
  sub->add_option("-e,--entry", options->entry, "of that program")->needs(program);
  sub->add_option("--device", options->device, "h200 (default, also as cuda), cpu, or a profile")
      ->type_name("PROFILE")
      ->transform([](const std::string& name) {
        const apl::Dialect* dialect = name == "cuda" ? apl::find_dialect(name) : nullptr;
        return dialect != nullptr ? std::string(dialect->record) : name;
      });
  sub->add_option("--formats", options->formats, "of block, ell, 1d; default all")->type_name("LIST");
  sub->add_option("--ratio", options->ratio, "local search: take what is so much worse than the best (default 1.2)")
      ->check(CLI::Range(1.0, 100.0));
  sub->add_option("--levels", options->levels, "depth of the decomposition (default 0: no limit)")
      ->check(CLI::NonNegativeNumber);
  sub->add_option("--seconds", options->seconds, "stop after so many with the best plan so far")
      ->check(CLI::NonNegativeNumber);
  sub->add_option("--threads", options->threads, "default: one a processor")->check(CLI::NonNegativeNumber);
  sub->add_flag("--keep-order", options->keep_order, "leave the rows as they are");
  sub->add_flag("--no-withdraw", options->no_withdraw, "never give back what was selected");
  CLI::Option* cublas = sub->add_flag("--use-cublas", options->use_cublas,
                                      "the dense product is that of cuBLAS, as with `aplc run --use-cublas`");
  CLI::Option* measure = sub->add_flag(
      "--measure", options->measure,
      "run the plans that the model likes best on this machine, with a profile of a GPU on its GPU, and take "
      "the fastest (use a profile of it)");
  measure->excludes(cublas);
  sub->add_flag("-q,--quiet", options->quiet, "print nothing but the plan");
  sub->add_option("--svg", options->svg, "draw the plan")->type_name("FILE");

  sub = add("show", "what is in a plan, and what it makes of its matrix", show);
  sub->add_option("PLAN", options->input, "plan")->required();
  sub->add_option("MATRIX", options->matrix, matrix_help);
  sub->add_option("--svg", options->svg, "draw the tiles of the matrix")->type_name("FILE");

  sub = add("convert", "from one format of matrices to another", convert);
  sub->add_option("FROM", options->input, matrix_help)->required();
  sub->add_option("TO", options->output, "file to write")->required();

  sub = add("calibrate", "measure this machine for the cost model", calibrate);
  sub->add_option("--device", options->machine,
                  "cpu: a core, for a profile (default); cuda: the GPU, for lines of its record")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  sub->add_option("--type", options->type, "of the elements on a GPU: f16 (default), f32")
      ->check(CLI::IsMember({"f16", "f32"}));
  sub->add_option("--seconds", options->seconds, "on a GPU: measure for so many at most (default 120)")
      ->check(CLI::NonNegativeNumber);
  sub->add_option("-o,--output", options->output, "the profile (default: standard output)")->type_name("PROFILE");
  sub->add_option("--name", options->name, "of the profile")->check([](const std::string& name) {
    return name.empty() || name.find_first_of(" \t\n\r") != std::string::npos ? "a name has no blanks" : "";
  });
}

}  // namespace aplc
