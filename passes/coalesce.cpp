// coalesce: arrays lie in memory as the threads read them; kernel stage.
//
//   let {s : [n]f32} =
//     segmap(thread) (i < n) {
//       let {row : [m]f32} = A[i]
//       let {r : f32} = redomap(k < m, {row}, ...)
//       return {returns r}
//     }
// =>
//   let {A_t : [m][n]f32} = segmap(block) (b < ceil_div(m, 16), b_1 < ceil_div(n, 16)) { ... }
//   let {A_1 : [n][m]f32} = rearrange(A_t, (1, 0))
//   let {s : [n]f32} = segmap(thread) (i < n) { let {row : [m]f32} = A_1[i] ... }
//
// Neighbouring threads differ in the last index of the space. Where what they read lies apart, each reads a sector of
// 32 bytes for itself alone. If that index is one dim of the array, a copy in which that dim comes last is made before
// the kernel (before the loops around it that do not change the array), by a kernel that goes through shared memory. It
// is made if fewer bytes move than before for all sizes: 32 for each read, against those of the element for each read
// and twice for each element of the array. Copies are shared by the kernels of a body.
// A kernel that only copies an array into such an order, and the copy of a result that is a view in such an order, go
// through shared memory themselves.
// Where the array is what another kernel's threads return, a row each, no copy is needed: the rows are stored one
// element of all threads after the other (attribute `interleaved`, which place-memory follows), if all that read them
// read them so.
//
// Phases: how threads read (coalesce/accesses), results, inputs.
// Deliberately not here: contractions, which are at block level by now; the order of a kernel's own dims.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ir/attributes.h"
#include "ir/layouts.h"
#include "ir/walk.h"
#include "passes/analysis/contractions.h"
#include "passes/coalesce/accesses.h"
#include "passes/coalesce/transpose.h"
#include "passes/functions.h"
#include "passes/pass.h"

namespace apl {
namespace {

using coalesce::Access;

constexpr std::int64_t kSector = 32;  // bytes that memory moves at least
constexpr std::int64_t kLine = 128;   // bytes that a cache keeps together

// Programs can write any number as a size.
bool within_line(std::int64_t elements, ScalarType element) {
  return elements >= -kLine && elements <= kLine && std::abs(elements) * byte_size(element) <= kLine;
}

// Threads that share reductions read neighbouring elements as it is.
bool is_thread_kernel(const Stm& stm) {
  const SegOp* kernel = get_if<SegOp>(stm);
  return kernel && kernel->level == SegLevel::thread && !kernel->space.empty() && !kernel->team;
}

// How neighbouring threads read an array.
struct Pattern {
  enum class Kind : std::uint8_t { none, along, mixed, strided, indirect };
  Kind kind = Kind::none;
  std::size_t dim = 0;  // along: neighbours differ by one in this dim alone
  Poly count;           // along: reads of a thread
};

Pattern pattern_of(const std::vector<Access>& accesses, Value thread) {
  using Kind = Pattern::Kind;
  Pattern result;
  for (const Access& access : accesses) {
    if (access.indirect) return {Kind::indirect};
    for (std::size_t d = 0; d < access.at.size(); ++d) {
      if (!access.at[d].mentions(thread)) continue;
      const auto linear = access.at[d].linear_in(thread);
      if (!linear || (linear->coefficient != Poly(1) && linear->coefficient != Poly(-1))) return {Kind::strided};
      if (result.kind == Kind::along && result.dim != d) return {Kind::mixed};
      const bool again =
          std::count_if(access.at.begin(), access.at.end(), [&](const Poly& p) { return p.mentions(thread); }) > 1;
      if (again) return {Kind::mixed};
      result.kind = Kind::along;
      result.dim = d;
      result.count += access.count;
    }
  }
  return result;
}

class Coalescer {
 public:
  Coalescer(Function& function, const PassContext& context)
      : function_(function), values_(function.values), context_(context), layouts_(function) {}

  bool run() {
    std::set<Value> scope(function_.params.begin(), function_.params.end());
    // What is asked does not matter for empty arrays.
    std::set<Value> sizes;
    for (std::uint32_t id = 0; id < values_.size(); ++id)
      for (const Poly& size : values_.type(Value{id}).shape)
        if (const auto symbol = size.symbol()) sizes.insert(*symbol);
    for (const Value size : sizes) facts_.at_least(size, 1);
    note_uses(*function_.body);
    BodyPtr made = body(*function_.body, std::move(scope), false);
    made = returned_views(std::move(made));
    if (changed_) function_.body = std::move(made);
    return changed_;
  }

 private:
  struct Frame {
    std::set<Value> bound;  // arrays that are known from here on
    bool is_loop;
    std::vector<Stm> out;
    std::map<std::pair<Value, std::size_t>, Value> copies;
  };

  // ---- who reads what

  void note_uses(const Body& body) {
    for (const Stm& stm : body.stms) {
      if (get_if<Loop>(stm) || is_branch(stm.op)) {
        for_each_use(stm.op, [&](Value v) { kept_.insert(v); });
        for_each_body(stm.op, [&](const BodyPtr& inner) { note_uses(*inner); });
      } else if (is_thread_kernel(stm)) {
        const SegOp& kernel = std::get<SegOp>(stm.op);
        const auto reads = coalesce::reads_of(kernel, values_);
        for (const Value v : free_values(stm.op, values_)) {
          if (!values_.type(v).is_array()) continue;
          const auto found = reads.find(v);
          readers_[v].push_back(found == reads.end() ? Pattern{Pattern::Kind::mixed}
                                                     : pattern_of(found->second, kernel.space.back().index));
        }
      } else {
        for (const Value v : free_values(stm.op, values_)) kept_.insert(v);
      }
    }
    for (const Operand& x : body.results)
      if (x.is_value()) kept_.insert(x.value());
  }

  // ---- the walk

  BodyPtr body(const Body& source, std::set<Value> scope, bool is_loop) {
    frames_.push_back({.bound = std::move(scope), .is_loop = is_loop, .out = {}, .copies = {}});
    for (const Stm& stm : source.stms) statement(stm);
    BodyPtr made = make_body(std::move(frames_.back().out), source.results);
    frames_.pop_back();
    return made;
  }

  void statement(const Stm& stm) {
    Stm next = stm;
    if (const Loop* loop = get_if<Loop>(stm)) {
      const std::set<Value> scope(loop->params.begin(), loop->params.end());
      next.op = map_bodies(stm.op, [&](const BodyPtr& inner) { return body(*inner, scope, true); });
    } else if (is_branch(stm.op)) {
      next.op = map_bodies(stm.op, [&](const BodyPtr& inner) { return body(*inner, {}, false); });
    } else if (is_thread_kernel(stm)) {
      if (!copies_in_order(next)) {
        inputs(next);
        results(next);
      }
    }
    frames_.back().bound.insert(stm.pattern.begin(), stm.pattern.end());
    frames_.back().out.push_back(std::move(next));
  }

  // ---- copies

  // The array that a view has with its dims in another order, the last one behind others: which of its dims the view's
  // are. Nothing where neighbours in the view lie within a cache line.
  struct Reordered {
    Value base;
    std::vector<std::size_t> order;
  };
  std::optional<Reordered> reordered(Value view) const {
    const Type& type = values_.type(view);
    const Layout* layout = layouts_.find(view);
    if (layout == nullptr || type.rank() < 2 || layout->lmad.offset() != Poly(0) || apart_.contains(layout->base))
      return std::nullopt;
    const std::vector<Poly>& shape = values_.type(layout->base).shape;
    if (shape.size() != type.rank()) return std::nullopt;
    const std::vector<Poly> strides = Lmad::row_major(shape).strides();
    Reordered result{layout->base, {}};
    std::set<std::size_t> left;
    for (std::size_t d = 0; d < shape.size(); ++d) left.insert(d);
    for (const LmadDim& dim : layout->lmad.dims()) {
      const auto same = [&](std::size_t d) { return shape[d] == dim.size && strides[d] == dim.stride; };
      const auto found = std::ranges::find_if(left, same);
      if (found == left.end()) return std::nullopt;
      result.order.push_back(*found);
      left.erase(found);
    }
    if (result.order.back() + 1 == shape.size() || byte_size(type.element) == 0) return std::nullopt;
    const auto stride = strides[result.order.back()].constant();
    if (stride && within_line(*stride, type.element)) return std::nullopt;
    return result;
  }

  // A kernel that only copies an array into another order of its dims goes through tiles.
  bool copies_in_order(Stm& stm) {
    const SegOp& kernel = std::get<SegOp>(stm.op);
    if (kernel.body->stms.size() != 1 || stm.pattern.size() != 1) return false;
    const Stm& read = kernel.body->stms.front();
    const Index* index = get_if<Index>(read);
    if (index == nullptr || index->checked || !values_.type(read.pattern.front()).is_scalar() ||
        kernel.body->results.front() != Operand(read.pattern.front()) || index->dims.size() != kernel.space.size())
      return false;
    const Type& source = values_.type(index->array);
    std::optional<Reordered> view = reordered_or_whole(index->array);
    if (!view) return false;
    // Dim k of the result is that of the array which index k of the space is for.
    std::vector<std::size_t> order;
    for (const SegDim& dim : kernel.space) {
      const auto reads = [&](const DimIndex& at) { return !at.count && at.start == Poly(dim.index); };
      const auto found = std::ranges::find_if(index->dims, reads);
      if (found == index->dims.end()) return false;
      const auto d = static_cast<std::size_t>(found - index->dims.begin());
      if (source.shape[d] != dim.bound) return false;
      order.push_back(view->order[d]);
    }
    const std::set<std::size_t> all(order.begin(), order.end());
    const std::vector<Poly>& shape = values_.type(view->base).shape;
    if (all.size() != shape.size() || order.back() + 1 == shape.size()) return false;
    const auto stride = Lmad::row_major(shape).strides()[order.back()].constant();
    if (stride && within_line(*stride, source.element)) return false;
    Builder host(values_);
    host.set_location(stm.location);
    stm.op = coalesce::transposition(view->base, order, shape.size() - 1, host);
    in_tiles(stm, view->base);
    return true;
  }

  // The same for any order, or for the array itself.
  std::optional<Reordered> reordered_or_whole(Value array) const {
    const Layout* layout = layouts_.find(array);
    if (layout == nullptr || apart_.contains(layout->base) || byte_size(values_.type(array).element) == 0)
      return std::nullopt;
    if (layout->base != array) return reordered(array);
    Reordered whole{array, {}};
    for (std::size_t d = 0; d < values_.type(array).rank(); ++d) whole.order.push_back(d);
    return whole;
  }

  // A result that is a view of an array in another order is copied anyway.
  BodyPtr returned_views(BodyPtr made) {
    std::vector<Operand> results = made->results;
    std::vector<Stm> stms = made->stms;
    bool any = false;
    for (Operand& result : results) {
      if (!result.is_value() || !values_.type(result.value()).is_array()) continue;
      const std::optional<Reordered> view = reordered(result.value());
      if (!view) continue;
      const Type& type = values_.type(result.value());
      const Value dense = values_.add(Type::array(type.element, type.shape), values_.name(result.value()));
      Builder host(values_);
      const std::size_t partner = view->order.size() - 1;
      Stm copy{.pattern = {dense}, .op = coalesce::transposition(view->base, view->order, partner, host)};
      in_tiles(copy, view->base);
      stms.push_back(std::move(copy));
      result = Operand(dense);
      any = true;
    }
    return any ? make_body(std::move(stms), std::move(results)) : made;
  }

  void in_tiles(const Stm& stm, Value array) {
    changed_ = true;
    remark(RemarkKind::applied, "in-tiles", stm,
           fmt::format("'{}' is copied into another order of its dims in tiles, so that reads and writes coalesce",
                       values_.name(array)),
           {{"array", std::string(values_.name(array))}});
  }

  // The stride of one dim in memory.
  std::optional<Poly> stride_of(Value array, std::size_t dim) const {
    if (const auto apart = apart_.find(array); apart != apart_.end()) {
      const std::vector<Poly>& shape = values_.type(array).shape;
      Poly stride = 1;
      for (std::size_t d = dim + 1; d < (dim < apart->second ? apart->second : shape.size()); ++d) stride *= shape[d];
      if (dim >= apart->second)
        for (std::size_t d = 0; d < apart->second; ++d) stride *= shape[d];
      return stride;
    }
    const Layout* layout = layouts_.find(array);
    if (!layout || apart_.contains(layout->base)) return std::nullopt;
    return layout->lmad.dims()[dim].stride;
  }

  // Another dim than `dim`: that in which elements are neighbours, if there is one.
  std::size_t partner_of(Value array, std::size_t dim) const {
    const std::size_t rank = values_.type(array).rank();
    for (std::size_t d = 0; d < rank; ++d)
      if (const auto stride = stride_of(array, d); d != dim && stride && stride->is_one()) return d;
    return dim + 1 == rank ? rank - 2 : rank - 1;
  }

  void inputs(Stm& stm) {
    const SegOp& kernel = std::get<SegOp>(stm.op);
    const Value thread = kernel.space.back().index;
    Poly threads = 1;
    for (const SegDim& dim : kernel.space) threads *= dim.bound;
    Substitution replaced;
    for (const auto& [array, accesses] : coalesce::reads_of(kernel, values_)) {
      const Pattern pattern = pattern_of(accesses, thread);
      using Kind = Pattern::Kind;
      if (pattern.kind == Kind::none || byte_size(values_.type(array).element) == 0) continue;
      const std::string name(values_.name(array));
      const Type& type = values_.type(array);
      if (pattern.kind != Kind::along) {
        if (type.rank() < 2) continue;  // there is but one order
        const char* why = pattern.kind == Kind::indirect ? "its index is computed in the thread"
                          : pattern.kind == Kind::strided
                              ? "neighbouring threads skip elements"
                              : "neighbouring threads differ in several dims, or here in one "
                                "and there in another";
        const char* code = pattern.kind == Kind::indirect  ? "indirect"
                           : pattern.kind == Kind::strided ? "strided"
                                                           : "several-dims";
        remark(RemarkKind::missed, code, stm, fmt::format("'{}' stays as it is: {}", name, why), {{"array", name}});
        continue;
      }
      const std::optional<Poly> stride = stride_of(array, pattern.dim);
      if (!stride) {
        remark(RemarkKind::missed, "layout-unknown", stm, fmt::format("no index function says how '{}' lies", name),
               {{"array", name}});
        continue;
      }
      if (*stride == Poly(1) || *stride == Poly(-1) || type.rank() < 2) continue;
      inputs_apart(stm, array, pattern, *stride, threads, replaced);
    }
    if (replaced.empty()) return;
    stm.op = substitute(stm.op, replaced, values_);
    changed_ = true;
  }

  void inputs_apart(const Stm& stm, Value array, const Pattern& pattern, const Poly& stride, const Poly& threads,
                    Substitution& replaced) {
    const std::string name(values_.name(array));
    const Type type = values_.type(array);
    const std::int64_t width = byte_size(type.element);
    const auto constant = stride.constant();
    const auto text = [&](const Poly& p) { return p.to_string([&](Value v) { return std::string(values_.name(v)); }); };
    const Poly reads = threads * pattern.count;
    const Poly before = reads * Poly(kSector);
    const Poly after = reads * Poly(width) + product(type.shape) * Poly(2 * width);
    std::vector<std::pair<std::string, std::string>> facts = {{"array", name},
                                                              {"dim", std::to_string(pattern.dim)},
                                                              {"stride", text(stride)},
                                                              {"bytes-before", text(before)},
                                                              {"bytes-after", text(after)}};
    if (constant && within_line(*constant, type.element)) {
      remark(RemarkKind::missed, "short-rows", stm,
             fmt::format("'{}' stays as it is: what neighbouring threads read lies {} bytes apart, within a cache line",
                         name, std::abs(*constant) * width),
             std::move(facts));
      return;
    }
    // As far out as the array is known: loops do not copy it again and again.
    std::size_t level = frames_.size() - 1;
    const auto key = std::make_pair(array, pattern.dim);
    while (level > 0 && frames_[level].is_loop && !frames_[level].bound.contains(array)) --level;
    const auto known = [&]() -> std::optional<Value> {
      for (const Frame& frame : frames_)
        if (const auto found = frame.copies.find(key); found != frame.copies.end()) return found->second;
      return std::nullopt;
    }();
    if (!known && prove_non_negative(before - after, facts_) != Proof::yes) {
      remark(RemarkKind::missed, "does-not-pay", stm,
             fmt::format("'{}' stays as it is: a copy in another order may cost more than it saves", name),
             std::move(facts));
      return;
    }
    Value view;
    if (known) {
      view = *known;
      facts.emplace_back("copy", "shared");
    } else {
      Builder host(values_);
      host.set_location(stm.location);
      const Value moved = coalesce::moved_to_end(array, pattern.dim, partner_of(array, pattern.dim), host);
      std::vector<int> back(type.rank());
      for (std::size_t d = 0; d < type.rank(); ++d)
        back[d] = static_cast<int>(d < pattern.dim ? d : d == pattern.dim ? type.rank() - 1 : d - 1);
      view = host.rearrange(moved, back, name);
      for (Stm& made : host.take()) frames_[level].out.push_back(std::move(made));
      frames_[level].copies[key] = view;
    }
    replaced.insert_or_assign(array, Operand(view));
    remark(RemarkKind::applied, "transposed", stm,
           fmt::format("'{}' is read from a copy in which dim {} comes last: neighbouring threads differ there", name,
                       pattern.dim),
           std::move(facts));
  }

  // Rows that threads return, one array element of all threads after the other.
  void results(Stm& stm) {
    const SegOp& kernel = std::get<SegOp>(stm.op);
    const std::size_t rank = kernel.space.size();
    bool any = false;
    for (const Value v : stm.pattern) {
      const Type& type = values_.type(v);
      if (type.rank() <= rank) continue;
      any = true;
      const std::string name(values_.name(v));
      const Poly row = product(type.row(rank).shape);
      if (row.constant() && within_line(*row.constant(), type.element)) {
        remark(RemarkKind::missed, "short-rows", stm,
               fmt::format("the rows of '{}' are stored together: each has {} bytes", name,
                           *row.constant() * byte_size(type.element)),
               {{"array", name}});
        return;
      }
      if (kept_.contains(v)) {
        remark(RemarkKind::missed, "rows-kept", stm,
               fmt::format("the rows of '{}' are stored together: it is returned, or read not by threads alone", name),
               {{"array", name}});
        return;
      }
      const auto readers = readers_.find(v);
      if (readers == readers_.end()) continue;
      for (const Pattern& pattern : readers->second) {
        const bool apart =
            pattern.kind == Pattern::Kind::none || (pattern.kind == Pattern::Kind::along && pattern.dim + 1 == rank);
        if (apart) continue;
        remark(RemarkKind::missed, "rows-kept", stm,
               fmt::format("the rows of '{}' are stored together: a kernel reads along them", name), {{"array", name}});
        return;
      }
    }
    if (!any || has_attribute(stm.attributes, attribute::interleaved)) return;
    stm.attributes.push_back(make_attribute(attribute::interleaved));
    changed_ = true;
    for (const Value v : stm.pattern) {
      if (values_.type(v).rank() <= rank) continue;
      apart_[v] = rank;
      remark(RemarkKind::applied, "rows-apart", stm,
             fmt::format("the rows of '{}' are stored an element of all threads after the other", values_.name(v)),
             {{"array", std::string(values_.name(v))}});
    }
  }

  void remark(RemarkKind kind, const char* code, const Stm& stm, std::string message,
              std::vector<std::pair<std::string, std::string>> facts) const {
    if (!context_.remarks) return;
    // Of the ways to compute a contraction this one may not run.
    const bool is_variant = has_attribute(stm.attributes, attribute::untiled);
    if (is_variant) message = "where the contraction is not tiled, " + message;
    if (is_variant && kind == RemarkKind::applied) kind = RemarkKind::analysis;
    context_.remark({.kind = kind,
                     .pass = "coalesce",
                     .code = code,
                     .location = stm.location,
                     .function = function_.name,
                     .message = std::move(message),
                     .facts = std::move(facts)});
  }

  Function& function_;
  ValueTable& values_;
  const PassContext& context_;
  const Layouts layouts_;
  SizeFacts facts_;
  std::vector<Frame> frames_;
  std::set<Value> kept_;                           // read otherwise than by the threads of kernels
  std::map<Value, std::vector<Pattern>> readers_;  // of the kernels that read an array
  std::map<Value, std::size_t> apart_;             // arrays whose rows are apart: how many dims the threads have
  bool changed_ = false;
};

Result<Change> run(Module& module, PassContext& context) {
  return change_functions(module, [&](Function& function) { return Coalescer(function, context).run(); });
}

}  // namespace

PassInfo coalesce_pass() {
  PassInfo pass;
  pass.name = "coalesce";
  pass.summary = "lays arrays out so that neighbouring threads read neighbouring elements";
  pass.takes = stage_bit(Stage::kernel);
  pass.remark_codes = {
      {"transposed", "a kernel reads a copy of an array with its dims in another order"},
      {"in-tiles", "a copy of an array with its dims in another order goes through tiles"},
      {"rows-apart", "rows that threads return are stored an element of all threads after the other"},
      {"does-not-pay", "missed: the copy is not proved to move fewer bytes than it saves"},
      {"short-rows", "missed: what neighbouring threads read or write lies within a cache line"},
      {"several-dims",
       "missed: neighbouring threads differ in several dims of the array, or now in one, now in another"},
      {"strided", "missed: neighbouring threads skip elements in any order of the dims"},
      {"indirect", "missed: the index is computed in the thread"},
      {"layout-unknown", "missed: no index function says how the array lies"},
      {"rows-kept", "missed: the array of rows is returned, or read along its rows"},
  };
  pass.run = run;
  return pass;
}

}  // namespace apl
