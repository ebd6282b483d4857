// What an expression is while it is lowered: scalars and arrays are IR operands, tuples and arrays of tuples are
// records of them, and functions are closures that exist at compile time only.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "frontend/types/checked.h"
#include "ir/op.h"

namespace apl::frontend {

struct Frame;
struct Closure;

class StaticValue {
 public:
  using Fields = std::vector<std::pair<std::string, StaticValue>>;

  StaticValue();  // ()
  // A scalar but no i64, or an array.
  explicit StaticValue(Operand operand) : state_(operand) {}
  // An i64: index arithmetic stays a polynomial until an operand is needed.
  explicit StaticValue(Poly index) : state_(std::move(index)) {}
  // A tuple, a record, or an array of either.
  explicit StaticValue(Fields fields);
  explicit StaticValue(std::shared_ptr<const Closure> closure) : state_(std::move(closure)) {}

  const Operand* operand() const { return std::get_if<Operand>(&state_); }
  const Poly* index() const { return std::get_if<Poly>(&state_); }
  const Fields* fields() const;
  const Closure* closure() const {
    const auto* closure = std::get_if<std::shared_ptr<const Closure>>(&state_);
    return closure ? closure->get() : nullptr;
  }
  const StaticValue* field(std::string_view name) const;
  // How many operands it consists of; of a record that doubles with each step, too many to look at them all.
  std::size_t leaf_count() const;
  // Whether no part is a function.
  bool is_first_order() const;

 private:
  struct Record;
  // Records are shared, so that copying a value is cheap whatever its size.
  std::variant<Operand, Poly, std::shared_ptr<const Record>, std::shared_ptr<const Closure>> state_;
};

StaticValue tuple_value(std::vector<StaticValue> elements);

// A type as an expression of the program wrote it, with the frame that says what its parameters are.
struct TypeArgument {
  Ty type;
  Frame* frame = nullptr;
};
struct SizeArgument {
  Size size;
  Frame* frame = nullptr;
};

// The names of one function, lambda or local function while its body is lowered.
struct Frame {
  Frame* parent = nullptr;
  std::unordered_map<BinderId, StaticValue> values;
  std::unordered_map<ParamId, TypeArgument> types;
  std::unordered_map<BinderId, SizeArgument> sizes;  // what the use of a function said; shapes of arguments come first
  std::uint32_t call = 0;                            // by which the body came where it is lowered, as in Location::call
};

// A function and the arguments that it has got so far.
struct Closure {
  struct Lambda {
    const std::vector<PatternPtr>* params;
    const Expr* body;
    Frame* frame;
  };
  // A top-level definition as it is used somewhere.
  struct Definition {
    std::uint32_t global;
    const Resolution* use;
    Frame* frame;
  };
  struct Builtin {
    const PreludeEntry* entry;
    const Resolution* use;
    Frame* frame;
  };
  struct RightSection {
    StaticValue function, right;
  };
  struct Access {
    const Expr* section;
    Frame* frame;
  };
  // `???` where a function should be.
  struct HoleFunction {
    TypeArgument type;
  };

  std::variant<Lambda, Definition, Builtin, RightSection, Access, HoleFunction> what;
  std::size_t arity = 1;  // at least 1
  std::vector<StaticValue> arguments;
};

}  // namespace apl::frontend
