#include "ir/differentiate/elements.h"

#include <range/v3/view/zip.hpp>

#include <algorithm>

#include "ir/differentiate/partials.h"

namespace apl::differentiation {

namespace {

// More would be computed again too often.
constexpr int kMostStatements = 100;

struct Unavailable {};

class Elements {
 public:
  // `known`: what stands for the parameters of the body.
  Elements(Builder& b, const Body& body, Substitution known) : b_(b), known_(std::move(known)) {
    for_each_stm(body, [&](const Stm& stm) {
      for (const Value v : stm.pattern) definitions_.emplace(v, &stm);
    });
  }

  Operand element(const Operand& array, std::vector<Poly> at) {
    if (!array.is_value()) throw Unavailable{};
    if (const auto row = rows_.find(array.value()); row != rows_.end()) {
      const Row from = row->second;
      at.insert(at.begin(), from.at.begin(), from.at.end());
      return element(Operand(from.array), std::move(at));
    }
    const auto found = definitions_.find(array.value());
    if (found == definitions_.end()) return at_once(Index{substitute(array.value(), known_), fixed(at), false});
    const Stm& stm = *found->second;
    if (const Use* op = get_if<Use>(stm)) return element(op->x, std::move(at));
    if (const Copy* op = get_if<Copy>(stm)) return element(Operand(op->array), std::move(at));
    if (const Rearrange* op = get_if<Rearrange>(stm)) {
      std::vector<Poly> source(at.size());
      for (std::size_t k = 0; k < at.size(); ++k) source[static_cast<std::size_t>(op->permutation[k])] = at[k];
      return element(Operand(op->array), std::move(source));
    }
    if (const Replicate* op = get_if<Replicate>(stm)) {
      at.erase(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(op->shape.size()));
      return at.empty() ? scalar(op->value) : element(op->value, std::move(at));
    }
    if (const Index* op = get_if<Index>(stm)) return element(Operand(op->array), below(*op, at));
    if (const Screma* op = get_if<Screma>(stm); op != nullptr && op->reduces.empty())
      return mapped(stm, *op, array.value(), at);
    throw Unavailable{};
  }

 private:
  struct Row {
    Value array;
    std::vector<Poly> at;
  };

  static std::vector<DimIndex> fixed(const std::vector<Poly>& at) {
    std::vector<DimIndex> dims;
    for (const Poly& i : at) dims.push_back(DimIndex::fix(i));
    return dims;
  }

  Operand at_once(Op op) {
    if (++made_ > kMostStatements) throw Unavailable{};
    return b_.let("x", std::move(op));
  }

  Poly poly(const Poly& old) {
    return old.substitute([&](Value v) { return std::optional(as_poly(scalar(Operand(v)))); });
  }

  // Where an element of what the index takes out lies in its array.
  std::vector<Poly> below(const Index& op, const std::vector<Poly>& at) {
    std::vector<Poly> result;
    auto next = at.begin();
    for (const DimIndex& dim : op.dims) {
      Poly start = poly(dim.start);
      if (dim.is_slice()) start += *next++ * poly(dim.stride);
      result.push_back(std::move(start));
    }
    result.insert(result.end(), next, at.end());
    return result;
  }

  // The lambda for one index; what was computed in it is nobody else's.
  Operand mapped(const Stm& stm, const Screma& op, Value array, const std::vector<Poly>& at) {
    const Substitution known = known_;
    const auto middle = at.begin() + static_cast<std::ptrdiff_t>(op.widths.size());
    for (std::size_t k = 0; k < op.indices.size(); ++k) {
      const std::optional<Operand> index = as_operand(at[k]);
      known_.insert_or_assign(op.indices[k], index ? *index : at_once(SizeExpr{at[k]}));
    }
    for (const auto& [input, param] : ranges::views::zip(op.inputs, op.map.params))
      rows_.insert_or_assign(param, Row{input, {at.begin(), middle}});
    const auto place = std::ranges::find(stm.pattern, array) - stm.pattern.begin();
    const Operand& result = op.map.body->results[static_cast<std::size_t>(place)];
    const Operand made = middle == at.end() ? scalar(result) : element(result, {middle, at.end()});
    known_ = known;
    return made;
  }

  Operand scalar(const Operand& x) {
    if (x.is_constant()) return x;
    const Value v = x.value();
    if (const auto found = known_.find(v); found != known_.end()) return found->second;
    if (const auto row = rows_.find(v); row != rows_.end()) return element(x, {});
    const auto found = definitions_.find(v);
    if (found == definitions_.end()) return x;
    const Operand made = computed(*found->second, v);
    known_.insert_or_assign(v, made);
    return made;
  }

  Operand computed(const Stm& stm, Value v) {
    if (const Use* op = get_if<Use>(stm)) return scalar(op->x);
    if (const Index* op = get_if<Index>(stm)) return element(Operand(op->array), below(*op, {}));
    const If* branch = get_if<If>(stm);
    if (branch == nullptr && !get_if<Unary>(stm) && !get_if<Binary>(stm) && !get_if<Compare>(stm) &&
        !get_if<Convert>(stm) && !get_if<SizeExpr>(stm))
      throw Unavailable{};
    Substitution uses;
    for (const Value use : free_values(stm.op, b_.values())) {
      if (b_.values().type(use).is_scalar()) {
        uses.insert_or_assign(use, scalar(Operand(use)));
      } else {
        if (definitions_.contains(use) || rows_.contains(use)) throw Unavailable{};
        uses.insert_or_assign(use, Operand(substitute(use, known_)));
      }
    }
    if (branch == nullptr) return at_once(substitute(stm.op, uses, b_.values()));
    for (const BodyPtr& body : {branch->then_body, branch->else_body})
      for_each_stm(*body, [&](const Stm& inner) {
        ++made_;
        if (has_bodies(inner.op) && !get_if<If>(inner)) throw Unavailable{};
      });
    If copy = *branch;
    copy.condition = substitute(copy.condition, uses);
    for (BodyPtr* body : {&copy.then_body, &copy.else_body}) {
      Substitution map = uses;
      *body = copy_fresh(*body, map, b_.values(), b_.values());
    }
    const std::vector<Value> made = b_.let_many({"x"}, std::move(copy));
    return made[static_cast<std::size_t>(std::ranges::find(stm.pattern, v) - stm.pattern.begin())];
  }

  Builder& b_;
  Substitution known_;
  std::unordered_map<Value, const Stm*> definitions_;
  std::unordered_map<Value, Row> rows_;  // parameters of maps inside
  int made_ = 0;
};

}  // namespace

std::optional<Value> sum_of_rows(Builder& b, const Screma& map, const Operand& row, const std::vector<Poly>& shape) {
  ValueTable& values = b.values();
  const ScalarType element = b.type(row).element;
  try {
    return b.tabulate("ds", shape, [&](Builder& inner, BoundValues at) {
      Screma sum;
      sum.widths = map.widths;
      Substitution known;
      const auto fresh = [&](Value v) {
        const Value made = values.add(values.type(v), values.name(v));
        known.insert_or_assign(v, Operand(made));
        return made;
      };
      for (const Value index : map.indices) sum.indices.push_back(fresh(index));
      std::vector<Value> params;
      for (const Value param : map.map.params) params.push_back(fresh(param));
      sum.map.body = inner.body([&](Builder& innermost) {
        Elements elements(innermost, *map.map.body, known);
        return std::vector<Operand>{elements.element(row, {at.begin(), at.end()})};
      });
      const std::set<Value> read = free_values(*sum.map.body, values);
      for (const auto& [param, input] : ranges::views::zip(params, map.inputs)) {
        if (!read.contains(param)) continue;
        sum.inputs.push_back(input);
        sum.map.params.push_back(param);
      }
      sum.reduces = {inner.reduce_op(addition(element), Scalar::zero(element))};
      return Operand(inner.let("d", std::move(sum)));
    });
  } catch (const Unavailable&) {
    return std::nullopt;
  }
}

}  // namespace apl::differentiation
