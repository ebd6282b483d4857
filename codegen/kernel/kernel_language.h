// The kernel language: a small imperative language between memory-stage IR and text, shared by the C and CUDA
// printers. Expressions are trees of shared nodes; statements own their bodies.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/scalar.h"
#include "machine/target/target.h"

namespace apl::kernel {

// C's types: those of the IR, and `int` for thread indices, tile numbers and what is computed from them alone.
struct CType {
  ScalarType scalar = ScalarType::i64;
  bool small = false;
};
constexpr CType kInt{ScalarType::i32, true};
constexpr CType kIndex{ScalarType::i64, false};

struct Expr;
using ExprPtr = std::shared_ptr<const Expr>;

struct Expr {
  enum class Kind : std::uint8_t { literal, variable, prefix, infix, call, element, cast, select };
  Kind kind = Kind::literal;
  std::string text;  // literal, name, operator, function or buffer
  CType type;        // of a cast
  std::vector<ExprPtr> args;
};

ExprPtr literal(std::int64_t value);
ExprPtr literal(const Scalar& value);
ExprPtr variable(std::string name);
ExprPtr prefix(std::string op, ExprPtr a);
ExprPtr infix(std::string op, ExprPtr a, ExprPtr b);
ExprPtr call(std::string function, std::vector<ExprPtr> args);
ExprPtr element(std::string buffer, ExprPtr index);  // A[i] in C and for private arrays, A(i) for device arrays
ExprPtr cast(CType type, ExprPtr a);
ExprPtr select(ExprPtr condition, ExprPtr a, ExprPtr b);
// With the obvious constants folded, so that generated text has no `0 +` or `* 1`.
ExprPtr add(ExprPtr a, ExprPtr b);
ExprPtr mul(ExprPtr a, ExprPtr b);
std::optional<std::int64_t> number(const ExprPtr& e);

struct Stmt;
using Block = std::vector<Stmt>;

struct Stmt {
  enum class Kind : std::uint8_t {
    declare,   // [const] type name = value;
    array,     // type name[count];
    shared,    // a shared array at byte `offset`
    assign,    // target = value;
    call,      // value;
    for_loop,  // for (type name = from; name < bound; name += step)
    while_loop,
    branch,
    barrier,
    comment,
    text,     // C: the line `name`, as it is
    fail,     // the failure cell, and with a name the word of that name, too
    scope,    // CUDA: `body`, which alone is left by a `leave` in it
    leave,    // out of this index: return on CUDA, to the label `name` in C
    label,    // C: where leave goes
    heap,     // a slot for an array on the heap, empty at first
    grow,     // makes it `value` elements long, contents lost; `body` if there is no memory
    release,  // C: frees it
    update,   // CUDA: target = what `body` ends with, `value`, from variable `name` = target, in one atomic step
    atomic,   // CUDA: target = target `name` value, in one atomic step
    lock,     // CUDA: `body`, alone among the threads that lock the same number `value`; with a name, among those of
              // the block, by `count` locks in that shared array
  };
  Kind kind = Kind::comment;
  std::string name;  // variable, buffer, label or comment text
  CType type;
  bool constant = false;
  ExprPtr target, value, from, step;  // bounds and conditions are `value`
  std::int64_t count = 0, offset = 0;
  bool unroll = false;
  std::int64_t unroll_by = 0;  // so many rounds at once; 0: all
  std::string pragma;          // C: before the loop
  std::string scan;            // C: OpenMP's between `body` and `else_body`, of a loop that scans in vectors
  bool parallel = false;       // C: a loop whose rounds threads share (runtime/backends/threads.h)
  ExprPtr elements;            // of it, if each takes a few operations: few are not worth threads; null: always worth
  int collapse = 1;            // how many loops, this one and those right inside of it, threads share
  int check = 0, code = 0;
  std::vector<ExprPtr> numbers;  // of a failure or of an element that is stored, for its message
  Block body, else_body;
};

Stmt declare(CType type, std::string name, ExprPtr value, bool constant = true);
Stmt declare_array(CType type, std::string name, std::int64_t count);
Stmt assign(ExprPtr target, ExprPtr value);
Stmt for_loop(CType type, std::string name, ExprPtr bound, Block body);
Stmt branch(ExprPtr condition, Block then_body, Block else_body = {});
Stmt comment(std::string text);

// How a buffer is reached.
enum class BufferKind : std::uint8_t { global_in, global_out, shared, thread };

struct Param {
  std::string name;
  CType type;
  std::optional<BufferKind> buffer;  // none: a scalar
  bool is_result = false;            // of a function that kernels call: a pointer to the scalar
};

struct Function {
  std::string name;
  std::vector<std::string> comments;  // before the function
  std::vector<Param> params;
  bool is_called = false;    // no kernel, but a function that kernels call
  std::string status;        // of such a function that can fail: the variable for what apl_fail says
  bool can_fail = false;     // takes the failure cell
  bool sees_failed = false;  // GPUs: takes the word that says whether a check failed
  std::int64_t threads = 0;  // of a block; CUDA
  std::int64_t indices = 1;  // of a thread; CUDA
  std::int64_t resident =
      0;  // blocks that a multiprocessor is to hold, so that registers are few enough; 0: as it comes
  std::int64_t shared_bytes = 0;
  Block body;
  // C: text that stands before it and functions that it is made of; what it is called with, if not its parameters.
  std::string declarations, signature;
  std::vector<Function> before = {};
};

std::string c_type(CType type);
std::string parameter(const Param& param, const Dialect& dialect);
std::string print(const ExprPtr& expr, const Dialect& dialect);
std::string print(const Function& function, const Dialect& dialect);
// Removes constants of the body that nothing in the function's text names, and then those that these alone named.
void drop_unread(Function& function, const Dialect& dialect);

}  // namespace apl::kernel
