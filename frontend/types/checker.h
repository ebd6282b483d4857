// The state of inference and its parts; each part is defined in the file named above it.
//
// Levels count nested scopes: every variable and every name that can be a size has one, and a variable may
// only become what its level sees. So a size cannot leave the scope of the name that it is.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/modules/environment.h"
#include "frontend/types/checked.h"
#include "frontend/types/unify.h"

namespace apl::frontend {

class Modules;

// An array type without size in a written type, but for those of functions' parameters and results.
const TypeExpr* anonymous_size(const TypeExpr& type);

class Checker {
 public:
  Checker(Program program, const DiagnosticSink& sink);
  ~Checker();
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;
  std::optional<Checked> run();

 private:
  friend class Modules;
  // Puts names out of scope again, and the level back.
  class Scope {
   public:
    explicit Scope(Checker& checker) : checker_(checker), mark_(checker.scope_.mark()), level_(checker.level_) {}
    ~Scope() {
      checker_.scope_.leave(mark_);
      checker_.level_ = level_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Checker& checker_;
    ScopeTable::Mark mark_;
    std::uint32_t level_;
  };
  using Names = std::set<std::string>;
  using Visible = std::function<bool(BinderId)>;
  // Two sizes that a type may have, and the unknown size that stands for either.
  struct Differing {
    Size s, t, unknown;
  };

  // check_scopes.cpp
  void enter_type(const std::string& name, Ty type);
  BinderId bind(const std::string& name, Location location, Ty type, Binder::Kind kind = Binder::Kind::value);
  bool claim(Names& names, const std::string& name, Location location);  // reports a name bound twice
  bool claim_field(Names& names, const std::string& name, Location location, const std::string& where);
  void check_redefinition(const std::string& name, Location location);
  std::optional<Resolution> resolve(const Name& name);
  std::optional<Resolution> resolve_simple(const std::string& name);
  std::optional<Resolution> resolve_member(const ModuleValue& module, const std::string& name) const;
  void report_unknown_member(const Name& name);
  std::optional<Resolution> resolve_quietly(const Name& name);  // reports nothing
  Ty instantiate(Resolution& resolution, Location location, std::uint32_t expr);
  Ty instantiate_prelude(Resolution& resolution, Location location);

  // check_types.cpp
  Ty type_of(const TypeExpr& type);
  Ty type_of_node(const TypeExpr& type);
  Ty type_of_name(const TypeExpr& type, const Name& name, const std::vector<TypeArgumentExpr>& arguments);
  TypeBindingPtr find_type(const Name& name) const;
  std::optional<TypeMap> type_arguments(const TypeBinding& binding, const Name& name,
                                        const std::vector<TypeArgumentExpr>& arguments, Location location);
  Ty type_of_record(const TypeRecord& record);
  Ty type_of_sum(const TypeSum& sum);
  Ty type_of_arrow(const TypeArrow& arrow);
  Ty type_of_exists(const TypeExists& exists);
  void enter_type_params(const std::vector<TypeParam>& params, Names& names, std::vector<ParamId>* type_params,
                         std::vector<BinderId>* sizes);

  // check_sizes.cpp
  Size size_of_type(const Expr& size);
  // An expression as a size, if it binds no names and has no more parts than `budget`, which is used up.
  std::optional<Size> as_size(const Expr& expr, int& budget);
  std::optional<Size> as_size_part(const Expr& expr, int& budget);
  std::optional<Size> size_of_name(const Resolution& resolution, const Expr& expr);
  Size size_field(Size record, const std::string& field);
  // The size that an argument is: the same, or a new one that only exists once the argument is evaluated.
  void warn_of_binding(const Expr& size);
  Size size_of_argument(const Expr& argument, Ty type);

  // check_patterns.cpp
  void pattern(const Pattern& pattern, Ty type, Names& names);
  void pattern_tuple(const Pattern& pattern, const PatternTuple& tuple, Ty type, Names& names);
  void pattern_record(const Pattern& pattern, const PatternRecord& record, Ty type, Names& names);
  void pattern_constructor(const Pattern& pattern, const PatternConstructor& constructor, Ty type, Names& names);
  Ty with_own_sizes(const Pattern& pattern, Ty annotated);
  static bool is_refutable(const Pattern& pattern);
  void require_irrefutable(const Pattern& pattern);
  void binders_of(const Pattern& pattern, std::vector<BinderId>& out) const;

  // check_expressions.cpp
  Ty infer(const Expr& expr, Ty expected = {});  // `expected` only helps: lambdas take their parameters' types from it
  Ty infer_node(const Expr& expr, Ty expected);
  bool check(const Expr& expr, Ty expected, const std::string& what);
  Ty infer_literal(const Expr& expr, const NumberLiteral& literal);
  Ty infer_array(const Expr& expr, const ArrayExpr& array);
  Ty infer_if(const Expr& expr, const IfExpr& branch, Ty expected);
  // The type of what may be of any of these, each the type of one expression.
  struct Branch {
    const Expr* value;
    Ty type;
  };
  Ty join_branches(const Expr& expr, const std::vector<Branch>& branches, BinderId inside, const std::string& name);
  Size differing(std::vector<Differing>& known, Size s, Size t, const Expr& at, const std::string& name,
                 const std::string& why);
  Ty without_inner_sizes(Ty type, BinderId first, const Expr& expr, const std::string& name, const std::string& why);
  Ty infer_ascribe(const Ascribe& ascribe);
  Ty infer_update(const Expr& expr, const UpdateExpr& update);
  Ty with_field(Ty type, const std::vector<AccessStep>& steps, std::size_t step, Ty value);
  std::optional<Size> range_size(const RangeExpr& range, Ty element);
  Ty infer_range(const Expr& expr, const RangeExpr& range);
  Ty infer_variable(const Expr& expr, const Name& name);
  Ty infer_hole(const Expr& expr);
  ModulePtr find_opened(const Name& name) const;
  void open_module(const ModuleValue& module);
  void check_literals();
  Ty loosened(Ty type);  // sizes replaced by variables
  using SizeChange = std::function<Size(Size)>;
  Ty with_sizes(Ty type, const SizeChange& change);  // of arrays in tuples and records, but not of functions
  Size unknown_size(const std::string& name, Location location, std::uint32_t expr, std::string why = {});
  Ty fresh(Location location, Constraint constraint = {});

  // check_matches.cpp
  Ty infer_constructor(const Expr& expr, const ConstructorExpr& constructor, Ty expected);
  Ty infer_match(const Expr& expr, const MatchExpr& match, Ty expected);
  void want_constructor(Ty sum, const std::string& name, std::vector<Ty> payload, Location location);
  bool solve_constructor(Ty sum, const std::string& name, const std::vector<Ty>& payload, Location location);
  void solve_constructors(bool last);
  void check_matches();

  // check_access.cpp
  Ty field(Ty record, const std::string& name, Location location);
  void solve_fields(bool last);
  Size slice_size(const IndexDim& dim, Size whole, std::uint32_t unknown_at);
  Ty index_type(Ty array, const std::vector<IndexDim>& dims, Location location, std::uint32_t unknown_at);
  Ty step_types(Ty type, const std::vector<AccessStep>& steps, std::uint32_t unknown_at);
  Ty updated_part(Ty type, const std::vector<AccessStep>& steps, std::uint32_t unknown_at);

  // check_calls.cpp
  Ty infer_call(const Expr& expr, const Call& call);
  Ty apply(const Expr& expr, Ty function, const std::string& name, const std::vector<const Expr*>& arguments,
           std::vector<Ty> lifted = {});
  std::vector<Ty> lifted_since(std::size_t instances) const;
  Ty infer_infix(const Expr& expr, const Infix& infix);
  Ty infer_operator(const Expr& expr, const Name& op);
  Ty infer_section(const Expr& expr, const Section& section);
  Ty infer_lambda(const LambdaExpr& lambda, Ty expected);
  void add_open_parameters(const Pattern& pattern);
  Ty infer_function(const std::vector<PatternPtr>& params, const TypeExpr* result, const Expr& body, Ty expected,
                    Names& names);
  Ty with_named_existentials(Ty type, Location location);
  void report_unknown_params(Ty type, const std::vector<BinderId>& unknown, Location location);
  Ty with_witnesses(Ty type, const Visible& visible, std::uint32_t level);
  Ty close_over(const std::vector<PatternPtr>& params, const std::vector<Ty>& types, Ty result, std::uint32_t level);

  // check_existentials.cpp
  // Types of lifted type parameters where their function is applied.
  struct Opening {
    std::unordered_map<std::uint32_t, Ty> uses;  // in the result: the variable of each
    std::vector<Ty> taken;                       // variables in what functions among the parameters take
    std::vector<BinderId> markers;               // stand for sizes that an argument binds
    bool possible = true;
  };
  Ty with_own_uses(Ty type, const std::vector<Ty>& variables, Opening& opening);
  Ty opened(Ty type, Opening& opening, TypeMap sizes, const std::function<Size()>& make);
  void find_taken(const std::vector<Ty>& wanted, const std::vector<Ty>& variables, Opening& opening) const;
  std::optional<Ty> close_uses(Ty result, Opening opening, const Expr& expr);

  // check_lets.cpp
  Ty infer_let(const LetExpr& let, Ty expected);
  void let_pattern(const LetPattern& let);
  void let_function(const LetFunction& let, const LetBinding& binding);
  void let_update(const LetUpdate& let, const LetBinding& binding);
  Ty escape(Ty type, std::uint32_t level);
  std::optional<Size> resolved(Size size, const Visible& visible, int depth);
  Ty with_visible_sizes(Ty type, const Visible& visible);
  void sizes_in(const Pattern& pattern, std::unordered_set<BinderId>& names, std::unordered_set<BinderId>& concrete);
  bool is_small(Size size) const;
  Ty infer_loop(const Expr& expr, const LoopExpr& loop);
  struct LoopSizes;
  void check_loop_scope(Ty params, const std::vector<BinderId>& own, Location location);
  void loop_form(const LoopExpr& loop, Ty bound, Ty array, Names& names);
  void resolve_loop_sizes(LoopSizes& sizes, Ty params, Ty body);
  Ty any_sizes(Ty type, const std::vector<BinderId>& sizes);
  Ty implied_initial(const Pattern& pattern);

  // check_declarations.cpp
  Target definition(const Declaration& declaration, const Definition& definition, bool program);
  void infer_with_open_sizes(Global& global, const Definition& definition);
  std::size_t infer_definition(Global& global, const Definition& definition);
  void finish_definition(Global& global, const Definition& definition);
  void forget_inferred(Global& global, const Definition& definition);
  void generalise(Ty type, std::uint32_t outer, std::vector<ParamId>* params, std::vector<BinderId>& sizes,
                  const std::unordered_set<std::uint32_t>* only = nullptr);
  void apply_defaults(const Global& global, const Definition& definition);
  void check_hidden(const std::vector<PatternPtr>& params, const TypeExpr& written, Ty result);
  TypeBinding type_binding(const TypeDefinition& definition, const TypeExpr* written);
  Liftedness written_liftedness(const TypeExpr& type) const;
  void check_abbreviation(const TypeDefinition& definition, const TypeBinding& binding);
  Target add_global(Global global);
  std::unordered_set<BinderId> sizes_of(const std::vector<Ty>& params) const;
  void check_entry(const Global& global, const Definition& definition);
  void check_size_params(const Global& global, const Definition& definition);
  void check_ambiguous();
  void check_comparisons();

  // check_errors.cpp
  void report(Code code, Location location, std::string message, std::vector<Note> notes = {}, std::string hint = {});
  // For a name that does not exist: the one among `names` that was meant, as a hint.
  void report_unknown(Code code, Location location, std::string message, std::string_view word,
                      std::vector<std::string> names);
  std::vector<std::string> names_in_scope() const;
  void warn(Code code, Location location, std::string message);
  void say(Diagnostic diagnostic);
  bool is_part(Size part, Size whole) const;
  bool is_record(Ty type) const;
  std::string unshared_fields(Ty expected, Ty actual) const;
  std::string unshared_constructors(Ty expected, Ty actual) const;
  void mismatch(const Clash& clash, Location location, Ty expected, Ty actual, const std::string& what);
  std::vector<Note> size_notes(const Clash& clash) const;
  bool unify(Ty expected, Ty actual, Location location, const std::string& what);
  bool require(Ty type, const Constraint& constraint, Location location, const std::string& what);

  void take_over(TypeMap& map, const std::vector<ParamId>& params, const std::vector<BinderId>& sizes,
                 Location location, const std::string& owner);

  Checked out_;
  TypeStore& store_;
  std::unordered_map<BinderId, Size> let_sizes_;  // `let n = m + 1`: what n is
  Unifier unifier_;
  const DiagnosticSink& sink_;
  std::uint32_t level_ = 0;
  bool failed_ = false;
  int errors_ = 0;

  ScopeTable scope_;
  std::vector<std::pair<ScalarType, std::size_t>> open_modules_;  // with the order of the names in scope
  std::unique_ptr<Modules> modules_;

  // Signatures of prelude names, parsed where one is first used.
  struct Scheme {
    std::vector<ParamId> params;
    std::vector<BinderId> sizes;
    Ty type;
    std::size_t written = 0;             // of the type parameters of a local function
    std::unordered_set<ParamId> unused;  // those of parameters that it does not look at
  };
  // What a local function's own type parameters became where it is used: types that differ in sizes at most.
  struct LocalUse {
    ParamId param;
    Ty type;
    Location location;
    BinderId function;
    bool unused;  // the function does not look at it
  };
  std::vector<LocalUse> local_uses_;
  std::unordered_set<std::uint32_t> unused_variables(Ty type) const;
  std::unordered_set<std::uint32_t> results_of_functions(Ty type) const;
  void check_local_uses();
  const Definition* defined_ = nullptr;                         // the definition that is being checked
  std::optional<std::vector<Diagnostic>> held_;                 // what was said of it, until it is said for good
  std::vector<std::uint32_t> with_unknown_;                     // expressions in it that have unknown sizes
  std::vector<std::pair<std::string, Location>> arrow_params_;  // of the function types that are being read
  std::unordered_set<std::uint32_t> named_existentials_;        // variables of sizes that `?[n].` names
  void report_recursion(const Name& name);
  TypeBindingPtr accumulator_of();
  TypeBindingPtr accumulator_of_;
  std::unordered_map<std::string, Scheme> schemes_;
  std::unordered_map<BinderId, Scheme> local_schemes_;  // of local functions
  const Scheme& scheme_of(const PreludeEntry& entry, std::optional<ScalarType> module);

  // Of the definition being checked.
  std::vector<Ty> numbers_;  // overloaded variables, to be defaulted
  struct Open {
    Ty type;
    Size size;
    Location location;
    std::string what;
    bool named = false;   // a size of `let`, by its name
    bool lifted = false;  // the type of a lifted type parameter
  };
  std::vector<Open> instances_;  // must be known in the end
  std::vector<Open> holes_;
  struct PendingField {
    Ty record;
    std::string name;
    Ty result;
    Location location;
    bool section;  // of `(.f)`: a function is applied
  };
  std::vector<PendingField> pending_;
  bool in_section_ = false;
  struct PendingConstructor {
    Ty sum;
    std::string name;
    std::vector<Ty> payload;
    Location location;
  };
  std::vector<PendingConstructor> pending_constructors_;
  // What must match every value; checked when all types are known.
  struct Exhaustive {
    std::vector<const Pattern*> patterns;
    Ty type;
    Location location;
    bool match = false;
  };
  std::vector<Exhaustive> exhaustive_;
  struct OpenLiteral {
    const Expr* expr;
    Ty type;
    bool negated;
  };
  std::vector<OpenLiteral> literals_;
  const Expr* negated_ = nullptr;  // the operand of the minus that is being looked at
  // Values compared with == or !=; of what type is known at the end of the definition.
  struct Comparison {
    Location location;
    Ty type;
    bool infix = false;  // `x == y`
  };
  std::vector<Comparison> comparisons_;
  // While the pattern of a `let` is checked: names from `first` on are its own, and sizes of any value; `known` are
  // those in brackets.
  struct OwnNames {
    BinderId first = 0;
    TypeMap known;
  };
  std::optional<OwnNames> own_names_;
};

}  // namespace apl::frontend
