#include "tests/work/law.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "ir/interpret.h"
#include "ir/print.h"
#include "ir/sparse_arguments.h"
#include "ir/walk.h"
#include "tests/work/table.h"

namespace apl::work_tests {

namespace {

constexpr double kGrowth = 1.25;
// Where elements are searched for in rows: log 32 / log 8 more, and each element has up to 5 steps.
constexpr double kGrowthOfSearches = 2.1, kFactorOfSearches = 6;
// The largest sizes at which the text costs no more than this, where all sizes are one: what is measured takes
// milliseconds then.
constexpr std::int64_t kLargestSize = 64, kLeastSize = 2, kMostWork = 10'000;

// "let {ys : [n]f32} = map(...", on one line.
std::string first_line(std::string text) {
  constexpr std::size_t kLength = 160;
  std::string line;
  for (const char c : text) {
    if (c == '\n' || (c == ' ' && line.ends_with(' '))) continue;
    line += c;
  }
  if (line.size() > kLength) line = line.substr(0, kLength) + " ...";
  return line;
}

std::int64_t total(const WorkCount& count, const Stm* stm) {
  const auto found = count.by_statement().find(stm);
  return found == count.by_statement().end() ? 0 : found->second.total();
}

bool has_shared_memory(const Body& body) {
  bool found = false;
  for_each_stm(body, [&](const Stm& stm) {
    const Alloc* alloc = get_if<Alloc>(stm);
    found = found || get_if<SharedArray>(stm) != nullptr || (alloc != nullptr && alloc->space == Space::shared);
  });
  return found;
}

// The statements of blocks that have shared memory.
std::unordered_set<const Stm*> in_shared_memory(const Module& module) {
  std::unordered_set<const Stm*> found;
  for (const FunctionPtr& function : module.functions)
    for_each_stm(*function->body, [&](const Stm& stm) {
      const SegOp* kernel = get_if<SegOp>(stm);
      if (kernel == nullptr || kernel->level != SegLevel::block || !has_shared_memory(*kernel->body)) return;
      for_each_stm(*kernel->body, [&](const Stm& inner) { found.insert(&inner); });
    });
  return found;
}

// The statement whose own work grew by more than the factor allows, and by most.
std::string statement_that_grew(const Module& module, const WorkCount& small, const WorkCount& large, double growth) {
  const std::unordered_set<const Stm*> tiles = in_shared_memory(module);
  const Stm* grown = nullptr;
  const Function* in = nullptr;
  double most = 0;
  for (const FunctionPtr& function : module.functions)
    for_each_stm(*function->body, [&](const Stm& stm) {
      if (tiles.contains(&stm)) return;
      const double more = static_cast<double>(total(large, &stm)) - growth * static_cast<double>(total(small, &stm));
      if (more <= most) return;
      most = more, grown = &stm, in = function.get();
    });
  // Where all grow alike, the one that costs most.
  if (grown == nullptr) return growth > 0 ? statement_that_grew(module, small, large, 0) : "none";
  return fmt::format("{} (line {}): {} -> {}", first_line(print(*grown, *in)), grown->location.line,
                     total(small, grown), total(large, grown));
}

// A program's work at both values of a size.
struct Pair {
  Pair(const Work& at_n, const Work& at_4n)
      : n(static_cast<double>(at_n.total())), n4(static_cast<double>(at_4n.total())) {}
  double n, n4;
};

double growth_of(const Pair& pair) { return pair.n4 / std::max(1.0, pair.n); }

bool is_too_much(const Pair& text, const Pair& later, double factor) { return later.n4 > factor * text.n4 + kSlack; }

bool is_too_fast(const Pair& text, const Pair& later, double limit) {
  return later.n4 > limit * growth_of(text) * later.n + kSlack && later.n4 - later.n > text.n4 - text.n + kSlack;
}

// Elements of a second sparse operand are searched for in its rows, where the text reads a dense matrix. All elements
// are there in these tests, so that an element costs the logarithm of the row's length, and nothing is saved by it.
bool searches_rows(const Module& module) {
  bool found = false;
  for (const FunctionPtr& function : module.functions) {
    if (!function->entry || soa_interface(*function).empty()) continue;
    for_each_stm(*function->body, [&](const Stm& stm) {
      const Loop* loop = get_if<Loop>(stm);
      found = found || (loop != nullptr && !loop->index);
    });
  }
  return found;
}

// How the later stage breaks the law.
std::string broken(const Pair& text, const Pair& later, double factor) {
  const double growth = growth_of(text);
  const bool too_much = is_too_much(text, later, factor);
  return fmt::format(
      "its work is {} -> {} ({:.1f} times), that of the text {} -> {} ({:.1f} times){}", later.n, later.n4,
      later.n4 / std::max(1.0, later.n), text.n, text.n4, growth,
      too_much ? fmt::format("; {:.1f} times the text's are more than {}", later.n4 / std::max(1.0, text.n4), factor)
               : "");
}

}  // namespace

Result<Module> run_passes(const Module& module, const std::string& pipeline, const PassRegistry& registry,
                          const PipelineOptions& options) {
  Module copy = module;
  const auto parsed = parse_pipeline(pipeline, registry);
  if (!parsed) return parsed.error();
  if (const Status status = run_pipeline(copy, *parsed, options); !status) return status.error();
  return copy;
}

Module alone(const Module& module, const std::string& entry) {
  const Function* start = module.find_entry(entry);
  std::set<std::string> reached{start->name};
  std::vector<const Function*> open{start};
  while (!open.empty()) {
    const Function* function = open.back();
    open.pop_back();
    for_each_stm(*function->body, [&](const Stm& stm) {
      const Apply* call = get_if<Apply>(stm);
      if (call != nullptr && reached.insert(call->function).second) open.push_back(module.find(call->function));
    });
  }
  Module result = module;
  std::erase_if(result.functions, [&](const FunctionPtr& function) { return !reached.contains(function->name); });
  return result;
}

Result<Versions> make_versions(const Module& module, const PassRegistry& registry) {
  auto text = run_passes(module, "inline,differentiate", registry);
  if (!text) return text.error();
  Versions versions{*std::move(text), {}};
  for (const Machine machine : {Machine::gpu, Machine::cpu}) {
    PipelineOptions options;
    options.disabled = {"tile-contraction"};
    std::map<Stage, Module> ends;
    options.after_pass = [&](const PassReport&, const Module& now) { ends.insert_or_assign(now.stage, now); };
    if (auto ran = run_passes(module, standard_pipeline(Stage::memory, machine, true), registry, options); !ran)
      return ran.error();
    for (auto& [stage, end] : ends)
      versions.later.push_back(
          {fmt::format("{} stage, {}", to_text(stage), machine == Machine::gpu ? "GPU" : "CPU"), std::move(end)});
  }
  return versions;
}

Result<Run> measure(const Module& module, const std::string& entry, const std::vector<HostValue>& arguments,
                    std::optional<std::int64_t> most) {
  Run run;
  InterpretOptions options;
  options.work = &run.count;
  if (most) options.stop = [&] { return run.count.sum().total() > *most; };
  const auto results = interpret(module, entry, arguments, options);
  if (!results && results.error().code != Code::run_stopped) return results.error();
  for (const HostValue& value : arguments) run.elements += value.element_count();
  for (std::size_t k = 0; results && k < results->size(); ++k) run.elements += (*results)[k].element_count();
  return run;
}

Work work_of_text(const Module& module, const Run& run) {
  const WorkCount& count = run.count;
  Work work = count.sum();
  work += {.read = run.elements, .written = run.elements, .allocated = run.elements};
  const auto subtract = [&](const Body& body) {
    std::set<Value> overwritten;
    for (const Stm& stm : body.stms) {
      if (const Update* update = get_if<Update>(stm)) overwritten.insert(update->array);
      if (const Scatter* scatter = get_if<Scatter>(stm))
        overwritten.insert(scatter->targets.begin(), scatter->targets.end());
    }
    for (const Stm& stm : body.stms) {
      if (get_if<Copy>(stm) == nullptr || !overwritten.contains(stm.pattern.front())) continue;
      const auto found = count.by_statement().find(&stm);
      if (found == count.by_statement().end()) continue;
      const Work& copied = found->second;
      work += {.read = -copied.read, .written = -copied.written, .allocated = -copied.allocated};
    }
  };
  for (const FunctionPtr& function : module.functions) {
    subtract(*function->body);
    for_each_stm(*function->body,
                 [&](const Stm& stm) { for_each_body(stm.op, [&](const BodyPtr& body) { subtract(*body); }); });
  }
  return work;
}

Work work_of_version(const Module& module, const Run& run) {
  const std::unordered_set<const Stm*> tiles = in_shared_memory(module);
  Work work;
  for (const auto& [stm, its] : run.count.by_statement())
    if (!tiles.contains(stm)) work += its;
  return work;
}

std::optional<Inputs> Inputs::find(const Module& text, const std::string& entry, std::string& why) {
  Inputs inputs;
  inputs.function_ = text.find_entry(entry);
  const Function& function = *inputs.function_;
  std::vector<std::string> sizes, scalars;
  for (const Value size : function.sizes) sizes.push_back(function.values.name(size));
  for (const Value param : function.params) {
    const Type& type = function.type(param);
    if (type.is_scalar() && is_integer(type.element) && byte_size(type.element) >= 4)
      scalars.push_back(function.values.name(param));
  }
  // Integers may be sizes, or positions; elements may be positions, too.
  for (const bool vary : {true, false})
    for (const bool natural : {false, true}) {
      if (!vary && scalars.empty()) continue;
      inputs.names_ = sizes;
      inputs.fixed_.clear();
      for (const std::string& name : scalars)
        if (vary)
          inputs.names_.push_back(name);
        else
          inputs.fixed_[name] = 1;
      if (inputs.names_.empty()) {
        if (why.empty()) why = "it has no size";
        continue;
      }
      inputs.natural_ = natural;
      for (inputs.size_ = kLargestSize; inputs.size_ >= kLeastSize; inputs.size_ /= 2) {
        const auto arguments = inputs.arguments(inputs.names_.front(), inputs.size_);
        if (!arguments) {
          why = arguments.error().message;
          continue;
        }
        const auto count = measure(text, entry, *arguments, 2 * kMostWork);
        if (!count) {
          why = count.error().message;
          continue;
        }
        if (work_of_text(text, *count).total() <= kMostWork || inputs.size_ / 2 < kLeastSize) return inputs;
      }
    }
  return std::nullopt;
}

Result<std::vector<HostValue>> Inputs::arguments(const std::string& name, std::int64_t value) const {
  testing::Sizes sizes = fixed_;
  for (const std::string& other : names_) sizes[other] = other == name ? value : size_;
  auto arguments = testing::random_arguments(*function_, sizes, 1);
  if (!arguments || !natural_) return arguments;
  for (HostValue& argument : *arguments)
    for (std::int64_t k = 0; is_integer(argument.type) && k < argument.element_count(); ++k)
      if (const Scalar x = argument.at(k); is_signed(argument.type) && x.as_int() < 0)
        argument.set(k, Scalar::integer(argument.type, -x.as_int()));
  return arguments;
}

namespace {

// One entry at all its sizes.
class Entry {
 public:
  Entry(const Versions& versions, std::string entry) : entry_(std::move(entry)), text_(alone(versions.text, entry_)) {
    for (const Version& version : versions.later) later_.push_back({version.name, alone(version.module, entry_)});
    factor_ = allowed_factor(text_);
  }

  Outcome check() {
    std::string why;
    inputs_ = Inputs::find(text_, entry_, why);
    if (!inputs_) {
      outcome_.left_out.push_back(why);
      return std::move(outcome_);
    }
    for (const std::string& size : inputs_->names()) check(size);
    return std::move(outcome_);
  }

 private:
  Result<Run> run(const Module& module, const std::string& size, std::int64_t value,
                  std::optional<std::int64_t> most = {}) const {
    const auto arguments = inputs_->arguments(size, value);
    return arguments ? measure(module, entry_, *arguments, most) : arguments.error();
  }

  void check(const std::string& size) {
    const std::int64_t n = inputs_->size();
    const auto small = run(text_, size, n), large = run(text_, size, kSizeFactor * n);
    for (const auto* each : {&small, &large})
      if (!*each) {
        outcome_.left_out.push_back(fmt::format("{}: {}", size, each->error().message));
        return;
      }
    const Pair text(work_of_text(text_, *small), work_of_text(text_, *large));
    // What costs so much more needs no exact count.
    const auto most = static_cast<std::int64_t>(100 * (text.n4 + kSlack));
    for (const Version& version : later_) {
      const auto version_n = run(version.module, size, n, most);
      const auto version_4n = version_n ? run(version.module, size, kSizeFactor * n, most) : version_n;
      if (!version_4n) {
        outcome_.violations.push_back({size, fmt::format("{} fails: {}", version.name, version_4n.error().message)});
        continue;
      }
      ++outcome_.compared;
      const Pair later(work_of_version(version.module, *version_n), work_of_version(version.module, *version_4n));
      const bool searches = searches_rows(version.module);
      const double factor = searches ? std::max(factor_, kFactorOfSearches) : factor_;
      const bool wrong =
          is_too_much(text, later, factor) || (is_too_fast(text, later, searches ? kGrowthOfSearches : kGrowth) &&
                                               still_too_fast(size, *large, version, *version_4n));
      if (!wrong) continue;
      outcome_.violations.push_back(
          {size,
           fmt::format("{}, {} = {} -> {}: {}\n    the statement that grew: {}", version.name, size, n, kSizeFactor * n,
                       broken(text, later, factor),
                       statement_that_grew(version.module, version_n->count, version_4n->count, growth_of(text)))});
    }
  }

  // What grows slowest has less of a share from 4n to 16n.
  bool still_too_fast(const std::string& size, const Run& text_4n, const Version& version,
                      const Run& version_4n) const {
    const std::int64_t n = kSizeFactor * kSizeFactor * inputs_->size();
    const auto text_16n = run(text_, size, n), version_16n = run(version.module, size, n);
    if (!text_16n || !version_16n) return true;
    const Pair text(work_of_text(text_, text_4n), work_of_text(text_, *text_16n));
    const Pair later(work_of_version(version.module, version_4n), work_of_version(version.module, *version_16n));
    return is_too_fast(text, later, searches_rows(version.module) ? kGrowthOfSearches : kGrowth);
  }

  std::string entry_;
  Module text_;
  std::vector<Version> later_;
  double factor_ = 0;
  std::optional<Inputs> inputs_;
  Outcome outcome_;
};

}  // namespace

Outcome check_entry(const Versions& versions, const std::string& entry) { return Entry(versions, entry).check(); }

}  // namespace apl::work_tests
