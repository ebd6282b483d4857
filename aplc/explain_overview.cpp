#include "aplc/explain_overview.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <ranges>
#include <regex>
#include <set>
#include <tuple>

#include "aplc/explain_costs.h"
#include "ir/sparse_soa.h"
#include "machine/target/records.h"

namespace aplc {
namespace {

using apl::Remark;
using apl::RemarkKind;

constexpr const char* kByElement = "one thread an element";

// Why a reduction is not tiled, in a few words, by the code of the refusal.
std::string_view short_reason(std::string_view code) {
  static const std::map<std::string_view, std::string_view> kReasons{
      {"several-redomaps", "several reductions in one kernel"},
      {"reduction-in-branch", "the reduction is in a branch"},
      {"reduction-in-loop", "the reduction is in a loop"},
      {"loop-kept", "a loop reads the elements, not a reduction"},
      {"maps-out", "the reduction also gives an array"},
      {"array-accumulator", "the operator works on arrays"},
      {"irregular-reduction", "the reduction's width differs from index to index"},
      {"code-before", "code before the reduction makes an array"},
      {"checked-read", "an index needs a check"},
      {"operand-row", "the reduction goes over rows, not elements"},
      {"layout-unknown", "the layout of an operand is not known"},
      {"operand-not-affine", "an index is not affine"},
      {"operand-indirect", "an index is read from an array"},
      {"operator-uses-index", "the operator differs from index to index"},
      {"map-reads-array", "the map function reads an array in a branch or loop"},
      {"no-free-dim", "no dim along which a tile is used again"},
      {"operand-variant-to-all", "an operand has no reuse"},
      {"reduction-dim-unused", "no operand varies along the reduction"},
      {"deep-epilogue", "the code after the reduction is no scalar code"},
      {"can-fail", "the map function can fail"},
  };
  const auto found = kReasons.find(code);
  return found == kReasons.end() ? std::string_view() : found->second;
}

std::string fact(const Remark& remark, std::string_view key) {
  for (const auto& [name, value] : remark.facts)
    if (name == key) return value;
  return {};
}

bool is_here(const Remark& remark, const apl::Function& function, std::uint32_t line) {
  return remark.function == function.name && remark.location.line == line;
}

// A text of a remark in which names that the source does not have are no names.
std::string without_made_names(const std::string& text, const std::string& source) {
  static const std::regex kQuoted(R"([`']([A-Za-z_][A-Za-z0-9_']*)[`'])");
  std::string result;
  std::string::const_iterator from = text.begin();
  for (std::sregex_iterator match(text.begin(), text.end(), kQuoted), last; match != last; ++match) {
    const std::regex word("\\b" + (*match)[1].str() + "\\b");
    result.append(from, (*match)[0].first);
    result += std::regex_search(source, word) ? match->str() : "an array";
    from = (*match)[0].second;
  }
  return result.append(from, text.end());
}

class Overviewer {
 public:
  Overviewer(const apl::Module& module, const std::vector<Remark>& remarks, const std::string& text,
             const apl_device& device, const Parameters& given, const apl::SpillCheck& check,
             const std::set<std::string>& matrices)
      : module_(module),
        remarks_(remarks),
        text_(text),
        device_(device),
        given_(given),
        check_(check),
        matrices_(matrices) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      lines_.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  Overview run(const apl::Function& function, const Sizes& sizes) {
    Sizes written;  // names that the source has
    for (const auto& size : sizes)
      if (is_written(size.first)) written.insert(size);
    Overview overview{.entry = function.entry->name,
                      .is_constant = function.is_constant(),
                      .sizes = written,
                      .sizes_given = false,
                      .rows = {},
                      .help = {},
                      .plans = {},
                      .einsums = {},
                      .kernels = {}};
    const std::vector<ExplainedPlan> plans = explained_plans(module_, function, sizes, device_, given_, check_);
    overview.kernels = kernel_costs(module_, function, sizes, given_, device_, plans);
    const auto all_kernels = [&](auto is_one) { return overview.kernels | std::views::filter(is_one); };
    for (const ExplainedPlan& plan : plans) {
      auto kernels = all_kernels([&](const KernelCost& kernel) { return kernel.contraction == plan.parameters; });
      if (kernels.begin() == kernels.end()) continue;  // what an attention in one kernel leaves out
      OverviewRow row = contraction(function, plan);
      for (const KernelCost& kernel : kernels) count(kernel, row);
      row.seconds.reset();
      if (plan.seconds) row.seconds = *plan.seconds * kernels.front().launches;
      overview.einsums.push_back(row.what);
      overview.rows.push_back(std::move(row));
      overview.plans.push_back(plan);
    }
    add_products(function, overview);
    const auto product_of = [&](const KernelCost& kernel) {
      return std::ranges::find_if(overview.rows, [&](const OverviewRow& row) {
        return kernel.is_sparse && row.is_product && row.location.line == kernel.location.line;
      });
    };
    // Times of the runtime's kernels depend on the matrix.
    for (KernelCost& kernel : overview.kernels) {
      const auto row = product_of(kernel);
      if (row == overview.rows.end()) continue;
      if (row->launches == 0 && row->seconds) row->seconds = *row->seconds * kernel.launches;
      count(kernel, *row);
      row->unknown_work = false;
      kernel.seconds = row->seconds;
      kernel.bytes = kernel.operations = 0;
    }
    std::map<std::pair<std::uint32_t, bool>, OverviewRow> rows;  // by line, and by side of a branch
    std::uint32_t last = function.location.line;
    const apl::Function* launches = &function;
    const auto is_planned = [&](const KernelCost& kernel) {
      return std::ranges::find(overview.plans, kernel.contraction, &ExplainedPlan::parameters) != overview.plans.end();
    };
    for (const KernelCost& kernel : overview.kernels) {
      if (is_planned(kernel) || product_of(kernel) != overview.rows.end()) continue;
      if (kernel.function != launches) last = kernel.function->location.line;
      launches = kernel.function;
      // What a pass made without a place belongs to what is before it.
      const std::uint32_t line = kernel.location ? kernel.location.line : last;
      last = line;
      auto [row, is_new] = rows.try_emplace({line, kernel.other_side});
      if (is_new) row->second = described(*kernel.function, line, kernel);
      count(kernel, row->second);
      // One of the kernels of a line may do the reduction, another what is before or after it.
      if (kernel.chunks && row->second.what.starts_with("map")) {
        row->second.what = kernel.scans ? "scan" : "reduction";
        if (row->second.decision.starts_with(kByElement))
          row->second.decision.replace(0, std::string_view(kByElement).size(),
                                       kernel.shares.empty() ? "in chunks" : kernel.shares);
      }
      if (!is_new && row->second.seconds && kernel.seconds)
        row->second.seconds = *row->second.seconds + *kernel.seconds;
      if (!kernel.seconds) row->second.seconds.reset();
    }
    for (auto& [line, row] : rows) overview.rows.push_back(std::move(row));
    for (OverviewRow& row : overview.rows) {
      add_counts(row);
      if (overview.is_constant) row.decision += "; once for each context";
    }
    // What nobody knows the length of may take any time; what does not count comes last.
    std::ranges::stable_sort(overview.rows, [](const OverviewRow& a, const OverviewRow& b) {
      const auto key = [](const OverviewRow& row) {
        return std::tuple(row.other_side, !(row.unknown_rounds || row.unknown_work), -row.seconds.value_or(1e9));
      };
      return key(a) < key(b);
    });
    overview.help = help(overview);
    return overview;
  }

 private:
  // A kernel of the row.
  static void count(const KernelCost& kernel, OverviewRow& row) {
    const bool first = row.launches == 0;
    if (!kernel.other_side) row.launches += kernel.launches;
    row.rounds = first ? kernel.launches : std::max(row.rounds, kernel.launches);
    row.unknown_rounds = row.unknown_rounds || kernel.unknown_rounds;
    row.unknown_work = row.unknown_work || kernel.unknown_work;
    row.unknown_branch = row.unknown_branch || kernel.unknown_branch;
    row.other_side = kernel.other_side;
  }

  // What its time counts.
  static void add_counts(OverviewRow& row) {
    if (row.other_side)
      row.decision += "; not counted: another side of its branch takes longer";
    else if (row.unknown_branch)
      row.decision += "; if its branch is taken";
    if (row.unknown_rounds)
      row.decision += row.rounds > 1 ? fmt::format("; x {:.0f} each round of a loop of unknown length", row.rounds)
                                     : "; each round of a loop of unknown length";
    else if (row.rounds != 1)
      row.decision += fmt::format("; x {:.0f}", row.rounds);
    if (row.unknown_work) row.decision += "; one step of a loop whose length the elements decide";
  }

  std::string source(std::uint32_t line) const {
    if (line == 0 || line > lines_.size()) return {};
    const std::string& text = lines_[line - 1];
    const std::size_t begin = text.find_first_not_of(" \t");
    return begin == std::string::npos ? "" : text.substr(begin);
  }

  bool is_written(const std::string& name) const { return std::regex_search(text_, std::regex("\\b" + name + "\\b")); }

  // Products over the non-zeros of a matrix, of which remarks say what runs.
  void add_products(const apl::Function& function, Overview& overview) const {
    static const std::regex kTime(R"(([0-9.]+) (us|ms|s)\b)");
    for (const Remark& remark : remarks_) {
      if (remark.pass != "sparse-product" || remark.function != function.name) continue;
      OverviewRow row{.location = remark.location, .source = source(remark.location.line)};
      row.is_product = remark.code != "cublas";
      row.what = remark.message.substr(0, remark.message.find_first_of(", "));
      const std::size_t operand = remark.message.find('`');
      const std::string matrix = operand == std::string::npos ? "a matrix" : remark.message.substr(operand);
      row.decision = remark.code == "cublas"
                         ? "by cuBLAS, " + matrix
                         : fmt::format("over the non-zeros of {}, by {}", matrix,
                                       remark.code == "runtime" ? "the runtime's kernel" : "a kernel of its own");
      add_second_operand(function, row);
      std::smatch time;
      const bool is_assumed = !fact(remark, "width").empty() || !fact(remark, "depth").empty();
      for (const auto& [key, value] : remark.facts)
        if (!is_assumed && key == "costs" && std::regex_search(value, time, kTime))
          row.seconds = std::stod(time[1]) * (time[2] == "us" ? 1e-6 : time[2] == "ms" ? 1e-3 : 1);
      overview.rows.push_back(std::move(row));
    }
  }

  // Of a product of two sparse matrices: how the elements of the second one are found, and that the result is dense.
  void add_second_operand(const apl::Function& function, OverviewRow& row) const {
    for (const Remark& remark : remarks_) {
      if (!is_here(remark, function, row.location.line) || remark.pass != "sparsify" || fact(remark, "result").empty())
        continue;
      row.decision += remark.code == "look-up"
                          ? fmt::format(", elements of `{}` are looked up in its rows", fact(remark, "operand"))
                          : remark.message.substr(std::min(remark.message.find(", and over"), remark.message.size()));
      row.decision += ", the result is a " + fact(remark, "result");
      return;
    }
  }

  OverviewRow contraction(const apl::Function& function, const ExplainedPlan& plan) {
    OverviewRow row{.location = plan.remark.location};
    row.what = "contraction";
    const auto has_its_parameters = [&](const auto& fact) { return fact.first.starts_with(plan.parameters + "T_"); };
    for (const Remark& remark : remarks_)
      if (remark.pass == "tile-contraction" && remark.code == "tiled" && remark.function == function.name &&
          std::ranges::any_of(remark.facts, has_its_parameters)) {
        row.what = fact(remark, "einsum");
        if (remark.location) row.location = remark.location;
      }
    row.source = source(row.location.line);
    const std::string variant = fact(plan.remark, "variant"), block = fact(plan.remark, "block");
    if (plan.remark.message.starts_with("packed")) {
      row.decision = "packed for a micro-kernel";
    } else if (!plan.seconds) {
      row.decision = "tiled; the plan is chosen when sizes are known";
    } else if ((variant == "untiled" || !plan.tiled) && given_.contains(plan.parameters + "variant")) {
      row.decision = fmt::format("one thread a point, as {}variant asks", plan.parameters);
    } else if (variant == "untiled" || !plan.tiled) {
      row.decision = "tiled for larger sizes; at these one thread a point is faster";
    } else if (variant == "split") {
      row.decision = fmt::format("tiled {}, the reduction in {} parts", block, fact(plan.remark, "splits"));
    } else {
      row.decision = fmt::format("tiled {}", block);
    }
    if (plan.dropped > 0)
      row.decision += fmt::format(", as {} spill{}",
                                  plan.dropped == 1 ? "a better plan" : fmt::format("{} better plans", plan.dropped),
                                  plan.dropped == 1 ? "s" : "");
    row.suggestion = fact(plan.remark, "spills").empty() ? "" : "smaller tiles: this plan spills registers";
    add_dense_reason(function, row);
    for (const Remark& remark : remarks_) {
      if (remark.code != "cores-multiply" || device_.matrix_units == 0 || remark.function != function.name ||
          remark.location != row.location || !plan.seconds)
        continue;
      row.decision += ", without matrix units";
      if (row.suggestion.empty()) row.suggestion = without_made_names(remark.suggestion, text_);
    }
    return row;
  }

  // Of a sparse operand that the line reads in full.
  void add_dense_reason(const apl::Function& function, OverviewRow& row) const {
    for (const Remark& remark : remarks_) {
      if (!is_here(remark, function, row.location.line) || remark.pass != "sparsify" || fact(remark, "stores").empty())
        continue;
      row.decision += ", not by non-zeros: " + without_made_names(fact(remark, "reason"), text_);
      if (row.suggestion.empty()) row.suggestion = without_made_names(remark.suggestion, text_);
      return;
    }
  }

  OverviewRow described(const apl::Function& function, std::uint32_t line, const KernelCost& kernel) const {
    OverviewRow row{.location = kernel.location, .source = source(line), .what = {}, .decision = {}};
    row.location.line = line;
    row.seconds = kernel.seconds;
    if (line == function.location.line && !kernel.location) {
      const std::string_view kind = function.is_entry() ? "entry" : function.is_constant() ? "constant" : "function";
      row.source = fmt::format("(around {} {})", kind, function.entry ? function.entry->name : function.name);
      row.what = "made by passes";
    }
    // What it is: the first of these that a pass said of the line.
    static const std::vector<std::pair<std::string_view, std::string_view>> kKinds{
        {"filter", "filter"},
        {"histogram", "histogram"},
        {"scatter", "scatter"},
        {"scan", "scan"},
        {"segmented", "reduction in segments"},
        {"reduction", "reduction"},
        {"by-columns", "reduction of columns"},
        {"kernel", "map"}};
    for (const auto& [code, name] : kKinds)
      for (const Remark& remark : remarks_)
        if (row.what.empty() && is_here(remark, function, line) && remark.pass == "extract-kernels" &&
            remark.code == code && remark.kind == RemarkKind::applied)
          row.what = name;
    // Why not more.
    for (const Remark& remark : remarks_) {
      if (!is_here(remark, function, line) || remark.kind != RemarkKind::missed || !row.decision.empty()) continue;
      const bool refused = remark.pass == "tile-contraction";
      if (!refused && remark.code != "not-tiled") continue;
      const std::string code = refused ? remark.code : fact(remark, "reason");
      std::string_view reason = short_reason(code);
      const std::size_t colon = remark.message.find(": ");
      row.decision = fmt::format(
          "not tiled: {}",
          !reason.empty()
              ? std::string(reason)
              : without_made_names(remark.message.substr(colon == std::string::npos ? 0 : colon + 2), text_));
      row.suggestion = without_made_names(remark.suggestion, text_);
      if (row.what.empty() || row.what == "map") row.what = "reduction";
    }
    for (const Remark& remark : remarks_)
      if (row.decision.empty() && is_here(remark, function, line) && remark.pass == "extract-kernels" &&
          remark.code == "sequentialised") {
        row.decision = "what is inside runs in one thread";
        row.suggestion = without_made_names(remark.suggestion, text_);
      }
    for (const Remark& remark : remarks_)
      if (row.decision.empty() && is_here(remark, function, line) && remark.pass == "sparsify" &&
          remark.kind == RemarkKind::missed) {
        row.decision = "not by non-zeros: " + without_made_names(remark.message, text_);
        row.suggestion = without_made_names(remark.suggestion, text_);
      }
    for (const Remark& remark : remarks_)
      if (is_here(remark, function, line) && remark.pass == "sparsify" && remark.code == "dense-copy") {
        row.what = "dense copy";
        row.decision = without_made_names(remark.message, text_);
      }
    if (kernel.holds_rows) {
      row.what = kernel.scans ? "scan of rows" : "reduction of rows";
      row.decision = kernel.version;
      row.suggestion.clear();
    }
    if (!kernel.kind.empty()) {
      row.what = kernel.kind;
      row.decision = kernel.version;
      row.suggestion.clear();
    }
    if (row.what.empty() || row.what == "map")
      row.what = kernel.reduces ? "map with a reduction" : kernel.scans ? "map with a scan" : "map";
    if (row.decision.empty())
      row.decision = row.what.starts_with("map") ? kByElement
                     : row.what == "scatter"     ? "one thread an index"
                     : row.what == "histogram"   ? device_.warp > 0 ? "in shared memory where that pays"
                                                                    : "a copy for each thread where that pays"
                     : kernel.shares.empty()     ? "in chunks"
                                                 : kernel.shares;
    if (!kernel.holds_rows && kernel.kind.empty() && !kernel.version.empty()) row.decision += "; " + kernel.version;
    return row;
  }

  std::string help(const Overview& overview) const {
    double all = 0, launches = 0;
    for (const OverviewRow& row : overview.rows) {
      if (row.other_side) continue;
      all += row.seconds.value_or(0);
      launches += row.launches;
      if (!row.seconds) all = -1e9;
    }
    if (overview.rows.empty())
      return fmt::format("nothing of this {} runs in parallel", overview.is_constant ? "constant" : "entry");
    if (all < 0) {
      std::vector<std::string> missing;
      const apl::Function& function = function_of(module_, overview);
      for (const std::vector<apl::Value>& values : {function.sizes, function.params})
        for (const apl::Value v : values) {
          const std::string& name = function.values.name(v);
          const apl::Type& type = function.type(v);
          if (type.is_scalar() && type.element == apl::ScalarType::i64 && !overview.sizes.contains(name) &&
              is_written(name))
            missing.push_back(fmt::format("--size {}=...", name));
        }
      const bool is_sparse =
          std::ranges::any_of(overview.rows, [](const OverviewRow& row) { return row.is_product && !row.seconds; });
      const bool has_times =
          std::ranges::any_of(overview.rows, [](const OverviewRow& row) { return row.is_product && row.seconds; });
      std::vector<std::string> operands;
      for (const apl::SparseSoa& soa : apl::find_soas(function))
        if (const std::string& name = function.entry->params[soa.param].name; !matrices_.contains(name))
          operands.push_back(fmt::format("{}=@FILE.mtx", name));
      if (missing.empty() && is_sparse && !has_times && !operands.empty())
        return fmt::format("{}, for times: {}", operands.size() == 1 ? "a matrix" : "matrices",
                           fmt::join(operands, " "));
      return missing.empty() ? "to run it: some times depend on values that are known only then"
                             : fmt::format("sizes, for times: {}", fmt::join(missing, " "));
    }
    const double start = std::min(all, launches * device_.launch_us * 1e-6);
    if (start > all / 2)
      return fmt::format("larger sizes: to start {:.0f} kernel{} takes {} of {}", launches, launches == 1 ? "" : "s",
                         microseconds_text(start * 1e6), microseconds_text(all * 1e6));
    constexpr double kWorthIt = 0.1;
    for (const OverviewRow& row : overview.rows)
      if (!row.suggestion.empty() && *row.seconds > kWorthIt * all)
        return fmt::format("line {}: {}", row.location.line, row.suggestion);
    const OverviewRow& first = overview.rows.front();
    if (first.decision.starts_with("not ") || first.decision.find(", not ") != std::string::npos)
      return fmt::format(
          "another form of line {}, which takes {:.0f}% of the time; nothing is known against its reason",
          first.location.line, 100 * *first.seconds / all);
    return fmt::format("nothing that is known: line {} takes {:.0f}% of the time, and no pass missed anything there",
                       first.location.line, 100 * *first.seconds / all);
  }

  const apl::Module& module_;
  const std::vector<Remark>& remarks_;
  const std::string& text_;
  const apl_device& device_;
  const Parameters& given_;
  const apl::SpillCheck& check_;
  const std::set<std::string>& matrices_;  // of which operands they are known
  std::vector<std::string> lines_;
};

// Of the rows that count.
double seconds_of(const Overview& overview) {
  double all = 0;
  for (const OverviewRow& row : overview.rows)
    if (!row.other_side) all += row.seconds.value_or(0);
  return all;
}

std::string time_text(const OverviewRow& row) {
  if (!row.seconds) return "?";
  return (row.unknown_rounds || row.unknown_work ? ">=" : "") + microseconds_text(*row.seconds * 1e6);
}

std::string shortened(const std::string& text, std::size_t length) {
  return text.size() <= length ? text : text.substr(0, length - 3) + "...";
}

}  // namespace

std::vector<Overview> overviews(const apl::Module& module, const std::vector<Remark>& remarks, const Sizes& sizes,
                                const std::string& file, const std::string& text, const apl_device& device,
                                const Parameters& given, const apl::SpillCheck& check,
                                const std::set<std::string>& matrices) {
  std::vector<Overview> all;
  for (const apl::FunctionPtr& function : module.functions) {
    if (!function->entry) continue;
    const Sizes known = sizes.empty() ? first_dataset(file, text, *function) : sizes;
    all.push_back(Overviewer(module, remarks, text, device, given, check, matrices).run(*function, known));
    all.back().sizes_given = !sizes.empty();
  }
  return all;
}

const apl::Function& function_of(const apl::Module& module, const Overview& overview) {
  return **std::ranges::find_if(module.functions, [&](const apl::FunctionPtr& function) {
    return function->entry && function->entry->name == overview.entry;
  });
}

std::string overview_text(const std::vector<Overview>& all, const std::string& file, const apl_device& device,
                          std::size_t lines, bool colour) {
  constexpr std::size_t kSource = 38, kWhat = 24;
  const std::string strong = colour ? "\x1b[1m" : "", dim = colour ? "\x1b[2m" : "", green = colour ? "\x1b[32m" : "",
                    yellow = colour ? "\x1b[33m" : "", plain = colour ? "\x1b[0m" : "";
  // Each entry has a line above its rows and one below; those with most time get most rows. Where that is too much, one
  // line has to do for the entries that take least.
  const std::size_t frame = 2 * all.size() + 1;
  const std::size_t rows = lines > frame + all.size() ? lines - frame : all.size();
  std::size_t wanted = 0;
  for (const Overview& overview : all) wanted += overview.rows.size();
  constexpr std::size_t kLeast = 4;  // of an entry with rows
  std::set<const Overview*> short_ones;
  if (frame + all.size() > lines) {
    const std::size_t whole = lines > all.size() ? std::min(all.size(), (lines - all.size()) / (kLeast - 1)) : 0;
    std::vector<const Overview*> by_time;
    for (const Overview& overview : all) by_time.push_back(&overview);
    std::ranges::stable_sort(by_time, std::greater(), [](const Overview* overview) { return seconds_of(*overview); });
    short_ones.insert(by_time.begin() + static_cast<std::ptrdiff_t>(whole), by_time.end());
  }
  std::string text;
  for (const Overview& overview : all) {
    std::vector<std::string> sizes;
    for (const auto& [name, size] : overview.sizes) sizes.push_back(fmt::format("{}={}", name, size));
    text += fmt::format("{}{}{} on {}{}\n", strong, overview.entry, plain, device.name,
                        overview.is_constant ? ", a constant: once for each context"
                        : sizes.empty()      ? ", sizes unknown"
                                             : shortened(fmt::format(", {}{}", fmt::join(sizes, " "),
                                                                overview.sizes_given ? "" : " (first dataset)"),
                                                         90));
    if (short_ones.contains(&overview)) {
      text.pop_back();
      text += fmt::format(": {} in {} line{}; --all shows them\n", microseconds_text(seconds_of(overview) * 1e6),
                          overview.rows.size(), overview.rows.size() == 1 ? "" : "s");
      continue;
    }
    const double whole = seconds_of(overview);
    std::size_t shown = overview.rows.size();
    if (wanted > rows) shown = std::max<std::size_t>(1, overview.rows.size() * rows / wanted);
    if (shown < overview.rows.size() && shown > 1) --shown;
    for (std::size_t k = 0; k < shown; ++k) {
      const OverviewRow& row = overview.rows[k];
      const bool missed = row.decision.starts_with("not ") || row.decision.find(", not ") != std::string::npos;
      text += fmt::format(
          "{:>10} {:>4}  {}{:>4}{} {:<{}}  {:<{}}  {}{}{}\n", time_text(row),
          row.seconds && whole > 0 && !row.other_side ? fmt::format("{:.0f}%", 100 * *row.seconds / whole) : "", dim,
          row.location.line, plain, shortened(row.source, kSource), kSource, shortened(row.what, kWhat), kWhat,
          missed                              ? yellow
          : row.decision.starts_with("tiled") ? green
                                              : "",
          row.decision, plain);
    }
    if (shown < overview.rows.size())
      text += fmt::format("{:>10}       {} more lines; --all shows everything\n", "", overview.rows.size() - shown);
    text += fmt::format("most would help: {}\n", overview.help);
  }
  if (all.empty()) text = fmt::format("{} has no entry, so that nothing of it runs\n", file);
  return text;
}

}  // namespace aplc
