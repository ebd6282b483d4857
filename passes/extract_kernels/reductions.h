// Reductions and scans in parallel, at the top of a function or inside maps.
#pragma once

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

// A reduction beside scans or mapped rows becomes one of its own; anything else stays one statement. What their lambda
// computes is computed by each if it is cheap, else by a map before them.
std::vector<Stm> split_operators(const Stm& stm, ValueTable& values);

// Operators on scalars that all reduce, and no mapped rows; or operators on scalars that all scan.
bool reduces_scalars(const Screma& screma, const ValueTable& values);
bool scans_scalars(const Screma& screma, const ValueTable& values);

// Whether a reduction in a map with these indices reads windows that overlap, as xs[i + k] for indices i of the map and
// k of the reduction.
bool reads_windows(const Screma& reduction, const std::vector<Value>& indices);

// How many chunks `elements` of the operation have on a CPU, of at most `most`: one, unless each has enough of them.
Poly few_chunks(const Screma& screma, const Poly& elements, const Poly& most, const Chunks& chunks, Builder& host);

// What the map function of `screma` gives at position `flat`, row-major over its widths.
std::vector<Operand> element_at(const Screma& screma, Value flat, const Substitution& here, Builder& out);

// The statements of a reduction in chunks, the last of which bind the pattern of `stm`: a scalar a segment.
std::vector<Stm> make_chunked_reduction(const Stm& stm, const Segments& segments, const Chunks& chunks,
                                        ValueTable& values);

// The same for a scan, and the rows that it maps.
std::vector<Stm> make_chunked_scan(const Stm& stm, const Segments& segments, const Chunks& chunks, ValueTable& values);

// A scan at the top and a scatter of its elements in one kernel, if blocks can share them: the arrays that the scatter
// writes; and where it `counts`, how many elements the scan's last one counts, with arrays of as many elements as are
// scanned.
struct ScannedScatter {
  std::vector<Stm> stms;
  Value count;
  std::vector<Value> written;
};
std::optional<ScannedScatter> make_scanned_scatter(const Stm& scan, const Stm& scatter, bool counts,
                                                   const Chunks& chunks, ValueTable& values);

// The indices over `widths` that row-major position `flat` stands for.
std::vector<Value> split_index(const std::vector<Poly>& widths, Value flat, Builder& out);

// What `host` made, as the statements that stand for `stm`: its results get the names that `stm` binds.
std::vector<Stm> bound_to(const Stm& stm, const std::vector<Value>& results, Builder& host);

}  // namespace apl
