// Transposes and slices lifted over element-wise nests of maps.
//
//   let {P} = map(i < m, {A}, \ {row} -> {map(j < n, {row}, f)})
//   let {Pt} = rearrange(P, (1, 0))
// =>
//   let {At} = rearrange(A, (1, 0))
//   let {Pt} = map(j < n, i < m, {At}, f)
//
//   let {P} = map(i < m, {A}, f)
//   let {Q} = P[s :+ k by 2]
// =>
//   let {B} = A[s :+ k by 2]
//   let {Q} = map(j < k, {B}, f)                         with 2*j + s for i
#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <variant>

#include "ir/walk.h"
#include "passes/fuse/fuse.h"

namespace apl {

namespace {

struct Lifted {
  std::vector<Stm> views;  // of the inputs
  Stm stm;
};

class ViewLifter {
 public:
  ViewLifter(const Stm& producer, const Stm& view, ValueTable& values, const Consumption& consumption)
      : producer_(producer), view_(view), values_(values), consumption_(consumption) {}

  // What it becomes, or why it does not.
  std::variant<Lifted, std::string> run() {
    const std::size_t count = touched();
    if (count == 0) return "its check would tell of another array, or it changes no dim";
    const std::optional<Stm> nest = collapse_nest(producer_, count, values_);
    if (!nest) return "what makes the array is no perfect nest of maps over the dims that it changes";
    if (nest->pattern.size() != 1) return "other arrays are made with it";
    const Screma& source = std::get<Screma>(nest->op);
    if (holds_screma(*source.map.body)) return "more than elements would be computed in another order";
    if (leaves_out_elements(source) && can_fail(*source.map.body, values_))
      return "elements that it leaves out could fail";
    // The producer moves to where the view stands.
    for (const Value v : free_values(nest->op, values_))
      if (values_.type(v).is_array() && consumption_.consumed(v))
        return "what the array is made of is overwritten in place";
    Lifted result;
    Screma lifted = rearranges() ? permuted(source) : sliced(source);
    for (const Value input : source.inputs) {
      result.views.push_back(view_of(input, lifted.widths));
      lifted.inputs.push_back(result.views.back().pattern.front());
    }
    result.stm = *nest;
    result.stm.op = std::move(lifted);
    result.stm.pattern = view_.pattern;
    result.stm.certificates.insert(result.stm.certificates.end(), view_.certificates.begin(), view_.certificates.end());
    return result;
  }

 private:
  bool rearranges() const { return std::holds_alternative<Rearrange>(view_.op); }
  const std::vector<int>& permutation() const { return std::get<Rearrange>(view_.op).permutation; }
  const std::vector<DimIndex>& dims() const { return std::get<Index>(view_.op).dims; }

  // How many outer dims the view changes; 0 if it cannot be lifted.
  std::size_t touched() const {
    std::size_t count = 0;
    if (rearranges()) {
      for (std::size_t k = 0; k < permutation().size(); ++k)
        if (permutation()[k] != static_cast<int>(k)) count = k + 1;
      return count;
    }
    const Index& index = std::get<Index>(view_.op);
    if (index.checked) return 0;  // the message would tell of another array
    const std::vector<Poly>& shape = values_.type(index.array).shape;
    for (std::size_t k = 0; k < dims().size(); ++k) {
      if (!dims()[k].is_slice()) return 0;
      if (dims()[k].start != Poly(0) || dims()[k].stride != Poly(1) || *dims()[k].count != shape[k]) count = k + 1;
    }
    return count;
  }

  bool leaves_out_elements(const Screma& source) const {
    if (rearranges()) return false;
    for (std::size_t k = 0; k < source.widths.size(); ++k) {
      const std::optional<std::int64_t> step = dims()[k].stride.constant();
      if (*dims()[k].count != source.widths[k] || !step || (*step != 1 && *step != -1)) return true;
    }
    return false;
  }

  Screma permuted(const Screma& source) const {
    Screma result{.map = source.map};
    for (std::size_t k = 0; k < source.widths.size(); ++k) {
      const auto from = static_cast<std::size_t>(permutation()[k]);
      result.widths.push_back(source.widths[from]);
      result.indices.push_back(source.indices[from]);
    }
    return result;
  }

  Screma sliced(const Screma& source) {
    Screma result{.map = source.map};
    std::vector<Stm> stms;
    for (std::size_t k = 0; k < source.widths.size(); ++k) {
      const DimIndex& dim = dims()[k];
      const Value index = values_.add(Type::scalar(ScalarType::i64), values_.name(source.indices[k]));
      result.widths.push_back(*dim.count);
      result.indices.push_back(index);
      stms.push_back({.pattern = {source.indices[k]},
                      .op = SizeExpr{dim.start + dim.stride * Poly(index)},
                      .location = producer_.location});
    }
    stms.insert(stms.end(), source.map.body->stms.begin(), source.map.body->stms.end());
    result.map.body = make_body(std::move(stms), source.map.body->results);
    return result;
  }

  Stm view_of(Value input, const std::vector<Poly>& widths) {
    Type type = Type::array(values_.type(input).element, values_.type(input).shape);
    std::copy(widths.begin(), widths.end(), type.shape.begin());
    Op op;
    if (rearranges()) {
      std::vector<int> all(type.rank());
      std::iota(all.begin(), all.end(), 0);
      std::copy_n(permutation().begin(), widths.size(), all.begin());
      op = Rearrange{input, std::move(all)};
    } else {
      op = Index{input, {dims().begin(), dims().begin() + static_cast<std::ptrdiff_t>(widths.size())}};
    }
    const Value view = values_.add(std::move(type), values_.name(input));
    return {.pattern = {view}, .op = std::move(op), .location = producer_.location, .certificates = view_.certificates};
  }

  const Stm& producer_;
  const Stm& view_;
  ValueTable& values_;
  const Consumption& consumption_;
};

std::optional<Value> viewed_array(const Stm& stm) {
  if (const Rearrange* transpose = get_if<Rearrange>(stm)) return transpose->array;
  const Index* index = get_if<Index>(stm);
  return index != nullptr ? std::optional(index->array) : std::nullopt;
}

}  // namespace

bool lift_views(std::vector<Stm>& stms, const std::vector<Operand>& results, ValueTable& values,
                const Consumption& consumption, std::vector<ViewInTheWay>* refused) {
  std::unordered_map<Value, std::size_t> definitions;
  std::unordered_map<Value, std::size_t> uses;
  std::unordered_map<Value, bool> streamed;
  for (std::size_t k = 0; k < stms.size(); ++k) {
    for (const Value v : stms[k].pattern) definitions.emplace(v, k);
    for (const Value v : free_values(stms[k].op, values)) ++uses[v];
    if (const Screma* screma = get_if<Screma>(stms[k])) {
      for (const Value v : screma->inputs) streamed[v] = true;
    } else if (const Scatter* scatter = get_if<Scatter>(stms[k])) {
      for (const Value v : scatter->inputs) streamed[v] = true;
    }
  }
  for (const Operand& result : results) {
    if (result.is_value()) uses[result.value()] += 1;
  }
  // A view of a view is lifted after the inner one.
  for (auto stm = stms.rbegin(); stm != stms.rend(); ++stm) {
    const std::optional<Value> array = viewed_array(*stm);
    if (array && streamed[stm->pattern.front()]) streamed[*array] = true;
  }
  std::unordered_map<std::size_t, std::vector<Stm>> replaced;
  for (std::size_t k = 0; k < stms.size(); ++k) {
    const std::optional<Value> array = viewed_array(stms[k]);
    if (!array || !streamed[stms[k].pattern.front()]) continue;
    const auto producer = definitions.find(*array);
    if (producer == definitions.end() || replaced.contains(producer->second)) continue;
    if (!std::holds_alternative<Screma>(stms[producer->second].op)) continue;
    std::variant<Lifted, std::string> result = "the array is needed elsewhere, too";
    if (consumption.consumed(*array)) {
      result = "the array is overwritten in place";
    } else if (uses[*array] == 1) {
      result = ViewLifter(stms[producer->second], stms[k], values, consumption).run();
    }
    Lifted* lifted = std::get_if<Lifted>(&result);
    if (lifted == nullptr) {
      if (refused != nullptr) refused->push_back({stms[k], values.name(*array), std::get<std::string>(result)});
      continue;
    }
    // Where the view stood: everything that the producer read is still there.
    std::vector<Stm>& made = replaced[k];
    made = std::move(lifted->views);
    made.push_back(std::move(lifted->stm));
    replaced[producer->second] = {};
  }
  if (replaced.empty()) return false;
  std::vector<Stm> result;
  for (std::size_t k = 0; k < stms.size(); ++k) {
    const auto found = replaced.find(k);
    if (found == replaced.end()) {
      result.push_back(std::move(stms[k]));
    } else {
      for (Stm& stm : found->second) result.push_back(std::move(stm));
    }
  }
  stms = std::move(result);
  return true;
}

}  // namespace apl
