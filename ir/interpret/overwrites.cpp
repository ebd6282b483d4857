// Where host code of the memory stage could overwrite what is read again: arrays that share a block with what a
// statement writes, and must outlive it. Whether they overlap is seen when the statement has run.
#include <algorithm>
#include <map>

#include "ir/interpret/lifetimes.h"
#include "ir/node_info.h"
#include "ir/walk.h"

namespace apl::interpreter {
namespace {

class Overwrites {
 public:
  Overwrites(const Function& function, FunctionLifetimes& lifetimes) : function_(function), lifetimes_(lifetimes) {}

  void run() {
    for (std::uint32_t id = 0; id < function_.values.size(); ++id)
      if (const auto& where = function_.type(Value{id}).memory) arrays_[where->block].push_back(Value{id});
    if (arrays_.empty()) return;
    for (const Value param : function_.params) bound_[param] = 0;
    ++clock_;
    enter(*function_.body);
    for (const Write& write : writes_) note(write);
  }

 private:
  struct Span {
    std::size_t begin, end;
  };
  struct Write {
    const Body* body;
    std::size_t statement;
    Value array;
    Span span;
  };

  // A renaming is how an update in place ends: the old name is read there last.
  void use(Value v) {
    if (!is_renaming_) last_[v] = clock_;
  }

  void results(const Body& body) {
    for (const Operand& x : body.results)
      if (x.is_value()) use(x.value());
  }

  void enter(const Body& body) {
    for (std::size_t k = 0; k < body.stms.size(); ++k) statement(body, k);
    results(body);
    ++clock_;
  }

  void read_inside(const Op& op) {
    for_each_body(op, [&](const BodyPtr& inner) {
      for (const Stm& stm : inner->stms) {
        for_each_use(stm.op, [&](Value v) { use(v); });
        read_inside(stm.op);
      }
      results(*inner);
    });
  }

  void statement(const Body& body, std::size_t k) {
    const Stm& stm = body.stms[k];
    const std::size_t begin = clock_;
    is_renaming_ = get_if<Use>(stm) != nullptr;
    for_each_use(stm.op, [&](Value v) { use(v); });
    is_renaming_ = false;
    ++clock_;
    const Loop* loop = get_if<Loop>(stm);
    const std::vector<BodyPtr> bodies = branches(stm.op);
    if (loop) {
      for (const Value param : loop->params) bound_[param] = begin;
      enter(*loop->body);
      loops_.push_back({begin, clock_});
    } else if (!bodies.empty()) {
      for (const BodyPtr& inner : bodies) enter(*inner);
    } else {
      read_inside(stm.op);
    }
    const std::size_t end = clock_++;
    for (std::size_t r = 0; r < stm.pattern.size(); ++r) {
      const Value v = stm.pattern[r];
      bound_[v] = end;
      if (get_if<Scratch>(stm)) scratch_.push_back(v);
      if (!function_.type(v).memory) continue;
      if (loop) {
        writes_.push_back({&body, k, loop->params[r], {begin, end}});
      } else if (!bodies.empty()) {
        const auto stays = [&](const BodyPtr& inner) {
          const Operand& x = inner->results[r];
          return x.is_value() && *function_.type(x.value()).memory == *function_.type(v).memory;
        };
        if (!std::ranges::all_of(bodies, stays)) writes_.push_back({&body, k, v, {begin, end}});
      } else if (get_if<Copy>(stm) || (node_info(stm.op).effect == Effect::none && !viewed(stm.op))) {
        writes_.push_back({&body, k, v, {begin, end}});
      }
    }
  }

  void note(const Write& write) {
    for (const Value v : arrays_.at(function_.type(write.array).memory->block)) {
      const auto bound = bound_.find(v), last = last_.find(v);
      if (v == write.array || bound == bound_.end() || last == last_.end() || bound->second > write.span.begin)
        continue;
      if (std::find(scratch_.begin(), scratch_.end(), v) != scratch_.end()) continue;
      // Read after it; or in the next round of a loop outside of which it is made.
      std::size_t from = write.span.end + 1;
      for (const Span& loop : loops_)
        if (loop.begin > bound->second && loop.begin <= write.span.begin && write.span.end <= loop.end)
          from = std::min(from, loop.begin + 1);
      if (last->second >= from)
        lifetimes_.bodies.at(write.body).stms[write.statement].kept.emplace_back(write.array, v);
    }
  }

  const Function& function_;
  FunctionLifetimes& lifetimes_;
  std::size_t clock_ = 0;
  bool is_renaming_ = false;
  std::vector<Span> loops_;
  std::vector<Value> scratch_;  // undefined until written
  std::vector<Write> writes_;
  std::map<Value, std::size_t> bound_, last_;
  std::map<Value, std::vector<Value>> arrays_;  // by block
};

}  // namespace

void find_overwrites(const Function& function, FunctionLifetimes& lifetimes) { Overwrites(function, lifetimes).run(); }

}  // namespace apl::interpreter
