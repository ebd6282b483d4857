// Functions and modules. A pass takes a module and gives a new one; what it did not touch is shared.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op.h"
#include "ir/soa_field.h"

namespace apl {

// Types and name hints of a function's values, by value id. A value of another function has the id of one of these, or
// of none: then its type is unit and its name `?`, and the verifier reports whoever uses it.
class ValueTable {
 public:
  struct Info {
    Type type;
    std::string name;  // a hint: need not be unique
  };

  Value add(Type type, std::string name);
  bool contains(Value value) const { return value.id < infos_.size(); }
  const Type& type(Value value) const { return info(value).type; }
  Type type(const Operand& operand) const;
  const std::string& name(Value value) const { return info(value).name; }
  void set_type(Value value, Type type) {
    if (contains(value)) infos_[value.id].type = std::move(type);
  }
  void set_name(Value value, std::string name) {
    if (contains(value)) infos_[value.id].name = std::move(name);
  }
  std::size_t size() const { return infos_.size(); }

 private:
  const Info& info(Value value) const { return contains(value) ? infos_[value.id] : unknown(); }
  static const Info& unknown();

  std::vector<Info> infos_;
};

// How an entry looks from outside.
struct EntryInfo {
  std::string name;
  // One a source parameter: source name, and source type as text. One that is sparse became the arrays of `fields`
  // (ir/sparse_soa.h), and `type` is that of the matrix.
  struct Param {
    std::string name;
    std::string type;
    std::vector<SoaField> fields = {};
    bool operator==(const Param&) const = default;
  };
  // `pattern`: the sparse parameter whose non-zeros are those of the result, which is their values alone.
  struct Result {
    std::string type;
    std::optional<std::size_t> pattern = {};
    bool operator==(const Result&) const = default;
  };
  // A constant of the program that the function reads (ir/constants.h), and how many values it has.
  struct Constant {
    std::string function;
    std::size_t values = 1;
    bool operator==(const Constant&) const = default;
  };
  std::vector<Param> params;
  std::vector<std::size_t> param_values;  // how many of Function::params each source parameter became
  std::vector<Result> results;
  std::vector<Constant> constants = {};  // their values are the last of Function::params, which no caller gives
  bool is_constant = false;              // the function makes a constant; it is no entry for those outside
};

struct Function {
  std::string name;
  std::optional<EntryInfo> entry;
  std::vector<Value> sizes;  // i64: fixed by the shapes of the arguments (or given first by Apply)
  std::vector<Value> params;
  std::vector<Type> results;        // in terms of sizes and params, and of
  std::vector<Value> result_sizes;  // i64: sizes of results that only the body decides; such a function is not called
  BodyPtr body;
  ValueTable values;
  std::vector<Attribute> attributes;
  Location location;

  const Type& type(Value v) const { return values.type(v); }
  // Whether callers from outside know it.
  bool is_entry() const { return entry && !entry->is_constant; }
  bool is_constant() const { return entry && entry->is_constant; }
  // The parameters that callers give: all but the values of constants.
  std::span<const Value> given_params() const;
};

using FunctionPtr = std::shared_ptr<const Function>;

enum class Stage : std::uint8_t { soac, kernel, memory };
std::string_view to_text(Stage stage);

struct HostValue;
template <class Values>
struct CompressedRows;

// A matrix that an entry's `#[constant(A)]` operand is known to be. Its text is not a part of the module's: schedules
// name it by its key.
struct KnownMatrix {
  std::string entry, operand;
  std::string key;  // 16 hexadecimal digits: of sizes, positions and values
  std::shared_ptr<const CompressedRows<HostValue>> matrix;
};

struct Module {
  Stage stage = Stage::soac;
  std::string file;    // name of the source file, for messages
  std::string source;  // its text, for caret lines; may be empty
  std::vector<FunctionPtr> functions;
  std::vector<Location> calls;     // that were inlined, as Location::call counts them (ir/call_table.h)
  std::vector<KnownMatrix> known;  // operands whose values are known

  const Function* find(std::string_view name) const;
  const Function* find_entry(std::string_view name) const;  // no constant
};

// The types that an operation's results have. For If, Loop and Apply the types of bodies, parameters or the
// called function decide; `module` may be null if `op` holds no Apply. Sizes that a branch or loop itself decides are
// among its results: they are named by `pattern` where it is given, else as in the first branch or in the parameters.
std::vector<Type> result_types(const Op& op, const ValueTable& values, const Module* module = nullptr,
                               const std::vector<Value>& pattern = {});

}  // namespace apl
