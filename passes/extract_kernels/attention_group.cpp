// Maps over queries that yield rows:
//
//   {s : [n][m]} = map(i < n, {Q}, scores)  {p : [n][m]} = map(i < n, {s}, softmax)  {o} = map(i < n, {p}, weighted
//   sum)
// =>
//   {o} = map(i < n, {Q}) { {s} = scores  {p} = softmax  {o} = weighted sum  in {o} }
//
// Nothing is computed twice: a map is taken in if all that it makes goes to the one that takes it. It is done where an
// attention comes of it; if its kernel is not made after all, the nest is taken apart into the same kernels as before.
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "ir/walk.h"
#include "passes/extract_kernels/attention.h"
#include "passes/extract_kernels/nest.h"

namespace apl {
namespace {

bool is_map(const Stm& stm) {
  const Screma* screma = get_if<Screma>(stm);
  return screma != nullptr && screma->reduces.empty();
}

// Whether an array is overwritten in statements [first, last): what reads it may not move behind them.
bool overwrites(const std::vector<Stm>& stms, std::size_t first, std::size_t last) {
  bool found = false;
  const auto look = [&](const Stm& stm) { found = found || get_if<Update>(stm) || get_if<Scatter>(stm); };
  for (std::size_t k = first; k < last; ++k) {
    look(stms[k]);
    for_each_body(stms[k].op, [&](const BodyPtr& inner) { for_each_stm(*inner, look); });
  }
  return found;
}

// Whether the map's row is made by sums, each of which goes over other rows.
bool makes_sums(const Stm& stm, const ValueTable& values) {
  const Body& body = *std::get<Screma>(stm.op).map.body;
  if (body.results.size() != 1 || !body.results[0].is_value() || values.type(body.results[0]).rank() != 1) return false;
  const Stm* row = defining_stm(body, body.results[0].value());
  const Screma* sums = row == nullptr ? nullptr : get_if<Screma>(*row);
  return sums != nullptr && std::ranges::any_of(sums->map.body->stms, [](const Stm& s) { return get_if<Screma>(s); });
}

class Grouper {
 public:
  Grouper(const Replicated& replicated, ValueTable& values, std::vector<Refusal>& refused)
      : replicated_(replicated), values_(values), refused_(refused) {}

  BodyPtr body(const BodyPtr& old) {
    std::vector<Stm> stms;
    bool changed = false;
    for (const Stm& stm : old->stms) {
      stms.push_back(stm);
      stms.back().op = map_bodies(stm.op, [&](const BodyPtr& inner) {
        BodyPtr made = body(inner);
        changed = changed || made != inner;
        return made;
      });
    }
    std::optional<Users> users;
    std::set<std::size_t> gone;
    for (std::size_t k = stms.size(); k-- > 0;) {
      if (gone.contains(k) || !is_map(stms[k]) || stms[k].pattern.size() != 1 || !makes_sums(stms[k], values_))
        continue;
      if (!users) users = users_of(stms, old->results);
      std::set<std::size_t> taken;
      const Stm whole = grouped(stms, *users, k, taken);
      if (!may_be_attention(whole, values_)) continue;
      const auto match = try_match(whole);
      if (match && std::holds_alternative<Refusal>(*match)) {
        refused_.push_back(std::get<Refusal>(*match));
      } else if (match && !taken.empty()) {
        stms[k] = whole;
        gone.insert(taken.begin(), taken.end());
        changed = true;
      }
    }
    if (!changed) return old;
    std::vector<Stm> left;
    for (std::size_t k = 0; k < stms.size(); ++k)
      if (!gone.contains(k)) left.push_back(std::move(stms[k]));
    return make_body(std::move(left), old->results);
  }

 private:
  // The statements of a body that make and that use each value; results count as a statement behind all.
  struct Users {
    std::unordered_map<Value, std::size_t> maker;
    std::unordered_map<Value, std::set<std::size_t>> users;
  };
  Users users_of(const std::vector<Stm>& stms, const std::vector<Operand>& results) const {
    Users found;
    for (std::size_t k = 0; k < stms.size(); ++k) {
      for (const Value v : free_values(stms[k].op, values_)) found.users[v].insert(k);
      for (const Value v : stms[k].certificates) found.users[v].insert(k);
      for (const Value v : stms[k].pattern) found.maker[v] = k;
    }
    for (const Operand& x : results)
      if (x.is_value()) found.users[x.value()].insert(stms.size());
    return found;
  }

  // On a copy: the nest is flattened for it.
  std::optional<AttentionMatch> try_match(const Stm& whole) {
    Substitution none;
    const BodyPtr copy = copy_fresh(make_body({whole}, {}), none, values_, values_);
    const Stm& alone = copy->stms.front();
    return match_attention(flatten(alone, find_nest(alone, values_), values_), replicated_, values_);
  }

  // Statement `k` with all maps that it can take in.
  Stm grouped(const std::vector<Stm>& stms, const Users& users, std::size_t k, std::set<std::size_t>& taken) {
    Stm whole = stms[k];
    for (bool more = true; more;) {
      more = false;
      for (const Value input : std::get<Screma>(whole.op).inputs) {
        const auto maker = users.maker.find(input);
        if (maker == users.maker.end() || !goes_to(stms, users, maker->second, k, whole, taken)) continue;
        whole = merged(stms[maker->second], whole);
        taken.insert(maker->second);
        more = true;  // what was used twice may be used by this one alone now
        break;
      }
    }
    return whole;
  }

  bool goes_to(const std::vector<Stm>& stms, const Users& users, std::size_t p, std::size_t k, const Stm& whole,
               const std::set<std::size_t>& taken) const {
    if (!is_map(stms[p]) || taken.contains(p)) return false;
    const Screma& consumer = std::get<Screma>(whole.op);
    if (std::get<Screma>(stms[p].op).widths != consumer.widths || overwrites(stms, p + 1, k)) return false;
    const std::set<Value> captured = free_values(consumer.map, values_);
    for (const Value v : stms[p].pattern) {
      if (captured.contains(v)) return false;
      const auto found = users.users.find(v);
      if (found == users.users.end()) continue;
      for (const std::size_t user : found->second)
        if (user != k && !taken.contains(user)) return false;
    }
    return true;
  }

  Stm merged(const Stm& first, const Stm& second) {
    const Screma& producer = std::get<Screma>(first.op);
    const Screma& consumer = std::get<Screma>(second.op);
    Substitution indices, rows;
    for (const auto& [index, same] : ranges::views::zip(producer.indices, consumer.indices))
      indices.insert_or_assign(index, Operand(same));
    const Lambda before = copy_fresh(producer.map, indices, values_, values_);
    Screma both{.widths = consumer.widths, .indices = consumer.indices, .inputs = producer.inputs};
    both.map.params = before.params;
    for (std::size_t n = 0; n < consumer.inputs.size(); ++n) {
      const auto made = std::ranges::find(first.pattern, consumer.inputs[n]);
      if (made == first.pattern.end()) {
        both.inputs.push_back(consumer.inputs[n]);
        both.map.params.push_back(consumer.map.params[n]);
        continue;
      }
      rows.insert_or_assign(consumer.map.params[n],
                            before.body->results[static_cast<std::size_t>(made - first.pattern.begin())]);
    }
    const BodyPtr behind = copy_fresh(consumer.map.body, rows, values_, values_);
    std::vector<Stm> stms = before.body->stms;
    stms.insert(stms.end(), behind->stms.begin(), behind->stms.end());
    both.map.body = make_body(std::move(stms), behind->results);
    Stm result = second;
    result.op = std::move(both);
    for (const Value check : first.certificates)
      if (std::ranges::find(result.certificates, check) == result.certificates.end())
        result.certificates.push_back(check);
    result.attributes.insert(result.attributes.end(), first.attributes.begin(), first.attributes.end());
    return result;
  }

  const Replicated& replicated_;
  ValueTable& values_;
  std::vector<Refusal>& refused_;
};

}  // namespace

BodyPtr group_attention(const BodyPtr& body, const Replicated& replicated, ValueTable& values,
                        std::vector<Refusal>& refused) {
  return Grouper(replicated, values, refused).body(body);
}

}  // namespace apl
