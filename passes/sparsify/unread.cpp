// Dense copies of sparse arrays are made for everybody, and left out where nobody reads them.
#include "ir/walk.h"
#include "passes/sparsify/sparsify.h"

namespace apl::sparsify {

std::set<Value> values_read(const Body& body, const DenseCopies& copies, const ValueTable& values) {
  std::set<Value> read;
  const auto results = [&](const Body& of) {
    for (const Operand& result : of.results)
      if (result.is_value()) read.insert(result.value());
  };
  std::vector<const Stm*> open;
  results(body);
  for_each_stm(body, [&](const Stm& stm) {
    if (!stm.pattern.empty() && copies.contains(stm.pattern.front())) return open.push_back(&stm);
    for_each_use(stm.op, [&](Value v) { read.insert(v); });
    for_each_body(stm.op, [&](const BodyPtr& inner) { results(*inner); });
  });
  for (bool more = true; more;) {
    const std::size_t before = read.size();
    for (const Stm* stm : open)
      if (read.contains(copies.at(stm->pattern.front())))
        for (const Value v : free_values(stm->op, values)) read.insert(v);
    more = read.size() != before;
  }
  return read;
}

BodyPtr without_unread(const BodyPtr& body, const DenseCopies& copies, const std::set<Value>& read) {
  std::vector<Stm> stms;
  for (const Stm& stm : body->stms) {
    const auto made = stm.pattern.empty() ? copies.end() : copies.find(stm.pattern.front());
    if (made != copies.end() && !read.contains(made->second)) continue;
    stms.push_back(stm);
    if (std::holds_alternative<Loop>(stm.op) || std::holds_alternative<If>(stm.op))
      stms.back().op = map_bodies(stm.op, [&](const BodyPtr& inner) { return without_unread(inner, copies, read); });
  }
  return make_body(std::move(stms), body->results);
}

}  // namespace apl::sparsify
