// inline: calls of functions of the module become those functions' bodies, but for large functions that are called
// often.
//
//   fun sq[n](xs: [n]f32): [n]f32 = { ... let ys = screma(...) ... in {ys} }
//   entry main[m](as: [m]f32): [m]f32 = { let bs = apply sq(m, as)  in {bs} }
// =>
//   entry main[m](as: [m]f32): [m]f32 = { let bs = screma(...)  in {bs} }        with m for n, as for xs
//
// The call graph is walked callees first, so that what is copied holds no call any more, but for functions that are
// called once and then dropped: their own calls are replaced where they are copied to, as a chain of such functions
// would be copied anew at each step. A function stays, and so do its calls, if it is large, copies of it would be worth
// many times its own text, and it may (inline_calls/kept.h): else programs would double with each level of calls. Calls
// of it where they cannot stand, in maps for functions of arrays, are replaced as others are. Statements copied in keep
// their own source locations and know the call, and the calls around it, that they came by (ir/call_table.h);
// attributes and certificates of the call go to each of them, and what the function asks of its contractions
// (`#[tf32]`, `#[f32_3xtf32]`) to those that may become some. A reshape that the call's sizes make impossible stands
// behind a check that fails: it becomes an array of zeros. Functions that no entry needs are dropped (in a module
// without entries: functions that were called). Takes the soac stage alone: later a function's body may be kernels,
// which cannot stand in the kernel that calls it. Large functions are simplified before they are copied, since what is
// known of a call's arguments makes most of small functions go away. Refuses recursion, which no later stage can
// express, and functions that expand to more calls or statements than fit into memory (unsupported.construct).
// Functions of constants (ir/constants.h) stay, as the program calls each once; `all` makes them ordinary functions.
// `#[noinline]` where a function cannot stay gives a remark. Small functions are always expanded: passes and kernels
// want first-order code without calls.
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>

#include <fmt/format.h>
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <ranges>
#include <set>
#include <unordered_map>

#include "ir/attributes.h"
#include "ir/calls.h"
#include "ir/constants.h"
#include "ir/walk.h"
#include "passes/analysis/simplified.h"
#include "passes/inline_calls/impossible.h"
#include "passes/inline_calls/kept.h"
#include "passes/inline_calls/traces.h"
#include "passes/pass.h"

namespace apl {

namespace {

constexpr std::string_view kName = "inline";
// Of one function, when everything is expanded.
constexpr std::size_t kMaxCalls = 500'000;
constexpr std::size_t kMaxStms = 1'000'000;
// A function of more statements is simplified before it is copied to where it is called.
constexpr std::size_t kLarge = 2'000;
// The same of one that may stay.
constexpr std::size_t kLargeOfKept = 128;
constexpr int kRounds = 4;
// Of copies of a function that are counted.
constexpr std::size_t kMostCopies = 1'000'000;

using inlining::Around;
using inlining::Kept;

using CallGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

class Inliner {
 public:
  Inliner(Module& module, const PassContext& context)
      : module_(module), context_(context), keeps_(!context.flag("all")) {
    for (std::size_t k = 0; k < module.functions.size(); ++k) numbers_.emplace(module.functions[k]->name, k);
    has_entries_ = std::ranges::any_of(module.functions, [](const FunctionPtr& f) { return f->is_entry(); });
    find_constants();
  }

  Result<Change> run() {
    find_calls();
    find_called_once();
    std::vector<std::size_t> component(module_.functions.size());
    const std::size_t components = strong_components(component);
    if (std::optional<Diagnostic> error = refuse_recursion(component, components)) return std::move(*error);
    if (calls_.empty() && !something_to_drop()) return Change::no;
    // Components are numbered callees first.
    std::vector<std::size_t> order(module_.functions.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[component[k]] = k;
    dropped_calls_.resize(module_.functions.size());
    expanded_.resize(module_.functions.size());
    calls_of_.resize(module_.functions.size());
    for (std::size_t k = 0; k < calls_.size(); ++k) calls_of_[calls_[k].caller].push_back(k);
    if (!keeps_)
      for (const std::size_t k : order)
        if (std::optional<Diagnostic> error = refuse_calls(k)) return std::move(*error);
    count_copies(order);
    kept_.resize(module_.functions.size());
    holds_calls_.resize(module_.functions.size());
    for (const std::size_t k : order) {
      if (std::optional<Diagnostic> error = refuse_growth(k)) return std::move(*error);
      inline_into(k);
      decide(k);
    }
    drop_unneeded();
    module_.calls.insert(module_.calls.end(), kept_calls_.begin(), kept_calls_.end());
    return Change::yes;
  }

 private:
  struct Call {
    std::size_t caller = 0;
    std::size_t callee = 0;
    Location location;
    Around around = Around::host;
  };
  // What a function is when all is expanded in it.
  struct Expanded {
    std::size_t calls = 0;
    // Statements where the function itself is expanded in a place of this kind, in which fewer calls may stay.
    std::array<std::size_t, inlining::kPlaces> stms{};
    std::size_t on_host() const { return stms[static_cast<std::size_t>(Around::host)]; }
  };
  struct KeptFunction {
    Kept as = Kept::no;
    std::size_t weight = 0;
    std::string why_not;
  };

  void find_calls() {
    called_.assign(module_.functions.size(), false);
    calls_others_ = called_;
    asked_to_stay_ = called_;
    for (std::size_t k = 0; k < module_.functions.size(); ++k) find_calls(k, *module_.functions[k]->body, Around::host);
  }

  void find_calls(std::size_t k, const Body& body, Around around) {
    for (const Stm& stm : body.stms) {
      if (const auto callee = callee_of(stm)) {
        calls_.push_back({k, *callee, stm.location, around});
        called_[*callee] = true;
        calls_others_[k] = true;
        if (asks_to_stay(stm, *module_.functions[*callee])) asked_to_stay_[*callee] = true;
      }
      for_each_body(stm.op, [&](const BodyPtr& inner) { find_calls(k, *inner, inside(stm, around)); });
    }
  }

  static bool asks_to_stay(const Stm& call, const Function& callee) {
    return has_attribute(callee.attributes, attribute::noinline) || has_attribute(call.attributes, attribute::noinline);
  }

  // Where the bodies of a statement stand.
  static Around inside(const Stm& stm, Around around) {
    if (around == Around::derivative || get_if<Derivative>(stm)) return Around::derivative;
    const Screma* screma = get_if<Screma>(stm);
    const Scatter* scatter = get_if<Scatter>(stm);
    const bool reduces =
        (screma != nullptr && !screma->reduces.empty() && !screma->scans()) || (scatter != nullptr && scatter->op);
    if (around == Around::reduction || reduces) return Around::reduction;
    return screma != nullptr || scatter != nullptr ? Around::map : around;
  }

  void find_called_once() {
    std::vector<std::size_t> calls(module_.functions.size());
    for (const Call& call : calls_) ++calls[call.callee];
    expanded_by_caller_.resize(calls.size());
    for (std::size_t k = 0; k < calls.size(); ++k)
      expanded_by_caller_[k] = calls[k] == 1 && !needed(k) && !(keeps_ && asked_to_stay_[k]);
  }

  // How many copies of each function there would be if all calls were expanded.
  void count_copies(const std::vector<std::size_t>& callees_first) {
    copies_.assign(module_.functions.size(), 0);
    for (const std::size_t k : std::views::reverse(callees_first)) {
      if (needed(k)) copies_[k] = 1;
      for (const std::size_t number : calls_of_[k]) {
        std::size_t& copies = copies_[calls_[number].callee];
        copies = std::min(kMostCopies, copies + copies_[k]);
      }
    }
  }

  // Whether the function, in which all is expanded, stays.
  void decide(std::size_t k) {
    if (!keeps_ || needed(k) || expanded_by_caller_[k] || !called_[k]) return;
    KeptFunction& kept = kept_[k];
    const bool asked = asked_to_stay_[k];
    const auto is_worth_call = [&] {
      const Body& body = *module_.functions[k]->body;
      kept.weight = inlining::weight(body);
      return asked || inlining::is_worth_call(kept.weight, inlining::has_control(body), copies_[k]);
    };
    if (!asked && (copies_[k] < 2 || has_attribute(module_.functions[k]->attributes, attribute::inline_))) return;
    if (!is_worth_call()) return;
    if (expanded_[k].on_host() > kLargeOfKept) {
      Function smaller = *module_.functions[k];
      simplify(smaller, expanded_[k]);
      module_.functions[k] = std::make_shared<const Function>(std::move(smaller));
      if (!is_worth_call()) return;
    }
    const auto find = [&](const std::string& name) -> const Function* {
      const auto found = numbers_.find(name);
      return found == numbers_.end() ? nullptr : module_.functions[found->second].get();
    };
    const Kept as = inlining::may_stay(*module_.functions[k], find, kept.why_not);
    if (as == Kept::no) return;
    number_calls_in_module(k);
    kept.as = as;
    if (asked) kept.weight = SIZE_MAX;
  }

  // Whether the call stays: that of a function which does.
  bool stays(const Stm& call, std::size_t callee, Around around) const {
    const KeptFunction& kept = kept_[callee];
    if (!inlining::stays(kept.as, kept.weight, around)) return false;
    if (around != Around::host || kept.as == Kept::scalar) return true;
    // A view would have to be copied for the call.
    return std::ranges::none_of(get_if<Apply>(call)->arguments,
                                [&](const Operand& x) { return x.is_value() && views_.contains(x.value()); });
  }

  void note_view(const Stm& stm, const ValueTable& values) {
    if (stm.pattern.size() != 1 || !values.type(stm.pattern.front()).is_array()) return;
    const Use* use = get_if<Use>(stm);
    const Reshape* reshape = get_if<Reshape>(stm);
    const bool of_view = (use != nullptr && use->x.is_value() && views_.contains(use->x.value())) ||
                         (reshape != nullptr && views_.contains(reshape->array));
    if (of_view || get_if<Index>(stm) || get_if<Rearrange>(stm)) views_.insert(stm.pattern.front());
  }

  std::size_t strong_components(std::vector<std::size_t>& component) const {
    CallGraph graph(module_.functions.size());
    for (const Call& call : calls_) boost::add_edge(call.caller, call.callee, graph);
    return boost::strong_components(
        graph, boost::make_iterator_property_map(component.begin(), boost::get(boost::vertex_index, graph)));
  }

  // A component with a call inside it is a cycle.
  std::optional<Diagnostic> refuse_recursion(const std::vector<std::size_t>& component, std::size_t components) const {
    const auto cycle = std::ranges::find_if(
        calls_, [&](const Call& call) { return component[call.caller] == component[call.callee]; });
    if (cycle == calls_.end()) return std::nullopt;
    const std::string& name = module_.functions[cycle->callee]->name;
    Diagnostic error = make_error(Code::unsupported_construct, cycle->location,
                                  fmt::format("function '{}' is recursive, which is not supported", name));
    if (components > 0) {
      for (const Call& call : calls_) {
        if (&call == &*cycle || component[call.caller] != component[cycle->caller] ||
            component[call.callee] != component[cycle->caller]) {
          continue;
        }
        error.notes.push_back({fmt::format("'{}' calls '{}' here", module_.functions[call.caller]->name,
                                           module_.functions[call.callee]->name),
                               call.location});
      }
    }
    return error;
  }

  // Functions that call others twice each, and so on, double with each step: no module is to use up the memory. How
  // many calls there are is known before anything is copied.
  std::optional<Diagnostic> refuse_calls(std::size_t k) {
    for (const std::size_t number : calls_of_[k]) {
      expanded_[k].calls += 1 + expanded_[calls_[number].callee].calls;
      if (expanded_[k].calls > kMaxCalls) return too_large(calls_[number], "calls");
    }
    return std::nullopt;
  }

  std::optional<Diagnostic> refuse_growth(std::size_t k) {
    const Stm* last = nullptr;
    expanded_[k].stms = {};
    measure(*module_.functions[k]->body, Around::host, expanded_[k], last);
    if (expanded_[k].on_host() <= kMaxStms) return std::nullopt;
    return too_large({.location = last == nullptr ? module_.functions[k]->location : last->location}, "statements");
  }

  // `last`: the call by which the statements on the host became too many.
  void measure(const Body& body, Around around, Expanded& all, const Stm*& last) const {
    for (const Stm& stm : body.stms) {
      for (std::size_t place = 0; place < all.stms.size(); ++place) {
        std::size_t added = 1;
        const Around there = std::max(around, static_cast<Around>(place));
        if (const auto callee = callee_of(stm);
            callee && !inlining::stays(kept_[*callee].as, kept_[*callee].weight, there))
          added += expanded_[*callee].stms[static_cast<std::size_t>(there)];
        const bool fits = all.on_host() <= kMaxStms;
        all.stms[place] = std::min(2 * kMaxStms, all.stms[place] + added);
        if (fits && all.on_host() > kMaxStms) last = &stm;
      }
      for_each_body(stm.op, [&](const BodyPtr& inner) { measure(*inner, inside(stm, around), all, last); });
    }
  }

  static Diagnostic too_large(const Call& call, std::string_view what) {
    return make_error(Code::unsupported_construct, call.location,
                      fmt::format("a program whose functions expand to this many {} cannot be compiled yet", what));
  }

  // The functions of constants that entries read, themselves or by other constants.
  void find_constants() {
    std::vector<const Function*> rest;
    const auto add = [&](const Function& function) {
      for (const EntryInfo::Constant& use : function.entry->constants) {
        const auto number = numbers_.find(use.function);
        if (number != numbers_.end() && constants_.insert(number->second).second)
          rest.push_back(module_.functions[number->second].get());
      }
    };
    for (const FunctionPtr& function : module_.functions)
      if (function->is_entry()) add(*function);
    while (!rest.empty()) {
      const Function& function = *rest.back();
      rest.pop_back();
      if (function.entry) add(function);
    }
  }

  bool needed(std::size_t k) const {
    return has_entries_ ? module_.functions[k]->is_entry() || constants_.contains(k) : !called_[k];
  }
  bool something_to_drop() const {
    for (std::size_t k = 0; k < module_.functions.size(); ++k) {
      if (!needed(k)) return true;
    }
    return false;
  }

  void drop_unneeded() {
    std::vector<bool> reached(module_.functions.size());
    std::vector<std::size_t> rest;
    for (std::size_t k = 0; k < module_.functions.size(); ++k)
      if (needed(k)) rest.push_back(k);
    while (!rest.empty()) {
      const std::size_t k = rest.back();
      rest.pop_back();
      if (reached[k]) continue;
      reached[k] = true;
      for_each_stm(*module_.functions[k]->body, [&](const Stm& stm) {
        if (const auto callee = callee_of(stm)) rest.push_back(*callee);
      });
    }
    std::vector<FunctionPtr> kept;
    for (std::size_t k = 0; k < module_.functions.size(); ++k) {
      if (!reached[k]) continue;
      kept.push_back(module_.functions[k]);
      if (!needed(k)) remark_kept(k);
    }
    module_.functions = std::move(kept);
  }

  void inline_into(std::size_t k) {
    if (!calls_others_[k]) return;
    holds_calls_[k] = true;
    if (expanded_by_caller_[k]) return remark_calls(*module_.functions[k]);
    Function function = *module_.functions[k];
    caller_ = k;
    views_.clear();
    function.body = rewrite(function.body, function, true, Around::host);
    function.body = inlining::without_impossible_reshapes(function.body, function.values);
    holds_calls_[k] = false;
    for_each_stm(*function.body, [&](const Stm& stm) { holds_calls_[k] = holds_calls_[k] || callee_of(stm); });
    if (expanded_[k].on_host() > kLarge && !needed(k)) simplify(function, expanded_[k]);
    module_.functions[k] = std::make_shared<const Function>(std::move(function));
  }

  void simplify(Function& function, Expanded& expanded) const {
    for (int round = 0; round < kRounds && simplify_once(function, module_); ++round) continue;
    const Stm* last = nullptr;
    expanded.stms = {};
    measure(*function.body, Around::host, expanded, last);
  }

  // `own`: the body is the caller's, not that of a function which was expanded in it, with remarks of its own.
  BodyPtr rewrite(const BodyPtr& body, Function& caller, bool own, Around around) {
    bool holds_call = false;
    for_each_stm(*body, [&](const Stm& stm) { holds_call = holds_call || callee_of(stm).has_value(); });
    if (!holds_call) return body;
    Body result{.results = body->results};
    std::vector<Stm> rest;  // what was copied in and may hold calls, the last statement first
    for (const Stm& first : body->stms) {
      rest.push_back(first);
      for (bool copied = false; !rest.empty(); copied = true) {
        Stm stm = std::move(rest.back());
        rest.pop_back();
        const std::optional<std::size_t> callee = callee_of(stm);
        if (callee && !stays(stm, *callee, around)) {
          if (own && !copied) remark(stm, *callee, caller, around);
          std::vector<Stm> spliced = splice(stm, *module_.functions[*callee], caller);
          std::vector<Stm>& to = holds_calls_[*callee] ? rest : result.stms;
          if (holds_calls_[*callee]) std::ranges::reverse(spliced);
          for (const Stm& copy : spliced) note_view(copy, caller.values);
          std::ranges::move(spliced, std::back_inserter(to));
          continue;
        }
        stm.op = map_bodies(
            stm.op, [&](const BodyPtr& inner) { return rewrite(inner, caller, own && !copied, inside(stm, around)); });
        note_view(stm, caller.values);
        result.stms.push_back(std::move(stm));
      }
    }
    return std::make_shared<const Body>(std::move(result));
  }

  std::optional<std::size_t> callee_of(const Stm& stm) const {
    const Apply* apply = get_if<Apply>(stm);
    if (apply == nullptr) return std::nullopt;
    const auto found = numbers_.find(apply->function);
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
  }

  // The callee's statements in the caller, in place of the call.
  std::vector<Stm> splice(const Stm& call, const Function& callee, Function& caller) {
    const Apply& apply = *get_if<Apply>(call);
    Substitution arguments;
    for (std::size_t k = 0; k < apply.arguments.size(); ++k) {
      const Value formal = k < callee.sizes.size() ? callee.sizes[k] : callee.params[k - callee.sizes.size()];
      arguments.insert_or_assign(formal, apply.arguments[k]);
    }
    Renumbering number_here(*this, call.location, numbers_.at(apply.function));
    const auto locate = [&](Location location) {
      if (location) location.call = number_here(location.call);
      return location;
    };
    const BodyPtr body = copy_fresh(callee.body, arguments, callee.values, caller.values, locate);
    std::vector<Stm> aliases;
    // A result that the body binds becomes the caller's value itself, with the name that it has there.
    Substitution renamed;
    for (Stm& bound : bind_call(call, callee, *body, caller.values)) {
      const Value made = bound.pattern.front();
      const Use* use = get_if<Use>(bound);
      const bool bound_here = use != nullptr && use->x.is_value() && defining_stm(*body, use->x.value()) != nullptr;
      if (bound_here && renamed.try_emplace(use->x.value(), made).second) continue;
      aliases.push_back(std::move(bound));
    }
    for (Stm& alias : aliases) alias = substitute(alias, renamed, caller.values);
    std::vector<Stm> out;
    for (const Stm& copied : body->stms) {
      Stm stm = substitute(copied, renamed, caller.values);
      for (Value& v : stm.pattern) v = substitute(v, renamed);
      stm.certificates.insert(stm.certificates.end(), call.certificates.begin(), call.certificates.end());
      stm.attributes.insert(stm.attributes.end(), call.attributes.begin(), call.attributes.end());
      add_precision(callee, stm);
      if (!stm.location) stm.location = call.location;
      out.push_back(std::move(stm));
    }
    std::ranges::move(aliases, std::back_inserter(out));
    return out;
  }

  // What a function asks of its contractions, they keep: what has code inside may become one.
  static void add_precision(const Function& callee, Stm& stm) {
    bool has_code = false;
    for_each_body(stm.op, [&](const BodyPtr&) { has_code = true; });
    for (const Attribute& attribute : callee.attributes)
      if (has_code && (attribute.name == attribute::tf32.name || attribute.name == attribute::f32_3xtf32.name) &&
          !has_attribute(stm.attributes, attribute::tf32) && !has_attribute(stm.attributes, attribute::f32_3xtf32))
        stm.attributes.push_back(attribute);
  }

  // The calls that were inlined into a function are numbered like this: first those that the module came with, then
  // those of a list that functions which are dropped have for themselves. So only what stays is in the module's list in
  // the end, and the numbers in a callee that is dropped change by the same number wherever it is copied to.
  std::vector<Location>& calls_of(std::size_t k) { return is_in_module(k) ? kept_calls_ : dropped_calls_[k]; }
  bool is_in_module(std::size_t k) const { return needed(k) || kept_[k].as != Kept::no; }
  // The numbers of a function that stays become those of the module's list.
  void number_calls_in_module(std::size_t k) {
    const auto first = static_cast<std::uint32_t>(module_.calls.size() + 1);
    const auto offset = static_cast<std::uint32_t>(kept_calls_.size());
    const auto here = [&](Location location) {
      if (location.call >= first) location.call += offset;
      return location;
    };
    for (const Location& call : dropped_calls_[k]) kept_calls_.push_back(here(call));
    dropped_calls_[k].clear();
    if (offset == 0) return;
    Function function = *module_.functions[k];
    Substitution none;
    function.body = copy_fresh(function.body, none, function.values, function.values, here);
    module_.functions[k] = std::make_shared<const Function>(std::move(function));
  }
  const Location& inlined(std::size_t k, std::uint32_t number) {
    const std::size_t old = module_.calls.size();
    return number <= old ? module_.calls[number - 1] : calls_of(k)[number - old - 1];
  }

  // Numbers of inlined calls in a copy of the callee, which itself is 0 in the callee.
  class Renumbering {
   public:
    Renumbering(Inliner& inliner, const Location& call, std::size_t callee)
        : inliner_(inliner), callee_(callee), calls_(inliner.calls_of(inliner.caller_)) {
      numbers_.emplace(0, add(call));
      if (inliner.is_in_module(callee)) return;
      first_ = static_cast<std::uint32_t>(inliner.module_.calls.size() + 1);
      const std::vector<Location>& added = inliner.dropped_calls_[callee];
      // Calls around them that the front end inlined come first.
      for (const Location& each : added)
        if (each.call < first_) (*this)(each.call);
      offset_ = static_cast<std::uint32_t>(calls_.size());
      for (const Location& each : added) {
        Location copy = each;
        copy.call = (*this)(each.call);
        calls_.push_back(copy);
      }
    }

    std::uint32_t operator()(std::uint32_t number) {
      if (number >= first_) return number + offset_;
      // From this one outwards, up to one that is known; then back, each inside the one before.
      std::vector<std::uint32_t> inner;
      for (; !numbers_.contains(number); number = inliner_.inlined(callee_, number).call) inner.push_back(number);
      std::uint32_t result = numbers_.at(number);
      for (const std::uint32_t next : std::views::reverse(inner)) {
        Location copy = inliner_.inlined(callee_, next);
        copy.call = result;
        result = add(copy);
        numbers_.emplace(next, result);
      }
      return result;
    }

   private:
    std::uint32_t add(const Location& call) {
      if (!call) return call.call;
      calls_.push_back(call);
      return static_cast<std::uint32_t>(inliner_.module_.calls.size() + calls_.size());
    }

    Inliner& inliner_;
    std::size_t callee_;
    std::vector<Location>& calls_;                              // of the caller
    std::unordered_map<std::uint32_t, std::uint32_t> numbers_;  // those below `first_`
    std::uint32_t first_ = UINT32_MAX, offset_ = 0;             // from `first_` on each has its number plus `offset_`
  };

  void remark_calls(const Function& caller) const {
    for_each_stm(*caller.body, [&](const Stm& stm) {
      const auto callee = callee_of(stm);
      if (callee && kept_[*callee].as == Kept::no) remark(stm, *callee, caller, Around::host);
    });
  }

  void remark_kept(std::size_t k) const {
    const Function& function = *module_.functions[k];
    context_.remark({.kind = RemarkKind::applied,
                     .pass = std::string(kName),
                     .code = "kept",
                     .location = function.location,
                     .function = function.name,
                     .message = asked_to_stay_[k]
                                    ? fmt::format("'{}' stays a function, as its attribute asks", function.name)
                                    : fmt::format("'{}' stays a function: there would be {} copies of about {} lines",
                                                  function.name, copies_[k], kept_[k].weight)});
  }

  void remark(const Stm& call, std::size_t k, const Function& caller, Around around) const {
    const Function& callee = *module_.functions[k];
    if (asks_to_stay(call, callee)) {
      std::string why = !keeps_                        ? "all calls are expanded"
                        : kept_[k].as == Kept::no      ? kept_[k].why_not
                        : around == Around::derivative ? "it is differentiated"
                        : around != Around::host       ? "a kernel calls functions of scalars alone"
                                                       : "an argument is a view, which would be copied";
      if (why.empty()) why = "an entry is called";
      context_.remark({.kind = RemarkKind::missed,
                       .pass = std::string(kName),
                       .code = "noinline-ignored",
                       .location = call.location,
                       .function = caller.name,
                       .message = fmt::format("#[noinline] on '{}' is ignored: {}", callee.name, why)});
    }
    context_.remark({.kind = RemarkKind::applied,
                     .pass = std::string(kName),
                     .code = "inlined",
                     .location = call.location,
                     .function = caller.name,
                     .message = fmt::format("'{}' inlined into '{}'", callee.name, caller.name)});
  }

  Module& module_;
  const PassContext& context_;
  const bool keeps_;
  std::unordered_map<std::string, std::size_t> numbers_;
  std::vector<Call> calls_;
  std::vector<std::vector<std::size_t>> calls_of_;  // by caller
  std::vector<Expanded> expanded_;
  std::vector<bool> called_, calls_others_, asked_to_stay_;
  std::vector<bool> holds_calls_;  // when all is expanded that does not stay
  std::vector<std::size_t> copies_;
  std::vector<KeptFunction> kept_;
  std::set<Value> views_;                 // of the caller: arrays that are parts of others, or others in another order
  std::vector<bool> expanded_by_caller_;  // called once, and dropped then
  bool has_entries_ = false;
  std::set<std::size_t> constants_;
  std::size_t caller_ = 0;
  std::vector<Location> kept_calls_;
  std::vector<std::vector<Location>> dropped_calls_;
};

}  // namespace

PassInfo inline_calls_pass() {
  return {
      .name = std::string(kName),
      .summary = "replace calls by the bodies of functions, unless they are large and called often",
      .takes = stage_bit(Stage::soac),
      .options =
          {{.name = "all",
            .default_value = false,
            .help = "replace all calls, also those of large functions that are called often, and compute constants in "
                    "each entry that reads them"}},
      .remark_codes = {{"inlined", "a call was replaced by the function's body"},
                       {"kept", "a large function that is called often stays a function"},
                       {"trace-dropped", "a kernel runs what was to be traced, which it does not print"},
                       {"noinline-ignored", "a function marked #[noinline] was inlined all the same"}},
      .run = [](Module& module, PassContext& context) -> Result<Change> {
        const bool has_constants =
            std::ranges::any_of(module.functions, [](const FunctionPtr& f) { return f->is_constant(); });
        const bool expands = context.flag("all") && has_constants;
        if (expands) expand_constants(module);
        auto change = Inliner(module, context).run();
        if (!change) return change;
        const bool drops = inlining::drop_traces(module, context) == Change::yes;
        return expands || drops ? Change::yes : *change;
      },
      .required = true};  // generated code calls no functions but those that may stay
}

}  // namespace apl
