// The mainloop of a contraction: the epilogue, on the elements that a thread has (codegen/contraction/tile_loop.cpp).
//
// What it reads along the columns alone, as a bias, or along the rows alone, is read once for each of them, not for
// each element: in the outer of the two loops over a thread's elements, or into registers before both. Element by
// element, each under its own conditions, the compiler has all these reads on their way at once, with an address for
// each: a bias behind 4096 x 4096 x 4096 in f32 spilled 152 bytes of registers so, and takes 235 registers this way.
#include <algorithm>
#include <array>
#include <set>

#include "codegen/contraction/mainloop.h"
#include "codegen/lower/lower.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

// Those of the body that follow from these.
std::set<Value> following(const Body& body, std::set<Value> from, const ValueTable& values) {
  for (const Stm& stm : body.stms)
    if (std::ranges::any_of(free_values(stm.op, values), [&](Value v) { return from.contains(v); }))
      from.insert(stm.pattern.begin(), stm.pattern.end());
  return from;
}

bool meets(const std::set<Value>& a, const std::set<Value>& b) {
  return std::ranges::any_of(a, [&](Value v) { return b.contains(v); });
}

// The code of an element, with the reads that are done once for all elements of a column or of a row.
struct Epilogue {
  struct Shared {
    std::vector<Stm> reads;
    std::vector<Stm> before;          // of the code, what they and their conditions follow from
    std::vector<Operand> conditions;  // under which they are inside
  };
  Lambda map;                    // without those reads: what they give are its last parameters
  std::array<Shared, 2> shared;  // along M alone, along N alone
};

class EpilogueSplit {
 public:
  // `indices`: of M and of N in the code; `sizes`: of the results along them.
  EpilogueSplit(const Lambda& map, const std::array<std::set<Value>, 2>& indices, const std::array<Poly, 2>& sizes,
                const ValueTable& values)
      : map_(map), body_(*map.body), sizes_(sizes), values_(values) {
    for (std::size_t s = 0; s < 2; ++s) {
      std::set<Value> from = indices[s];
      from.insert(map.params.begin(), map.params.end());
      along_[s] = following(body_, std::move(from), values);
    }
  }

  Epilogue run() {
    Epilogue made{map_, {}};
    // The branch of elements that are inside; without one all are.
    const Stm* guard = nullptr;
    for (const Stm& stm : body_.stms)
      if (const If* branch = get_if<If>(stm)) {
        if (guard != nullptr || !branch->else_body->stms.empty()) return made;
        guard = &stm;
      }
    if (guard != nullptr && !find_conditions(std::get<If>(guard->op).condition, made)) return made;
    const Body& inside = guard != nullptr ? *std::get<If>(guard->op).then_body : body_;
    std::vector<Stm> left;
    std::set<Value> bound;  // by the branch itself
    for (const Stm& stm : inside.stms) {
      Epilogue::Shared* shared = find_shared(stm, guard != nullptr ? bound : std::set<Value>(), made);
      bound.insert(stm.pattern.begin(), stm.pattern.end());
      (shared != nullptr ? shared->reads : left).push_back(stm);
    }
    for (Epilogue::Shared& shared : made.shared) {
      if (shared.reads.empty()) continue;
      std::set<Value> wanted;
      for (const Operand& condition : shared.conditions)
        if (condition.is_value()) wanted.insert(condition.value());
      for (const Stm& read : shared.reads) {
        wanted.merge(free_values(read.op, values_));
        made.map.params.push_back(read.pattern.front());
      }
      shared.before = made_for(std::move(wanted), body_.stms);
    }
    if (guard == nullptr) {
      made.map.body = make_body(std::move(left), body_.results);
      return made;
    }
    std::vector<Stm> stms = body_.stms;
    const auto at = stms.begin() + (guard - body_.stms.data());
    // What reads nothing is done for all: results outside are dropped.
    const auto is_safe = [&](const Stm& stm) {
      return !get_if<Index>(stm) && !has_bodies(stm.op) && !can_fail(stm.op, values_);
    };
    if (std::ranges::all_of(left, is_safe)) {
      Substitution given;
      for (std::size_t k = 0; k < guard->pattern.size(); ++k)
        given.insert_or_assign(guard->pattern[k], inside.results[k]);
      stms.insert(stms.erase(at), left.begin(), left.end());
      ValueTable table = values_;
      made.map.body = without_unused(*substitute(make_body(std::move(stms), body_.results), given, table));
      return made;
    }
    If& branch = std::get<If>(at->op);
    branch.then_body = make_body(std::move(left), inside.results);
    made.map.body = make_body(std::move(stms), body_.results);
    return made;
  }

 private:
  BodyPtr without_unused(const Body& body) const {
    std::set<Value> wanted;
    for (const Operand& result : body.results)
      if (result.is_value()) wanted.insert(result.value());
    return make_body(made_for(std::move(wanted), body.stms), body.results);
  }

  // Those of the statements that these values follow from.
  std::vector<Stm> made_for(std::set<Value> wanted, const std::vector<Stm>& stms) const {
    std::vector<Stm> used;
    for (std::size_t k = stms.size(); k-- > 0;) {
      if (std::ranges::none_of(stms[k].pattern, [&](Value v) { return wanted.contains(v); })) continue;
      wanted.merge(free_values(stms[k].op, values_));
      used.insert(used.begin(), stms[k]);
    }
    return used;
  }

  const Stm* maker(const Operand& x) const {
    for (const Stm& stm : body_.stms)
      if (x.is_value() && stm.pattern.front() == x.value()) return &stm;
    return nullptr;
  }

  // Of a conjunction each part, for what it is about. False: one of them is about both dims, or is more than that an
  // index is below its size, so that a read may need it which does not vary with it.
  bool find_conditions(const Operand& condition, Epilogue& made) const {
    const Stm* stm = maker(condition);
    if (stm == nullptr) return !condition.is_value();
    if (const Binary* both = get_if<Binary>(*stm); both != nullptr && both->op == BinaryOp::conj)
      return find_conditions(both->x, made) && find_conditions(both->y, made);
    const Compare* less = get_if<Compare>(*stm);
    if (less == nullptr || less->op != CompareOp::lt || !less->y.is_value()) return false;
    for (std::size_t s = 0; s < 2; ++s) {
      if (!along_[s].contains(condition.value())) continue;
      if (along_[1 - s].contains(condition.value()) || Poly(less->y.value()) != sizes_[s]) return false;
      made.shared[s].conditions.push_back(condition);
      return true;
    }
    for (Epilogue::Shared& shared : made.shared) shared.conditions.push_back(condition);
    return true;
  }

  // Which reads this is one of, if of any.
  Epilogue::Shared* find_shared(const Stm& stm, const std::set<Value>& bound, Epilogue& made) const {
    const Index* index = get_if<Index>(stm);
    if (index == nullptr || index->checked || values_.type(stm.pattern.front()).is_array()) return nullptr;
    const std::set<Value> uses = free_values(stm.op, values_);
    if (meets(uses, bound)) return nullptr;
    const bool along_m = meets(uses, along_[0]), along_n = meets(uses, along_[1]);
    return along_m == along_n ? nullptr : &made.shared[along_m ? 0 : 1];
  }

  const Lambda& map_;
  const Body& body_;
  std::array<Poly, 2> sizes_;
  const ValueTable& values_;
  std::array<std::set<Value>, 2> along_;  // of the code, what varies along M, along N
};

}  // namespace

// The code says which element it is for by the indices (t, r) of T threads and R registers; here others have them.
void MainloopLowering::mainloop_epilogue(const SegOp& op, const Screma& each, const Stm& stm, KernelBlock& out) {
  Mainloop& mainloop = *mainloop_;
  const ValueTable& values = unit_.function.values;
  const MnDim &m_dim = mainloop.mn_dims[0], &n_dim = mainloop.mn_dims[1];
  const std::string i = unit_.fresh("i"), j = unit_.fresh("j"), row = unit_.fresh("m"), column = unit_.fresh("n");
  KernelBlock inner;
  for (std::size_t d = 0; d < op.space.size(); ++d) {
    ExprPtr thread = number_of(0), reg = number_of(0);
    if (d == m_dim.dim || d == n_dim.dim) {
      const ExprPtr at = variable(d == m_dim.dim ? row : column);
      const std::int64_t registers = *unit_.fold(each.widths[d]);
      thread = registers == 1 ? at : infix("/", at, number_of(registers));
      reg = registers == 1 ? number_of(0) : infix("%", at, number_of(registers));
    }
    values_.scalars[op.space[d].index] = thread;
    values_.scalars[each.indices[d]] = reg;
  }
  const ExprPtr here = plus(mul(variable(i), number_of(n_dim.each)), variable(j));
  const std::vector<Schedule::Dim>& dims = std::get<SegOp>(stm_.op).schedule->dims;
  std::array<std::set<Value>, 2> indices;
  for (std::size_t s = 0; s < 2; ++s)
    indices[s] = {op.space[mainloop.mn_dims[s].dim].index, each.indices[mainloop.mn_dims[s].dim]};
  const Epilogue epilogue =
      EpilogueSplit(each.map, indices, {dims[m_dim.dim].size, dims[n_dim.dim].size}, values).run();
  std::vector<ExprPtr> elements;
  for (Value input : each.inputs)
    elements.push_back(kernel::element(buffer(values.type(input).memory->block, stm.location).name, here));
  // The outer loop goes over rows, or over columns where less has to be kept so.
  const std::size_t outer = !epilogue.shared[1].reads.empty() && n_dim.each > m_dim.each ? 1 : 0;
  const std::array<std::string, 2> element{i, j}, position{row, column};
  // Of the outer loop's one element, of all elements of the inner one.
  std::array<KernelBlock, 2> before, reads;
  for (std::size_t s = 0; s < 2; ++s) {
    const Epilogue::Shared& shared = epilogue.shared[s];
    if (shared.reads.empty()) continue;
    for (const Stm& made : shared.before) statement(made, reads[s]);
    KernelBlock inside, zeros;
    for (const Stm& read : shared.reads) {
      const Value value = read.pattern.front();
      const std::string name = unit_.fresh(values.name(value) + (s == 0 ? "_of_row" : "_of_column"));
      const std::int64_t kept = s == outer ? 1 : mainloop.mn_dims[s].each;
      before[s].push_back(declare_array({values.type(value).element, false}, name, kept));
      const ExprPtr target = kernel::element(name, s == outer ? number_of(0) : variable(element[s]));
      values_.scalars.erase(value);  // of the same code before, which stands for other tiles
      statement(read, inside);
      inside.push_back(assign(target, values_.operand(value)));
      zeros.push_back(assign(target, number_of(0)));
      elements.push_back(target);
    }
    ExprPtr condition;
    for (const Operand& one : shared.conditions)
      condition = condition ? infix("&&", condition, values_.operand(one)) : values_.operand(one);
    if (condition) {
      append(reads[s], std::move(zeros));
      reads[s].push_back(kernel::branch(condition, std::move(inside)));
    } else {
      append(reads[s], std::move(inside));
    }
  }
  const std::vector<ExprPtr> results = inline_lambda(epilogue.map, elements, inner);
  for (std::size_t k = 0; k < results.size(); ++k)
    inner.push_back(assign(kernel::element(buffer(values.type(stm.pattern[k]).memory->block, stm.location).name, here),
                           results[k]));
  // Element i of a thread's rows: groups of neighbours, one group from each round of the lanes.
  const auto place = [](const MnDim& mn, const std::string& index) {
    const ExprPtr group = mul(infix("/", variable(index), number_of(mn.vector)), number_of(mn.lanes * mn.vector));
    return plus(plus(variable(mn.first), group), infix("%", variable(index), number_of(mn.vector)));
  };
  // Positions, conditions and reads of the columns are the same for all tiles of a block, and those of the inner loop
  // for all rounds of the outer one. Kept they would be more registers than are left beside the accumulators.
  const std::size_t inmost = 1 - outer;
  const auto at = [&](std::size_t s, bool anew) {
    const ExprPtr where = place(mainloop.mn_dims[s], element[s]);
    return declare(kInt, position[s], anew ? call("apl_anew", {where}) : where);
  };
  KernelBlock one{at(inmost, true)};
  append(one, std::move(inner));
  KernelBlock round{at(outer, outer == 1)};
  append(round, std::move(before[outer]));
  append(round, std::move(reads[outer]));
  round.push_back(unrolled(element[inmost], mainloop.mn_dims[inmost].each, std::move(one)));
  out.push_back(comment("code after the reduction"));
  if (!before[inmost].empty()) {
    append(out, std::move(before[inmost]));
    KernelBlock along{at(inmost, true)};
    append(along, std::move(reads[inmost]));
    out.push_back(unrolled(element[inmost], mainloop.mn_dims[inmost].each, std::move(along)));
  }
  out.push_back(unrolled(element[outer], mainloop.mn_dims[outer].each, std::move(round)));
}

}  // namespace apl::lower
