// One body while its statements are being fused, and the decisions about pairs of them.
#pragma once

#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "passes/fuse/fuse.h"

namespace apl {

struct FusePolicy {
  bool host = true;               // not inside a lambda: what is not in a map nest here is not parallel
  bool keep_contractions = true;  // leave map nests that end in a reduction as they are
};

class FuseScope {
 public:
  FuseScope(std::vector<Stm> stms, const std::vector<Operand>& results, ValueTable& values,
            const Consumption& consumption, FusePolicy policy);

  std::vector<Stm>& stms() { return stms_; }
  bool alive(std::size_t k) const { return alive_[k]; }
  const FusePolicy& policy() const { return policy_; }

  // The statement that binds `value` here, after merging.
  std::optional<std::size_t> definition(Value value) const;
  // The producers whose mapped results `consumer` streams, directly or with its rows permuted; last first.
  std::vector<std::size_t> producers(std::size_t consumer) const;
  // What the consumer streams, directly or with its rows permuted.
  std::unordered_set<Value> streamed(std::size_t consumer) const;

  struct Vertical {
    Stm producer;  // over the widths of the consumer
    std::vector<Link> links;
    std::vector<bool> kept;
    std::vector<std::size_t> views;  // rearranges between them that the fused statement does itself
  };
  std::variant<Vertical, NotFused> vertical(std::size_t producer, std::size_t consumer);
  // Scremas that stream an array that one of them streams, too, and that may be computed together: `first`, and others
  // after it in the order in which they join. Of very many beside one array that may not join the last ones are not
  // looked at.
  std::vector<std::size_t> siblings(std::size_t first);
  // `stm` stands at the first of them for all from now on.
  void merge_siblings(const std::vector<std::size_t>& joined, Stm stm);

  // `stm` stands at `kept` for both from now on.
  void merge(std::size_t gone, std::size_t kept, Stm stm, const std::vector<std::size_t>& views = {});
  std::vector<Stm> take();

 private:
  std::optional<std::size_t> row_view(std::size_t consumer, Value input) const;
  std::set<Value> read_by_lambdas(const Screma& consumer) const;
  bool needed_elsewhere(Value value, std::size_t consumer) const;
  std::optional<Stm> over_widths(const Stm& producer, const std::vector<Poly>& widths);
  std::optional<NotFused> loses(const Screma& producer, const Screma& consumer, bool keeps_linked) const;
  NotFused late(const Screma& producer, Value result) const;  // the result of an operator
  std::optional<Value> overwritten_between(std::size_t producer, std::size_t consumer) const;
  bool on_scalars(const Screma& screma) const;  // every operator
  // What a Screma may be computed together with.
  struct Likeness {
    bool flat, maps, reduces, on_scalars;
  };
  Likeness likeness(const Screma& screma) const;
  void index_users(std::size_t k);

  std::vector<Stm> stms_;
  std::unordered_set<Value> returned_;
  ValueTable& values_;
  const Consumption& consumption_;
  FusePolicy policy_;
  DependenceGraph graph_;
  std::vector<bool> alive_;
  struct Definition {
    std::size_t stm, result;
  };
  void define(std::size_t k);
  std::unordered_map<Value, Definition> definitions_;
  std::unordered_map<Value, std::vector<std::size_t>> users_;  // may hold statements that are gone
  std::unordered_map<Value, std::set<std::size_t>> streamers_;
};

}  // namespace apl
