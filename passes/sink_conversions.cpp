// sink-conversions: an array that is only another one's numbers in a wider type is converted where it is read.
//
//   let {ws : [n]f32} = map(i < n, {xs}, \{x : bf16} -> { let {w : f32} = convert(x, f32) in {w} })
//   let {s : f32} = redomap(j < n, {ws, ys}, \{w : f32, y : f32} -> { let {p : f32} = mul(w, y) in {p} }, ...)
//   let {e : f32} = ws[k]
// =>
//   let {s : f32} = redomap(j < n, {xs, ys},
//                     \{w : bf16, y : f32} -> { let {w : f32} = convert(w, f32) let {p : f32} = mul(w, y) in {p} },
//                     ...)
//   let {x : bf16} = xs[k]
//   let {e : f32} = convert(x, f32)
//
// So that memory holds the narrow numbers alone, and contractions see that their operands are narrow (tensor cores,
// sparse operands). One walk that follows a converted array through views, slices, and the lambdas that take its rows,
// with a narrow twin for each; elements are read from the twin. What is still read as it was stays beside its twin, and
// what nobody reads any more is left out: converted arrays that are returned, updated or copied are made as before.
// Only exact conversions of 16-bit floats: those to f32 and f64; of f16 only with the option `halves`, since not every
// processor converts them in an instruction. Arrays that are overwritten in place are left alone. Not here: conversions
// that round, which belong to whoever makes the array.
#include <fmt/format.h>

#include <set>
#include <unordered_map>

#include "ir/walk.h"
#include "passes/analysis/consumption.h"
#include "passes/functions.h"
#include "passes/pass.h"

namespace apl {

namespace {

// The array of which the map makes every element wider, and does nothing else; rows in nested maps.
std::optional<Value> widened(const Stm& stm, const ValueTable& values) {
  const Screma* map = get_if<Screma>(stm);
  if (map == nullptr || !map->reduces.empty() || map->inputs.size() != 1 || map->map.body->stms.size() != 1 ||
      stm.pattern.size() != 1 || !stm.certificates.empty())
    return std::nullopt;
  const Stm& inner = map->map.body->stms.front();
  const Value param = map->map.params.front();
  if (inner.pattern.size() != 1 || !inner.certificates.empty() ||
      !(map->map.body->results.front() == Operand(inner.pattern.front())))
    return std::nullopt;
  if (const Convert* convert = get_if<Convert>(inner)) {
    const ScalarType from = values.type(param).element;
    const bool is_wider = (convert->to == ScalarType::f32 || convert->to == ScalarType::f64) && byte_size(from) == 2;
    if (!(convert->x == Operand(param)) || convert->same_bits || !is_float(from) || !is_wider) return std::nullopt;
    return map->inputs.front();
  }
  return widened(inner, values) == param ? std::optional(map->inputs.front()) : std::nullopt;
}

class ConversionSinker {
 public:
  ConversionSinker(Function& function, const Module& module, const PassContext& context)
      : function_(function),
        values_(function.values),
        consumption_(function, &module),
        context_(context),
        halves_(context.flag("halves")) {}

  bool run() {
    const BodyPtr rewritten = body(function_.body);
    if (!changed_) return false;
    function_.body = without_unread(rewritten);
    return true;
  }

 private:
  BodyPtr body(const BodyPtr& old) {
    std::vector<Stm> stms;
    for (const Stm& stm : old->stms) statement(stm, stms);
    return make_body(std::move(stms), old->results);
  }

  void statement(const Stm& stm, std::vector<Stm>& out) {
    if (const auto narrow = widened(stm, values_)) {
      const bool wanted = halves_ || values_.type(*narrow).element != ScalarType::f16;
      if (wanted && !consumption_.consumed(*narrow)) {
        follow(stm.pattern.front(), stm.pattern.front(), *narrow);
        views_.insert(stm.pattern.front());
        out.push_back(stm);
        return;
      }
    }
    if (const Index* index = get_if<Index>(stm); index != nullptr && narrow_.contains(index->array)) {
      if (values_.type(stm.pattern.front()).is_scalar()) return element(stm, *index, out);
      view(stm, index->array, Index{narrow_.at(index->array), index->dims, index->checked}, out);
    } else if (const Rearrange* turned = get_if<Rearrange>(stm); turned && narrow_.contains(turned->array)) {
      view(stm, turned->array, Rearrange{narrow_.at(turned->array), turned->permutation}, out);
    } else if (const Reshape* shaped = get_if<Reshape>(stm); shaped && narrow_.contains(shaped->array)) {
      view(stm, shaped->array, Reshape{narrow_.at(shaped->array), shaped->shape}, out);
    }
    out.push_back(stm);
    if (Screma* screma = std::get_if<Screma>(&out.back().op)) {
      take_rows(*screma, stm);
    } else if (Scatter* scatter = std::get_if<Scatter>(&out.back().op)) {
      take_rows(*scatter, stm);
    } else {
      out.back().op = map_bodies(stm.op, [&](const BodyPtr& inner) { return body(inner); });
    }
  }

  Value twin(Value wide, ScalarType element) {
    Type type = values_.type(wide);
    type.element = element;
    return values_.add(type, values_.name(wide));
  }

  void element(const Stm& stm, const Index& index, std::vector<Stm>& out) {
    const Value source = narrow_.at(index.array), x = twin(stm.pattern.front(), values_.type(source).element);
    Stm read = stm, convert = stm;
    read.pattern = {x};
    read.op = Index{source, index.dims, index.checked};
    convert.op = Convert{values_.type(stm.pattern.front()).element, Operand(x)};
    out.push_back(std::move(read));
    out.push_back(std::move(convert));
    applied(stm, index.array);
  }

  // Both the view and its twin; what is not read is left out in the end.
  void view(const Stm& stm, Value source, Op op, std::vector<Stm>& out) {
    const Value wide = stm.pattern.front(), narrow = twin(wide, values_.type(narrow_.at(source)).element);
    Stm made = stm;
    made.pattern = {narrow};
    made.op = std::move(op);
    out.push_back(std::move(made));
    follow(source, wide, narrow);
    views_.insert(wide);
    views_.insert(narrow);
  }

  // `wide` is a part of `source`, and `narrow` has its numbers.
  void follow(Value source, Value wide, Value narrow) {
    narrow_.insert_or_assign(wide, narrow);
    whole_.insert_or_assign(wide, source == wide ? wide : whole_.at(source));
  }

  // A lambda that gets rows of converted arrays gets those of their twins.
  template <class Map>
  void take_rows(Map& op, const Stm& stm) {
    std::vector<Stm> converted;
    std::vector<std::pair<Value, Value>> twins;  // parameters that are rows: as they were, and narrow
    const std::size_t count = op.inputs.size();
    for (std::size_t k = 0; k < count; ++k) {
      const auto source = narrow_.find(op.inputs[k]);
      if (source == narrow_.end()) continue;
      const Value wide = op.map.params[k], narrow = twin(wide, values_.type(source->second).element);
      if (values_.type(wide).is_scalar()) {
        converted.push_back(
            {.pattern = {wide}, .op = Convert{values_.type(wide).element, Operand(narrow)}, .location = stm.location});
        applied(stm, op.inputs[k]);
        op.map.params[k] = narrow;
        op.inputs[k] = source->second;
      } else {
        follow(op.inputs[k], wide, narrow);
        twins.emplace_back(wide, narrow);
        op.map.params.push_back(narrow);
        op.inputs.push_back(source->second);
      }
    }
    op = std::get<Map>(map_bodies(Op(std::move(op)), [&](const BodyPtr& inner) { return body(inner); }));
    const Body& inner = *op.map.body;
    if (!converted.empty()) {
      converted.insert(converted.end(), inner.stms.begin(), inner.stms.end());
      op.map.body = make_body(std::move(converted), inner.results);
    }
    for (const auto& [wide, narrow] : twins) drop_unread(op, wide, narrow);
  }

  // Of two parameters for one row those that are read; the first, if none is.
  template <class Map>
  void drop_unread(Map& op, Value wide, Value narrow) {
    const BodyPtr lean = without_unread(op.map.body);
    const std::set<Value> read = free_values(*lean, values_);
    if (!read.contains(narrow)) return drop(op, narrow);
    if (read.contains(wide)) return;
    drop(op, wide);
    op.map.body = lean;
  }
  template <class Map>
  static void drop(Map& op, Value param) {
    const auto at = std::ranges::find(op.map.params, param);
    op.inputs.erase(op.inputs.begin() + (at - op.map.params.begin()));
    op.map.params.erase(at);
  }

  // Without converted arrays, views and twins that nobody reads.
  BodyPtr without_unread(const BodyPtr& old) const {
    std::set<Value> read = free_values(*make_body({}, old->results), values_);
    std::vector<Stm> kept;
    for (auto stm = old->stms.rbegin(); stm != old->stms.rend(); ++stm) {
      const bool ours = stm->pattern.size() == 1 && views_.contains(stm->pattern.front());
      if (ours && !read.contains(stm->pattern.front())) continue;
      kept.push_back(*stm);
      kept.back().op = map_bodies(stm->op, [&](const BodyPtr& inner) { return without_unread(inner); });
      read.merge(free_values(kept.back().op, values_));
      for (const Value v : stm->pattern) for_each_use(values_.type(v), [&](Value symbol) { read.insert(symbol); });
      read.insert(stm->certificates.begin(), stm->certificates.end());
    }
    return make_body({kept.rbegin(), kept.rend()}, old->results);
  }

  void applied(const Stm& stm, Value array) {
    changed_ = true;
    const Value whole = whole_.at(array);
    if (!said_.insert(whole).second) return;
    context_.remark({.kind = RemarkKind::applied,
                     .pass = "sink-conversions",
                     .code = "converted-where-read",
                     .location = stm.location,
                     .function = function_.name,
                     .message = fmt::format("'{}' is read as {}", values_.name(whole),
                                            to_text(values_.type(narrow_.at(whole)).element)),
                     .facts = {},
                     .suggestion = {}});
  }

  Function& function_;
  ValueTable& values_;
  Consumption consumption_;
  const PassContext& context_;
  bool halves_;
  std::unordered_map<Value, Value> narrow_;  // an array of wider numbers, and the one that has them as they were
  std::unordered_map<Value, Value> whole_;   // the converted array that each of those is a part of
  std::set<Value> views_, said_;             // what may be left out; what there was a remark for
  bool changed_ = false;
};

Result<Change> sink_conversions(Module& module, PassContext& context) {
  return change_functions(module,
                          [&](Function& function) { return ConversionSinker(function, module, context).run(); });
}

}  // namespace

PassInfo sink_conversions_pass() {
  return {.name = "sink-conversions",
          .summary = "convert arrays of 16-bit floats where they are read",
          .takes = stage_bit(Stage::soac),
          .options = {{"halves", false, "f16, too, which not every processor converts in an instruction"}},
          .remark_codes = {{"converted-where-read", "elements are read from the array of 16-bit floats"}},
          .run = sink_conversions};
}

}  // namespace apl
