// Histograms in two levels: copies of the bins that few threads share, and what becomes of them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "passes/extract_kernels/chunks.h"

namespace apl {

// Why a histogram stays one kernel of one thread an index, if it must.
std::optional<std::string> why_one_level(const Stm& kernel, const ValueTable& values);

// The statements that stand for `kernel`, a histogram of make_scatter_kernel; the last of them bind its pattern.
// `prefix`: what the names of its numbers begin with. `chunks` gives the numbers of the next reduction.
std::vector<Stm> make_block_histogram(const Stm& kernel, const std::string& prefix,
                                      const std::function<Chunks()>& chunks, ValueTable& values);

// The same for a few threads, which have a copy of the bins each.
std::vector<Stm> make_chunked_histogram(const Stm& kernel, const std::string& prefix,
                                        const std::function<Chunks()>& chunks, ValueTable& values);

// Where the threads of a block cannot run the lambda of the scatter `stm`, since it can fail or makes arrays: a map
// that gives what it gives, and a scatter of that.
std::optional<std::pair<Stm, Stm>> map_before_scatter(const Stm& stm, ValueTable& values);

}  // namespace apl
