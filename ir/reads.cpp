#include "ir/reads.h"

#include <algorithm>

#include "ir/walk.h"

namespace apl {

Reads::Reads(const Function& function, Renaming renaming) : renaming_(renaming) { enter(*function.body, nullptr, 0); }

void Reads::enter(const Body& body, const Place* around, std::size_t number) {
  for (const Stm& stm : body.stms) statement(stm, around, number);
  for (const Operand& x : body.results)
    if (x.is_value()) read(x.value());
  ++clock_;
}

void Reads::statement(const Stm& stm, const Place* around, std::size_t number) {
  Place& place = places_[&stm];
  place = {.begin = clock_, .repeats = !is_branch(stm.op), .around = around, .body = number};
  if (renaming_ == Renaming::is_read || !get_if<Use>(stm)) for_each_use(stm.op, [&](Value v) { read(v); });
  for_each_binder(stm.op, [&](Value v) { bound_[v] = clock_; });
  ++clock_;
  std::size_t next = 0;
  for_each_body(stm.op, [&](const BodyPtr& body) {
    enter(*body, &place, next++);
    place.ends.push_back(clock_ - 1);
  });
  place.end = clock_++;
  for (const Value v : stm.pattern) bound_[v] = place.end;
}

bool Reads::after(const Stm& stm, Value v) const {
  const Place& place = places_.at(&stm);
  return again(place, place.end, v);
}

bool Reads::in_or_after(const Stm& stm, Value v) const {
  const Place& place = places_.at(&stm);
  return again(place, place.begin, v);
}

bool Reads::again(const Place& place, std::size_t position, Value v) const {
  const auto found = reads_.find(v);
  if (found == reads_.end()) return false;
  const auto bound = bound_.find(v);  // none: a parameter of the function
  const std::size_t since = bound == bound_.end() ? 0 : bound->second;
  if (since >= position) return false;
  // Whether one is read after `from`, and not after `to`.
  const auto read_in = [&](std::size_t from, std::size_t to) {
    const auto next = std::ranges::upper_bound(found->second, from);
    return next != found->second.end() && *next <= to;
  };
  std::size_t from = position;
  for (const Place *inner = &place, *outer = place.around; outer != nullptr; inner = outer, outer = outer->around) {
    if (outer->repeats) {
      if (since < outer->begin && read_in(outer->begin, outer->end)) return true;
      continue;
    }
    if (read_in(from, outer->ends[inner->body])) return true;
    from = outer->end;
  }
  return read_in(from, clock_);
}

}  // namespace apl
