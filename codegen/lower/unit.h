// Names, numbers and expressions: what the kernels and the host code of an entry have in common.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/kernel/kernel_language.h"
#include "runtime/backends/context.h"
#include "runtime/names.h"

namespace apl::lower {

inline kernel::ExprPtr plus(kernel::ExprPtr a, kernel::ExprPtr b) { return kernel::add(std::move(a), std::move(b)); }

// What code generation cannot do; caught in generate().
struct Unsupported {
  Diagnostic diagnostic;
};
[[noreturn]] void unsupported(Location location, std::string what);

// A check that a kernel makes, or a call that was inlined around checks, for apl_locations[].
struct CheckLocation {
  Location location;
  int call = 0;         // by which it came where it is: one more than the number of its location
  std::string message;  // empty for a call
};

// What all entries of a file share.
struct FileScope {
  // With `only`, of that entry alone.
  explicit FileScope(const Module& module, const Function* only = nullptr);

  std::unordered_map<std::string_view, const Function*> functions;  // of the module
  const std::vector<Location>& calls;
  const std::vector<KnownMatrix>& known;
  std::optional<ProxyOptions> proxy;  // of products with known matrices
  // Whether some kernels may stray (ir/stray.h) behind others whose checks failed. Calls do not wait for their kernels,
  // so that those may be another entry's.
  bool may_stray_behind = false;
  std::vector<CheckLocation> locations;
  NameScope names;
  // Functions of scalars that kernels call, by their names in the module; and those, callees first.
  std::map<std::string, kernel::Function> called;
  std::vector<std::string> called_order;
  // Functions of host code, by their names in the module, in the order in which calls of them came.
  std::map<std::string, std::string> host_names;
  std::vector<std::string> host_order;
  // Functions of constants that host code reads, by their names in the module.
  std::vector<std::string> constants;

  // One more than the number of the location of a call that was inlined, 0 for none.
  int call(std::uint32_t number);

 private:
  std::unordered_map<std::uint32_t, int> call_locations_;
};

// What all kernels and the host code of one entry share.
class Unit {
 public:
  Unit(const Function& function, Target target, const std::map<std::string, std::int64_t>& parameters, FileScope& file);

  const Function& function;
  const Target target;

  const std::string& name(Value value);  // a C identifier, one a value
  // A C identifier of its own, which can have the endings too.
  std::string fresh(const std::string& hint, std::initializer_list<std::string_view> endings = {}) {
    return names_in_use_.add(hint, endings);
  }
  // The same for what is seen in the whole file.
  std::string fresh_in_file(const std::string& hint, std::initializer_list<std::string_view> endings = {}) {
    return names_in_use_.add(hint, endings, &file_.names);
  }
  std::optional<std::int64_t> tile(Value value) const;  // the number of a get_size, if it is one
  const std::map<Value, std::int64_t>& tiles() const { return tiles_; }
  void set_tile(Value value, std::int64_t number) { tiles_[value] = number; }
  void forget_tile(Value value) { tiles_.erase(value); }  // it is chosen when the program runs
  std::optional<std::int64_t> fold(const Poly& p) const;  // the number, if it is made of tile numbers alone
  std::int64_t constant(const Poly& p, const std::string& what) const;  // the same, or unsupported
  int add_check(Location location, std::string message);
  int call(const Location& location) { return file_.call(location.call); }
  // One more than the number of the location of a call that stays; 0 if it is not known.
  int add_call(const Location& location);
  const std::optional<ProxyOptions>& proxy() const { return file_.proxy; }
  bool may_stray_behind() const { return file_.may_stray_behind; }
  const KnownMatrix* known(const std::string& key) const;  // null if the module does not have it
  // The function of that name in the module, for kernels.
  const kernel::Function& called(const std::string& name);
  // What host code calls it.
  const std::string& host_name(const std::string& name);
  // The number of the constant that the function of that name makes, among those that the file reads.
  std::size_t constant_number(const std::string& name);
  const apl::Function& callee(const std::string& name) const;
  const Dialect& dialect() const { return *target.dialect; }

 private:
  std::map<Value, std::int64_t> tiles_;
  std::unordered_map<Value, std::string> names_;
  NameScope names_in_use_;
  FileScope& file_;
};

// Expressions over a unit's values; `scalars` overrides what a value is called (lambda parameters, thread indices).
class Values {
 public:
  Values(Unit& unit, const Dialect& dialect) : unit(unit), dialect(dialect) {}

  Unit& unit;
  const Dialect& dialect;  // of the text that they stand in: host code is C whatever the target
  std::unordered_map<Value, kernel::ExprPtr> scalars;

  kernel::ExprPtr value(Value v);
  kernel::ExprPtr operand(const Operand& x);
  kernel::ExprPtr constant(const Scalar& x);
  kernel::ExprPtr poly(const Poly& p);
  kernel::ExprPtr wrapping(const Poly& p);
  // The scalar operation as an expression.
  kernel::ExprPtr unary(UnaryOp op, ScalarType type, kernel::ExprPtr x);
  kernel::ExprPtr binary(BinaryOp op, ScalarType type, kernel::ExprPtr x, kernel::ExprPtr y);
  // div and mod of integers on a GPU by what is the same in all threads.
  kernel::ExprPtr uniform_division(BinaryOp op, ScalarType type, kernel::ExprPtr x, kernel::ExprPtr y);
  kernel::ExprPtr compare(CompareOp op, ScalarType type, kernel::ExprPtr x, kernel::ExprPtr y);
  kernel::ExprPtr convert(const Convert& op, ScalarType from, kernel::ExprPtr x);

 private:
  kernel::ExprPtr factor(const Factor& f);
  kernel::ExprPtr typed_call(const std::string& name, ScalarType type, std::vector<kernel::ExprPtr> args);
};

// The capacity of the failure cell, and the 0 behind them in C.
constexpr std::size_t kMaxFailureNumbers = APL_FAILURE_VALUES - 1;

// A condition under which an index or slice is wrong, and what to say then: `%lld` stands for the next number.
struct BoundsCheck {
  kernel::ExprPtr outside;
  std::string message;
  std::vector<kernel::ExprPtr> numbers;
};
// Empty for no dims.
std::vector<BoundsCheck> bounds_checks(Values& values, const Type& type, const std::vector<DimIndex>& dims);

}  // namespace apl::lower
