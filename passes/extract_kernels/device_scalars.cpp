// Scalars that a kernel makes and only kernels read stay on the device: the host need not wait for them.
//
//   let {rs : [1]f32} = segmap(thread) (c < 1) team(256) { .. }
//   let {s : f32} = rs[0]
//   let {mean : f32} = div(s, n)
//   let {ys : [n]f32} = segmap(thread) (i < n) { let {x : f32} = xs[i] let {y : f32} = sub(x, mean) return {returns y}
//   }
// =>
//   let {ys : [n]f32} =
//     segmap(thread) (i < n) {
//       let {s : f32} = rs[0] let {mean : f32} = div(s, n)
//       let {x : f32} = xs[i] let {y : f32} = sub(x, mean) return {returns y}
//     }
//
// All threads read the same element, which a cache gives to them. It moves where the kernel takes one thread an index,
// or shares a reduction or scan, and has no reduction of its own otherwise: such a nest may be a contraction, whose
// matcher should find it as it is. A size of an array, a number of rounds, and what the host itself looks at, come to
// the host as before; so does what is read of an array that may be overwritten.
#include "passes/extract_kernels/device_scalars.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/team.h"
#include "ir/walk.h"

namespace apl {

namespace {

bool is_computed(const Stm& stm, const ValueTable& values) {
  const bool scalar = get_if<Unary>(stm) || get_if<Binary>(stm) || get_if<Compare>(stm) || get_if<Convert>(stm) ||
                      get_if<SizeExpr>(stm) || get_if<Use>(stm);
  return scalar && values.type(stm.pattern.front()).is_scalar() && !can_fail(stm.op, values);
}

// An element of what a kernel of the body made.
bool is_read(const Stm& stm, const std::set<Value>& made, const ValueTable& values) {
  const Index* index = get_if<Index>(stm);
  return index != nullptr && !index->checked && made.contains(index->array) &&
         values.type(stm.pattern.front()).is_scalar() &&
         std::ranges::all_of(index->dims, [](const DimIndex& dim) { return dim.start.constant().has_value(); });
}

// Whether the kernel may compute the scalar for itself.
bool may_take(const SegOp& kernel, Value scalar, const ValueTable& values) {
  if (kernel.level != SegLevel::thread || kernel.schedule || kernel.sparse || kernel.rows) return false;
  bool reduces = false, shapes = false;
  const Stm* shared = kernel.team ? team_reduction(kernel) : nullptr;
  for_each_stm(*kernel.body, [&](const Stm& stm) {
    const bool is_shared = shared != nullptr && stm.pattern == shared->pattern;
    reduces = reduces || get_if<Loop>(stm) || (get_if<Screma>(stm) && !is_shared);
    for (const Value v : stm.pattern)
      for_each_use(values.type(v), [&](Value size) { shapes = shapes || size == scalar; });
    const bool computes = is_computed(stm, values) || get_if<If>(stm) || get_if<Index>(stm);
    if (!computes) for_each_use(stm.op, [&](Value used) { shapes = shapes || used == scalar; });
  });
  return !reduces && !shapes;
}

class Keeper {
 public:
  Keeper(const BodyPtr& body, ValueTable& values) : body_(*body), values_(values) {
    for (const Stm& stm : body_.stms) {
      for (const Value v : free_values(stm.op, values_)) users_[v].push_back(&stm);
      for (const Value v : stm.pattern) for_each_use(values_.type(v), [&](Value size) { held_by_host_.insert(size); });
      held_by_host_.insert(stm.certificates.begin(), stm.certificates.end());
    }
    for (const Operand& x : body_.results)
      if (x.is_value()) held_by_host_.insert(x.value());
  }

  DeviceScalars run() {
    find();
    if (kept_.empty()) return {};
    for (const Stm* stm : kept_) makers_.emplace(stm->pattern.front(), stm);
    DeviceScalars result;
    std::vector<Stm> stms;
    for (const Stm& stm : body_.stms) {
      if (!kept_.contains(&stm)) {
        stms.push_back(with_scalars(stm));
        continue;
      }
      if (get_if<Index>(stm)) result.gone.push_back(stm);
    }
    result.body = make_body(std::move(stms), body_.results);
    return result;
  }

 private:
  void find() {
    std::set<Value> made, from_device;
    std::vector<const Stm*> candidates;
    for (const Stm& stm : body_.stms) {
      if (get_if<SegOp>(stm)) made.insert(stm.pattern.begin(), stm.pattern.end());
      if (!stm.certificates.empty() || !stm.attributes.empty()) continue;
      bool depends = is_read(stm, made, values_);
      if (!depends && is_computed(stm, values_))
        for_each_use(stm.op, [&](Value v) { depends = depends || from_device.contains(v); });
      if (!depends) continue;
      from_device.insert(stm.pattern.begin(), stm.pattern.end());
      candidates.push_back(&stm);
    }
    // Those behind decide before those that they are computed from.
    for (auto stm = candidates.rbegin(); stm != candidates.rend(); ++stm)
      if (stays(**stm)) kept_.insert(*stm);
    // One that the host computes needs what it is made of there.
    for (bool changed = true; changed;) {
      changed = false;
      for (const Stm* stm : candidates)
        if (kept_.contains(stm) && !stays(*stm)) changed = kept_.erase(stm) != 0;
    }
  }

  // Whether nobody but kernels reads it, and others that stay.
  bool stays(const Stm& stm) const {
    const Value scalar = stm.pattern.front();
    const auto users = users_.find(scalar);
    if (held_by_host_.contains(scalar) || users == users_.end()) return false;
    for (const Stm* other : users->second) {
      if (kept_.contains(other)) continue;
      bool here = false;
      for_each_use(other->op, [&](Value v) { here = here || v == scalar; });
      const SegOp* kernel = get_if<SegOp>(*other);
      if (here || kernel == nullptr || !may_take(*kernel, scalar, values_)) return false;
    }
    return !get_if<Index>(stm) || !may_change(std::get<Index>(stm.op).array);
  }

  // Whether a statement may overwrite the array, or what it is a part of: one that goes elsewhere than to kernels.
  bool may_change(Value array) const {
    const auto users = users_.find(array);
    return held_by_host_.contains(array) ||
           (users != users_.end() && std::ranges::any_of(users->second, [](const Stm* stm) {
              return get_if<SegOp>(*stm) == nullptr && get_if<Index>(*stm) == nullptr;
            }));
  }

  // The kernel, with what it needs before all else.
  Stm with_scalars(const Stm& stm) {
    if (!get_if<SegOp>(stm)) return stm;
    std::set<const Stm*> needed;  // in the body's order
    std::vector<Value> wanted;
    const auto want = [&](const Stm& reader) {
      const std::set<Value> read = free_values(reader.op, values_);
      wanted.insert(wanted.end(), read.begin(), read.end());
    };
    want(stm);
    while (!wanted.empty()) {
      const auto made = makers_.find(wanted.back());
      wanted.pop_back();
      if (made != makers_.end() && needed.insert(made->second).second) want(*made->second);
    }
    if (needed.empty()) return stm;
    std::vector<Stm> before;
    for (const Stm* one : needed) before.push_back(*one);
    const BodyPtr& old = std::get<SegOp>(stm.op).body;
    before.insert(before.end(), old->stms.begin(), old->stms.end());
    Substitution renamed;
    std::vector<Stm> fresh;
    for (std::size_t k = 0; k < before.size(); ++k) {
      Stm own = substitute(before[k], renamed, values_);
      if (k < needed.size()) {
        Value& v = own.pattern.front();
        const Value mine = values_.add(values_.type(v), values_.name(v));
        renamed.insert_or_assign(v, Operand(mine));
        v = mine;
      }
      fresh.push_back(std::move(own));
    }
    Stm result = stm;
    std::vector<Operand> results;
    for (const Operand& x : old->results) results.push_back(substitute(x, renamed));
    std::get<SegOp>(result.op).body = make_body(std::move(fresh), std::move(results));
    return result;
  }

  const Body& body_;
  ValueTable& values_;
  std::map<Value, std::vector<const Stm*>> users_;  // the statements that read it, also inside
  std::set<Value> held_by_host_;                    // sizes of arrays, certificates and results
  std::set<const Stm*> kept_;                       // that no longer stand in the host's code
  std::map<Value, const Stm*> makers_;              // those by what they make
};

}  // namespace

DeviceScalars keep_scalars_on_device(const BodyPtr& body, ValueTable& values) { return Keeper(body, values).run(); }

}  // namespace apl
