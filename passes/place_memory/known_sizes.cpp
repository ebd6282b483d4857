#include "passes/place_memory/known_sizes.h"

#include <algorithm>
#include <span>

namespace apl::memory {
namespace {

std::set<Value> symbols_of(const Poly& poly) {
  std::set<Value> symbols;
  poly.for_each_symbol([&](Value v) { symbols.insert(v); });
  return symbols;
}

}  // namespace

void KnownSizes::non_negative(const Poly& size) {
  const std::set<Value> symbols = symbols_of(size);
  if (symbols.empty() || !all_.insert(size).second) return;
  by_newest_[*symbols.rbegin()].push_back(known_.size());
  known_.push_back(size);
}

void KnownSizes::release(Mark mark) {
  for (; known_.size() > mark; known_.pop_back()) {
    by_newest_[*symbols_of(known_.back()).rbegin()].pop_back();
    all_.erase(known_.back());
  }
}

bool KnownSizes::surely_non_negative(const Poly& question, Mark mark) const {
  if (const auto number = question.constant()) return *number >= 0;
  const std::set<Value> symbols = symbols_of(question);
  std::vector<Poly> asked;
  for (const Value symbol : symbols) {
    const auto found = by_newest_.find(symbol);
    if (found == by_newest_.end()) continue;
    for (const Mark at : found->second) {
      if (at >= mark) break;
      if (known_[at].symbol() || std::ranges::includes(symbols, symbols_of(known_[at]))) asked.push_back(known_[at]);
    }
  }
  const std::size_t facts_count = asked.size();
  asked.push_back(question);
  const auto [answer, is_new] = answers_.try_emplace(std::move(asked), false);
  if (is_new) {
    SizeFacts facts;
    for (const Poly& fact : std::span(answer->first).first(facts_count)) {
      if (const auto symbol = fact.symbol())
        facts.at_least(*symbol, 0);
      else
        facts.non_negative(fact);
    }
    answer->second = prove_non_negative(question, facts) == Proof::yes;
  }
  return answer->second;
}

}  // namespace apl::memory
