// The pass manager: runs a pipeline and holds every pass to what it promises.
//
// Before anything runs, the stages are followed through the whole pipeline, so that a wrong order is an error of
// the command line and costs nothing. Each pass then works on a copy of the module (a vector of shared functions):
// what it leaves is taken over only when it succeeded and its promises hold. A broken promise is our bug, and its
// diagnostic carries what replays it: the rest of the pipeline and the text of the module before the pass.
#include "passes/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>

#include "ir/differentiate.h"
#include "ir/print.h"
#include "ir/schedule.h"
#include "ir/sparse_schedule.h"
#include "ir/team.h"
#include "ir/verify.h"
#include "ir/walk.h"

namespace apl {

namespace {

using Clock = std::chrono::steady_clock;

std::string stages_text(StageSet stages) {
  std::vector<std::string_view> names;
  for (const Stage stage : {Stage::soac, Stage::kernel, Stage::memory}) {
    if ((stages & stage_bit(stage)) != 0) names.push_back(to_text(stage));
  }
  return fmt::format("{}", fmt::join(names, " or "));
}

class Manager {
 public:
  Manager(Module& module, const Pipeline& pipeline, const PipelineOptions& options)
      : module_(module), pipeline_(pipeline), options_(options) {}

  Status run() {
    if (std::optional<Diagnostic> error = check_stages()) return std::move(*error);
    std::vector<Diagnostic> broken = verify(module_);
    if (!broken.empty()) return std::move(broken.front());
    const std::size_t disabled_steps = static_cast<std::size_t>(std::ranges::count_if(
        pipeline_.order, [&](std::size_t k) { return disabled(pipeline_.registry.passes()[k]); }));
    report_.applications = pipeline_.order.size() - disabled_steps;
    for (std::size_t step = 0; step < pipeline_.order.size(); ++step) {
      if (disabled(pass(step))) continue;
      report_.pass = pass(step).name;
      report_.change = Change::no;
      report_.time = {};
      ++report_.application;
      if (options_.limit && report_.application > *options_.limit && !is_required(pass(step), module_.stage)) {
        if (options_.skipped) options_.skipped(report_);
        continue;
      }
      if (options_.stop && options_.stop()) {
        return make_error(Code::run_stopped, {}, fmt::format("stopped before pass '{}'", pass(step).name));
      }
      if (std::optional<Diagnostic> error = run_pass(step)) return std::move(*error);
    }
    return Unit{};
  }

 private:
  const PassInfo& pass(std::size_t step) const { return pipeline_.registry.passes()[pipeline_.order[step]]; }
  bool disabled(const PassInfo& info) const { return disabled_by_name(info.name); }
  bool disabled_by_name(std::string_view name) const {
    return std::ranges::find(options_.disabled, name) != options_.disabled.end();
  }

  std::optional<Diagnostic> check_stages() const {
    Stage stage = module_.stage;
    std::string_view before;
    for (std::size_t step = 0; step < pipeline_.order.size(); ++step) {
      const PassInfo& info = pass(step);
      if (disabled(info)) continue;
      if ((info.takes & stage_bit(stage)) == 0) {
        return make_error(Code::command_bad_pipeline, {},
                          fmt::format("pass '{}' takes a module at stage {}, but {} it is at stage {}", info.name,
                                      stages_text(info.takes),
                                      before.empty() ? "here" : fmt::format("after '{}'", before), to_text(stage)));
      }
      stage = info.gives(stage);
      before = info.name;
    }
    return std::nullopt;
  }

  // Whether a program has derivatives only its module says, so this is checked when the pass is to run.
  std::optional<Diagnostic> check_derivatives(const PassInfo& info) const {
    if (!info.needs_differentiate || !holds_derivatives(module_)) return std::nullopt;
    Diagnostic error = make_error(
        Code::command_bad_pipeline, {},
        fmt::format("pass '{}' takes no derivatives, but the program has some: 'differentiate' comes before it",
                    info.name));
    if (disabled_by_name("differentiate")) error.hint = "do not disable 'differentiate'";
    return error;
  }

  std::optional<Diagnostic> run_pass(std::size_t step) {
    const PassInfo& info = pass(step);
    if (std::optional<Diagnostic> error = check_derivatives(info)) return error;
    PassContext context;
    context.remarks = options_.remarks;
    context.options = pipeline_.options[step];
    context.parameters = options_.parameters;

    if (options_.before_pass) options_.before_pass(report_, module_);
    Module next = module_;
    const Clock::time_point start = Clock::now();
    Result<Change> outcome = call(info, next, context);
    const Clock::time_point end = Clock::now();
    if (!outcome) {
      Diagnostic error = std::move(outcome).error();
      error.notes.push_back({fmt::format("while running pass '{}'", info.name), {}});
      if (code_fault(error.code) == Fault::bug) add_reproducer(error, step);
      return error;
    }
    if (*outcome == Change::yes) drop_broken_schedules(info, next);
    if (std::optional<Diagnostic> error = check_promises(step, next, *outcome)) return error;
    // A pass may have built an equal module anew; the old one keeps what others share.
    if (*outcome == Change::yes) module_ = std::move(next);
    report_.change = *outcome;
    report_.time = std::chrono::duration_cast<std::chrono::nanoseconds>(end - start);
    if (options_.after_pass) options_.after_pass(report_, module_);
    return std::nullopt;
  }

  // A schedule says how a kernel is built: a pass that rebuilt one may leave it without, and it is then computed in the
  // general way. Passes need not know of schedules for that.
  void drop_broken_schedules(const PassInfo& info, Module& module) const {
    for (std::size_t f = 0; f < module.functions.size(); ++f) {
      const FunctionPtr& function = module.functions[f];
      if (f < module_.functions.size() && function == module_.functions[f]) continue;
      std::optional<Layouts> layouts;
      const std::function<BodyPtr(const BodyPtr&)> without = [&](const BodyPtr& body) {
        if (!body) return body;  // the verifier says so
        std::vector<Stm> stms;
        bool changed = false;
        for (const Stm& stm : body->stms) {
          const SegOp* kernel = get_if<SegOp>(stm);
          if (kernel != nullptr && !kernel->schedule && !kernel->sparse && !kernel->team) {
            stms.push_back(stm);
            continue;
          }
          std::optional<std::string> fault = schedule_fault(stm, function->values);
          if (kernel != nullptr && kernel->sparse && !fault) {
            if (!layouts) layouts.emplace(*function);
            fault = sparse_schedule_fault(stm, *function, *layouts);
          }
          bool says = true;
          if (kernel != nullptr && kernel->team && !fault) {
            fault = team_fault(*kernel, function->values);
            // Where nobody wants what a team shared, there is nothing to share.
            says = std::ranges::any_of(kernel->body->stms, [](const Stm& inner) {
              const Screma* screma = get_if<Screma>(inner);
              return screma != nullptr && (screma->reduced_count() > 0 || screma->scans());
            });
          }
          Stm made = stm;
          if (fault) {
            std::get<SegOp>(made.op).schedule.reset();
            std::get<SegOp>(made.op).sparse.reset();
            std::get<SegOp>(made.op).team.reset();
            std::get<SegOp>(made.op).rows = false;
            std::get<SegOp>(made.op).blocks.reset();
            changed = true;
            if (says) report_dropped(info, *function, stm, *fault);
          } else if (kernel == nullptr) {
            made.op = map_bodies(stm.op, [&](const BodyPtr& inner) {
              BodyPtr rebuilt = without(inner);
              changed = changed || rebuilt != inner;
              return rebuilt;
            });
          }
          stms.push_back(std::move(made));
        }
        return changed ? make_body(std::move(stms), body->results) : body;
      };
      BodyPtr body = without(function->body);
      if (body == function->body) continue;
      Function changed = *function;
      changed.body = std::move(body);
      module.functions[f] = std::make_shared<const Function>(std::move(changed));
    }
  }

  void report_dropped(const PassInfo& info, const Function& function, const Stm& kernel,
                      const std::string& fault) const {
    if (!options_.remarks) return;
    options_.remarks({RemarkKind::missed,
                      info.name,
                      std::string(kScheduleDropped),
                      kernel.location,
                      function.name,
                      fmt::format("the kernel of `{}` has lost its schedule, and is computed in the general way: {}",
                                  kernel.pattern.empty() ? "" : function.values.name(kernel.pattern.front()), fault),
                      {},
                      {}});
  }

  // Exceptions are for broken invariants and for memory that ran out: neither may leave the library.
  static Result<Change> call(const PassInfo& info, Module& module, PassContext& context) {
    try {
      return info.run(module, context);
    } catch (const std::exception& exception) {
      return make_error(Code::bug_internal, {}, fmt::format("pass '{}' threw: {}", info.name, exception.what()));
    } catch (...) {
      return make_error(Code::bug_internal, {},
                        fmt::format("pass '{}' threw an object that is no std::exception", info.name));
    }
  }

  std::optional<Diagnostic> check_promises(std::size_t step, const Module& next, Change change) const {
    if (!options_.verify_each) return std::nullopt;
    const PassInfo& info = pass(step);
    const Stage promised = info.gives(module_.stage);
    if (next.stage != promised) {
      return broken(step, {},
                    fmt::format("pass '{}' left the module at stage {}, not {}", info.name, to_text(next.stage),
                                to_text(promised)));
    }
    if (change == Change::no) {
      // Functions are shared until a pass makes new ones.
      if (next.functions == module_.functions) return std::nullopt;
      if (print(next, {.locations = true}) == print(module_, {.locations = true})) return std::nullopt;
      return broken(step, {}, fmt::format("pass '{}' says that it changed nothing, but it did", info.name));
    }
    std::vector<Diagnostic> errors = verify(next);
    if (errors.empty()) return std::nullopt;
    Diagnostic error = broken(step, errors.front().location,
                              fmt::format("pass '{}' left an invalid module: {}", info.name, errors.front().message));
    error.notes.push_back({fmt::format("module after the pass:\n{}", print(next)), {}});
    return error;
  }

  Diagnostic broken(std::size_t step, Location location, std::string message) const {
    Diagnostic error = make_error(Code::bug_verifier, location, std::move(message));
    add_reproducer(error, step);
    return error;
  }

  void add_reproducer(Diagnostic& error, std::size_t step) const {
    Pipeline rest;
    rest.registry = pipeline_.registry;
    for (std::size_t k = step; k < pipeline_.order.size(); ++k) {
      if (disabled(pass(k))) continue;
      rest.order.push_back(pipeline_.order[k]);
      rest.options.push_back(pipeline_.options[k]);
    }
    error.notes.push_back({fmt::format("reproducer pipeline: {}", rest.to_text()), {}});
    if (!options_.parameters.empty()) {
      std::vector<std::string> given;
      for (const auto& [name, value] : options_.parameters) given.push_back(fmt::format("{}={}", name, value));
      error.notes.push_back({fmt::format("reproducer parameters: {}", fmt::join(given, " ")), {}});
    }
    error.notes.push_back({fmt::format("reproducer module:\n{}", print(module_)), {}});
  }

  Module& module_;
  const Pipeline& pipeline_;
  const PipelineOptions& options_;
  PassReport report_;  // of the application that runs
};

}  // namespace

bool is_required(const PassInfo& pass, Stage stage) { return pass.required || pass.gives(stage) != stage; }

Status run_pipeline(Module& module, const Pipeline& pipeline, const PipelineOptions& options) {
  return Manager(module, pipeline, options).run();
}

}  // namespace apl
