// cse: what was computed before is used again.
//
//   let {a : i64} = mul(n, 2i64)      let {a : i64} = mul(n, 2i64)
//   let {b : i64} = mul(n, 2i64)  =>
//   let {c : i64} = add(a, b)         let {c : i64} = add(a, a)
//
// One walk with a table of what is in scope: a statement whose operation equals an earlier one of the same or an
// enclosing body (up to the names bound inside; passes/analysis/structure) is dropped, and its results stand for the
// earlier ones. Commutative scalar operations are compared with their operands in one order.
// Not merged: calls; fresh memory that is overwritten in place, since each needs its own; copies, scratch and shared
// arrays, which are made for that; statements with different attributes.
#include <algorithm>
#include <unordered_map>

#include "ir/attributes.h"
#include "ir/node_info.h"
#include "ir/walk.h"
#include "passes/analysis/consumption.h"
#include "passes/analysis/map_uses.h"
#include "passes/analysis/structure.h"
#include "passes/functions.h"
#include "passes/pass.h"

namespace apl {

namespace {

class Eliminator {
 public:
  Eliminator(Function& function, const Module& module) : function_(function), consumption_(function, &module) {}

  bool run() {
    function_.body = body(function_.body);
    return changed_;
  }

 private:
  // Entries made in a body are withdrawn when it ends: they do not dominate what follows.
  BodyPtr body(const BodyPtr& old) {
    std::vector<std::string> made;
    Body result;
    for (Stm stm : old->stms) {
      if (!replaced_.empty()) rewrite(stm);
      stm.op = map_bodies(stm.op, [&](const BodyPtr& inner) { return body(inner); });
      if (mergeable(stm)) {
        std::string key = structural_key(normal(stm.op), function_.values) + attributes_key(stm);
        const auto [found, added] = available_.try_emplace(std::move(key), stm.pattern);
        if (!added) {
          for (std::size_t k = 0; k < stm.pattern.size(); ++k) {
            replaced_.insert_or_assign(stm.pattern[k], Operand(found->second[k]));
          }
          changed_ = true;
          continue;
        }
        made.push_back(found->first);
      }
      result.stms.push_back(std::move(stm));
    }
    for (const Operand& operand : old->results) result.results.push_back(substitute(operand, replaced_));
    for (const std::string& key : made) available_.erase(key);
    return std::make_shared<const Body>(std::move(result));
  }

  // What the statement itself reads, and the types of what it binds.
  void rewrite(Stm& stm) {
    const UseMap map{.operand = [&](const Operand& x) { return substitute(x, replaced_); },
                     .value = [&](Value v) { return substitute(v, replaced_); },
                     .poly = [&](const Poly& p) { return substitute(p, replaced_); }};
    const auto rewrite_type = [&](Value v) { function_.values.set_type(v, map_uses(function_.type(v), map)); };
    stm.op = map_uses(stm.op, map);
    for (Value& certificate : stm.certificates) certificate = substitute(certificate, replaced_);
    for (const Value v : stm.pattern) rewrite_type(v);
    for_each_binder(stm.op, rewrite_type);
  }

  bool mergeable(const Stm& stm) const {
    if (node_info(stm.op).effect != Effect::none || has_attribute(stm.attributes, attribute::trace)) return false;
    return std::ranges::none_of(stm.pattern, [&](Value v) {
      const Type& type = function_.type(v);
      return type.is_memory() || type.memory != nullptr || (type.is_array() && consumption_.consumed(v));
    });
  }

  static Op normal(const Op& op) {
    Op result = op;
    const auto before = [](const Operand& a, const Operand& b) {
      if (a.is_value() != b.is_value()) return a.is_value();
      return a.is_value() ? a.value() < b.value() : a.constant().bits() < b.constant().bits();
    };
    if (Binary* binary = std::get_if<Binary>(&result); binary != nullptr && is_commutative(binary->op)) {
      if (before(binary->y, binary->x)) std::swap(binary->x, binary->y);
    }
    if (Compare* compare = std::get_if<Compare>(&result)) {
      const bool symmetric = compare->op == CompareOp::eq || compare->op == CompareOp::ne;
      if (symmetric && before(compare->y, compare->x)) std::swap(compare->x, compare->y);
    }
    return result;
  }

  static std::string attributes_key(const Stm& stm) {
    std::string key;
    for (const Attribute& attribute : stm.attributes) {
      key += "#" + attribute.name;
      for (const std::string& argument : attribute.arguments) key += "," + argument;
    }
    return key;
  }

  Function& function_;
  Consumption consumption_;
  std::unordered_map<std::string, std::vector<Value>> available_;
  Substitution replaced_;
  bool changed_ = false;
};

Result<Change> cse(Module& module, PassContext&) {
  return change_functions(module, [&](Function& function) { return Eliminator(function, module).run(); });
}

}  // namespace

PassInfo cse_pass() { return {.name = "cse", .summary = "use again what was computed before", .run = cse}; }

}  // namespace apl
