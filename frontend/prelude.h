// What every program sees without declaring it. The list is prelude.def; what each name does is in lower/.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/types/types.h"
#include "ir/scalar.h"

namespace apl::frontend {

// What a prelude name does; several names may do the same with other numbers of arrays.
enum class Builtin : std::uint8_t {
  add,
  sub,
  mul,
  div,
  mod,
  quot,
  rem,
  pow,
  bit_and,
  bit_or,
  bit_xor,
  shl,
  shr,
  shr_logical,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  both,
  either,
  pipe_right,
  pipe_left,
  then,
  after,
  id,
  constant,
  flip,
  curry,
  uncurry,
  logical_not,
  opaque,
  map,
  reduce,
  reduce_comm,
  filter,
  partition,
  scan,
  exscan,
  scatter,
  spread,
  reduce_by_index,
  hist,
  jvp2,
  vjp2,
  tabulate,
  all,
  any,
  foldl,
  foldr,
  iterate,
  iterate_until,
  iterate_while,
  zip,
  unzip,
  iota,
  indices,
  replicate,
  rep,
  transpose,
  flatten,
  unflatten,
  length,
  null,
  head,
  last,
  tail,
  init,
  take,
  drop,
  split,
  reverse,
  rotate,
  concat,
  sized,
  copy,
  sum,
  product,
  maximum,
  minimum,
  min,
  max,
  neg,
  complement,
  num_bits,
  highest,
  lowest,
  recip,
  isnan,
  isinf,
  inf,
  nan,
  pi,
  e,
  epsilon,
  unary,
  binary,
  count_bits,
  ctz,
  mad_hi,
  get_bit,
  set_bit,
  trunc,
  of_pi,
  per_pi,
  ldexp,
  lerp,
  mad,
  from_fraction,
  to_bits,
  from_bits,
  to_type,
  convert,
};

struct PreludeEntry {
  Builtin builtin;
  std::string_view name;
  int arity;
  Constraint constraint;       // of the first type parameter; of members: the modules that have it
  std::string_view signature;  // `t` is the module's type in members
};

const PreludeEntry* find_builtin(std::string_view name);
const PreludeEntry* find_member(ScalarType module, std::string_view name);
// `f32.i64`: the entry's signature is empty, its name the type converted from.
std::optional<ScalarType> find_conversion(ScalarType module, std::string_view name);
// The names of all members that some module has.
void each_member_name(const std::function<void(std::string_view)>& visit);
// The unsigned integers as wide as the numbers of the type.
ScalarType bits_type(ScalarType type);
// The module of that name: i8 .. f64, bool.
std::optional<ScalarType> find_module(std::string_view name);
// All of them, for messages.
std::vector<std::string> builtin_names();
std::vector<std::string> member_names(ScalarType module);
std::vector<std::string> module_names();

}  // namespace apl::frontend
