#include "codegen/kernel/masked_reads.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace apl::kernel {
namespace {

// By how many elements a round of the loop may move a position: all that its alternatives move by.
struct Steps {
  std::set<std::int64_t> known;
  bool unknown = false;  // by a number that is not known here, or another one in each round

  bool stays() const { return !unknown && known == std::set<std::int64_t>{0}; }
  bool skips_elements() const {
    return unknown || std::ranges::any_of(known, [](std::int64_t step) { return step < -1 || step > 1; });
  }
};

constexpr std::size_t kMostAlternatives = 16;

class Reads {
 public:
  Reads(const Stmt& loop, const Numbers& numbers) : loop_(loop), numbers_(numbers) {
    note_assigned(loop.body), note_assigned(loop.else_body);
  }

  bool found() {
    if (stays_loop(loop_.body) || stays_loop(loop_.else_body)) return false;
    visit(loop_.body, false);
    visit(loop_.else_body, false);
    return found_;
  }

 private:
  // Variables that statements of the loop change.
  void note_assigned(const Block& block) {
    for (const Stmt& s : block) {
      if (s.kind == Stmt::Kind::assign && s.target->kind == Expr::Kind::variable) assigned_.insert(s.target->text);
      if (s.kind == Stmt::Kind::declare && s.constant) constants_[s.name] = s.value;
      note_assigned(s.body);
      note_assigned(s.else_body);
    }
  }

  void visit(const Block& block, bool in_branch) {
    for (const Stmt& s : block) {
      for (const ExprPtr& e : {s.value, s.from, s.step, s.elements})
        if (e) visit(*e, in_branch);
      // An element that is stored is not read, but its index may be.
      for (std::size_t k = 0; s.target && k < s.target->args.size(); ++k) visit(*s.target->args[k], in_branch);
      for (const ExprPtr& e : s.numbers) visit(*e, in_branch);
      const bool is_loop = s.kind == Stmt::Kind::for_loop, is_branch = s.kind == Stmt::Kind::branch;
      visit(s.body, in_branch || is_branch || (is_loop && !value(*s.value)));
      visit(s.else_body, in_branch || is_branch);
      // What stands behind a branch that leaves is in the other one.
      in_branch =
          in_branch ||
          (is_branch && std::ranges::any_of(s.body, [](const Stmt& inner) { return inner.kind == Stmt::Kind::leave; }));
    }
  }

  // Whether there is what keeps gcc from converting branches: a loop in the loop, a report of a failure.
  bool stays_loop(const Block& block) const {
    return std::ranges::any_of(block, [&](const Stmt& s) {
      const bool is_loop = s.kind == Stmt::Kind::for_loop || s.kind == Stmt::Kind::while_loop;
      return s.kind == Stmt::Kind::fail || (is_loop && !may_be_unrolled(s)) || stays_loop(s.body) ||
             stays_loop(s.else_body);
    });
  }

  // gcc unrolls loops whole whose number of rounds, or a bound of it, is a small number in the text.
  bool may_be_unrolled(const Stmt& loop) const {
    return loop.kind == Stmt::Kind::for_loop && (loop.unroll || has_small_bound(*loop.value));
  }
  bool has_small_bound(const Expr& e) const {
    constexpr std::int64_t kMostRounds = 16;
    if (const auto rounds = value(e)) return *rounds <= kMostRounds;
    const bool is_least = e.kind == Expr::Kind::select || e.kind == Expr::Kind::cast || e.text == "apl_index_min";
    return is_least && std::ranges::any_of(e.args, [&](const ExprPtr& arg) { return has_small_bound(*arg); });
  }
  std::optional<std::int64_t> value(const Expr& e) const {
    if (e.kind == Expr::Kind::variable) {
      const auto known = numbers_.find(e.text);
      return known == numbers_.end() ? std::nullopt : std::optional(known->second);
    }
    if (e.kind == Expr::Kind::infix && e.text == "*") {
      const auto a = value(*e.args[0]), b = value(*e.args[1]);
      return a && b ? std::optional(*a * *b) : std::nullopt;
    }
    return number(std::make_shared<const Expr>(e));
  }

  void visit(const Expr& e, bool in_branch) {
    if (e.kind == Expr::Kind::element && in_branch) found_ = found_ || steps(*e.args[0]).skips_elements();
    const bool chooses = e.kind == Expr::Kind::select || e.text == "&&" || e.text == "||";
    for (std::size_t k = 0; k < e.args.size(); ++k) visit(*e.args[k], in_branch || (chooses && k > 0));
  }

  Steps steps(const Expr& e) const {
    switch (e.kind) {
      case Expr::Kind::literal: return {{0}};
      case Expr::Kind::variable: return steps_of_variable(e.text);
      // Elements that are found by what memory holds are gathered one by one.
      case Expr::Kind::element: return {{0}};
      case Expr::Kind::cast: return steps(*e.args[0]);
      case Expr::Kind::infix:
        if (e.text == "+" || e.text == "-") return sum(steps(*e.args[0]), steps(*e.args[1]), e.text == "-" ? -1 : 1);
        if (e.text == "*") return product(*e.args[0], *e.args[1]);
        break;
      case Expr::Kind::prefix:
        if (e.text == "-") return sum({{0}}, steps(*e.args[0]), -1);
        break;
      case Expr::Kind::call:
      case Expr::Kind::select: break;
    }
    // The smaller of two, a remainder: on its way as one of its arguments.
    Steps any{{0}};
    for (const ExprPtr& arg : e.args) {
      const Steps one = steps(*arg);
      any.known.insert(one.known.begin(), one.known.end());
      any.unknown = any.unknown || one.unknown;
    }
    return any;
  }

  Steps steps_of_variable(const std::string& name) const {
    if (name == loop_.name) {
      const auto by = value(*loop_.step);
      return by ? Steps{{*by}} : Steps{{}, true};
    }
    if (assigned_.contains(name)) return {{}, true};
    const auto constant = constants_.find(name);
    return constant == constants_.end() ? Steps{{0}} : steps(*constant->second);
  }

  static Steps sum(const Steps& a, const Steps& b, std::int64_t sign) {
    Steps result{{}, a.unknown || b.unknown || a.known.size() * b.known.size() > kMostAlternatives};
    if (result.unknown) return result;
    for (const std::int64_t x : a.known)
      for (const std::int64_t y : b.known) result.known.insert(x + sign * y);
    return result;
  }

  Steps product(const Expr& a, const Expr& b) const {
    const Steps x = steps(a), y = steps(b);
    if (x.stays() && y.stays()) return x;
    const auto scaled = [&](const Steps& moving, const Expr& factor) {
      const auto by = value(factor);
      Steps result{{}, moving.unknown || !by};
      for (const std::int64_t step : moving.known)
        if (by) result.known.insert(step * *by);
      return result;
    };
    return y.stays() ? scaled(x, b) : x.stays() ? scaled(y, a) : Steps{{}, true};
  }

  const Stmt& loop_;
  const Numbers& numbers_;
  std::set<std::string> assigned_;
  std::map<std::string, ExprPtr> constants_;
  bool found_ = false;
};

}  // namespace

bool reads_rows_in_branches(const Stmt& loop, const Numbers& numbers) { return Reads(loop, numbers).found(); }

}  // namespace apl::kernel
