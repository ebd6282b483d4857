// On CPUs a fold over pairs, as of the nearest of m centres for each of n points, is a contraction and a fold of its
// rows: packed, the contraction takes several times less than its sums one by one, as long as what it gives stays in
// caches.
//
//   map(i < n) { let {f} = redomap(j < m) { let {d} = redomap(k < q) ..  in {g(d, j)} } op  in {f} }
// =>
//   map(i < n) { let {ds} = map(j < m) { let {d} = redomap(k < q) ..  in {d} }
//                let {f} = redomap(j < m, {ds}) { in {g(d, j)} } op  in {f} }
//
// On GPUs they go through tiles together (pair_folds.cpp).
#include "passes/extract_kernels/pair_arrays.h"

#include <algorithm>
#include <set>

#include "ir/attributes.h"
#include "ir/walk.h"

namespace apl {

namespace {

bool sums_scalar(const Stm& stm, const ValueTable& values) {
  const Screma* screma = get_if<Screma>(stm);
  return screma != nullptr && !screma->reduces.empty() && !screma->scans() && stm.pattern.size() == 1 &&
         screma->reduced_count() == 1 && values.type(stm.pattern.front()).is_scalar();
}

// A fold of one dim over exactly one sum; the number of that statement in its lambda.
std::optional<std::size_t> sum_in(const Stm& stm, const ValueTable& values) {
  const Screma* fold = get_if<Screma>(stm);
  if (fold == nullptr || fold->reduces.empty() || fold->scans() || fold->widths.size() != 1 ||
      fold->reduced_count() != stm.pattern.size() || !stm.certificates.empty() ||
      has_attribute(stm.attributes, attribute::sequential) || can_fail(*fold->map.body, values))
    return std::nullopt;
  std::optional<std::size_t> sum;
  for (std::size_t k = 0; k < fold->map.body->stms.size(); ++k) {
    if (get_if<Screma>(fold->map.body->stms[k]) == nullptr) continue;
    if (sum || !sums_scalar(fold->map.body->stms[k], values)) return std::nullopt;
    sum = k;
  }
  return sum;
}

// The statements of the body that the `last` one needs, and it.
std::vector<Stm> needed_by(const Body& body, std::size_t last, const ValueTable& values) {
  std::set<Value> needed = free_values(body.stms[last].op, values);
  std::vector<Stm> stms{body.stms[last]};
  for (std::size_t k = last; k-- > 0;) {
    const Stm& stm = body.stms[k];
    if (std::ranges::none_of(stm.pattern, [&](Value v) { return needed.contains(v); })) continue;
    needed.merge(free_values(stm.op, values));
    stms.insert(stms.begin(), stm);
  }
  return stms;
}

}  // namespace

std::optional<PairArrays> make_pair_arrays(const Stm& flat, ValueTable& values) {
  const Screma& outer = std::get<Screma>(flat.op);
  std::vector<Stm> stms;
  std::optional<Poly> most;
  for (const Stm& stm : outer.map.body->stms) {
    const std::optional<std::size_t> at = sum_in(stm, values);
    if (!at) {
      stms.push_back(stm);
      continue;
    }
    const Screma& fold = std::get<Screma>(stm.op);
    const Stm& sum = fold.map.body->stms[*at];
    const Type type = values.type(sum.pattern.front());
    Substitution here;
    Screma each{.widths = fold.widths, .indices = {}, .inputs = fold.inputs};
    for (const Value index : fold.indices) {
      each.indices.push_back(values.add(values.type(index), values.name(index)));
      here.insert_or_assign(index, Operand(each.indices.back()));
    }
    each.map =
        copy_fresh({fold.map.params, make_body(needed_by(*fold.map.body, *at, values), {Operand(sum.pattern.front())})},
                   here, values, values);
    const Value row = values.add(Type::array(type.element, fold.widths), values.name(sum.pattern.front()));
    stms.push_back({.pattern = {row}, .op = std::move(each), .location = sum.location});
    Screma rest = fold;
    const Value element = values.add(type, values.name(sum.pattern.front()));
    rest.inputs.push_back(row);
    rest.map.params.push_back(element);
    std::vector<Stm> code = fold.map.body->stms;
    code[*at].op = Use{Operand(element)};
    rest.map.body = make_body(std::move(code), fold.map.body->results);
    Stm folded = stm;
    folded.op = std::move(rest);
    stms.push_back(std::move(folded));
    const Poly elements = product(outer.widths) * product(fold.widths);
    most = most ? poly_max(*most, elements) : elements;
  }
  if (!most) return std::nullopt;
  PairArrays result{flat, *most};
  std::get<Screma>(result.map.op).map.body = make_body(std::move(stms), outer.map.body->results);
  return result;
}

}  // namespace apl
