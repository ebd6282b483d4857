// The six primitives that turn a sparse matrix into tiles (STile, table 2) as a small algebra: a composition is a list
// of them, applied from left to right, and has a text:
//   divide(rows, 16) > reorder(columns) > divide(columns, 16)        blocks of 16 by 16 of condensed columns
//   squeeze > flatten > split(32) > divide(rows, 1)                  segments of 32 non-zeros
// This is the definition that the search's tiles are held against, written to be read; the search itself never makes
// the lists of points that are made here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "passes/sparse/matrix.h"

namespace apl::sparse {

enum class Axis : std::uint8_t { rows, columns };

enum class Primitive : std::uint8_t {
  reorder,  // rows (or columns) by number of non-zeros, most first; of equals the first stays first
  divide,   // parts of so many rows (or columns)
  squeeze,  // only non-zeros are kept: rows become lists, empty rows go
  split,    // lists become pieces of at most the largest size; each goes to the smallest size that holds it
  pad,      // every list gets the length of its size, without `split` that of the longest
  flatten,  // all lists become one
};

struct Step {
  Primitive primitive = Primitive::squeeze;
  Axis axis = Axis::rows;           // reorder, divide, pad
  std::vector<std::int64_t> sizes;  // divide: one, or one for each size of the split before; split: rising

  bool operator==(const Step&) const = default;
};

// What a tile is stored as: with its zeros, as ELL rows of one length, as a segment of non-zeros.
enum class Format : std::uint8_t { block, ell, one_d };
std::string_view to_text(Format format);

struct Composition {
  std::vector<Step> steps;

  Format format() const;
  bool operator==(const Composition&) const = default;
};

std::string to_text(const Composition& composition);
// Code command.bad-argument: unknown words, sizes below 1, and steps that cannot follow each other, such as dividing
// columns that `squeeze` has removed.
Result<Composition> parse_composition(std::string_view text);

// The named formats of section 3.1.
Composition bsr_format(std::int64_t size);
Composition condensed_format(std::int64_t height = 16, std::int64_t width = 16);
// Columns in parts of `columns`; ELL rows of 1, 2, 4 .. `widest`; `elements` elements in each tile.
Composition hyb_format(std::int64_t columns, std::int64_t widest, std::int64_t elements);
Composition ell_format();
Composition one_d_format(std::int64_t run);

struct Point {
  std::int32_t row = 0, column = 0;
  auto operator<=>(const Point&) const = default;
};

struct Tile {
  Format format = Format::block;
  // Of a block its rows and columns, in order; fewer than height and width at the matrix' edges. Of ELL one row a list.
  std::vector<std::int32_t> rows, columns;
  std::int64_t height = 0, width = 0;  // elements stored: height * width
  std::vector<Point> points;           // the non-zeros in it, list by list
  int level = 1;                       // STile, definition 7

  std::int64_t stored() const { return height * width; }
};

// The tiles that have a non-zero, in order. Of the matrix only the pattern counts.
std::vector<Tile> apply(const Composition& composition, const Csr& matrix);

}  // namespace apl::sparse
