// Nests that make rows of numbers which cost more than the rows do, taken apart where the rows are read in another
// order.
//
//   let {R} = map(i < n, {A}, \ {a} -> { let {d} = (a reduction of a) .. map(j < m, {a}, \ {x} -> {mul(d, x)}) })
//   let {Rt} = rearrange(R, (1, 0))
// =>
//   let {ds} = map(i < n, {A}, \ {a} -> { .. d })
//   let {Rt} = map(j < m, i < n, {}, \ {} -> {mul(ds[i], A[i, j])})
//
// So derivatives of sums look: the adjoint of scalar code, times rows that are added up along another dim. Now the rows
// are made where they are added, by a contraction of `ds` and A, and not stored.
#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "ir/walk.h"
#include "passes/fuse/fuse.h"

namespace apl {

namespace {

class RowSplitter {
 public:
  RowSplitter(const Stm& producer, const Stm& view, ValueTable& values, const Consumption& consumption)
      : producer_(producer), view_(view), values_(values), consumption_(consumption) {}

  struct Split {
    std::optional<Stm> rest;  // what the producer still makes
    Stm rows;                 // in the place of the view
  };

  std::optional<Split> run() {
    const Rearrange& view = std::get<Rearrange>(view_.op);
    note_bound(producer_);
    // One index for each dim, in the order in which the view is made.
    const Type type = values_.type(view_.pattern.front());
    Screma rows{.widths = type.shape, .indices = {}, .inputs = {}, .map = {}, .reduces = {}};
    std::vector<Value> dims(type.rank());
    for (std::size_t k = 0; k < type.rank(); ++k) {
      rows.indices.push_back(values_.add(Type::scalar(ScalarType::i64), "i"));
      dims[static_cast<std::size_t>(view.permutation[k])] = rows.indices.back();
    }
    rank_ = type.rank();
    const auto result =
        static_cast<std::size_t>(std::ranges::find(producer_.pattern, view.array) - producer_.pattern.begin());
    if (!enter(producer_, result, std::move(dims))) return std::nullopt;
    rows.map.body = element();
    if (rows.map.body == nullptr) return std::nullopt;
    for (const Value v : free_values(rows, values_))
      if (values_.type(v).is_array() && consumption_.consumed(v)) return std::nullopt;
    Stm made{.pattern = view_.pattern, .op = std::move(rows), .location = producer_.location};
    return Split{without_rows(0), std::move(made)};
  }

 private:
  struct Kept {
    Value inside, array;  // and the result of the producer that has it for all indices
  };
  // A map of the nest, from the outermost on.
  struct Level {
    const Stm* stm;
    std::size_t result;                    // of it, the rows
    std::vector<Value> index;              // of an element of what it maps: the indices of all levels so far
    std::unordered_set<const Stm*> views;  // statements of its body that rearrange the rows of the next
    std::vector<Kept> kept{};              // values of its body that elements are made of
  };
  // Where an array that a map streams has the rows that its parameter stands for.
  struct Row {
    Value base;
    std::vector<Value> index;
  };

  static const Screma& map_of(const Level& level) { return std::get<Screma>(level.stm->op); }

  // Everything that is bound in the producer: it cannot be read outside of it.
  void note_bound(const Stm& stm) {
    for_each_binder(stm.op, [&](Value v) { bound_.insert(v); });
    for_each_body(stm.op, [&](const BodyPtr& body) {
      for (const Stm& inner : body->stms) {
        bound_.insert(inner.pattern.begin(), inner.pattern.end());
        note_bound(inner);
      }
    });
  }

  // Follows the rows into the map that makes them; `dims`: an index for each of their dims.
  bool enter(const Stm& stm, std::size_t result, std::vector<Value> dims) {
    const Screma& map = std::get<Screma>(stm.op);
    const std::size_t count = map.widths.size();
    if (!map.reduces.empty() || dims.size() < count || !stm.certificates.empty()) return false;
    Level level{.stm = &stm,
                .result = result,
                .index = levels_.empty() ? std::vector<Value>{} : levels_.back().index,
                .views = {}};
    const std::vector<Value> own(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(count));
    level.index.insert(level.index.end(), own.begin(), own.end());
    for (std::size_t k = 0; k < count; ++k) renamed_.insert_or_assign(map.indices[k], Operand(own[k]));
    for (std::size_t k = 0; k < map.inputs.size(); ++k) {
      Row row{map.inputs[k], {}};
      if (const auto outer = rows_.find(map.inputs[k]); outer != rows_.end()) row = outer->second;
      row.index.insert(row.index.end(), own.begin(), own.end());
      rows_.emplace(map.map.params[k], std::move(row));
    }
    dims.erase(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(count));
    levels_.push_back(std::move(level));
    const Body& body = *map.map.body;
    Operand row = body.results[result];
    while (!dims.empty()) {
      const Stm* made = row.is_value() ? defining_stm(body, row.value()) : nullptr;
      if (made == nullptr || used_besides(body, row.value(), result)) return false;
      if (const Rearrange* view = get_if<Rearrange>(*made)) {
        std::vector<Value> before(dims.size());
        for (std::size_t d = 0; d < dims.size(); ++d) before[static_cast<std::size_t>(view->permutation[d])] = dims[d];
        dims = std::move(before);
        levels_.back().views.insert(made);
        row = Operand(view->array);
      } else if (get_if<Screma>(*made) != nullptr) {
        const auto inner = std::ranges::find(made->pattern, row.value()) - made->pattern.begin();
        return enter(*made, static_cast<std::size_t>(inner), std::move(dims));
      } else {
        return false;
      }
    }
    return true;
  }

  // Whether anything needs a row but the result `k` and the views that lead there.
  bool used_besides(const Body& body, Value row, std::size_t k) const {
    std::size_t uses = 0;
    for (const Stm& stm : body.stms) uses += free_values(stm.op, values_).contains(row) ? 1 : 0;
    for (std::size_t r = 0; r < body.results.size(); ++r)
      if (body.results[r] == Operand(row)) uses += r == k ? 1 : 2;
    return uses != 1;
  }

  // The code of one element, which reads what the levels keep; null where it costs more than reading a row would.
  BodyPtr element() {
    const Body& body = *map_of(levels_.back()).map.body;
    const Operand result = body.results[levels_.back().result];
    std::vector<Stm> code = needed(body, result);
    if (!is_element_code(Body{code, {}}, values_) || holds_screma(Body{code, {}})) return nullptr;
    std::vector<Stm> stms;
    for (const Value v : free_values(Body{code, {result}}, values_)) {
      if (!bound_.contains(v) || renamed_.contains(v)) continue;
      const std::optional<Row> row = row_of(v);
      if (!row) return nullptr;
      stms.push_back(read(v, *row));
      renamed_.insert_or_assign(v, Operand(stms.back().pattern.front()));
    }
    const BodyPtr copied = copy_fresh(make_body(std::move(code), {result}), renamed_, values_, values_);
    stms.insert(stms.end(), copied->stms.begin(), copied->stms.end());
    return make_body(std::move(stms), copied->results);
  }

  // What stands outside of the producer for a value of it.
  std::optional<Row> row_of(Value v) {
    Row row{v, {}};
    if (const auto found = rows_.find(v); found != rows_.end()) row = found->second;
    if (!bound_.contains(row.base)) return row;
    for (Level& level : levels_) {
      if (&level == &levels_.back() || defining_stm(*map_of(level).map.body, row.base) == nullptr) continue;
      const std::optional<Value> array = keep(level, row.base);
      if (!array) return std::nullopt;
      Row outside{*array, level.index};
      outside.index.insert(outside.index.end(), row.index.begin(), row.index.end());
      return outside;
    }
    return std::nullopt;
  }

  // Keeps a value of the level's body for all indices: of fewer dims than the rows, and of sizes known outside.
  std::optional<Value> keep(Level& level, Value inside) {
    for (const Kept& before : level.kept)
      if (before.inside == inside) return before.array;
    Type type = values_.type(inside);
    if (type.is_memory() || level.index.size() + type.rank() >= rank_) return std::nullopt;
    for (std::size_t k = static_cast<std::size_t>(&level - levels_.data()) + 1; k-- > 0;)
      type = type.array_of(map_of(levels_[k]).widths);
    bool known = true;
    for_each_use(type, [&](Value v) { known = known && !bound_.contains(v); });
    if (!known) return std::nullopt;
    level.kept.push_back({inside, values_.add(type, values_.name(inside))});
    return level.kept.back().array;
  }

  // The map of a level without the rows, and with what elements are made of; none if it has no result then.
  std::optional<Stm> without_rows(std::size_t k) {
    const Level& level = levels_[k];
    Stm stm = *level.stm;
    Screma& map = std::get<Screma>(stm.op);
    std::vector<Stm> stms;
    std::vector<Operand> results = map.map.body->results;
    const auto dropped = static_cast<std::ptrdiff_t>(level.result);
    results.erase(results.begin() + dropped);
    stm.pattern.erase(stm.pattern.begin() + dropped);
    const auto add = [&](Value inside, Value outermost) {
      results.emplace_back(inside);
      // Inside of another level it has the dims of this level and of inner ones.
      const Type& row = values_.type(inside);
      stm.pattern.push_back(k == 0 ? outermost : values_.add(row.array_of(map.widths), values_.name(inside)));
    };
    for (const Kept& kept : level.kept) add(kept.inside, kept.array);
    for (const Stm& inner : map.map.body->stms) {
      if (level.views.contains(&inner)) continue;
      if (k + 1 == levels_.size() || &inner != levels_[k + 1].stm) {
        stms.push_back(inner);
        continue;
      }
      const std::optional<Stm> rest = without_rows(k + 1);
      if (!rest) continue;
      stms.push_back(*rest);
      std::size_t n = inner.pattern.size() - 1;
      for (std::size_t l = k + 1; l < levels_.size(); ++l)
        for (const Kept& kept : levels_[l].kept) add(rest->pattern[n++], kept.array);
    }
    if (results.empty()) return std::nullopt;
    map.map.body = make_body(std::move(stms), std::move(results));
    return stm;
  }

  std::vector<Stm> needed(const Body& body, const Operand& result) const {
    std::set<Value> wanted;
    if (result.is_value()) wanted.insert(result.value());
    std::vector<Stm> code;
    for (auto stm = body.stms.rbegin(); stm != body.stms.rend(); ++stm) {
      if (std::ranges::none_of(stm->pattern, [&](Value v) { return wanted.contains(v); })) continue;
      wanted.merge(free_values(stm->op, values_));
      code.push_back(*stm);
    }
    std::ranges::reverse(code);
    return code;
  }

  Stm read(Value v, const Row& row) {
    const Type type = values_.type(v);
    std::vector<DimIndex> dims;
    for (const Value i : row.index) dims.push_back(DimIndex::fix(i));
    const Value made = values_.add(type, values_.name(v));
    return {.pattern = {made}, .op = Index{row.base, std::move(dims)}, .location = producer_.location};
  }

  const Stm& producer_;
  const Stm& view_;
  ValueTable& values_;
  const Consumption& consumption_;
  std::size_t rank_ = 0;
  std::vector<Level> levels_;
  std::unordered_set<Value> bound_;
  std::unordered_map<Value, Row> rows_;
  Substitution renamed_;
};

}  // namespace

std::vector<ScatterFusion> split_rows(std::vector<Stm>& stms, const std::vector<Operand>& results, ValueTable& values,
                                      const Consumption& consumption) {
  std::unordered_map<Value, std::size_t> definitions, uses;
  std::unordered_set<Value> streamed;
  for (std::size_t k = 0; k < stms.size(); ++k) {
    for (const Value v : stms[k].pattern) definitions.emplace(v, k);
    for (const Value v : free_values(stms[k].op, values)) ++uses[v];
    if (const Screma* screma = get_if<Screma>(stms[k])) streamed.insert(screma->inputs.begin(), screma->inputs.end());
  }
  for (const Operand& result : results)
    if (result.is_value()) uses[result.value()] += 1;
  std::vector<ScatterFusion> done;
  std::vector<bool> gone(stms.size(), false);
  for (std::size_t k = 0; k < stms.size(); ++k) {
    const Rearrange* view = get_if<Rearrange>(stms[k]);
    if (view == nullptr || !streamed.contains(stms[k].pattern.front()) || uses[view->array] != 1) continue;
    const auto at = definitions.find(view->array);
    if (at == definitions.end() || gone[at->second] || get_if<Screma>(stms[at->second]) == nullptr) continue;
    if (consumption.consumed(view->array) || !stms[k].certificates.empty()) continue;
    std::optional<RowSplitter::Split> split = RowSplitter(stms[at->second], stms[k], values, consumption).run();
    if (!split) continue;
    done.push_back({values.name(view->array), stms[at->second], {}});
    stms[k] = std::move(split->rows);
    gone[at->second] = !split->rest;
    if (split->rest) stms[at->second] = *std::move(split->rest);
  }
  std::vector<Stm> left;
  for (std::size_t k = 0; k < stms.size(); ++k)
    if (!gone[k]) left.push_back(std::move(stms[k]));
  stms = std::move(left);
  return done;
}

}  // namespace apl
