// Parts of kernels for reductions and scans: chunks of an operation's elements, and threads that share them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/module.h"
#include "ir/walk.h"

namespace apl {

// The maps around an operation: it is done for each index over `widths`. `prefix` makes what it reads of its own.
struct Segments {
  std::vector<Poly> widths;
  std::vector<Value> indices;
  std::vector<Stm> prefix;
};

struct Chunks {
  std::string parameter;     // the name of their number
  std::int64_t most = 0;     // the number unless it is given, over all segments
  bool interleaved = false;  // element k is chunk k mod chunks', where the operators commute
  bool by_columns = false;   // of segments: neighbouring threads fold neighbouring segments, not chunks of one
  // Of a GPU: the name of the largest number of threads that share a chunk; empty: a thread has one for itself.
  std::string team = {};
  std::string blocks = {};  // and of the least number of blocks that share a reduction, or a scan at the top
  // Of a CPU, where one thread folds what the chunks gave: the name of the least number of a chunk's elements.
  std::string least = {};
};

// What is folded: an operation in each segment.
struct ChunkedWork {
  Segments segments;
  Screma screma;
  bool interleaved, by_columns;
};

// ---- elements -------------------------------------------------------------------------------------

// The indices over `widths` that row-major position `flat` stands for.
std::vector<Value> split_index(const std::vector<Poly>& widths, Value flat, Builder& out);
// What the map function of `screma` gives at position `flat`, row-major over its widths.
std::vector<Operand> element_at(const Screma& screma, Value flat, const Substitution& here, Builder& out);

// The operators in a kernel, folding or scanning whatever they did before, with what `here` says of values outside it.
std::vector<ReduceOp> fresh_operators(const Screma& screma, bool scan, const Substitution& here, ValueTable& values);
std::vector<Operand> neutral_elements(const Screma& screma, const Substitution& here);

// ---- numbers of chunks and threads ----------------------------------------------------------------

// Of reductions on GPUs: elements from which on a thread is worth having; threads that share a row even where there are
// many rows, so that they read neighbours.
constexpr std::int64_t kElementsOfThread = 8, kThreadsOfRow = 32;

// How many chunks `elements` of the operation have on a CPU, of at most `most`: one, unless each has enough of them.
Poly few_chunks(const Screma& screma, const Poly& elements, const Poly& most, const Chunks& chunks, Builder& host);
// As many chunks as keep the machine busy, over all segments. Where sums are rounded their number does not depend on
// that of a CPU's threads, so that the results do not; a scan goes over its elements only once where there is one.
Poly many_chunks(const ChunkedWork& work, const Chunks& chunks, Builder& host);
// On GPUs it is a quotient, which kernels are given: as a size it would be computed where it is read, in their loops.
Poly elements_of_chunk(const ChunkedWork& work, const Poly& chunks, Builder& host);

// The largest power of two that is no more than `number`, which is at least 1.
Value power_of_two(const Poly& number, const std::string& name, Builder& host);
// The threads that share `elements`: so many that each has `each` elements. More than a warp only where there are less
// than `threads` otherwise, and more than one, if threads with segments of their own read neighbours, too.
Poly team_of(const Poly& elements, const Poly& segments, const Poly& threads, std::int64_t each, const Poly& most,
             Builder& host, bool neighbours_anyway = false);
// Whether several threads can share the operation in a segment.
bool can_share(const ChunkedWork& work, ValueTable& values);

// ---- kernels --------------------------------------------------------------------------------------

// A kernel over the segments and, if given, one more dim, which the results have last. `fill` gets the values that
// stand in it for the segments'.
using Fill = std::function<std::vector<Operand>(Builder& thread, const Substitution& here)>;
std::vector<Value> kernel_over(const Segments& segments, std::optional<SegDim> own, bool by_columns,
                               const std::vector<std::string>& names, Builder& host, const Fill& fill,
                               const std::optional<Poly>& team = {}, const std::optional<Poly>& blocks = {});

// One array of partial results an operand, of `chunks` in each segment, which so many threads share.
std::vector<Value> fold_chunks(const ChunkedWork& work, const Poly& chunks, const std::vector<std::string>& names,
                               Builder& host, const std::optional<Poly>& team = {});
// The same operators over the `count` partial results of each segment.
ChunkedWork over_parts(const ChunkedWork& work, const std::vector<Value>& parts, const Poly& count, ValueTable& values);
// The partial results of a few chunks, of those of many.
struct FewerChunks {
  ChunkedWork of_parts;
  Poly count;
  std::vector<Value> parts;
};
FewerChunks fold_parts(const ChunkedWork& work, const Poly& many, const std::vector<Value>& parts,
                       const std::vector<std::string>& names, Builder& host);
// The operation itself, in one thread a segment.
std::vector<Value> in_one_thread(const ChunkedWork& work, const std::vector<std::string>& names, Builder& host);
// The whole operation of each segment in a kernel, whose results have a dim of one element behind the segments'.
std::vector<Value> in_blocks(const ChunkedWork& work, const Poly& team, const Poly& blocks,
                             const std::vector<std::string>& names, Builder& host);

// ---- statements around them -----------------------------------------------------------------------

std::vector<Operand> to_operands(const std::vector<Value>& results);
std::vector<std::string> names_of(const std::vector<Value>& pattern, const ValueTable& values);
// The shape of one result a segment and, behind it, dims of its own.
std::vector<Poly> shape_of(const Segments& segments, std::initializer_list<Poly> own = {});
// Where the count is 1, what `one` makes, else what `more` does.
std::vector<Value> if_one(const Poly& count, const std::string& name, const std::vector<std::string>& names,
                          Builder& host, const std::function<std::vector<Operand>(Builder&)>& one,
                          const std::function<std::vector<Operand>(Builder&)>& more);
// The same of chunks of a segment: what they gave is all there is if there is one.
std::vector<Value> if_one_chunk(const Poly& chunks, const std::vector<std::string>& names, Builder& host,
                                const std::function<std::vector<Operand>(Builder&)>& one,
                                const std::function<std::vector<Operand>(Builder&)>& more);
// What `host` made, as the statements that stand for `stm`: its results get the names that `stm` binds.
std::vector<Stm> bound_to(const Stm& stm, const std::vector<Value>& results, Builder& host);

}  // namespace apl
