// extract-kernels: map nests become kernels; from here on what runs in parallel is said, not implied.
//
//   let {C : [m][n]f32} =
//     screma(i < m, {A}, \ {row : [q]f32} ->
//       let {cs : [n]f32} = screma(j < n, {Bt}, \ {col : [q]f32} ->
//         let {c : f32} = screma(k < q, {row, col}, \ {a, b} -> {mul(a, b)}, reduce add 0.0f32)  in {c})
//       in {cs})
// =>
//   let {C : [m][n]f32} =
//     segmap(thread) (i_m < m, i_n < n) {
//       let {row : [q]f32} = A[i_m]
//       let {col : [q]f32} = Bt[i_n]
//       let {c : f32} = screma(k < q, {row, col}, ..., reduce add 0.0f32)
//       return {returns c}
//     }
//
// Phases: each statement of a function's body, and of the loops and branches in it, that is a map is taken with all
// maps nested perfectly in it (extract_kernels/nest): inputs become index statements, views and cheap scalar code
// between the levels sink to the innermost. What is inside stays sequential in its thread: reductions by design, maps
// with a remark. Nests that are not perfect are taken apart first (extract_kernels/distribute); with `few-threads` only
// those around contractions, where these have enough to do. A reduction of scalars is folded in chunks
// (extract_kernels/reductions), others in one thread, with a remark; histograms are folded block by block
// (extract_kernels/histograms); replicate, iota, copy and manifest become kernels that write one element an index.
// Scalar code and views stay on the host. Space indices are called after the sizes they run over (i_m < m): tile
// parameters get their names from there.
//
// What is here decides what becomes of each statement; where that depends on sizes, the versions are made and put
// behind a choice in extract_kernels/versions.cpp, and what is said of all of it is in extract_kernels/remarks.cpp.
//
// Refuses nothing, since everything can run in one thread; why a nest stops early is a remark. Deliberately not here:
// reductions of arrays in parallel, unless their operator is a map over the rows.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "ir/attributes.h"
#include "ir/print.h"
#include "ir/walk.h"
#include "passes/analysis/contraction_facts.h"
#include "passes/extract_kernels/device_scalars.h"
#include "passes/extract_kernels/extractor.h"
#include "passes/extract_kernels/histograms.h"
#include "passes/extract_kernels/nest.h"
#include "passes/extract_kernels/reductions.h"
#include "passes/extract_kernels/scans.h"
#include "passes/extract_kernels/sparse_sums.h"
#include "passes/extract_kernels/split_operators.h"
#include "passes/extract_kernels/view_copies.h"
#include "passes/pass.h"

namespace apl {

namespace {

// Enough to keep a GPU's memory busy; enough to share out evenly among the cores of a CPU.
constexpr std::int64_t kChunksOfManyThreads = 16384;
constexpr std::int64_t kChunksOfFewThreads = 64;

}  // namespace

void Extractor::run() {
  for (const ViewCopy& copy : make_view_copies(function_)) remarks_.explain(copy);
  replicated_ = find_replicated(*function_.body, function_.values);
  sparse_arrays_ = keep_sparse_sums(function_);
  if (!context_.flag("few-threads")) group_attentions();
  function_.body = body(function_.body);
}

BodyPtr Extractor::body(BodyPtr old) {
  bool changed = false;
  std::vector<Stm> stms;
  std::set<std::size_t> done;
  std::map<std::size_t, std::vector<Stm>> later;  // what stands for a scatter
  std::optional<BodyUses> uses;
  for (std::size_t k = 0; k < old->stms.size(); ++k) {
    if (const auto kernel = later.find(k); kernel != later.end())
      std::ranges::move(kernel->second, std::back_inserter(stms));
    if (done.contains(k)) continue;
    const Screma* screma = get_if<Screma>(old->stms[k]);
    const bool scans = screma != nullptr && screma->scans();
    if (scans && !uses) uses.emplace(*old, function_.values);
    if (BodyPtr apart = scans ? filters_apart(*old, *uses, k, done) : nullptr) {
      changed = true;
      const std::size_t more = apart->stms.size() - old->stms.size();
      std::set<std::size_t> moved_done;
      for (const std::size_t one : done) moved_done.insert(one > k ? one + more : one);
      std::map<std::size_t, std::vector<Stm>> moved_later;
      for (auto& [at, one] : later) moved_later.emplace(at > k ? at + more : at, std::move(one));
      done = std::move(moved_done);
      later = std::move(moved_later);
      old = std::move(apart);
      uses.emplace(*old, function_.values);
    }
    const Stm& source = old->stms[k];
    std::vector<Stm> kernel;
    if (const std::optional<Filter> made = scans ? filter(*old, *uses, k, done, kernel) : std::nullopt) {
      changed = true;
      done.insert(made->members.begin(), made->members.end());
      std::ranges::move(kernel, std::back_inserter(made->count ? stms : later[made->scatter]));
      continue;
    }
    std::vector<Stm> apart{source};
    if (!asks_for_sequential(source)) {
      if (std::optional<std::vector<Stm>> taken = take_rows_apart(source, replicated_, function_.values)) {
        changed = true;
        apart = std::move(*taken);
      }
    }
    for (const Stm& stm : apart) {
      for (const Stm& single :
           asks_for_sequential(stm) ? std::vector<Stm>{stm} : split_operators(stm, function_.values))
        extract(single, stms, changed);
    }
  }
  return changed ? with_device_scalars(make_body(std::move(stms), old->results)) : old;
}

BodyPtr Extractor::with_device_scalars(const BodyPtr& body) {
  if (context_.flag("few-threads")) return body;
  const DeviceScalars scalars = keep_scalars_on_device(body, function_.values);
  if (remarks_.wanted())
    for (const Stm& stm : scalars.gone)
      remarks_.add(RemarkKind::applied, "device-scalar", stm,
                   fmt::format("'{}' stays on the device, since only kernels read it", remarks_.name_of(stm)));
  return scalars.body ? scalars.body : body;
}

BodyPtr Extractor::filters_apart(const Body& body, const BodyUses& uses, std::size_t first,
                                 const std::set<std::size_t>& taken) {
  if (context_.flag("few-threads") || asks_for_sequential(body.stms[first])) return nullptr;
  return with_filters_apart(body, uses, first, taken, function_.values);
}

std::optional<Filter> Extractor::filter(const Body& body, const BodyUses& uses, std::size_t first,
                                        const std::set<std::size_t>& taken, std::vector<Stm>& stms) {
  if (asks_for_sequential(body.stms[first])) return std::nullopt;
  const bool few = context_.flag("few-threads");
  std::optional<Filter> found = find_filter(body, uses, first, taken, function_.values);
  if (!found || (few && !found->count)) return std::nullopt;
  const Stm& scatter = body.stms[found->scatter];
  std::optional<std::vector<Stm>> made;
  if (found->refusal.empty()) {
    const int chunked = chunked_;
    made = few ? make_chunked_filter(body, *found, next_chunks(), function_.values)
               : make_filter(body, *found, next_chunks(), function_.values);
    if (!made)
      chunked_ = chunked, found->refusal = few ? "elements do not go right behind those before them"
                                               : "its threads' values are too large, or it can fail";
  }
  if (remarks_.wanted())
    remarks_.add(
        made ? RemarkKind::applied : RemarkKind::missed, made ? "filter" : "not-a-filter", scatter,
        made ? fmt::format("the scan and the scatter that make '{}' are one kernel{}", remarks_.name_of(scatter),
                           few ? ", and another moves together what the threads kept" : "")
             : fmt::format("the scan and the scatter that make '{}' are kernels of their own: {}",
                           remarks_.name_of(scatter), found->refusal));
  if (!made) return std::nullopt;
  std::ranges::move(*made, std::back_inserter(stms));
  return found;
}

void Extractor::extract(const Stm& stm, std::vector<Stm>& stms, bool& changed) {
  note_view(stm, views_);
  const Screma* screma = get_if<Screma>(stm);
  if (std::optional<std::vector<Stm>> chunked = reduction(stm)) {
    changed = true;
    std::ranges::move(*chunked, std::back_inserter(stms));
  } else if (screma != nullptr && screma->reduces.empty() && !asks_for_sequential(stm)) {
    changed = true;
    // Loops and branches that came out of a map leave maps that return views.
    const std::optional<std::vector<Stm>> copied = with_copied_rows(stm, function_.values);
    if (!copied) return map_nest(stm, stms);
    remarks_.explain({ViewCopy::Why::row, stm});
    for (const Stm& made : *copied) extract(made, stms, changed);
  } else if (std::holds_alternative<Scatter>(stm.op)) {
    changed = true;
    scatter(stm, stms);
  } else {
    stms.push_back(statement(stm, changed));
  }
}

std::optional<std::vector<Stm>> Extractor::reduction(const Stm& stm) {
  const Screma* screma = get_if<Screma>(stm);
  if (screma == nullptr || screma->reduces.empty() || asks_for_sequential(stm)) return std::nullopt;
  const bool scans = screma->scans();
  if (scans ? !scans_scalars(*screma, function_.values) : !reduces_scalars(*screma, function_.values))
    return std::nullopt;
  const Chunks chunks = next_chunks();
  auto stms = scans ? make_chunked_scan(stm, {}, chunks, function_.values)
                    : make_chunked_reduction(stm, {}, chunks, function_.values);
  if (remarks_.wanted()) {
    RemarkFacts facts{{"width", print(product(screma->widths), function_)}, {"chunks", chunks.parameter}};
    if (!chunks.team.empty()) facts.insert(facts.end(), {{"team", chunks.team}, {"blocks", chunks.blocks}});
    remarks_.add(RemarkKind::applied, scans ? "scan" : "reduction", stm,
                 fmt::format("the {} that makes '{}' is {} {}", scans ? "scan" : "reduction", remarks_.name_of(stm),
                             scans ? "done" : "folded", chunks.team.empty() ? "in chunks" : "by many threads"),
                 std::move(facts));
  }
  return stms;
}

std::string Extractor::numbered(int count, std::string_view name) const {
  const std::string entry = function_.entry ? function_.entry->name : function_.name;
  return count == 1 ? fmt::format("{}.{}", entry, name) : fmt::format("{}.{}_{}", entry, name, count);
}

Chunks Extractor::next_chunks() {
  const bool few = context_.flag("few-threads");
  Chunks chunks{.parameter = numbered(++chunked_, "chunks"),
                .most = few ? kChunksOfFewThreads : kChunksOfManyThreads,
                .interleaved = !few};
  if (few) chunks.least = numbered(chunked_, "chunk_from");
  if (!few) chunks.team = numbered(chunked_, "team");
  if (!few) chunks.blocks = numbered(chunked_, "blocks");
  return chunks;
}

Chunks Extractor::chunks_for(const Stm& stm, const Segments& segments) {
  Chunks chunks = next_chunks();
  if (std::get<Screma>(stm.op).scans()) return chunks;
  chunks.by_columns = segments_lie_side_by_side(stm, segments, views_, function_.values);
  if (chunks.by_columns && remarks_.wanted())
    remarks_.add(
        RemarkKind::applied, "by-columns", stm,
        fmt::format("neighbouring threads fold neighbouring elements of '{}': those lie side by side in what is "
                    "read",
                    remarks_.name_of(stm)),
        {{"chunks", chunks.parameter}});
  return chunks;
}

Stm Extractor::statement(const Stm& stm, bool& changed) {
  if (const Screma* screma = get_if<Screma>(stm)) {
    changed = true;
    return serial(stm, *screma);
  }
  if (std::optional<Stm> map = make_producer_map(stm, function_.values)) {
    changed = true;
    return make_kernel(std::move(*map));
  }
  if (std::holds_alternative<Loop>(stm.op) || std::holds_alternative<If>(stm.op)) {
    Stm result = stm;
    result.op = map_bodies(stm.op, [&](const BodyPtr& inner) {
      BodyPtr rewritten = body(inner);
      changed = changed || rewritten != inner;
      return rewritten;
    });
    return result;
  }
  return stm;
}

void Extractor::guarded_nest(const Stm& stm, const Unchecked& unchecked, std::vector<Stm>& stms) {
  if (remarks_.wanted())
    remarks_.add(
        RemarkKind::applied, "checks-outside", stm,
        fmt::format("what '{}' is made of is checked before, for all indices, so that {}", remarks_.name_of(stm),
                    unchecked.contracts ? "it can be tiled" : "its rows are copied in parallel"));
  bool changed = false;
  for (const Stm& before : unchecked.before) extract(before, stms, changed);
  If choice{unchecked.condition, {}, {}};
  std::vector<Stm> free;
  extract(unchecked.map, free, changed);
  choice.then_body = make_body(std::move(free), {unchecked.map.pattern.begin(), unchecked.map.pattern.end()});
  Stm slow = make_kernel(flatten(stm, find_nest(stm, function_.values), function_.values));
  slow.attributes.push_back(make_attribute(attribute::untiled));
  for (Value& v : slow.pattern) v = function_.values.add(function_.values.type(v), function_.values.name(v));
  std::vector<Operand> results(slow.pattern.begin(), slow.pattern.end());
  choice.else_body = make_body({std::move(slow)}, std::move(results));
  stms.push_back({.pattern = stm.pattern, .op = std::move(choice), .location = stm.location});
}

void Extractor::map_nest(const Stm& stm, std::vector<Stm>& stms) {
  if (sparse_rows_apart(stm, stms)) return;
  if (const auto unchecked = without_checks(stm, function_.values)) {
    guarded_nest(stm, *unchecked, stms);
    return;
  }
  const Nest nest = find_nest(stm, function_.values);
  Stm flat = flatten(stm, nest, function_.values);
  if (context_.flag("few-threads")) {
    if (around_contractions(stm, flat, stms)) return;
  } else if (streamed(stm, flat, stms) || in_pairs(stm, flat, stms) || in_rows(stm, flat, stms)) {
    return;
  } else if (std::optional<std::vector<Stm>> apart = taken_apart(stm, flat)) {
    std::ranges::move(*apart, std::back_inserter(stms));
    return;
  }
  if (remarks_.wanted()) remarks_.explain(stm, nest);
  stms.push_back(make_kernel(std::move(flat)));
}

bool Extractor::sparse_rows_apart(const Stm& stm, std::vector<Stm>& stms) {
  if (sparse_arrays_.empty()) return false;
  const Stm flat = flatten(stm, find_nest(stm, function_.values), function_.values);
  if (!makes_sparse_rows(flat, sparse_arrays_, function_.values)) return false;
  std::optional<std::vector<Stm>> apart = taken_apart(stm, flat);
  if (!apart) return false;
  std::ranges::move(*apart, std::back_inserter(stms));
  return true;
}

std::optional<std::vector<Stm>> Extractor::taken_apart(const Stm& stm, const Stm& flat) {
  const auto chunks = [this](const Stm& inner, const Segments& segments) { return chunks_for(inner, segments); };
  const bool overwritten = std::ranges::any_of(stm.pattern, [this](Value v) { return consumption_.consumed(v); });
  const auto apart = distribute(flat, replicated_, chunks, overwritten, function_.values);
  if (!apart) return std::nullopt;
  if (remarks_.wanted()) {
    remarks_.explain(stm, *apart);
    for (const Refusal& refusal : apart->not_tiled) remarks_.explain_not_tiled(refusal);
  }
  std::vector<Stm> stms;
  bool changed = false;
  for (std::size_t k = 0; k < apart->stms.size(); ++k) {
    if (apart->work.contains(k)) {
      make_nest(apart->stms[k], stms);
    } else {
      extract(apart->stms[k], stms, changed);
    }
  }
  return stms;
}

void Extractor::make_nest(const Stm& stm, std::vector<Stm>& stms) {
  const Nest nest = find_nest(stm, function_.values);
  if (remarks_.wanted()) remarks_.explain(stm, nest);
  stms.push_back(make_kernel(flatten(stm, nest, function_.values)));
}

void Extractor::scatter(const Stm& stm, std::vector<Stm>& stms) {
  const Scatter& op = std::get<Scatter>(stm.op);
  const std::optional<Stm> kernel =
      asks_for_sequential(stm) ? std::nullopt : make_scatter_kernel(stm, function_.values);
  const std::optional<std::string> why = op.op && kernel ? why_one_level(*kernel, function_.values) : std::nullopt;
  if (!kernel) {
    remarks_.explain_serial(stm, op);
    stms.push_back(make_serial_kernel(stm, function_.values));
  } else if (op.op && !why) {
    histogram(stm, *kernel, stms);
  } else {
    if (remarks_.wanted())
      remarks_.add(RemarkKind::applied, "scatter", stm,
                   op.op ? fmt::format("the histogram into '{}' is a kernel: {}", remarks_.name_of(stm), *why)
                         : fmt::format("the scatter into '{}' is a kernel", remarks_.name_of(stm)),
                   {{"width", print(product(op.widths), function_)}});
    stms.push_back(*kernel);
  }
}

void Extractor::histogram(const Stm& stm, const Stm& kernel, std::vector<Stm>& stms) {
  const bool few = context_.flag("few-threads");
  const auto chunks = [this] { return next_chunks(); };
  const std::string prefix = numbered(++histograms_, "hist");
  if (remarks_.wanted())
    remarks_.add(RemarkKind::applied, "histogram", stm,
                 fmt::format("the histogram into '{}' is folded {}, where that pays, else {}", remarks_.name_of(stm),
                             few ? "by each thread for itself" : "by each block for itself, in shared memory",
                             few ? "by one thread" : "by all threads in atomic steps"),
                 {{"width", print(product(std::get<Scatter>(stm.op).widths), function_)}, {"numbers", prefix + ".*"}});
  if (few) {
    std::ranges::move(make_chunked_histogram(kernel, prefix, chunks, function_.values), std::back_inserter(stms));
    return;
  }
  if (std::optional<std::pair<Stm, Stm>> apart = map_before_scatter(stm, function_.values)) {
    map_nest(apart->first, stms);
    const Stm rows = *make_scatter_kernel(apart->second, function_.values);
    std::ranges::move(make_block_histogram(rows, prefix, chunks, function_.values), std::back_inserter(stms));
    return;
  }
  std::ranges::move(make_block_histogram(kernel, prefix, chunks, function_.values), std::back_inserter(stms));
}

Stm Extractor::serial(const Stm& stm, const Screma& screma) {
  const bool asked = asks_for_sequential(stm);
  if (remarks_.wanted())
    remarks_.add(RemarkKind::analysis, "sequentialised", stm,
                 asked ? fmt::format("'{}' runs in one thread, as its attribute asks", remarks_.name_of(stm))
                       : fmt::format("the {} that makes '{}' runs in one thread", screma.scans() ? "scan" : "reduction",
                                     remarks_.name_of(stm)),
                 {{"width", print(product(screma.widths), function_)}});
  return make_serial_kernel(stm, function_.values);
}

namespace {

Result<Change> extract(Module& module, PassContext& context) {
  for (FunctionPtr& pointer : module.functions) {
    Function function = *pointer;
    Extractor(function, context).run();
    pointer = std::make_shared<const Function>(std::move(function));
  }
  module.stage = Stage::kernel;
  return Change::yes;
}

}  // namespace

PassInfo extract_kernels_pass() {
  return {
      .name = "extract-kernels",
      .summary = "turn map nests into kernels of one thread an index",
      .takes = stage_bit(Stage::soac),
      .gives = [](Stage) { return Stage::kernel; },
      .options = {{.name = "few-threads",
                   .default_value = false,
                   .help = "for a CPU: an outer map that does other work, too, has one thread an index; a "
                           "reduction has few chunks, of neighbouring elements"}},
      .remark_codes = {{"kernel", "a map nest became a kernel"},
                       {"reduction", "a reduction is folded in chunks, in parallel"},
                       {"scatter", "a scatter or histogram became a kernel"},
                       {"histogram", "a histogram is folded by blocks or threads for themselves, then together"},
                       {"scan", "a scan runs in chunks, in parallel"},
                       {"filter", "a scan and the scatter whose positions it says are one kernel"},
                       {"not-a-filter", "a scan and the scatter whose positions it says are kernels of their own"},
                       {"device-scalar",
                        "a scalar that a kernel makes is read by kernels alone, and does not come to the host"},
                       {"rows", "what is done with each row is one kernel, whose teams of threads hold the rows"},
                       {"pairs", "a reduction of what contractions give for all pairs goes through tiles"},
                       {"streamed", "an attention is one kernel that holds no scores in memory, where that pays"},
                       {"not-streamed", "what looks like an attention has its scores in memory"},
                       {"segmented", "reductions or scans inside maps run in chunks, all of them in parallel"},
                       {"by-columns", "a reduction of columns has them side by side in its threads"},
                       {"not-tiled", "a reduction in a map is no contraction that can be tiled, and runs in chunks"},
                       {"checks-outside", "checks that kept a contraction from being tiled are made before it"},
                       {"view-copied",
                        "a view that has to be an array of its own is copied by all its elements' threads"},
                       {"distributed", "an imperfect nest of maps became several kernels"},
                       {"interchanged", "a loop, branch or scatter inside a map is outside now"},
                       {"sequentialised", "a map or reduction runs in one thread although it need not"},
                       {"imperfect-nest", "a nest of maps stops where there is other work beside the inner map"},
                       {"can-fail-between", "a nest stops at a statement that can fail"},
                       {"irregular", "a nest stops at a map whose width depends on an outer index"},
                       {"sequential", "a nest stops where an attribute asks for it"}},
      .run = extract,
      .needs_differentiate = true};
}

}  // namespace apl
