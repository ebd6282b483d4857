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
// Refuses nothing, since everything can run in one thread; why a nest stops early is a remark. Deliberately not here:
// reductions of arrays in parallel, unless their operator is a map over the rows.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "ir/attributes.h"
#include "ir/print.h"
#include "ir/sparse_soa.h"
#include "ir/walk.h"
#include "passes/analysis/contraction_facts.h"
#include "passes/extract_kernels/attention.h"
#include "passes/extract_kernels/checks.h"
#include "passes/extract_kernels/distribute.h"
#include "passes/extract_kernels/filters.h"
#include "passes/extract_kernels/histograms.h"
#include "passes/extract_kernels/interchange.h"
#include "passes/extract_kernels/nest.h"
#include "passes/extract_kernels/pair_arrays.h"
#include "passes/extract_kernels/pair_folds.h"
#include "passes/extract_kernels/reductions.h"
#include "passes/extract_kernels/rows.h"
#include "passes/extract_kernels/segment_order.h"
#include "passes/extract_kernels/sparse_sums.h"
#include "passes/pass.h"

namespace apl {

namespace {

// Enough to keep a GPU's memory busy; enough to share out evenly among the cores of a CPU.
constexpr std::int64_t kChunksOfManyThreads = 16384;
constexpr std::int64_t kChunksOfFewThreads = 64;
// Products of a contraction from which on a kernel of its own pays: what it leaves in memory costs more in smaller
// ones.
constexpr std::int64_t kLeastWorkOfContraction = 16 * 16 * 16;
// Elements of an array of pairs between a contraction and a fold of it, at most: beyond, caches are of no help.
constexpr std::int64_t kMostPairs = std::int64_t{1} << 24;

class Extractor {
 public:
  Extractor(Function& function, const PassContext& context) : function_(function), context_(context) {}

  void run() {
    replicated_ = find_replicated(*function_.body, function_.values);
    function_.body = keep_sparse_sums(function_);
    if (!context_.flag("few-threads")) group_attentions();
    function_.body = body(function_.body);
  }

 private:
  BodyPtr body(const BodyPtr& old) {
    bool changed = false;
    std::vector<Stm> stms;
    std::set<std::size_t> done;
    for (std::size_t k = 0; k < old->stms.size(); ++k) {
      const Stm& source = old->stms[k];
      if (done.contains(k)) continue;
      if (const std::optional<Filter> made = filter(*old, k, stms)) {
        changed = true;
        done.insert(made->members.begin(), made->members.end());
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
    return changed ? make_body(std::move(stms), old->results) : old;
  }

  // A scan that counts and the scatter of what it counted, as one kernel on GPUs, and without places in memory on CPUs.
  std::optional<Filter> filter(const Body& body, std::size_t first, std::vector<Stm>& stms) {
    if (asks_for_sequential(body.stms[first])) return std::nullopt;
    const bool few = context_.flag("few-threads");
    std::optional<Filter> found = find_filter(body, first, function_.values);
    if (!found) return std::nullopt;
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
    if (context_.remarks)
      remark(made ? RemarkKind::applied : RemarkKind::missed, made ? "filter" : "not-a-filter", scatter,
             made ? fmt::format("the scan and the scatter that make '{}' are one kernel{}", name_of(scatter),
                                few ? ", and another moves together what the threads kept" : "")
                  : fmt::format("the scan and the scatter that make '{}' are kernels of their own: {}",
                                name_of(scatter), found->refusal));
    if (!made) return std::nullopt;
    std::ranges::move(*made, std::back_inserter(stms));
    return found;
  }

  void extract(const Stm& stm, std::vector<Stm>& stms, bool& changed) {
    note_view(stm, views_);
    const Screma* screma = get_if<Screma>(stm);
    if (std::optional<std::vector<Stm>> chunked = reduction(stm)) {
      changed = true;
      std::ranges::move(*chunked, std::back_inserter(stms));
    } else if (screma != nullptr && screma->reduces.empty() && !asks_for_sequential(stm)) {
      changed = true;
      map_nest(stm, stms);
    } else if (std::holds_alternative<Scatter>(stm.op)) {
      changed = true;
      scatter(stm, stms);
    } else {
      stms.push_back(statement(stm, changed));
    }
  }

  // A reduction or scan at the top whose operators work on scalars.
  std::optional<std::vector<Stm>> reduction(const Stm& stm) {
    const Screma* screma = get_if<Screma>(stm);
    if (screma == nullptr || screma->reduces.empty() || asks_for_sequential(stm)) return std::nullopt;
    const bool scans = screma->scans();
    if (scans ? !scans_scalars(*screma, function_.values) : !reduces_scalars(*screma, function_.values))
      return std::nullopt;
    const Chunks chunks = next_chunks();
    auto stms = scans ? make_chunked_scan(stm, {}, chunks, function_.values)
                      : make_chunked_reduction(stm, {}, chunks, function_.values);
    if (context_.remarks) {
      RemarkFacts facts{{"width", print(product(screma->widths), function_)}, {"chunks", chunks.parameter}};
      if (!chunks.team.empty()) facts.insert(facts.end(), {{"team", chunks.team}, {"blocks", chunks.blocks}});
      remark(RemarkKind::applied, scans ? "scan" : "reduction", stm,
             fmt::format("the {} that makes '{}' is {} {}", scans ? "scan" : "reduction", name_of(stm),
                         scans ? "done" : "folded", chunks.team.empty() ? "in chunks" : "by many threads"),
             std::move(facts));
    }
    return stms;
  }

  // "mm.chunks", then "mm.chunks_2".
  std::string numbered(int count, std::string_view name) const {
    const std::string entry = function_.entry ? function_.entry->name : function_.name;
    return count == 1 ? fmt::format("{}.{}", entry, name) : fmt::format("{}.{}_{}", entry, name, count);
  }

  Chunks next_chunks() {
    const bool few = context_.flag("few-threads");
    Chunks chunks{.parameter = numbered(++chunked_, "chunks"),
                  .most = few ? kChunksOfFewThreads : kChunksOfManyThreads,
                  .interleaved = !few};
    if (few) chunks.least = numbered(chunked_, "chunk_from");
    if (!few) chunks.team = numbered(chunked_, "team");
    if (!few) chunks.blocks = numbered(chunked_, "blocks");
    return chunks;
  }

  // The same for segments: a reduction goes by columns if that reads neighbouring elements.
  Chunks chunks_for(const Stm& stm, const Segments& segments) {
    Chunks chunks = next_chunks();
    if (std::get<Screma>(stm.op).scans()) return chunks;
    chunks.by_columns = segments_lie_side_by_side(stm, segments, views_, function_.values);
    if (chunks.by_columns && context_.remarks)
      remark(RemarkKind::applied, "by-columns", stm,
             fmt::format("neighbouring threads fold neighbouring elements of '{}': those lie side by side in what is "
                         "read",
                         name_of(stm)),
             {{"chunks", chunks.parameter}});
    return chunks;
  }

  Stm statement(const Stm& stm, bool& changed) {
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

  static bool asks_for_sequential(const Stm& stm) {
    return has_attribute(stm.attributes, attribute::sequential) || has_attribute(stm.attributes, attribute::sparse_sum);
  }

  // The nest without checks where they all pass; else the nest as it is, which says what is wrong.
  void guarded_nest(const Stm& stm, const Unchecked& unchecked, std::vector<Stm>& stms) {
    if (context_.remarks)
      remark(RemarkKind::applied, "checks-outside", stm,
             fmt::format("what '{}' is made of is checked before, for all indices, so that it can be tiled",
                         name_of(stm)));
    bool changed = false;
    for (const Stm& before : unchecked.before) extract(before, stms, changed);
    If choice{unchecked.condition, {}, {}};
    std::vector<Stm> free;
    map_nest(unchecked.map, free);
    choice.then_body = make_body(std::move(free), {unchecked.map.pattern.begin(), unchecked.map.pattern.end()});
    Stm slow = make_kernel(flatten(stm, find_nest(stm, function_.values), function_.values));
    slow.attributes.push_back(make_attribute(attribute::untiled));
    for (Value& v : slow.pattern) v = function_.values.add(function_.values.type(v), function_.values.name(v));
    std::vector<Operand> results(slow.pattern.begin(), slow.pattern.end());
    choice.else_body = make_body({std::move(slow)}, std::move(results));
    stms.push_back({.pattern = stm.pattern, .op = std::move(choice), .location = stm.location});
  }

  void map_nest(const Stm& stm, std::vector<Stm>& stms) {
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
    if (context_.remarks) explain(stm, nest);
    stms.push_back(make_kernel(std::move(flat)));
  }

  // Attentions whose parts are several maps as one map each. With sparse operands they are sparsify's.
  void group_attentions() {
    streams_ = !has_sparse_operands();
    if (!streams_) return;
    std::vector<Refusal> refused;
    function_.body = group_attention(function_.body, replicated_, function_.values, refused);
    for (const Refusal& refusal : refused) explain_not_streamed(refusal);
  }

  bool has_sparse_operands() const {
    const auto requests = sparse_requests(function_);
    return requests && !requests->empty();
  }

  void explain_not_streamed(const Refusal& refusal) const {
    say({.kind = RemarkKind::missed,
         .pass = "extract-kernels",
         .code = "not-streamed",
         .location = refusal.location,
         .function = function_.name,
         .message = fmt::format("the scores of an attention are written to memory: {}", refusal.message),
         .facts = {{"reason", refusal.code}},
         .suggestion = refusal.suggestion});
  }

  // An attention in one kernel that holds no scores in memory, where its rows are short enough and queries many enough;
  // else the nest is taken apart.
  bool streamed(const Stm& stm, const Stm& flat, std::vector<Stm>& stms) {
    if (!streams_ || !may_be_attention(flat, function_.values)) return false;
    if (has_attribute(stm.attributes, attribute::no_rescaling)) return false;
    const auto match = match_attention(flat, replicated_, function_.values);
    if (!match || !std::holds_alternative<Attention>(*match)) return false;
    const auto& attention = std::get<Attention>(*match);
    const std::string prefix = numbered(++attentions_, "attention");
    auto made = stream_attention(flat, attention, views_, prefix, function_.values);
    if (const Refusal* refusal = std::get_if<Refusal>(&made)) {
      --attentions_;
      explain_not_streamed(*refusal);
      return false;
    }
    auto& streaming = std::get<StreamedAttention>(made);
    if (context_.remarks)
      remark(RemarkKind::applied, "streamed", stm,
             fmt::format("the attention that makes '{}' is one kernel, which holds no scores in memory, where its rows "
                         "are short and its queries many enough",
                         name_of(stm)),
             {{"queries", print(attention.widths.back(), function_)},
              {"keys", print(attention.keys, function_)},
              {"columns", print(attention.columns, function_)},
              {"maximum", attention.most ? "running; sums are rescaled when it grows" : "none"},
              {"numbers", prefix + ".*"}});
    Stm inner = flat;
    for (Value& v : inner.pattern) v = function_.values.add(function_.values.type(v), function_.values.name(v));
    std::optional<std::vector<Stm>> apart = taken_apart(stm, inner);
    if (!apart) apart = std::vector<Stm>{make_kernel(inner)};
    std::ranges::move(streaming.before, std::back_inserter(stms));
    Choose choose{Choose::By::first, prefix + ".variant", {}};
    for (StreamedAttention::Version& version : streaming.versions)
      choose.alternatives.push_back(
          {version.name, version.fits,
           make_body(std::move(version.kernel), {version.results.begin(), version.results.end()})});
    choose.alternatives.push_back(
        {"apart", Scalar::boolean(true), make_body(std::move(*apart), {inner.pattern.begin(), inner.pattern.end()})});
    stms.push_back({.pattern = stm.pattern, .op = std::move(choose), .location = stm.location});
    return true;
  }

  // A reduction whose elements several indices use goes through tiles of them, where there are indices enough; else it
  // is done in chunks.
  bool in_pairs(const Stm& stm, const Stm& flat, std::vector<Stm>& stms) {
    if (!streams_ || has_attribute(flat.attributes, attribute::sequential_inner) ||
        has_attribute(flat.attributes, attribute::no_tiling))
      return false;
    const std::string prefix = numbered(pairs_ + 1, "pairs");
    std::optional<TiledFold> fold = tile_fold(flat, views_, prefix, function_.values);
    if (!fold) return false;
    Stm inner = flat;
    for (Value& v : inner.pattern) v = function_.values.add(function_.values.type(v), function_.values.name(v));
    std::optional<std::vector<Stm>> apart = taken_apart(stm, inner);
    if (!apart) return false;  // a contraction, which is tiled as such
    ++pairs_;
    if (context_.remarks)
      remark(RemarkKind::applied, "pairs", stm,
             fmt::format("the reduction that makes '{}' goes through tiles, whose elements are read once for several "
                         "indices of `{}`, where there are enough of these",
                         name_of(stm), print(fold->queries, function_)),
             {{"reused", fmt::format("{}", fmt::join(fold->reused, ", "))},
              {"width", print(fold->keys, function_)},
              {"numbers", prefix + ".*"}});
    std::ranges::move(fold->before, std::back_inserter(stms));
    const BodyPtr tiled = make_body(std::move(fold->kernel), {fold->results.begin(), fold->results.end()});
    const BodyPtr chunks = make_body(std::move(*apart), {inner.pattern.begin(), inner.pattern.end()});
    stms.push_back({.pattern = stm.pattern,
                    .op = Choose{Choose::By::first,
                                 prefix + ".variant",
                                 {{"tiled", fold->pays, tiled}, {"apart", Scalar::boolean(true), chunks}}},
                    .location = stm.location});
    return true;
  }

  // What is done with each row in one kernel, where rows are short enough; else the nest is taken apart.
  bool in_rows(const Stm& stm, const Stm& flat, std::vector<Stm>& stms) {
    const std::string prefix = numbered(rows_ + 1, "together");
    std::optional<RowsTogether> rows = rows_together(flat, views_, prefix, function_.values);
    if (!rows) return false;
    ++rows_;
    if (context_.remarks)
      remark(RemarkKind::applied, "rows", stm,
             fmt::format("the {} maps, reductions and scans that make '{}' are one kernel, whose threads hold the rows "
                         "in registers, where these have at most so many elements",
                         rows->operations, name_of(stm)),
             {{"width", print(rows->width, function_)}, {"most", prefix + ".rows"}});
    Stm inner = flat;
    for (Value& v : inner.pattern) v = function_.values.add(function_.values.type(v), function_.values.name(v));
    std::optional<std::vector<Stm>> apart = taken_apart(stm, inner);
    if (!apart) apart = std::vector<Stm>{make_kernel(inner)};
    std::ranges::move(rows->before, std::back_inserter(stms));
    const BodyPtr together = make_body(std::move(rows->kernel), {rows->results.begin(), rows->results.end()});
    const BodyPtr otherwise = make_body(std::move(*apart), {inner.pattern.begin(), inner.pattern.end()});
    stms.push_back({.pattern = stm.pattern,
                    .op = Choose{Choose::By::first,
                                 prefix + ".variant",
                                 {{"rows", rows->fits, together}, {"apart", Scalar::boolean(true), otherwise}}},
                    .location = stm.location});
    return true;
  }

  // What is inside in parallel, too; nullopt: there is nothing beside a single map.
  std::optional<std::vector<Stm>> taken_apart(const Stm& stm, const Stm& flat) {
    const auto chunks = [this](const Stm& inner, const Segments& segments) { return chunks_for(inner, segments); };
    const auto apart = distribute(flat, replicated_, chunks, function_.values);
    if (!apart) return std::nullopt;
    if (context_.remarks) {
      explain(stm, *apart);
      for (const Refusal& refusal : apart->not_tiled) explain_not_tiled(refusal);
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

  // For a few threads a nest is one kernel, and what is inside is sequential. But a contraction inside, a product of
  // matrices for each head, is worth a kernel of its own: there it can be tiled and packed. So the nest is taken apart
  // if contractions come of it, and where one of them has enough to do.
  bool around_contractions(const Stm& stm, const Stm& flat, std::vector<Stm>& stms) {
    if (around_contractions(stm, flat, flat, {}, stms)) return true;
    if (held_ != nullptr) return false;  // inside of another nest nothing asks for the sizes
    const std::optional<PairArrays> pairs = make_pair_arrays(flat, function_.values);
    return pairs && around_contractions(stm, pairs->map, flat, pairs->elements, stms);
  }

  // `split`: what is taken apart. Where that needs an array of pairs, of `pairs` elements in all, it has to be small enough.
  bool around_contractions(const Stm& stm, const Stm& split, const Stm& flat, const std::optional<Poly>& pairs,
                           std::vector<Stm>& stms) {
    if (!has_reduction_in_map(*std::get<Screma>(split.op).map.body, false)) return false;
    const int chunked = chunked_, histograms = histograms_;
    const HostViews views = views_;
    std::vector<Remark> said;
    std::vector<Remark>* const outer = std::exchange(held_, &said);
    Stm inner = split;
    if (outer == nullptr)
      for (Value& v : inner.pattern) v = function_.values.add(function_.values.type(v), function_.values.name(v));
    std::optional<std::vector<Stm>> apart = taken_apart(stm, inner);
    held_ = outer;
    std::vector<Poly> work;
    if (apart) {
      std::set<Value> made;
      for (const Stm& each : *apart) made.insert(each.pattern.begin(), each.pattern.end());
      contractions_of(*apart, made, work);
    }
    if (work.empty()) {
      chunked_ = chunked, histograms_ = histograms, views_ = views;
      return false;
    }
    for (const Remark& remark : said) say(remark);
    if (outer != nullptr) {
      std::ranges::move(*apart, std::back_inserter(stms));
      return true;
    }
    // Where all are small, everything stays in one thread's registers and caches.
    Builder host(function_.values);
    host.set_location(stm.location);
    const std::string prefix = numbered(++nests_, "nest");
    const Value from = host.let("from", GetSize{prefix + ".from", SizeClass::threshold, kLeastWorkOfContraction});
    Poly most = work.front();
    for (const Poly& each : work) most = poly_max(most, each);
    Value pays = host.compare(CompareOp::le, from, host.size(most, "work"), "pays");
    if (pairs) {
      const Value limit = host.let("pairs", GetSize{prefix + ".pairs", SizeClass::threshold, kMostPairs});
      const Value fits = host.compare(CompareOp::le, host.size(*pairs, "pairs"), limit, "fits");
      pays = host.binary(BinaryOp::conj, pays, fits, "pays");
    }
    const BodyPtr then = make_body(std::move(*apart), {inner.pattern.begin(), inner.pattern.end()});
    Stm whole = make_kernel(flat);
    Substitution none;
    const BodyPtr as_it_is = copy_fresh(make_body({whole}, {whole.pattern.begin(), whole.pattern.end()}), none,
                                        function_.values, function_.values);
    host.append({.pattern = stm.pattern,
                 .op = Choose{Choose::By::first,
                              prefix + ".variant",
                              {{"apart", pays, then}, {"whole", Scalar::boolean(true), as_it_is}}},
                 .location = stm.location});
    std::ranges::move(host.stms(), std::back_inserter(stms));
    return true;
  }

  // Whether there is a reduction in a map in the body, or one of rows: all that can become a contraction with a dim of
  // its own.
  bool has_reduction_in_map(const Body& body, bool in_map) const {
    return std::ranges::any_of(body.stms, [&](const Stm& stm) {
      const Screma* screma = get_if<Screma>(stm);
      if (screma != nullptr && !screma->reduces.empty() && !screma->scans() &&
          (in_map || !reduces_scalars(*screma, function_.values)))
        return true;
      bool found = false;
      for_each_body(stm.op, [&](const BodyPtr& inner) {
        found = found || has_reduction_in_map(*inner, in_map || (screma != nullptr && screma->reduces.empty()));
      });
      return found;
    });
  }

  // Multiplications of one batch of each contraction, if they are known before `made`.
  void contractions_of(const std::vector<Stm>& stms, const std::set<Value>& made, std::vector<Poly>& work) const {
    for (const Stm& stm : stms) {
      for_each_body(stm.op, [&](const BodyPtr& body) {
        if (!std::holds_alternative<SegOp>(stm.op)) contractions_of(body->stms, made, work);
      });
      const SegOp* kernel = get_if<SegOp>(stm);
      const auto reduces = [](const Stm& inner) {
        const Screma* screma = get_if<Screma>(inner);
        return screma != nullptr && !screma->reduces.empty();
      };
      if (kernel == nullptr || std::ranges::none_of(kernel->body->stms, reduces)) continue;
      ValueTable scratch = function_.values;
      const std::optional<Match> match = match_alone(stm, scratch);
      const Contraction* contraction = match ? std::get_if<Contraction>(&*match) : nullptr;
      if (contraction == nullptr) continue;
      std::set<Value> bound = made;
      for_each_stm(*make_body({stm}, {}),
                   [&](const Stm& inside) { bound.insert(inside.pattern.begin(), inside.pattern.end()); });
      Poly product = 1;
      bool known = true;
      for (const ContractionDim& dim : contraction->dims) {
        if (dim.dim_class == DimClass::batch) continue;
        product = product * dim.size;
        dim.size.for_each_symbol([&](Value v) { known = known && !bound.contains(v); });
      }
      if (known) work.push_back(product);
    }
  }

  void make_nest(const Stm& stm, std::vector<Stm>& stms) {
    const Nest nest = find_nest(stm, function_.values);
    if (context_.remarks) explain(stm, nest);
    stms.push_back(make_kernel(flatten(stm, nest, function_.values)));
  }

  void explain(const Stm& stm, const Distributed& apart) const {
    const std::string name = name_of(stm);
    using Form = Distributed::Form;
    switch (apart.form) {
      case Form::split:
        if (apart.parts == 1) return;  // a nest after all
        remark(RemarkKind::applied, "distributed", stm,
               fmt::format("the map that makes '{}' is split, so that what is inside runs in parallel", name),
               {{"parts", std::to_string(apart.parts)}});
        return;
      case Form::loop:
      case Form::branch:
        remark(RemarkKind::applied, "interchanged", stm,
               fmt::format("the {} inside the map that makes '{}' is outside now",
                           apart.form == Form::loop ? "loop" : "branch", name));
        return;
      case Form::scatter:
        remark(RemarkKind::applied, "interchanged", stm,
               fmt::format("the scatters that make the rows of '{}' are one", name));
        return;
      case Form::reduction:
      case Form::scan:
        remark(RemarkKind::applied, "segmented", stm,
               fmt::format("the {}s that make '{}' are done in chunks, all at once",
                           apart.form == Form::scan ? "scan" : "reduction", name));
        return;
    }
  }

  // What tile-contraction never gets to see.
  void explain_not_tiled(const Refusal& refusal) const {
    if (refusal.code.empty()) return;
    RemarkFacts facts{{"reason", refusal.code}};
    for (auto& fact : refusal_facts(refusal, function_)) facts.push_back(std::move(fact));
    say({.kind = RemarkKind::missed,
         .pass = "extract-kernels",
         .code = "not-tiled",
         .location = refusal.location,
         .function = function_.name,
         .message = fmt::format("the reduction is done in chunks, not tiled: {}", refusal.message),
         .facts = std::move(facts),
         .suggestion = refusal.suggestion});
  }

  void explain(const Stm& stm, const Nest& nest) const {
    std::vector<std::string> dims;
    for (const Nest::Level& level : nest.levels) {
      for (const Poly& width : level.widths) dims.push_back(print(width, function_));
    }
    remark(RemarkKind::applied, "kernel", stm, fmt::format("'{}' is a kernel", name_of(stm)),
           {{"space", fmt::format("{}", fmt::join(dims, ", "))}});
    if (!nest.stopped.empty()) {
      remark(RemarkKind::missed, nest.stopped_code, stm,
             fmt::format("the nest of '{}' is not taken deeper: {}", name_of(stm), nest.stopped));
    }
    for_each_stm(*nest.body, [&](const Stm& inner) {
      const Screma* screma = get_if<Screma>(inner);
      if (screma == nullptr || (screma->map.body->results.size() == screma->reduced_count() && !screma->scans()))
        return;
      remark(RemarkKind::analysis, "sequentialised", inner,
             fmt::format("the map that makes '{}' runs sequentially in each thread", name_of(inner)));
    });
  }

  void scatter(const Stm& stm, std::vector<Stm>& stms) {
    const Scatter& op = std::get<Scatter>(stm.op);
    const std::optional<Stm> kernel =
        asks_for_sequential(stm) ? std::nullopt : make_scatter_kernel(stm, function_.values);
    const std::optional<std::string> why = op.op && kernel ? why_one_level(*kernel, function_.values) : std::nullopt;
    if (!kernel) {
      explain_serial(stm, op);
      stms.push_back(make_serial_kernel(stm, function_.values));
    } else if (op.op && !why) {
      histogram(stm, *kernel, stms);
    } else {
      if (context_.remarks)
        remark(RemarkKind::applied, "scatter", stm,
               op.op ? fmt::format("the histogram into '{}' is a kernel: {}", name_of(stm), *why)
                     : fmt::format("the scatter into '{}' is a kernel", name_of(stm)),
               {{"width", print(product(op.widths), function_)}});
      stms.push_back(*kernel);
    }
  }

  void explain_serial(const Stm& stm, const Scatter& op) const {
    if (!context_.remarks) return;
    const char* why = asks_for_sequential(stm)                      ? "its attribute asks for it"
                      : can_fail(*op.op->op.body, function_.values) ? "its operator can fail"
                                                                    : "its operator works on arrays";
    remark(asks_for_sequential(stm) ? RemarkKind::analysis : RemarkKind::missed, "sequentialised", stm,
           fmt::format("what is written into '{}' is written by one thread: {}", name_of(stm), why),
           {{"width", print(product(op.widths), function_)}});
  }

  // In two levels, by blocks or by a few threads.
  void histogram(const Stm& stm, const Stm& kernel, std::vector<Stm>& stms) {
    const bool few = context_.flag("few-threads");
    const auto chunks = [this] { return next_chunks(); };
    const std::string prefix = numbered(++histograms_, "hist");
    if (context_.remarks)
      remark(RemarkKind::applied, "histogram", stm,
             fmt::format("the histogram into '{}' is folded {}, where that pays, else {}", name_of(stm),
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

  Stm serial(const Stm& stm, const Screma& screma) {
    const bool asked = asks_for_sequential(stm);
    if (context_.remarks)
      remark(RemarkKind::analysis, "sequentialised", stm,
             asked ? fmt::format("'{}' runs in one thread, as its attribute asks", name_of(stm))
                   : fmt::format("the {} that makes '{}' runs in one thread", screma.scans() ? "scan" : "reduction",
                                 name_of(stm)),
             {{"width", print(product(screma.widths), function_)}});
    return make_serial_kernel(stm, function_.values);
  }

  void say(const Remark& remark) const {
    if (held_ != nullptr) {
      held_->push_back(remark);
    } else {
      context_.remark(remark);
    }
  }

  std::string name_of(const Stm& stm) const {
    return stm.pattern.empty() ? std::string() : function_.values.name(stm.pattern.front());
  }

  void remark(RemarkKind kind, std::string code, const Stm& at, std::string message,
              std::vector<std::pair<std::string, std::string>> facts = {}) const {
    say({.kind = kind,
         .pass = "extract-kernels",
         .code = std::move(code),
         .location = at.location,
         .function = function_.name,
         .message = std::move(message),
         .facts = std::move(facts)});
  }

  Function& function_;
  const PassContext& context_;
  Replicated replicated_;
  HostViews views_;
  int chunked_ = 0, histograms_ = 0, nests_ = 0, rows_ = 0, attentions_ = 0, pairs_ = 0;  // numbered so far
  bool streams_ = false;                                                                  // attentions are looked for
  std::vector<Remark>* held_ = nullptr;  // what is said of a nest that may not be taken apart after all
};

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
                       {"filter", "a scan that counts and the scatter of what it counted are one kernel"},
                       {"not-a-filter",
                        "a scan that counts and the scatter of what it counted are kernels of their own"},
                       {"rows", "what is done with each row is one kernel, whose teams of threads hold the rows"},
                       {"pairs", "a reduction of what contractions give for all pairs goes through tiles"},
                       {"streamed", "an attention is one kernel that holds no scores in memory, where that pays"},
                       {"not-streamed", "what looks like an attention has its scores in memory"},
                       {"segmented", "reductions or scans inside maps run in chunks, all of them in parallel"},
                       {"by-columns", "a reduction of columns has them side by side in its threads"},
                       {"not-tiled", "a reduction in a map is no contraction that can be tiled, and runs in chunks"},
                       {"checks-outside", "checks that kept a contraction from being tiled are made before it"},
                       {"distributed", "an imperfect nest of maps became several kernels"},
                       {"interchanged", "a loop, branch or scatter inside a map is outside now"},
                       {"sequentialised", "a map or reduction runs in one thread although it need not"},
                       {"imperfect-nest", "a nest of maps stops where there is other work beside the inner map"},
                       {"can-fail-between", "a nest stops at a statement that can fail"},
                       {"irregular", "a nest stops at a map whose width depends on an outer index"},
                       {"sequential", "a nest stops where an attribute asks for it"}},
      .run = extract};
}

}  // namespace apl
