// Types of values and of operations' results.
#include <algorithm>
#include <stdexcept>

#include "ir/builder.h"
#include "ir/module.h"
#include "ir/node_info.h"

namespace apl {

Type Type::row(std::size_t n) const {
  Type result = *this;
  result.memory = nullptr;
  result.unique = false;
  result.shape.erase(result.shape.begin(), result.shape.begin() + static_cast<std::ptrdiff_t>(std::min(n, rank())));
  return result;
}

Type Type::array_of(const std::vector<Poly>& outer) const {
  Type result = *this;
  result.memory = nullptr;
  result.unique = false;
  result.shape.insert(result.shape.begin(), outer.begin(), outer.end());
  return result;
}

bool Type::same(const Type& other) const {
  if (kind != other.kind) return false;
  if (kind == Kind::memory) return space == other.space;
  return element == other.element && shape == other.shape;
}

const ValueTable::Info& ValueTable::unknown() {
  static const Info kUnknown{Type::scalar(ScalarType::unit), "?"};
  return kUnknown;
}

Value ValueTable::add(Type type, std::string name) {
  infos_.push_back({std::move(type), std::move(name)});
  return Value{static_cast<std::uint32_t>(infos_.size() - 1)};
}

Type ValueTable::type(const Operand& operand) const {
  if (operand.is_constant()) return Type::scalar(operand.constant().type());
  return type(operand.value());
}

std::string_view to_text(Stage stage) {
  switch (stage) {
    case Stage::soac: return "soac";
    case Stage::kernel: return "kernel";
    case Stage::memory: return "memory";
  }
  return "?";
}

const Function* Module::find(std::string_view name) const {
  for (const FunctionPtr& f : functions)
    if (f->name == name) return f.get();
  return nullptr;
}

const Function* Module::find_entry(std::string_view name) const {
  for (const FunctionPtr& f : functions)
    if (f->is_entry() && f->entry->name == name) return f.get();
  return nullptr;
}

std::vector<Poly> KernelResult::regtile_shape() const {
  std::vector<Poly> shape;
  for (const TileExtent& extent : extents)
    if (extent.split.empty()) shape.push_back(extent.bound);
  for (const TileExtent& extent : extents)
    for (const TileExtent::Part& part : extent.split) {
      const auto axis = static_cast<std::size_t>(std::max(part.axis, 0));
      if (shape.size() <= axis) shape.resize(axis + 1);
      shape[axis] = part.bound;
    }
  return shape;
}

std::size_t Screma::reduced_count() const {
  std::size_t count = 0;
  for (const ReduceOp& reduce : reduces) count += reduce.neutral.size();
  return count;
}

bool Screma::scans() const {
  return std::any_of(reduces.begin(), reduces.end(), [](const ReduceOp& reduce) { return reduce.scan; });
}

bool Screma::is_array(std::size_t k) const {
  for (const ReduceOp& reduce : reduces) {
    if (k < reduce.neutral.size()) return reduce.scan;
    k -= reduce.neutral.size();
  }
  return true;
}

const NodeInfo& node_info(const Op& op) {
  static constexpr NodeInfo kInfos[] = {
#define APL_NODE(Struct, text, syntax, stage, failure, effect) {text, Stage::stage, Failure::failure, Effect::effect},
#include "ir/ops.def"
      {"nothing", Stage::soac, Failure::never, Effect::none}};
  return kInfos[op.index()];
}

std::string_view op_name(const Op& op) { return node_info(op).text; }

std::optional<Value> viewed(const Op& op) {
  if (const Use* use = std::get_if<Use>(&op)) return use->x.is_value() ? std::optional(use->x.value()) : std::nullopt;
  if (const Index* index = std::get_if<Index>(&op)) return index->array;
  if (const Rearrange* rearrange = std::get_if<Rearrange>(&op)) return rearrange->array;
  if (const Reshape* reshape = std::get_if<Reshape>(&op)) return reshape->array;
  return std::nullopt;
}

namespace {

std::vector<Type> body_types(const Body& body, const ValueTable& values) {
  std::vector<Type> types;
  for (const Operand& result : body.results) types.push_back(values.type(result));
  return types;
}

Type indexed_type(const Type& array, const std::vector<DimIndex>& dims) {
  Type result = array.row(dims.size());
  std::vector<Poly> kept;
  for (const DimIndex& dim : dims)
    if (dim.is_slice()) kept.push_back(*dim.count);
  return result.array_of(kept);
}

Type permuted(const Type& array, const std::vector<int>& permutation) {
  Type result = array.row(0);
  // What is no permutation of the dims is an error that the verifier reports.
  for (std::size_t k = 0; k < std::min(permutation.size(), array.rank()); ++k)
    if (const auto from = static_cast<std::size_t>(permutation[k]); from < array.rank())
      result.shape[k] = array.shape[from];
  return result;
}

// Plain data type of a value: what a fresh binding of it has.
Type plain(Type type) {
  type.memory = nullptr;
  type.unique = false;
  return type;
}

struct ResultTypes {
  const ValueTable& values;
  const Module* module;
  const std::vector<Value>& pattern;

  using Types = std::vector<Type>;

  Types operator()(const Use& op) const { return {plain(values.type(op.x))}; }
  Types operator()(const Unary& op) const { return {plain(values.type(op.x))}; }
  Types operator()(const Binary& op) const { return {plain(values.type(op.x))}; }
  Types operator()(const Compare&) const { return {Type::scalar(ScalarType::boolean)}; }
  Types operator()(const Convert& op) const { return {Type::scalar(op.to)}; }
  Types operator()(const SizeExpr&) const { return {Type::scalar(ScalarType::i64)}; }
  Types operator()(const Index& op) const { return {indexed_type(values.type(op.array), op.dims)}; }
  Types operator()(const Update& op) const { return {plain(values.type(op.array))}; }
  Types operator()(const Iota& op) const { return {Type::array(op.element, {op.count})}; }
  Types operator()(const Replicate& op) const { return {values.type(op.value).array_of(op.shape)}; }
  Types operator()(const Scratch& op) const { return {Type::array(op.element, op.shape)}; }
  Types operator()(const Copy& op) const { return {plain(values.type(op.array))}; }
  Types operator()(const Rearrange& op) const { return {permuted(values.type(op.array), op.permutation)}; }
  Types operator()(const Manifest& op) const { return {permuted(values.type(op.array), op.permutation)}; }
  Types operator()(const Reshape& op) const { return {Type::array(values.type(op.array).element, op.shape)}; }
  Types operator()(const ArrayLit& op) const {
    return {op.element.array_of({static_cast<std::int64_t>(op.elements.size())})};
  }
  Types operator()(const Assert&) const { return {Type::scalar(ScalarType::unit)}; }
  Types operator()(const If& op) const {
    Types types = body_types(*op.then_body, values);
    for (Type& type : types) type = plain(type);
    const std::vector<Operand>& yes = op.then_body->results;
    const std::vector<Operand>& no = op.else_body->results;
    for (std::size_t k = 0; k < types.size() && pattern.size() == types.size() && no.size() == yes.size(); ++k) {
      const Type other = values.type(no[k]);
      for (std::size_t d = 0; d < types[k].rank() && d < other.rank(); ++d)
        if (!(types[k].shape[d] == other.shape[d])) types[k].shape[d] = decided(op, types[k].shape[d], other.shape[d]);
    }
    return types;
  }
  Types operator()(const Choose& op) const {
    Types types = body_types(*op.alternatives.back().body, values);
    for (Type& type : types) type = plain(type);
    return types;
  }
  // The result of a branch that is the one size or the other.
  Poly decided(const If& op, const Poly& a, const Poly& b) const {
    const std::vector<Operand>& yes = op.then_body->results;
    const std::vector<Operand>& no = op.else_body->results;
    for (std::size_t k = 0; k < yes.size(); ++k)
      if (is_size(values.type(yes[k])) && is_size(values.type(no[k])) && given(*op.then_body, k) == a &&
          given(*op.else_body, k) == b)
        return Poly(pattern[k]);
    return a;
  }
  // What a body gives, which it may compute right there.
  static Poly given(const Body& body, std::size_t k) {
    const Operand& result = body.results[k];
    for (const Stm& stm : body.stms)
      if (const auto* size = std::get_if<SizeExpr>(&stm.op); size && result == Operand(stm.pattern.front()))
        return size->value;
    return as_poly(result);
  }
  static bool is_size(const Type& type) { return type.same(Type::scalar(ScalarType::i64)); }
  Types operator()(const Loop& op) const {
    Types types;
    for (Value param : op.params) types.push_back(plain(values.type(param)));
    if (pattern.size() != op.params.size()) return types;
    for (Type& type : types)
      for (Poly& size : type.shape)
        size = size.substitute([&](Value symbol) -> std::optional<Poly> {
          const auto param = std::find(op.params.begin(), op.params.end(), symbol);
          return param == op.params.end() ? std::nullopt : std::optional(Poly(pattern[param - op.params.begin()]));
        });
    return types;
  }
  Types operator()(const Apply& op) const {
    const Function* callee = module ? module->find(op.function) : nullptr;
    if (!callee || op.arguments.size() != callee->sizes.size() + callee->params.size()) return {};
    // The callee's sizes and parameters stand for the arguments, and sizes that it decides for the first results.
    auto replace = [&](Value symbol) -> std::optional<Poly> {
      for (std::size_t i = 0; i < op.arguments.size(); ++i) {
        Value formal = i < callee->sizes.size() ? callee->sizes[i] : callee->params[i - callee->sizes.size()];
        if (formal == symbol) return as_poly(op.arguments[i]);
      }
      for (std::size_t i = 0; i < callee->result_sizes.size() && i < pattern.size(); ++i)
        if (callee->result_sizes[i] == symbol) return Poly(pattern[i]);
      return std::nullopt;
    };
    Types types(callee->result_sizes.size(), Type::scalar(ScalarType::i64));
    for (Type type : callee->results) {
      for (Poly& size : type.shape) size = size.substitute(replace);
      if (module->stage == Stage::memory && type.is_array()) types.push_back(Type::block(Space::global));
      types.push_back(plain(std::move(type)));
    }
    return types;
  }
  Types operator()(const GetSize&) const { return {Type::scalar(ScalarType::i64)}; }
  Types operator()(const Screma& op) const {
    Types types = body_types(*op.map.body, values);
    for (std::size_t k = 0; k < types.size(); ++k)
      types[k] = op.is_array(k) ? types[k].array_of(op.widths) : plain(types[k]);
    return types;
  }
  Types operator()(const Scatter& op) const {
    Types types;
    for (Value target : op.targets) types.push_back(plain(values.type(target)));
    return types;
  }
  Types operator()(const Derivative& op) const {
    const Types results = body_types(*op.function.body, values);
    Types types = results;
    if (op.mode == Derivative::Mode::forward)
      types.insert(types.end(), results.begin(), results.end());
    else
      for (const Operand& argument : op.arguments) types.push_back(values.type(argument));
    for (Type& type : types) type = plain(type);
    return types;
  }
  Types operator()(const SegOp& op) const {
    std::vector<Poly> bounds;
    for (const SegDim& dim : op.space) bounds.push_back(dim.bound);
    Types types = body_types(*op.body, values);
    for (std::size_t k = 0; k < types.size(); ++k) {
      if (k < op.results.size() && op.results[k].kind == KernelResult::Kind::regtile) {
        types[k] = Type::array(types[k].element, op.results[k].regtile_shape());
      } else {
        types[k] = types[k].array_of(bounds);
      }
    }
    return types;
  }
  Types operator()(const SharedArray& op) const { return {Type::array(op.element, op.layout.shape())}; }
  Types operator()(const CopyTile& op) const { return {plain(values.type(op.target))}; }
  Types operator()(const TileContract& op) const {
    Types types;
    for (Value acc : op.accumulators) types.push_back(plain(values.type(acc)));
    return types;
  }
  Types operator()(const Alloc& op) const { return {Type::block(op.space)}; }
  Types operator()(std::monostate) const { return {}; }
};

}  // namespace

std::vector<Type> result_types(const Op& op, const ValueTable& values, const Module* module,
                               const std::vector<Value>& pattern) {
  return std::visit(ResultTypes{values, module, pattern}, op);
}

}  // namespace apl
