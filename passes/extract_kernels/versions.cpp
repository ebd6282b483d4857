// What extract-kernels computes in several ways, of which one is chosen by sizes when the program runs: each is a
// kernel, or several, behind a condition of the host, and the last alternative is the nest taken apart.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/attributes.h"
#include "ir/builder.h"
#include "ir/print.h"
#include "ir/sparse_soa.h"
#include "ir/walk.h"
#include "passes/analysis/contractions.h"
#include "passes/extract_kernels/attention.h"
#include "passes/extract_kernels/extractor.h"
#include "passes/extract_kernels/nest.h"
#include "passes/extract_kernels/pair_arrays.h"
#include "passes/extract_kernels/pair_folds.h"
#include "passes/extract_kernels/reductions.h"
#include "passes/extract_kernels/rows.h"

namespace apl {

namespace {

// Products of a contraction from which on a kernel of its own pays: what it leaves in memory costs more in smaller
// ones.
constexpr std::int64_t kLeastWorkOfContraction = 16 * 16 * 16;
// Elements of an array of pairs between a contraction and a fold of it, at most: beyond, caches are of no help.
constexpr std::int64_t kMostPairs = std::int64_t{1} << 24;

BodyPtr body_of(std::vector<Stm> stms, const std::vector<Value>& results) {
  return make_body(std::move(stms), {results.begin(), results.end()});
}

// The first version whose condition holds; the last one, if there is none.
Stm first_of(const Stm& stm, const std::string& prefix, std::vector<Choose::Alternative> versions,
             std::pair<std::string, BodyPtr> last) {
  versions.push_back({std::move(last.first), Scalar::boolean(true), std::move(last.second)});
  return {.pattern = stm.pattern,
          .op = Choose{Choose::By::first, prefix + ".variant", std::move(versions)},
          .location = stm.location};
}

}  // namespace

Stm Extractor::with_own_results(Stm flat) {
  for (Value& v : flat.pattern) v = function_.values.add(function_.values.type(v), function_.values.name(v));
  return flat;
}

BodyPtr Extractor::apart_or_whole(const Stm& stm, const Stm& flat) {
  Stm inner = with_own_results(flat);
  const std::vector<Value> results = inner.pattern;
  std::optional<std::vector<Stm>> apart = taken_apart(stm, inner);
  return body_of(apart ? std::move(*apart) : std::vector<Stm>{make_kernel(std::move(inner))}, results);
}

void Extractor::group_attentions() {
  streams_ = !has_sparse_operands();
  if (!streams_) return;
  std::vector<Refusal> refused;
  function_.body = group_attention(function_.body, replicated_, function_.values, refused);
  for (const Refusal& refusal : refused) remarks_.explain_not_streamed(refusal);
}

bool Extractor::has_sparse_operands() const {
  const auto requests = sparse_requests(function_);
  return requests && !requests->empty();
}

bool Extractor::streamed(const Stm& stm, const Stm& flat, std::vector<Stm>& stms) {
  if (!streams_ || !may_be_attention(flat, function_.values)) return false;
  if (has_attribute(stm.attributes, attribute::no_rescaling)) return false;
  const auto match = match_attention(flat, replicated_, function_.values);
  if (!match || !std::holds_alternative<Attention>(*match)) return false;
  const auto& attention = std::get<Attention>(*match);
  const std::string prefix = numbered(++attentions_, "attention");
  auto made = stream_attention(flat, attention, views_, prefix, function_.values);
  if (const Refusal* refusal = std::get_if<Refusal>(&made)) {
    --attentions_;
    remarks_.explain_not_streamed(*refusal);
    return false;
  }
  auto& streaming = std::get<StreamedAttention>(made);
  if (remarks_.wanted())
    remarks_.add(
        RemarkKind::applied, "streamed", stm,
        fmt::format("the attention that makes '{}' is one kernel, which holds no scores in memory, where its rows "
                    "are short and its queries many enough",
                    remarks_.name_of(stm)),
        {{"queries", print(attention.widths.back(), function_)},
         {"keys", print(attention.keys, function_)},
         {"columns", print(attention.columns, function_)},
         {"maximum", attention.most ? "running; sums are rescaled when it grows" : "none"},
         {"numbers", prefix + ".*"}});
  const BodyPtr apart = apart_or_whole(stm, flat);
  std::ranges::move(streaming.before, std::back_inserter(stms));
  std::vector<Choose::Alternative> versions;
  for (StreamedAttention::Version& version : streaming.versions)
    versions.push_back({version.name, version.fits, body_of(std::move(version.kernel), version.results)});
  stms.push_back(first_of(stm, prefix, std::move(versions), {"apart", apart}));
  return true;
}

bool Extractor::in_pairs(const Stm& stm, const Stm& flat, std::vector<Stm>& stms) {
  if (!streams_ || has_attribute(flat.attributes, attribute::sequential_inner) ||
      has_attribute(flat.attributes, attribute::no_tiling))
    return false;
  const std::string prefix = numbered(pairs_ + 1, "pairs");
  std::optional<TiledFold> fold = tile_fold(flat, views_, prefix, function_.values);
  if (!fold) return false;
  const Stm inner = with_own_results(flat);
  std::optional<std::vector<Stm>> apart = taken_apart(stm, inner);
  if (!apart) return false;  // a contraction, which is tiled as such
  ++pairs_;
  if (remarks_.wanted())
    remarks_.add(
        RemarkKind::applied, "pairs", stm,
        fmt::format("the reduction that makes '{}' goes through tiles, whose elements are read once for several "
                    "indices of `{}`, where there are enough of these",
                    remarks_.name_of(stm), print(fold->queries, function_)),
        {{"reused", fmt::format("{}", fmt::join(fold->reused, ", "))},
         {"width", print(fold->keys, function_)},
         {"numbers", prefix + ".*"}});
  std::ranges::move(fold->before, std::back_inserter(stms));
  stms.push_back(first_of(stm, prefix, {{"tiled", fold->pays, body_of(std::move(fold->kernel), fold->results)}},
                          {"apart", body_of(std::move(*apart), inner.pattern)}));
  return true;
}

bool Extractor::in_rows(const Stm& stm, const Stm& flat, std::vector<Stm>& stms) {
  const std::string prefix = numbered(rows_ + 1, "together");
  std::optional<RowsTogether> rows = rows_together(flat, views_, prefix, function_.values);
  if (!rows) return false;
  ++rows_;
  if (remarks_.wanted())
    remarks_.add(
        RemarkKind::applied, "rows", stm,
        fmt::format("the {} maps, reductions and scans that make '{}' are one kernel, whose threads hold the rows "
                    "in registers, where these have at most so many elements",
                    rows->operations, remarks_.name_of(stm)),
        {{"width", print(rows->width, function_)}, {"most", prefix + ".rows"}});
  const BodyPtr apart = apart_or_whole(stm, flat);
  std::ranges::move(rows->before, std::back_inserter(stms));
  stms.push_back(
      first_of(stm, prefix, {{"rows", rows->fits, body_of(std::move(rows->kernel), rows->results)}}, {"apart", apart}));
  return true;
}

bool Extractor::around_contractions(const Stm& stm, const Stm& flat, std::vector<Stm>& stms) {
  if (around_contractions(stm, flat, flat, {}, stms)) return true;
  if (remarks_.holds()) return false;  // inside of another nest nothing asks for the sizes
  const std::optional<PairArrays> pairs = make_pair_arrays(flat, function_.values);
  return pairs && around_contractions(stm, pairs->map, flat, pairs->elements, stms);
}

bool Extractor::around_contractions(const Stm& stm, const Stm& split, const Stm& flat, const std::optional<Poly>& pairs,
                                    std::vector<Stm>& stms) {
  if (!has_reduction_in_map(*std::get<Screma>(split.op).map.body, false)) return false;
  const int chunked = chunked_, histograms = histograms_;
  const HostViews views = views_;
  std::vector<Remark> said;
  std::vector<Remark>* const outer = remarks_.hold(&said);
  const Stm inner = outer == nullptr ? with_own_results(split) : split;
  std::optional<std::vector<Stm>> apart = taken_apart(stm, inner);
  remarks_.hold(outer);
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
  for (const Remark& remark : said) remarks_.say(remark);
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
  Substitution none;
  const BodyPtr whole =
      copy_fresh(body_of({make_kernel(flat)}, flat.pattern), none, function_.values, function_.values);
  host.append(first_of(stm, prefix, {{"apart", pays, body_of(std::move(*apart), inner.pattern)}}, {"whole", whole}));
  std::ranges::move(host.stms(), std::back_inserter(stms));
  return true;
}

bool Extractor::has_reduction_in_map(const Body& body, bool in_map) const {
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

void Extractor::contractions_of(const std::vector<Stm>& stms, const std::set<Value>& made,
                                std::vector<Poly>& work) const {
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

}  // namespace apl
