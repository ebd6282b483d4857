// Sections of a matrix that is known when the program is compiled (docs/constant.md): each has some rows, whose
// non-zeros are code. L section 5 calls a section a thread block function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/sparse_arguments.h"

namespace apl {

// One column that a piece uses: a row of B, which is read once.
struct SectionColumn {
  struct Term {
    std::int32_t row;      // of the section
    std::int64_t nonzero;  // of the matrix
  };
  std::int32_t column = 0;
  std::vector<Term> terms;  // rows rise
};

struct Section {
  std::vector<std::int32_t> rows;                  // of the matrix, none is empty
  std::vector<std::vector<SectionColumn>> pieces;  // columns rise through all of them
  std::int64_t loads() const;                      // columns
  std::int64_t terms() const;                      // non-zeros
};

struct Sections {
  std::vector<Section> sections;  // those with most terms first
  std::vector<std::int32_t> empty_rows;
};

// Sections of `rows` rows (the last may have fewer). The longest row that is left begins one; then those that share
// most columns with it, and of these the ones of the nearest length. A section is cut into `pieces` pieces of about as
// many terms, and into more where one would have over `most_terms`: such code is left by the instruction cache.
Sections make_sections(const HostCsr& matrix, std::int64_t rows, std::int64_t pieces, std::int64_t most_terms);

// Terms of a piece, at most, by default.
inline constexpr std::int64_t kMostTerms = 4096;

}  // namespace apl
