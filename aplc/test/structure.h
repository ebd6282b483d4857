// What `structure` blocks of programs count, counted in our IR.
//
// The numbers are of Futhark's operations after Futhark's passes. Of those we check what means the same here: SOACs
// after fusion, and kernels by what they came from. Ours are counted after the passes of the standard pipeline up to
// the second `simplify` after `fuse`, and in the remarks of `extract-kernels`.
#pragma once

#include <map>
#include <string>

#include "aplc/driver.h"
#include "ir/module.h"
#include "suite/test_block.h"

namespace aplc {

// Whether our IR has what the stanza counts: pipeline soacs (or none) with paths of Screma, Hist, Loop and If, or gpu
// with SegMap, SegRed, SegScan and SegHist wherever they are.
bool is_portable(const apl::suite::Structure& structure);

using StructureCounts = std::map<std::string, int>;

// The stanza's paths with our counts, and Screma, Hist and Scatter, or SegMap, SegRed, SegScan, SegHist and Scatter. An
// error of a pass is the result's.
apl::Result<StructureCounts> count_structure(const apl::Module& front, const apl::suite::Structure& structure,
                                             const Parameters& parameters);

}  // namespace aplc
