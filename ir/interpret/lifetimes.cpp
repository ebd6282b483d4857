#include "ir/interpret/lifetimes.h"

#include <algorithm>
#include <map>

#include "ir/walk.h"

namespace apl::interpreter {
namespace {

class Planner {
 public:
  Planner(const Function& function, FunctionLifetimes& lifetimes) : values_(function.values), lifetimes_(lifetimes) {}

  // Gives every array that the body reads, nested bodies included.
  std::vector<Value> body(const Body& body, const std::vector<Value>& params);

 private:
  struct Reads {
    std::vector<Value> direct;
    std::vector<Value> nested;
  };

  // Arrays bound to a block by their type hold nothing of their own: the block's contents stay in any case.
  bool counts(Value v) const { return values_.type(v).is_array() && !values_.type(v).memory; }
  Reads reads(const Stm& stm);
  std::vector<Value> nested(const Op& op);

  const ValueTable& values_;
  FunctionLifetimes& lifetimes_;
};

void append(std::vector<Value>& to, const std::vector<Value>& from) { to.insert(to.end(), from.begin(), from.end()); }

void make_unique(std::vector<Value>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

std::vector<Value> Planner::nested(const Op& op) {
  std::vector<Value> all;
  if (is_branch(op)) {
    for (const BodyPtr& branch : branches(op)) append(all, body(*branch, {}));
  } else if (const Loop* loop = std::get_if<Loop>(&op)) {
    append(all, body(*loop->body, loop->params));
  } else if (const Screma* screma = std::get_if<Screma>(&op)) {
    append(all, body(*screma->map.body, screma->map.params));
    for (const ReduceOp& reduce : screma->reduces) append(all, body(*reduce.op.body, reduce.op.params));
  } else if (const Scatter* scatter = std::get_if<Scatter>(&op)) {
    append(all, body(*scatter->map.body, scatter->map.params));
    if (scatter->op) append(all, body(*scatter->op->op.body, scatter->op->op.params));
  } else if (const SegOp* seg = std::get_if<SegOp>(&op)) {
    append(all, body(*seg->body, {}));
  } else if (const CopyTile* copy = std::get_if<CopyTile>(&op)) {
    if (copy->map) append(all, body(*copy->map->body, copy->map->params));
  } else if (const TileContract* tile = std::get_if<TileContract>(&op)) {
    append(all, body(*tile->map.body, tile->map.params));
    append(all, body(*tile->reduce.op.body, tile->reduce.op.params));
  }
  return all;
}

Planner::Reads Planner::reads(const Stm& stm) {
  Reads reads;
  for_each_use(stm.op, [&](Value v) {
    if (counts(v)) reads.direct.push_back(v);
  });
  reads.nested = nested(stm.op);
  return reads;
}

std::vector<Value> Planner::body(const Body& body, const std::vector<Value>& params) {
  BodyLifetimes lifetimes;
  std::map<Value, std::ptrdiff_t> last_read;  // of the arrays bound here; -1: before the first statement
  for (Value param : params)
    if (counts(param)) last_read[param] = -1;
  std::vector<Value> all;
  std::vector<Reads> reads_of;
  for (std::size_t k = 0; k < body.stms.size(); ++k) {
    const Stm& stm = body.stms[k];
    Reads reads = this->reads(stm);
    for (const std::vector<Value>* group : {&reads.direct, &reads.nested}) {
      for (Value v : *group)
        if (auto found = last_read.find(v); found != last_read.end()) found->second = static_cast<std::ptrdiff_t>(k);
      append(all, *group);
    }
    for (Value v : stm.pattern)
      if (counts(v)) last_read[v] = static_cast<std::ptrdiff_t>(k);
    reads_of.push_back(std::move(reads));
  }
  const auto kept = static_cast<std::ptrdiff_t>(body.stms.size());
  lifetimes.take_result.resize(body.results.size());
  for (std::size_t k = body.results.size(); k-- > 0;) {
    if (!body.results[k].is_value() || !counts(body.results[k].value())) continue;
    Value v = body.results[k].value();
    all.push_back(v);
    auto found = last_read.find(v);
    lifetimes.take_result[k] = found != last_read.end() && found->second != kept;
    if (found != last_read.end()) found->second = kept;
  }
  lifetimes.stms.resize(body.stms.size());
  for (auto [v, k] : last_read) {
    if (k == kept) continue;
    if (k < 0) {
      lifetimes.dead_at_start.push_back(v);
      continue;
    }
    const auto at = static_cast<std::size_t>(k);
    lifetimes.stms[at].dead_after.push_back(v);
    const Reads& reads = reads_of[at];
    const bool once = std::count(reads.direct.begin(), reads.direct.end(), v) == 1;
    if (once && std::find(reads.nested.begin(), reads.nested.end(), v) == reads.nested.end())
      lifetimes.stms[at].movable.push_back(v);
  }
  make_unique(all);
  lifetimes_.bodies[&body] = std::move(lifetimes);
  return all;
}

}  // namespace

FunctionLifetimes find_lifetimes(const Function& function) {
  FunctionLifetimes lifetimes;
  lifetimes.is_scalar.resize(function.values.size());
  for (std::uint32_t id = 0; id < function.values.size(); ++id)
    lifetimes.is_scalar[id] = function.values.type(Value{id}).is_scalar();
  Planner(function, lifetimes).body(*function.body, function.params);
  find_overwrites(function, lifetimes);
  return lifetimes;
}

}  // namespace apl::interpreter
