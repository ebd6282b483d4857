// Decides at each allocation of the host, in the order of the text, where its arrays lie instead. In this order:
//
//   at-target  the array is yielded by a loop or branch: it is made where it goes, if nobody reads there any more
//   in-place   a kernel makes it, and an input that dies there has its shape and is read at the own index alone
//   reused     a block is dead, of this body or one around it, and is surely not smaller
//   hoisted    the size is known before the loop: allocated there, once
//
// A block is dead after the last statement of its body that mentions an array in it; what is yielded or returned
// lives to the end. A block that another body lends is dead there while that body's statement runs.
// What a loop or branch yields may be exchanged with its target (docs/passes.md): blocks that are, have one size, so
// that whichever lies behind a name is large enough. Blocks that are values themselves (parameters and results of loops
// that change sizes) are left alone.
#include "passes/place_memory/reuse.h"

#include <fmt/format.h>
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <set>

#include "ir/walk.h"
#include "passes/place_memory/kernel_arrays.h"
#include "passes/place_memory/known_sizes.h"

namespace apl::memory {
namespace {

// Dead blocks of other sizes that are compared with one that is wanted: each is a question to the prover.
constexpr std::size_t kMostTried = 32;

const Alloc* host_allocation(const Stm& stm) {
  const Alloc* alloc = get_if<Alloc>(stm);
  return alloc && alloc->space == Space::global ? alloc : nullptr;
}

bool is_host_nest(const Stm& stm) { return get_if<Loop>(stm) || is_branch(stm.op); }

class Reuser {
 public:
  Reuser(Function& function, const PassContext& context)
      : function_(function), values_(function.values), context_(context) {}

  void run() {
    for (std::uint32_t id = 0; id < values_.size(); ++id)
      if (const MemoryBinding* where = binding(Value{id})) arrays_on_[where->block].push_back(Value{id});
    prepare(*function_.body);
    for (auto& [from, targets] : yields_to_)
      for (auto& [to, loose] : targets)
        loose = !bytes_.contains(from) || !bytes_.contains(to) || bytes_.at(from) != bytes_.at(to);
    for (const Value size : function_.sizes) sizes_.non_negative(size);
    for (const Value param : function_.params) learn(param);
    function_.body = body(*function_.body, Kind::function, nullptr);
  }

 private:
  enum class Kind : std::uint8_t { function, loop, branch };

  // Blocks, and those of a size.
  struct Dead {
    std::set<Value> blocks;
    std::map<Poly, std::set<Value>> by_size;

    void insert(Value block, const Poly& size) { blocks.insert(block), by_size[size].insert(block); }
    void erase(Value block, const Poly& size) { blocks.erase(block), by_size[size].erase(block); }
  };

  // A body that is being walked.
  struct Frame {
    const Body* body;
    Kind kind;
    const Stm* stm;                            // the loop or branch
    KnownSizes::Mark known;                    // before the body
    std::vector<std::set<Value>> arrays;       // that each statement mentions
    std::map<Value, std::size_t> first, last;  // where the body mentions each block's arrays; results count as the end
    std::map<Value, std::vector<std::size_t>> results;  // that lie in each block
    std::map<std::size_t, KernelArrays> kernels;        // those that blocks are being placed for
    std::vector<Stm> out;
    std::set<Value> owned;  // blocks allocated here, or lent to this body
    Dead dead;              // those of them that may serve again
    std::set<Value> bound;  // by the body and its statements, nested ones included
    std::size_t at = 0;
  };

  const MemoryBinding* binding(Value v) const { return values_.type(v).memory.get(); }
  Value block_of(const Operand& x) const {
    const MemoryBinding* where = x.is_value() ? binding(x.value()) : nullptr;
    return where ? where->block : Value{};
  }

  void learn(Value array) {
    if (!values_.type(array).is_array()) return;
    for (const Poly& size : values_.type(array).shape) sizes_.non_negative(size);
  }

  // Sizes of allocations, and which blocks are exchanged or values themselves.
  void prepare(const Body& body) {
    for (const Stm& stm : body.stms) {
      if (const Alloc* alloc = host_allocation(stm)) bytes_[stm.pattern.front()] = alloc->bytes;
      if (!is_host_nest(stm)) continue;
      const auto yield = [&](const Operand& from, Value to) {
        if (values_.type(to).is_memory()) {
          fixed_.insert(to);
          if (from.is_value()) fixed_.insert(from.value());
        }
        const Value source = block_of(from), target = block_of(to);
        if (source && target && source != target) add_yield(source, target, false);
      };
      if (const Loop* loop = get_if<Loop>(stm)) {
        for (const auto& [param, initial, result, made] :
             ranges::views::zip(loop->params, loop->initial, loop->body->results, stm.pattern)) {
          yield(initial, param);
          yield(result, param);
          yield(param, made);
        }
      } else {
        for (std::size_t k = 0; k < stm.pattern.size(); ++k)
          for (const BodyPtr& branch : branches(stm.op)) yield(branch->results[k], stm.pattern[k]);
      }
      for_each_body(stm.op, [&](const BodyPtr& inner) { prepare(*inner); });
    }
  }

  // Blocks are exchanged pair by pair; a pair of unlike sizes is loose: copied, never exchanged.
  void add_yield(Value from, Value to, bool loose) {
    bool& known = yields_to_[from].try_emplace(to, false).first->second;
    known = known || loose;
    yielded_by_[to].insert(from);
  }

  // Exchanged with a block of the same size: it can only be exchanged for one of exactly that size.
  bool is_exchanged(Value block) const {
    if (const auto targets = yields_to_.find(block); targets != yields_to_.end())
      for (const auto& [to, loose] : targets->second)
        if (!loose) return true;
    const auto sources = yielded_by_.find(block);
    return sources != yielded_by_.end() &&
           std::ranges::any_of(sources->second, [&](Value from) { return !yields_to_.at(from).at(block); });
  }

  // ---- the walk

  void arrays_in(const Stm& stm, std::set<Value>& arrays, std::set<Value>* bound) const {
    const auto note = [&](Value v) {
      if (binding(v)) arrays.insert(v);
    };
    for_each_use(stm.op, note);
    const auto bind = [&](Value v) {
      note(v);
      if (bound) bound->insert(v);
    };
    for (const Value v : stm.pattern) bind(v);
    for_each_binder(stm.op, bind);
    for_each_body(stm.op, [&](const BodyPtr& inner) {
      for (const Stm& s : inner->stms) arrays_in(s, arrays, bound);
      for (const Operand& x : inner->results)
        if (x.is_value()) note(x.value());
    });
  }

  BodyPtr body(const Body& source, Kind kind, const Stm* around) {
    Frame made{.body = &source, .kind = kind, .stm = around, .known = sizes_.mark()};
    made.arrays.resize(source.stms.size());
    for (std::size_t k = 0; k < source.stms.size(); ++k) {
      arrays_in(source.stms[k], made.arrays[k], &made.bound);
      for (const Value v : made.arrays[k]) {
        made.first.emplace(binding(v)->block, k);
        made.last[binding(v)->block] = k;
      }
    }
    for (std::size_t k = 0; k < source.results.size(); ++k) {
      const Value block = block_of(source.results[k]);
      if (!block) continue;
      made.last[block] = source.stms.size();
      made.results[block].push_back(k);
    }
    frames_.push_back(std::move(made));
    for (std::size_t k = 0; k < source.stms.size(); ++k) statement(source.stms[k], k);
    BodyPtr result = make_body(std::move(frames_.back().out), source.results);
    sizes_.release(frames_.back().known);
    frames_.pop_back();
    return result;
  }

  void statement(const Stm& stm, std::size_t k) {
    frames_.back().at = k;
    if (const Alloc* alloc = host_allocation(stm)) {
      const Value block = stm.pattern.front();
      if (!fixed_.contains(block) && serve(block, alloc->bytes)) return;
      if (!fixed_.contains(block) && hoist(stm)) return;
      frames_.back().out.push_back(stm);
      if (!fixed_.contains(block)) frames_.back().owned.insert(block);
      return;
    }
    Stm done = stm;
    if (is_host_nest(stm)) {
      const Kind kind = get_if<Loop>(stm) ? Kind::loop : Kind::branch;
      done.op = map_bodies(stm.op, [&](const BodyPtr& inner) { return body(*inner, kind, &stm); });
    }
    if (copies_in_place(stm)) done.op = Use{*copied_from(stm)};
    Frame& frame = frames_.back();
    frame.kernels.erase(k);
    frame.out.push_back(std::move(done));
    for (const Value v : stm.pattern) learn(v);
    for (const Value v : frame.arrays[k]) {
      const Value block = binding(v)->block;
      if (frame.owned.contains(block) && last_use(frame, block) == k) frame.dead.insert(block, bytes_.at(block));
    }
  }

  static constexpr std::size_t kNever = static_cast<std::size_t>(-1);

  static std::size_t last_use(const Frame& frame, Value block) {
    const auto found = frame.last.find(block);
    return found == frame.last.end() ? kNever : found->second;
  }
  static std::size_t first_use(const Frame& frame, Value block) {
    const auto found = frame.first.find(block);
    return found == frame.first.end() ? kNever : found->second;
  }

  // All that lies in `from` lies in `to`.
  void merge(Value from, Value to) {
    std::vector<Value> moved = std::move(arrays_on_[from]);
    arrays_on_.erase(from);
    for (const Value v : moved) {
      Type type = values_.type(v);
      type.memory = std::make_shared<const MemoryBinding>(MemoryBinding{to, binding(v)->layout});
      values_.set_type(v, std::move(type));
      arrays_on_[to].push_back(v);
    }
    for (Frame& frame : frames_) {
      const auto fold = [&](std::map<Value, std::size_t>& uses, const auto& better) {
        const auto old = uses.extract(from);
        if (old.empty()) return;
        const auto [place, is_new] = uses.emplace(to, old.mapped());
        if (!is_new) place->second = better(place->second, old.mapped());
      };
      fold(frame.first, [](std::size_t a, std::size_t b) { return std::min(a, b); });
      fold(frame.last, [](std::size_t a, std::size_t b) { return std::max(a, b); });
    }
    for (Frame& frame : frames_) {
      for (auto& [at, kernel] : frame.kernels) kernel.merge(from, to);
      const auto results = frame.results.extract(from);
      if (results.empty()) continue;
      std::vector<std::size_t>& all = frame.results[to];
      all.insert(all.end(), results.mapped().begin(), results.mapped().end());
    }
    // Who was exchanged with the one is exchanged with the other.
    if (const auto targets = yields_to_.extract(from); !targets.empty())
      for (const auto& [target, loose] : targets.mapped()) {
        yielded_by_[target].erase(from);
        if (target != to) add_yield(to, target, loose);
      }
    if (const auto sources = yielded_by_.extract(from); !sources.empty())
      for (const Value source : sources.mapped()) {
        const auto old = yields_to_[source].extract(from);
        if (source != to) add_yield(source, to, old.mapped());
      }
  }

  // Whether the block's arrays lie in another block from now on.
  bool serve(Value block, const Poly& bytes) {
    Frame& frame = frames_.back();
    const std::size_t first = first_use(frame, block);
    if (first >= frame.body->stms.size()) return false;
    const Stm& maker = frame.body->stms[first];
    const std::string name = std::string(values_.name(block));
    if (const Value target = target_of(frame, block, bytes, first)) {
      remark(RemarkKind::applied, "at-target", maker, block,
             fmt::format("'{}' is made in the block '{}', into which it is yielded", what(name),
                         what(values_.name(target))),
             bytes);
      merge(block, target);
      return true;
    }
    const bool exact = is_exchanged(block) || is_result(frame, block);
    const auto fits = [&](Value other) {
      const Poly& capacity = bytes_.at(other);
      if (capacity == bytes) return true;
      return !exact && sizes_.surely_non_negative(capacity - bytes);
    };
    if (overwrite(frame, first, block, fits)) return true;
    for (std::size_t level = frames_.size(); level-- > 0;) {
      const Value best = dead_block(frames_[level].dead, bytes, fits);
      if (!best) continue;
      remark(RemarkKind::applied, "reused", maker, block,
             fmt::format("'{}' lies in the block '{}', which is dead", what(name), what(values_.name(best))), bytes);
      frames_[level].dead.erase(best, bytes_.at(best));
      for (std::size_t inner = level + 1; inner < frames_.size(); ++inner) frames_[inner].owned.insert(best);
      merge(block, best);
      return true;
    }
    return false;
  }

  // Whether the kernel writes the block's array over an input that ends there.
  bool overwrite(Frame& frame, std::size_t first, Value block, const std::function<bool(Value)>& fits) {
    KernelArrays& kernel = kernel_at(frame, first);
    const Value result = kernel.only_result(block);
    if (!result) return false;
    const Stm& maker = frame.body->stms[first];
    const Poly& bytes = bytes_.at(block);
    std::list<Value>& inputs = kernel.candidates(values_.type(result).element);
    for (auto at = inputs.begin(); at != inputs.end();) {
      const Value input = *at;
      const Value other = block_of(input);
      const bool ends = frame.owned.contains(other) && last_use(frame, other) == first;
      // What does not end here will not for another result either; nor will it be read otherwise.
      const bool never = !ends || (!context_.remarks && !kernel.reads_own_index(input));
      at = never ? inputs.erase(at) : std::next(at);
      if (never || other == block || binding(input)->layout != binding(result)->layout || !fits(other)) continue;
      if (!kernel.reads_own_index(input)) {
        remark(RemarkKind::missed, "read-elsewhere", maker, block,
               fmt::format("'{}' is not written over '{}', which ends here: other indices read it",
                           what(values_.name(block)), values_.name(input)),
               bytes);
        continue;
      }
      remark(RemarkKind::applied, "in-place", maker, block,
             fmt::format("'{}' is written over '{}', which ends here", what(values_.name(block)), values_.name(input)),
             bytes);
      merge(block, other);
      return true;
    }
    return false;
  }

  KernelArrays& kernel_at(Frame& frame, std::size_t at) const {
    const auto found = frame.kernels.find(at);
    if (found != frame.kernels.end()) return found->second;
    return frame.kernels.emplace(at, KernelArrays(frame.body->stms[at], frame.arrays[at], values_)).first->second;
  }

  // The oldest of that size, else the oldest that fits; of many, the last ones alone are asked.
  static Value dead_block(const Dead& dead, const Poly& bytes, const std::function<bool(Value)>& fits) {
    const auto same = dead.by_size.find(bytes);
    if (same != dead.by_size.end() && !same->second.empty()) return *same->second.begin();
    auto from = dead.blocks.end();
    for (std::size_t k = 0; k < kMostTried && from != dead.blocks.begin(); ++k) --from;
    const auto found = std::find_if(from, dead.blocks.end(), fits);
    return found == dead.blocks.end() ? Value{} : *found;
  }

  // The allocation before the outermost loop where its size is known.
  bool hoist(const Stm& stm) {
    const Poly& bytes = std::get<Alloc>(stm.op).bytes;
    const Value block = stm.pattern.front();
    std::size_t level = frames_.size() - 1;
    std::string why;
    while (level > 0 && frames_[level].kind == Kind::loop) {
      const Frame& frame = frames_[level];
      const auto in_loop = [&](Value v) {
        const Loop& loop = std::get<Loop>(frame.stm->op);
        return frame.bound.contains(v) || v == loop.index || std::ranges::find(loop.params, v) != loop.params.end();
      };
      bytes.for_each_symbol([&](Value v) {
        if (why.empty() && in_loop(v)) why = fmt::format("its size depends on '{}'", values_.name(v));
      });
      // An allocation of fewer than no bytes fails; in the loop it may never be reached.
      if (why.empty() && !sizes_.surely_non_negative(bytes, frames_[level].known))
        why = "its size is not known to be none below 0 before the loop";
      if (!why.empty()) break;
      --level;
    }
    const Frame& frame = frames_.back();
    const std::size_t first = first_use(frame, block);
    const Stm& maker = first < frame.body->stms.size() ? frame.body->stms[first] : stm;
    if (level + 1 == frames_.size()) {
      if (!why.empty())
        remark(RemarkKind::missed, "allocated-in-loop", maker, block,
               fmt::format("the block of '{}' is allocated in the loop: {}", what(values_.name(block)), why), bytes);
      return false;
    }
    remark(RemarkKind::applied, "hoisted", maker, block,
           fmt::format("the block of '{}' is allocated once, before the loop", what(values_.name(block))), bytes);
    frames_[level].out.push_back(stm);
    for (; level < frames_.size(); ++level) frames_[level].owned.insert(block);
    return true;
  }

  // The block that the only result of the body in `block` is yielded to, if it can be made there.
  Value target_of(Frame& frame, Value block, const Poly& bytes, std::size_t first) const {
    if (frame.kind == Kind::function) return {};
    const Loop* loop = get_if<Loop>(*frame.stm);
    const std::vector<Value>& targets = loop ? loop->params : frame.stm->pattern;
    const auto results = frame.results.find(block);
    if (results == frame.results.end() || results->second.size() != 1) return {};
    const Value result = frame.body->results[results->second.front()].value();
    const Value target = targets[results->second.front()];
    if (!binding(target) || binding(target)->block == block) return {};
    const Value there = binding(target)->block;
    if (fixed_.contains(there) || binding(result)->layout != binding(target)->layout) return {};
    // The result may be a slice of what the block holds.
    const auto capacity = bytes_.find(there);
    if (capacity == bytes_.end() || capacity->second != bytes) return {};
    // Nobody needs what lies there, from where the result begins.
    const std::size_t last = last_use(frame, there);
    if (last == kNever || last < first) return there;
    if (last > first) return {};
    const KernelArrays& kernel = kernel_at(frame, first);
    const Value made = kernel.only_result(block);
    if (!made) return {};
    const bool own = std::ranges::any_of(kernel.inputs_on(there), [&](Value input) {
      return binding(input)->layout == binding(made)->layout &&
             values_.type(input).element == values_.type(made).element && kernel.reads_own_index(input);
    });
    return own ? there : Value{};
  }

  bool is_result(const Frame& frame, Value block) const {
    return frame.kind == Kind::function && last_use(frame, block) == frame.body->stms.size();
  }

  // The array of which the kernel is nothing but a copy.
  std::optional<Value> copied_from(const Stm& stm) const {
    const SegOp* kernel = get_if<SegOp>(stm);
    if (!kernel || stm.pattern.size() != 1 || kernel->body->stms.size() != 1) return std::nullopt;
    const Index* index = get_if<Index>(kernel->body->stms.front());
    const Operand& result = kernel->body->results.front();
    if (!index || !result.is_value() || result.value() != kernel->body->stms.front().pattern.front())
      return std::nullopt;
    return index->array;
  }
  bool copies_in_place(const Stm& stm) const {
    const auto source = copied_from(stm);
    if (!source || !binding(stm.pattern.front()) || !binding(*source) ||
        *binding(*source) != *binding(stm.pattern.front()))
      return false;
    std::set<Value> arrays;
    arrays_in(stm, arrays, nullptr);
    return KernelArrays(stm, arrays, values_).reads_own_index(*source);
  }

  static std::string what(std::string_view block) {
    if (block.ends_with("_mem")) block.remove_suffix(4);
    return std::string(block);
  }

  void remark(RemarkKind kind, const char* code, const Stm& at, Value block, std::string message, const Poly& bytes) {
    if (!context_.remarks) return;
    const auto name_of = [&](Value v) { return std::string(values_.name(v)); };
    context_.remark({.kind = kind,
                     .pass = "place-memory",
                     .code = code,
                     .location = at.location,
                     .function = function_.name,
                     .message = std::move(message),
                     .facts = {{"array", what(values_.name(block))}, {"bytes", bytes.to_string(name_of)}}});
  }

  Function& function_;
  ValueTable& values_;
  const PassContext& context_;
  std::vector<Frame> frames_;
  KnownSizes sizes_;
  std::map<Value, std::vector<Value>> arrays_on_;  // by block
  std::map<Value, Poly> bytes_;                    // of what the host allocates
  std::set<Value> fixed_;                          // blocks that are parameters or results
  // Block to block, by loops and branches, and whether the pair is loose; and the other way round.
  std::map<Value, std::map<Value, bool>> yields_to_;
  std::map<Value, std::set<Value>> yielded_by_;
};

}  // namespace

void reuse_blocks(Function& function, const PassContext& context) { Reuser(function, context).run(); }

}  // namespace apl::memory
