// Folds by operators that OpenMP has no name for, as that for the largest element and its index, in vectors:
//
//   for (k = 0; k < n; ++k) r = op(r, x[k])
// =>
//   for (from = 0; from < whole; from += 32) {
//     stays = 1                                                      where an operator chooses between its operands
//     for (lane = 0; lane < 32; ++lane) stays &= partial[lane] wins over x[from + lane]
//     if (!stays) for (lane = 0; lane < 32; ++lane) partial[lane] = op(partial[lane], x[from + lane])
//   }
//   .. the partial results are folded, then the elements that are left ..
//
// The operator has to be commutative. That a partial result stays is asked by as little of the operator as says so for
// sure: of "greater, or equal and earlier" by the first half. After a few rounds nearly all stay, and the rest, such as
// the positions of elements, is not even computed.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/lower/vector_loops.h"

#include "ir/attributes.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

// Partial results of a fold by an operator of the program: four vectors of 32-bit elements on machines with the widest
// (measured on a Xeon, the largest of 2^24 and its place: 16 ms with one, 8 with 8, 4.9 with 16, 3.1 with 32).
constexpr std::int64_t kLanes = 32;

// The condition under which the operator gives its left operand, all of it; nullopt: it is not one that chooses.
std::optional<Value> keeps_left(const ReduceOp& reduce) {
  const Body& body = *reduce.op.body;
  const std::size_t count = reduce.neutral.size();
  for (const Stm& stm : body.stms) {
    const If* branch = get_if<If>(stm);
    if (branch == nullptr || !branch->condition.is_value() || stm.pattern.size() != count) continue;
    bool chooses = branch->then_body->stms.empty();
    for (std::size_t k = 0; k < count && chooses; ++k)
      chooses =
          body.results[k] == Operand(stm.pattern[k]) && branch->then_body->results[k] == Operand(reduce.op.params[k]);
    if (chooses) return branch->condition.value();
  }
  return std::nullopt;
}

void collect_variables(const ExprPtr& e, std::set<std::string>& into) {
  if (e->kind == Expr::Kind::variable) into.insert(e->text);
  for (const ExprPtr& part : e->args) collect_variables(part, into);
}

// What says that a partial result stays: declarations, the variable, and the results that they read.
struct Test {
  KernelBlock work;
  std::string keeps;
  std::set<std::string> results;
};

// The declarations of the loop's body that make `keeps`; nullopt: it is assigned to, or made by more than those.
std::optional<Test> declarations_of(const std::string& keeps, const Stmt& loop) {
  Test test{{}, keeps, {keeps}};
  std::set<std::string>& needed = test.results;
  for (auto s = loop.body.rbegin(); s != loop.body.rend(); ++s) {
    if (s->kind == Stmt::Kind::declare && s->constant && needed.contains(s->name)) {
      needed.erase(s->name);
      collect_variables(s->value, needed);
      test.work.insert(test.work.begin(), *s);
    } else if (s->kind == Stmt::Kind::declare && needed.contains(s->name)) {
      return std::nullopt;
    }
  }
  return test.work.empty() ? std::nullopt : std::optional(std::move(test));
}

}  // namespace

// Of an operator that chooses: the cheapest of what says that it gives its left operand.
static std::optional<Test> test_of(const Screma& op, const Stmt& loop, Unit& unit) {
  if (op.reduces.size() != 1) return std::nullopt;
  const ReduceOp& reduce = op.reduces.front();
  const std::optional<Value> condition = keeps_left(reduce);
  if (!condition) return std::nullopt;
  // Of "c or d" each of both will do.
  std::vector<Value> enough{*condition};
  std::optional<Test> best;
  for (std::size_t k = 0; k < enough.size(); ++k) {
    const Stm* made = defining_stm(*reduce.op.body, enough[k]);
    const Binary* either = made != nullptr ? get_if<Binary>(*made) : nullptr;
    if (either != nullptr && either->op == BinaryOp::disj)
      for (const Operand& x : {either->x, either->y})
        if (x.is_value()) enough.push_back(x.value());
    if (made == nullptr) continue;
    std::optional<Test> test = declarations_of(unit.name(enough[k]), loop);
    if (test && (!best || test->work.size() < best->work.size())) best = std::move(test);
  }
  return best;
}

void VectorLoops::fold_in_lanes(const Screma& op, const Stm& stm, std::size_t first_read, KernelBlock& out,
                                const std::function<void(const Partial&, KernelBlock&)>& fold) const {
  const bool sequential =
      has_attribute(stm.attributes, attribute::sequential) || has_attribute(stm_.attributes, attribute::sequential);
  if (unit_.target.on_device() || sequential || op.widths.size() != 1 || op.reduces.empty() || op.scans()) return;
  const Stmt loop = out.back();
  constexpr std::size_t kResults = 4;
  if (!loop.pragma.empty() || loop.unroll || loop.value->kind == Expr::Kind::literal || !is_straight(loop.body) ||
      op.map.body->results.size() != op.reduced_count() || op.reduced_count() > kResults)
    return;
  for (const ReduceOp& reduce : op.reduces) {
    if (!reduce.commutative || reduce.op.body->stms.size() > 3 * kResults) return;
    for (const Operand& neutral : reduce.neutral) {
      const Type type = unit_.function.values.type(neutral);
      if (!type.is_scalar() || type.element == ScalarType::f16 || type.element == ScalarType::bf16) return;
    }
  }
  for (std::size_t k = first_read; k < read_.size(); ++k) {
    const auto step = step_along(read_[k], op.indices.front());
    if (!step || (*step != 0 && *step != 1)) return;
  }
  const std::string lane = unit_.fresh("lane"), from = unit_.fresh("from"), whole = unit_.fresh("whole");
  KernelBlock begin, each{declare(kIndex, loop.name, plus(variable(from), variable(lane)))}, end, made;
  std::vector<std::string> names;
  for (const ReduceOp& reduce : op.reduces)
    for (const Operand& neutral : reduce.neutral) {
      const CType type{unit_.function.values.type(neutral).element, false};
      const std::string& result = unit_.name(stm.pattern[names.size()]);
      names.push_back(unit_.fresh("partial"));
      const ExprPtr mine = element(names.back(), variable(lane));
      made.push_back(declare_array(type, names.back(), kLanes));
      // The result is the neutral element still.
      begin.push_back(assign(mine, variable(result)));
      each.push_back(declare(type, result, mine, false));
      end.push_back(assign(mine, variable(result)));
    }
  each.insert(each.end(), loop.body.begin(), loop.body.end());
  each.insert(each.end(), end.begin(), end.end());
  KernelBlock together;
  fold([&](std::size_t k) { return element(names[k], variable(lane)); }, together);
  if (!is_straight(together)) return;
  const auto lanes = [&](KernelBlock body, std::string pragma) {
    Stmt all = for_loop(kIndex, lane, literal(kLanes), std::move(body));
    all.pragma = std::move(pragma);
    return all;
  };
  made.push_back(assign(variable(whole), infix("-", loop.value, infix("%", loop.value, literal(kLanes)))));
  made.push_back(lanes(std::move(begin), ""));
  KernelBlock round, all{lanes(std::move(each), "omp simd")};
  if (std::optional<Test> test = test_of(op, loop, unit_)) {
    const std::string stays = unit_.fresh("stays");
    const CType flag{ScalarType::i32, false};
    KernelBlock asked{declare(kIndex, loop.name, plus(variable(from), variable(lane)))};
    for (std::size_t k = 0; k < names.size(); ++k)
      if (test->results.contains(unit_.name(stm.pattern[k])))
        asked.push_back(declare({unit_.function.values.type(stm.pattern[k]).element, false}, unit_.name(stm.pattern[k]),
                                element(names[k], variable(lane))));
    asked.insert(asked.end(), test->work.begin(), test->work.end());
    asked.push_back(assign(variable(stays), infix("&", variable(stays), variable(test->keeps))));
    round.push_back(declare(flag, stays, literal(std::int64_t{1}), false));
    round.push_back(lanes(std::move(asked), fmt::format("omp simd reduction(&:{})", stays)));
    round.push_back(branch(infix("==", variable(stays), literal(std::int64_t{0})), std::move(all)));
  } else {
    round = std::move(all);
  }
  Stmt most = for_loop(kIndex, from, variable(whole), std::move(round));
  most.step = literal(kLanes);
  made.push_back(std::move(most));
  made.push_back(lanes(std::move(together), ""));
  Stmt rest = loop;
  rest.from = variable(whole);
  out.pop_back();
  out.push_back(declare(kIndex, whole, literal(std::int64_t{0}), false));
  // Short rows are done before the partial results are.
  out.push_back(branch(infix(">=", loop.value, literal(4 * kLanes)), std::move(made)));
  out.push_back(std::move(rest));
}

}  // namespace apl::lower
