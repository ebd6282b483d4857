#include "passes/analysis/structure.h"

#include <unordered_map>

#include "ir/fields.h"

namespace apl {

namespace {

// Writes every field; what is bound inside is numbered in the order of its binding.
class Writer {
 public:
  explicit Writer(const ValueTable& values, const Substitution* same = nullptr) : values_(values), same_(same) {}

  std::string take() { return std::move(key_); }

  void at(Value v) {
    if (const auto found = inside_.find(v); found != inside_.end()) return put('b', found->second);
    if (same_ == nullptr) return put('v', v.id);
    const Operand x = substitute(Operand(v), *same_);
    x.is_value() ? put('v', x.value().id) : at(x);
  }
  void at(const Operand& x) {
    if (x.is_value()) return at(x.value());
    put('c', static_cast<std::uint64_t>(x.constant().type()));
    put(':', x.constant().bits());
  }
  void at(const Poly& p) { same_ == nullptr ? terms(p) : terms(substitute(p, *same_)); }
  void terms(const Poly& p) {
    key_ += '[';
    for (const Term& term : p.terms()) {
      put('+', static_cast<std::uint64_t>(term.coefficient));
      for (const Factor& factor : term.factors) at(factor);
    }
    key_ += ']';
  }
  void at(const Factor& factor) {
    if (!factor.opaque) return at(factor.symbol);
    put('o', static_cast<std::uint64_t>(factor.opaque->kind));
    at(factor.opaque->a);
    at(factor.opaque->b);
  }
  void at(const Lmad& lmad) {
    at(lmad.offset());
    for (const LmadDim& dim : lmad.dims()) at(dim.size), at(dim.stride);
  }
  void at(const Type& type) {
    put('t', static_cast<std::uint64_t>(type.kind) * 64 + static_cast<std::uint64_t>(type.element));
    at(type.shape);
  }
  void at(const Binder& binder) { bind(binder); }
  void at(const OptionalBinder& binder) {
    put('?', binder ? 1 : 0);
    if (binder) bind(binder);
  }
  void at(const Binders& binders) {
    for (const Value v : binders) bind(v);
    key_ += '.';
  }
  void at(const BodyPtr& body) {
    key_ += '{';
    for (const Stm& stm : body->stms) {
      op(stm.op);
      at(stm.certificates);
      at(Binders(stm.pattern));
    }
    at(body->results);
    key_ += '}';
  }
  void at(const std::string& text) {
    put('"', text.size());
    key_ += text;
  }
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void at(const T& number) {
    put('i', static_cast<std::uint64_t>(number));
  }
  template <class T>
  void at(const std::vector<T>& items) {
    put('(', items.size());
    for (const T& item : items) at(item);
  }
  template <class T>
  void at(const std::optional<T>& item) {
    put('?', item ? 1 : 0);
    if (item) at(*item);
  }
  template <class... T>
  void at(const std::variant<T...>& held) {
    put('|', held.index());
    std::visit([&](const auto& x) { at(x); }, held);
  }
  template <class T>
  requires is_record<T>
  void at(const T& record) {
    for_each_field(record, [&](const auto& field) { at(field); });
  }
  void at(std::monostate) {}

  void op(const Op& op) { at(op); }

 private:
  void put(char tag, std::uint64_t number) {
    key_ += tag;
    key_ += std::to_string(number);
    key_ += ' ';
  }
  void bind(Value v) {
    inside_.insert_or_assign(v, inside_.size());
    at(values_.type(v));
  }

  const ValueTable& values_;
  const Substitution* same_;
  std::unordered_map<Value, std::uint64_t> inside_;
  std::string key_;
};

}  // namespace

std::string structural_key(const Op& op, const ValueTable& values) {
  Writer writer(values);
  writer.op(op);
  return writer.take();
}

std::string structural_key(const Op& op, const Substitution& same, const ValueTable& values) {
  Writer writer(values, &same);
  writer.op(op);
  return writer.take();
}

std::string structural_key(const Lambda& lambda, const ValueTable& values) {
  Writer writer(values);
  writer.at(lambda);
  return writer.take();
}

}  // namespace apl
