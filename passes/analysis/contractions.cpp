#include "passes/analysis/contractions.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/builder.h"
#include "ir/walk.h"

namespace apl {

std::string_view to_text(DimClass dim_class) {
  switch (dim_class) {
    case DimClass::batch: return "batch";
    case DimClass::free: return "free";
    case DimClass::invariant: return "invariant";
    case DimClass::contracted: return "contracted";
  }
  return "?";
}

namespace {

Refusal refusal(std::string code, Location location, std::string message, std::string suggestion = {}) {
  return {std::move(code), location, std::move(message), std::move(suggestion)};
}

// A dim is called after its size in the source ("a" of [a]), else after its index.
std::string dim_name(Value index, const Poly& size, const ValueTable& values, std::set<std::string>& taken) {
  std::string base = size.symbol() ? values.name(*size.symbol()) : values.name(index);
  std::string name = base;
  for (int n = 2; !taken.insert(name).second; ++n) name = base + "_" + std::to_string(n);
  return name;
}

// The one redomap of a kernel's body, with the statements around it.
struct Stream {
  const Stm* stm = nullptr;
  const Screma* redomap = nullptr;
};

// Builds a Contraction from a kernel, or says why it cannot.
class Matcher {
 public:
  Matcher(const Stm& candidate, const Layouts& layouts, ValueTable& values)
      : layouts_(layouts), values_(values), stm_(candidate), kernel_(*get_if<SegOp>(stm_)) {
    const auto bind = [&](const Stm& stm) {
      local_.insert(stm.pattern.begin(), stm.pattern.end());
      for_each_binder(stm.op, [&](Value v) { local_.insert(v); });
    };
    for_each_stm(*kernel_.body, bind);
  }

  Match run(const Stream& stream) {
    contraction_.location = stream.stm->location ? stream.stm->location : stm_.location;
    if (auto r = take_stream(stream)) return *r;
    if (auto r = take_results(stream)) return *r;
    if (auto r = check_surroundings(stream)) return *r;
    if (auto r = take_operands(stream)) return *r;
    classify();
    order_axes();
    for (auto& check : {refuse_without_free_dims(contraction_), refuse_operand_without_reuse(contraction_, values_),
                        refuse_uncovered_dim(contraction_), refuse_failing_map(contraction_, values_)})
      if (check) return *check;
    return std::move(contraction_);
  }

 private:
  std::optional<Refusal> take_stream(const Stream& stream) {
    const Screma& redomap = *stream.redomap;
    if (redomap.reduces.size() != 1)
      return refusal("several-reductions", contraction_.location, "the kernel reduces with several operators at once");
    if (redomap.scans()) return refusal("scans", contraction_.location, "the kernel scans instead of reducing");
    if (redomap.map.body->results.size() != redomap.reduced_count())
      return refusal("maps-out", contraction_.location, "the redomap also gives an array of mapped values");
    for (const Operand& neutral : redomap.reduces[0].neutral)
      if (!values_.type(neutral).is_scalar())
        return refusal("array-accumulator", contraction_.location,
                       "the reduction operator works on arrays, not scalars");
    std::set<std::string> taken;
    for (const SegDim& dim : kernel_.space)
      contraction_.dims.push_back(
          {dim.index, dim.bound, DimClass::free, dim_name(dim.index, dim.bound, values_, taken)});
    contraction_.space_rank = kernel_.space.size();
    for (std::size_t e = 0; e < redomap.widths.size(); ++e) {
      Value index = redomap.indices[e];
      contraction_.dims.push_back(
          {index, redomap.widths[e], DimClass::contracted, dim_name(index, redomap.widths[e], values_, taken)});
      bool regular = true;
      redomap.widths[e].for_each_symbol([&](Value v) { regular = regular && !varies_in_kernel(v); });
      if (!regular)
        return refusal("irregular-reduction", contraction_.location,
                       "the reduction's width depends on a parallel index or on what the kernel computes");
    }
    contraction_.reduce = redomap.reduces[0];
    std::set<Value> outside = free_values(contraction_.reduce.op, values_);
    for (const Operand& neutral : contraction_.reduce.neutral)
      if (neutral.is_value()) outside.insert(neutral.value());
    for (Value v : outside)
      if (varies_in_kernel(v))
        return refusal("operator-uses-index", contraction_.location,
                       "the reduction operator or its neutral element uses `" + values_.name(v) +
                           "`, which differs from index to index");
    if (auto op = as_binary_op(contraction_.reduce.op)) contraction_.reduce.commutative |= is_commutative(*op);
    return std::nullopt;
  }

  std::optional<Refusal> take_results(const Stream& stream) {
    for (std::size_t k = 0; k < kernel_.body->results.size(); ++k) {
      const Operand& result = kernel_.body->results[k];
      auto reduced = stream.stm->pattern.end();
      if (result.is_value())
        reduced = std::find(stream.stm->pattern.begin(), stream.stm->pattern.end(), result.value());
      if (reduced == stream.stm->pattern.end())
        return refusal(
            "code-after", contraction_.location,
            "result " + std::to_string(k + 1) + " of the kernel is computed from the reduction by further code",
            "return the reduced value itself and map over it afterwards");
      contraction_.results.push_back(static_cast<std::size_t>(reduced - stream.stm->pattern.begin()));
    }
    return std::nullopt;
  }

  // Everything else in the body must be a view or feed the map function as an element read.
  std::optional<Refusal> check_surroundings(const Stream& stream) {
    for (const Stm& stm : kernel_.body->stms) {
      if (&stm == stream.stm) continue;
      bool view = get_if<Index>(stm) || get_if<Rearrange>(stm) || get_if<Reshape>(stm) || get_if<Use>(stm);
      if (!view)
        return refusal("code-before", stm.location ? stm.location : contraction_.location,
                       "the kernel computes `" + values_.name(stm.pattern.front()) + "` beside the reduction",
                       "compute it before the map nest");
      if (!stm.certificates.empty() || can_fail(stm.op, values_))
        return refusal("checked-read", stm.location ? stm.location : contraction_.location,
                       "an index of `" + values_.name(stm.pattern.front()) + "` is checked in the kernel",
                       "make the bounds provable, or use the whole array");
    }
    return std::nullopt;
  }

  bool varies_in_kernel(Value v) const {
    if (local_.count(v)) return true;
    return std::any_of(contraction_.dims.begin(), contraction_.dims.end(),
                       [&](const ContractionDim& dim) { return dim.index == v; });
  }

  std::optional<Refusal> add_operand(Value element, const Layout& access) {
    const std::string what = values_.name(access.base);
    ContractionOperand operand{access.base, element, access.lmad.offset(), {}, {}, false};
    for (const ContractionDim& dim : contraction_.dims) {
      auto linear = operand.offset.linear_in(dim.index);
      bool affine = linear.has_value();
      if (affine)
        for (const ContractionDim& other : contraction_.dims)
          affine = affine && !linear->coefficient.mentions(other.index);
      if (!affine)
        return refusal("operand-not-affine", contraction_.location,
                       "the index of `" + what + "` is not affine in `" + dim.name + "`");
      operand.strides.push_back(linear->coefficient);
      operand.offset = linear->rest;
    }
    bool local = false;
    operand.offset.for_each_symbol([&](Value v) { local = local || varies_in_kernel(v); });
    if (local || local_.count(access.base))
      return refusal("operand-indirect", contraction_.location,
                     "the index of `" + what + "` depends on a value read in the kernel");
    const bool one_element =
        std::all_of(operand.strides.begin(), operand.strides.end(), [](const Poly& s) { return s == Poly(0); });
    if (one_element)
      return refusal("operand-invariant", contraction_.location, "every index reads the same element of `" + what + "`",
                     "read the element before the map nest");
    contraction_.operands.push_back(std::move(operand));
    return std::nullopt;
  }

  std::optional<Refusal> take_operands(const Stream& stream) {
    const Screma& redomap = *stream.redomap;
    Lambda& map = contraction_.map;
    Substitution renaming;
    std::vector<Stm> stms;
    auto param_for = [&](Value read) {
      Value param = values_.add(values_.type(read), values_.name(read));
      map.params.push_back(param);
      renaming.insert_or_assign(read, Operand(param));
      return param;
    };
    // Rows of the inputs are elements already.
    for (std::size_t k = 0; k < redomap.inputs.size(); ++k) {
      Value row = redomap.map.params[k];
      if (!values_.type(row).is_scalar())
        return refusal("operand-row", contraction_.location,
                       "the redomap streams rows of `" + values_.name(redomap.inputs[k]) + "`, not elements");
      const Layout* access = layouts_.find(row);
      if (!access)
        return refusal("layout-unknown", contraction_.location,
                       "the layout of `" + values_.name(redomap.inputs[k]) + "` is unknown: " + layouts_.why(row),
                       "use transposes and slices that keep the layout affine");
      if (auto r = add_operand(param_for(row), *access)) return r;
    }
    // Elements read by index, in the map function or before the redomap, become parameters as well.
    auto take_read = [&](const Stm& stm) -> std::optional<Refusal> {
      Value read = stm.pattern.front();
      const Layout* access = layouts_.find(read);
      if (!access)
        return refusal("layout-unknown", contraction_.location,
                       "the layout of `" + values_.name(read) + "` is unknown: " + layouts_.why(read));
      return add_operand(param_for(read), *access);
    };
    std::set<Value> used = free_values(redomap.map, values_);
    for (const Stm& stm : kernel_.body->stms)
      if (get_if<Index>(stm) && values_.type(stm.pattern.front()).is_scalar() && used.count(stm.pattern.front()))
        if (auto r = take_read(stm)) return r;
    for (const Stm& stm : redomap.map.body->stms) {
      const Index* index = get_if<Index>(stm);
      if (index && index->checked)
        return refusal("checked-read", stm.location,
                       "an index of `" + values_.name(index->array) + "` is checked in the kernel",
                       "make the bounds provable");
      bool element = index && values_.type(stm.pattern.front()).is_scalar();
      bool view = index || get_if<Rearrange>(stm) || get_if<Reshape>(stm);
      if (element) {
        if (auto r = take_read(stm)) return r;
      } else if (!view) {
        stms.push_back(stm);
      }
    }
    // Reads are out; what is left is renamed to the new parameters and must not see the dims themselves.
    Body rest{std::move(stms), redomap.map.body->results};
    map.body = copy_fresh(std::make_shared<const Body>(std::move(rest)), renaming, values_, values_);
    for (Value v : free_values(map, values_))
      if (varies_in_kernel(v))
        return refusal("map-uses-index", contraction_.location,
                       "the map function uses `" + values_.name(v) + "` itself, not only elements of arrays");
    return std::nullopt;
  }

  void classify() {
    for (std::size_t d = 0; d < contraction_.space_rank; ++d) {
      auto varying = static_cast<std::size_t>(std::count_if(contraction_.operands.begin(), contraction_.operands.end(),
                                                            [&](const ContractionOperand& o) { return o.varies(d); }));
      contraction_.dims[d].dim_class = varying == 0                              ? DimClass::invariant
                                       : varying == contraction_.operands.size() ? DimClass::batch
                                                                                 : DimClass::free;
    }
  }

  void order_axes() {
    for (ContractionOperand& operand : contraction_.operands) {
      std::vector<int> varying;
      std::vector<LmadDim> dims;
      for (std::size_t d = 0; d < contraction_.dims.size(); ++d) {
        if (!operand.varies(d)) continue;
        varying.push_back(static_cast<int>(d));
        dims.push_back({contraction_.dims[d].size, operand.strides[d]});
      }
      LayoutOrder order = recover_order(Lmad(operand.offset, dims));
      operand.exact = order.exact;
      for (int k : order.order) operand.axes.push_back(varying[static_cast<std::size_t>(k)]);
    }
  }

  const Layouts& layouts_;
  ValueTable& values_;
  const Stm& stm_;
  const SegOp& kernel_;
  std::set<Value> local_;  // values bound in the kernel's body
  Contraction contraction_;
};

}  // namespace

std::optional<Refusal> refuse_without_free_dims(const Contraction& contraction) {
  for (const ContractionDim& dim : contraction.dims)
    if (dim.dim_class == DimClass::free) return std::nullopt;
  return refusal("no-free-dim", contraction.location,
                 "every operand varies along every parallel dim: no element is read twice");
}

std::optional<Refusal> refuse_operand_without_reuse(const Contraction& contraction, const ValueTable& values) {
  for (const ContractionOperand& operand : contraction.operands) {
    bool misses = false;
    for (std::size_t d = 0; d < contraction.space_rank; ++d)
      misses = misses || (contraction.dims[d].dim_class == DimClass::free && !operand.varies(d));
    if (!misses)
      return refusal(
          "operand-variant-to-all", contraction.location,
          "operand `" + values.name(operand.base) + "` varies along every free dim: each of its elements is used once",
          "tiling pays only where every operand misses a parallel dim");
  }
  return std::nullopt;
}

std::optional<Refusal> refuse_uncovered_dim(const Contraction& contraction) {
  for (std::size_t e = contraction.space_rank; e < contraction.dims.size(); ++e) {
    bool covered = std::any_of(contraction.operands.begin(), contraction.operands.end(),
                               [&](const ContractionOperand& operand) { return operand.varies(e); });
    if (!covered)
      return refusal("reduction-dim-unused", contraction.location,
                     "no operand varies along the reduction dim `" + contraction.dims[e].name + "`");
  }
  return std::nullopt;
}

namespace {

bool may_not_end(const Body& body) {
  bool found = false;
  for_each_stm(body, [&](const Stm& stm) {
    const Loop* loop = get_if<Loop>(stm);
    found = found || (loop && !loop->index);
  });
  return found;
}

}  // namespace

std::optional<Refusal> refuse_failing_map(const Contraction& contraction, const ValueTable& values) {
  if (may_not_end(*contraction.map.body))
    return refusal("map-can-fail", contraction.location,
                   "the map function has a while loop, which may not end for the padded elements of a tile");
  if (may_not_end(*contraction.reduce.op.body))
    return refusal("operator-can-fail", contraction.location,
                   "the reduction operator has a while loop, which may not end for the padded elements of a tile");
  if (can_fail(*contraction.map.body, values))
    return refusal("map-can-fail", contraction.location,
                   "the map function can fail (integer division or a check), and a tile computes padded elements too");
  if (can_fail(*contraction.reduce.op.body, values))
    return refusal("operator-can-fail", contraction.location, "the reduction operator can fail");
  return std::nullopt;
}

std::optional<Match> match_contraction(const Stm& stm, const Layouts& layouts, ValueTable& values) {
  const SegOp* kernel = get_if<SegOp>(stm);
  if (!kernel || kernel->level != SegLevel::thread) return std::nullopt;
  Stream stream;
  std::size_t redomaps = 0;
  for (const Stm& inner : kernel->body->stms)
    if (const Screma* screma = get_if<Screma>(inner); screma && !screma->reduces.empty() && !screma->scans()) {
      stream = {&inner, screma};
      ++redomaps;
    }
  if (redomaps == 0) return std::nullopt;
  if (redomaps > 1) return refusal("several-redomaps", stm.location, "the kernel streams several redomaps");
  return Matcher(stm, layouts, values).run(stream);
}

std::vector<Match> find_contractions(const Function& function, ValueTable& values) {
  std::vector<Match> matches;
  Layouts layouts(function);
  for_each_stm(*function.body, [&](const Stm& stm) {
    if (auto match = match_contraction(stm, layouts, values)) matches.push_back(std::move(*match));
  });
  return matches;
}

std::string Contraction::einsum(const Function&) const {
  // One letter a dim: its own name where that is a letter of its own, else the next free one.
  std::map<std::size_t, char> letters;
  std::set<char> taken;
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (dims[d].name.size() == 1 && taken.insert(dims[d].name[0]).second) letters[d] = dims[d].name[0];
  char next = 'a';
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (letters.count(d)) continue;
    while (taken.count(next)) ++next;
    taken.insert(letters[d] = next);
  }
  std::string text;
  for (const ContractionOperand& operand : operands) {
    if (!text.empty()) text += ',';
    for (int d : operand.axes) text += letters[static_cast<std::size_t>(d)];
  }
  text += "->";
  for (std::size_t d = 0; d < space_rank; ++d) text += letters[d];
  return text;
}

}  // namespace apl
