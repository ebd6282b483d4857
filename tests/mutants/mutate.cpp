#include "tests/mutants/mutate.h"

#include <fmt/format.h>

#include <cctype>
#include <cstdlib>
#include <map>

namespace apl::mutants {

namespace {

using namespace kernel;

constexpr const char* kVariable = "APL_MUTANT";  // of the environment: kernels are loaded by the backend alone

// "m_3 < q_1" as "m < q".
std::string without_suffixes(const std::string& text) {
  std::string result;
  for (std::size_t k = 0; k < text.size(); ++k) {
    if (text[k] == '_' && k > 0 && k + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[k + 1])) != 0) {
      std::size_t end = k + 1;
      while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
      const bool whole =
          end == text.size() || (std::isalnum(static_cast<unsigned char>(text[end])) == 0 && text[end] != '_');
      if (whole) {
        k = end - 1;
        continue;
      }
    }
    result += text[k];
  }
  return result;
}

class Walk {
 public:
  Walk(int& count, std::vector<Mutant>& mutants) : count_(count), mutants_(mutants) {}

  void block(Block& block) {
    for (Stmt& stmt : block) statement(stmt);
  }

 private:
  ExprPtr is(const char* op, const std::string& what) {
    const int number = ++count_;
    mutants_.push_back({number, fmt::format("{} {}", what, ++seen_[what])});
    return infix(op, variable("apl_mutant"), literal(std::int64_t{number}));
  }

  // Present in all mutants but one.
  void removable(Stmt& stmt, const std::string& what) {
    ExprPtr present = is("!=", what);
    Stmt kept = std::move(stmt);
    stmt = branch(std::move(present), {std::move(kept)});
  }

  // Each part of a conjunction is true in a mutant of its own.
  ExprPtr condition(const ExprPtr& e) {
    if (e->kind == Expr::Kind::infix && e->text == "&&")
      return infix("&&", condition(e->args[0]), condition(e->args[1]));
    if (e->kind == Expr::Kind::infix && e->text == "&") return e;  // decides an order alone
    const std::string text = without_suffixes(kernel::print(e, *find_dialect("cuda")));
    return infix("||", is("==", fmt::format("guard `{}`", text)), e);
  }

  // Values that are chosen by a condition, at any depth.
  ExprPtr choices(const ExprPtr& e) {
    if (!e) return e;
    auto made = std::make_shared<Expr>(*e);
    for (std::size_t k = 0; k < made->args.size(); ++k) {
      const bool chosen_by = e->kind == Expr::Kind::select && k == 0;
      made->args[k] = chosen_by ? condition(e->args[0]) : choices(e->args[k]);
    }
    return made;
  }

  void statement(Stmt& stmt) {
    switch (stmt.kind) {
      case Stmt::Kind::barrier: return removable(stmt, "barrier");
      case Stmt::Kind::call: {
        const std::string name = stmt.value->text.substr(0, stmt.value->text.find('<'));
        if (name == "apl_cp_async_wait" || name == "apl_cp_async_commit" || name == "apl_warp_barrier" ||
            name == "apl_fence" || name == "apl_zero_tile")
          removable(stmt, name.substr(4));
        return;
      }
      case Stmt::Kind::declare:
      case Stmt::Kind::assign: stmt.value = choices(stmt.value); return;
      case Stmt::Kind::branch: stmt.value = condition(stmt.value); break;
      default: break;
    }
    block(stmt.body);
    block(stmt.else_body);
  }

  int& count_;
  std::vector<Mutant>& mutants_;
  std::map<std::string, int> seen_;
};

}  // namespace

void Mutator::mutate(kernel::Function& function, std::vector<Mutant>& mutants) {
  Walk(count_, mutants).block(function.body);
  Stmt number = declare(kInt, "apl_mutant", call("apl_chosen_mutant", {}));
  function.body.insert(function.body.begin(), std::move(number));
}

std::string Mutator::prologue() {
  return fmt::format("static int apl_chosen_mutant() {{ return atoi(getenv(\"{}\")); }}\n", kVariable);
}

void Mutator::choose(int number) { ::setenv(kVariable, std::to_string(number).c_str(), 1); }

}  // namespace apl::mutants
