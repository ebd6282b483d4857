// Proxies of products with a known matrix (L section 5.1; docs/constant.md): programs that take about as long for their
// size, and give wrong results. They rank tiles without compiling all of the code of each.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/sparse/sections.h"

namespace apl {

// Functions, and which one each section of the matrix runs.
struct SectionUses {
  struct Use {
    std::size_t function = 0;
    std::int64_t base = 0;  // is added to the rows of the function's section
  };
  Sections functions;
  std::vector<Use> uses;
  std::int64_t spare_rows = 0;  // of B, behind the last that a function reads: how far it may be moved
};

// Each section runs its own code.
SectionUses own_sections(Sections sections);

// Sections of alike loads and terms run one function, which has the means of both.
SectionUses make_proxy(const HostCsr& matrix, const Sections& sections, std::int64_t rows, std::int64_t pieces,
                       const ProxyOptions& options);

// Two features of a section, as L has them.
struct SectionFeatures {
  double loads = 0, terms = 0;
};
// The cluster of each, at most so many: those are joined whose join adds least to the sum of squared distances from the
// centroids (Ward), of features in units of their means.
std::vector<std::size_t> cluster_sections(const std::vector<SectionFeatures>& features, std::int64_t clusters);

}  // namespace apl
