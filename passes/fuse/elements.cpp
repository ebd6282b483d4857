// Elements that a Screma reads by index where it could stream them.
//
//   let {ys} = map(i < n, {xs}, f)
//   let {zs} = map(j < n, {}, \{} -> { let {y} = ys[j] ... })
// =>
//   let {zs} = map(j < n, {ys}, \{y} -> { ... })
//
// The index must be that of the Screma itself, in all its dims, and the array made over the same widths. Inside of
// inner Scremas too: what is left of the index then reads the row, which the same rule may stream in its turn.
#include <algorithm>
#include <set>

#include "ir/walk.h"
#include "passes/fuse/fuse.h"

namespace apl {

namespace {

class ElementStreamer {
 public:
  ElementStreamer(const std::vector<Stm>& stms, ValueTable& values, const Consumption& consumption)
      : values_(values), consumption_(consumption) {
    for (const Stm& stm : stms)
      if (std::holds_alternative<Screma>(stm.op)) made_.insert(stm.pattern.begin(), stm.pattern.end());
  }

  bool run(Stm& stm) {
    const Screma* screma = get_if<Screma>(stm);
    if (screma == nullptr || screma->widths.empty()) return false;
    streamed_ = *screma;
    const BodyPtr body = rewrite(screma->map.body);
    if (body == screma->map.body) return false;
    streamed_.map.body = body;
    stm.op = streamed_;
    return true;
  }

 private:
  BodyPtr rewrite(const BodyPtr& old) {
    bool changed = false;
    std::vector<Stm> stms = old->stms;
    for (Stm& stm : stms) {
      if (const Index* index = get_if<Index>(stm); index != nullptr && streams(*index)) {
        stm.op = element(*index);
        changed = true;
        continue;
      }
      stm.op = map_bodies(stm.op, [&](const BodyPtr& inner) {
        BodyPtr rewritten = rewrite(inner);
        changed = changed || rewritten != inner;
        return rewritten;
      });
    }
    return changed ? make_body(std::move(stms), old->results) : old;
  }

  bool streams(const Index& index) const {
    const std::vector<Value>& own = streamed_.indices;
    if (!made_.contains(index.array) || consumption_.consumed(index.array) || index.dims.size() < own.size())
      return false;
    // A check of what is left would tell of another array.
    if (index.checked && index.dims.size() > own.size()) return false;
    const std::vector<Poly>& shape = values_.type(index.array).shape;
    for (std::size_t k = 0; k < own.size(); ++k) {
      const bool here = !index.dims[k].is_slice() && index.dims[k].start == Poly(own[k]);
      if (!here || shape[k] != streamed_.widths[k]) return false;
    }
    return true;
  }

  Op element(const Index& index) {
    const Value row = row_of(index.array);
    const auto rest = index.dims.begin() + static_cast<std::ptrdiff_t>(streamed_.widths.size());
    if (rest == index.dims.end()) return Use{Operand(row)};
    return Index{row, {rest, index.dims.end()}};
  }

  Value row_of(Value array) {
    const auto input = std::ranges::find(streamed_.inputs, array);
    if (input != streamed_.inputs.end())
      return streamed_.map.params[static_cast<std::size_t>(input - streamed_.inputs.begin())];
    const Value row = values_.add(values_.type(array).row(streamed_.widths.size()), values_.name(array));
    streamed_.inputs.push_back(array);
    streamed_.map.params.push_back(row);
    return row;
  }

  ValueTable& values_;
  const Consumption& consumption_;
  std::set<Value> made_;  // by Scremas of this body
  Screma streamed_;
};

}  // namespace

bool stream_elements(std::vector<Stm>& stms, ValueTable& values, const Consumption& consumption) {
  ElementStreamer streamer(stms, values, consumption);
  bool changed = false;
  for (Stm& stm : stms) changed = streamer.run(stm) || changed;
  return changed;
}

}  // namespace apl
