#include "aplc/explain_costs.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "ir/attributes.h"
#include "ir/layouts.h"
#include "ir/team.h"
#include "ir/walk.h"

namespace aplc {
namespace {

using apl::Operand;
using apl::Poly;
using apl::Value;

// A step of a thread that waits for memory, in cycles, with several loads under way.
constexpr double kStepCycles = 30;
// An operation of a tile's product, or on an element of a block's own, of which many do not depend on each other: as
// long as two warps take turns at a scheduler.
constexpr double kProductCycles = 2;

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
        calls_(calls) {}

  std::vector<KernelCost> run(const Sizes& sizes) {
    const auto note = [&](Value v) {
      const auto found = sizes.find(function_.values.name(v));
      if (found != sizes.end() && is_index(v)) known_[v] = apl::Scalar::integer(apl::ScalarType::i64, found->second);
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
      if (arguments[k]) known_[formal] = apl::Scalar::integer(function_.type(formal).element, *arguments[k]);
    }
    body(*function_.body, {});
    Called made{.kernels = std::move(kernels_), .values = {}};
    const std::vector<Operand>& results = function_.body->results;
    for (const Value size : function_.result_sizes) {
      std::optional<apl::Scalar> value;
      for (std::size_t k = 0; k < results.size(); ++k)
        for (std::size_t d = 0; d < function_.results[k].rank(); ++d)
          if (function_.results[k].shape[d] == Poly(size))
            if (const auto n = number(function_.values.type(results[k]).shape[d]))
              value = apl::Scalar::integer(apl::ScalarType::i64, static_cast<std::int64_t>(*n));
      made.values.push_back(value);
    }
    for (const Operand& result : results) made.values.push_back(scalar(result));
    return made;
  }

 private:
  bool is_index(Value v) const {
    return function_.type(v).is_scalar() && function_.type(v).element == apl::ScalarType::i64;
  }

  std::optional<double> number(const Poly& poly) const {
    const bool all = [&] {
      bool fine = true;
      poly.for_each_symbol([&](Value v) { fine = fine && known_.contains(v); });
      return fine;
    }();
    if (!all) return std::nullopt;
    const auto result = poly.evaluate([&](Value v) { return known_.at(v).as_int(); });
    return result ? std::optional<double>(static_cast<double>(*result)) : std::nullopt;
  }
  std::optional<apl::Scalar> scalar(const Operand& operand) const {
    if (operand.is_constant()) return operand.constant();
    const auto found = known_.find(operand.value());
    return found == known_.end() ? std::nullopt : std::optional(found->second);
  }

  // What the host computes.
  void learn(const apl::Stm& stm) {
    std::optional<apl::Scalar> value;
    if (const auto* size = apl::get_if<apl::SizeExpr>(stm)) {
      if (const auto n = number(size->value))
        value = apl::Scalar::integer(apl::ScalarType::i64, static_cast<std::int64_t>(*n));
    } else if (const auto* parameter = apl::get_if<apl::GetSize>(stm)) {
      const auto given = parameters_.find(parameter->name);
      value = apl::Scalar::integer(apl::ScalarType::i64,
                                   given == parameters_.end() ? parameter->default_value : given->second);
    } else if (const auto* binary = apl::get_if<apl::Binary>(stm)) {
      const auto x = scalar(binary->x), y = scalar(binary->y);
      if (x && y) value = apl::evaluate(binary->op, *x, *y);
    } else if (const auto* compare = apl::get_if<apl::Compare>(stm)) {
      const auto x = scalar(compare->x), y = scalar(compare->y);
      if (x && y) value = apl::evaluate(compare->op, *x, *y);
    } else if (const auto* unary = apl::get_if<apl::Unary>(stm)) {
      if (const auto x = scalar(unary->x)) value = apl::evaluate(unary->op, *x);
    } else if (const auto* use = apl::get_if<apl::Use>(stm)) {
      value = scalar(use->x);
    }
    if (value) known_[stm.pattern.front()] = *value;
  }

  void take_results(const apl::Stm& stm, const apl::Body& taken) {
    for (std::size_t k = 0; k < stm.pattern.size() && k < taken.results.size(); ++k)
      if (const auto value = scalar(taken.results[k])) known_[stm.pattern[k]] = *value;
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
             const auto n = number(dim.bound);
             return n && *n <= 0;
           });
  }

  using State = std::vector<std::optional<apl::Scalar>>;  // what is known of a loop's parameters

  State state_of(const std::vector<Operand>& operands) const {
    State state;
    for (const Operand& operand : operands) state.push_back(scalar(operand));
    return state;
  }

  void know_state(const std::vector<Value>& values, const State& state) {
    for (std::size_t k = 0; k < values.size(); ++k)
      if (state[k])
        known_[values[k]] = *state[k];
      else
        known_.erase(values[k]);
  }

  // What the host computes in a body, but no kernel.
  void learn_all(const apl::Body& body) {
    for (const apl::Stm& stm : body.stms) {
      for (const Value v : stm.pattern) known_.erase(v);
      if (!std::holds_alternative<apl::If>(stm.op)) {
        learn(stm);
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
    const auto count = loop.index ? number(loop.bound) : rounds_of(loop, params);
    Place inside = place;
    if (count && *count >= 1 && *count <= kFollowed && followed_ + static_cast<std::size_t>(*count) <= kMostFollowed) {
      const std::size_t first = kernels_.size();
      for (std::int64_t round = 0; round < static_cast<std::int64_t>(*count); ++round, ++followed_) {
        know_state(params, state);
        if (loop.index) known_[loop.index] = apl::Scalar::integer(apl::ScalarType::i64, round);
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
    if (count && *count >= 1 && loop.index) know_index(loop.index, (*count - 1) / 2);
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

  void know_index(Value index, double at) {
    known_[index] = apl::Scalar::integer(apl::ScalarType::i64, static_cast<std::int64_t>(at));
  }

  void statement(const apl::Stm& stm, const Place& place) {
    // Of an iteration before.
    for (const Value v : stm.pattern) known_.erase(v);
    if (apl::is_branch(stm.op)) return one_of(stm, place);
    if (apl::get_if<apl::Loop>(stm)) return loop(stm, place);
    const double times = place.times;
    const bool launches = apl::get_if<apl::SegOp>(stm) || apl::get_if<apl::Scatter>(stm) ||
                          apl::get_if<apl::Screma>(stm) || apl::get_if<apl::Manifest>(stm) ||
                          apl::get_if<apl::Copy>(stm) || apl::get_if<apl::Replicate>(stm) ||
                          apl::get_if<apl::Iota>(stm);
    if (const auto* op = apl::get_if<apl::Apply>(stm)) return call(*op, stm, place);
    if (!launches) return learn(stm);
    kernels_.push_back({.function = &function_,
                        .statement = &stm,
                        .location = stm.location,
                        .seconds = {},
                        .launches = times,
                        .unknown_rounds = place.unknown_rounds,
                        .contraction = place.contraction});
    if (const auto seconds = kernel(stm)) kernels_.back().seconds = times * *seconds;
    if (is_empty(stm)) kernels_.back().launches = 0, kernels_.back().seconds = 0;
    if (const auto* seg = apl::get_if<apl::SegOp>(stm)) {
      kernels_.back().is_sparse = seg->sparse.has_value();
      if (seg->schedule && place.contraction.empty()) kernels_.back().contraction = seg->schedule->parameters;
    }
    if (const auto plan = plans_.find(kernels_.back().contraction); plan != plans_.end()) as_planned(*plan->second);
    kernels_.back().chunks = apl::has_attribute(stm.attributes, apl::attribute::chunks);
    if (const auto* seg = apl::get_if<apl::SegOp>(stm); seg && seg->rows) {
      kernels_.back().holds_rows = true;
      const auto width = number(apl::row_width(*seg)), team = number(*seg->team);
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
      const auto value = counts ? scalar(x) : std::nullopt;
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
      if (k < known->second.values.size() && known->second.values[k]) known_[v] = *known->second.values[k];
      ++k;
    }
  }

  std::string shared(const apl::SegOp& kernel, bool scans) const {
    const auto blocks = number(*kernel.blocks), team = number(*kernel.team);
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
      const auto condition = scalar(branch->condition);
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
      const auto condition = scalar(asked.condition);
      if (!condition) return nullptr;
      if (condition->as_bool()) return asked.body;
    }
    for (; k + 1 < choose.alternatives.size(); ++k) {
      const auto condition = scalar(choose.alternatives[k].condition);
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

  // ---- one kernel -------------------------------------------------------------------------------------

  struct Work {
    double steps = 0;               // of one thread, one after the other
    double operations = 0;          // of one thread
    double products = 0;            // those of its share of tiles' products, and elements of its block's own arrays
    std::map<Value, double> reads;  // elements of each array by one thread
    double writes = 0;              // bytes by one thread
    std::map<Value, Value> bases;   // arrays that rows are of
  };

  static double bytes_of(const apl::Type& type) { return std::max(1, apl::byte_size(type.element)); }

  std::optional<double> elements(const apl::Type& type) const {
    double all = 1;
    for (const Poly& size : type.shape) {
      const auto n = number(size);
      if (!n) return std::nullopt;
      all *= *n;
    }
    return all;
  }

  void add(const apl::Body& body, double times, Work& work) {
    for (const apl::Stm& stm : body.stms) add(stm, times, work);
  }

  void add(const apl::Stm& stm, double times, Work& work) {
    const auto nested = [&](double factor) {
      apl::for_each_body(stm.op, [&](const apl::BodyPtr& inner) { add(*inner, times * factor, work); });
    };
    // The array that a row is of: an element of a row is one of the array's.
    const auto base_of = [&](Value array) {
      const auto row = work.bases.find(array);
      return row == work.bases.end() ? array : row->second;
    };
    const auto width = [&](const std::vector<Poly>& widths) {
      double all = 1;
      for (const Poly& w : widths) {
        const auto n = number(w);
        unknown_work_ = unknown_work_ || !n;
        all *= n.value_or(1);
      }
      return all;
    };
    learn(stm);
    if (const auto* index = apl::get_if<apl::Index>(stm)) {
      const bool element =
          std::none_of(index->dims.begin(), index->dims.end(), [](const auto& d) { return d.is_slice(); });
      if (element && function_.type(stm.pattern.front()).is_scalar()) {
        if (outside_ && !outside_->contains(base_of(index->array))) {
          work.products += times;  // in registers or shared memory
        } else {
          work.reads[base_of(index->array)] += times;
          work.steps += times;
        }
      } else if (function_.type(stm.pattern.front()).is_array()) {
        work.bases[stm.pattern.front()] = base_of(index->array);
      }
    } else if (const auto* update = apl::get_if<apl::Update>(stm)) {
      work.writes += times * bytes_of(function_.type(update->array));
    } else if (const auto* loop = apl::get_if<apl::Loop>(stm)) {
      const auto rounds = loop->index ? number(loop->bound) : std::nullopt;
      unknown_work_ = unknown_work_ || !rounds;
      if (loop->index) know_index(loop->index, std::max(0.0, rounds.value_or(1) - 1) / 2);
      nested(rounds.value_or(1));
    } else if (const auto* soac = apl::get_if<apl::Screma>(stm)) {
      const double n = width(soac->widths);
      for (const Value input : soac->inputs) {
        if (outside_ && !outside_->contains(base_of(input))) {
          work.products += times * n;
          continue;
        }
        work.reads[base_of(input)] += times * n;
        work.steps += times * n;
      }
      nested(n);
    } else if (const auto* scatter = apl::get_if<apl::Scatter>(stm)) {
      const double n = width(scatter->widths);
      for (const Value input : scatter->inputs) work.reads[input] += times * n;
      for (const Value target : scatter->targets) work.writes += times * n * bytes_of(function_.type(target));
      work.steps += times * n;
      nested(n);
    } else if (const auto* seg = apl::get_if<apl::SegOp>(stm)) {
      // Inside of a block: its threads share the work.
      std::vector<Poly> bounds;
      for (const apl::SegDim& dim : seg->space) bounds.push_back(dim.bound);
      Work inside;
      add(*seg->body, 1, inside);
      const double n = width(bounds);
      work.operations += times * n * inside.operations;
      work.steps += times * inside.steps;
      work.products += times * inside.products;
      for (const auto& [array, count] : inside.reads) work.reads[array] += times * n * count;
      work.writes += times * n * inside.writes;
    } else if (const auto* copy = apl::get_if<apl::CopyTile>(stm)) {
      const double elements = times * width(copy->window.shape());
      work.reads[copy->source] += elements;
      for (const apl::TileRead& read : copy->also)
        if (read.array) work.reads[*read.array] += elements;
      if (copy->map) add(*copy->map->body, elements, work);
    } else if (const auto* contract = apl::get_if<apl::TileContract>(stm)) {
      // The last tile of a dim may have fewer steps: counted as whole ones of a usual tile.
      constexpr double kUsual = 64;
      double depth = 1, registers = 1, points = 1;
      for (const Poly& steps : contract->depth) depth *= number(steps).value_or(kUsual);
      for (const apl::TileDim& dim : contract->space) {
        registers *= number(dim.reg).value_or(1);
        points *= number(dim.tile * dim.reg).value_or(1);
      }
      Work each;
      add(*contract->map.body, 1, each);
      add(*contract->reduce.op.body, 1, each);
      work.operations += times * depth * points * each.operations;
      work.products += times * depth * registers * each.operations;
    } else if (apl::is_branch(stm.op)) {
      nested(0.5);
    } else if (copies(stm)) {
      add_copy(stm.pattern.front(), times, work);
    } else {
      if (apl::get_if<apl::Binary>(stm) || apl::get_if<apl::Unary>(stm) || apl::get_if<apl::Compare>(stm) ||
          apl::get_if<apl::Convert>(stm))
        work.operations += times;
      nested(1);
    }
  }

  // Whether the thread makes an array element by element: it copies one, or a reshape that no index function says.
  bool copies(const apl::Stm& stm) const {
    if (apl::get_if<apl::Copy>(stm) || apl::get_if<apl::Manifest>(stm) || apl::get_if<apl::Replicate>(stm) ||
        apl::get_if<apl::Iota>(stm))
      return function_.type(stm.pattern.front()).is_array();
    const auto* reshape = apl::get_if<apl::Reshape>(stm);
    return reshape != nullptr && layouts_.find(reshape->array) != nullptr &&
           layouts_.find(stm.pattern.front()) == nullptr;
  }

  void add_copy(Value array, double times, Work& work) const {
    const double n = elements(function_.type(array)).value_or(1);
    work.steps += times * n;
    work.writes += times * n * bytes_of(function_.type(array));
  }

  // Rows that a kernel returns and nothing in it makes: each thread copies its own.
  void add_returned_views(const apl::SegOp& kernel, Work& work) const {
    for (const Operand& result : kernel.body->results) {
      if (!result.is_value() || !function_.type(result.value()).is_array()) continue;
      const apl::Stm* made = apl::defining_stm(*kernel.body, result.value());
      const bool is_view = made == nullptr || apl::get_if<apl::Index>(*made) || apl::get_if<apl::Rearrange>(*made) ||
                           apl::get_if<apl::Reshape>(*made);
      if (is_view) work.steps += elements(function_.type(result.value())).value_or(1);
    }
  }

  // Threads of a team share what an index has to do.
  static void share(double team, double& threads, Work& work) {
    threads *= team;
    work.steps /= team;
    work.operations /= team;
    for (auto& [array, count] : work.reads) count /= team;
  }

  std::optional<double> kernel(const apl::Stm& stm) {
    unknown_work_ = false;
    const auto seconds = seconds_of(stm);
    kernels_.back().unknown_work = unknown_work_;
    return seconds;
  }

  std::optional<double> seconds_of(const apl::Stm& stm) {
    double threads = 1;
    Work work;
    if (const auto* seg = apl::get_if<apl::SegOp>(stm)) {
      for (const apl::SegDim& dim : seg->space) {
        const auto n = number(dim.bound);
        if (!n) return std::nullopt;
        threads *= *n;
        know_index(dim.index, std::max(0.0, *n - 1) / 2);  // what differs from thread to thread has its mean there
      }
      if (seg->level == apl::SegLevel::block) outside_ = apl::free_values(stm.op, function_.values);
      add(*seg->body, 1, work);
      outside_.reset();
      if (seg->level == apl::SegLevel::thread) add_returned_views(*seg, work);
      const double blocks = seg->blocks ? number(*seg->blocks).value_or(1) : 1;
      if (seg->team) share(blocks > 1 ? blocks * apl::kMostTeam : number(*seg->team).value_or(1), threads, work);
    } else {
      // A copy, or a scatter whose indices are its threads.
      const std::vector<Poly>* widths = nullptr;
      if (const auto* scatter = apl::get_if<apl::Scatter>(stm)) widths = &scatter->widths;
      if (const auto* soac = apl::get_if<apl::Screma>(stm)) widths = &soac->widths;
      if (widths) {
        for (const Poly& width : *widths) {
          const auto n = number(width);
          if (!n) return std::nullopt;
          threads *= *n;
        }
        apl::Stm one = stm;
        if (auto* scatter = std::get_if<apl::Scatter>(&one.op)) scatter->widths.clear();
        if (auto* soac = std::get_if<apl::Screma>(&one.op)) soac->widths.clear();
        add(one, 1, work);
      } else {
        const auto n = elements(function_.type(stm.pattern.front()));
        if (!n) return std::nullopt;
        threads = *n;
        work.steps = 1;
        apl::for_each_use(stm.op, [&](Value v) {
          if (function_.type(v).is_array()) work.reads[v] += 1;
        });
      }
    }
    double bytes = threads * work.writes;
    for (const Value result : stm.pattern)
      if (const auto n = elements(function_.type(result)); n && function_.type(result).is_array())
        bytes += *n * bytes_of(function_.type(result));
    for (const auto& [array, count] : work.reads) {
      const apl::Type& type = function_.type(array);
      const auto whole = elements(type);
      bytes += std::min(threads * count, whole.value_or(threads * count)) * bytes_of(type);
    }
    kernels_.back().bytes = bytes;
    kernels_.back().operations = threads * work.operations;
    const double clock = device_.clock_ghz * 1e9;
    const bool is_gpu = device_.warp > 0;
    const double in_flight = is_gpu ? static_cast<double>(device_.multiprocessors) * device_.multiprocessor_threads
                                    : static_cast<double>(device_.multiprocessors);
    const double bandwidth =
        (bytes < static_cast<double>(device_.cache_bytes) ? device_.cache_gbs : device_.memory_gbs) * 1e9;
    const double arithmetic = threads * work.operations / (device_.multiprocessors * device_.fmas_per_clock * clock);
    // Threads one after the other on what runs at a time; a core of a CPU has its steps in cache.
    const double waves = std::max(1.0, std::ceil(threads / std::max(1.0, in_flight)));
    const double cycles =
        is_gpu ? kStepCycles * work.steps + kProductCycles * work.products : work.operations + work.steps;
    const double chain = cycles * (is_gpu ? waves : threads / std::max(1.0, in_flight)) / clock;
    return std::max({bytes / bandwidth, arithmetic, threads < 1 ? 0.0 : chain}) + device_.launch_us * 1e-6;
  }

  const apl::Module& module_;
  const apl::Function& function_;
  const Parameters& parameters_;
  const apl_device& device_;
  const apl::Layouts layouts_;
  const Plans& plans_;
  Calls& calls_;
  std::map<Value, apl::Scalar> known_;
  std::optional<std::set<Value>> outside_;  // what the kernel of blocks reads: its own arrays are near to its threads
  bool unknown_work_ = false;               // whether the kernel has a width or a loop whose length is not known
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
