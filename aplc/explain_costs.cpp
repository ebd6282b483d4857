#include "aplc/explain_costs.h"

#include <algorithm>

#include "aplc/explain_price.h"
#include "ir/attributes.h"
#include "ir/layouts.h"
#include "ir/team.h"
#include "ir/walk.h"

namespace aplc {
namespace {

using apl::Operand;
using apl::Poly;
using apl::Value;

// What a call launches and gives, where these of its arguments are known.
struct Called {
  std::vector<KernelCost> kernels;                 // of one call
  std::vector<std::optional<apl::Scalar>> values;  // of the call's pattern at the memory stage, without blocks
};
using KnownArguments = std::vector<std::optional<std::int64_t>>;
// By function and its arguments that are sizes or integers.
using Calls = std::map<std::pair<const apl::Function*, KnownArguments>, Called>;

// Calls of a function with other arguments than these many count as if nothing was known of their arguments.
constexpr std::size_t kMostCallsApart = 32;

class Host {
 public:
  using Plans = std::map<std::string, const ExplainedPlan*>;  // by what the names of their parameters begin with

  Host(const apl::Module& module, const apl::Function& function, const Parameters& parameters, const apl_device& device,
       const Plans& plans, Calls& calls)
      : module_(module),
        function_(function),
        parameters_(parameters),
        device_(device),
        layouts_(function),
        plans_(plans),
        calls_(calls),
        known_(parameters) {}

  std::vector<KernelCost> run(const Sizes& sizes) {
    const auto note = [&](Value v) {
      const auto found = sizes.find(function_.values.name(v));
      if (found != sizes.end() && is_index(v))
        known_.know(v, apl::Scalar::integer(apl::ScalarType::i64, found->second));
    };
    for (const Value v : function_.sizes) note(v);
    for (const Value v : function_.params) note(v);
    body(*function_.body, {});
    return std::move(kernels_);
  }

  Called run_called(const KnownArguments& arguments) {
    for (std::size_t k = 0; k < arguments.size(); ++k) {
      const Value formal =
          k < function_.sizes.size() ? function_.sizes[k] : function_.params[k - function_.sizes.size()];
      if (arguments[k]) known_.know(formal, apl::Scalar::integer(function_.type(formal).element, *arguments[k]));
    }
    body(*function_.body, {});
    Called made{.kernels = std::move(kernels_), .values = {}};
    const std::vector<Operand>& results = function_.body->results;
    for (const Value size : function_.result_sizes) {
      std::optional<apl::Scalar> value;
      for (std::size_t k = 0; k < results.size(); ++k)
        for (std::size_t d = 0; d < function_.results[k].rank(); ++d)
          if (function_.results[k].shape[d] == Poly(size))
            if (const auto n = known_.number(function_.values.type(results[k]).shape[d]))
              value = apl::Scalar::integer(apl::ScalarType::i64, static_cast<std::int64_t>(*n));
      made.values.push_back(value);
    }
    for (const Operand& result : results) made.values.push_back(known_.scalar(result));
    return made;
  }

 private:
  bool is_index(Value v) const {
    return function_.type(v).is_scalar() && function_.type(v).element == apl::ScalarType::i64;
  }

  void take_results(const apl::Stm& stm, const apl::Body& taken) {
    for (std::size_t k = 0; k < stm.pattern.size() && k < taken.results.size(); ++k)
      if (const auto value = known_.scalar(taken.results[k])) known_.know(stm.pattern[k], *value);
  }

  // Where a statement stands: in loops that run so often in all, of which nobody may know how often, and in the
  // alternatives of a contraction.
  struct Place {
    double times = 1;
    bool unknown_rounds = false;
    std::string contraction = {};
  };

  void body(const apl::Body& body, const Place& place) {
    for (const apl::Stm& stm : body.stms) statement(stm, place);
  }

  // Whether a kernel has no index, so that nothing is launched.
  bool is_empty(const apl::Stm& stm) const {
    const auto* seg = apl::get_if<apl::SegOp>(stm);
    return seg != nullptr && std::ranges::any_of(seg->space, [&](const apl::SegDim& dim) {
             const auto n = known_.number(dim.bound);
             return n && *n <= 0;
           });
  }

  using State = std::vector<std::optional<apl::Scalar>>;  // what is known of a loop's parameters

  State state_of(const std::vector<Operand>& operands) const {
    State state;
    for (const Operand& operand : operands) state.push_back(known_.scalar(operand));
    return state;
  }

  void know_state(const std::vector<Value>& values, const State& state) {
    for (std::size_t k = 0; k < values.size(); ++k)
      if (state[k])
        known_.know(values[k], *state[k]);
      else
        known_.forget(values[k]);
  }

  // What the host computes in a body, but no kernel.
  void learn_all(const apl::Body& body) {
    for (const apl::Stm& stm : body.stms) {
      for (const Value v : stm.pattern) known_.forget(v);
      if (!std::holds_alternative<apl::If>(stm.op)) {
        known_.learn(stm);
      } else if (const apl::BodyPtr known = taken(stm.op)) {
        learn_all(*known);
        take_results(stm, *known);
      }
    }
  }

  // How often a while loop runs, where that follows from scalars that the host knows.
  std::optional<double> rounds_of(const apl::Loop& loop, const std::vector<Value>& params) {
    constexpr int kMost = 1 << 16;
    State state = state_of(loop.initial);
    for (int rounds = 0; rounds < kMost; ++rounds) {
      if (!state.front()) return std::nullopt;
      if (!state.front()->as_bool()) return rounds;
      know_state(params, state);
      learn_all(*loop.body);
      state = state_of(loop.body->results);
    }
    return std::nullopt;
  }

  // Iterations of short loops are followed one by one, each with its sizes; of long ones all count as the one in the
  // middle, where what grows or shrinks with the index has its mean.
  void loop(const apl::Stm& stm, const Place& place) {
    constexpr double kFollowed = 64;
    constexpr std::size_t kMostFollowed = 4096;  // iterations in all
    const apl::Loop& loop = std::get<apl::Loop>(stm.op);
    const std::vector<Value> params(loop.params.begin(), loop.params.end());
    State state = state_of(loop.initial);
    const auto count = loop.index ? known_.number(loop.bound) : rounds_of(loop, params);
    Place inside = place;
    if (count && *count >= 1 && *count <= kFollowed && followed_ + static_cast<std::size_t>(*count) <= kMostFollowed) {
      const std::size_t first = kernels_.size();
      for (std::int64_t round = 0; round < static_cast<std::int64_t>(*count); ++round, ++followed_) {
        know_state(params, state);
        if (loop.index) known_.know(loop.index, apl::Scalar::integer(apl::ScalarType::i64, round));
        const std::size_t end = kernels_.size();
        body(*loop.body, inside);
        join_rounds(first, end);
        state = state_of(loop.body->results);
      }
      return know_state(stm.pattern, state);
    }
    for (std::size_t k = 0; k < params.size(); ++k)
      if (!(loop.body->results[k] == Operand(params[k]))) state[k].reset();
    know_state(params, state);
    inside.times *= std::max(0.0, count.value_or(1));
    inside.unknown_rounds = inside.unknown_rounds || !count;
    if (count && *count >= 1 && loop.index) known_.know_index(loop.index, (*count - 1) / 2);
    body(*loop.body, inside);
  }

  // Adds the kernels from `end` on, of an iteration, to the same statements' of iterations before, from `first` on.
  void join_rounds(std::size_t first, std::size_t end) {
    for (std::size_t k = end; k < kernels_.size();) {
      const KernelCost& now = kernels_[k];
      const auto at = [&](std::size_t j) { return kernels_.begin() + static_cast<std::ptrdiff_t>(j); };
      const auto before = std::find_if(at(first), at(end), [&](const KernelCost& other) {
        return other.statement == now.statement && other.other_side == now.other_side;
      });
      if (before == at(end)) {
        ++k;
        continue;
      }
      before->launches += now.launches;
      before->seconds = before->seconds && now.seconds ? std::optional(*before->seconds + *now.seconds) : std::nullopt;
      before->unknown_work = before->unknown_work || now.unknown_work;
      before->unknown_rounds = before->unknown_rounds || now.unknown_rounds;
      before->unknown_branch = before->unknown_branch || now.unknown_branch;
      kernels_.erase(at(k));
    }
  }

  void statement(const apl::Stm& stm, const Place& place) {
    // Of an iteration before.
    for (const Value v : stm.pattern) known_.forget(v);
    if (apl::is_branch(stm.op)) return one_of(stm, place);
    if (apl::get_if<apl::Loop>(stm)) return loop(stm, place);
    const double times = place.times;
    const bool launches = apl::get_if<apl::SegOp>(stm) || apl::get_if<apl::Scatter>(stm) ||
                          apl::get_if<apl::Screma>(stm) || apl::get_if<apl::Manifest>(stm) ||
                          apl::get_if<apl::Copy>(stm) || apl::get_if<apl::Replicate>(stm) ||
                          apl::get_if<apl::Iota>(stm);
    if (const auto* op = apl::get_if<apl::Apply>(stm)) return call(*op, stm, place);
    if (!launches) return known_.learn(stm);
    kernels_.push_back({.function = &function_,
                        .statement = &stm,
                        .location = stm.location,
                        .seconds = {},
                        .launches = times,
                        .unknown_rounds = place.unknown_rounds,
                        .contraction = place.contraction});
    const KernelPrice price = kernel_price(stm, function_, layouts_, device_, known_);
    if (price.seconds) kernels_.back().seconds = times * *price.seconds;
    kernels_.back().bytes = price.bytes;
    kernels_.back().operations = price.operations;
    kernels_.back().unknown_work = price.unknown_work;
    if (is_empty(stm)) kernels_.back().launches = 0, kernels_.back().seconds = 0;
    if (const auto* seg = apl::get_if<apl::SegOp>(stm)) {
      kernels_.back().is_sparse = seg->sparse.has_value();
      if (seg->schedule && place.contraction.empty()) kernels_.back().contraction = seg->schedule->parameters;
    }
    if (const auto plan = plans_.find(kernels_.back().contraction); plan != plans_.end()) as_planned(*plan->second);
    kernels_.back().chunks = apl::has_attribute(stm.attributes, apl::attribute::chunks);
    if (const auto* seg = apl::get_if<apl::SegOp>(stm); seg && seg->rows) {
      kernels_.back().holds_rows = true;
      const auto width = known_.number(apl::row_width(*seg)), team = known_.number(*seg->team);
      kernels_.back().version = width && team
                                    ? fmt::format("rows of {:.0f} elements held by {:.0f} threads each", *width, *team)
                                    : "rows held by teams of threads";
    }
    apl::for_each_body(stm.op, [&](const apl::BodyPtr& inner) {
      apl::for_each_stm(*inner, [&](const apl::Stm& nested) {
        const auto* soac = apl::get_if<apl::Screma>(nested);
        if (!soac || soac->reduces.empty()) return;
        (soac->scans() ? kernels_.back().scans : kernels_.back().reduces) = true;
      });
    });
    if (const auto* seg = apl::get_if<apl::SegOp>(stm); seg && seg->blocks)
      kernels_.back().shares = shared(*seg, kernels_.back().scans);
  }

  // A kernel of a contraction: its plan's time is that of all kernels of the alternative, and counts at the first.
  void as_planned(const ExplainedPlan& plan) {
    KernelCost& kernel = kernels_.back();
    const apl::Stm* first = first_of_.try_emplace(kernel.contraction, kernel.statement).first->second;
    const bool is_first = first == kernel.statement;
    kernel.unknown_work = false;
    kernel.seconds = !plan.seconds ? std::nullopt : std::optional(is_first ? kernel.launches * *plan.seconds : 0);
    if (!plan.contraction || !apl::get_if<apl::SegOp>(*kernel.statement)) return;
    kernel.bytes = plan.cost.memory_bytes;
    kernel.operations = 2;
    for (int d = 0; d < plan.contraction->dim_count; ++d)
      kernel.operations *= static_cast<double>(plan.contraction->dims[d].size);
  }

  // The kernels that the function launches.
  void call(const apl::Apply& op, const apl::Stm& stm, const Place& place) {
    const apl::Function* callee = module_.find(op.function);
    if (callee == nullptr) return;
    KnownArguments arguments;
    for (const Operand& x : op.arguments) {
      const apl::Type& type = function_.values.type(x);
      const bool counts = type.is_scalar() && apl::is_integer(type.element);
      const auto value = counts ? known_.scalar(x) : std::nullopt;
      arguments.push_back(value ? std::optional(value->as_int()) : std::nullopt);
    }
    const auto apart = std::ranges::count(calls_, callee, [](const auto& known) { return known.first.first; });
    if (!calls_.contains({callee, arguments}) && static_cast<std::size_t>(apart) >= kMostCallsApart)
      arguments.assign(arguments.size(), std::nullopt);
    auto known = calls_.find({callee, arguments});
    if (known == calls_.end()) {
      Called made = Host(module_, *callee, parameters_, device_, plans_, calls_).run_called(arguments);
      known = calls_.emplace(std::pair(callee, arguments), std::move(made)).first;
    }
    const std::size_t end = kernels_.size();
    for (KernelCost kernel : known->second.kernels) {
      kernel.launches *= place.times;
      if (kernel.seconds) *kernel.seconds *= place.times;
      kernel.unknown_rounds = kernel.unknown_rounds || place.unknown_rounds;
      kernels_.push_back(std::move(kernel));
    }
    join_rounds(branch_, end);
    std::size_t k = 0;
    for (const Value v : stm.pattern) {
      if (function_.type(v).is_memory()) continue;
      if (k < known->second.values.size() && known->second.values[k]) known_.know(v, *known->second.values[k]);
      ++k;
    }
  }

  std::string shared(const apl::SegOp& kernel, bool scans) const {
    const auto blocks = known_.number(*kernel.blocks), team = known_.number(*kernel.team);
    if (scans && blocks)
      return *blocks == 1 ? "one kernel, of one block"
                          : fmt::format("one kernel, whose {:.0f} blocks look back", *blocks);
    if (scans) return "one kernel, whose blocks look back";
    if (!blocks || !team) return "one kernel, shared by threads";
    return *blocks == 1 ? fmt::format("one kernel, shared by {:.0f} thread{}", *team, *team == 1 ? "" : "s")
                        : fmt::format("one kernel, shared by {:.0f} blocks", *blocks);
  }

  // What the names of a contraction's parameters begin with, whose alternatives these are.
  static std::string prefix_of(const apl::Choose& choose) {
    constexpr std::string_view kEnding = "variant";
    return choose.parameter.ends_with(kEnding) ? choose.parameter.substr(0, choose.parameter.size() - kEnding.size())
                                               : std::string();
  }

  // The body that runs, if that is known. Which variant of a contraction runs is said by its plan, if sizes are known;
  // else it is the tiled one, the first, unless another is asked for.
  apl::BodyPtr taken(const apl::Op& op) const {
    if (const auto* branch = std::get_if<apl::If>(&op)) {
      const auto condition = known_.scalar(branch->condition);
      return !condition ? nullptr : condition->as_bool() ? branch->then_body : branch->else_body;
    }
    const auto& choose = std::get<apl::Choose>(op);
    if (const auto plan = plans_.find(prefix_of(choose)); plan != plans_.end() && !plan->second->variant.empty()) {
      const auto chosen =
          std::ranges::find(choose.alternatives, plan->second->variant, &apl::Choose::Alternative::name);
      if (chosen != choose.alternatives.end()) return chosen->body;
    }
    const auto given = parameters_.find(choose.parameter);
    std::size_t k = 0;
    if (given != parameters_.end() && given->second > 0) {
      const auto& asked =
          choose.alternatives[std::min(static_cast<std::size_t>(given->second), choose.alternatives.size()) - 1];
      const auto condition = known_.scalar(asked.condition);
      if (!condition) return nullptr;
      if (condition->as_bool()) return asked.body;
    }
    for (; k + 1 < choose.alternatives.size(); ++k) {
      const auto condition = known_.scalar(choose.alternatives[k].condition);
      if (!condition) return nullptr;
      if (condition->as_bool()) break;
    }
    return choose.alternatives[k].body;
  }

  // Versions with tiles of queries and keys: what the kernels from `first` on are, or why they are not.
  void name_version(const apl::Choose& choose, const apl::Body& known, std::size_t first) {
    const bool apart = &known == choose.alternatives.back().body.get();
    const auto ends = [&](std::string_view ending) { return choose.parameter.ends_with(ending); };
    const bool attention = ends("attention.variant"), pairs = ends("pairs.variant");
    if (!attention && !pairs) return;
    const std::string prefix = choose.parameter.substr(0, choose.parameter.size() - 7);
    for (std::size_t k = first; k < kernels_.size(); ++k) {
      if (!apart) {
        kernels_[k].kind = attention ? "attention" : "reduction of pairs";
        kernels_[k].version = attention ? "one kernel, without scores in memory" : "tiled, with the contraction inside";
      } else if (attention && !parameters_.contains(choose.parameter)) {
        kernels_[k].version = fmt::format("scores in memory: rows too long, or queries too few ({}from)", prefix);
      }
    }
  }

  void one_of(const apl::Stm& stm, const Place& around) {
    const std::size_t outer = branch_;
    branch(stm, around);
    branch_ = outer;
  }

  void branch(const apl::Stm& stm, const Place& around) {
    const auto* choose = std::get_if<apl::Choose>(&stm.op);
    Place place = around;
    if (choose != nullptr && place.contraction.empty() && plans_.contains(prefix_of(*choose)))
      place.contraction = prefix_of(*choose);
    if (const apl::BodyPtr known = taken(stm.op)) {
      const std::size_t first = branch_ = kernels_.size();
      body(*known, place);
      const std::string_view ending = "together.variant";
      if (choose != nullptr && choose->parameter.ends_with(ending) && known != choose->alternatives.front().body)
        for (std::size_t k = first; k < kernels_.size(); ++k)
          kernels_[k].version = parameters_.contains(choose->parameter)
                                    ? "rows not held, as asked"
                                    : fmt::format("rows too long to be held ({}rows)",
                                                  choose->parameter.substr(0, choose->parameter.size() - 7));
      if (choose != nullptr) name_version(*choose, *known, first);
      return take_results(stm, *known);
    }
    struct Side {
      std::size_t first, end;
      double seconds;
    };
    std::vector<Side> sides;
    for (const apl::BodyPtr& side : apl::branches(stm.op)) {
      const std::size_t first = branch_ = kernels_.size();
      body(*side, place);
      double all = 0;
      for (std::size_t k = first; k < kernels_.size(); ++k) {
        kernels_[k].unknown_branch = true;
        if (!kernels_[k].other_side) all += kernels_[k].seconds.value_or(0);
      }
      sides.push_back({first, kernels_.size(), all});
    }
    const auto dearest = std::ranges::max_element(sides, {}, &Side::seconds);
    for (auto side = sides.begin(); side != sides.end(); ++side)
      for (std::size_t k = side->first; side != dearest && k < side->end; ++k) kernels_[k].other_side = true;
  }

  const apl::Module& module_;
  const apl::Function& function_;
  const Parameters& parameters_;
  const apl_device& device_;
  const apl::Layouts layouts_;
  const Plans& plans_;
  Calls& calls_;
  KnownScalars known_;
  std::map<std::string, const apl::Stm*> first_of_;  // of a contraction's kernels, by the same
  std::size_t branch_ = 0;                           // where the kernels of the innermost side of a branch begin
  std::size_t followed_ = 0;                         // iterations of loops
  std::vector<KernelCost> kernels_;
};

}  // namespace

std::vector<KernelCost> kernel_costs(const apl::Module& module, const apl::Function& function, const Sizes& sizes,
                                     const Parameters& parameters, const apl_device& device,
                                     const std::vector<ExplainedPlan>& plans) {
  Host::Plans by_name;
  for (const ExplainedPlan& plan : plans) by_name.emplace(plan.parameters, &plan);
  Calls calls;
  return Host(module, function, parameters, device, by_name, calls).run(sizes);
}

}  // namespace aplc
