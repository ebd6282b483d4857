// Random contractions: what one is, how it is drawn from a seed, and its text in Futhark. Any number of operands, dims
// of every class in any order, arrays in any layout and behind views, operators that commute and others that do not.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/scalar.h"
#include "tests/testing.h"

namespace apl::contraction_tests {

// The map function and the reduction's operator with it.
enum class Operator : std::uint8_t {
  sum,          // (+) of products
  widened_sum,  // the same, of narrow elements that are converted first
  scaled_sum,   // the same, with an epilogue
  min_plus,
  max_times,
  first,    // the first product that is not zero: not commutative
  argmin,   // of sums, with its index
  complex,  // (+) of products of two arrays each
  affine,   // composition of x -> a x + b: not commutative
  matrix,   // product of 2x2 matrices: not commutative
};
constexpr int kOperators = 10;
std::string_view to_text(Operator op);

// Where an array keeps index i of a dim of n: i; 1 + i of n + 3; 1 + 3 i of 3 n + 2; n - 1 - i. Or under a condition:
// at i + s of n, where that is inside; at i + j - 1 of n for the index j of the next axis. Or where an array of indices
// says.
enum class View : std::uint8_t { plain, padded, strided, reversed, guarded, window, gathered };

struct Dim {
  std::string index;  // one letter
  std::string size;   // a name; usually the same letter
};

struct Axis {
  std::size_t dim = 0;
  View view = View::plain;
  bool joined = false;  // this one and the next are one dim of the array
  int shift = 1;        // of `guarded`
};

// Of the source: how the reduction is written.
enum class Fold : std::uint8_t { nested, flattened, loop };

// What a sum multiplies instead of an operand's element, which is not 0 where all is 0: of the element alone; of an
// index of the reduction, too (where elements are read by index); of an element of a further array, which says whether
// it is taken, or is no less.
enum class Factor : std::uint8_t { element, function, by_index, masked, limited };

struct FactorSpec {
  Factor factor = Factor::element;
  std::vector<Axis> axes;  // of the further array: dims of the operand
};

struct Spec {
  std::uint64_t seed = 0;
  std::string entry;
  Operator op = Operator::sum;
  ScalarType type = ScalarType::f32;
  std::vector<Dim> dims;  // of the result in its order, then the contracted ones
  std::size_t space_rank = 0;
  std::vector<std::vector<Axis>> operands;  // in their order in memory, outermost first
  std::vector<FactorSpec> factors;          // of the first operands; none: elements
  int otherwise = 0;                        // what stands for elements whose condition fails
  std::vector<Axis> residual;               // scaled_sum: of an array that is added at the end, if any
  bool rows = false;                        // maps over rows of transposed arrays; else elements are read by index
  Fold fold = Fold::nested;
  bool sizes_given = false;       // sizes are parameters, as views need them; else they follow from the arrays
  bool says_commutative = false;  // reduce_comm, where that is true
  bool default_plan = false;      // no tile numbers
  bool units = false;             // tile numbers that suit matrix units, where they know the products
  std::string attribute;          // of the entry: "tf32", "f32_3xtf32", or none
  std::map<std::string, std::int64_t> plan;  // what is behind the entry's name: T_a, stages
  std::vector<testing::Sizes> sizes;         // that it is tried with
};

// Without tile numbers and sizes: those are drawn when it is known which there are.
Spec random_spec(std::uint64_t seed);

// Which operators and types go together.
bool fits(Operator op, ScalarType type);
bool is_commutative(Operator op);

std::string to_source(const Spec& spec);

// Specs that are a little simpler each, those that lose most first.
std::vector<Spec> simpler(const Spec& spec);

// Numbers for the tile parameters that an entry has ("c3.T_a"), from the seed; and sizes, once they are known.
struct Parameter {
  std::string name;
  bool threads = false;  // T, or a depth if there is no R
  std::int64_t default_value = 0;
};
void draw_plan(Spec& spec, const std::vector<Parameter>& parameters);
void draw_sizes(Spec& spec, const std::vector<Parameter>& parameters);
// Smaller numbers, because the block does not fit into a device.
void shrink_plan(Spec& spec, const std::vector<Parameter>& parameters);

}  // namespace apl::contraction_tests
