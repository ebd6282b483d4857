// The kernels of one function.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"
#include "passes/analysis/consumption.h"
#include "passes/extract_kernels/checks.h"
#include "passes/extract_kernels/distribute.h"
#include "passes/extract_kernels/filters.h"
#include "passes/extract_kernels/interchange.h"
#include "passes/extract_kernels/remarks.h"
#include "passes/extract_kernels/segment_order.h"
#include "passes/extract_kernels/sparse_sums.h"
#include "passes/pass.h"

namespace apl {

class Extractor {
 public:
  Extractor(Function& function, const PassContext& context)
      : function_(function), context_(context), remarks_(function, context), consumption_(function, nullptr) {}

  void run();

 private:
  // Of extract_kernels.cpp.
  BodyPtr body(BodyPtr old);
  // Scalars that only kernels read stay on the device.
  BodyPtr with_device_scalars(const BodyPtr& body);
  // Scans and reductions of one operation come apart where a scatter then becomes a filter; null: nowhere.
  BodyPtr filters_apart(const Body& body, const BodyUses& uses, std::size_t first, const std::set<std::size_t>& taken);
  void extract(const Stm& stm, std::vector<Stm>& stms, bool& changed);
  Stm statement(const Stm& stm, bool& changed);
  // A scan and the scatter whose positions it says, as one kernel on GPUs, and without places in memory on CPUs.
  std::optional<Filter> filter(const Body& body, const BodyUses& uses, std::size_t first,
                               const std::set<std::size_t>& taken, std::vector<Stm>& stms);
  // A reduction or scan at the top whose operators work on scalars.
  std::optional<std::vector<Stm>> reduction(const Stm& stm);
  void map_nest(const Stm& stm, std::vector<Stm>& stms);
  // The nest without checks where they all pass; else the nest as it is, which says what is wrong.
  void guarded_nest(const Stm& stm, const Unchecked& unchecked, std::vector<Stm>& stms);
  void make_nest(const Stm& stm, std::vector<Stm>& stms);
  // A nest that makes rows from rows of a sparse operand has no version in one kernel, nor one with checks inside:
  // sparsify would have to make the operand dense for it.
  bool sparse_rows_apart(const Stm& stm, std::vector<Stm>& stms);
  // What is inside in parallel, too; nullopt: there is nothing beside a single map.
  std::optional<std::vector<Stm>> taken_apart(const Stm& stm, const Stm& flat);
  void scatter(const Stm& stm, std::vector<Stm>& stms);
  // In two levels, by blocks or by a few threads.
  void histogram(const Stm& stm, const Stm& kernel, std::vector<Stm>& stms);
  Stm serial(const Stm& stm, const Screma& screma);
  // "mm.chunks", then "mm.chunks_2".
  std::string numbered(int count, std::string_view name) const;
  Chunks next_chunks();
  // The same for segments: a reduction goes by columns if that reads neighbouring elements.
  Chunks chunks_for(const Stm& stm, const Segments& segments);

  // Of versions.cpp.
  // The map with values of its own for its results, as the body of an alternative needs them.
  Stm with_own_results(Stm flat);
  // What `taken_apart` gives, or the kernel of the whole map.
  BodyPtr apart_or_whole(const Stm& stm, const Stm& flat);
  // Attentions whose parts are several maps as one map each. With sparse operands they are sparsify's.
  void group_attentions();
  bool has_sparse_operands() const;
  // An attention in one kernel that holds no scores in memory, where its rows are short enough and queries many enough;
  // else the nest is taken apart.
  bool streamed(const Stm& stm, const Stm& flat, std::vector<Stm>& stms);
  // A reduction whose elements several indices use goes through tiles of them, where there are indices enough; else it
  // is done in chunks.
  bool in_pairs(const Stm& stm, const Stm& flat, std::vector<Stm>& stms);
  // What is done with each row in one kernel, where rows are short enough; else the nest is taken apart.
  bool in_rows(const Stm& stm, const Stm& flat, std::vector<Stm>& stms);
  // For a few threads a nest is one kernel, and what is inside is sequential. But a contraction inside, a product of
  // matrices for each head, is worth a kernel of its own: there it can be tiled and packed. So the nest is taken apart
  // if contractions come of it, and where one of them has enough to do.
  bool around_contractions(const Stm& stm, const Stm& flat, std::vector<Stm>& stms);
  // `split`: what is taken apart. Where that needs an array of pairs, of `pairs` elements in all, it has to be small
  // enough.
  bool around_contractions(const Stm& stm, const Stm& split, const Stm& flat, const std::optional<Poly>& pairs,
                           std::vector<Stm>& stms);
  // Whether there is a reduction in a map in the body, or one of rows: all that can become a contraction with a dim of
  // its own.
  bool has_reduction_in_map(const Body& body, bool in_map) const;
  // Multiplications of one batch of each contraction, if they are known before `made`.
  void contractions_of(const std::vector<Stm>& stms, const std::set<Value>& made, std::vector<Poly>& work) const;

  Function& function_;
  const PassContext& context_;
  KernelRemarks remarks_;
  const Consumption consumption_;  // of the function as it was
  Replicated replicated_;
  HostViews views_;
  SparseValues sparse_arrays_;
  int chunked_ = 0, histograms_ = 0, nests_ = 0, rows_ = 0, attentions_ = 0, pairs_ = 0;  // numbered so far
  bool streams_ = false;                                                                  // attentions are looked for
};

}  // namespace apl
