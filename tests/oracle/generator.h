// Random programs of what tests/random leaves out: sizes that only running decides, records, half floats and floats at
// the corners of their types, slices from the end, operators that do not commute, duplicate and stray indices, arrays
// overwritten inside maps, sizes of zero and less, and programs that fail. Typed by construction.
//
// Sizes, bounds and counts are also written by a detour whose parts wrap, `h * 4 + e` where h is a multiple of 2^62:
// every backend and the interpreter share the front end's polynomials, so only an evaluator of its own sees one that
// does not wrap.
//
// Sums of floats are of small integers, and the operands of min and max have no negative zero, so that every order of
// evaluation gives the same bits. What is scattered to one position twice is the same both times.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/oracle/evaluate.h"
#include "tests/oracle/tree.h"

namespace apl::oracle {

struct Case {
  Program program;
  std::vector<Arguments> arguments;
};
Case random_case(std::uint64_t seed);

class Generator {
 public:
  explicit Generator(std::uint64_t seed)
      : random_(seed * 0x9e3779b97f4a7c15U + 1), modules_(seed * 0x9e3779b97f4a7c15U + 2), seed_(seed) {}
  Case run();

 private:
  struct Variable {
    std::string name;
    Type type;
  };
  // Associative, with its neutral element.
  struct Operator {
    Lambda op;
    Tree neutral;
    std::string name;  // of the reduction that has one: f32.sum
    bool commutes = true;
    // What its operands must be: any, small integers as floats, no negative zeros, or of a pair with a flag that is not
    // set the neutral element.
    enum class Takes { all, small, positive_zeros, normal } takes = Takes::all;
  };
  class Scope;  // what is bound while it lives goes with it

  // generator.cpp: programs, inputs, what is in scope
  std::int64_t between(std::int64_t low, std::int64_t high);
  bool chance(int percent) { return between(1, 100) <= percent; }
  std::string fresh(const char* prefix = "v") { return prefix + std::to_string(next_++); }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(list.size()) - 1))];
  }
  Tree result();
  Number corner(ScalarType type);
  Value argument(const Type& type, const Arguments& arguments);
  Type any_element();
  ScalarType any_scalar();
  ScalarType any_integer();
  std::string any_size() { return one_of(sizes_); }
  void bind(const Pattern& pattern);
  Tree any_variable(const std::function<bool(const Type&)>& fits);

  // scalars.cpp
  Tree scalar(ScalarType type, int depth);
  Tree real_scalar(ScalarType type, int depth);
  Tree integer_scalar(ScalarType type, int depth);
  Tree condition(int depth);
  Tree small_float(ScalarType type, int depth);  // a small integer
  Tree no_negative_zero(Tree x);
  Tree converted(ScalarType type, int depth);
  Tree counted_loop(const Type& type, int depth);
  Tree element(const Type& type, int depth);  // a scalar, tuple or record
  Tree from_array(const Type& type, int depth);
  Tree small_index(std::int64_t below, int depth);   // from 0 on
  Tree index_in(const std::string& dim, int depth);  // of a dim that is known not to be empty
  Tree wrapped(Tree x);                              // an i64, often by way of sums and products that wrap

  // operators.cpp
  Operator any_operator(const Type& type);
  Operator scalar_operator(ScalarType type);
  Operator of_records(const Type& type);
  Tree applied(Form form, const Type& type, std::vector<Tree> kids, const Operator& op);  // some by a module
  Tree operand(const Operator& op, const Type& type, int depth);
  Tree operands(const Operator& op, const Type& type, int depth);  // an array of them
  Type operator_type();

  // arrays.cpp: arrays of a type whose sizes are in scope
  Tree array(const Type& type, int depth);
  Tree mapped(const Type& type, int depth);
  Tree scanned(const Type& type, int depth);
  Tree placed(const Type& type, int depth);
  Tree overwritten(const Type& type, int depth);
  Tree looped(const Type& type, int depth);
  Tree rearranged(const Type& type, int depth);
  Tree plain(const Type& type, int depth);
  Tree indices(const std::string& count, const std::string& size, int depth);
  Tree lane(const Type& type, int depth);  // what a lambda of a map gives

  // blocks.cpp: sequences of lets, and arrays of which only running says how long they are
  Tree block(int lets, int depth, const std::function<Tree()>& last);
  Tree unknown_size(const Type& row, int depth);
  Tree growing_loop(const Type& row, int depth);
  Tree slice_of(const Tree& array, int depth);
  Tree failing(Pattern& pattern, std::vector<std::string>& sizes);
  Tree reduced(const Type& type, int depth);

  std::mt19937_64 random_;
  std::mt19937_64 modules_;  // of operators, of its own: the rest of a program is the same with and without them
  std::uint64_t seed_;
  std::int64_t next_ = 0, modules_made_ = 0;
  std::vector<Variable> scope_;
  std::vector<std::string> sizes_;  // dims of arrays in scope
  std::set<std::string> nonempty_;  // those of them that are not 0 here
  bool fails_ = false;              // a part of the program is still to be made that may
  std::string failing_;             // what is bound to it
  int budget_ = 0;                  // nodes that may still be made with parts
};

// Nodes.
Tree make(Form form, Type type, std::vector<Tree> kids, std::vector<Lambda> lambdas = {});
Tree variable(const std::string& name, const Type& type);
Tree literal(const Number& number);
Tree whole(std::int64_t value);  // an i64
Tree unary(UnaryOp op, Tree x);
Tree binary(BinaryOp op, Tree x, Tree y);
Tree convert_to(ScalarType type, Tree x);
Tree field(Tree x, std::size_t k);
Tree let(const Pattern& pattern, const std::vector<std::string>& sizes, Tree value, Tree body);

}  // namespace apl::oracle
