// The state of lowering and its parts; each part is defined in the file named above it.
//
// Expressions are evaluated in the manner of an interpreter whose values are IR operands: applying a function
// expands its body, so what remains are statements on scalars and arrays. Named functions with first-order
// arguments become functions of the module instead, one for each instance of their type parameters.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "frontend/lower/lower.h"
#include "frontend/lower/static_value.h"
#include "ir/builder.h"
#include "ir/call_table.h"
#include "ir/host_value.h"
#include "ir/poly_range.h"

namespace apl::frontend {

// More expansions would overflow memory.
constexpr std::size_t kMaxExpansions = 300000;
constexpr std::size_t kMaxValues = 1000000;
// A tuple of tuples of ... doubles with each step; no program needs as many parts.
constexpr std::size_t kMaxLeaves = 2000;
// The field of a sum type's values that says which constructor made them.
constexpr std::string_view kTag = "#";

// Thrown after the reason was reported; caught where an entry is lowered.
struct LowerAbort {};

class Lowerer {
 public:
  Lowerer(Checked& checked, const std::map<std::string, std::int64_t>& parameters, bool safe,
          const DiagnosticSink& sink, int max_depth);
  std::optional<Module> run();

 private:
  using Values = std::vector<StaticValue>;

  // lower_values.cpp: operands, shapes and the leaves of values
  Operand operand(const StaticValue& value);
  Poly index(const StaticValue& value);   // of an i64
  Value array(const StaticValue& value);  // of an array of scalars
  StaticValue scalar(Operand operand);    // an i64 becomes a polynomial
  StaticValue leaf(Value value);          // of any type but a record
  std::vector<Operand> leaves(const StaticValue& value);
  StaticValue with_leaves(const StaticValue& like, const std::vector<Operand>& leaves);
  StaticValue map_leaves(const StaticValue& value, const std::function<StaticValue(const StaticValue&)>& change);
  Type type_of(const Operand& operand) { return builder_->type(operand); }
  Poly length(const StaticValue& array);              // of the outermost dim
  std::vector<Poly> shape(const StaticValue& array);  // of the first leaf
  StaticValue coerced(const StaticValue& leaf, const std::vector<Poly>& shape);
  StaticValue with_length(const StaticValue& array, const Poly& length);
  void count_leaves(std::size_t count);

  // lower_names.cpp: frames, names, types and sizes
  Frame* make_frame(Frame* parent);
  const Poly& limited(const Poly& size);
  const StaticValue* find(BinderId binder, Frame* frame) const;
  StaticValue lookup(BinderId binder);
  StaticValue use(const Resolution& resolution);
  StaticValue with_instance(const Closure& closure, const Resolution& resolution);
  TypeArgument resolve_type(Ty type, Frame* frame) const;
  bool is_abstract(const TypeArgument& type) const;
  ScalarType scalar_type(Ty type) const;
  void bind_pattern(const Pattern& pattern, const StaticValue& value);
  void bind_sizes(Ty type, const StaticValue& value, std::size_t dim = 0);
  // `owners`: of each leaf the value of an abstract type that it is a part of, by number.
  std::vector<std::vector<SizeArgument>> leaf_shapes(Ty type, std::vector<std::size_t>* owners = nullptr);
  void bind_let_sizes(const Pattern& pattern, const StaticValue& value);
  void forget(const std::vector<BinderId>& sizes);
  void bind_unknown(std::uint32_t expr, Ty type, const StaticValue& value);
  void name_value(const StaticValue& value, const std::string& name);
  void keep_name(Value value);

  // lower_sizes.cpp
  std::optional<Poly> size_value(Size size, Frame* frame);
  std::optional<Poly> size_value(Size size, Frame* frame, std::unordered_map<std::uint32_t, std::optional<Poly>>& done);
  std::optional<Poly> binder_size(BinderId binder, Frame* frame);
  bool is_computable(Size size, Frame* frame);
  bool is_bound(BinderId binder, Frame* frame);
  StaticValue part_value(Size part, Frame* frame);
  StaticValue computed(const SizeExpr& size, Frame* frame);
  void compute_sizes(Frame* frame);

  // lower_counts.cpp: sizes of arrays that are made, and what is known of them where the lowering is
  using Message = std::vector<std::variant<std::string, Operand>>;
  struct KnownSizes {
    std::set<Poly> counts;          // not negative
    std::set<Value> factors;        // of sizes of arrays, with either sign
    std::set<Poly> products;        // of sizes of arrays that exist, or that were checked
    std::map<Value, Poly> indices;  // each below that size
    std::vector<Poly> new_counts, new_products;
    // Values of constants that were computed here, with checks of indices or without.
    std::map<std::pair<std::uint32_t, bool>, StaticValue> constants;
    std::vector<std::pair<std::uint32_t, bool>> new_constants;
    std::map<Poly, Value> named;  // the names of sizes that may wrap
    int bodies = 0;               // around what is lowered
  };
  void know_count(const Poly& count);
  void know_factors(const Poly& size);
  void know_product(const Poly& product);
  void know_param(const Type& type, bool in_memory);
  bool is_known_count(const Poly& count) const;
  bool is_known_product(const Poly& product) const;
  SymbolRange range_of(Value v) const;
  RangeOf ranges() const;
  bool is_exact(const Poly& index) const;
  bool is_safe_size(const Poly& size) const;
  Poly safe_size(const Poly& size);
  Poly named_size(const Poly& size);
  Poly short_size(const Poly& size);
  SizeFacts facts_of(const Poly& size) const;
  void check_count(const Poly& count, const std::function<Message()>& message);
  void check_size(const Poly& count, const std::string& what);
  void check_elements(const std::vector<Poly>& shape, Location location);

  // lower_expressions.cpp
  StaticValue lower(const Expr& expr);
  StaticValue lower_node(const Expr& expr);
  StaticValue lower_let(const LetExpr& let);
  StaticValue lower_number(const Expr& expr, const NumberLiteral& literal);
  StaticValue lower_record(const Expr& expr, const RecordExpr& record);
  StaticValue lower_array(const Expr& expr, const ArrayExpr& array);
  StaticValue lower_infix(const Expr& expr, const Infix& infix);
  StaticValue lower_section(const Expr& expr, const Section& section);
  StaticValue lower_range(const Expr& expr, const RangeExpr& range);
  StaticValue lower_ascribe(const Expr& expr, const Ascribe& ascribe);
  Operand ends_in_order(const Operand& ordered, const Operand& distance, bool inclusive);
  Poly range_count(const RangeExpr& range, const Operand& start, const Operand& stop, const Operand& step);
  StaticValue coerce_to(Ty type, const StaticValue& value, std::vector<Poly>& outer);
  void require_shape(const std::vector<Poly>& wanted, const std::vector<Poly>& actual, const std::string& element);
  Message shape_message(const std::vector<Poly>& wanted, const std::vector<Poly>& actual, std::size_t first,
                        std::size_t end, const std::string& element);
  StaticValue with_sizes(const StaticValue& value, const std::vector<Poly>& outer);
  static bool belongs_in_ir(const Attribute& attribute, bool of_function);
  void trace(const StaticValue& value, const std::string& tag);
  StaticValue lower_attributed(const Attributed& attributed);

  // lower_control.cpp
  BodyPtr body(const std::function<std::vector<Operand>()>& fill);
  BodyPtr hoist_sizes(const BodyPtr& inner, const std::vector<Value>& params, const std::vector<Type>& types);
  void require_outer_sizes(const std::vector<Type>& types, const std::vector<BodyPtr>& inner, const std::string& what);
  struct Joined;
  std::optional<Joined> join(const std::vector<Operand>& yes, const std::vector<Operand>& no, Ty type,
                             std::uint32_t first_inner);
  BodyPtr handing_on(const BodyPtr& inner, const std::vector<Poly>& sizes,
                     const std::vector<std::vector<Poly>>& shapes);
  StaticValue lower_short_circuit(const Infix& infix, bool both);
  StaticValue lower_loop(const Expr& expr, const LoopExpr& loop);
  struct LoopState;
  void type_loop_params(LoopState& state);
  struct LoopValues;
  LoopValues loop_values(const LoopState& state, const StaticValue& value);
  Operand loop_operand(const LoopState& state, std::size_t leaf, const LoopValues& all);
  std::vector<Poly> loop_sizes(const LoopState& state, const std::vector<Operand>& leaves);
  void find_hidden_sizes(LoopState& state, const std::vector<std::size_t>& owners);
  void bind_loop_sizes(const LoopState& state, const std::vector<Poly>& sizes);
  StaticValue lower_assert(const AssertExpr& assertion);
  StaticValue implied_initial(const Pattern& pattern);

  StaticValue lower_branch(const Expr& expr, const Operand& condition, const std::function<StaticValue()>& then_value,
                           const std::function<StaticValue()>& else_value);

  // lower_sums.cpp
  struct LeafType {
    ScalarType element = ScalarType::unit;
    std::vector<SizeArgument> dims;
  };
  // Which slots of a sum type's values each part of each constructor's payload takes, leaf by leaf.
  struct SumLayout {
    struct Part {
      Ty type;
      std::vector<std::size_t> slots;
    };
    struct Constructor {
      std::string name;
      std::vector<Part> parts;
    };
    std::vector<LeafType> slots;
    std::vector<Constructor> constructors;
  };
  void add_leaf_types(TypeArgument type, std::vector<SizeArgument> dims, std::vector<LeafType>& into);
  SumLayout sum_layout(TypeArgument type);
  StaticValue from_leaves(TypeArgument type, const Values& leaves, std::size_t& next);
  StaticValue payload(const StaticValue& value, const SumLayout::Part& part, Frame* frame);
  StaticValue blank(const LeafType& type, bool scratch = false);
  StaticValue lower_constructor(const Expr& expr, const ConstructorExpr& constructor);
  std::optional<StaticValue> matches(const Pattern& pattern, const StaticValue& value);
  void bind_constructor(const Pattern& pattern, const PatternConstructor& constructor, const StaticValue& value);
  StaticValue lower_hole(const Expr& expr);
  StaticValue hole_value(TypeArgument type, bool scratch = false);
  std::optional<StaticValue> any_value(const Expr& expr, bool scratch);

  // lower_cases.cpp
  using Leaf = std::function<StaticValue(std::size_t number)>;
  StaticValue lower_if(const Expr& expr, const IfExpr& branch);
  StaticValue lower_arms(const Expr& expr, const IfExpr& branch, std::size_t first);
  StaticValue lower_match(const Expr& expr, const MatchExpr& match);
  StaticValue lower_cases(const Expr& expr, const MatchExpr& match, const StaticValue& value, std::size_t first);
  struct CaseTest;
  struct CaseRow;
  struct CaseRun;
  bool collect_tests(const Pattern& pattern, const StaticValue& value, std::vector<CaseTest>& tests);
  bool add_test(const StaticValue& x, const StaticValue& wanted, std::optional<std::uint64_t> most,
                std::vector<CaseTest>& tests);
  std::vector<CaseRow> case_rows(const MatchExpr& match, const StaticValue& value);
  std::optional<StaticValue> lower_table(const Expr& expr, const std::vector<CaseRow>& rows, const Leaf& leaf);
  StaticValue search(const Expr& expr, const StaticValue& x, const std::vector<Scalar>& keys, std::size_t from,
                     std::size_t to, const Leaf& leaf);
  Operand first_of(std::size_t from, std::size_t to, const Operand& none,
                   const std::function<Operand(std::size_t number)>& find);
  Operand first_case(const std::vector<CaseRow>& rows, const Operand& none);
  static CaseRun run_of(const std::vector<CaseRow>& rows, std::size_t from, std::size_t to, const Operand& x);
  Operand case_of_run(const CaseRun& run, std::size_t from, std::size_t to, std::uint64_t least, std::uint64_t most,
                      const Operand& none);
  Operand choose_number(const Operand& condition, const std::function<Operand()>& yes,
                        const std::function<Operand()>& no);

  // lower_access.cpp
  StaticValue project(const StaticValue& value, const std::string& field);
  StaticValue lower_index(const StaticValue& array, const std::vector<IndexDim>& dims);
  std::vector<DimIndex> dims_of(const StaticValue& array, const std::vector<IndexDim>& dims);
  DimIndex slice_of(const IndexDim& dim, const Poly& size);
  DimIndex slice_by(const IndexDim& dim, const Poly& size, const Operand& stride);
  Poly as_index(const Expr& expr);
  StaticValue take_dims(const StaticValue& array, const std::vector<DimIndex>& dims, bool checked);
  StaticValue access(const StaticValue& value, const std::vector<AccessStep>& steps);
  StaticValue update(const StaticValue& source, const std::vector<AccessStep>& steps, std::size_t step,
                     const StaticValue& value);

  // lower_calls.cpp
  struct Instance;
  StaticValue apply(const StaticValue& function, const Values& arguments);
  StaticValue run(const Closure& closure);
  void bind_param(const Pattern& param, const StaticValue& argument);
  StaticValue use_definition(const Closure::Definition& definition);
  Frame* definition_frame(const Closure::Definition& definition, const Values& arguments);
  StaticValue expand_definition(const Closure::Definition& definition, const Values& arguments);
  bool takes_functions(Ty type) const;
  StaticValue call_definition(const Closure::Definition& definition, const Values& arguments);
  std::optional<StaticValue> call_instance(const Closure::Definition& definition, const Values& arguments);
  std::optional<StaticValue> emit_call(const Instance& callee, const std::vector<Poly>& sizes, const Values& arguments);
  StaticValue make_closure(Closure closure) { return StaticValue(std::make_shared<const Closure>(std::move(closure))); }

  // lower_constants.cpp
  StaticValue use_constant(const Closure::Definition& definition);
  const Instance* kept_constant(std::uint32_t global);
  bool is_kept(const Global& global, const Function& function) const;
  void keep_constant(const Global& global, const Function& function, Instance& result) const;

  // lower_functions.cpp
  struct Instance {
    FunctionPtr function;
    StaticValue value;                // the result's form, on values of the function
    std::vector<std::string> names;   // of the source's parameters
    std::vector<std::size_t> counts;  // how many values each of them became
    std::vector<Scalar> known;        // of a constant whose numbers the compiler computed
    bool callable = false;            // else its result has sizes that only it knows, or it has parameters that are
                                      // kept in another type: calls are expanded
  };
  struct InstanceKey {
    std::uint32_t global = 0;
    std::vector<Ty> types;  // of the type parameters, with the names below for sizes
    std::vector<BinderId> sizes;
  };
  const Instance* instance(const InstanceKey& key);
  Instance make_instance(const InstanceKey& key, const std::string& name, bool constant = false);
  Ty without_sizes(Ty type, Frame* frame, std::vector<SizeArgument>& sizes, std::vector<BinderId>& binders);
  StaticValue map_types(
      Ty type, Frame* frame, std::vector<Poly>& outer,
      const std::function<StaticValue(ScalarType, const std::vector<Poly>&, const std::string&)>& make,
      const std::string& path);
  bool is_known_outside(const Poly& size) const;
  Poly size_of_dim(const SizeArgument& dim, Ty element);
  StaticValue make_param(Ty type, const std::string& name);
  void add_param(const Pattern& pattern, const Global& global, const std::map<std::string, ScalarType>& narrow,
                 Instance& instance);
  void eta_expand(const Global& global, Instance& instance);
  void lower_entry(std::uint32_t global);
  std::string unique_name(const std::string& wanted);
  Location place_of(const Location& location) const;

  // lower_border.cpp
  void describe_border(const Global& global, const Instance& instance);
  void refuse_rank(const Type& type);
  Ty border_type(Ty type);
  EntryInfo entry_info(const Global& global, const Instance& instance);

  // lower_storage.cpp
  std::map<std::string, ScalarType> narrow_params(const Global& global) const;
  std::vector<Size> dims_of_arrays(const Global& global) const;
  [[noreturn]] void refuse_storage(const Global& global, Code code, const std::string& message) const;
  StaticValue widen_param(const Global& global, const std::string& name, ScalarType kept, const StaticValue& param);
  void finish_storage(const Global& global, const Instance& instance, const std::map<std::string, ScalarType>& narrow);

  // builtins_scalar.cpp
  std::optional<StaticValue> run_scalar_builtin(const Closure::Builtin& builtin, const Values& x);
  std::optional<StaticValue> run_member(const Closure::Builtin& builtin, ScalarType type, const Values& x);
  std::optional<StaticValue> run_constant(Builtin builtin, ScalarType type);
  StaticValue binary(BinaryOp op, const StaticValue& x, const StaticValue& y);
  StaticValue unary(UnaryOp op, const StaticValue& x);
  StaticValue compare(CompareOp op, const StaticValue& x, const StaticValue& y);
  StaticValue convert(ScalarType to, const StaticValue& x);
  StaticValue bitcast(ScalarType to, const StaticValue& x);
  StaticValue equal(const StaticValue& x, const StaticValue& y);
  StaticValue power(const StaticValue& x, const StaticValue& y);
  StaticValue shift_logically(const StaticValue& x, const StaticValue& y);

  // builtins_array.cpp
  std::optional<StaticValue> run_array_builtin(const Closure::Builtin& builtin, const Values& x);
  std::vector<Poly> signature_sizes(const Closure::Builtin& builtin);
  StaticValue zip(const Values& arrays);
  StaticValue iota(const Poly& count);
  StaticValue replicate(const Poly& count, const StaticValue& value);
  StaticValue elements(const StaticValue& like, const Poly& length,
                       const std::function<Operand(std::size_t leaf, std::vector<Poly> indices)>& element);
  StaticValue rotate(const StaticValue& array, const Poly& by);
  StaticValue concat(const StaticValue& first, const StaticValue& second);
  StaticValue transpose(const StaticValue& array);
  StaticValue reshape(const StaticValue& array, std::size_t dims,
                      const std::function<std::vector<Poly>(const std::vector<Poly>&)>& outer);
  StaticValue slice(const StaticValue& array, const Poly& start, const Poly& count, std::int64_t stride = 1);

  // builtins_soac.cpp
  StaticValue use_builtin(const Closure::Builtin& builtin);
  StaticValue run_builtin(const Closure::Builtin& builtin, const Values& arguments);
  std::optional<StaticValue> run_soac(const Closure::Builtin& builtin, const Values& x);
  StaticValue screma(const std::vector<Poly>& widths, const Values& arrays,
                     const std::function<StaticValue(const Values& rows, const std::vector<Value>& indices)>& fill);
  StaticValue map(const StaticValue& function, const Values& arrays);
  StaticValue tabulate(const std::vector<Poly>& widths, std::size_t dim, const StaticValue& function);
  StaticValue builtin_function(Builtin builtin);
  bool is_commutative(const StaticValue& op) const;
  Values stream(const std::vector<Poly>& widths, const std::vector<Value>& indices, const Values& arrays,
                std::vector<Value>& inputs, std::vector<Value>& params);
  ReduceOp reduce_op(const StaticValue& op, const StaticValue& neutral, const std::vector<Type>& rows);
  StaticValue reduce(const StaticValue& op, const StaticValue& neutral, const StaticValue& array, bool commutative,
                     bool scan = false);
  StaticValue kept(const StaticValue& flags, const std::function<StaticValue(const StaticValue&)>& keeps,
                   const std::optional<Poly>& count, const StaticValue& array);
  StaticValue filter(const StaticValue& predicate, const StaticValue& array);
  StaticValue partition(const Values& predicates, const StaticValue& array);
  StaticValue exscan(const StaticValue& op, const StaticValue& neutral, const StaticValue& array);
  StaticValue scatter(const StaticValue& target, const StaticValue& places, const StaticValue& given,
                      const StaticValue* op = nullptr, const StaticValue* neutral = nullptr);
  StaticValue derivative(Derivative::Mode mode, const StaticValue& function, const StaticValue& argument,
                         const StaticValue& seed);
  StaticValue repeat(const StaticValue& initial, const std::optional<Poly>& bound,
                     const std::function<StaticValue(const StaticValue& state)>& going,
                     const std::function<StaticValue(const StaticValue& state, const Poly& i)>& next);

  [[noreturn]] void unsupported(Location location, const std::string& what);
  // The bodies around what is lowered, the function's first: how many values there were before each, and what sizes
  // have names in it.
  struct Level {
    Builder* builder;
    std::uint32_t first = 0;
    std::vector<Poly> named;
  };
  // What is set aside while another function is built.
  struct Building {
    Function* function;
    Builder* builder;
    Frame* frame;
    Location location;
    bool checked_indices;
    std::set<Value> iotas;
    std::vector<char> named;
    KnownSizes known;
    std::unordered_map<Value, Location> made_at;
    std::vector<Level> levels;
  };

  Checked& checked_;
  TypeStore& store_;
  const std::map<std::string, std::int64_t>& parameters_;
  const bool safe_;
  const DiagnosticSink& sink_;
  Module module_;
  CallTable calls_;
  std::deque<Frame> frames_;
  std::map<std::string, Instance> instances_;
  std::map<std::uint32_t, Instance> constants_;  // of definitions without parameters, callable where they are functions
  std::map<std::string, int> names_taken_;

  std::vector<Level> levels_;
  bool is_available(const Poly& size, const Level& level) const;
  Function* function_ = nullptr;
  Builder* builder_ = nullptr;
  Frame* frame_ = nullptr;
  Location location_;
  bool checked_indices_ = true;  // false inside #[unsafe]
  // In a function that is differentiated calls of functions whose results have sizes that only they know are expanded:
  // what computes the sizes goes before the derivative.
  bool in_derivative_ = false;
  const Frame* unused_ = nullptr;  // whose values are not used inside of `let _ = ...`: asserts check nothing there
  std::set<Value> iotas_;          // arrays 0, 1, 2, ... of i64 of the function being built
  std::vector<char> named_;        // its values that are called after a name of the program
  KnownSizes known_;
  std::unordered_map<Value, Location> made_at_;               // arrays of several dims
  std::unordered_map<const Expr*, SizeArgument> size_parts_;  // what the children of a size being computed stand for
  std::deque<Resolution> size_names_;
  // A size of a parameter that has to be computed, what it is called until then, and the type of its rows.
  struct ComputedParam {
    SizeArgument size;
    Poly actual;
    std::string element;
  };
  std::vector<ComputedParam>* computed_params_ = nullptr;
  std::size_t expansions_ = 0;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::string>> reported_;
  int max_depth_;
  int depth_ = 0;
};

}  // namespace apl::frontend
