// What each form of a tree gives: scalars, control, indices. Arrays at once are in evaluate_arrays.cpp.
#include "tests/oracle/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "tests/oracle/evaluator.h"

namespace apl::oracle {

std::int64_t Evaluator::size(const std::string& dim) const {
  if (const auto found = sizes_.find(dim); found != sizes_.end()) return found->second;
  return std::strtoll(dim.c_str(), nullptr, 10);
}

const Value* Evaluator::find(const std::string& name) const {
  for (auto bound = bound_.rbegin(); bound != bound_.rend(); ++bound)
    if (bound->first == name) return &bound->second;
  return nullptr;
}

void Evaluator::bind(const Pattern& pattern, Value value) {
  if (pattern.parts.empty()) {
    // A number among sizes, too: types may name it.
    if (pattern.type.is_scalar() && pattern.type.scalar == ScalarType::i64) sizes_[pattern.name] = value.number.whole;
    bound_.emplace_back(pattern.name, std::move(value));
    return;
  }
  for (std::size_t k = 0; k < pattern.parts.size(); ++k) bind(pattern.parts[k], value.parts[k]);
}

void Evaluator::bind_sizes(const std::vector<std::string>& names, const Pattern& pattern, const Value& value) {
  for (std::size_t k = 0; k < pattern.parts.size(); ++k) bind_sizes(names, pattern.parts[k], value.parts[k]);
  if (!pattern.parts.empty() || !pattern.type.is_array()) return;
  for (const std::string& name : names)
    if (pattern.type.dims.front() == name) sizes_[name] = static_cast<std::int64_t>(value.parts.size());
}

Value Evaluator::call(const Lambda& lambda, std::vector<Value> arguments) {
  const std::size_t outside = bound_.size();
  for (std::size_t k = 0; k < arguments.size(); ++k) bind(lambda.params[k], std::move(arguments[k]));
  // What fails leaves its bindings; run_lanes and the entry drop them.
  Value result = eval(lambda.body);
  bound_.resize(outside);
  return result;
}

std::vector<Value> Evaluator::run_lanes(std::int64_t count, const std::function<Value(std::int64_t)>& lane) {
  std::vector<Value> results;
  std::vector<std::string> failures;
  const std::size_t outside = bound_.size();
  for (std::int64_t k = 0; k < count; ++k) {
    try {
      results.push_back(lane(k));
    } catch (const Failures& failed) {
      bound_.resize(outside);
      failures.insert(failures.end(), failed.messages.begin(), failed.messages.end());
    }
  }
  if (!failures.empty()) throw Failures{std::move(failures)};
  return results;
}

Number Evaluator::number(const Tree& tree) { return eval(tree).number; }
std::int64_t Evaluator::whole(const Tree& tree) { return number(tree).whole; }

// The value without a copy where the tree is a name.
const Value& Evaluator::borrow(const Tree& tree, Value& storage) {
  if (tree->form == Form::variable)
    if (const Value* value = find(tree->name)) return *value;
  storage = eval(tree);
  return storage;
}

std::vector<std::int64_t> Evaluator::position(const Node& node, std::size_t last, const Value& array) {
  const std::vector<std::int64_t> shape = shape_of(array, node.kids[0]->type, last - 1);
  std::vector<std::int64_t> at;
  for (std::size_t k = 1; k < last; ++k) at.push_back(whole(node.kids[k]));
  bool inside = true;
  for (std::size_t k = 0; k < at.size(); ++k) inside = inside && at[k] >= 0 && at[k] < shape[k];
  if (!inside) fail(fmt::format("Index [{}] out of bounds for array of shape", fmt::join(at, ", ")));
  return at;
}

std::vector<std::int64_t> Evaluator::shape_of(const Value& array, const Type& type, std::size_t rank) const {
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(array.parts.size())};
  for (std::size_t k = 1; k < rank; ++k) shape.push_back(size(type.dims[k]));
  return shape;
}

// First, count and stride, checked.
Evaluator::Slice Evaluator::slice(const Node& node, std::int64_t length) {
  Slice slice;
  slice.stride = node.kids[3] ? whole(node.kids[3]) : 1;
  const std::int64_t sign = slice.stride > 0 ? 1 : slice.stride < 0 ? -1 : 0;
  slice.first = node.kids[1] ? whole(node.kids[1]) : sign < 0 ? length - 1 : 0;
  const std::int64_t end = node.kids[2] ? whole(node.kids[2]) : sign < 0 ? -1 : length;
  bool good = sign != 0;
  if (good) {
    // As the manual counts them, all of it modulo 2^64: (end - first + stride - sign) / stride.
    const auto i64 = [](std::int64_t x) { return integer(ScalarType::i64, x); };
    const Number distance = apply(BinaryOp::sub, i64(end), i64(slice.first));
    const Number steps = apply(BinaryOp::add, distance, i64(slice.stride - sign));
    slice.count = apply(BinaryOp::quot, steps, i64(slice.stride)).whole;
    good = slice.count == 0;
    if (slice.count > 0 && slice.count <= length) {
      const std::int64_t last = slice.first + (slice.count - 1) * slice.stride;
      good = slice.first >= 0 && slice.first < length && last >= 0 && last < length;
    }
  }
  if (!good) fail("Index [");
  return slice;
}

Value Evaluator::run_loop(const Node& node) {
  const std::size_t outside = bound_.size();
  Value state = eval(node.kids[0]);
  if (node.form == Form::while_loop) {
    for (;;) {
      bind(node.pattern, state);
      const bool goes_on = number(node.lambdas[0].body).is_true();
      if (goes_on) state = eval(node.lambdas[1].body);
      bound_.resize(outside);
      if (!goes_on) return state;
    }
  }
  const Value over = eval(node.kids[1]);
  const bool counts = node.form == Form::for_loop;
  const std::int64_t bound = counts ? over.number.whole : static_cast<std::int64_t>(over.parts.size());
  for (std::int64_t k = 0; k < bound; ++k) {
    bind(node.pattern, state);
    const Type element = counts ? node.kids[1]->type : row_of(node.kids[1]->type);
    bind({node.name, element, {}}, counts ? Value{integer(element.scalar, k), {}} : over.parts[k]);
    state = eval(node.lambdas[0].body);
    bound_.resize(outside);
  }
  return state;
}

Value Evaluator::scalar(const Node& node) {
  const Number x = number(node.kids[0]);
  switch (node.form) {
    case Form::unary: return {apply(node.unary_op, x), {}};
    case Form::convert: return {convert(x, node.type.scalar), {}};
    case Form::from_bits: return {bits_to_float(x, node.type.scalar), {}};
    default: break;
  }
  if (node.binary_op == BinaryOp::both && !x.is_true()) return {boolean(false), {}};
  if (node.binary_op == BinaryOp::either && x.is_true()) return {boolean(true), {}};
  const Number y = number(node.kids[1]);
  try {
    return {apply(node.binary_op, x, y), {}};
  } catch (const Failure& failure) {
    fail(failure.what());
  }
}

std::size_t field_number(const Type& type, const std::string& name) {
  for (std::size_t k = 0; k < type.names.size(); ++k)
    if (type.names[k] == name) return k;
  return std::strtoull(name.c_str(), nullptr, 10);
}

Value Evaluator::eval(const Tree& tree) {
  const Node& node = *tree;
  if (++steps_ > most_steps_) throw std::length_error("too many steps");
  switch (node.form) {
    case Form::number: return {node.literal, {}};
    case Form::variable: {
      if (const Value* value = find(node.name)) return *value;
      return {integer(ScalarType::i64, size(node.name)), {}};
    }
    case Form::tuple: {
      Value result;
      for (const Tree& kid : node.kids) result.parts.push_back(eval(kid));
      return result;
    }
    case Form::field: {
      Value storage;
      return borrow(node.kids[0], storage).parts[field_number(node.kids[0]->type, node.name)];
    }
    case Form::with_field: {
      Value result = eval(node.kids[0]);
      result.parts[field_number(node.type, node.name)] = eval(node.kids[1]);
      return result;
    }
    case Form::unary:
    case Form::binary:
    case Form::convert:
    case Form::from_bits: return scalar(node);
    case Form::branch: return eval(node.kids[number(node.kids[0]).is_true() ? 1 : 2]);
    case Form::let_in: {
      const std::size_t outside = bound_.size();
      Value value = eval(node.kids[0]);
      bind_sizes(node.sizes, node.pattern, value);
      bind(node.pattern, std::move(value));
      Value result = eval(node.kids[1]);
      bound_.resize(outside);
      return result;
    }
    case Form::assertion:
      if (!number(node.kids[0]).is_true()) fail("Assertion is false");
      return eval(node.kids[1]);
    case Form::for_loop:
    case Form::for_in_loop:
    case Form::while_loop: return run_loop(node);
    case Form::index: {
      const bool named = node.kids[0]->form == Form::variable;
      const Value storage = named ? Value() : eval(node.kids[0]);
      // Indices may bind names, and so move what they are bound to.
      const std::vector<std::int64_t> indices =
          position(node, node.kids.size(), named ? *find(node.kids[0]->name) : storage);
      const Value* at = named ? find(node.kids[0]->name) : &storage;
      for (const std::int64_t i : indices) at = &at->parts[static_cast<std::size_t>(i)];
      return Value(*at);
    }
    default: return array(node);
  }
}

namespace {

// The scalars of a value, one column for each scalar part of its type.
struct Column {
  ScalarType type;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;
};

void add_bytes(Column& column, const Number& x) {
  const std::uint64_t bits = bits_of(x);
  const std::size_t bytes = x.type == ScalarType::boolean ? 1 : static_cast<std::size_t>(width_of(x.type)) / 8;
  const std::size_t at = column.data.size();
  column.data.resize(at + bytes);
  std::memcpy(column.data.data() + at, &bits, bytes);
}

// Entries give records in the order of their fields' names.
std::vector<std::size_t> field_order(const Type& type) {
  std::vector<std::size_t> order(type.fields.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  if (!type.names.empty())
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return type.names[a] < type.names[b]; });
  return order;
}

}  // namespace

static void columns_of(const Type& type, std::vector<std::int64_t> shape, const Evaluator& sizes,
                       std::vector<Column>& columns) {
  for (const std::string& dim : type.dims) shape.push_back(sizes.size(dim));
  if (type.fields.empty()) {
    columns.push_back({type.scalar, std::move(shape), {}});
    return;
  }
  for (const std::size_t k : field_order(type)) columns_of(type.fields[k], shape, sizes, columns);
}

static void fill(const Type& type, const Value& value, std::vector<Column>& columns, std::size_t& next) {
  if (type.is_array()) {
    const Type row = row_of(type);
    const std::size_t first = next;
    for (const Value& part : value.parts) fill(row, part, columns, next = first);
    return;
  }
  if (type.fields.empty()) return add_bytes(columns[next++], value.number);
  for (const std::size_t k : field_order(type)) fill(type.fields[k], value.parts[k], columns, next);
}

std::vector<HostValue> Evaluator::host_values(const Type& type, const Value& value) const {
  std::vector<HostValue> results;
  // Field by field, since an array without elements says nothing of its columns.
  if (type.is_tuple()) {
    for (const std::size_t k : field_order(type))
      for (HostValue& part : host_values(type.fields[k], value.parts[k])) results.push_back(std::move(part));
    return results;
  }
  std::vector<Column> columns;
  columns_of(type, {}, *this, columns);
  std::size_t next = 0;
  fill(type, value, columns, next);
  for (Column& column : columns) results.push_back({column.type, std::move(column.shape), std::move(column.data)});
  return results;
}

std::vector<HostValue> Evaluator::run(const Program& program, const Arguments& arguments) {
  sizes_ = arguments.sizes;
  for (std::size_t k = 0; k < program.params.size(); ++k) bind(program.params[k], arguments.values[k]);
  // The outermost lets stay bound: types of results name their sizes.
  Tree rest = program.body;
  while (rest->form == Form::let_in) {
    Value value = eval(rest->kids[0]);
    bind_sizes(rest->sizes, rest->pattern, value);
    bind(rest->pattern, std::move(value));
    rest = rest->kids[1];
  }
  return host_values(rest->type, eval(rest));
}

Outcome evaluate(const Program& program, const Arguments& arguments, std::int64_t most_steps) {
  try {
    return {Evaluator(most_steps).run(program, arguments), {}};
  } catch (const Failures& failed) {
    return {{}, failed.messages};
  }
}

std::vector<HostValue> host_arguments(const Program& program, const Arguments& arguments) {
  Evaluator sizes(0);
  std::vector<HostValue> all;
  for (const auto& [name, value] : arguments.sizes)
    sizes.bind({name, scalar_type(ScalarType::i64), {}}, {integer(ScalarType::i64, value), {}});
  for (std::size_t k = 0; k < program.params.size(); ++k)
    for (HostValue& value : sizes.host_values(program.params[k].type, arguments.values[k]))
      all.push_back(std::move(value));
  return all;
}

}  // namespace apl::oracle
