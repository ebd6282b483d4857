// Trees as Futhark source.
#include "tests/oracle/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "tests/oracle/modules.h"

namespace apl::oracle {

std::string pattern_text(const Pattern& pattern, bool with_type) {
  std::string text = pattern.name;
  if (!pattern.parts.empty()) {
    text = "(";
    for (const Pattern& part : pattern.parts) text += (text.size() > 1 ? ", " : "") + pattern_text(part, false);
    text += ")";
  }
  return with_type ? fmt::format("({}: {})", text, type_text(pattern.type)) : text;
}

namespace {

std::string lambda_text(const Lambda& lambda) {
  std::string text = "(\\";
  for (const Pattern& param : lambda.params) text += pattern_text(param, false) + " ";
  return text + "-> " + source(lambda.body) + ")";
}

std::string unary_text(const Node& node, const std::string& x) {
  const std::string type(to_text(node.kids[0]->type.scalar));
  switch (node.unary_op) {
    case UnaryOp::neg: return fmt::format("({}.neg {})", type, x);
    case UnaryOp::complement:
    case UnaryOp::negate_bool: return fmt::format("(!{})", x);
    case UnaryOp::abs: return fmt::format("({}.abs {})", type, x);
    case UnaryOp::sgn: return fmt::format("({}.sgn {})", type, x);
    case UnaryOp::sqrt: return fmt::format("({}.sqrt {})", type, x);
    case UnaryOp::floor: return fmt::format("({}.floor {})", type, x);
    case UnaryOp::ceil: return fmt::format("({}.ceil {})", type, x);
    case UnaryOp::round: return fmt::format("({}.round {})", type, x);
    case UnaryOp::trunc: return fmt::format("({}.trunc {})", type, x);
    case UnaryOp::isnan: return fmt::format("({}.isnan {})", type, x);
    case UnaryOp::isinf: return fmt::format("({}.isinf {})", type, x);
    case UnaryOp::popc: return fmt::format("({}.popc {})", type, x);
    case UnaryOp::clz: return fmt::format("({}.clz {})", type, x);
    case UnaryOp::ctz: return fmt::format("({}.ctz {})", type, x);
  }
  return {};
}

std::string binary_text(const Node& node, const std::string& x, const std::string& y) {
  const std::string type(to_text(node.kids[0]->type.scalar));
  switch (node.binary_op) {
    case BinaryOp::min: return fmt::format("({}.min {} {})", type, x, y);
    case BinaryOp::max: return fmt::format("({}.max {} {})", type, x, y);
    case BinaryOp::mul_hi: return fmt::format("({}.mul_hi {} {})", type, x, y);
    case BinaryOp::copysign: return fmt::format("({}.copysign {} {})", type, x, y);
    default: break;
  }
  static constexpr const char* kSymbols[] = {"+",  "-",   "*", "/", "%", "//", "%%", "**", "&", "|",  "^",  "<<",
                                             ">>", ">>>", "",  "",  "",  "",   "==", "!=", "<", "<=", "&&", "||"};
  return fmt::format("({} {} {})", x, kSymbols[static_cast<std::size_t>(node.binary_op)], y);
}

std::string tuple_text(const Node& node, const std::vector<std::string>& kids) {
  std::string text;
  for (std::size_t k = 0; k < kids.size(); ++k) {
    text += k == 0 ? "" : ", ";
    if (!node.type.names.empty()) text += node.type.names[k] + " = ";
    text += kids[k];
  }
  return node.type.names.empty() ? "(" + text + ")" : "{" + text + "}";
}

std::string joined(const std::vector<std::string>& texts, std::size_t from, std::size_t to, const char* between) {
  std::string text;
  for (std::size_t k = from; k < to; ++k) text += (k == from ? "" : between) + texts[k];
  return text;
}

std::string sizes_text(const std::vector<std::string>& sizes) {
  std::string text;
  for (const std::string& size : sizes) text += "[" + size + "] ";
  return text;
}

std::string loop_text(const Node& node, const std::vector<std::string>& kids) {
  std::string state = pattern_text(node.pattern, false);
  if (node.annotated) {
    const bool consumed = node.lambdas.back().body->form == Form::update;
    state = fmt::format("({}: {}{})", state, consumed ? "*" : "", type_text(node.pattern.type));
  }
  std::string text = fmt::format("(loop {} = {} ", state, kids[0]);
  switch (node.form) {
    case Form::for_loop: text += fmt::format("for {} < {} do ", node.name, kids[1]); break;
    case Form::for_in_loop: text += fmt::format("for {} in {} do ", node.name, kids[1]); break;
    default: text += fmt::format("while {} do ", source(node.lambdas[0].body)); break;
  }
  return text + source(node.lambdas.back().body) + ")";
}

// A call of a function with that name: lambdas first, then the kids, but for some.
std::string call_text(const std::string& name, const Node& node, const std::vector<std::string>& kids) {
  std::string text = "(" + name;
  for (const Lambda& lambda : node.lambdas) text += " " + lambda_text(lambda);
  for (const std::string& kid : kids) text += " " + kid;
  return text + ")";
}

}  // namespace

Type scalar_type(ScalarType scalar) { return {scalar, {}, {}, {}}; }
Type tuple_type(std::vector<Type> fields) { return {ScalarType::unit, std::move(fields), {}, {}}; }

Type row_of(Type type) {
  type.dims.erase(type.dims.begin());
  return type;
}

Type array_of(const std::string& dim, Type row) {
  row.dims.insert(row.dims.begin(), dim);
  return row;
}

std::string type_text(const Type& type) {
  std::string text;
  for (const std::string& dim : type.dims) text += "[" + dim + "]";
  if (type.fields.empty()) return text + std::string(to_text(type.scalar));
  text += type.names.empty() ? "(" : "{";
  for (std::size_t k = 0; k < type.fields.size(); ++k) {
    text += k == 0 ? "" : ", ";
    if (!type.names.empty()) text += type.names[k] + ": ";
    text += type_text(type.fields[k]);
  }
  return text + (type.names.empty() ? ")" : "}");
}

std::string source(const Tree& tree) {
  const Node& node = *tree;
  std::vector<std::string> kids;
  for (const Tree& kid : node.kids) kids.push_back(kid ? source(kid) : "");
  if (!node.module.name.empty()) return text_with_module(node, std::move(kids));
  switch (node.form) {
    case Form::number: return source_text(node.literal);
    case Form::variable: return node.name;
    case Form::tuple: return tuple_text(node, kids);
    case Form::field: return fmt::format("{}.{}", kids[0], node.name);
    case Form::with_field: return fmt::format("({} with {} = {})", kids[0], node.name, kids[1]);
    case Form::unary: return unary_text(node, kids[0]);
    case Form::binary: return binary_text(node, kids[0], kids[1]);
    case Form::convert:
      return fmt::format("({}.{} {})", to_text(node.type.scalar), to_text(node.kids[0]->type.scalar), kids[0]);
    case Form::from_bits: return fmt::format("({}.from_bits {})", to_text(node.type.scalar), kids[0]);
    case Form::branch: return fmt::format("(if {} then {} else {})", kids[0], kids[1], kids[2]);
    case Form::let_in:
      return fmt::format("(let {}{} = {}\n  in {})", sizes_text(node.sizes),
                         pattern_text(node.pattern, !node.sizes.empty()), kids[0], kids[1]);
    case Form::assertion: return fmt::format("(assert {} {})", kids[0], kids[1]);
    case Form::map: return call_text(kids.size() == 1 ? "map" : fmt::format("map{}", kids.size()), node, kids);
    case Form::reduce:
      if (node.name.empty() || node.name == "reduce_comm")
        return call_text(node.name.empty() ? "reduce" : node.name, node, kids);
      return fmt::format("({} {})", node.name, kids[0]);
    case Form::scan: return call_text("scan", node, kids);
    case Form::exscan: return call_text("exscan", node, kids);
    case Form::filter: return call_text("filter", node, kids);
    case Form::partition: return call_text("partition", node, kids);
    case Form::histogram: return call_text("hist", node, kids);
    case Form::reduce_by_index:
      return fmt::format("(reduce_by_index {} {} {} {} {})", kids[0], lambda_text(node.lambdas[0]), kids[1], kids[2],
                         kids[3]);
    case Form::scatter: return call_text("scatter", node, kids);
    case Form::spread: return call_text("spread", node, kids);
    case Form::for_loop:
    case Form::for_in_loop:
    case Form::while_loop: return loop_text(node, kids);
    case Form::index: return fmt::format("{}[{}]", kids[0], joined(kids, 1, kids.size(), ", "));
    case Form::update:
      return fmt::format("({} with [{}] = {})", kids[0], joined(kids, 1, kids.size() - 1, ", "), kids.back());
    case Form::slice: return fmt::format("{}[{}]", kids[0], joined(kids, 1, node.kids[3] ? 4 : 3, ":"));
    case Form::slice_update:
      return fmt::format("({} with [{}] = {})", kids[0], joined(kids, 1, node.kids[3] ? 4 : 3, ":"), kids[4]);
    case Form::column: return fmt::format("{}[:, {}]", kids[0], kids[1]);
    case Form::iota: return call_text("iota", node, kids);
    case Form::range:
      return kids.size() == 2 ? fmt::format("({}..<{})", kids[0], kids[1])
                              : fmt::format("({}..{}..<{})", kids[0], kids[2], kids[1]);
    case Form::replicate: return call_text("replicate", node, kids);
    case Form::tabulate: return fmt::format("(tabulate {} {})", kids[0], lambda_text(node.lambdas[0]));
    case Form::tabulate_2d:
      return fmt::format("(tabulate_2d {} {} {})", kids[0], kids[1], lambda_text(node.lambdas[0]));
    case Form::concat: return fmt::format("({} ++ {})", kids[0], kids[1]);
    case Form::rotate: return call_text("rotate", node, kids);
    case Form::reverse: return call_text("reverse", node, kids);
    case Form::transpose: return call_text("transpose", node, kids);
    case Form::flatten: return call_text("flatten", node, kids);
    case Form::unflatten: {
      Type flat = row_of(row_of(node.type));
      flat = array_of(fmt::format("{} * {}", node.type.dims[0], node.type.dims[1]), flat);
      return fmt::format("(unflatten ({} :> {}))", kids[0], type_text(flat));
    }
    case Form::take: return call_text("take", node, kids);
    case Form::drop: return call_text("drop", node, kids);
    case Form::head: return call_text("head", node, kids);
    case Form::last: return call_text("last", node, kids);
    case Form::length: return call_text("length", node, kids);
    case Form::copy: return call_text("copy", node, kids);
    case Form::indices: return call_text("indices", node, kids);
    case Form::zip: return call_text(kids.size() == 2 ? "zip" : fmt::format("zip{}", kids.size()), node, kids);
    case Form::unzip:
      return call_text(node.type.fields.size() == 2 ? "unzip" : fmt::format("unzip{}", node.type.fields.size()), node,
                       kids);
    case Form::coerce: return fmt::format("({} :> {})", kids[0], type_text(node.type));
  }
  return {};
}

void count_forms(const Tree& tree, std::map<Form, std::uint64_t>& counts) {
  if (!tree) return;
  ++counts[tree->form];
  for (const Tree& kid : tree->kids) count_forms(kid, counts);
  for (const Lambda& lambda : tree->lambdas) count_forms(lambda.body, counts);
}

std::string source(const Program& program) {
  std::string text = module_definitions(program.body) + "entry " + program.name;
  for (const std::string& size : program.sizes) text += " [" + size + "]";
  for (const Pattern& param : program.params) text += " " + pattern_text(param, true);
  return text + " =\n  " + source(program.body) + "\n";
}

namespace {

std::size_t weight(const Tree& tree) {
  if (!tree) return 0;
  std::size_t sum = 1;
  for (const Tree& kid : tree->kids) sum += weight(kid);
  for (const Lambda& lambda : tree->lambdas) sum += weight(lambda.body);
  return sum;
}

using Rebuild = std::function<Tree(Tree)>;
void for_each_part(const Tree& tree, const Rebuild& rebuild,
                   const std::function<void(const Tree&, const Rebuild&)>& visit) {
  if (!tree) return;
  visit(tree, rebuild);
  const auto with = [&](const std::function<void(Node&)>& change) {
    Node node = *tree;
    change(node);
    return rebuild(std::make_shared<Node>(std::move(node)));
  };
  for (std::size_t k = 0; k < tree->kids.size(); ++k)
    for_each_part(
        tree->kids[k], [&, k](const Tree& part) { return with([&](Node& node) { node.kids[k] = part; }); }, visit);
  for (std::size_t k = 0; k < tree->lambdas.size(); ++k)
    for_each_part(
        tree->lambdas[k].body,
        [&, k](const Tree& part) { return with([&](Node& node) { node.lambdas[k].body = part; }); }, visit);
}

bool has_known_sizes(const Type& type) {
  return std::find(type.dims.begin(), type.dims.end(), "?") == type.dims.end() &&
         std::all_of(type.fields.begin(), type.fields.end(), has_known_sizes);
}

}  // namespace

Tree simplest(const Type& type) {
  Node node;
  node.type = type;
  if (type.is_array()) {
    const std::string& dim = type.dims.front();
    const bool is_name = dim.find_first_not_of("0123456789") != std::string::npos;
    Node size;
    size.form = Form::variable;
    size.type = scalar_type(ScalarType::i64);
    size.name = dim;
    if (!is_name || dim == "?")
      size.form = Form::number, size.literal = integer(ScalarType::i64, dim == "?" ? 1 : std::stoll(dim));
    node.form = Form::replicate;
    node.kids = {std::make_shared<Node>(std::move(size)), simplest(row_of(type))};
  } else if (type.is_tuple()) {
    node.form = Form::tuple;
    for (const Type& part : type.fields) node.kids.push_back(simplest(part));
  } else {
    node.literal = convert(integer(ScalarType::i32, 0), type.scalar);
  }
  return std::make_shared<Node>(std::move(node));
}

std::vector<Tree> simpler(const Tree& tree) {
  std::vector<std::pair<std::size_t, Tree>> found;  // with what is lost
  for_each_part(
      tree, [](Tree whole) { return whole; },
      [&](const Tree& part, const Rebuild& rebuild) {
        const std::size_t now = weight(part);
        const auto instead = [&](const Tree& other) {
          if (weight(other) < now) found.emplace_back(now - weight(other), rebuild(other));
        };
        if (part->form != Form::number && !part->type.is_tuple()) instead(simplest(part->type));
        for_each_part(
            part, [](Tree whole) { return whole; },
            [&](const Tree& inner, const Rebuild&) {
              if (inner != part &&
                  (inner->type == part->type ||
                   (!has_known_sizes(part->type) && inner->type.dims.size() == part->type.dims.size() &&
                    inner->type.fields == part->type.fields && inner->type.scalar == part->type.scalar)))
                instead(inner);
            });
      });
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Tree> result;
  for (auto& [lost, candidate] : found) result.push_back(std::move(candidate));
  return result;
}

}  // namespace apl::oracle
