// Where host code of the memory stage could overwrite what is read again: arrays that share a block with what a
// statement writes, and must outlive it. Whether they overlap is seen when the statement has run.
#include <algorithm>
#include <map>
#include <set>

#include "ir/interpret/lifetimes.h"
#include "ir/node_info.h"
#include "ir/reads.h"
#include "ir/walk.h"

namespace apl::interpreter {
namespace {

class Overwrites {
 public:
  // Another name is how an update in place ends: the old one is not read there.
  Overwrites(const Function& function, FunctionLifetimes& lifetimes)
      : function_(function), lifetimes_(lifetimes), reads_(function, Reads::Renaming::is_no_read) {
    for_each_stm(*function.body, [&](const Stm& stm) {
      if (get_if<Scratch>(stm)) scratch_.insert(stm.pattern.begin(), stm.pattern.end());
    });
  }

  void run() {
    for (std::uint32_t id = 0; id < function_.values.size(); ++id)
      if (const auto& where = function_.type(Value{id}).memory) arrays_[where->block].push_back(Value{id});
    if (!arrays_.empty()) enter(*function_.body);
  }

 private:
  void enter(const Body& body) {
    for (std::size_t k = 0; k < body.stms.size(); ++k) statement(body, k);
  }

  void statement(const Body& body, std::size_t k) {
    const Stm& stm = body.stms[k];
    const Loop* loop = get_if<Loop>(stm);
    const std::vector<BodyPtr> bodies = branches(stm.op);
    if (loop) enter(*loop->body);
    for (const BodyPtr& inner : bodies) enter(*inner);
    for (std::size_t r = 0; r < stm.pattern.size(); ++r) {
      const Value v = stm.pattern[r];
      if (!function_.type(v).memory) continue;
      if (loop) {
        note(body, k, loop->params[r]);
      } else if (!bodies.empty()) {
        const auto stays = [&](const BodyPtr& inner) {
          const Operand& x = inner->results[r];
          return x.is_value() && *function_.type(x.value()).memory == *function_.type(v).memory;
        };
        if (!std::ranges::all_of(bodies, stays)) note(body, k, v);
      } else if (get_if<Copy>(stm) || (node_info(stm.op).effect == Effect::none && !viewed(stm.op))) {
        note(body, k, v);
      }
    }
  }

  // What must outlive the array that statement `k` writes. A loop writes in every iteration: its body reads it again.
  void note(const Body& body, std::size_t k, Value written) {
    const Stm& stm = body.stms[k];
    for (const Value v : arrays_.at(function_.type(written).memory->block)) {
      if (v == written || is_scratch(v)) continue;
      if (get_if<Loop>(stm) ? reads_.in_or_after(stm, v) : reads_.after(stm, v))
        lifetimes_.bodies.at(&body).stms[k].kept.emplace_back(written, v);
    }
  }

  // Whether nothing is in it until it is written.
  bool is_scratch(Value v) const { return scratch_.contains(v); }

  const Function& function_;
  FunctionLifetimes& lifetimes_;
  const Reads reads_;
  std::set<Value> scratch_;
  std::map<Value, std::vector<Value>> arrays_;  // by block
};

}  // namespace

void find_overwrites(const Function& function, FunctionLifetimes& lifetimes) { Overwrites(function, lifetimes).run(); }

}  // namespace apl::interpreter
