// What a redomap reads, as operands of a contraction.
#include <range/v3/view/zip.hpp>

#include <algorithm>

#include "ir/builder.h"
#include "ir/walk.h"
#include "passes/analysis/contraction_conditions.h"
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
      : layouts_(layouts), local_(local), contraction_(contraction), values_(values), made_(values) {}

  // Elements read by index, in the map function or before the redomap, become its parameters, as the elements of the
  // inputs are; other code before the redomap becomes part of it. A branch that reads an element, or else gives a
  // constant, is an element under a condition.
  std::optional<Refusal> run(const std::vector<const Stm*>& before, const Screma& redomap) {
    std::vector<const Stm*> all = before;
    for (const Stm& stm : redomap.map.body->stms) all.push_back(&stm);
    for (const Stm* stm : all) made_.add(*stm);
    for (std::size_t k = 0; k < redomap.inputs.size(); ++k) {
      const Value row = redomap.map.params[k];
      const std::string& input = values_.name(redomap.inputs[k]);
      if (!values_.type(row).is_scalar()) continue;  // its elements are read by index
      if (auto r = add_read(row, input, contraction_.location)) return r;
    }
    std::vector<Stm> stms;
    for (std::size_t k = 0; k < all.size(); ++k) {
      const Stm* stm = all[k];
      const Index* index = get_if<Index>(*stm);
      const Location location = stm->location ? stm->location : contraction_.location;
      in_map_ = k >= before.size();
      if (take_conditional_read(*stm, stms)) continue;
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
    const Body rest{needed(std::move(stms), redomap.map.body->results), redomap.map.body->results};
    const std::set<Value> free = free_values(rest, values_);
    for (const auto& [row, input] : ranges::views::zip(redomap.map.params, redomap.inputs))
      if (!values_.type(row).is_scalar() && free.contains(row))
        return unmatched("operand-row", contraction_.location,
                         "the redomap streams rows of `" + values_.name(input) + "`, not elements",
                         hint_for_rows(redomap));
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
                         "read the element before the branch, where its index is in bounds, or under a condition that "
                         "compares numbers affine in its own indices, as `0 <= i+k-1 && i+k-1 < n`");
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

  bool varies_by_index(const Poly& p) const {
    bool varies = false;
    p.for_each_symbol([&](Value v) { varies = varies || varies_in_kernel(v); });
    return varies;
  }

  // Where the operand is read; `under`: the conditions, of which there are none if it is read anyway.
  struct Read {
    Value element;
    const Layout* access = nullptr;
    std::vector<ContractionCondition> under{};
    Scalar otherwise{};
    bool always_there = true;  // it may be read where nothing is reduced
  };

  std::optional<Refusal> add_operand(const Read& read, Location location) {
    const std::string what = values_.name(read.access->base);
    ContractionOperand operand;
    operand.base = read.access->base;
    operand.element = read.element;
    operand.otherwise = read.otherwise;
    AffineOutcome at = affine_in_dims(contraction_, read.access->lmad.offset());
    if (at.not_affine_in)
      return unmatched(
          "operand-not-affine", location,
          "the index of `" + what + "` is not affine in `" + contraction_.dims[*at.not_affine_in].name + "`",
          "write the index as a sum of parallel and reduction indices times sizes");
    operand.strides = std::move(at.affine.strides);
    operand.offset = take_gathers(at.affine.offset, operand.gathers);
    std::optional<Value> local;
    operand.offset.for_each_symbol([&](Value v) {
      if (varies_in_kernel(v)) local = v;
    });
    if (local || local_.contains(read.access->base))
      return unmatched("operand-indirect", location,
                       local ? "the index of `" + what + "` depends on `" + values_.name(*local) +
                                   "`, a value that the kernel reads or computes"
                             : "`" + what + "` is an array that the kernel makes",
                       "gather the elements into an array before the map nest");
    operand.conditions = read.under;
    if (!read.always_there && contraction_.is_resident(operand)) only_if_reduced(operand);
    contraction_.operands.push_back(std::move(operand));
    return std::nullopt;
  }

  // The offset without those parts of it that are elements of arrays of indices from outside.
  Poly take_gathers(const Poly& offset, std::vector<ContractionGather>& gathers) const {
    Poly left = offset;
    std::set<Value> tried;
    const auto next = [&] {
      std::optional<Value> found;
      left.for_each_symbol([&](Value v) {
        if (!found && local_.contains(v) && !tried.contains(v)) found = v;
      });
      return found;
    };
    while (const auto position = next()) {
      tried.insert(*position);
      const auto linear = left.linear_in(*position);
      if (!linear || varies_by_index(linear->coefficient)) continue;
      const auto read = index_read(*position);
      if (!read) continue;
      gathers.push_back({read->first, read->second, linear->coefficient});
      left = linear->rest;
    }
    return left;
  }

  // The array and the position in it of an integer that is read, and that may be made an i64.
  std::optional<std::pair<Value, ContractionAffine>> index_read(Value position) const {
    const Stm* stm = made_.find(position);
    while (stm != nullptr && !get_if<Index>(*stm)) {
      const Convert* convert = get_if<Convert>(*stm);
      const Use* use = get_if<Use>(*stm);
      const Operand* from = convert != nullptr && !convert->same_bits ? &convert->x
                            : use != nullptr                          ? &use->x
                                                                      : nullptr;
      if (from == nullptr || !from->is_value() || !is_integer(values_.type(*from).element)) return std::nullopt;
      position = from->value();
      stm = made_.find(position);
    }
    // Elements of a redomap's input are bound by no statement.
    const Layout* access = layouts_.find(position);
    if (access == nullptr || local_.contains(access->base) || (stm != nullptr && get_if<Index>(*stm)->checked))
      return std::nullopt;
    AffineOutcome at = affine_in_dims(contraction_, access->lmad.offset());
    if (at.not_affine_in || varies_by_index(at.affine.offset)) return std::nullopt;
    return std::pair(access->base, std::move(at.affine));
  }

  // What is read once need not be there where nothing is reduced.
  void only_if_reduced(ContractionOperand& operand) const {
    Poly steps = 1;
    for (std::size_t d = contraction_.space_rank; d < contraction_.dims.size(); ++d) steps *= contraction_.dims[d].size;
    if (const auto known = steps.constant(); known && *known > 0) return;
    if (operand.conditions.empty()) operand.otherwise = Scalar::zero(values_.type(operand.element).element);
    operand.conditions.push_back({{steps - 1, std::vector<Poly>(contraction_.dims.size(), Poly(0))}, {}});
  }

  // ---- elements under conditions

  // if c { A[..] } else { constant }, or the other way round. Where what is read is converted, or else it is 0, then it
  // is converted behind the branch, as matrix units widen what tiles hold.
  bool take_conditional_read(const Stm& stm, std::vector<Stm>& behind) {
    const If* branch = get_if<If>(stm);
    if (branch == nullptr || stm.pattern.size() != 1 || !stm.certificates.empty()) return false;
    for (const bool outcome : {true, false}) {
      const Body& reads = outcome ? *branch->then_body : *branch->else_body;
      const Body& other = outcome ? *branch->else_body : *branch->then_body;
      if (!reads.results[0].is_value() || !other.stms.empty() || !other.results[0].is_constant()) continue;
      const Stm* read = defining_stm(reads, reads.results[0].value());
      const Convert* convert = read != nullptr ? get_if<Convert>(*read) : nullptr;
      const Stm* const converted = convert != nullptr ? read : nullptr;
      Scalar otherwise = other.results[0].constant();
      if (convert != nullptr) {
        const ScalarType to = values_.type(stm.pattern.front()).element;
        if (convert->same_bits || !convert->x.is_value() || otherwise != Scalar::zero(to)) continue;
        otherwise = Scalar::zero(values_.type(convert->x.value()).element);
        read = defining_stm(reads, convert->x.value());
      }
      const bool alone =
          read != nullptr && get_if<Index>(*read) && std::ranges::all_of(reads.stms, [&](const Stm& inner) {
            return inner.certificates.empty() &&
                   (is_contraction_view(inner) || get_if<SizeExpr>(inner) || &inner == converted);
          });
      if (!alone) continue;
      const Value element = convert != nullptr ? convert->x.value() : stm.pattern.front();
      const auto under = made_.when(branch->condition, outcome);
      if (!under || !add_conditional_read(*read, *under, element, otherwise)) continue;
      if (convert != nullptr) behind.push_back({stm.pattern, *convert});
      if (convert != nullptr) behind.back().location = converted->location;
      return true;
    }
    return false;
  }

  // Whether the read of `stm`, under conditions that say that these are not negative, is an operand now.
  bool add_conditional_read(const Stm& stm, const std::vector<Poly>& non_negative, Value element,
                            const Scalar& otherwise) {
    const Layout* access = layouts_.find(stm.pattern.front());
    const auto under = conditions_of(contraction_, non_negative);
    if (access == nullptr || !under) return false;
    const Index& index = *get_if<Index>(stm);
    if (index.checked && !in_bounds_under(index, non_negative)) return false;
    const std::size_t before = contraction_.operands.size();
    if (add_operand({element, access, *under, otherwise, !in_map_}, contraction_.location)) return false;
    // A tile has the conditions of its own indices.
    const ContractionOperand& added = contraction_.operands.back();
    bool own = true;
    for (const ContractionCondition& condition : *under) {
      own = own && !varies_by_index(condition.at.offset) && !(condition.bound && varies_by_index(*condition.bound));
      for (std::size_t d = 0; d < contraction_.dims.size(); ++d)
        own = own && (added.varies(d) || condition.at.strides[d].is_zero());
    }
    if (!own) contraction_.operands.resize(before);
    return own;
  }

  // Each number of a check is not negative anyway, or as one of the conditions says.
  bool in_bounds_under(const Index& index, const std::vector<Poly>& non_negative) const {
    const SizeFacts facts = facts_of_dims();
    const auto holds = [&](const Poly& p) {
      return prove_non_negative(p, facts) == Proof::yes || std::ranges::any_of(non_negative, [&](const Poly& known) {
               return prove_non_negative(p - known, facts) == Proof::yes;
             });
    };
    const std::vector<Poly>& shape = values_.type(index.array).shape;
    for (const auto& [dim, size] : ranges::views::zip(index.dims, shape))
      if (dim.is_slice() || !holds(dim.start) || !holds(size - dim.start - 1)) return false;
    return true;
  }

  // Elements that a branch or loop of the map function reads: under the conditions of the branches around it, or where
  // they are in bounds whatever those decide.
  std::optional<Refusal> lift_reads(Stm& stm,
                                    const std::optional<std::vector<Poly>>& non_negative = std::vector<Poly>{}) {
    std::optional<Refusal> refused;
    const If* branch = get_if<If>(stm);
    const BodyPtr then = branch != nullptr ? branch->then_body : nullptr;
    const Operand condition = branch != nullptr ? branch->condition : Operand(Scalar::boolean(true));
    stm.op = map_bodies(stm.op, [&](const BodyPtr& body) {
      std::optional<std::vector<Poly>> here = non_negative;
      if (branch != nullptr && here) {
        const auto more = made_.when(condition, body == then);
        if (more) here->insert(here->end(), more->begin(), more->end());
        if (!more) here.reset();
      }
      std::vector<Stm> stms;
      for (const Stm& inner : body->stms) {
        const Index* index = get_if<Index>(inner);
        if (index == nullptr || !values_.type(inner.pattern.front()).is_scalar() || refused) {
          stms.push_back(inner);
          if (!refused) refused = lift_reads(stms.back(), get_if<Loop>(inner) ? std::nullopt : here);
          continue;
        }
        const Value element = inner.pattern.front();
        const Location location = inner.location ? inner.location : contraction_.location;
        if (!index->checked && always_in_bounds(*index)) {
          refused = add_read(element, values_.name(element), location);
        } else if (!here || here->empty() || !inner.certificates.empty() ||
                   !add_conditional_read(inner, *here, element, Scalar::zero(values_.type(element).element))) {
          stms.push_back(inner);
        }
      }
      return make_body(std::move(stms), body->results);
    });
    return refused;
  }

  SizeFacts facts_of_dims() const {
    SizeFacts facts;
    for (const ContractionDim& dim : contraction_.dims) know_index(facts, dim.index, dim.size);
    return facts;
  }

  bool always_in_bounds(const Index& index) const { return surely_in_bounds(index, values_, facts_of_dims()); }

  std::optional<Refusal> add_read(Value read, const std::string& what, Location location) {
    const Layout* access = layouts_.find(read);
    if (access == nullptr)
      return unmatched("layout-unknown", location, "the layout of `" + what + "` is unknown: " + layouts_.why(read),
                       "use transposes and slices that keep the layout affine, or copy the array before the map nest");
    const Stm* stm = made_.find(read);
    const bool always_there =
        !in_map_ || stm == nullptr || get_if<Index>(*stm) == nullptr || always_in_bounds(*get_if<Index>(*stm));
    return add_operand({read, access, {}, {}, always_there}, location);
  }

  // Statements that the results come from, and those that may fail.
  std::vector<Stm> needed(std::vector<Stm> stms, const std::vector<Operand>& results) const {
    std::set<Value> wanted;
    for (const Operand& result : results)
      if (result.is_value()) wanted.insert(result.value());
    std::vector<Stm> kept;
    for (std::size_t k = stms.size(); k-- > 0;) {
      Stm& stm = stms[k];
      const bool is_needed = can_fail(stm.op, values_) || !stm.certificates.empty() ||
                             std::ranges::any_of(stm.pattern, [&](Value v) { return wanted.contains(v); });
      if (!is_needed) continue;
      wanted.merge(free_values(stm.op, values_));
      kept.push_back(std::move(stm));
    }
    std::ranges::reverse(kept);
    return kept;
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
        Poly stride = operand.strides[d];
        for (const ContractionGather& gather : operand.gathers)
          if (!gather.at.strides[d].is_zero()) stride = gather.stride;
        dims.push_back({contraction_.dims[d].size, stride});
      }
      LayoutOrder order = recover_order(Lmad(operand.offset, dims));
      operand.exact = order.exact && operand.gathers.empty();
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
  Definitions made_;     // before the redomap and in its map function
  bool in_map_ = false;  // the statement that is looked at is one of the map function
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
