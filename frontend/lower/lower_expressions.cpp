// Expressions: all but calls (lower_calls.cpp), control (lower_control.cpp) and access (lower_access.cpp).
#include <algorithm>
#include <utility>

#include "frontend/lower/lowerer.h"
#include "ir/attributes.h"

namespace apl::frontend {

namespace {

// The capacity of a failed check in a kernel.
constexpr std::ptrdiff_t kMaxMessageNumbers = 4;

}  // namespace

StaticValue Lowerer::lower(const Expr& expr) {
  if (!size_parts_.empty())
    if (const auto part = size_parts_.find(&expr); part != size_parts_.end())
      return part_value(part->second.size, part->second.frame);
  if (++depth_ > max_depth_) unsupported(expr.location, "a program nested this deep");
  const Location outer = std::exchange(location_, place_of(expr.location));
  location_.call = frame_->call;
  builder_->set_location(location_);
  StaticValue value = lower_node(expr);
  count_leaves(value.leaf_count());
  if (function_->values.size() > kMaxValues)
    unsupported(expr.location, "a program that expands to this many statements");
  if (auto size = checked_.argument_sizes.find(expr.id); size != checked_.argument_sizes.end())
    frame_->values[size->second] = value;
  bind_unknown(expr.id, checked_.types[expr.id], value);
  location_ = outer;
  builder_->set_location(location_);
  --depth_;
  return value;
}

StaticValue Lowerer::lower_node(const Expr& expr) {
  struct Visitor {
    Lowerer& self;
    const Expr& expr;

    StaticValue operator()(const Literal& e) { return self.scalar(e.value); }
    StaticValue operator()(const NumberLiteral& e) { return self.lower_number(expr, e); }
    StaticValue operator()(const StringLiteral& e) {
      ArrayLit array{Type::scalar(ScalarType::u8), {}};
      for (char c : e.text) array.elements.emplace_back(Scalar::integer(ScalarType::u8, static_cast<unsigned char>(c)));
      return StaticValue(Operand(self.builder_->let("s", std::move(array))));
    }
    StaticValue operator()(const Variable&) { return self.use(self.checked_.names.at(expr.id)); }
    StaticValue operator()(const TupleExpr& e) {
      Values elements;
      for (const ExprPtr& element : e.elements) elements.push_back(self.lower(*element));
      return tuple_value(std::move(elements));
    }
    StaticValue operator()(const RecordExpr& e) { return self.lower_record(expr, e); }
    StaticValue operator()(const ArrayExpr& e) { return self.lower_array(expr, e); }
    StaticValue operator()(const Project& e) { return self.project(self.lower(*e.record), e.field); }
    StaticValue operator()(const LocalOpen& e) { return self.lower(*e.body); }
    StaticValue operator()(const IndexExpr& e) { return self.lower_index(self.lower(*e.array), e.dims); }
    StaticValue operator()(const Call& e) {
      const StaticValue function = self.lower(*e.function);
      Values arguments;
      for (const ExprPtr& argument : e.arguments) arguments.push_back(self.lower(*argument));
      return self.apply(function, arguments);
    }
    StaticValue operator()(const Negate& e) { return self.unary(UnaryOp::neg, self.lower(*e.x)); }
    StaticValue operator()(const Not& e) { return self.unary(UnaryOp::complement, self.lower(*e.x)); }
    StaticValue operator()(const Infix& e) { return self.lower_infix(expr, e); }
    StaticValue operator()(const Section& e) { return self.lower_section(expr, e); }
    StaticValue operator()(const AccessSection&) {
      return self.make_closure({.what = Closure::Access{&expr, self.frame_}, .arity = 1, .arguments = {}});
    }
    StaticValue operator()(const LambdaExpr& e) {
      return self.make_closure(
          {.what = Closure::Lambda{&e.params, e.body.get(), self.frame_}, .arity = e.params.size(), .arguments = {}});
    }
    StaticValue operator()(const IfExpr& e) { return self.lower_if(expr, e); }
    StaticValue operator()(const LetExpr& e) { return self.lower_let(e); }
    StaticValue operator()(const LoopExpr& e) { return self.lower_loop(expr, e); }
    StaticValue operator()(const Ascribe& e) { return self.lower_ascribe(expr, e); }
    StaticValue operator()(const RangeExpr& e) { return self.lower_range(expr, e); }
    StaticValue operator()(const UpdateExpr& e) {
      const StaticValue source = self.lower(*e.source);
      return self.update(source, e.steps, 0, self.lower(*e.value));
    }
    StaticValue operator()(const AssertExpr& e) { return self.lower_assert(e); }
    StaticValue operator()(const Attributed& e) { return self.lower_attributed(e); }
    StaticValue operator()(const ConstructorExpr& e) { return self.lower_constructor(expr, e); }
    StaticValue operator()(const MatchExpr& e) { return self.lower_match(expr, e); }
    StaticValue operator()(const Hole&) { return self.lower_hole(expr); }
  };
  return std::visit(Visitor{*this, expr}, expr.node);
}

StaticValue Lowerer::lower_number(const Expr& expr, const NumberLiteral& literal) {
  const ScalarType type = scalar_type(checked_.types[expr.id]);
  if (is_float(type)) return StaticValue(Operand(Scalar::floating(type, literal.as_float())));
  return scalar(Scalar::integer(type, static_cast<std::int64_t>(literal.integer)));
}

StaticValue Lowerer::lower_record(const Expr& expr, const RecordExpr& record) {
  StaticValue::Fields given;
  for (const auto& field : record.fields) given.emplace_back(field.name, lower(*field.value));
  // In the order of the type, so that equal types have equal forms.
  StaticValue::Fields fields;
  const auto* type = store_.get_if<TyRecord>(checked_.types[expr.id]);
  for (const auto& [label, field] : type->fields)
    for (auto& [name, value] : given)
      if (name == label) fields.emplace_back(label, std::move(value));
  return StaticValue(std::move(fields));
}

StaticValue Lowerer::lower_array(const Expr& expr, const ArrayExpr& array) {
  const Ty type = checked_.types[expr.id];
  const Ty element_type = store_.get_if<TyArray>(type)->element;
  if (array.elements.empty()) {
    std::vector<Poly> outer = {0};
    count_leaves(store_.tree_size(element_type));
    auto make = [&](ScalarType scalar, const std::vector<Poly>& dims, const std::string& path) {
      return StaticValue(Operand(builder_->let(path, Replicate{dims, Operand(Scalar::zero(scalar))})));
    };
    return map_types(element_type, frame_, outer, make, "empty");
  }
  std::vector<std::vector<Operand>> parts;
  StaticValue form;
  for (const ExprPtr& element : array.elements) {
    form = lower(*element);
    parts.push_back(leaves(form));
  }
  std::vector<Operand> results;
  for (std::size_t k = 0; k < parts.front().size(); ++k) {
    const Type first = type_of(parts.front()[k]);
    ArrayLit literal{first, {}};
    for (const auto& part : parts) {
      const StaticValue same = coerced(StaticValue(part[k]), first.shape);
      literal.elements.push_back(operand(same));
    }
    results.emplace_back(builder_->let("a", std::move(literal)));
  }
  return with_leaves(form, results);
}

StaticValue Lowerer::lower_let(const LetExpr& let) {
  for (const LetBinding& binding : let.bindings) {
    if (const auto* pattern = std::get_if<LetPattern>(&binding.node)) {
      const bool unused = std::holds_alternative<PatternWildcard>(pattern->pattern->node);
      const Frame* outer = std::exchange(unused_, unused ? frame_ : unused_);
      const StaticValue value = lower(*pattern->value);
      unused_ = outer;
      if (auto sizes = checked_.pattern_sizes.find(pattern->pattern->id);
          sizes != checked_.pattern_sizes.end() && !sizes->second.empty()) {
        forget(sizes->second);
        bind_let_sizes(*pattern->pattern, value);
      }
      bind_pattern(*pattern->pattern, value);
    } else if (const auto* function = std::get_if<LetFunction>(&binding.node)) {
      frame_->values[checked_.binding_binders.at(binding.id)] =
          make_closure({.what = Closure::Lambda{&function->params, function->body.get(), frame_},
                        .arity = function->params.size(),
                        .arguments = {}});
    } else {
      const auto& change = std::get<LetUpdate>(binding.node);
      const StaticValue source = use(checked_.names.at(binding.id));
      frame_->values[checked_.binding_binders.at(binding.id)] = update(source, change.steps, 0, lower(*change.value));
    }
  }
  return lower(*let.body);
}

StaticValue Lowerer::lower_infix(const Expr& expr, const Infix& infix) {
  const Resolution& op = checked_.names.at(expr.id);
  if (op.kind == Resolution::Kind::prelude) {
    switch (op.entry->builtin) {
      case Builtin::both: return lower_short_circuit(infix, true);
      case Builtin::either: return lower_short_circuit(infix, false);
      case Builtin::pipe_right: {
        const StaticValue argument = lower(*infix.x);
        return apply(lower(*infix.y), {argument});
      }
      case Builtin::pipe_left: {
        const StaticValue function = lower(*infix.x);
        return apply(function, {lower(*infix.y)});
      }
      default: break;
    }
  }
  const StaticValue x = lower(*infix.x);
  const StaticValue y = lower(*infix.y);
  return apply(use(op), {x, y});
}

StaticValue Lowerer::lower_section(const Expr& expr, const Section& section) {
  const StaticValue op = use(checked_.names.at(expr.id));
  if (section.left) return apply(op, {lower(*section.left)});
  if (!section.right) return op;
  return make_closure({.what = Closure::RightSection{op, lower(*section.right)}, .arity = 1, .arguments = {}});
}

StaticValue Lowerer::lower_ascribe(const Expr& expr, const Ascribe& ascribe) {
  const StaticValue value = lower(*ascribe.x);
  if (!ascribe.coerce) return value;
  std::vector<Poly> outer;
  count_leaves(store_.tree_size(checked_.types[expr.id]));
  if (auto unknown = checked_.unknown_sizes.find(expr.id); unknown != checked_.unknown_sizes.end())
    forget(unknown->second);
  return coerce_to(checked_.types[expr.id], value, outer);
}

// The value with the sizes of a type; each that is not the same for sure is checked when the program runs.
StaticValue Lowerer::coerce_to(Ty type, const StaticValue& value, std::vector<Poly>& outer) {
  const TypeArgument known = resolve_type(type, frame_);
  const TyNode node = store_.node(known.type);
  if (const auto* record = std::get_if<TyRecord>(&node); record && !record->fields.empty()) {
    StaticValue::Fields fields;
    for (const auto& [label, field] : record->fields)
      fields.emplace_back(label, coerce_to(field, project(value, label), outer));
    return StaticValue(std::move(fields));
  }
  if (std::holds_alternative<TySum>(node))
    return map_leaves(value, [&](const StaticValue& leaf) { return with_sizes(leaf, outer); });
  if (std::holds_alternative<TyArray>(node)) {
    const std::vector<Poly> dims = shape(value);
    std::vector<Poly> wanted, actual;
    TypeArgument element = known;
    while (const auto* array = store_.get_if<TyArray>(element.type)) {
      const std::size_t dim = outer.size() + actual.size();
      actual.push_back(dim < dims.size() ? dims[dim] : Poly(0));
      const auto size = size_value(array->size, element.frame);
      wanted.push_back(size ? safe_size(*size) : actual.back());
      element = resolve_type(array->element, element.frame);
    }
    require_shape(wanted, actual, store_.to_text(element.type));
    outer.insert(outer.end(), wanted.begin(), wanted.end());
    Frame* here = std::exchange(frame_, element.frame);
    StaticValue result = coerce_to(element.type, value, outer);
    frame_ = here;
    outer.resize(outer.size() - wanted.size());
    return result;
  }
  return with_sizes(value, outer);
}

// Checks each size that is not the same for sure.
void Lowerer::require_shape(const std::vector<Poly>& wanted, const std::vector<Poly>& actual,
                            const std::string& element) {
  const std::size_t rank = std::min(wanted.size(), actual.size());
  for (std::size_t k = 0; k < rank; ++k) {
    if (wanted[k] == actual[k]) continue;
    const Value same =
        builder_->compare(CompareOp::eq, operand(StaticValue(wanted[k])), operand(StaticValue(actual[k])));
    // All of both shapes, if a message may have as many numbers.
    Message whole = shape_message(wanted, actual, 0, rank, element);
    const auto numbers = std::ranges::count_if(whole, [](const auto& part) { return part.index() == 1; });
    builder_->let("c",
                  Assert{Operand(same),
                         numbers <= kMaxMessageNumbers ? whole : shape_message(wanted, actual, k, k + 1, element)});
  }
}

Lowerer::Message Lowerer::shape_message(const std::vector<Poly>& wanted, const std::vector<Poly>& actual,
                                        std::size_t first, std::size_t end, const std::string& element) {
  Message message = {"Value of shape "};
  const auto put = [&](const std::string& text) {
    if (auto* last = std::get_if<std::string>(&message.back()))
      *last += text;
    else
      message.emplace_back(text);
  };
  const auto put_shape = [&](const std::vector<Poly>& shape) {
    for (std::size_t k = first; k < end; ++k) {
      put("[");
      if (const auto number = shape[k].constant())
        put(std::to_string(*number));
      else
        message.emplace_back(operand(StaticValue(shape[k])));
      put("]");
    }
  };
  put_shape(actual);
  put(" cannot match shape of type \"");
  put_shape(wanted);
  put(element + "\".");
  return message;
}

// The array with these outermost sizes, which were required to be its own.
StaticValue Lowerer::with_sizes(const StaticValue& value, const std::vector<Poly>& outer) {
  std::vector<Poly> dims = shape(value);
  bool possible = true;
  for (std::size_t k = 0; k < outer.size() && k < dims.size(); ++k) {
    possible = possible && prove_equal(outer[k], dims[k]) != Proof::no;
    dims[k] = outer[k];
  }
  if (possible) return coerced(value, dims);
  // The check before this fails, but what comes after it still has a type.
  return StaticValue(
      Operand(builder_->let("x", Replicate{dims, Operand(Scalar::zero(type_of(operand(value)).element))})));
}

namespace {

std::string range_mark(const RangeExpr& range) {
  return range.kind == RangeExpr::End::below ? "..<" : range.kind == RangeExpr::End::above ? "..>" : "...";
}

}  // namespace

StaticValue Lowerer::lower_range(const Expr& expr, const RangeExpr& range) {
  const ScalarType element = scalar_type(store_.get_if<TyArray>(checked_.types[expr.id])->element);
  const StaticValue start = lower(*range.start);
  const StaticValue end = lower(*range.end);
  const Poly first = index(convert(ScalarType::i64, start));
  const Poly last = index(convert(ScalarType::i64, end));
  const bool down = range.kind == RangeExpr::End::above;
  Poly step = down ? -1 : 1;
  if (range.second) step = index(convert(ScalarType::i64, lower(*range.second))) - first;
  const auto stride = step.constant();
  const bool plain = stride && *stride != 0 && *stride != INT64_MIN &&
                     (range.kind == RangeExpr::End::inclusive || (*stride < 0) == down);
  if (!plain) {
    const Operand by = operand(StaticValue(step));
    const Poly count = range_count(range, operand(start), operand(end), by);
    const Operand element_step = operand(convert(element, StaticValue(step)));
    return StaticValue(Operand(builder_->let("r", Iota{element, count, operand(start), element_step})));
  }
  const bool inclusive = range.kind == RangeExpr::End::inclusive;
  const Poly distance = safe_size(*stride > 0 ? last - first : first - last);
  const auto message = [&] {
    Message text{"Range ", operand(StaticValue(first))};
    if (range.second) text.insert(text.end(), {"..", operand(StaticValue(first + step))});
    text.insert(text.end(), {range_mark(range), operand(StaticValue(last)), " is invalid"});
    return text;
  };
  const bool exact = bit_width(element) < 64 || (is_exact(first) && is_exact(last) && is_exact(distance));
  if (!exact) {
    const bool up = *stride > 0;
    const Value ordered = builder_->compare(CompareOp::le, operand(up ? start : end), operand(up ? end : start));
    builder_->let("c", Assert{ends_in_order(ordered, operand(StaticValue(distance)), inclusive), message()});
    know_count(inclusive ? distance + 1 : distance);
  } else if (distance.constant().value_or(-1) < 0) {
    check_count(inclusive ? distance + 1 : distance, message);
  }
  const Poly length(*stride > 0 ? *stride : -*stride);
  const bool next_wraps = !exact || distance == Poly(INT64_MAX);
  const Poly count = !inclusive   ? ceil_div(distance, length)
                     : next_wraps ? floor_div(distance, length) + 1
                                  : ceil_div(distance + 1, length);
  const Value result =
      builder_->let("r", Iota{element, count, operand(start), Operand(Scalar::integer(element, *stride))});
  if (element == ScalarType::i64 && first.is_zero() && *stride == 1) iotas_.insert(result);
  return StaticValue(Operand(result));
}

// Whether a range ends where its step leads: `distance` from the start, modulo 2^64, which are `ordered` or not. An
// inclusive range may also end just before it starts.
Operand Lowerer::ends_in_order(const Operand& ordered, const Operand& distance, bool inclusive) {
  const Value forward = builder_->compare(CompareOp::le, i64_constant(0), distance);
  if (!inclusive) return builder_->binary(BinaryOp::conj, ordered, Operand(forward));
  const Value same = builder_->compare(CompareOp::eq, ordered, Operand(forward));
  const Value near = builder_->compare(CompareOp::le, i64_constant(-1), distance);
  return builder_->binary(BinaryOp::conj, Operand(same), Operand(near));
}

// How many elements a range has whose step only the run tells; one in the wrong direction is an error of the program.
Poly Lowerer::range_count(const RangeExpr& range, const Operand& start, const Operand& stop, const Operand& step) {
  const Operand zero = i64_constant(0);
  const Operand first = operand(convert(ScalarType::i64, StaticValue(start)));
  const Operand end = operand(convert(ScalarType::i64, StaticValue(stop)));
  const Operand down = builder_->compare(CompareOp::lt, step, zero);
  const Operand forward = builder_->binary(BinaryOp::sub, end, first);
  const Operand backward = builder_->binary(BinaryOp::sub, first, end);
  Operand valid = range.kind == RangeExpr::End::above   ? down
                  : range.kind == RangeExpr::End::below ? builder_->compare(CompareOp::lt, zero, step)
                                                        : builder_->compare(CompareOp::ne, step, zero);
  // The smallest number has no opposite; the next is as good, but for ranges of more elements than there can be.
  const Value reach = builder_->binary(BinaryOp::max, step, i64_constant(-INT64_MAX));
  const Operand falls = builder_->compare(CompareOp::le, stop, start);
  const Operand rises = builder_->compare(CompareOp::le, start, stop);
  const BodyPtr yes = make_body({}, {backward, Operand(builder_->unary(UnaryOp::neg, reach)), falls});
  const BodyPtr no = make_body({}, {forward, step, rises});
  const std::vector<Value> chosen = builder_->let_many({"distance", "step", "ordered"}, If{down, yes, no});
  const bool inclusive = range.kind == RangeExpr::End::inclusive;
  const Operand in_range = ends_in_order(Operand(chosen[2]), Operand(chosen[0]), inclusive);
  valid = builder_->binary(BinaryOp::conj, valid, in_range);
  const Operand second(builder_->binary(BinaryOp::add, first, step));
  builder_->let("c", Assert{valid, {"Range ", first, "..", second, range_mark(range), end, " is invalid"}});
  const Poly distance(chosen[0]), length(chosen[1]);
  return limited(inclusive ? floor_div(distance, length) + 1 : ceil_div(distance, length));
}

// An attribute that is declared stays where it has an effect; anybody's own stay everywhere.
bool Lowerer::belongs_in_ir(const Attribute& attribute, bool of_function) {
  const AttributeInfo* info = find_attribute_info(attribute.name);
  if (info == nullptr) return true;
  return info->is_users() && (info->place == AttributePlace::entry || !check_attribute(attribute, of_function));
}

// A check that never fails, whose message is printed instead: a line for each scalar or array that the value is made
// of.
void Lowerer::trace(const StaticValue& value, const std::string& tag) {
  if (!value.is_first_order()) return;
  for (const Operand& leaf : leaves(value)) {
    builder_->let("c",
                  Assert{Operand(Scalar::boolean(true)), {tag.empty() ? "Trace: " : "Trace: " + tag + ": ", leaf}});
    builder_->stms().back().attributes.push_back(make_attribute(attribute::trace, std::nullopt));
  }
}

StaticValue Lowerer::lower_attributed(const Attributed& attributed) {
  const auto parameter = read_attribute(attributed.attribute, attribute::param);
  if (parameter && store_.as_scalar(checked_.types[attributed.x->id]) == ScalarType::i64)
    if (const auto set = parameters_.find(std::get<0>(*parameter)); set != parameters_.end())
      return StaticValue(Poly(set->second));
  const bool scratch = attributed.attribute.name == attribute::scratch.name;
  if (scratch || attributed.attribute.name == attribute::blank.name)
    if (auto any = any_value(*attributed.x, scratch)) return *any;
  const bool unsafe = attributed.attribute.name == attribute::unsafe.name;
  if (unsafe && safe_) return lower(*attributed.x);
  const bool indices = std::exchange(checked_indices_, checked_indices_ && !unsafe);
  const std::size_t before = builder_->stms().size();
  const StaticValue value = lower(*attributed.x);
  checked_indices_ = indices;
  if (const auto tag = read_attribute(attributed.attribute, attribute::trace)) {
    trace(value, std::get<0>(*tag).value_or(""));
    return value;
  }
  // The attribute is of the statement that gives the value, behind which it may be traced.
  std::size_t end = builder_->stms().size();
  while (end > before && has_attribute(builder_->stms()[end - 1].attributes, attribute::trace)) --end;
  if (end > before && belongs_in_ir(attributed.attribute, false))
    builder_->stms()[end - 1].attributes.push_back(attributed.attribute);
  return value;
}

}  // namespace apl::frontend
