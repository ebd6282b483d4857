#include "passes/place_memory/known_sizes.h"

#include <algorithm>

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
  SizeFacts facts;
  for (const Value symbol : symbols) {
    const auto found = by_newest_.find(symbol);
    if (found == by_newest_.end()) continue;
    for (const Mark at : found->second) {
      if (at >= mark) break;
      if (known_[at].symbol()) {
        facts.at_least(symbol, 0);
      } else if (std::ranges::includes(symbols, symbols_of(known_[at]))) {
        facts.non_negative(known_[at]);
      }
    }
  }
  return prove_non_negative(question, facts) == Proof::yes;
}

}  // namespace apl::memory
