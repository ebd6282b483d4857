// The operations of the IR: plain structs in one variant. What each means is said here and decided by
// the interpreter (ir/interpret.h); ir/fields.h lists their fields. Bodies are shared and immutable: a rewrite
// that changes nothing returns the old pointer.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/type.h"

namespace apl {

// A variable or a constant (Futhark's SubExp).
class Operand {
 public:
  Operand() = default;
  Operand(Value value) : state_(value) {}         // NOLINT(google-explicit-constructor)
  Operand(Scalar constant) : state_(constant) {}  // NOLINT(google-explicit-constructor)

  bool is_value() const { return std::holds_alternative<Value>(state_); }
  bool is_constant() const { return !is_value(); }
  Value value() const { return std::get<Value>(state_); }
  const Scalar& constant() const { return std::get<Scalar>(state_); }
  bool operator==(const Operand&) const = default;

 private:
  std::variant<Value, Scalar> state_;
};

struct Body;
using BodyPtr = std::shared_ptr<const Body>;

// Values that an operation or a lambda binds for its nested bodies: types of their own, by which walks over all fields
// (ir/fields.h) tell them from values that are read.
struct Binder : Value {
  Binder() = default;
  Binder(Value value) : Value(value) {}  // NOLINT(google-explicit-constructor)
};
struct OptionalBinder : Value {  // may be none: nothing is bound
  OptionalBinder() = default;
  OptionalBinder(Value value) : Value(value) {}  // NOLINT(google-explicit-constructor)
};
struct Binders : std::vector<Value> {
  using vector::vector;
  Binders(std::vector<Value> values) : vector(std::move(values)) {}  // NOLINT(google-explicit-constructor)
};

struct Lambda {
  Binders params;
  BodyPtr body;
};

// ---- basic operations -------------------------------------------------------------------------

struct Use {
  Operand x;
};  // another name for x
struct Unary {
  UnaryOp op;
  Operand x;
};
struct Binary {
  BinaryOp op;
  Operand x, y;
};
struct Compare {
  CompareOp op;
  Operand x, y;
};
struct Convert {
  ScalarType to;
  Operand x;
  bool same_bits = false;  // `bitcast`: the bits stay, not the number; both types have one width
};
struct SizeExpr {
  Poly value;
};  // an i64: index arithmetic as one polynomial

// One dim of an index: a fixed index, or the slice start, start+stride, ... of `count` elements.
struct DimIndex {
  Poly start;
  std::optional<Poly> count;  // set: a slice
  Poly stride = 1;

  bool is_slice() const { return count.has_value(); }
  static DimIndex fix(Poly i) { return {.start = std::move(i), .count = {}}; }
  static DimIndex slice(Poly start, Poly count, Poly stride = 1) {
    return {.start = std::move(start), .count = std::move(count), .stride = std::move(stride)};
  }
};

// An element or a slice; dims not named are taken whole. A checked index is an error when out of bounds.
struct Index {
  Value array;
  std::vector<DimIndex> dims;
  bool checked = false;
};
// `array` with the named element or slice replaced; consumes `array`.
struct Update {
  Value array;
  std::vector<DimIndex> dims;
  Operand value;
  bool checked = false;
};
struct Iota {
  ScalarType element;
  Poly count;
  Operand start, stride;
};
struct Replicate {
  std::vector<Poly> shape;
  Operand value;
};  // shape ++ shape of value
struct Scratch {
  ScalarType element;
  std::vector<Poly> shape;
};  // undefined until written
struct Copy {
  Value array;
};
struct Rearrange {
  Value array;
  std::vector<int> permutation;
};  // result dim k = source dim permutation[k]; a view
struct Manifest {
  Value array;
  std::vector<int> permutation;
};  // the same, copied into that layout
struct Reshape {
  Value array;
  std::vector<Poly> shape;
};  // row-major order kept
struct ArrayLit {
  Type element;
  std::vector<Operand> elements;
};
// A unit value; an error with `message` if the condition is false. Pieces: text, or a scalar to print.
struct Assert {
  Operand condition;
  std::vector<std::variant<std::string, Operand>> message;
};
struct If {
  Operand condition;
  BodyPtr then_body, else_body;
};
// One of several ways to compute the same values: which one runs is decided when sizes are known, and whichever runs,
// the results are equal. The last alternative may always run.
struct Choose {
  enum class By : std::uint8_t {
    model,  // the cheapest by the model of tiles (machine/tiles), among those whose condition holds
    first,  // the first whose condition holds
  };
  struct Alternative {
    std::string name;  // "untiled"
    Operand condition = Scalar::boolean(true);
    BodyPtr body;
  };
  By by = By::model;
  std::string parameter;  // a tuning parameter that asks for one of them by its number, counted from 1: "mm.variant"
  std::vector<Alternative> alternatives;
};
// Merge parameters start as `initial`, each iteration binds them to the body's results.
// For: `index` (i64) runs from 0 to bound-1. While: runs as long as the first parameter (bool) is true.
struct Loop {
  Binders params;
  std::vector<Operand> initial;
  OptionalBinder index;  // none: a while loop
  Poly bound;
  BodyPtr body;
};
struct Apply {
  std::string function;
  std::vector<Operand> arguments;
};  // arguments: sizes first
enum class SizeClass : std::uint8_t { tile_size, reg_tile_size, thread_block_size, grid_size, threshold, thread_count };
// A tuning parameter, an i64 >= 1 fixed before the program runs: "mm.T_a". A thread_count that is not given is on CPUs
// the number of threads that the program runs with.
struct GetSize {
  std::string name;
  SizeClass size_class;
  std::int64_t default_value;
};

// ---- soac stage -------------------------------------------------------------------------------

// An associative operator over n values (2n lambda parameters, n results) with its neutral elements.
struct ReduceOp {
  Lambda op;
  std::vector<Operand> neutral;
  bool commutative = false;
  bool scan = false;  // gives what it has after each index (an inclusive scan), not at the end alone
};

// Map, reduce, scan and what they are together, over a list of widths. `indices` are i64 values, one a width, bound
// in `map`. Each input's outer dims are the widths; the lambda gets its rows. The lambda's results are, in order,
// the operands of each operator, then the rows of the mapped arrays; results are the reduced values and the scanned
// arrays, then the mapped arrays. Arrays are of shape widths ++ row shape. Operators go in row-major order over the
// widths.
struct Screma {
  std::vector<Poly> widths;
  Binders indices;
  std::vector<Value> inputs;
  Lambda map;
  std::vector<ReduceOp> reduces;

  std::size_t reduced_count() const;   // results of operators
  bool scans() const;                  // whether an operator scans
  bool is_array(std::size_t k) const;  // whether result k has a row for every index
};

// Writes at computed positions (scatter, histogram): for every index over the widths the lambda gives the `rank`
// indices of an element (i64), then a row for each target; rows out of bounds are dropped. Without operator the row
// replaces the element: indices that name one element must agree. With one it is folded into the element, in any order,
// so that the operator is associative and commutative. Consumes the targets; the results are what they become.
struct Scatter {
  std::vector<Poly> widths;
  Binders indices;
  std::vector<Value> inputs;
  Lambda map;
  std::size_t rank = 1;
  std::vector<Value> targets;
  std::optional<ReduceOp> op;
};

// What `function` gives for `arguments`, and how that changes. Forward: the seeds are a tangent for each argument, and
// after the function's results come the tangents of these. Reverse: the seeds are a cotangent for each result, and
// after the results come the cotangents of the arguments. A tangent has the type of what it belongs to. What the
// function reads beside its parameters is constant. `differentiate` replaces it by other operations
// (ir/differentiate.h).
struct Derivative {
  enum class Mode : std::uint8_t { forward, reverse };
  Mode mode = Mode::forward;
  std::vector<Operand> arguments;
  std::vector<Operand> seeds;
  Lambda function;
};

// ---- kernel stage -----------------------------------------------------------------------------

enum class SegLevel : std::uint8_t {
  thread,   // one thread an index
  block,    // one thread block an index: bodies are independent; may hold shared arrays and inblock SegMaps
  inblock,  // inside a block: runs for all its indices before the next statement (an implied barrier)
};

struct SegDim {
  Binder index;
  Poly bound;
};

// A dim of a register-tiled result: size, T, R. With `split` it is several dims of the result, flattened in row-major
// order, and the size is their product.
struct TileExtent {
  struct Part {
    int axis = 0;  // of the result
    Poly bound;
  };
  Poly bound, tile, reg;
  std::vector<Part> split{};  // of all extents of a result or of none
};

// What a result of a SegMap body becomes.
struct KernelResult {
  enum class Kind : std::uint8_t {
    returns,   // the row at this index
    private_,  // the same, but only inblock SegMaps over the same space read it, at their own index: registers
    regtile,   // block level: value of shape T_1..T_n R_1..R_n, element (t, r) lands at block offset + t*R + r
  };           // in each extent, what is out of range is dropped; the result has their bounds as its shape
  Kind kind = Kind::returns;
  std::vector<TileExtent> extents;  // regtile, one a space dim

  std::vector<Poly> regtile_shape() const;  // of the whole result
};

// How the kernel of a tiled contraction is to be computed: what the pass that made it decided, for the choice of tile
// numbers (machine/tiles), code generation and remarks. It never changes what the kernel means: without it the kernel
// is computed in the general way. ir/schedule.h holds it against the body.
struct Schedule {
  enum class Unit : std::uint8_t {
    general,  // a thread computes its T x R elements from the tiles
    simt,     // warps share the block's M x N elements: a mainloop of multiply-adds on copies that run ahead
    matrix,   // the same of products that matrix units know, where the machine has some and the tiles suit them
    packed,   // CPUs: panels of M and N are packed for a micro-kernel, whose tile the machine's registers give
  };
  // Which operands vary along a dim: all that are no weights of the reduction alone (batch), none (invariant), some
  // (free). Of free dims those of M and N: no operand varies along both; N has the result's innermost free dim. Depth:
  // the dims that are reduced.
  enum class Role : std::uint8_t { batch, invariant, free, m, n, depth };
  struct Dim {
    Role role = Role::free;
    Poly size;
    Poly tile = 1, reg = 1;  // tuning parameters: threads and elements a thread, for depth dims steps a tile; or 1
  };
  struct Operand {
    std::string name;  // of the array
    ScalarType element{};
    std::vector<Poly> strides;  // in the array, in elements, one a dim
    // Of each condition under which it is read, and of each array of indices that says where: likewise.
    std::vector<std::vector<Poly>> conditions{}, gathers{};
    std::int64_t copy_bytes = 16;  // that one asynchronous copy to shared memory has at most; 0: through registers
    bool swizzled = true;          // in shared memory, where it is transposed on the way

    bool varies(std::size_t dim) const;
  };
  enum class Remainder : std::uint8_t {
    peeled,  // what is left of the reduction is a guarded step behind the loop
    padded,  // the last step is as deep as others, on neutral elements
  };
  Unit unit = Unit::general;
  std::string parameters;         // what the names of its tuning parameters begin with: "mm."
  std::vector<Dim> dims;          // those of the results, outermost first, then those of the reduction
  std::vector<Operand> operands;  // as the tile_contracts'
  Remainder remainder = Remainder::peeled;
  std::int64_t stages = 0, tiles_per_block = 0;  // of the mainloop; 0: as the model of tiles likes
  Poly splits = 1;                               // parts of the reduction: the size of the outermost dim
};

// The same for a kernel over the non-zeros of a sparse operand (ir/sparse_schedule.h): which of its dims are which, and
// where the elements lie that it multiplies. Code generation reads it to ask the runtime for a kernel made for the
// matrix; without it, or with the family `general`, the kernel is the program's own.
struct SparseSchedule {
  enum class Family : std::uint8_t {
    general,  // nothing but its body: `why` says which condition is not met
    product,  // result[row][n] = after(sum over the row's non-zeros of values[nonzero] * B[column][n])
    rows,     // the same, a thread a row of sums that grow in place
    sddmm,    // result[nonzero] = after(sum over depth of X[row][depth] * Y[column][depth])
  };
  enum class Role : std::uint8_t { batch, row, n, nonzero, column, depth };
  struct Dim {
    Role role = Role::batch;
    Poly size;
  };
  // Element `offset + sum of strides * dims` of an array, row-major.
  struct Operand {
    Value array;
    Poly offset;
    std::vector<Poly> strides;  // one a dim
  };
  // The matrix is known (Module::known): the product is also made by code that has its structure and values, one
  // section of code for each `rows` rows, which makes `columns` columns of the result at a time (L: M1 and N1), cut
  // into `pieces` parts by the matrix' columns. Code generation takes it where the argument is that matrix.
  struct Sections {
    std::string key;  // KnownMatrix::key
    std::int64_t rows = 1, columns = 1, pieces = 1;
  };
  Family family = Family::general;
  std::optional<Sections> sections = {};
  std::string matrix;             // the sparse operand, as the entry calls it
  std::string why;                // of a general one
  std::vector<Dim> dims;          // those of the space, then those that the body goes through
  std::vector<Operand> operands;  // values and B; or X, Y and, where the sum is only multiplied by them, values
};

struct SegOp {
  SegLevel level = SegLevel::thread;
  std::vector<SegDim> space;  // may be empty: one index
  BodyPtr body;
  std::vector<KernelResult> results;          // one a body result
  std::optional<Schedule> schedule = {};      // block level
  std::optional<SparseSchedule> sparse = {};  // thread level
  // Thread level: so many threads share each index' reduction (ir/team.h). A power of two up to kMostTeam.
  std::optional<Poly> team = {};
  // Of a team: it holds the rows that the body makes, each thread kRowElements of their elements (ir/team.h).
  bool rows = false;
  // Of a team: so many blocks of threads share each index, if more than one with kMostTeam threads each (ir/team.h).
  std::optional<Poly> blocks = {};
};

// A shared array of a block (block level only), undefined until written. Its value has the layout's shape.
struct SharedArray {
  ScalarType element;
  Lmad layout;
};

// Collective copy of a tile (T listing 1): for every index i of `window`,
//   target[i] = all guards hold ? source.flat[window(i)] : pad
// where source.flat is the source in row-major order. Guard k: guards[k].start + i_k < guards[k].bound;
// a dim without bound is proved. Consumes `target` (a shared array or a previous copy into it).
// An axis with `split` runs over several dims of the source, flattened in row-major order: start + i_k is split into
// one index for each, and their strides count in place of i_k * stride of the window, which is 0 there.
// Where a condition of `where` fails, the element is the pad, too. Each of `gathers` adds to the position in the source
// what an array says.
// With a map the tile has other elements than the source: map(source.flat[window(i)], also_1, ...) where all guards
// hold, and the pad, which is not mapped, elsewhere. There are no conditions then.
struct TileGuard {
  struct Part {
    Poly bound, stride;
  };
  Poly start;
  std::optional<Poly> bound{};
  std::vector<Part> split{};
};
// start + sum of strides[k] * i_k, for indices i of the window; a dim that is split has a stride for each part.
struct TileAffine {
  Poly start;
  std::vector<std::vector<Poly>> strides;
};
// 0 <= at, and at < bound if there is one.
struct TileCondition {
  TileAffine at;
  std::optional<Poly> bound{};
};
// stride * positions.flat[at]
struct TileGather {
  Value positions;
  TileAffine at;
  Poly stride;
};
// array.flat[at]; without an array the position itself.
struct TileRead {
  std::optional<Value> array;
  TileAffine at;
};
struct CopyTile {
  Value target;
  Value source;
  Lmad window;
  std::vector<TileGuard> guards;
  std::vector<TileCondition> where{};
  std::vector<TileGather> gathers{};
  Operand pad;
  std::vector<TileRead> also{};
  std::optional<Lambda> map{};
};

// Register-tiled contraction of tiles (T listing 4). Space dims have T (threads) and R (registers) numbers,
// reduction dims a depth. For t in T-space (in parallel), q in depth (row-major), r in R-space:
//   acc_k[t][r] = op(acc_k[t][r], map(tile_1[..], tile_2[..], ...))
// where axis d of a tile is read at t_d*R_d + r_d for a space dim d, and at q_e for reduction dim e = d - space.size().
// The lambda `map` takes one element of each tile. Results: the new accumulators, of shape T.. ++ R.., private.
struct TileDim {
  Poly tile, reg;
};
struct TileOperand {
  Value tile;
  std::vector<int> axes;
};
struct TileContract {
  std::vector<TileDim> space;
  std::vector<Poly> depth;
  std::vector<Value> accumulators;
  std::vector<TileOperand> operands;
  Lambda map;
  ReduceOp reduce;
};

// ---- memory stage -----------------------------------------------------------------------------

struct Alloc {
  Poly bytes;
  Space space;
};

using AnyOp = std::variant<
#define APL_NODE(Struct, ...) Struct,
#include "ir/ops.def"
    std::monostate>;

// How one is copied, moved and destroyed is compiled once, in op.cpp: else every file with a list of statements would
// have that for each of the structs above.
struct Op : AnyOp {
  using AnyOp::AnyOp;
  Op();
  Op(const Op&);
  Op(Op&&) noexcept;
  Op& operator=(const Op&);
  Op& operator=(Op&&) noexcept;
  ~Op();
};

// #[name(arguments)]
struct Attribute {
  std::string name;
  std::vector<std::string> arguments;
};

// let pattern = op
struct Stm {
  std::vector<Value> pattern;
  Op op;
  Location location;
  std::vector<Value> certificates;  // unit values of asserts that this relies on
  std::vector<Attribute> attributes;
};

struct Body {
  std::vector<Stm> stms;
  std::vector<Operand> results;
};

// The keyword of the operation in textual IR.
std::string_view op_name(const Op& op);

BodyPtr make_body(std::vector<Stm> stms, std::vector<Operand> results);

}  // namespace apl
