#include "tests/oracle/modules.h"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace apl::oracle {
namespace {

std::size_t neutral_at(Form form) { return form == Form::reduce_by_index ? 1 : 0; }

void collect(const Tree& tree, std::map<std::string, Tree>& modules) {
  if (!tree) return;
  if (!tree->module.name.empty()) modules.emplace(tree->module.name, tree);
  for (const Tree& kid : tree->kids) collect(kid, modules);
  for (const Lambda& lambda : tree->lambdas) collect(lambda.body, modules);
}

// The module type and the parametric modules.
std::string family_definitions(const std::string& family, const std::string& symbol) {
  std::string text =
      "module type monoid_@ = { type t val neutral: t val ($): t -> t -> t }\n"
      "module turned_@ (M: monoid_@): monoid_@ with t = M.t =\n"
      "  { type t = M.t def neutral: t = M.neutral def ($) (a: t) (b: t): t = b M.$ a }\n"
      "module folds_@ (M: monoid_@) = {\n"
      "  open M\n"
      "  def total [n] (xs: [n]t): t = reduce ($) neutral xs\n"
      "  def sums [n] (xs: [n]M.t): [n]M.t = scan (M.$) M.neutral xs\n"
      "}\n";
  for (const auto& [mark, by] : {std::pair{'@', family}, std::pair{'$', symbol}})
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + by.size()))
      text.replace(at, 1, by);
  return text;
}

std::string definition(const Node& node) {
  const ModuleUse& module = node.module;
  const Lambda& op = node.lambdas.front();
  const std::string own =
      fmt::format("{{ type t = {} def neutral: t = {} def ({}) {} {}: t = {} }}", type_text(op.body->type),
                  source(node.kids[neutral_at(node.form)]), module.symbol, pattern_text(op.params[0], true),
                  pattern_text(op.params[1], true), source(op.body));
  switch (module.how) {
    case ModuleUse::How::own: return fmt::format("module {} = {}\n", module.name, own);
    case ModuleUse::How::turned:
      return fmt::format("module {0} = turned_{1} (turned_{1} {2})\n", module.name, module.family, own);
    default: return fmt::format("module {} = folds_{} {}\n", module.name, module.family, own);
  }
}

}  // namespace

std::string text_with_module(const Node& node, std::vector<std::string> kids) {
  const ModuleUse& module = node.module;
  const std::string op = fmt::format("({}.{})", module.name, module.symbol);
  kids[neutral_at(node.form)] = module.name + ".neutral";
  const bool folds = module.how == ModuleUse::How::folds;
  switch (node.form) {
    case Form::reduce:
      if (folds && node.name.empty()) return fmt::format("({}.total {})", module.name, kids[1]);
      return fmt::format("({} {} {} {})", node.name.empty() ? "reduce" : node.name, op, kids[0], kids[1]);
    case Form::scan:
      if (folds) return fmt::format("({}.sums {})", module.name, kids[1]);
      return fmt::format("(scan {} {} {})", op, kids[0], kids[1]);
    case Form::exscan: return fmt::format("(exscan {} {} {})", op, kids[0], kids[1]);
    case Form::histogram: return fmt::format("(hist {} {} {} {} {})", op, kids[0], kids[1], kids[2], kids[3]);
    default: return fmt::format("(reduce_by_index {} {} {} {} {})", kids[0], op, kids[1], kids[2], kids[3]);
  }
}

std::string module_definitions(const Tree& tree) {
  std::map<std::string, Tree> modules;
  collect(tree, modules);
  if (modules.empty()) return {};
  const ModuleUse& first = modules.begin()->second->module;
  std::string text = family_definitions(first.family, first.symbol);
  for (const auto& [name, node] : modules) text += definition(*node);
  return text;
}

}  // namespace apl::oracle
