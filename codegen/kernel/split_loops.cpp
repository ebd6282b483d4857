#include "codegen/kernel/split_loops.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "codegen/kernel/positions.h"

namespace apl::kernel {
namespace {

using Names = std::set<std::string>;
using Replacements = std::map<std::string, ExprPtr>;

// A body of more statements is not written once for each part, and no loop is split more often.
constexpr std::size_t kFewStatements = 32;
constexpr int kMostSplits = 4;

bool is_index(const CType& type) { return type.scalar == ScalarType::i64 && !type.small; }

// Loops that can be cut anywhere: each round is done for itself, in order.
bool is_plain(const Stmt& s) {
  return s.kind == Stmt::Kind::for_loop && is_index(s.type) && number(s.step) == 1 && s.scan.empty() && !s.unroll;
}

std::size_t statements(const Block& block) {
  std::size_t count = 0;
  for (const Stmt& s : block) count += 1 + statements(s.body) + statements(s.else_body);
  return count;
}

// Nothing that leaves the loop, or has a name that may stand in a function only once.
bool may_be_repeated(const Block& block) {
  return std::ranges::all_of(block, [](const Stmt& s) {
    switch (s.kind) {
      case Stmt::Kind::declare:
      case Stmt::Kind::array:
      case Stmt::Kind::assign:
      case Stmt::Kind::for_loop:
      case Stmt::Kind::branch:
      case Stmt::Kind::comment: return may_be_repeated(s.body) && may_be_repeated(s.else_body);
      default: return false;
    }
  });
}

// Names that the statements declare or change.
void note_changed(const Block& block, Names& names) {
  for (const Stmt& s : block) {
    if (s.kind == Stmt::Kind::assign) names.insert(s.target->text);
    if (!s.name.empty() && s.kind != Stmt::Kind::comment) names.insert(s.name);
    note_changed(s.body, names);
    note_changed(s.else_body, names);
  }
}

// The expression with variables replaced; index arithmetic is folded where it becomes simpler.
ExprPtr replaced(const ExprPtr& e, const Replacements& values) {
  if (e->kind == Expr::Kind::variable) {
    const auto found = values.find(e->text);
    return found == values.end() ? e : found->second;
  }
  std::vector<ExprPtr> args;
  bool same = true;
  for (const ExprPtr& arg : e->args) {
    args.push_back(replaced(arg, values));
    same = same && args.back() == arg;
  }
  if (same) return e;
  if (e->kind == Expr::Kind::infix && e->text == "+") return add(args[0], args[1]);
  if (e->kind == Expr::Kind::infix && e->text == "*") return mul(args[0], args[1]);
  if (e->kind == Expr::Kind::infix && e->text == "-" && number(args[1]) == 0) return args[0];
  return std::make_shared<const Expr>(Expr{e->kind, e->text, e->type, std::move(args)});
}

// ---- parts by a condition on the loop's variable ----

// The variable is below `end`, or it is not; `below`: what a branch does then, its body (true) or what else there is.
struct Question {
  ExprPtr end;
  bool below = true;
};

// Whether the expression is the same in all rounds, and cheap.
bool is_fixed(const Expr& e, const Names& changed) {
  static const Names kFunctions{"apl_index_min", "apl_index_max", "apl_ceil_div", "apl_floor_div"};
  if (e.kind == Expr::Kind::variable) return !changed.contains(e.text);
  const bool known = e.kind == Expr::Kind::literal ||
                     (e.kind == Expr::Kind::infix && (e.text == "+" || e.text == "-" || e.text == "*")) ||
                     (e.kind == Expr::Kind::call && kFunctions.contains(e.text));
  return known && std::ranges::all_of(e.args, [&](const ExprPtr& arg) { return is_fixed(*arg, changed); });
}

class Questions {
 public:
  Questions(const Stmt& loop, const Stmt& level) : level_(level) {
    changed_.insert(loop.name);
    note_changed(loop.body, changed_);
  }

  std::optional<Question> first(const Block& block, Replacements values = {}) const {
    for (const Stmt& s : block) {
      if (s.kind == Stmt::Kind::declare && s.constant) values[s.name] = replaced(s.value, values);
      if (s.kind == Stmt::Kind::branch)
        if (const auto question = asked(s, values)) return question;
      if (s.kind == Stmt::Kind::for_loop)
        if (const auto question = first(s.body, values)) return question;
    }
    return std::nullopt;
  }

  // The block where the answer is known.
  Block answered(const Block& block, const Question& question, bool is_below, Replacements values = {}) const {
    Block result;
    bool changed = false;
    for (const Stmt& s : block) {
      if (s.kind == Stmt::Kind::declare && s.constant) values[s.name] = replaced(s.value, values);
      const auto here = s.kind == Stmt::Kind::branch ? asked(s, values) : std::nullopt;
      if (here && Position(*here->end) == Position(*question.end)) {
        const Block& arm = here->below == is_below ? s.body : s.else_body;
        for (Stmt& inner : answered(arm, question, is_below, values)) result.push_back(std::move(inner));
        changed = true;
      } else {
        result.push_back(s);
        if (s.kind == Stmt::Kind::for_loop) result.back().body = answered(s.body, question, is_below, values);
      }
    }
    if (changed) tidy(result);
    return result;
  }

 private:
  std::optional<Question> asked(const Stmt& branch, const Replacements& values) const {
    const ExprPtr condition = replaced(branch.value, values);
    if (condition->kind != Expr::Kind::infix || (condition->text != "<" && condition->text != "<="))
      return std::nullopt;
    const bool strict = condition->text == "<";
    const auto is_variable = [&](const Expr& e) { return e.kind == Expr::Kind::variable && e.text == level_.name; };
    const ExprPtr &x = condition->args[0], &y = condition->args[1];
    const bool left = is_variable(*x);
    if ((!left && !is_variable(*y)) || !is_fixed(left ? *y : *x, changed_)) return std::nullopt;
    const ExprPtr& bound = left ? y : x;
    // i < b and b <= i ask for b. The other two ask for b + 1, which may wrap for a b that no index reaches.
    if (left == strict) return Question{bound, left};
    return Question{add(call("apl_index_min", {bound, infix("-", level_.value, literal(std::int64_t{1}))}),
                        literal(std::int64_t{1})),
                    left};
  }

  // What a branch assigned is a constant where there is no branch, and conditions that nobody reads go.
  static void tidy(Block& block) {
    for (std::size_t k = 0; k < block.size(); ++k) {
      if (block[k].kind != Stmt::Kind::declare || block[k].constant) continue;
      const auto assigns = [&](const Stmt& s) {
        return s.kind == Stmt::Kind::assign && s.target->kind == Expr::Kind::variable &&
               s.target->text == block[k].name;
      };
      const auto set = std::find_if(block.begin() + static_cast<std::ptrdiff_t>(k) + 1, block.end(), assigns);
      if (set == block.end() ||
          mentions(Block(block.begin() + static_cast<std::ptrdiff_t>(k) + 1, set), block[k].name) ||
          mentions(*set->value, block[k].name) || is_changed(Block(set + 1, block.end()), block[k].name))
        continue;
      *set = declare(block[k].type, block[k].name, set->value);
      block.erase(block.begin() + static_cast<std::ptrdiff_t>(k--));
    }
    for (std::size_t k = block.size(); k-- > 0;)
      if (block[k].kind == Stmt::Kind::declare && block[k].constant && !calls(*block[k].value) &&
          !mentions(block, block[k].name))
        block.erase(block.begin() + static_cast<std::ptrdiff_t>(k));
  }

  static bool calls(const Expr& e) {
    return e.kind == Expr::Kind::call || std::ranges::any_of(e.args, [](const ExprPtr& arg) { return calls(*arg); });
  }

  static bool is_changed(const Block& block, const std::string& name) {
    Names changed;
    note_changed(block, changed);
    return changed.contains(name);
  }

  const Stmt& level_;
  Names changed_;
};

// ---- two loops as one ----

// Whether the names are mentioned in positions of elements alone; these are collected.
bool only_in_positions(const Expr& e, const Names& names, std::vector<ExprPtr>& positions) {
  if (e.kind == Expr::Kind::variable) return !names.contains(e.text);
  if (e.kind == Expr::Kind::element) {
    positions.push_back(e.args[0]);
    return true;
  }
  return std::ranges::all_of(e.args, [&](const ExprPtr& arg) { return only_in_positions(*arg, names, positions); });
}

// The loop around the one in it as one loop over both; nullopt: some position does not go on with the next row.
std::optional<Stmt> joined(const Stmt& outer) {
  if (!is_plain(outer) || outer.body.size() != 1 || !outer.pragma.empty()) return std::nullopt;
  const Stmt& inner = outer.body.front();
  if (!is_plain(inner) || inner.parallel || !inner.pragma.empty() || number(inner.from) != 0) return std::nullopt;
  Names changed{outer.name, inner.name};
  note_changed(inner.body, changed);
  if (!is_fixed(*inner.value, changed)) return std::nullopt;
  Names moving{outer.name, inner.name};
  Replacements values;
  std::vector<ExprPtr> positions;
  for (const Stmt& s : inner.body) {
    if (s.kind == Stmt::Kind::comment) continue;
    if (s.kind == Stmt::Kind::declare && s.constant) {
      // An index on its way to a position.
      std::vector<ExprPtr> read;
      if (is_index(s.type) && !only_in_positions(*s.value, moving, read) && read.empty()) {
        moving.insert(s.name);
        values[s.name] = replaced(s.value, values);
        continue;
      }
    } else if (s.kind != Stmt::Kind::assign || s.target->kind != Expr::Kind::element ||
               !only_in_positions(*s.target, moving, positions)) {
      return std::nullopt;
    }
    if (!only_in_positions(*s.value, moving, positions)) return std::nullopt;
  }
  const Position row{*inner.value};
  for (const ExprPtr& e : positions) {
    const Position position{*replaced(e, values)};
    const auto by_row = position.step(outer.name), by_element = position.step(inner.name);
    if (!by_row || !by_element || !(*by_row == *by_element * row)) return std::nullopt;
  }
  Stmt result = outer;
  result.name = inner.name;
  result.from = mul(outer.from, inner.value);
  result.value = mul(outer.value, inner.value);
  result.body = inner.body;
  const Replacements first{{outer.name, literal(std::int64_t{0})}};
  for (Stmt& s : result.body) {
    if (s.target) s.target = replaced(s.target, first);
    if (s.value) s.value = replaced(s.value, first);
  }
  return result;
}

// All loops of a nest as one, if they can be.
std::optional<Stmt> all_joined(const Stmt& loop) {
  if (loop.body.size() != 1 || loop.body.front().kind != Stmt::Kind::for_loop) return std::nullopt;
  Stmt result = loop;
  if (const auto inner = all_joined(loop.body.front())) result.body = {*inner};
  std::optional<Stmt> one = joined(result);
  if (one) one->collapse = 1;
  return one;
}

class Splitter {
 public:
  explicit Splitter(const std::function<std::string(const std::string&)>& fresh) : fresh_(fresh) {}

  Block block(Block all) {
    Block result;
    for (Stmt& s : all) {
      if (s.kind == Stmt::Kind::for_loop) {
        loop(std::move(s), kMostSplits, result);
      } else {
        s.body = block(std::move(s.body));
        s.else_body = block(std::move(s.else_body));
        result.push_back(std::move(s));
      }
    }
    return result;
  }

 private:
  void loop(Stmt s, int splits, Block& out) {
    if (splits > 0 && statements(s.body) <= kFewStatements && may_be_repeated(s.body)) {
      // Rounds of a parallel nest are in no order: any of its loops may be split outside of it.
      std::size_t level = 0;
      for (const Stmt* at = &s; is_plain(*at); at = &at->body.front(), ++level) {
        const Questions questions(s, *at);
        if (const auto question = questions.first(at->body)) return split(s, level, *question, splits, out);
        if (!s.parallel || at->body.size() != 1 || at->body.front().kind != Stmt::Kind::for_loop) break;
      }
    }
    // Loops that threads share are joined all or not at all.
    Stmt* shared = &s;
    for (int k = 1; k < s.collapse && shared->body.size() == 1; ++k) shared = &shared->body.front();
    shared->body = block(std::move(shared->body));
    out.push_back(all_joined(s).value_or(s));
  }

  static Stmt& at_level(Stmt& loop, std::size_t level) {
    Stmt* at = &loop;
    for (; level > 0; --level) at = &at->body.front();
    return *at;
  }

  void split(Stmt& s, std::size_t level, const Question& question, int splits, Block& out) {
    const Stmt whole = at_level(s, level);
    const std::string end = fresh_(whole.name + "_end");
    out.push_back(
        declare(kIndex, end, call("apl_index_max", {whole.from, call("apl_index_min", {question.end, whole.value})})));
    for (const bool below : {true, false}) {
      Stmt part = s;
      Stmt& changed = at_level(part, level);
      (below ? changed.value : changed.from) = variable(end);
      changed.body = Questions(s, whole).answered(whole.body, question, below);
      if (part.elements) part.elements = elements(part);
      loop(std::move(part), splits - 1, out);
    }
  }

  static ExprPtr elements(const Stmt& part) {
    ExprPtr rounds = literal(std::int64_t{1});
    for (const Stmt* at = &part; is_plain(*at); at = &at->body.front()) {
      rounds = mul(rounds, number(at->from) == 0 ? at->value : infix("-", at->value, at->from));
      if (at->body.size() != 1) break;
    }
    return rounds;
  }

  const std::function<std::string(const std::string&)>& fresh_;
};

}  // namespace

Block split_loops(Block block, const std::function<std::string(const std::string&)>& fresh) {
  return Splitter(fresh).block(std::move(block));
}

}  // namespace apl::kernel
