// Types and sizes as text, for messages and for entries.
#include "frontend/types/types.h"

namespace apl::frontend {

namespace {

// Types shared by construction print as trees; a text longer than this helps nobody.
constexpr std::size_t kMaxTypeText = 600;
constexpr int kMaxSizeDepth = 6;

}  // namespace

std::string TypeStore::to_text(Size size) const { return to_text(size, 0); }

std::string TypeStore::to_text(Size size, int depth) const {
  const SizeNode& node = this->node(size);
  if (std::holds_alternative<SizeVar>(node)) return "";
  if (const auto* constant = std::get_if<SizeConst>(&node)) return std::to_string(constant->value);
  if (const auto* name = std::get_if<SizeName>(&node)) return binders_[name->binder].name;
  const auto& op = std::get<SizeOp>(node);
  if (depth > kMaxSizeDepth) return "...";
  auto part = [&](Size s) { return get_if<SizeOp>(s) ? "(" + to_text(s, depth + 1) + ")" : to_text(s, depth + 1); };
  return part(op.x) + " " + op.op + " " + part(op.y);
}

std::string TypeStore::to_text(Ty type) const {
  struct Printer {
    const TypeStore& store;
    std::string text;

    bool full() const { return text.size() > kMaxTypeText; }
    void put(Ty t, bool argument) {
      if (full()) return;
      const TyNode& node = store.node(t);
      if (std::holds_alternative<TyVar>(node)) {
        const ScalarSet set = std::get<TyVar>(node).constraint.scalars;
        text += set == 0 ? "_" : (set & ~kFloats) == 0 ? "float" : (set & ~kIntegers) == 0 ? "integer" : "number";
      } else if (const auto* param = std::get_if<TyParam>(&node)) {
        text += store.params_[param->param].name;
      } else if (const auto* scalar = std::get_if<TyScalar>(&node)) {
        text += apl::to_text(scalar->type);
      } else if (const auto* array = std::get_if<TyArray>(&node)) {
        text += "[" + store.to_text(array->size) + "]";
        put(array->element, true);
      } else if (const auto* record = std::get_if<TyRecord>(&node)) {
        put(*record);
      } else if (const auto* arrow = std::get_if<TyArrow>(&node)) {
        put(*arrow, argument);
      } else {
        text += "?";
      }
    }
    void put(const TyRecord& record) {
      const bool tuple = store.is_tuple(record);
      text += tuple ? "(" : "{";
      for (std::size_t k = 0; k < record.fields.size() && !full(); ++k) {
        if (k > 0) text += ", ";
        if (!tuple) text += record.fields[k].first + ": ";
        put(record.fields[k].second, false);
      }
      text += tuple ? ")" : "}";
    }
    void put(const TyArrow& arrow, bool argument) {
      if (argument) text += "(";
      if (arrow.param != kNoId) text += "(" + store.binders_[arrow.param].name + ": ";
      put(arrow.from, true);
      if (arrow.param != kNoId) text += ")";
      text += " -> ";
      put(arrow.to, false);
      if (argument) text += ")";
    }
  };
  Printer printer{*this, {}};
  printer.put(type, false);
  if (printer.full()) printer.text = printer.text.substr(0, kMaxTypeText) + " ...";
  return printer.text;
}

}  // namespace apl::frontend
