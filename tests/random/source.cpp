#include "tests/random/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace apl::random_tests {

namespace {

std::string in_product(const Size& size) { return size.how == '+' ? "(" + size.text + ")" : size.text; }

void append(std::string& text, const Expr& expr) {
  for (std::size_t k = 0; k < expr->texts.size(); ++k) {
    text += expr->texts[k];
    if (k < expr->parts.size()) append(text, expr->parts[k]);
  }
}

std::size_t weight(const Expr& expr) {
  std::size_t sum = 1;
  for (const Expr& part : expr->parts) sum += weight(part);
  return sum;
}

// `visit` sees every part with the function that puts another in its place.
using Rebuild = std::function<Expr(Expr)>;
void for_each_part(const Expr& expr, const Rebuild& rebuild,
                   const std::function<void(const Expr&, const Rebuild&)>& visit) {
  visit(expr, rebuild);
  for (std::size_t k = 0; k < expr->parts.size(); ++k)
    for_each_part(
        expr->parts[k],
        [&, k](Expr part) {
          Node node = *expr;
          node.parts[k] = std::move(part);
          return rebuild(std::make_shared<const Node>(std::move(node)));
        },
        visit);
}

void collect(const Expr& expr, const Type& type, std::vector<Expr>& found) {
  for (const Expr& part : expr->parts) {
    if (part->is_value && part->type == type) found.push_back(part);
    collect(part, type, found);
  }
}

}  // namespace

Size Size::sum(const Size& a, const Size& b) {
  return {a.text + " + " + b.text, a.least + b.least, a.most + b.most, '+', {a, b}};
}

Size Size::product(const Size& a, const Size& b) {
  return {in_product(a) + " * " + in_product(b), a.least * b.least, a.most * b.most, '*', {a, b}};
}

bool Type::has_float() const {
  if (fields.empty()) return is_float(scalar);
  return std::any_of(fields.begin(), fields.end(), [](const Type& field) { return field.has_float(); });
}

bool Type::has_half() const {
  if (fields.empty()) return scalar == ScalarType::f16;
  return std::any_of(fields.begin(), fields.end(), [](const Type& field) { return field.has_half(); });
}

bool Type::has_array() const {
  return is_array() || std::any_of(fields.begin(), fields.end(), [](const Type& field) { return field.has_array(); });
}

Type Type::row() const {
  Type result = *this;
  result.dims.erase(result.dims.begin());
  return result;
}

Type Type::array_of(const Size& size) const {
  Type result = *this;
  result.dims.insert(result.dims.begin(), size);
  return result;
}

std::string Type::text() const {
  std::string result;
  for (const Size& dim : dims) result += "[" + dim.text + "]";
  if (fields.empty()) return result + std::string(apl::to_text(scalar));
  result += "(";
  for (std::size_t k = 0; k < fields.size(); ++k) result += (k == 0 ? "" : ", ") + fields[k].text();
  return result + ")";
}

Expr make(const Type& type, double magnitude, const std::vector<Piece>& pieces) {
  Node node{type, true, type.has_float() ? magnitude : 0, {""}, {}};
  for (const Piece& piece : pieces) {
    if (const auto* text = std::get_if<std::string>(&piece)) {
      node.texts.back() += *text;
    } else {
      node.parts.push_back(std::get<Expr>(piece));
      node.texts.emplace_back();
    }
  }
  return std::make_shared<const Node>(std::move(node));
}

Expr make_text(const std::vector<Piece>& pieces) {
  Node node = *make({}, 0, pieces);
  node.is_value = false;
  return std::make_shared<const Node>(std::move(node));
}

std::string to_text(const Expr& expr) {
  std::string text;
  append(text, expr);
  return text;
}

std::string to_text(const std::vector<Expr>& definitions) {
  std::string text;
  for (const Expr& definition : definitions) text += to_text(definition) + "\n";
  return text;
}

Expr simplest(const Type& type) {
  if (type.is_array())
    return make(type, 0, {"(replicate " + type.dims.front().in_expression() + " ", simplest(type.row()), ")"});
  if (type.is_tuple()) {
    std::vector<Piece> pieces{"("};
    for (const Type& field : type.fields) {
      if (pieces.size() > 1) pieces.emplace_back(", ");
      pieces.emplace_back(simplest(field));
    }
    pieces.emplace_back(")");
    return make(type, 0, pieces);
  }
  if (type.scalar == ScalarType::boolean) return make(type, 0, {"false"});
  return make(type, 0, {"0" + std::string(apl::to_text(type.scalar))});
}

std::vector<std::vector<Expr>> simpler(const std::vector<Expr>& definitions) {
  std::vector<std::pair<std::size_t, std::vector<Expr>>> found;  // with what is lost
  const auto with = [&](std::size_t k, std::size_t lost, Expr changed) {
    std::vector<Expr> result = definitions;
    result[k] = std::move(changed);
    found.emplace_back(lost, std::move(result));
  };
  for (std::size_t k = 0; k < definitions.size(); ++k) {
    if (k + 1 < definitions.size()) {  // the last one is the entry
      std::vector<Expr> without = definitions;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(k));
      found.emplace_back(weight(definitions[k]), std::move(without));
    }
    for_each_part(
        definitions[k], [](Expr whole) { return whole; },
        [&](const Expr& part, const Rebuild& rebuild) {
          if (!part->is_value) return;
          const std::size_t now = weight(part);
          const Expr least = simplest(part->type);
          const std::string text = to_text(part);
          // Of equal weight, a constant is simpler than a name.
          if (weight(least) < now || (weight(least) == now && to_text(least) != text))
            with(k, now - weight(least), rebuild(least));
          std::vector<Expr> inner;
          collect(part, part->type, inner);
          for (const Expr& instead : inner) with(k, now - weight(instead), rebuild(instead));
        });
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::vector<Expr>> result;
  result.reserve(found.size());
  for (auto& [lost, candidate] : found) result.push_back(std::move(candidate));
  return result;
}

}  // namespace apl::random_tests
