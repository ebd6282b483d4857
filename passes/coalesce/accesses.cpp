#include "passes/coalesce/accesses.h"

#include <set>

#include "ir/walk.h"

namespace apl::coalesce {
namespace {

class Reader {
 public:
  Reader(const SegOp& kernel, const ValueTable& values) : values_(values) {
    for (const SegDim& dim : kernel.space) known_.insert(dim.index);
    for_each_stm(*kernel.body, [&](const Stm& stm) {
      for (const Value v : stm.pattern) inside_.insert(v);
      for_each_binder(stm.op, [&](Value v) { inside_.insert(v); });
    });
    for (const Value v : free_values(*kernel.body, values)) {
      if (!values.type(v).is_array()) continue;
      View view{v, {}, {}};
      for (std::size_t d = 0; d < values.type(v).rank(); ++d) {
        view.dims.push_back({Poly(0), Poly(1)});
        view.open.push_back(d);
      }
      views_.emplace(v, std::move(view));
    }
    body(*kernel.body, Poly(1));
  }

  std::map<Value, std::vector<Access>> reads;

 private:
  // dims[d] of the array is start + i*stride, where i is the index along the position of d in `open`, if it is there.
  struct View {
    struct Dim {
      Poly start, stride;
    };
    Value array;
    std::vector<Dim> dims;
    std::vector<std::size_t> open;
  };

  // Polynomials that the thread computed are written out.
  Poly expanded(const Poly& p) const {
    return p.substitute([&](Value v) -> std::optional<Poly> {
      const auto found = sizes_.find(v);
      return found == sizes_.end() ? std::nullopt : std::optional(found->second);
    });
  }

  void bind(Value result, View view, const Poly& count) {
    if (!values_.type(result).is_scalar()) {
      views_.insert_or_assign(result, std::move(view));
      return;
    }
    Access access{.at = {}, .count = count};
    for (const View::Dim& dim : view.dims) {
      dim.start.for_each_symbol(
          [&](Value v) { access.indirect = access.indirect || (inside_.contains(v) && !known_.contains(v)); });
      access.at.push_back(dim.start);
    }
    reads[view.array].push_back(std::move(access));
  }

  static void fix(View& view, std::size_t position, const Poly& i) {
    View::Dim& dim = view.dims[view.open[position]];
    dim.start += dim.stride * i;
    view.open.erase(view.open.begin() + static_cast<std::ptrdiff_t>(position));
  }

  void rows(const std::vector<Poly>& widths, const std::vector<Value>& indices, const std::vector<Value>& inputs,
            const Lambda& lambda, const Poly& count) {
    Poly each = count;
    for (const Poly& width : widths) each *= expanded(width);
    for (const Value index : indices) known_.insert(index);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const auto found = views_.find(inputs[k]);
      if (found == views_.end()) continue;
      View row = found->second;
      for (const Value index : indices) fix(row, 0, Poly(index));
      bind(lambda.params[k], std::move(row), each);
    }
    body(*lambda.body, each);
  }

  void body(const Body& body, const Poly& count) {
    for (const Stm& stm : body.stms) statement(stm, count);
  }

  void statement(const Stm& stm, const Poly& count) {
    if (const auto* size = get_if<SizeExpr>(stm)) {
      sizes_[stm.pattern.front()] = expanded(size->value);
    } else if (const auto* index = get_if<Index>(stm)) {
      const auto found = views_.find(index->array);
      if (found == views_.end()) return;
      View view = found->second;
      std::size_t position = 0;
      for (const DimIndex& dim : index->dims) {
        if (!dim.is_slice()) {
          fix(view, position, expanded(dim.start));
          continue;
        }
        View::Dim& whole = view.dims[view.open[position++]];
        whole.start += whole.stride * expanded(dim.start);
        whole.stride *= expanded(dim.stride);
      }
      bind(stm.pattern.front(), std::move(view), count);
    } else if (const auto* rearrange = get_if<Rearrange>(stm)) {
      const auto found = views_.find(rearrange->array);
      if (found == views_.end()) return;
      View view = found->second;
      for (std::size_t k = 0; k < view.open.size(); ++k)
        view.open[k] = found->second.open[static_cast<std::size_t>(rearrange->permutation[k])];
      bind(stm.pattern.front(), std::move(view), count);
    } else if (const auto* use = get_if<Use>(stm)) {
      if (!use->x.is_value()) return;
      if (const auto found = views_.find(use->x.value()); found != views_.end())
        bind(stm.pattern.front(), View(found->second), count);
    } else if (const auto* screma = get_if<Screma>(stm)) {
      rows(screma->widths, screma->indices, screma->inputs, screma->map, count);
      for (const ReduceOp& reduce : screma->reduces) this->body(*reduce.op.body, count);
    } else if (const auto* scatter = get_if<Scatter>(stm)) {
      rows(scatter->widths, scatter->indices, scatter->inputs, scatter->map, count);
    } else if (const auto* loop = get_if<Loop>(stm)) {
      // How often a while loop runs is not known: once, at least in spirit.
      if (loop->index) known_.insert(loop->index);
      this->body(*loop->body, loop->index ? count * expanded(loop->bound) : count);
    } else {
      for (const BodyPtr& branch : branches(stm.op)) this->body(*branch, count);
    }
  }

  const ValueTable& values_;
  std::set<Value> known_;   // indices: affine in them is affine
  std::set<Value> inside_;  // bound in the kernel
  std::map<Value, View> views_;
  std::map<Value, Poly> sizes_;
};

}  // namespace

std::map<Value, std::vector<Access>> reads_of(const SegOp& kernel, const ValueTable& values) {
  return Reader(kernel, values).reads;
}

}  // namespace apl::coalesce
