#include "frontend/types/exhaustive.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace apl::frontend {

namespace {

// Of rows that are looked at; a search that needs more finds nothing missing.
constexpr int kMaxSteps = 200000;

// A pattern without names: what it takes apart. An empty key takes everything.
struct Shape {
  std::string key;
  std::vector<Shape> parts;
};
using Row = std::vector<Shape>;

// How values of a type can be made: by all of these keys, or by more than can be listed.
struct Signature {
  struct Form {
    std::string key;
    std::vector<Ty> parts;
  };
  std::vector<Form> forms;
  bool complete = true;
};

class Covering {
 public:
  explicit Covering(const TypeStore& store) : store_(store) {}

  Shape shape(const Pattern& pattern, Ty type) const;
  // A row of values that no row matches.
  std::optional<std::vector<std::string>> missing(const std::vector<Row>& rows, std::vector<Ty> types);

 private:
  Signature signature(Ty type, const std::vector<Row>& rows) const;
  std::string text(const Signature::Form& form, Ty type, const std::vector<std::string>& parts) const;

  const TypeStore& store_;
  int steps_ = 0;
};

Shape Covering::shape(const Pattern& pattern, Ty type) const {
  if (const auto* typed = std::get_if<PatternTyped>(&pattern.node)) return shape(*typed->pattern, type);
  if (const auto* literal = std::get_if<PatternLiteral>(&pattern.node)) return {to_text(*literal->value), {}};
  Shape result;
  if (const auto* constructor = std::get_if<PatternConstructor>(&pattern.node)) {
    result.key = "#" + constructor->name;
    const auto* sum = store_.get_if<TySum>(type);
    if (sum == nullptr) return {};
    for (const auto& [name, payload] : sum->constructors)
      for (std::size_t k = 0; name == constructor->name && k < payload.size(); ++k)
        result.parts.push_back(shape(*constructor->payload[k], payload[k]));
    return result;
  }
  const auto* record = store_.get_if<TyRecord>(type);
  if (record == nullptr) return {};
  const auto* tuple = std::get_if<PatternTuple>(&pattern.node);
  const auto* fields = std::get_if<PatternRecord>(&pattern.node);
  if (!tuple && !fields) return {};
  result.key = "()";
  for (std::size_t k = 0; k < record->fields.size(); ++k) {
    const auto& [name, part] = record->fields[k];
    if (tuple) {
      result.parts.push_back(shape(*tuple->elements[k], part));
      continue;
    }
    const auto found = std::ranges::find(fields->fields, name, [](const auto& f) { return f.name; });
    result.parts.push_back(found == fields->fields.end() ? Shape{} : shape(*found->value, part));
  }
  return result;
}

Signature Covering::signature(Ty type, const std::vector<Row>& rows) const {
  Signature result;
  if (const auto* sum = store_.get_if<TySum>(type)) {
    for (const auto& [name, payload] : sum->constructors) result.forms.push_back({"#" + name, payload});
  } else if (const auto* record = store_.get_if<TyRecord>(type)) {
    Signature::Form form{"()", {}};
    for (const auto& [name, part] : record->fields) form.parts.push_back(part);
    result.forms.push_back(std::move(form));
  } else if (store_.as_scalar(type) == ScalarType::boolean) {
    result.forms = {{"true", {}}, {"false", {}}};
  } else {
    // Literals: there is always one more.
    result.complete = false;
    std::unordered_set<std::string_view> seen;
    for (const Row& row : rows)
      if (!row[0].key.empty() && seen.insert(row[0].key).second) result.forms.push_back({row[0].key, {}});
  }
  return result;
}

std::string Covering::text(const Signature::Form& form, Ty type, const std::vector<std::string>& parts) const {
  const auto* record = store_.get_if<TyRecord>(type);
  std::string result = record ? "" : form.key;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (record) {
      result += k > 0 ? ", " : "";
      if (!store_.is_tuple(*record)) result += record->fields[k].first + " = ";
      result += parts[k];
    } else {
      const bool compound = parts[k][0] == '#' && parts[k].find(' ') != std::string::npos;
      result += compound ? " (" + parts[k] + ")" : " " + parts[k];
    }
  }
  if (record) return store_.is_tuple(*record) ? "(" + result + ")" : "{" + result + "}";
  return result;
}

// The first number that none of the literals is.
std::string other_number(const std::vector<Signature::Form>& literals) {
  std::unordered_set<std::string_view> numbers;  // without the suffixes of types
  for (const Signature::Form& literal : literals) {
    const std::string_view key = literal.key;
    const std::size_t digits = std::min(key.find_first_not_of("0123456789"), key.size());
    if (digits == key.size() || std::isalpha(key[digits]) != 0) numbers.insert(key.substr(0, digits));
  }
  for (std::size_t number = 0;; ++number)
    if (std::string text = std::to_string(number); !numbers.contains(text)) return text;
}

std::optional<std::vector<std::string>> Covering::missing(const std::vector<Row>& rows, std::vector<Ty> types) {
  if (rows.empty()) return std::vector<std::string>(types.size(), "_");
  if (types.empty() || ++steps_ > kMaxSteps) return std::nullopt;
  const Ty first = types.front();
  const std::vector<Ty> rest(types.begin() + 1, types.end());
  const Signature signature = this->signature(first, rows);
  std::vector<Row> open;  // rows that take every first value
  std::vector<std::size_t> open_rows;
  std::unordered_map<std::string_view, std::vector<std::size_t>> of_form;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const Row& row = rows[k];
    if (!row[0].key.empty()) {
      of_form[row[0].key].push_back(k);
      continue;
    }
    open.emplace_back(row.begin() + 1, row.end());
    open_rows.push_back(k);
  }
  const bool any = !of_form.empty();
  const auto absent =
      std::ranges::find_if(signature.forms, [&](const auto& form) { return !of_form.contains(form.key); });
  if (!any || !signature.complete || absent != signature.forms.end()) {
    if (auto found = missing(open, rest)) {
      std::string value = "_";
      if (any && signature.complete)
        value = text(*absent, first, std::vector<std::string>(absent->parts.size(), "_"));
      else if (any)
        value = other_number(signature.forms);
      found->insert(found->begin(), std::move(value));
      return found;
    }
    if (!any) return std::nullopt;
  }
  for (const Signature::Form& form : signature.forms) {
    std::vector<std::size_t> matching;
    std::ranges::merge(of_form[form.key], open_rows, std::back_inserter(matching));
    std::vector<Row> specialised;
    for (const std::size_t k : matching) {
      const Row& row = rows[k];
      Row next = row[0].key.empty() ? Row(form.parts.size()) : row[0].parts;
      next.insert(next.end(), row.begin() + 1, row.end());
      specialised.push_back(std::move(next));
    }
    std::vector<Ty> inner = form.parts;
    inner.insert(inner.end(), rest.begin(), rest.end());
    auto found = missing(specialised, inner);
    if (!found) continue;
    const auto end = found->begin() + static_cast<std::ptrdiff_t>(form.parts.size());
    std::vector<std::string> result = {text(form, first, {found->begin(), end})};
    result.insert(result.end(), end, found->end());
    return result;
  }
  return std::nullopt;
}

// Whether a row matches a value that no row before it does: the values of its form that those before leave.
bool matches_more(const TypeStore& store, const std::vector<Row>& before, const Shape& shape, Ty type);

// The rows restricted to what a shape takes, with its open places as columns.
void restrict_to(const TypeStore& store, const Shape& wanted, Ty type, std::vector<Row>& rows, std::vector<Ty>& types,
                 std::size_t column) {
  if (wanted.key.empty()) {
    types.push_back(type);
    return;
  }
  std::vector<Ty> parts;
  if (const auto* sum = store.get_if<TySum>(type)) {
    for (const auto& [name, payload] : sum->constructors)
      if ("#" + name == wanted.key) parts = payload;
  } else if (const auto* record = store.get_if<TyRecord>(type)) {
    for (const auto& [name, part] : record->fields) parts.push_back(part);
  }
  std::vector<Row> kept;
  for (Row& row : rows) {
    const Shape here = row[column];
    if (!here.key.empty() && here.key != wanted.key) continue;
    std::vector<Shape> inner = here.key.empty() ? std::vector<Shape>(parts.size()) : here.parts;
    row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
    row.insert(row.begin() + static_cast<std::ptrdiff_t>(column), inner.begin(), inner.end());
    kept.push_back(std::move(row));
  }
  rows = std::move(kept);
  for (std::size_t k = 0; k < parts.size() && k < wanted.parts.size(); ++k)
    restrict_to(store, wanted.parts[k], parts[k], rows, types, types.size());
}

bool matches_more(const TypeStore& store, const std::vector<Row>& before, const Shape& shape, Ty type) {
  std::vector<Row> rows = before;
  std::vector<Ty> types;
  restrict_to(store, shape, type, rows, types, 0);
  return Covering(store).missing(rows, types).has_value();
}

// The rows so far, found by the constructor or literal that they have in a place of the value, in its tuples and
// records.
class RowIndex {
 public:
  // Rows that may match values of the shape: those of the place where the fewest are left.
  std::vector<Row> alike(const Shape& shape) const {
    const std::map<std::string, std::string> keys = keys_of(shape);
    std::optional<std::vector<std::size_t>> fewest;
    for (const auto& [place, key] : keys) {
      const auto here = places_.find(place);
      if (here == places_.end()) continue;
      const auto same = here->second.with_key.find(key);
      std::vector<std::size_t> left = here->second.open;
      if (same != here->second.with_key.end()) left.insert(left.end(), same->second.begin(), same->second.end());
      if (!fewest || left.size() < fewest->size()) fewest = std::move(left);
    }
    if (!fewest) return rows_;
    std::ranges::sort(*fewest);
    std::vector<Row> result;
    for (const std::size_t k : *fewest) result.push_back(rows_[k]);
    return result;
  }

  void add(Shape shape) {
    const std::map<std::string, std::string> keys = keys_of(shape);
    for (const auto& [place, key] : keys) {
      const auto [here, is_new] = places_.try_emplace(place);
      for (std::size_t k = 0; k < rows_.size() && is_new; ++k) here->second.open.push_back(k);
      here->second.with_key[key].push_back(rows_.size());
    }
    for (auto& [place, here] : places_)
      if (!keys.contains(place)) here.open.push_back(rows_.size());
    rows_.push_back({std::move(shape)});
  }

  const std::vector<Row>& rows() const { return rows_; }

 private:
  static std::map<std::string, std::string> keys_of(const Shape& shape, const std::string& place = {}) {
    if (shape.key.empty()) return {};
    if (shape.key != "()") return {{place, shape.key}};
    std::map<std::string, std::string> keys;
    for (std::size_t k = 0; k < shape.parts.size(); ++k)
      keys.merge(keys_of(shape.parts[k], place + "." + std::to_string(k)));
    return keys;
  }

  struct Place {
    std::unordered_map<std::string, std::vector<std::size_t>> with_key;
    std::vector<std::size_t> open;  // rows that take anything there
  };
  std::vector<Row> rows_;
  std::map<std::string, Place> places_;
};

}  // namespace

Coverage cover(const TypeStore& store, const std::vector<const Pattern*>& patterns, Ty type) {
  Coverage result;
  Covering covering(store);
  RowIndex rows;
  for (const Pattern* pattern : patterns) {
    Shape shape = covering.shape(*pattern, type);
    if (!rows.rows().empty() && !matches_more(store, rows.alike(shape), shape, type))
      result.redundant.push_back(pattern);
    rows.add(std::move(shape));
  }
  if (const auto missing = covering.missing(rows.rows(), {type})) result.missing = missing->front();
  return result;
}

}  // namespace apl::frontend
