// What a map's lambda does, sorted into parts that run one after the other, each for all indices of the map.
#pragma once

#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "ir/module.h"
#include "passes/analysis/contractions.h"
#include "passes/extract_kernels/interchange.h"

namespace apl {

// One operation with parallelism of its own, or neighbouring sequential work.
struct Part {
  std::vector<std::size_t> members;  // statements, in order
  bool parallel = false;             // one statement, which is
  std::vector<Value> exports;        // values that other parts need, or that are results
  std::vector<Operand> extra;        // results of the lambda that no statement makes which is done once
};

class Parts {
 public:
  // `flat`: a map without inputs. Values that are made on the way go to `values`.
  Parts(const Stm& flat, const Replicated& replicated, ValueTable& values);

  const std::vector<Part>& list() const { return parts_; }
  // Whether there is anything to be taken apart: a parallel part.
  bool any_parallel() const;

  // Why reductions are no contractions that can be tiled.
  const std::vector<Refusal>& not_tiled() const { return not_tiled_; }

  // The lambda's statements, some of them taken apart already.
  const std::vector<Stm>& stms() const { return stms_; }
  std::optional<std::size_t> definer(Value v) const;  // which of them makes the value
  bool is_local(Value v) const { return locals_.contains(v); }
  // Statements that are done again wherever they are needed, and values of the others.
  bool is_repeated(std::size_t stm) const;
  bool is_kept(Value v) const;
  // The array outside whose rows, one an index, the value is.
  std::optional<Value> rows_of(Value v) const;
  // The same of a row that the loop around this map lets be overwritten.
  std::optional<Value> adopted(const Stm& stm) const;
  // What a statement reads, directly and through statements that are done again.
  std::set<Value> needs(const Stm& stm) const;
  std::set<Value> through_repeated(std::set<Value> values) const;

 private:
  enum class Kind : std::uint8_t { free, check, work, parallel, adopted };

  void prepare();
  void classify();
  Kind kind_of(const Stm& stm);
  bool is_parallel(const Stm& stm);
  bool spreads(const Stm& stm, const Scatter& scatter, const std::set<Value>& locals) const;
  bool same_operator(const Scatter& scatter, const std::set<Value>& locals) const;
  bool only_scatters(const Loop& loop) const;
  bool contracts(const Stm& reduction);
  void group();
  std::size_t last_work() const;
  std::size_t first_place(const std::set<Value>& needed) const;
  std::optional<std::size_t> part_of(Value v) const;
  std::set<Value> needs(const Part& part) const;
  void merge_irregular();
  void join(std::size_t first, std::size_t last);
  void place_results();
  bool is_exported(Value v, const Part& from) const;

  const Stm& flat_;
  const Screma& map_;
  const Replicated& replicated_;
  ValueTable& values_;
  std::set<Value> locals_;
  std::vector<Stm> stms_;
  std::vector<Kind> kinds_;
  std::unordered_map<Value, std::size_t> definer_;
  std::vector<Part> parts_;
  std::vector<Refusal> not_tiled_;
};

}  // namespace apl
