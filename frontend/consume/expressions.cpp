// Expressions: what their values alias, and what they consume on the way.
#include <utility>

#include "frontend/consume/checker.h"

namespace apl::frontend {

FlowPtr Consumption::check(const Expr& expr) {
  struct Visitor {
    Consumption& self;
    const Expr& expr;

    FlowPtr fresh() const { return self.outlines_.of(self.type_of(expr)); }
    // A record, but for types of more parts than are told apart.
    FlowPtr whole(Flow record) const {
      const FlowPtr outline = fresh();
      FlowPtr flow = make_flow(std::move(record));
      return outline->kind == Flow::Kind::record ? flow : with_aliases(outline, all_aliases(flow));
    }
    FlowPtr operator()(const Literal&) { return fresh(); }
    FlowPtr operator()(const NumberLiteral&) { return fresh(); }
    FlowPtr operator()(const StringLiteral&) { return fresh(); }
    FlowPtr operator()(const Variable&) {
      const auto name = self.program_.names.find(expr.id);
      return name == self.program_.names.end() ? fresh() : self.observe(name->second, expr.location);
    }
    FlowPtr operator()(const TupleExpr& e) {
      Flow flow{.kind = Flow::Kind::record};
      for (const ExprPtr& element : e.elements)
        flow.fields.emplace_back(std::to_string(flow.fields.size()), self.check(*element));
      return whole(std::move(flow));
    }
    FlowPtr operator()(const RecordExpr& e) {
      Flow flow{.kind = Flow::Kind::record};
      for (const auto& field : e.fields) flow.fields.emplace_back(field.name, self.check(*field.value));
      return whole(std::move(flow));
    }
    FlowPtr operator()(const ArrayExpr& e) {
      for (const ExprPtr& element : e.elements) self.check(*element);
      return fresh();
    }
    FlowPtr operator()(const Project& e) { return self.part_of(self.check(*e.record), e.field, self.type_of(expr)); }
    FlowPtr operator()(const LocalOpen& e) { return self.check(*e.body); }
    FlowPtr operator()(const IndexExpr& e) {
      const FlowPtr array = self.check(*e.array);
      self.check_dims(e.dims);
      return with_aliases(fresh(), all_aliases(array));
    }
    FlowPtr operator()(const Call& e) { return self.call(expr, e); }
    FlowPtr operator()(const Negate& e) {
      self.check(*e.x);
      return fresh();
    }
    FlowPtr operator()(const Not& e) {
      self.check(*e.x);
      return fresh();
    }
    FlowPtr operator()(const Infix& e) { return self.infix(expr, e); }
    FlowPtr operator()(const Section& e) { return self.section(expr, e); }
    FlowPtr operator()(const AccessSection& e) {
      self.check_steps(e.steps);
      return fresh();
    }
    FlowPtr operator()(const LambdaExpr& e) { return self.function(e.params, e.result.get(), *e.body); }
    FlowPtr operator()(const IfExpr& e) { return self.branch(e); }
    FlowPtr operator()(const LetExpr& e) { return self.let(e); }
    FlowPtr operator()(const LoopExpr& e) { return self.loop(e, expr.location); }
    FlowPtr operator()(const Ascribe& e) { return self.check(*e.x); }
    FlowPtr operator()(const RangeExpr& e) {
      for (const ExprPtr* part : {&e.start, &e.second, &e.end})
        if (*part) self.check(**part);
      return fresh();
    }
    FlowPtr operator()(const UpdateExpr& e) { return self.update(e, expr.location); }
    FlowPtr operator()(const AssertExpr& e) {
      self.check(*e.condition);
      return self.check(*e.value);
    }
    FlowPtr operator()(const Attributed& e) { return self.check(*e.x); }
    FlowPtr operator()(const ConstructorExpr& e) {
      Aliases aliases;
      for (const ExprPtr& argument : e.arguments) aliases = joined(aliases, all_aliases(self.check(*argument)));
      return with_aliases(fresh(), aliases);
    }
    FlowPtr operator()(const MatchExpr& e) { return self.match(e); }
    FlowPtr operator()(const Hole&) { return fresh(); }
  };
  return std::visit(Visitor{*this, expr}, expr.node);
}

void Consumption::check_dims(const std::vector<IndexDim>& dims) {
  for (const IndexDim& dim : dims)
    for (const ExprPtr* part : {&dim.start, &dim.end, &dim.stride})
      if (*part) check(**part);
}

// Whether a step is an index: those write in place.
bool Consumption::check_steps(const std::vector<AccessStep>& steps) {
  bool index = false;
  for (const AccessStep& step : steps) {
    index = index || !step.is_field;
    check_dims(step.dims);
  }
  return index;
}

FlowPtr Consumption::let(const LetExpr& let) {
  const std::uint32_t start = order_;
  for (const LetBinding& binding : let.bindings) {
    if (const auto* pattern = std::get_if<LetPattern>(&binding.node)) {
      let_pattern(*pattern);
    } else if (const auto* update = std::get_if<LetUpdate>(&binding.node)) {
      let_update(*update, binding);
    } else {
      const auto& local = std::get<LetFunction>(binding.node);
      bind(program_.binding_binders.at(binding.id), function(local.params, local.result.get(), *local.body), false);
    }
  }
  return unscoped(check(*let.body), start);
}

void Consumption::let_pattern(const LetPattern& let) {
  const std::size_t before = consumed_log_.size();
  const FlowPtr value = check(*let.value);
  const Ty type = type_of(*let.value);
  if (consumed_log_.size() > before && store_.contains_function(type))
    report(Code::consume_contains_consumption, let.value->location,
           "Let-bound expression of higher-order type " + store_.to_text(type) +
               " contains consumption, which is not allowed.");
  check_sizes(*let.pattern);
  bind_pattern(*let.pattern, value);
}

void Consumption::let_update(const LetUpdate& update, const LetBinding& binding) {
  const bool index = check_steps(update.steps);
  const FlowPtr value = check(*update.value);
  const auto name = program_.names.find(binding.id);
  if (name == program_.names.end()) return;
  const FlowPtr source = observe(name->second, update.name.location);
  if (index) {
    check_overlap(source, update.name.text, value, *update.value);
    consume(all_aliases(source), binding.location);
  }
  const VarId variable = program_.binding_binders.at(binding.id);
  bind(variable, with_self(outlines_.of(program_.types[binding.id]), variable, paths_), true);
}

FlowPtr Consumption::branch(const IfExpr& branch) {
  // What a condition consumes is gone for all that comes after it; what a branch consumes, only behind the branches.
  std::vector<Consumed> all;
  FlowPtr result;
  for (const IfArm& arm : branch.arms) {
    check(*arm.condition);
    const std::size_t before = consumed_log_.size();
    const FlowPtr value = check(*arm.value);
    result = result ? joined(result, value) : value;
    const std::vector<Consumed> consumed = take_consumed(before);
    all.insert(all.end(), consumed.begin(), consumed.end());
  }
  const FlowPtr value = check(*branch.else_value);
  put_consumed(all);
  return without_consumed(joined(result, value));
}

FlowPtr Consumption::match(const MatchExpr& match) {
  const FlowPtr value = check(*match.x);
  std::vector<Consumed> all;
  FlowPtr result;
  for (const MatchCase& next : match.cases) {
    const std::uint32_t start = order_;
    const std::size_t before = consumed_log_.size();
    check_sizes(*next.pattern);
    bind_pattern(*next.pattern, value);
    const FlowPtr flow = unscoped(check(*next.body), start);
    result = result ? joined(result, flow) : flow;
    const std::vector<Consumed> consumed = take_consumed(before);
    all.insert(all.end(), consumed.begin(), consumed.end());
  }
  put_consumed(all);
  return without_consumed(result);
}

// What one of the branches consumes is gone afterwards, and so the value is the only one that has it.
FlowPtr Consumption::without_consumed(const FlowPtr& flow) {
  return with_aliases(flow, [&](const Flow& part) {
    Aliases aliases = part.aliases;
    std::erase_if(aliases, [&](const Alias& alias) {
      const auto found = consumed_.find(alias.variable);
      return found != consumed_.end();
    });
    return aliases;
  });
}

void Consumption::check_overlap(const FlowPtr& source, const std::string& name, const FlowPtr& value,
                                const Expr& expr) {
  if (overlap(all_aliases(source), all_aliases(value)))
    report(Code::consume_update_aliases, expr.location,
           "Source array for in-place update \"" + name + "\" might alias update value \"" + to_text(expr) +
               "\". Hint: use \"copy\" to remove aliases from the value.");
}

namespace {

// A record with one field replaced, at any depth.
FlowPtr replaced(const FlowPtr& flow, const std::vector<AccessStep>& steps, std::size_t step, const FlowPtr& value) {
  if (step == steps.size()) return value;
  Flow copy = *flow;
  for (auto& [name, field] : copy.fields)
    if (name == steps[step].field) field = replaced(field, steps, step + 1, value);
  return make_flow(std::move(copy));
}

}  // namespace

FlowPtr Consumption::update(const UpdateExpr& update, Location location) {
  const bool index = check_steps(update.steps);
  const FlowPtr value = check(*update.value);
  const FlowPtr source = check(*update.source);
  if (!index) return replaced(source, update.steps, 0, value);
  check_overlap(source, to_text(*update.source), value, *update.value);
  consume(all_aliases(source), location);
  return with_aliases(source, Aliases{});
}

}  // namespace apl::frontend
