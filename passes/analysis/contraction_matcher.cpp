// From a kernel to a Contraction, or to what keeps it from being one.
#include <algorithm>
#include <set>

#include "ir/builder.h"
#include "ir/walk.h"
#include "passes/analysis/contractions.h"

namespace apl {

namespace {

Refusal unmatched(std::string code, Location location, std::string message, std::string suggestion = {}) {
  return {std::move(code), location, std::move(message), std::move(suggestion)};
}

// A dim is called after its size in the source ("a" of [a]), else after its index.
std::string dim_name(Value index, const Poly& size, const ValueTable& values, std::set<std::string>& taken) {
  std::string base = size.symbol() ? values.name(*size.symbol()) : values.name(index);
  std::string name = base;
  for (int n = 2; !taken.insert(name).second; ++n) name = base + "_" + std::to_string(n);
  return name;
}

// Several operators side by side are one operator on all their values.
ReduceOp combined(const std::vector<ReduceOp>& reduces) {
  if (reduces.size() == 1) return reduces.front();
  ReduceOp all;
  all.commutative = true;
  std::vector<Value> right;
  std::vector<Stm> stms;
  std::vector<Operand> results;
  for (const ReduceOp& reduce : reduces) {
    const auto half = reduce.op.params.begin() + static_cast<std::ptrdiff_t>(reduce.neutral.size());
    all.op.params.insert(all.op.params.end(), reduce.op.params.begin(), half);
    right.insert(right.end(), half, reduce.op.params.end());
    stms.insert(stms.end(), reduce.op.body->stms.begin(), reduce.op.body->stms.end());
    results.insert(results.end(), reduce.op.body->results.begin(), reduce.op.body->results.end());
    all.neutral.insert(all.neutral.end(), reduce.neutral.begin(), reduce.neutral.end());
    all.commutative = all.commutative && reduce.commutative;
  }
  all.op.params.insert(all.op.params.end(), right.begin(), right.end());
  all.op.body = make_body(std::move(stms), std::move(results));
  return all;
}

// The one redomap of a kernel's body.
struct Stream {
  const Stm* stm = nullptr;
  const Screma* redomap = nullptr;
};

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
    if (auto r = take_stream(*stream.redomap)) return *r;
    if (auto r = take_results(*stream.stm)) return *r;
    if (auto r = check_surroundings(*stream.stm)) return *r;
    if (auto r = take_map(*stream.redomap)) return *r;
    order_axes();
    for (std::optional<Refusal> check :
         {refuse_without_free_dims(contraction_, values_), refuse_operand_without_reuse(contraction_, values_),
          refuse_uncovered_dim(contraction_), refuse_failing_map(contraction_, values_)})
      if (check) {
        check->match = std::make_shared<const Contraction>(contraction_);
        return *check;
      }
    return std::move(contraction_);
  }

 private:
  std::optional<Refusal> take_stream(const Screma& redomap) {
    if (redomap.map.body->results.size() != redomap.reduced_count())
      return unmatched("maps-out", contraction_.location, "the redomap also gives an array of mapped values",
                       "compute the mapped values in a map of their own");
    for (const ReduceOp& reduce : redomap.reduces)
      for (const Operand& neutral : reduce.neutral)
        if (!values_.type(neutral).is_scalar())
          return unmatched("array-accumulator", contraction_.location,
                           "the reduction operator works on arrays, not scalars",
                           "map a reduction of scalars over the arrays' elements");
    std::set<std::string> taken;
    for (const SegDim& dim : kernel_.space)
      contraction_.dims.push_back(
          {dim.index, dim.bound, DimClass::free, dim_name(dim.index, dim.bound, values_, taken)});
    contraction_.space_rank = kernel_.space.size();
    for (std::size_t e = 0; e < redomap.widths.size(); ++e) {
      Value index = redomap.indices[e];
      contraction_.dims.push_back(
          {index, redomap.widths[e], DimClass::contracted, dim_name(index, redomap.widths[e], values_, taken)});
      std::optional<Value> varying;
      redomap.widths[e].for_each_symbol([&](Value v) {
        if (varies_in_kernel(v)) varying = v;
      });
      if (varying)
        return unmatched("irregular-reduction", contraction_.location,
                         "the reduction's width depends on `" + values_.name(*varying) +
                             "`, a parallel index or what the kernel computes",
                         "reduce over the largest width, and map elements beyond the own one to the neutral element");
    }
    std::vector<ReduceOp> reduces = redomap.reduces;
    for (ReduceOp& reduce : reduces) {
      std::set<Value> outside = free_values(reduce.op, values_);
      for (const Operand& neutral : reduce.neutral)
        if (neutral.is_value()) outside.insert(neutral.value());
      for (Value v : outside)
        if (varies_in_kernel(v))
          return unmatched("operator-uses-index", contraction_.location,
                           "the reduction operator or its neutral element uses `" + values_.name(v) +
                               "`, which differs from index to index",
                           "use it in the map function, or in code after the reduction");
      if (auto op = as_binary_op(reduce.op)) reduce.commutative |= is_commutative(*op);
    }
    contraction_.reduce = combined(reduces);
    return std::nullopt;
  }

  // The kernel's results: reduced values, or code after them.
  std::optional<Refusal> take_results(const Stm& redomap) {
    for (const Operand& result : kernel_.body->results) {
      auto reduced = redomap.pattern.end();
      if (result.is_value()) reduced = std::find(redomap.pattern.begin(), redomap.pattern.end(), result.value());
      if (reduced == redomap.pattern.end()) return take_code_after(redomap);
      contraction_.results.push_back(static_cast<std::size_t>(reduced - redomap.pattern.begin()));
    }
    return std::nullopt;
  }

  std::optional<Refusal> take_code_after(const Stm& redomap) {
    contraction_.results.clear();
    std::set<Value> roots;
    for (const Operand& result : kernel_.body->results) {
      if (!values_.type(result).is_scalar())
        return unmatched("code-after", contraction_.location, "the kernel gives rows, not only scalars",
                         "map over the reduced values in a nest of its own");
      if (result.is_value()) roots.insert(result.value());
    }
    after_ = needed_for(std::move(roots), redomap);
    std::vector<Stm> stms;
    for (const Stm& stm : kernel_.body->stms) {
      if (!after_.contains(&stm)) continue;
      if (auto r = refuse_after(stm)) return r;
      stms.push_back(stm);
    }
    Lambda after;
    Substitution renaming;
    for (Value v : redomap.pattern) {
      after.params.push_back(values_.add(values_.type(v), values_.name(v)));
      renaming.insert_or_assign(v, Operand(after.params.back()));
    }
    after.body = copy_fresh(make_body(std::move(stms), kernel_.body->results), renaming, values_, values_);
    contraction_.after = std::move(after);
    return std::nullopt;
  }

  // Code after is done once an element, by the thread that has it in a register: scalars, and reads.
  std::optional<Refusal> refuse_after(const Stm& stm) {
    const Location location = stm.location ? stm.location : contraction_.location;
    const std::string name = stm.pattern.empty() ? "" : values_.name(stm.pattern.front());
    if (relies_on_check(stm) || can_fail(stm.op, values_))
      return unmatched("code-after", location, "the code after the reduction can fail at `" + name + "`",
                       "make the bounds provable, or map over the reduced values in a nest of its own");
    bool arrays = false;
    const auto look = [&](const Stm& s) {
      for (Value v : s.pattern) arrays = arrays || (values_.type(v).is_array() && !is_view(s));
    };
    look(stm);
    for_each_body(stm.op, [&](const BodyPtr& body) { for_each_stm(*body, look); });
    if (arrays)
      return unmatched("code-after", location, "the code after the reduction makes an array in `" + name + "`",
                       "map over the reduced values in a nest of its own");
    return std::nullopt;
  }

  // Whether a check in the kernel must come first. Those outside have been made.
  bool relies_on_check(const Stm& stm) {
    bool local = false;
    const auto look = [&](const Stm& s) {
      for (Value v : s.certificates) {
        local = local || local_.contains(v);
        if (!local_.contains(v)) contraction_.certificates.push_back(v);
      }
    };
    look(stm);
    for_each_body(stm.op, [&](const BodyPtr& body) { for_each_stm(*body, look); });
    return local;
  }

  static bool is_view(const Stm& stm) { return get_if<Index>(stm) || get_if<Rearrange>(stm) || get_if<Use>(stm); }

  // The statements of the kernel's body that `roots` come from, without the redomap.
  std::set<const Stm*> needed_for(std::set<Value> roots, const Stm& redomap) const {
    std::set<const Stm*> needed;
    const std::vector<Stm>& stms = kernel_.body->stms;
    for (std::size_t k = stms.size(); k-- > 0;) {
      const Stm& stm = stms[k];
      const bool wanted =
          std::any_of(stm.pattern.begin(), stm.pattern.end(), [&](Value v) { return roots.contains(v); });
      if (!wanted || &stm == &redomap) continue;
      needed.insert(&stm);
      roots.merge(free_values(stm.op, values_));
      roots.insert(stm.certificates.begin(), stm.certificates.end());
    }
    return needed;
  }

  // What stands before the redomap, and is not code after, feeds the map function. It cannot fail.
  std::optional<Refusal> check_surroundings(const Stm& redomap) {
    before_ = needed_for(free_values(redomap.op, values_), redomap);
    if (relies_on_check(redomap))
      return unmatched("checked-read", contraction_.location, "the reduction relies on a check in the kernel",
                       "make the bounds provable, or use the whole array");
    for (const Stm& stm : kernel_.body->stms) {
      if (&stm == &redomap || (after_.contains(&stm) && !before_.contains(&stm))) continue;
      const Location location = stm.location ? stm.location : contraction_.location;
      if (relies_on_check(stm) || can_fail(stm.op, values_))
        return unmatched("checked-read", location,
                         get_if<Assert>(stm) ? "the kernel makes a check"
                                             : "`" + values_.name(stm.pattern.front()) + "` is checked in the kernel",
                         "make the bounds provable, or use the whole array");
      for (Value v : stm.pattern)
        if (values_.type(v).is_array() && !is_view(stm) && !get_if<Reshape>(stm))
          return unmatched("code-before", location, "the kernel makes the array `" + values_.name(v) + "`",
                           "compute it before the map nest");
    }
    return std::nullopt;
  }

  bool varies_in_kernel(Value v) const { return local_.contains(v) || dim_of(v); }

  std::optional<std::size_t> dim_of(Value index) const {
    for (std::size_t d = 0; d < contraction_.dims.size(); ++d)
      if (contraction_.dims[d].index == index) return d;
    return std::nullopt;
  }

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

  // Elements read by index, in the map function or before the redomap, become its parameters, as the elements of the
  // inputs are; other code before the redomap becomes part of it.
  std::optional<Refusal> take_map(const Screma& redomap) {
    for (std::size_t k = 0; k < redomap.inputs.size(); ++k) {
      const Value row = redomap.map.params[k];
      const std::string& input = values_.name(redomap.inputs[k]);
      if (!values_.type(row).is_scalar())
        return unmatched("operand-row", contraction_.location,
                         "the redomap streams rows of `" + input + "`, not elements",
                         "reduce over the rows' elements, too, or transpose the array");
      if (auto r = add_read(row, input, contraction_.location)) return r;
    }
    const std::vector<Stm>& reads = redomap.map.body->stms;
    std::vector<const Stm*> all;
    for (const Stm& stm : kernel_.body->stms)
      if (before_.contains(&stm)) all.push_back(&stm);
    for (const Stm& stm : reads) all.push_back(&stm);
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
      } else if (!is_view(*stm) && !get_if<Reshape>(*stm)) {
        stms.push_back(*stm);
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
      if (local_.contains(v) && !dim_of(v))
        return unmatched("code-before", contraction_.location,
                         "the map function uses `" + values_.name(v) + "`, which the kernel computes",
                         "compute it in the map function");
    }
    return std::nullopt;
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
  ValueTable& values_;
  const Stm& stm_;
  const SegOp& kernel_;
  std::set<Value> local_;        // values bound in the kernel's body
  std::set<const Stm*> before_;  // statements that the redomap needs
  std::set<const Stm*> after_;   // statements that the results need besides
  Contraction contraction_;
};

// A reduction inside of other code of the kernel.
std::optional<Match> refuse_hidden_reduction(const SegOp& kernel) {
  for (const Stm& outer : kernel.body->stms) {
    const bool branch = get_if<If>(outer) != nullptr;
    if (!branch && get_if<Loop>(outer) == nullptr) continue;
    std::optional<Location> found;
    for_each_body(outer.op, [&](const BodyPtr& body) {
      for (const Stm& stm : body->stms)
        if (const Screma* screma = get_if<Screma>(stm); screma && !screma->reduces.empty() && !screma->scans())
          found = stm.location ? stm.location : outer.location;
    });
    if (!found) continue;
    if (branch)
      return unmatched("reduction-in-branch", *found, "the reduction is in a branch of the kernel",
                       "reduce for all indices, and choose the result afterwards");
    return unmatched("reduction-in-loop", *found, "the reduction is in a loop of the kernel",
                     "make the loop's rounds a dim of the map nest, or reduce outside of the loop");
  }
  return std::nullopt;
}

}  // namespace

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
  if (redomaps == 0) return refuse_hidden_reduction(*kernel);
  if (redomaps > 1)
    return unmatched("several-redomaps", stm.location, "the kernel streams several redomaps",
                     "reduce in one redomap over one width, or in map nests of their own");
  return Matcher(stm, layouts, values).run(stream);
}

}  // namespace apl
