// Random programs, typed by construction. A type is chosen, then an expression of it, from what is in scope; arrays are
// combined only where their sizes have the same text. No program fails when it runs: indices are taken modulo a size
// that is not zero there, divisors are made odd. Floats are integers of bounded magnitude, so that every order of
// additions gives the same bits.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/random/source.h"
#include "tests/testing.h"

namespace apl::random_tests {

// An entry with the functions that it calls, and the sizes that it is to be tried with.
struct Program {
  std::uint64_t seed = 0;
  std::string entry;
  std::vector<Expr> definitions;  // the entry is the last
  std::vector<testing::Sizes> sizes;
  std::vector<std::string> order;     // the passes that it goes through, instead of the standard pipeline and backends
  std::vector<std::string> disabled;  // passes of the standard pipeline that are left out
  // Not empty: the program's work is linear in its sizes, which is to be seen at these and at four times these.
  testing::Sizes linear_in;
};

// What programs are made of.
enum class Kind : std::uint8_t {
  general,       // everything that arrays can be used for
  short_rows,    // the same with rows of 1 to 8 elements of any type, joined, turned, cut and overwritten
  branch_loops,  // loops that carry arrays, which branches and further loops inside overwrite in place
};

Program random_program(std::uint64_t seed, Kind kind = Kind::general);
Program random_branch_loops(std::uint64_t seed);  // branch_loops.cpp

class Generator {
 public:
  Generator(std::uint64_t seed, Kind kind) : random_(seed * 0x9e3779b97f4a7c15U + 1), seed_(seed), kind_(kind) {}
  Program run();

 private:
  struct Variable {
    std::string name;
    Type type;
    double magnitude = 0;
    std::string below;  // an index: non-negative, and less than the size of this text
  };
  struct Parameter {
    Type type;
    bool consumed = false;
  };
  struct Helper {
    std::string name;
    std::vector<Parameter> params;
    Type result;
  };
  // Associative, with its neutral element; results are within the limit if inputs are within `input_limit`.
  struct Operator {
    Expr op, neutral;
    double input_limit = 0;
    bool commutative = true;
  };
  using Maybe = std::optional<Expr>;
  // An expression of the type whose floats are within the limit; none if the rule does not fit.
  using Rule = Maybe (Generator::*)(const Type& type, double limit, int depth);
  struct Weighted {
    int weight;
    Rule rule;
  };
  class Scope;  // what is bound while it lives goes with it

  // generator.cpp
  std::int64_t between(std::int64_t low, std::int64_t high);
  bool chance(int percent) { return between(1, 100) <= percent; }
  std::string fresh() { return "v" + std::to_string(next_name_++); }
  Size any_size() { return sizes_[static_cast<std::size_t>(between(0, std::int64_t(sizes_.size()) - 1))]; }
  ScalarType any_scalar();
  ScalarType any_integer();
  Type any_row(int rank);
  Type any_type(int rank);
  Type any_array(const Size& size, int rank);  // likely of a type that is at hand
  void bind(const std::string& name, const Type& type, double magnitude, const std::string& below = {});
  void bind_size_index(const std::string& name, const Size& size);
  bool is_nonempty(const Size& size) const;
  Maybe index_into(const Size& size, int depth);
  Expr value(const Type& type, double limit, int depth);
  Expr leaf(const Type& type, double limit);
  Maybe made_from_variable(const Type& type, double limit);
  Maybe variable(const Type& type, double limit);
  Expr within(Expr scalar, double limit);
  Expr condition(int depth);
  void declare_sizes(std::vector<testing::Sizes>& tried);
  std::vector<Parameter> declare_params(std::string& text);
  Expr scalar_helper(std::int64_t number);
  Expr function_body(Type& result, int depth, bool is_entry);
  void consume_params(std::vector<Piece>& pieces, int depth);
  void declare_types();

  // scalars.cpp
  Expr literal(ScalarType type, double limit);
  Maybe arithmetic(const Type& type, double limit, int depth);
  Maybe float_arithmetic(const Type& type, double limit, int depth);
  Maybe unary(const Type& type, double limit, int depth);
  Maybe comparison(const Type& type, double limit, int depth);
  Maybe conversion(const Type& type, double limit, int depth);
  Maybe size_as_value(const Type& type, double limit, int depth);

  // control.cpp
  Maybe let_in(const Type& type, double limit, int depth);
  Maybe let_size(const Type& type, double limit, int depth);
  Maybe let_function(const Type& type, double limit, int depth);
  Maybe call(const Type& type, double limit, int depth);
  Maybe branch(const Type& type, double limit, int depth);
  Maybe loop_for(const Type& type, double limit, int depth);
  Maybe loop_over(const Type& type, double limit, int depth);
  Maybe loop_while(const Type& type, double limit, int depth);
  Maybe tuple(const Type& type, double limit, int depth);
  Maybe projection(const Type& type, double limit, int depth);

  // arrays.cpp
  Maybe index(const Type& type, double limit, int depth);
  Maybe made_from_size(const Type& type, double limit, int depth);
  Maybe array_literal(const Type& type, double limit, int depth);
  Maybe turned(const Type& type, double limit, int depth);
  Maybe transposed(const Type& type, double limit, int depth);
  Maybe joined(const Type& type, double limit, int depth);
  Maybe sliced(const Type& type, double limit, int depth);
  Maybe reshaped(const Type& type, double limit, int depth);
  Maybe zipped(const Type& type, double limit, int depth);
  Maybe update(const Type& type, double limit, int depth);
  Maybe updates_in_loop(const Type& type, double limit, int depth);

  // soacs.cpp
  Maybe map(const Type& type, double limit, int depth);
  Maybe tabulate(const Type& type, double limit, int depth);
  Operator any_operator(const Type& type, double limit, std::int64_t most);
  Operator scalar_operator(ScalarType type, double limit, std::int64_t most);
  Operator tuple_operator(const Type& type, double limit, std::int64_t most);
  Maybe reduce(const Type& type, double limit, int depth);
  Maybe contraction(const Type& type, double limit, int depth);
  Maybe product_of_matrices(const Type& type, double limit, int depth);
  Maybe any_contraction();
  Maybe named_reduction(const Type& type, double limit, int depth);
  Maybe scan(const Type& type, double limit, int depth);
  Maybe scatter(const Type& type, double limit, int depth);
  Maybe histogram(const Type& type, double limit, int depth);
  Expr different_places(const Size& count, int depth);

  // rows.cpp: what programs of short rows have besides.
  bool has_short_rows() const { return kind_ == Kind::short_rows; }
  Type any_short_row(int rank);
  Type any_short_rows();
  void declare_short_rows();
  std::vector<Parameter> short_row_params();
  Expr indexed(const Type& type, double limit, std::vector<std::string>& indices);
  void declare_short_sizes(std::vector<testing::Sizes>& tried);
  Expr operand(const Type& type, double limit, int depth);
  Maybe joined_constant(const Type& type, double limit, int depth);
  Maybe joined_rows(const Type& type, double limit, int depth);
  Maybe chosen_rows(const Type& type, double limit, int depth);
  Maybe windows(const Type& type, double limit, int depth);
  Maybe turned_rows(const Type& type, double limit, int depth);
  Maybe columns(const Type& type, double limit, int depth);
  Maybe changed_rows(const Type& type, double limit, int depth);
  Maybe rows_in_loop(const Type& type, double limit, int depth);
  Maybe repeated_rows(const Type& type, double limit, int depth);

  std::mt19937_64 random_;
  std::uint64_t seed_;
  Kind kind_;
  int next_name_ = 0;
  int budget_ = 0;
  std::vector<ScalarType> palette_;  // few types, so that many values fit together
  std::vector<Type> row_types_;      // of short rows: few, so that arrays of them fit together
  std::vector<Size> sizes_;
  std::vector<Variable> variables_;
  std::vector<std::string> nonempty_;
  std::vector<Helper> helpers_;
  std::vector<std::string> unique_;  // parameters that are to be consumed
};

// Binds and forgets.
class Generator::Scope {
 public:
  explicit Scope(Generator& g)
      : g_(g), variables_(g.variables_.size()), nonempty_(g.nonempty_.size()), sizes_(g.sizes_.size()) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() {
    g_.variables_.resize(variables_);
    g_.nonempty_.resize(nonempty_);
    g_.sizes_.resize(sizes_);
  }

 private:
  Generator& g_;
  std::size_t variables_, nonempty_, sizes_;
};

}  // namespace apl::random_tests
