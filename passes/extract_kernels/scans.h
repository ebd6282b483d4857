// Scans in parallel, at the top of a function or inside maps.
#pragma once

#include <optional>
#include <vector>

#include "passes/extract_kernels/chunks.h"

namespace apl {

// Operators on scalars that all scan.
bool scans_scalars(const Screma& screma, const ValueTable& values);

// The statements of a scan, and of the rows that it maps, the last of which bind the pattern of `stm`.
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

}  // namespace apl
