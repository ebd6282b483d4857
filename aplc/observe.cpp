#include "aplc/observe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "aplc/cleanup.h"
#include "aplc/output.h"
#include "aplc/registry.h"
#include "ir/print.h"
#include "ir/similar_name.h"
#include "ir/text_diff.h"
#include "ir/walk.h"

namespace aplc {
namespace {

std::vector<std::string> split(const std::string& names) {
  std::vector<std::string> result;
  for (std::size_t begin = 0; begin <= names.size();) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    result.push_back(names.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

bool names_pass(const std::string& names, const std::string& pass) {
  if (names.empty()) return false;
  if (names == "all") return true;
  const std::vector<std::string> all = split(names);
  return std::find(all.begin(), all.end(), pass) != all.end();
}

std::string application_text(const apl::PassReport& report) {
  return fmt::format("{} (application {} of {})", report.pass, report.application, report.applications);
}

double milliseconds(std::chrono::nanoseconds time) { return std::chrono::duration<double, std::milli>(time).count(); }

}  // namespace

std::size_t count_statements(const apl::Module& module) {
  std::size_t count = 0;
  for (const apl::FunctionPtr& function : module.functions)
    apl::for_each_stm(*function->body, [&](const apl::Stm&) { ++count; });
  return count;
}

void ObserveOptions::add_to(CLI::App& command) {
  command.add_flag("--timing", timing, "print a table of the time that each pass took");
  command.add_flag("--pass-statistics", statistics, "print a table of what each application of a pass changed");
  command
      .add_option("--opt-limit", limit,
                  "run only the first N applications of passes, and later ones that no program can do without")
      ->type_name("N");
  command
      .add_option("--reproducer", reproducer,
                  "file that holds the module before the pass that fails or crashes, and the command that replays it")
      ->type_name("FILE");
}

void ObserveOptions::add_printing_to(CLI::App& command) {
  command.add_flag("--print-before{all}", print_before,
                   "print the IR before each pass, or before --print-before=PASS,...");
  command.add_flag("--print-after{all}", print_after, "print the IR after each pass, or after --print-after=PASS,...");
  command.add_flag("--print-changed", print_changed, "print what each pass changed, as a diff");
  command.add_option("--stop-after", stop_after, "leave out all passes after this one, or after its K-th application")
      ->type_name("PASS[:K]");
}

apl::Status Observer::check_names(const std::string& option, const std::string& names) const {
  if (names.empty() || names == "all") return apl::Unit{};
  std::vector<std::string> known;
  for (const apl::PassInfo& pass : registry().passes()) known.push_back(pass.name);
  for (const std::string& name : split(names)) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    apl::Diagnostic error =
        apl::make_error(apl::Code::command_bad_argument, {}, fmt::format("{}: there is no pass '{}'", option, name));
    if (const auto similar = apl::similar_name(name, known)) error.hint = fmt::format("did you mean '{}'?", *similar);
    return error;
  }
  return apl::Unit{};
}

apl::Status Observer::prepare(apl::Pipeline& pipeline, const std::vector<std::string>& disabled) {
  const std::size_t colon = options_.stop_after.find(':');
  const std::string last = options_.stop_after.substr(0, colon);
  if (auto known = check_names("--print-before", options_.print_before); !known) return known;
  if (auto known = check_names("--print-after", options_.print_after); !known) return known;
  if (auto known = check_names("--stop-after", last); !known) return known;
  const auto is_disabled = [&](std::size_t k) {
    const std::string& name = pipeline.registry.passes()[pipeline.order[k]].name;
    return std::find(disabled.begin(), disabled.end(), name) != disabled.end();
  };
  if (!last.empty()) {
    std::size_t wanted = 1;
    if (colon != std::string::npos) {
      const char* end = options_.stop_after.data() + options_.stop_after.size();
      const auto [stop, status] = std::from_chars(options_.stop_after.data() + colon + 1, end, wanted);
      if (status != std::errc() || stop != end || wanted == 0)
        return apl::make_error(
            apl::Code::command_bad_argument, {},
            fmt::format("--stop-after takes PASS or PASS:K with K from 1, not '{}'", options_.stop_after));
    }
    std::size_t found = 0, k = 0;
    for (; k < pipeline.order.size() && found < wanted; ++k)
      if (pipeline.registry.passes()[pipeline.order[k]].name == last && !is_disabled(k)) ++found;
    if (found < wanted)
      return apl::make_error(
          apl::Code::command_bad_argument, {},
          fmt::format("--stop-after={}: the pipeline has {} application{} of that pass", options_.stop_after,
                      found == 0 ? "no" : std::to_string(found), found == 1 ? "" : "s"));
    pipeline.order.resize(k);
    pipeline.options.resize(k);
  }
  rest_ = pipeline;
  for (std::size_t k = rest_.order.size(); k-- > 0;)
    if (is_disabled(k)) {
      rest_.order.erase(rest_.order.begin() + static_cast<std::ptrdiff_t>(k));
      rest_.options.erase(rest_.options.begin() + static_cast<std::ptrdiff_t>(k));
    }
  return apl::Unit{};
}

void Observer::attach(apl::PipelineOptions& options) {
  start_ = std::chrono::steady_clock::now();
  options.limit = options_.limit;
  const auto chain = [](auto first, auto second) {
    return [first = std::move(first), second = std::move(second)](const apl::PassReport& r, const apl::Module& m) {
      if (first) first(r, m);
      second(r, m);
    };
  };
  options.before_pass =
      chain(std::move(options.before_pass), [this](const apl::PassReport& r, const apl::Module& m) { before(r, m); });
  options.after_pass =
      chain(std::move(options.after_pass), [this](const apl::PassReport& r, const apl::Module& m) { after(r, m); });
  options.skipped = [this](const apl::PassReport& report) {
    print_error("opt-limit: skipped {}\n", application_text(report));
    applications_.push_back({.report = report, .skipped = true});
  };
  if (options_.statistics)
    options.remarks = [this, next = std::move(options.remarks)](const apl::Remark& remark) {
      if (remark.kind == apl::RemarkKind::applied) ++applications_.back().applied;
      if (remark.kind == apl::RemarkKind::missed) ++applications_.back().missed;
      if (next) next(remark);
    };
}

void Observer::before(const apl::PassReport& report, const apl::Module& module) {
  if (options_.limit) print_error("opt-limit: ran {}\n", application_text(report));
  applications_.push_back({.report = report});
  if (options_.statistics) applications_.back().before = count_statements(module);
  if (options_.print_changed) text_before_ = apl::print(module);
  if (!options_.reproducer.empty()) write_reproducer(report, module);
  name_pass_for_crashes(report.pass);
  if (names_pass(options_.print_before, report.pass))
    print_error("-- IR before {}\n{}", application_text(report), apl::print(module));
}

void Observer::after(const apl::PassReport& report, const apl::Module& module) {
  name_pass_for_crashes("");
  Application& application = applications_.back();
  application.report = report;
  if (options_.statistics) application.after = count_statements(module);
  const bool changed = report.change == apl::Change::yes;
  if (names_pass(options_.print_after, report.pass))
    print_error("-- IR after {}{}\n{}", application_text(report), changed ? "" : ": no change", apl::print(module));
  if (!options_.print_changed) return;
  const std::string diff = changed ? apl::text_diff(text_before_, apl::print(module)) : "";
  print_error("-- {}{}\n{}", application_text(report), diff.empty() ? ": no change" : "", diff);
}

void Observer::write_reproducer(const apl::PassReport& report, const apl::Module& module) {
  apl::Pipeline rest = rest_;
  const auto done = static_cast<std::ptrdiff_t>(report.application - 1);
  rest.order.erase(rest.order.begin(), rest.order.begin() + done);
  rest.options.erase(rest.options.begin(), rest.options.begin() + done);
  std::string arguments;
  for (const std::string& argument : plugin_arguments()) arguments += fmt::format(" '{}'", argument);
  for (const auto& [name, value] : parameters_) arguments += fmt::format(" --param '{}={}'", name, value);
  const std::string text = fmt::format("-- The module before {} of aplc {}.\n-- Replay: aplc opt -p '{}'{} '{}'\n{}",
                                       application_text(report), APL_VERSION, rest.to_text(), arguments,
                                       options_.reproducer, apl::print(module, {.locations = true}));
  if (const auto written = write_file(options_.reproducer, text); !written)
    print_error("{}", apl::render(written.error(), options_.reproducer, ""));
  else
    has_reproducer_ = true;
}

void Observer::finish(bool succeeded) {
  if (has_reproducer_ && succeeded) std::remove(options_.reproducer.c_str());
  if (has_reproducer_ && !succeeded) print_error("reproducer: {}\n", options_.reproducer);
  if (options_.statistics) print_statistics();
  if (options_.timing) print_timing();
}

void Observer::print_statistics() const {
  print_error("{:>4}  {:<20}{:>20}  {:>7}  {:>7}\n", "#", "pass", "statements", "applied", "missed");
  for (const Application& a : applications_) {
    const auto number = [](std::size_t n) { return n == 0 ? std::string() : std::to_string(n); };
    std::string change = "no change";
    if (a.skipped) {
      change = "skipped";
    } else if (a.report.change == apl::Change::yes) {
      change = a.before == a.after ? fmt::format("{}, changed", a.after) : fmt::format("{} -> {}", a.before, a.after);
    }
    print_error("{:>4}  {:<20}{:>20}  {:>7}  {:>7}\n", a.report.application, a.report.pass, change, number(a.applied),
                number(a.missed));
  }
}

void Observer::print_timing() const {
  struct Row {
    std::string pass;
    double time = 0;
    std::size_t runs = 0;
  };
  std::vector<Row> rows;
  double passes = 0;
  for (const Application& a : applications_) {
    if (a.skipped) continue;
    auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.pass == a.report.pass; });
    if (row == rows.end()) row = rows.insert(rows.end(), {a.report.pass});
    row->time += milliseconds(a.report.time);
    ++row->runs;
    passes += milliseconds(a.report.time);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.time > b.time; });
  const double whole = milliseconds(std::chrono::steady_clock::now() - start_);
  const auto share = [&](double time) { return whole > 0 ? 100 * time / whole : 0; };
  print_error("{:>12}  {:>6}  {:>4}  {}\n", "time", "share", "runs", "pass");
  for (const Row& row : rows)
    print_error("{:>9.3f} ms  {:>5.1f}%  {:>4}  {}\n", row.time, share(row.time), row.runs, row.pass);
  print_error("{:>9.3f} ms  {:>5.1f}%  {:>4}  {}\n", whole - passes, share(whole - passes), "",
              "verification and printing");
  print_error("{:>9.3f} ms  {:>5.1f}%  {:>4}  {}\n", whole, 100.0, "", "total");
}

}  // namespace aplc
