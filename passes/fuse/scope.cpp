#include "passes/fuse/scope.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>

#include "ir/walk.h"
#include "passes/analysis/cheap.h"

namespace apl {

namespace {

// What shares an input with thousands of others is compared with so many of them.
constexpr std::size_t kMostSiblings = 64;

bool same_attributes(const Stm& a, const Stm& b) {
  return std::ranges::equal(a.attributes, b.attributes, [](const Attribute& x, const Attribute& y) {
    return x.name == y.name && x.arguments == y.arguments;
  });
}

// Whether the results are new arrays.
bool makes_fresh(const Op& op) {
  return std::holds_alternative<Screma>(op) || std::holds_alternative<Copy>(op) || std::holds_alternative<Iota>(op) ||
         std::holds_alternative<Replicate>(op) || std::holds_alternative<Manifest>(op) ||
         std::holds_alternative<Scratch>(op) || std::holds_alternative<ArrayLit>(op) ||
         std::holds_alternative<Update>(op) || std::holds_alternative<Scatter>(op);
}

}  // namespace

FuseScope::FuseScope(std::vector<Stm> stms, const std::vector<Operand>& results, ValueTable& values,
                     const Consumption& consumption, FusePolicy policy)
    : stms_(std::move(stms)),
      values_(values),
      consumption_(consumption),
      policy_(policy),
      graph_(stms_, values, consumption),
      alive_(stms_.size(), true) {
  for (const Operand& result : results)
    if (result.is_value()) returned_.insert(result.value());
  for (std::size_t k = 0; k < stms_.size(); ++k) {
    define(k);
    index_users(k);
  }
}

void FuseScope::define(std::size_t k) {
  const std::vector<Value>& pattern = stms_[k].pattern;
  for (std::size_t result = 0; result < pattern.size(); ++result)
    definitions_.insert_or_assign(pattern[result], Definition{k, result});
}

void FuseScope::index_users(std::size_t k) {
  for (const Value v : free_values(stms_[k].op, values_)) {
    if (definitions_.contains(v)) users_[v].push_back(k);
  }
  if (const Screma* screma = get_if<Screma>(stms_[k])) {
    for (const Value v : screma->inputs) streamers_[v].insert(k);
  }
}

std::optional<std::size_t> FuseScope::definition(Value value) const {
  const auto found = definitions_.find(value);
  return found == definitions_.end() ? std::nullopt : std::optional(found->second.stm);
}

// The rearrange that makes `input` from an array of the same outer dims.
std::optional<std::size_t> FuseScope::row_view(std::size_t consumer, Value input) const {
  const std::optional<std::size_t> at = definition(input);
  const Rearrange* view = at ? get_if<Rearrange>(stms_[*at]) : nullptr;
  if (view == nullptr) return std::nullopt;
  const std::size_t outer = std::get<Screma>(stms_[consumer].op).widths.size();
  for (std::size_t k = 0; k < outer; ++k) {
    if (k >= view->permutation.size() || view->permutation[k] != static_cast<int>(k)) return std::nullopt;
  }
  return at;
}

std::vector<std::size_t> FuseScope::producers(std::size_t consumer) const {
  const Screma* screma = get_if<Screma>(stms_[consumer]);
  std::set<std::size_t, std::greater<>> found;
  if (screma == nullptr) return {};
  for (const Value input : screma->inputs) {
    Value source = input;
    if (const auto view = row_view(consumer, input)) source = std::get<Rearrange>(stms_[*view].op).array;
    const auto at = definitions_.find(source);
    if (at == definitions_.end() || at->second.stm == consumer) continue;
    const Screma* producer = get_if<Screma>(stms_[at->second.stm]);
    // What an operator gives exists only after other indices: no index of the same loop can stream it.
    if (producer != nullptr && at->second.result >= producer->reduced_count()) found.insert(at->second.stm);
  }
  return {found.begin(), found.end()};
}

std::unordered_set<Value> FuseScope::streamed(std::size_t consumer) const {
  std::unordered_set<Value> all;
  for (const Value input : std::get<Screma>(stms_[consumer].op).inputs) {
    all.insert(input);
    if (const auto view = row_view(consumer, input)) all.insert(std::get<Rearrange>(stms_[*view].op).array);
  }
  return all;
}

// What the consumer reads other than by streaming it.
std::set<Value> FuseScope::read_by_lambdas(const Screma& consumer) const {
  std::set<Value> read = free_values(consumer.map, values_);
  for (const ReduceOp& reduce : consumer.reduces) {
    read.merge(free_values(reduce.op, values_));
    for (const Operand& neutral : reduce.neutral) {
      if (neutral.is_value()) read.insert(neutral.value());
    }
  }
  for (const Poly& width : consumer.widths) width.for_each_symbol([&](Value v) { read.insert(v); });
  return read;
}

bool FuseScope::needed_elsewhere(Value value, std::size_t consumer) const {
  if (returned_.contains(value)) return true;
  const auto users = users_.find(value);
  if (users == users_.end()) return false;
  return std::ranges::any_of(users->second, [&](std::size_t k) { return alive_[k] && k != consumer; });
}

// The producer over the consumer's widths, if its nest can be cut there.
std::optional<Stm> FuseScope::over_widths(const Stm& producer, const std::vector<Poly>& widths) {
  const Screma& screma = std::get<Screma>(producer.op);
  if (screma.widths == widths) return producer;
  if (screma.widths.size() < widths.size()) {
    std::optional<Stm> collapsed = collapse_nest(producer, widths.size(), values_);
    return collapsed && std::get<Screma>(collapsed->op).widths == widths ? collapsed : std::nullopt;
  }
  const bool prefix = std::equal(widths.begin(), widths.end(), screma.widths.begin());
  if (!screma.reduces.empty() || !prefix || widths.size() == screma.widths.size()) return std::nullopt;
  return split_nest(producer, widths.size(), values_);
}

NotFused FuseScope::late(const Screma& producer, Value result) const {
  return {"needed-between",
          "'" + values_.name(result) + "' is known only after " +
              (producer.scans() ? "all indices before" : "the whole reduction"),
          {}};
}

std::variant<FuseScope::Vertical, NotFused> FuseScope::vertical(std::size_t producer, std::size_t consumer) {
  const Stm& from = stms_[producer];
  const Screma& p = std::get<Screma>(from.op);
  const Screma& c = std::get<Screma>(stms_[consumer].op);
  Vertical result;
  std::vector<std::size_t>& views = result.views;
  std::unordered_map<Value, std::size_t> made;
  for (std::size_t k = 0; k < from.pattern.size(); ++k) made.emplace(from.pattern[k], k);
  std::vector<bool> is_linked(from.pattern.size(), false);
  for (std::size_t k = 0; k < c.inputs.size(); ++k) {
    Link link{.input = k};
    Value source = c.inputs[k];
    if (const auto view = row_view(consumer, source)) {
      const Rearrange& rearrange = std::get<Rearrange>(stms_[*view].op);
      if (definition(rearrange.array) == producer) {
        source = rearrange.array;
        for (std::size_t d = c.widths.size(); d < rearrange.permutation.size(); ++d) {
          link.rows.push_back(rearrange.permutation[d] - static_cast<int>(c.widths.size()));
        }
        views.push_back(*view);
      }
    }
    const auto at = made.find(source);
    if (at == made.end()) continue;
    link.result = at->second;
    is_linked[link.result] = true;
    if (link.result < p.reduced_count()) return late(p, source);
    result.links.push_back(std::move(link));
  }
  const std::string name = values_.name(from.pattern[result.links.front().result]);
  std::optional<Stm> adjusted = over_widths(from, c.widths);
  if (!adjusted) {
    return NotFused{"width-mismatch", "'" + name + "' is made over other widths than it is used over", {}};
  }
  bool keeps_linked = false;
  const std::set<Value> read = read_by_lambdas(c);
  for (std::size_t k = 0; k < from.pattern.size(); ++k) {
    const Value value = from.pattern[k];
    if (read.contains(value)) {
      if (k < p.reduced_count()) return late(p, value);
      return NotFused{
          "producer-used-elsewhere", "'" + name + "' is also read as a whole where its elements are used", {}};
    }
    bool kept = needed_elsewhere(value, consumer);
    const bool linked = is_linked[k];
    if (kept && linked) {
      // A view that only the consumer streams does not count.
      const auto users = users_.find(value);
      kept = returned_.contains(value) || std::ranges::any_of(users->second, [&](std::size_t user) {
               if (!alive_[user] || user == consumer) return false;
               const bool view = std::ranges::find(views, user) != views.end();
               return !view || needed_elsewhere(stms_[user].pattern.front(), consumer);
             });
    }
    keeps_linked = keeps_linked || (kept && k >= p.reduced_count());
    if (linked && consumption_.consumed(value)) {
      return NotFused{"consumed-between", "'" + name + "' is overwritten in place", {}};
    }
    result.kept.push_back(kept);
  }
  if (graph_.separated(producer, consumer, views)) {
    return NotFused{"needed-between", "a statement between them needs '" + name + "' and is needed by its user", {}};
  }
  if (const std::optional<Value> lost = overwritten_between(producer, consumer)) {
    return NotFused{"consumed-between",
                    "'" + values_.name(*lost) + "', of which '" + name + "' is made, is overwritten before its use",
                    {}};
  }
  result.producer = std::move(*adjusted);
  if (std::optional<NotFused> loss = loses(std::get<Screma>(result.producer.op), c, keeps_linked))
    return std::move(*loss);
  return result;
}

// An array that the producer reads and that is copied to be overwritten before the consumer runs: with the producer
// moved there, the copy could not go any more. One that others read later, or that is not ours, is copied in any case.
std::optional<Value> FuseScope::overwritten_between(std::size_t producer, std::size_t consumer) const {
  for (const Value read : free_values(stms_[producer].op, values_)) {
    const Type& type = values_.type(read);
    const std::optional<std::size_t> made = definition(read);
    const bool ours = made ? makes_fresh(stms_[*made].op) : type.unique;
    const auto users = users_.find(read);
    if (!type.is_array() || !ours || users == users_.end()) continue;
    if (returned_.contains(read)) continue;
    for (const std::size_t copy : users->second) {
      if (!alive_[copy] || !std::holds_alternative<Copy>(stms_[copy].op)) continue;
      if (!consumption_.consumed(stms_[copy].pattern.front()) || !graph_.reaches(copy, consumer)) continue;
      const bool last = std::ranges::all_of(
          users->second, [&](std::size_t other) { return !alive_[other] || other <= copy || other == producer; });
      if (last) return read;
    }
  }
  return std::nullopt;
}

// What fusion would cost, where it could be done.
std::optional<NotFused> FuseScope::loses(const Screma& producer, const Screma& consumer, bool keeps_linked) const {
  const bool p_nests = holds_screma(*producer.map.body);
  const bool c_nests = holds_screma(*consumer.map.body);
  const bool flat = !p_nests && !c_nests;
  const bool scans = producer.scans() || consumer.scans();
  // Operators on scalars and mapped rows stand beside each other: extract-kernels takes them apart again.
  const bool mixes = flat && on_scalars(producer) && on_scalars(consumer);
  if (!producer.reduces.empty() && !consumer.reduces.empty() && scans && !mixes)
    return NotFused{"unlike", "a scan of rows or nests is not mixed with other operators", {}};
  const bool flat_maps = producer.reduces.empty() && consumer.reduces.empty() && flat;
  if (keeps_linked && !flat_maps && !mixes) {
    return NotFused{"producer-used-elsewhere", "the array between them is needed by others, too", {}};
  }
  if (keeps_linked && consumer.scans() && holds_heavy_work(*producer.map.body)) {
    return NotFused{"would-duplicate-work", "the chunks of a scan are computed twice, and others need the array", {}};
  }
  if (c_nests && !p_nests && !is_cheap(*producer.map.body, values_)) {
    return NotFused{
        "would-duplicate-work", "each element would be computed again for every index of the inner nest", {}};
  }
  return std::nullopt;
}

bool FuseScope::on_scalars(const Screma& screma) const {
  return std::ranges::all_of(screma.reduces, [&](const ReduceOp& reduce) {
    return std::ranges::all_of(reduce.op.params, [&](Value v) { return values_.type(v).is_scalar(); });
  });
}

FuseScope::Likeness FuseScope::likeness(const Screma& screma) const {
  return {.flat = !holds_screma(*screma.map.body),
          .maps = screma.reduces.empty(),
          .reduces = screma.map.body->results.size() == screma.reduced_count() && !screma.scans(),
          .on_scalars = on_scalars(screma)};
}

std::vector<std::size_t> FuseScope::siblings(std::size_t first) {
  const Screma* screma = get_if<Screma>(stms_[first]);
  if (screma == nullptr) return {};
  const std::vector<Poly> widths = screma->widths;
  Likeness all = likeness(*screma);
  if (!all.flat) return {first};
  // The next of those that stream each input, the earliest of all first.
  struct Next {
    std::size_t k;
    Value input;
    std::size_t refused;
    bool operator>(const Next& other) const { return k > other.k; }
  };
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
  std::unordered_set<Value> inputs;
  const auto look_at = [&](Value input, std::size_t after, std::size_t refused) {
    const std::set<std::size_t>& streamers = streamers_[input];
    const auto other = streamers.upper_bound(after);
    if (other != streamers.end() && refused < kMostSiblings) next.push({*other, input, refused});
  };
  const auto add_inputs_of = [&](std::size_t k) {
    for (const Value input : std::get<Screma>(stms_[k].op).inputs)
      if (inputs.insert(input).second) look_at(input, first, 0);
  };
  std::vector<std::size_t> joined = {first};
  std::unordered_set<std::size_t> done, refused;
  add_inputs_of(first);
  while (!next.empty()) {
    const Next at = next.top();
    next.pop();
    if (done.insert(at.k).second) {
      const Screma& other = std::get<Screma>(stms_[at.k].op);
      const Likeness its = likeness(other);
      const bool alike = (all.maps && its.maps) || (all.reduces && its.reduces) || (all.on_scalars && its.on_scalars);
      if (other.widths == widths && its.flat && alike && same_attributes(stms_[first], stms_[at.k]) &&
          !graph_.reaches(first, at.k) && !graph_.reaches(at.k, first)) {
        graph_.merge(at.k, first);
        alive_[at.k] = false;
        joined.push_back(at.k);
        all = {.flat = true,
               .maps = all.maps && its.maps,
               .reduces = all.reduces && its.reduces,
               .on_scalars = all.on_scalars && its.on_scalars};
        add_inputs_of(at.k);
      } else {
        refused.insert(at.k);
      }
    }
    look_at(at.input, at.k, at.refused + (refused.contains(at.k) ? 1 : 0));
  }
  return joined;
}

void FuseScope::merge_siblings(const std::vector<std::size_t>& joined, Stm stm) {
  const std::size_t first = joined.front();
  for (const std::size_t k : joined)
    for (const Value v : std::get<Screma>(stms_[k].op).inputs) streamers_[v].erase(k);
  for (const std::size_t k : joined) stms_[k] = {};
  stms_[first] = std::move(stm);
  define(first);
  index_users(first);
}

void FuseScope::merge(std::size_t gone, std::size_t kept, Stm stm, const std::vector<std::size_t>& views) {
  for (const std::size_t view : views) {
    graph_.disconnect(view, kept);
    if (!alive_[view] || needed_elsewhere(stms_[view].pattern.front(), kept)) continue;
    alive_[view] = false;
    graph_.drop(view);
  }
  alive_[gone] = false;
  for (const std::size_t k : {gone, kept})
    for (const Value v : std::get<Screma>(stms_[k].op).inputs) streamers_[v].erase(k);
  stms_[gone] = {};  // a chain of fusions would keep them all
  stms_[kept] = std::move(stm);
  define(kept);
  graph_.merge(gone, kept);
  index_users(kept);
}

std::vector<Stm> FuseScope::take() {
  std::vector<Stm> result;
  for (const std::size_t k : graph_.order()) result.push_back(std::move(stms_[k]));
  return result;
}

}  // namespace apl
