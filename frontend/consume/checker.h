// The state of the check and its parts; each part is defined in the file named above it. The rules and the order in
// which they look are those of Futhark's consumption checker; docs: the error index of its user's guide.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "frontend/consume/flow.h"
#include "frontend/types/checked.h"
#include "ir/diagnostic.h"

namespace apl::frontend {

// The names that a pattern binds, with the parts of a flow like it that are theirs.
void each_name(const Pattern& pattern, const FlowPtr& flow,
               const std::function<void(const Pattern&, const FlowPtr&)>& visit);
// `12:3`.
std::string place(Location location);

class Consumption {
 public:
  Consumption(const Checked& program, const DiagnosticSink& sink)
      : program_(program), store_(program.store), sink_(sink), outlines_(program.store) {}
  bool run();

 private:
  struct Entry {
    FlowPtr flow;
    bool consumable = false;
    std::uint32_t order = 0;  // of entering
  };
  struct Consumed {
    VarId variable;
    Location location;
  };
  struct Argument {
    const Expr* expr;
    FlowPtr flow;
  };

  // names.cpp
  void bind(VarId variable, FlowPtr flow, bool consumable);
  void bind_pattern(const Pattern& pattern, const FlowPtr& flow);
  FlowPtr part_of(const FlowPtr& flow, const std::string& field, Ty type);
  FlowPtr observe(const Resolution& resolution, Location location);
  bool is_of_function(const TypeMap& instance) const;
  FlowPtr unscoped(const FlowPtr& flow, std::uint32_t start) const;
  std::vector<VarId> take_observed(std::size_t begin, std::uint32_t start);
  void consume(const Aliases& aliases, Location location);
  void check_use(const Aliases& aliases, Location location);
  std::vector<Consumed> take_consumed(std::size_t begin);
  void put_consumed(const std::vector<Consumed>& consumed);
  VarId result_variable(std::string description);
  std::string name_of(VarId variable) const;
  std::string describe(VarId variable) const;
  void report(Code code, Location location, std::string message, std::vector<Note> notes = {});

  // written.cpp
  FlowPtr written(const TypeExpr& type, const FlowPtr& outline, int depth = 0);
  FlowPtr signature(const PreludeEntry& entry, bool member);
  FlowPtr parameter(const Pattern& pattern);
  void check_sizes(const TypeExpr& type);
  void check_sizes(const Pattern& pattern);

  // expressions.cpp
  FlowPtr check(const Expr& expr);
  void check_dims(const std::vector<IndexDim>& dims);
  FlowPtr let(const LetExpr& let);
  void let_pattern(const LetPattern& let);
  void let_update(const LetUpdate& update, const LetBinding& binding);
  FlowPtr branch(const IfExpr& branch);
  FlowPtr match(const MatchExpr& match);
  FlowPtr without_consumed(const FlowPtr& flow);
  FlowPtr update(const UpdateExpr& update, Location location);
  bool check_steps(const std::vector<AccessStep>& steps);
  void check_overlap(const FlowPtr& source, const std::string& name, const FlowPtr& value, const Expr& expr);

  // calls.cpp
  FlowPtr call(const Expr& expr, const Call& call);
  FlowPtr infix(const Expr& expr, const Infix& infix);
  FlowPtr section(const Expr& expr, const Section& section);
  FlowPtr argument(const Expr& expr, const Flow* arrow, const std::string& function,
                   const std::vector<Argument>& others);
  void check_self_aliases(const FlowPtr& flow, Location location);
  bool check_compatible(const FlowPtr& expected, const FlowPtr& actual, Location location, const std::string& what);
  FlowPtr applied(const FlowPtr& function, const std::vector<FlowPtr>& arguments, const std::string& name,
                  const Expr& expr);

  // functions.cpp
  FlowPtr function(const std::vector<PatternPtr>& params, const TypeExpr* result, const Expr& body);
  FlowPtr definition(const Definition& definition, const Global& global);
  FlowPtr specified(const Definition& definition, const TypeExpr& spec);
  void bind_parameter(const Pattern& pattern, const FlowPtr& flow);
  void check_return(const std::vector<PatternPtr>& params, const FlowPtr& type, const FlowPtr& value,
                    Location location);
  void check_globals(const FlowPtr& value, Location location);
  FlowPtr inferred_uniqueness(const std::vector<PatternPtr>& params, const FlowPtr& value);

  // loops.cpp
  struct LoopParam {
    VarId variable;
    const Pattern* pattern;
    bool fixed;  // its type is written, and says whether it may be consumed
    bool consumed;
    bool given = false;  // the body consumes it, or keeps it
  };
  FlowPtr loop(const LoopExpr& loop, Location location);
  void collect_params(const Pattern& pattern, const FlowPtr& flow, bool fixed, std::vector<LoopParam>& out);
  void converge(const LoopExpr& loop, std::vector<LoopParam>& params, const FlowPtr& body, Location location);
  FlowPtr loop_parameter(const Pattern& pattern, const std::vector<LoopParam>& params);
  FlowPtr implied_initial(const Pattern& pattern);
  void check_initial(const FlowPtr& param, const FlowPtr& initial, Location location);
  void check_free(const std::string& what, const std::vector<VarId>& observed, const std::vector<Consumed>& consumed,
                  Location location);

  Ty type_of(const Expr& expr) const { return program_.types[expr.id]; }

  const Checked& program_;
  const TypeStore& store_;
  const DiagnosticSink& sink_;
  Outlines outlines_;
  Paths paths_;
  bool failed_ = false;
  bool silent_ = false;
  int errors_ = 0;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::string>> reported_;

  std::vector<FlowPtr> globals_;
  std::unordered_map<std::string, FlowPtr> signatures_;

  // Of the definition being checked.
  std::unordered_map<VarId, Entry> env_;
  std::uint32_t order_ = 0;
  std::uint32_t barrier_ = 0;  // what was entered before cannot be consumed here
  std::vector<VarId> observed_;
  std::unordered_map<VarId, Location> consumed_;
  std::vector<VarId> consumed_log_;
  std::vector<std::string> results_;
};

}  // namespace apl::frontend
