// Scalars as the oracle has them: its own numbers and its own arithmetic, that of Futhark's manual. It shares nothing
// with ir/scalar.h but the names of the types, which host values carry.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "ir/scalar.h"

namespace apl::oracle {

using apl::ScalarType;

// What a program stops with. The message is what every backend says, or how it begins.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An integer (wrapped to its type, unsigned ones as their bits), a float (rounded to its type), or a bool (0 or 1).
struct Number {
  ScalarType type = ScalarType::i32;
  std::int64_t whole = 0;
  double real = 0;

  bool is_true() const { return whole != 0; }
};

int width_of(ScalarType type);  // in bits
bool is_real(ScalarType type);
bool is_whole(ScalarType type);
bool is_signed_type(ScalarType type);

Number integer(ScalarType type, std::int64_t value);  // wraps
Number real(ScalarType type, double value);           // rounds to nearest, ties to even
Number boolean(bool value);

std::uint64_t bits_of(const Number& x);  // as memory has it; one NaN for all
bool same(const Number& a, const Number& b);

std::string source_text(const Number& x);  // in parentheses if negative

enum class UnaryOp {
  neg,
  complement,
  negate_bool,
  abs,
  sgn,
  sqrt,
  floor,
  ceil,
  round,
  trunc,
  isnan,
  isinf,
  popc,
  clz,
  ctz
};
enum class BinaryOp {
  add,
  sub,
  mul,
  div,
  mod,
  quot,
  rem,
  pow,
  band,
  bor,
  bxor,
  shl,
  shr,
  shr_logical,
  min,
  max,
  mul_hi,
  copysign,
  eq,
  ne,
  lt,
  le,
  both,
  either
};

// Of the operand's type, but for isnan and isinf (bool), and popc, clz and ctz (i32).
Number apply(UnaryOp op, const Number& x);
// Both of one type. Failure where there is no result: division of integers by zero, a negative exponent.
Number apply(BinaryOp op, const Number& x, const Number& y);
Number convert(const Number& x, ScalarType to);
Number bits_to_float(const Number& x, ScalarType to);

}  // namespace apl::oracle
