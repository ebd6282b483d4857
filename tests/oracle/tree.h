// Programs as the oracle has them: typed trees that are printed as Futhark source and evaluated (evaluate.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/oracle/number.h"

namespace apl::oracle {

// A scalar, or a tuple or record if there are fields; an array of it if there are dims. Dims are names of sizes that
// are in scope, or numbers: two arrays have one size where they have one text. Fields of an array's elements have no
// dims.
struct Type {
  ScalarType scalar = ScalarType::i32;
  std::vector<Type> fields;
  std::vector<std::string> names;  // of a record's fields
  std::vector<std::string> dims;

  bool is_array() const { return !dims.empty(); }
  bool is_tuple() const { return dims.empty() && !fields.empty(); }
  bool is_scalar() const { return dims.empty() && fields.empty(); }
  bool operator==(const Type&) const = default;
};

Type scalar_type(ScalarType scalar);
Type tuple_type(std::vector<Type> fields);
Type row_of(Type type);
Type array_of(const std::string& dim, Type row);
std::string type_text(const Type& type);

struct Node;
using Tree = std::shared_ptr<const Node>;

// A name; or with parts a tuple of patterns.
struct Pattern {
  std::string name;
  Type type;
  std::vector<Pattern> parts;
};

struct Lambda {
  std::vector<Pattern> params;
  Tree body;
};

// What a node does with its kids (a, b, c ...), its lambdas (f, g) and its name.
enum class Form {
  number,           // `literal`
  variable,         // name; also a size
  tuple,            // of the kids; a record if the type is one
  field,            // a.name
  with_field,       // a with name = b
  unary,            // `unary_op` a
  binary,           // a `binary_op` b
  convert,          // T.S a
  from_bits,        // T.from_bits a
  branch,           // if a then b else c
  let_in,           // let [sizes] pattern = a in b
  assertion,        // assert a b
  map,              // map f a b ...
  reduce,           // reduce f a b; by name: T.sum b; reduce_comm
  scan,             // scan f a b
  exscan,           // exscan f a b
  filter,           // filter f a
  partition,        // partition f a: two arrays
  histogram,        // hist f a(neutral) b(size) c(indices) d(values)
  reduce_by_index,  // reduce_by_index a(target) f b(neutral) c(indices) d(values)
  scatter,          // scatter a(target) b(indices) c(values)
  spread,           // spread a(size) b(element) c(indices) d(values)
  for_loop,         // loop pattern = a for name < b do f
  for_in_loop,      // loop pattern = a for name in b do f
  while_loop,       // loop pattern = a while f do g
  index,            // a[b, c ...]
  update,           // a with [b, c ...] = last kid
  slice,            // a[b:c:d]; kids that are null are left out
  slice_update,     // a with [b:c:d] = e
  column,           // a[:, b]
  iota,             // iota a
  range,            // a..<b; with a third kid a..c..<b
  replicate,        // replicate a b
  tabulate,         // tabulate a f
  tabulate_2d,      // tabulate_2d a b f
  concat,           // a ++ b
  rotate,           // rotate a b
  reverse,          // reverse a
  transpose,        // transpose a
  flatten,          // flatten a
  unflatten,        // unflatten (a :> [n * m]T): to the type's dims
  take,             // take a b
  drop,             // drop a b
  head,             // head a
  last,             // last a
  length,           // length a
  copy,             // copy a
  indices,          // indices a
  zip,              // zip a b ..
  unzip,            // unzip a
  coerce,           // a :> the type
};

// Where the program defines a node's operator `f` and its neutral element: modules.h.
struct ModuleUse {
  enum class How : std::uint8_t { own, turned, folds };
  std::string name;    // of the module; empty: they are written where they are used
  std::string symbol;  // of the operator
  std::string family;  // ends the names of the program's module type and parametric modules
  How how = How::own;
};

struct Node {
  Form form = Form::number;
  Type type;
  std::vector<Tree> kids;
  std::vector<Lambda> lambdas;
  std::string name;
  Pattern pattern;                 // of let and loops
  bool annotated = false;          // the pattern, with its type
  std::vector<std::string> sizes;  // that a let names
  ModuleUse module;
  Number literal;
  UnaryOp unary_op = UnaryOp::neg;
  BinaryOp binary_op = BinaryOp::add;
};

std::string source(const Tree& tree);
std::string pattern_text(const Pattern& pattern, bool with_type);
void count_forms(const Tree& tree, std::map<Form, std::uint64_t>& counts);

// An entry, with its parameters and the sizes that are theirs.
struct Program {
  std::uint64_t seed = 0;
  std::string name;
  std::vector<std::string> sizes;  // size parameters
  std::vector<Pattern> params;
  Tree body;
};
std::string source(const Program& program);

Tree simplest(const Type& type);
// Trees with one part simpler, those that lose most first: a part replaced by a smaller one of its type.
std::vector<Tree> simpler(const Tree& tree);

}  // namespace apl::oracle
