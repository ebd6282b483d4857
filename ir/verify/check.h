// One function at a time: what every invariant's check reads, and how it reports.
// Each check_* function is one invariant; what it finds broken is a Diagnostic with code ir.invalid.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/module.h"

namespace apl::verifier {

// Those of the module by name; modules may have thousands.
using Functions = std::unordered_map<std::string_view, const Function*>;

class Check {
 public:
  Check(const Module& m, const Functions& all, const Function& f, std::vector<Diagnostic>& out)
      : module(m), functions(all), function(f), out_(out) {}

  const Module& module;
  const Functions& functions;
  const Function& function;
  const Function* find(const std::string& name) const {
    const auto found = functions.find(name);
    return found == functions.end() ? nullptr : found->second;
  }

  const ValueTable& values() const { return function.values; }
  const Type& type(Value v) const { return function.values.type(v); }
  Type type(const Operand& x) const { return function.values.type(x); }

  void broken(const Stm& stm, const std::string& what);
  void broken(const std::string& what);  // of the function itself
  std::size_t count() const { return out_.size(); }

  // Reads the definitions of sizes, so that `n+1` and a value that is bound to it agree.
  void learn_sizes();
  bool equal(const Poly& a, const Poly& b) const;         // proved
  bool may_be_equal(const Poly& a, const Poly& b) const;  // not disproved
  // Kind, element type and rank agree; and the sizes are proved equal, or not proved different.
  bool same(const Type& a, const Type& b) const;
  bool compatible(const Type& a, const Type& b) const;
  bool similar(const Type& a, const Type& b) const;  // sizes aside

  std::string name(Value v) const { return "`" + function.values.name(v) + "`"; }
  std::string text(const Poly& poly) const;
  std::string text(const Type& type) const;
  std::string text(const Operand& x) const;

 private:
  Poly expand(Poly poly) const;
  std::optional<Poly> as_size(const Binary& op) const;

  std::vector<Diagnostic>& out_;
  std::unordered_map<Value, Poly> sizes_;
};

// What surrounds a statement.
struct Surroundings {
  enum class Level { host, thread, block, inblock };
  Level level = Level::host;
  bool in_lambda = false;  // of a screma or a tile_contract
};
void walk(const Function& function, const std::function<void(const Stm&, const Surroundings&)>& visit);

// ids exist, bodies and operations are there, nesting is bounded. The others rely on this one.
bool check_structure(Check& check);
// Of inlined calls each comes after the one around it.
bool check_calls(const Module& module, std::vector<Diagnostic>& out);
// Every value is bound once, and read only where it is in scope; so are the symbols of types.
void check_scopes(Check& check);
// Each stage holds its own operations.
void check_stage(Check& check, const Stm& stm, const Surroundings& around);
// Levels nest: inblock inside block, tiles at block level, memory where it can be.
void check_levels(Check& check, const Stm& stm, const Surroundings& around);
// At the memory stage arrays are bound to blocks, before it nothing is.
void check_memory(Check& check);
// What an operation consumes is not used again.
void check_consumption(Check& check);
// The function's own sizes, parameters, results and entry.
void check_function(Check& check);
// Names of functions and entries are unique.
void check_names(const Module& module, std::vector<Diagnostic>& out);
// The operation's own rules: operands, bodies, lambdas, extents.
void check_operation(Check& check, const Stm& stm);
// The types of what is bound are those that the operation gives.
void check_result_types(Check& check, const Stm& stm);
// A kernel is what its schedule says (ir/schedule.h), whose numbers are tuning parameters. All else holds.
void check_schedule(Check& check, const Stm& stm);
// Symbols of a polynomial are i64.
void check_size(Check& check, const Stm& stm, const Poly& poly);

// 2n parameters and n results of the types of the neutral elements.
void check_reduce(Check& check, const Stm& stm, const ReduceOp& reduce);
// The map function's first results are what the operators take.
void check_reduced(Check& check, const Stm& stm, const Lambda& map, const std::vector<const ReduceOp*>& reduces);

// The rules of one operation each; ids and bodies are known to exist.
#define APL_NODE(Struct, ...) void check_op(Check& check, const Stm& stm, const Struct& op);
#include "ir/ops.def"

}  // namespace apl::verifier
