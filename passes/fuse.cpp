// fuse: maps and reductions that pass an array to each other become one, and the array is never made.
//
//   let {ps : [q]f32} = screma(i < q, {xs, ys}, \ {x, y} -> {mul(x, y)})
//   let {s : f32} = screma(i < q, {ps}, \ {p} -> {p}, reduce add 0.0f32)
// =>
//   let {s : f32} = screma(i < q, {xs, ys}, \ {x, y} -> {mul(x, y)}, reduce add 0.0f32)
//
// Rewrites on the dependence graph of each body (passes/fuse/graph), repeated until none applies:
//   vertical    a producer's lambda goes before its consumer's, also where a nest must be cut at the consumer's widths,
//               and through views: transposes behind the widths move into the lambda, others and slices are lifted
//               over element-wise nests (fuse/views). An element read at the consumer's own index counts as streamed
//               (fuse/elements), and what is cheap is computed where it is read (fuse/reads). Then the lambdas' own
//               bodies are fused in turn. Rows of numbers that cost more than the rows do, read in another order, are
//               made where they are read (fuse/split_rows).
//   horizontal  independent maps, reductions and scans of scalar code over the same widths and a shared input;
//               extract-kernels takes apart again what one kernel cannot do.
//   nested      a reduction of reductions with the same operator and neutral element becomes one over both lists of
//               widths: row-major order is the same order, and associativity all it takes.
//   loop        a loop that only accumulates is a reduction (fuse/loops).
// Statements keep their order as far as dependences let them.
//
// Refuses, with a remark each: a producer that others need, too; other widths; a third statement in between; arrays
// overwritten in place; work done again for inner indices; loss of parallelism (a reduction of rows that are reduced in
// parallel runs in one thread); and an epilogue of a contraction that a tiled kernel cannot do (option
// keep-contractions). Deliberately duplicates no producer but cheap reads: one that others need, too, is fused where
// its array can still be made beside the consumer's results. What follows a scan stays after it: no index has the
// scan's result before its operator ran, and a Screma has no lambda behind its operators.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "ir/attributes.h"
#include "ir/walk.h"
#include "passes/analysis/row_operators.h"
#include "passes/functions.h"
#include "passes/fuse/scope.h"
#include "passes/pass.h"

namespace apl {

namespace {

// Fusing a body again after everything in it was fused changes nothing; the bound guards against mistakes.
constexpr int kMaxRounds = 8;

// Statements that a section of a chain has at first, and how much longer the next sections may be.
constexpr std::size_t kSection = 64;
constexpr std::size_t kSectionGrowth = 4;

// Adds the statements in the operation's bodies to `count`; ends with true where there are more than `most`.
bool count_statements(const Op& op, std::size_t most, std::size_t& count) {
  bool more = false;
  for_each_body(op, [&](const BodyPtr& body) {
    if (more) return;
    count += body->stms.size();
    more = count > most;
    for (auto stm = body->stms.begin(); stm != body->stms.end() && !more; ++stm)
      if (has_bodies(stm->op)) more = count_statements(stm->op, most, count);
  });
  return more;
}

std::size_t count_scremas(const Body& body) {
  std::size_t count = 0;
  for_each_stm(body, [&](const Stm& stm) { count += std::holds_alternative<Screma>(stm.op) ? 1 : 0; });
  return count;
}

class Fuser {
 public:
  Fuser(Function& function, const Module& module, const PassContext& context)
      : function_(function),
        consumption_(function, &module),
        context_(context),
        policy_{.keep_contractions = context.flag("keep-contractions")} {}

  bool run() {
    function_.body = fuse(function_.body, policy_);
    if (!context_.remarks) return changed_;
    // Explaining tries again what was refused; what the attempts did does not count.
    const ValueTable saved = function_.values;
    const bool changed = changed_;
    sink_ = {};
    explain(*function_.body, policy_);
    function_.values = saved;
    return changed;
  }

 private:
  BodyPtr fuse(const BodyPtr& old, FusePolicy policy) {
    const bool worth_it = std::ranges::any_of(old->stms, [](const Stm& stm) {
      bool nested = false;
      for_each_body(stm.op, [&](const BodyPtr&) { nested = true; });
      return nested;
    });
    if (!worth_it) return old;
    const bool changed_before = std::exchange(changed_, false);
    std::vector<Stm> stms;
    for (const Stm& stm : old->stms) {
      std::vector<Stm> after;
      stms.push_back(fuse_inside(stm, policy, &after));
      std::ranges::move(after, std::back_inserter(stms));
    }
    for (int round = 0; round < kMaxRounds; ++round) {
      changed_ = lift_views(stms, old->results, function_.values, consumption_) || changed_;
      for (const ScatterFusion& split : split_rows(stms, old->results, function_.values, consumption_)) {
        changed_ = true;
        applied(split.at, "rows",
                fmt::format("the rows of '{}' are made where they are read, of numbers that are kept", split.name));
      }
      changed_ = stream_elements(stms, function_.values, consumption_) || changed_;
      for (const ScatterFusion& fusion : compute_where_read(stms, old->results, function_.values, consumption_)) {
        changed_ = true;
        applied(fusion.at, "vertical", fmt::format("'{}' is computed where its elements are read", fusion.name));
      }
      // Into uses first: what is beside another has more users.
      bool fused = fuse_vertically(stms, old->results, policy);
      fused = fuse_scatters(stms, old->results) || fused;
      fused = fuse_pairs(stms, old->results, policy, &Fuser::fuse_horizontally_from) || fused;
      if (!fused) break;
      changed_ = true;
    }
    const bool changed_here = changed_;
    changed_ = changed_before || changed_here;
    return changed_here ? make_body(std::move(stms), old->results) : old;
  }

  // Chains are fused in sections, these with each other, and so on: a statement is moved a number of times that grows
  // with the logarithm of the chain's length.
  bool fuse_vertically(std::vector<Stm>& stms, const std::vector<Operand>& results, FusePolicy policy) {
    const Sections outer = std::exchange(sections_, {.most = kSection});
    bool fused = false;
    do {
      sections_.postponed = false;
      fused = fuse_pairs(stms, results, policy, &Fuser::fuse_vertically_into) || fused;
      sections_.most *= kSectionGrowth;
    } while (sections_.postponed);
    sections_ = outer;
    return fused;
  }

  bool fuse_pairs(std::vector<Stm>& stms, const std::vector<Operand>& results, FusePolicy policy,
                  bool (Fuser::*with)(FuseScope&, std::size_t)) {
    FuseScope scope(std::move(stms), results, function_.values, consumption_, policy);
    bool fused = false;
    for (std::size_t k = 0; k < scope.stms().size(); ++k) fused = (this->*with)(scope, k) || fused;
    stms = scope.take();
    return fused;
  }

  bool fuse_scatters(std::vector<Stm>& stms, const std::vector<Operand>& results) {
    bool fused = false;
    for (const ScatterFusion& fusion : fuse_into_scatters(stms, results, function_.values, consumption_)) {
      if (fusion.why) continue;
      fused = true;
      applied(fusion.at, "scatter", fmt::format("the map that makes '{}' is fused into its use", fusion.name));
    }
    for (const ScatterFusion& fusion : fuse_scatter_pairs(stms, function_.values, consumption_)) {
      fused = true;
      applied(fusion.at, "horizontal", fmt::format("'{}' is written together with another array", fusion.name));
    }
    return fused;
  }

  // A statement with its lambdas fused, and merged with the reduction it reduces. A loop may become a reduction if
  // it is large enough for what comes `after` it then.
  Stm fuse_inside(Stm stm, FusePolicy policy, std::vector<Stm>* after = nullptr) {
    FusePolicy inside = policy;
    if (std::holds_alternative<Screma>(stm.op) || std::holds_alternative<Scatter>(stm.op)) inside.host = false;
    stm.op = map_bodies(stm.op, [&](const BodyPtr& body) { return fuse(body, inside); });
    if (std::optional<LoopReduction> made = after ? accumulation(stm, policy) : std::nullopt) {
      applied(made->reduction, "loop",
              made->after.empty() ? "a loop that only accumulates is a reduction"
                                  : "a loop that only accumulates is a reduction, before which its start is put");
      stm = std::move(made->reduction);
      *after = std::move(made->after);
      changed_ = true;
    }
    while (std::optional<Stm> merged = merge_nested_reduction(stm, function_.values)) {
      applied(*merged, "nested", "a reduction of reductions with one operator is one reduction over both widths");
      stm = fuse_inside(std::move(*merged), policy);
      changed_ = true;
    }
    return stm;
  }

  std::optional<LoopReduction> accumulation(const Stm& stm, FusePolicy policy) {
    const Loop* loop = get_if<Loop>(stm);
    if (loop == nullptr || (policy.host && holds_screma(*loop->body))) return std::nullopt;
    const bool sequential =
        has_attribute(stm.attributes, attribute::sequential) || has_attribute(stm.attributes, attribute::unroll);
    // On the host no map is around it: it is no contraction, and its order is what the program says.
    return sequential ? std::nullopt : loop_as_reduction(stm, !policy.host, function_.values);
  }

  bool fuse_vertically_into(FuseScope& scope, std::size_t consumer) {
    bool any = false;
    for (bool again = true; again;) {
      again = false;
      if (!scope.alive(consumer)) break;
      for (const std::size_t producer : scope.producers(consumer)) {
        std::vector<std::size_t> views;
        std::optional<Stm> fused = try_vertical(scope, producer, consumer, views, nullptr);
        if (!fused) continue;
        applied(*fused, "vertical",
                fmt::format("the map that makes '{}' is fused into its use", shared_name(scope, producer, consumer)));
        scope.merge(producer, consumer, std::move(*fused), views);
        any = again = true;
        break;
      }
    }
    return any;
  }

  // The array that goes from one to the other.
  const std::string& shared_name(FuseScope& scope, std::size_t producer, std::size_t consumer) const {
    const std::unordered_set<Value> streamed = scope.streamed(consumer);
    for (const Value v : scope.stms()[producer].pattern) {
      if (streamed.contains(v)) return function_.values.name(v);
    }
    return function_.values.name(scope.stms()[producer].pattern.front());
  }

  // The fused statement, or nullopt and the reason in `why`. What a refused attempt did to types is undone.
  std::optional<Stm> try_vertical(FuseScope& scope, std::size_t producer, std::size_t consumer,
                                  std::vector<std::size_t>& views, NotFused* why) {
    if (why == nullptr && are_long(scope.stms()[producer].op, scope.stms()[consumer].op)) {
      sections_.postponed = true;
      return std::nullopt;
    }
    auto decision = scope.vertical(producer, consumer);
    const auto refuse = [&](NotFused reason) {
      if (why != nullptr) *why = std::move(reason);
      return std::nullopt;
    };
    if (NotFused* reason = std::get_if<NotFused>(&decision)) return refuse(std::move(*reason));
    const auto& [from, links, kept, between] = std::get<FuseScope::Vertical>(decision);
    views = between;
    const Stm& into = scope.stms()[consumer];
    const Screma& p = std::get<Screma>(from.op);
    const Screma& c = std::get<Screma>(into.op);
    const bool nests = holds_screma(*p.map.body);
    if (!nests) return fuse_inside(apl::fuse_vertically(from, into, links, kept, function_.values), scope.policy());

    const bool heavy = holds_heavy_work(*p.map.body);
    const bool after = is_element_code(*c.map.body, function_.values);
    if (policy_.keep_contractions && heavy && parallel_depth(p) >= 2 && c.reduces.empty() && !after) {
      return refuse({"keeps-contraction",
                     "the producer is a map nest around a reduction, which is tiled if it stands alone or with scalar "
                     "code that cannot fail",
                     "fuse{keep-contractions=false} fuses all the same"});
    }
    const std::vector<std::pair<Value, Type>> types = types_in({&from, &into});
    const bool changed_before = changed_;
    // Remarks of the attempt are given if it is kept.
    std::vector<Remark> inside;
    const RemarkSink sink = std::exchange(sink_, [&](const Remark& remark) { inside.push_back(remark); });
    Stm fused = fuse_inside(apl::fuse_vertically(from, into, links, kept, function_.values), scope.policy());
    sink_ = sink;
    const Screma& result = std::get<Screma>(fused.op);
    // Inside a lambda a reduction is one thread's work already. Else nothing that ran in parallel may become serial:
    // element-wise maps may disappear into the consumer's own loops, reductions only into the reduction they feed. A
    // reduction of rows that is done column by column makes the elements of its columns in parallel.
    const bool serial_anyway = !scope.policy().host && !c.reduces.empty();
    const bool absorbed = count_scremas(*result.map.body) <= count_scremas(*c.map.body) || !parallel_inside(p);
    const std::size_t depth = heavy ? std::max(parallel_depth(p), parallel_depth(c)) : parallel_depth(c);
    const bool keeps_depth = parallel_depth(result) >= depth && (absorbed || (heavy && c.reduces.empty()));
    if (serial_anyway || keeps_depth || reduces_by_columns(result, function_.values)) {
      if (sink_) std::ranges::for_each(inside, sink_);
      return fused;
    }
    for (const auto& [value, type] : types) function_.values.set_type(value, type);
    changed_ = changed_before;
    return refuse(
        {"would-lose-parallelism", "the rows of the producer are computed in parallel, and would not be", {}});
  }

  // Whether both together have more statements than a section.
  bool are_long(const Op& producer, const Op& consumer) const {
    std::size_t count = 0;
    return count_statements(producer, sections_.most, count) || count_statements(consumer, sections_.most, count);
  }

  // Of all that the statements bind.
  std::vector<std::pair<Value, Type>> types_in(std::initializer_list<const Stm*> stms) const {
    std::vector<std::pair<Value, Type>> types;
    const auto note = [&](Value v) { types.emplace_back(v, function_.type(v)); };
    const auto note_bound = [&](const Stm& stm) {
      for (const Value v : stm.pattern) note(v);
      for_each_binder(stm.op, note);
    };
    for (const Stm* stm : stms) {
      note_bound(*stm);
      for_each_body(stm->op, [&](const BodyPtr& body) { for_each_stm(*body, note_bound); });
    }
    return types;
  }

  bool fuse_horizontally_from(FuseScope& scope, std::size_t first) {
    if (!scope.alive(first)) return false;
    const std::vector<std::size_t> joined = scope.siblings(first);
    if (joined.size() < 2) return false;
    std::vector<Stm> parts;
    for (const std::size_t k : joined) {
      parts.push_back(scope.stms()[k]);
      if (k == first) continue;
      applied(parts.back(), "horizontal",
              fmt::format("'{}' and '{}' share an input and are computed together",
                          function_.values.name(parts.front().pattern.front()),
                          function_.values.name(parts.back().pattern.front())));
    }
    scope.merge_siblings(joined, apl::fuse_horizontally(parts, function_.values));
    return true;
  }

  // Remarks about what was not done, once everything that could be done is.
  void explain(const Body& body, FusePolicy policy) {
    std::vector<Stm> tried = body.stms;
    for (const ScatterFusion& fusion : fuse_into_scatters(tried, body.results, function_.values, consumption_))
      if (fusion.why) missed(fusion.at, *fusion.why);
    std::vector<ViewInTheWay> views;
    lift_views(tried, body.results, function_.values, consumption_, &views);
    for (const ViewInTheWay& at : views)
      missed(at.view,
             {"view", fmt::format("the view of '{}' is not lifted over what makes it: {}", at.name, at.why), {}});
    FuseScope scope(body.stms, body.results, function_.values, consumption_, policy);
    for (std::size_t k = 0; k < body.stms.size(); ++k) {
      const Stm& stm = body.stms[k];
      for (const std::size_t producer : scope.producers(k)) {
        NotFused why;
        std::vector<std::size_t> views;
        if (!try_vertical(scope, producer, k, views, &why)) missed(stm, why);
      }
      FusePolicy inside = policy;
      if (const Screma* screma = get_if<Screma>(stm)) {
        inside.host = false;
        explain_inner_use(scope, stm, *screma);
      }
      for_each_body(stm.op, [&](const BodyPtr& inner) { explain(*inner, inside); });
    }
  }

  // A producer out here whose rows an inner Screma streams.
  void explain_inner_use(FuseScope& scope, const Stm& stm, const Screma& screma) {
    std::vector<Value> reported;
    for_each_stm(*screma.map.body, [&](const Stm& inner) {
      const Screma* consumer = get_if<Screma>(inner);
      if (consumer == nullptr) return;
      for (const Value input : consumer->inputs) {
        const std::optional<std::size_t> at = scope.definition(input);
        const bool made_here = at && std::holds_alternative<Screma>(scope.stms()[*at].op);
        if (!made_here || std::ranges::find(reported, input) != reported.end()) continue;
        reported.push_back(input);
        missed(stm, {"would-duplicate-work",
                     fmt::format("'{}' is used for every index of an outer map, and would be computed for each",
                                 function_.values.name(input)),
                     {}});
      }
    });
  }

  void applied(const Stm& stm, std::string code, std::string message) const {
    if (!sink_) return;
    sink_({.kind = RemarkKind::applied,
           .pass = "fuse",
           .code = std::move(code),
           .location = stm.location,
           .function = function_.name,
           .message = std::move(message)});
  }

  void missed(const Stm& stm, const NotFused& why) const {
    context_.remark({.kind = RemarkKind::missed,
                     .pass = "fuse",
                     .code = why.code,
                     .location = stm.location,
                     .function = function_.name,
                     .message = why.message,
                     .suggestion = why.suggestion});
  }

  Function& function_;
  Consumption consumption_;
  const PassContext& context_;
  RemarkSink sink_ = context_.remarks;
  FusePolicy policy_;
  bool changed_ = false;
  // Statements that a fused one may have now, and whether any would have had more.
  struct Sections {
    std::size_t most = kSection;
    bool postponed = false;
  };
  Sections sections_;
};

Result<Change> fuse_module(Module& module, PassContext& context) {
  return change_functions(module, [&](Function& function) { return Fuser(function, module, context).run(); });
}

}  // namespace

PassInfo fuse_pass() {
  return {.name = "fuse",
          .summary = "fuse maps and reductions that pass arrays to each other",
          .takes = stage_bit(Stage::soac),
          .options = {{"keep-contractions", true, "fuse no more with map nests around a reduction than can be tiled"}},
          .remark_codes = {{"vertical", "a producer was fused into its consumer"},
                           {"rows", "rows were made where they are read, of numbers that are kept"},
                           {"horizontal", "two statements that share an input were fused"},
                           {"scatter", "a map was fused into the scatter or histogram that uses it"},
                           {"nested", "a reduction of reductions became one reduction"},
                           {"loop", "a loop that only accumulates became a reduction"},
                           {"view", "a transpose or slice between producer and use"},
                           {"unlike", "a scan or mapped rows beside an operator on arrays or a nest"},
                           {"producer-used-elsewhere", "others need the array, too"},
                           {"width-mismatch", "producer and consumer run over different widths"},
                           {"needed-between", "a third statement needs the producer and is needed by the consumer"},
                           {"consumed-between", "the array is overwritten in place"},
                           {"would-duplicate-work", "an element would be computed more than once"},
                           {"would-lose-parallelism", "what runs in parallel would run in one thread"},
                           {"keeps-contraction", "the producer is a contraction, which is tiled if left alone"}},
          .run = fuse_module};
}

}  // namespace apl
