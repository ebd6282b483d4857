// What a redomap reads, as operands of a contraction.
#include <algorithm>

#include "ir/builder.h"
#include "ir/walk.h"
#include "passes/analysis/contraction_matcher.h"
#include "passes/analysis/in_bounds.h"

namespace apl {

namespace {

// Where each row is itself reduced, as in a search for the nearest neighbour, the inner reductions are a contraction.
std::string hint_for_rows(const Screma& redomap) {
  for (const Stm& stm : redomap.map.body->stms)
    if (const Screma* inner = get_if<Screma>(stm); inner != nullptr && !inner->reduces.empty())
      return "make the inner results in a line of their own, `let D = map (\\a -> map (\\b -> ..) ..) ..`, which is "
             "tiled, and reduce its rows in the next, `map (reduce ..) D`";
  return "reduce over the rows' elements, too, or transpose the array";
}

class OperandMatcher {
 public:
  OperandMatcher(const Layouts& layouts, const std::set<Value>& local, Contraction& contraction, ValueTable& values)
      : layouts_(layouts), local_(local), contraction_(contraction), values_(values) {}

  // Elements read by index, in the map function or before the redomap, become its parameters, as the elements of the
  // inputs are; other code before the redomap becomes part of it.
  std::optional<Refusal> run(const std::vector<const Stm*>& before, const Screma& redomap) {
    for (std::size_t k = 0; k < redomap.inputs.size(); ++k) {
      const Value row = redomap.map.params[k];
      const std::string& input = values_.name(redomap.inputs[k]);
      if (!values_.type(row).is_scalar())
        return unmatched("operand-row", contraction_.location,
                         "the redomap streams rows of `" + input + "`, not elements", hint_for_rows(redomap));
      if (auto r = add_read(row, input, contraction_.location)) return r;
    }
    std::vector<const Stm*> all = before;
    for (const Stm& stm : redomap.map.body->stms) all.push_back(&stm);
    std::vector<Stm> stms;
    for (const Stm* stm : all) {
      const Index* index = get_if<Index>(*stm);
      const Location location = stm->location ? stm->location : contraction_.location;
      if (index != nullptr && index->checked)
        return unmatched("checked-read", location,
                         "an index of `" + values_.name(index->array) + "` is checked in the kernel",
                         "make the bounds provable, or use the whole array");
      if (index != nullptr && values_.type(stm->pattern.front()).is_scalar()) {
        if (auto r = add_read(stm->pattern.front(), values_.name(stm->pattern.front()), location)) return r;
      } else if (!is_contraction_view(*stm) && !get_if<Reshape>(*stm)) {
        Stm kept = *stm;
        if (auto r = lift_reads(kept)) return r;
        stms.push_back(std::move(kept));
      } else if (const Use* use = get_if<Use>(*stm); use != nullptr && values_.type(stm->pattern.front()).is_scalar()) {
        stms.push_back(*stm);
      }
    }
    const Body rest{std::move(stms), redomap.map.body->results};
    const std::set<Value> free = free_values(rest, values_);
    // A read that nothing is made of is none.
    std::erase_if(contraction_.operands, [&](const ContractionOperand& o) { return !free.contains(o.element); });
    classify();
    take_indices(free);
    Lambda& map = contraction_.map;
    Substitution renaming;
    const auto element = [&](ContractionOperand& operand) {
      const Value fresh = values_.add(values_.type(operand.element), values_.name(operand.element));
      renaming.insert_or_assign(operand.element, Operand(fresh));
      return operand.element = fresh;
    };
    for (ContractionOperand& operand : contraction_.operands) map.params.push_back(element(operand));
    for (ContractionOperand& operand : contraction_.uniform) element(operand);
    map.body = copy_fresh(std::make_shared<const Body>(rest), renaming, values_, values_);
    for (Value v : free_values(map, values_)) {
      if (values_.type(v).is_array())
        return unmatched("map-reads-array", contraction_.location,
                         "the map function reads `" + values_.name(v) + "` in a branch or loop of its own",
                         "read the element before the branch, where its index is in bounds");
      if (local_.contains(v) && !contraction_.dim_of(v))
        return unmatched("code-before", contraction_.location,
                         "the map function uses `" + values_.name(v) + "`, which the kernel computes",
                         "compute it in the map function");
    }
    order_axes();
    return std::nullopt;
  }

 private:
  bool varies_in_kernel(Value v) const { return local_.contains(v) || contraction_.dim_of(v); }

  std::optional<Refusal> add_operand(Value element, const Layout& access, Location location) {
    const std::string what = values_.name(access.base);
    ContractionOperand operand;
    operand.base = access.base;
    operand.element = element;
    operand.offset = access.lmad.offset();
    for (const ContractionDim& dim : contraction_.dims) {
      auto linear = operand.offset.linear_in(dim.index);
      bool affine = linear.has_value();
      if (affine)
        for (const ContractionDim& other : contraction_.dims)
          affine = affine && !linear->coefficient.mentions(other.index);
      if (!affine)
        return unmatched("operand-not-affine", location,
                         "the index of `" + what + "` is not affine in `" + dim.name + "`",
                         "write the index as a sum of parallel and reduction indices times sizes");
      // The only index of such a dim is 0.
      operand.strides.push_back(dim.size.is_one() ? Poly(0) : linear->coefficient);
      operand.offset = linear->rest;
    }
    std::optional<Value> local;
    operand.offset.for_each_symbol([&](Value v) {
      if (varies_in_kernel(v)) local = v;
    });
    if (local || local_.contains(access.base))
      return unmatched("operand-indirect", location,
                       local ? "the index of `" + what + "` depends on `" + values_.name(*local) +
                                   "`, a value that the kernel reads or computes"
                             : "`" + what + "` is an array that the kernel makes",
                       "gather the elements into an array before the map nest");
    contraction_.operands.push_back(std::move(operand));
    return std::nullopt;
  }

  // Elements that a branch or loop of the map function reads, where they are in bounds whatever it decides.
  std::optional<Refusal> lift_reads(Stm& stm) {
    std::optional<Refusal> refused;
    stm.op = map_bodies(stm.op, [&](const BodyPtr& body) {
      std::vector<Stm> stms;
      for (const Stm& inner : body->stms) {
        const Index* index = get_if<Index>(inner);
        const bool lift = index != nullptr && !index->checked && always_in_bounds(*index);
        if (lift && values_.type(inner.pattern.front()).is_scalar() && !refused) {
          const Location location = inner.location ? inner.location : contraction_.location;
          refused = add_read(inner.pattern.front(), values_.name(inner.pattern.front()), location);
        }
        if (lift) continue;
        stms.push_back(inner);
        if (!refused) refused = lift_reads(stms.back());
      }
      return make_body(std::move(stms), body->results);
    });
    return refused;
  }

  bool always_in_bounds(const Index& index) const {
    SizeFacts facts;
    for (const ContractionDim& dim : contraction_.dims) know_index(facts, dim.index, dim.size);
    return surely_in_bounds(index, values_, facts);
  }

  std::optional<Refusal> add_read(Value read, const std::string& what, Location location) {
    const Layout* access = layouts_.find(read);
    if (access == nullptr)
      return unmatched("layout-unknown", location, "the layout of `" + what + "` is unknown: " + layouts_.why(read),
                       "use transposes and slices that keep the layout affine, or copy the array before the map nest");
    return add_operand(read, *access, location);
  }

  // An array counts where it varies along the space at all: weights of the reduction's index alone are in all blocks.
  void classify() {
    std::size_t counted = 0;
    std::vector<std::size_t> varying(contraction_.space_rank, 0);
    for (const ContractionOperand& operand : contraction_.operands) {
      bool counts = false;
      for (std::size_t d = 0; d < contraction_.space_rank; ++d) {
        varying[d] += operand.varies(d) ? 1 : 0;
        counts = counts || operand.varies(d);
      }
      counted += counts ? 1 : 0;
    }
    for (std::size_t d = 0; d < contraction_.space_rank; ++d)
      contraction_.dims[d].dim_class = varying[d] == 0         ? DimClass::invariant
                                       : varying[d] == counted ? DimClass::batch
                                                               : DimClass::free;
    const auto split = std::stable_partition(contraction_.operands.begin(), contraction_.operands.end(),
                                             [&](const ContractionOperand& o) { return !is_uniform(o); });
    contraction_.uniform.assign(split, contraction_.operands.end());
    contraction_.operands.erase(split, contraction_.operands.end());
  }

  bool is_tiled(std::size_t d) const {
    const DimClass dim_class = contraction_.dims[d].dim_class;
    return dim_class == DimClass::free || dim_class == DimClass::contracted;
  }
  bool is_uniform(const ContractionOperand& operand) const {
    for (std::size_t d = 0; d < contraction_.dims.size(); ++d)
      if (is_tiled(d) && operand.varies(d)) return false;
    return true;
  }

  // Indices of tiled dims are operands: the elements of an iota. A block has one index of the other dims.
  void take_indices(const std::set<Value>& used) {
    for (std::size_t d = 0; d < contraction_.dims.size(); ++d) {
      const ContractionDim& dim = contraction_.dims[d];
      if (!is_tiled(d) || !used.contains(dim.index)) continue;
      ContractionOperand operand;
      operand.base = values_.add(Type::scalar(ScalarType::i64).array_of({dim.size}), dim.name + "_index");
      operand.element = dim.index;
      operand.index = true;
      operand.strides.assign(contraction_.dims.size(), Poly(0));
      operand.strides[d] = 1;
      contraction_.operands.push_back(std::move(operand));
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
      // Where the order is not known: outermost, so that what is contiguous stays innermost.
      for (int d : varying) {
        const bool known = std::any_of(order.order.begin(), order.order.end(),
                                       [&](int k) { return varying[static_cast<std::size_t>(k)] == d; });
        if (!known) operand.axes.push_back(d);
      }
      for (int k : order.order) operand.axes.push_back(varying[static_cast<std::size_t>(k)]);
    }
  }

  const Layouts& layouts_;
  const std::set<Value>& local_;
  Contraction& contraction_;
  ValueTable& values_;
};

}  // namespace

bool is_contraction_view(const Stm& stm) {
  return get_if<Index>(stm) != nullptr || get_if<Rearrange>(stm) != nullptr || get_if<Use>(stm) != nullptr;
}

std::optional<Refusal> match_operands(const std::vector<const Stm*>& before, const Screma& redomap,
                                      const Layouts& layouts, const std::set<Value>& local, Contraction& contraction,
                                      ValueTable& values) {
  return OperandMatcher(layouts, local, contraction, values).run(before, redomap);
}

}  // namespace apl
