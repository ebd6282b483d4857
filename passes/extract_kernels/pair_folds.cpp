// Folds over pairs:
//
//   map(i < n) { let {x} = xs[i]  let {f} = redomap(j < m) { y = ys[j]  .. in g(x, y) } op  in after(f) }
// =>
//   segmap(block) (b_q < ceil_div(n, T_q*R_q)) {
//     x_r = xs[..]                                       private: R_q a thread
//     loop tile < ceil_div(m, T_k*R_k) {
//       y_r = ys[..]                                     R_k a thread
//       f = op(f, g(x_r, y_r) over all R_q x R_k pairs)  private: R_q a thread
//     }
//     return after(the f of the block's T_k threads of a query, folded)
//   }
//
// Every element that belongs to j alone is read once for R_q queries, and every one of i for all keys: the reuse that a
// contraction has. It is done where the element is made of a contraction (distances of points: a sum over their
// coordinates), whose tiles are in shared memory, as in a tiled kernel, and whose results are never written.
// Threads of a query take keys in turns, so that the operators have to commute.
#include "passes/extract_kernels/pair_folds.h"

#include <algorithm>
#include <set>

#include "ir/team.h"
#include "passes/extract_kernels/block_kernel.h"

namespace apl {
namespace {

// Default numbers: 8 x 32 threads with 8 queries each, and 4 keys; of a contraction 16 steps at once.
constexpr std::int64_t kFoldQueryThreads = 8, kFoldKeyThreads = 32, kFoldQueries = 8, kFoldKeys = 4, kDepth = 16;
// Blocks from which on it pays: with fewer, threads that share the keys of a query keep more of a GPU busy. On an H100
// 4 blocks take 1200 us where those take 575, and 32 blocks 153 (bench/thresholds_gpu.py): it is even at 9.
constexpr std::int64_t kLeastFoldBlocks = 12;

struct PairFold {
  Location location;
  Poly keys;
  Value key;                     // j in the code below
  std::vector<Stm> around;       // once a query
  std::vector<Stm> code;         // for a key: what is folded
  std::vector<Operand> results;  // of the code
  std::optional<Stm> contraction;
  std::vector<ReduceOp> reduces;
  std::vector<Value> folded;  // what the reduction gives, in the code behind
  std::vector<Stm> after;
  std::vector<Operand> returned;
  std::set<Value> by_key, by_query;  // values of the code that differ by one of the two, or by both
};

bool is_plain(const Stm& stm, const ValueTable& values) {
  if (can_fail(stm.op, values) || !stm.certificates.empty()) return false;
  const bool view = get_if<Index>(stm) || get_if<Rearrange>(stm) || get_if<Reshape>(stm);
  bool plain = !get_if<Loop>(stm) && !get_if<Screma>(stm) && !get_if<Scatter>(stm);
  for (const Value v : stm.pattern) plain = plain && (values.type(v).is_scalar() || view);
  for_each_body(stm.op, [&](const BodyPtr& inner) {
    for_each_stm(*inner, [&](const Stm& each) { plain = plain && !get_if<Index>(each) && is_plain(each, values); });
  });
  return plain;
}

std::optional<PairFold> match_fold(const Stm& flat, ValueTable& values) {
  const Screma& map = std::get<Screma>(flat.op);
  const Body& body = *map.map.body;
  if (map.indices.empty()) return std::nullopt;
  PairFold fold;
  fold.location = flat.location;
  fold.key = values.add(Type::scalar(ScalarType::i64), "j");
  const Stm* reduction = nullptr;
  std::set<Value> bound(map.indices.begin(), map.indices.end());
  for (const Stm& stm : body.stms) {
    bound.insert(stm.pattern.begin(), stm.pattern.end());
    if (const Screma* screma = get_if<Screma>(stm)) {
      if (reduction != nullptr || screma->reduces.empty() || screma->scans() || screma->widths.size() != 1 ||
          screma->reduced_count() != stm.pattern.size() || !folds_in_any_order(*screma) || !stm.certificates.empty() ||
          !stm.attributes.empty())
        return std::nullopt;
      reduction = &stm;
      continue;
    }
    if (!is_plain(stm, values)) return std::nullopt;
    (reduction == nullptr ? fold.around : fold.after).push_back(stm);
  }
  if (reduction == nullptr) return std::nullopt;
  const Screma& screma = std::get<Screma>(reduction->op);
  fold.keys = screma.widths[0];
  if (fold.keys.constant().value_or(kFoldKeyThreads * kFoldKeys) < kFoldKeyThreads * kFoldKeys) return std::nullopt;
  bool known = true;
  fold.keys.for_each_symbol([&](Value v) { known = known && !bound.contains(v); });
  for (const Operand& result : body.results) known = known && values.type(result).is_scalar();
  for (const ReduceOp& reduce : screma.reduces) {
    for (const Operand& neutral : reduce.neutral)
      known = known && values.type(neutral).is_scalar() && !(neutral.is_value() && bound.contains(neutral.value()));
    for (const Value v : free_values(reduce.op, values)) known = known && !bound.contains(v);
    for (const Stm& stm : reduce.op.body->stms) known = known && is_plain(stm, values) && !get_if<Index>(stm);
  }
  if (!known) return std::nullopt;
  // The code for one key.
  Builder code(values);
  Substitution here;
  here.insert_or_assign(screma.indices[0], Operand(fold.key));
  for (std::size_t k = 0; k < screma.inputs.size(); ++k)
    here.insert_or_assign(
        screma.map.params[k],
        Operand(code.let(values.name(screma.map.params[k]), Index{screma.inputs[k], {DimIndex::fix(Poly(fold.key))}})));
  const BodyPtr copy = copy_fresh(screma.map.body, here, values, values);
  code.append_all(copy->stms);
  fold.code = code.take();
  fold.results = copy->results;
  fold.reduces = screma.reduces;
  fold.folded = reduction->pattern;
  fold.returned = body.results;
  // What differs by what.
  fold.by_key.insert(fold.key);
  fold.by_query.insert(map.indices.back());
  const auto note = [&](const Stm& stm) {
    for (const Value v : free_values(stm.op, values)) {
      if (fold.by_key.contains(v)) fold.by_key.insert(stm.pattern.begin(), stm.pattern.end());
      if (fold.by_query.contains(v)) fold.by_query.insert(stm.pattern.begin(), stm.pattern.end());
    }
  };
  for (const Stm& stm : fold.around) note(stm);
  for (const Stm& stm : fold.code) {
    note(stm);
    if (const Screma* inner = get_if<Screma>(stm)) {
      if (fold.contraction || inner->reduces.size() != 1 || inner->scans() || stm.pattern.size() != 1 ||
          inner->reduces[0].neutral.size() != 1 || !values.type(stm.pattern[0]).is_scalar() ||
          !stm.certificates.empty())
        return std::nullopt;
      fold.contraction = stm;
    } else if (!is_plain(stm, values)) {
      return std::nullopt;
    }
  }
  for (const Operand& result : fold.results)
    if (!values.type(result).is_scalar() || values.type(result).element == ScalarType::unit) return std::nullopt;
  return fold;
}

class FoldKernel : BlockKernel {
 public:
  FoldKernel(const Stm& flat, const PairFold& fold, const Contraction* contraction, ValueTable& values)
      : BlockKernel(std::get<Screma>(flat.op).indices, std::get<Screma>(flat.op).widths, values),
        flat_(flat),
        fold_(fold),
        contraction_(contraction) {}

  Stm run(const std::string& prefix, Builder& host) {
    const auto number = [&](const char* name, SizeClass size_class, std::int64_t usual) {
      return Poly(host.let(name, GetSize{prefix + "." + name, size_class, usual}));
    };
    threads_ = number("T_k", SizeClass::tile_size, kFoldKeyThreads);
    query_threads_ = number("T_q", SizeClass::tile_size, kFoldQueryThreads);
    queries_ = number("R_q", SizeClass::reg_tile_size, kFoldQueries);
    keys_ = number("R_k", SizeClass::reg_tile_size, kFoldKeys);
    if (contraction_ != nullptr) depth_ = number("T_d", SizeClass::tile_size, kDepth);
    sort_code();
    SegOp kernel{.level = SegLevel::block};
    outer_space(kernel, contraction_ != nullptr ? std::vector{contraction_} : std::vector<const Contraction*>{});
    const Value query = values_.add(Type::scalar(ScalarType::i64), "b_q");
    kernel.space.push_back({query, ceil_div(widths_.back(), query_threads_ * queries_)});
    first_query_ = Poly(query) * query_threads_ * queries_;
    kernel.body = host.body([&](Builder& block) {
      const std::vector<Value> results = whole(block);
      return std::vector<Operand>(results.begin(), results.end());
    });
    KernelResult result{KernelResult::Kind::regtile, {}};
    for (std::size_t w = 0; w < outer_; ++w) result.extents.push_back({widths_[w], 1, 1});
    result.extents.push_back({widths_.back(), query_threads_, queries_});
    kernel.results.assign(flat_.pattern.size(), result);
    std::vector<Value> pattern;
    for (const Value v : flat_.pattern) pattern.push_back(values_.add(values_.type(v), values_.name(v)));
    return {
        .pattern = pattern, .op = std::move(kernel), .location = flat_.location, .certificates = flat_.certificates};
  }

  Poly blocks() const {
    Poly blocks = ceil_div(widths_.back(), query_threads_ * queries_);
    for (std::size_t w = 0; w < outer_; ++w) blocks *= widths_[w];
    return blocks;
  }
  Poly tile() const { return threads_ * keys_; }

 private:
  // Code of keys alone, of queries alone, of both; and what the last needs of the others.
  void sort_code() {
    std::set<Value> pairs;
    std::vector<Stm> of_query;
    for (const Stm& stm : fold_.code) {
      if (fold_.contraction && stm.pattern == fold_.contraction->pattern) {
        pairs.insert(stm.pattern.begin(), stm.pattern.end());
        continue;
      }
      bool pair = false;
      for (const Value v : free_values(stm.op, values_)) pair = pair || pairs.contains(v);
      const Value first = stm.pattern.front();
      if (pair || (fold_.by_key.contains(first) && fold_.by_query.contains(first))) {
        pairs.insert(stm.pattern.begin(), stm.pattern.end());
        pair_code_.push_back(stm);
      } else {
        (fold_.by_key.contains(first) ? key_code_ : of_query).push_back(stm);
      }
    }
    query_code_ = fold_.around;
    append(query_code_, of_query);
    std::set<Value> read = read_by(pair_code_, values_);
    for (const Operand& result : fold_.results)
      if (result.is_value()) read.insert(result.value());
    const auto wanted = [&](const std::vector<Stm>& code) {
      std::vector<Value> rows;
      for (const Stm& stm : code)
        for (const Value v : stm.pattern)
          if (read.contains(v) && values_.type(v).is_scalar()) rows.push_back(v);
      return rows;
    };
    key_rows_ = wanted(key_code_);
    query_rows_ = wanted(query_code_);
    const auto only = [&](std::vector<Stm>& code, const std::vector<Value>& rows) {
      code = needed_for(code, {rows.begin(), rows.end()}, values_);
    };
    std::vector<Stm> both = query_code_;
    append(both, key_code_);
    only(both, key_rows_);
    key_code_ = std::move(both);  // what is the same for all keys is made again
    only(query_code_, query_rows_);
  }

  std::vector<Operand> zeros(const std::vector<Value>& rows) const {
    std::vector<Operand> result;
    for (const Value row : rows) result.emplace_back(Scalar::zero(values_.type(row).element));
    return result;
  }
  std::vector<std::string> names_of(const std::vector<Value>& rows) const {
    std::vector<std::string> names;
    for (const Value row : rows) names.push_back(values_.name(row));
    return names;
  }

  // `code` where the index is in range, zeros elsewhere.
  std::vector<Operand> guarded(Builder& inner, const Value& at, const Poly& bound, const std::vector<Stm>& code,
                               const std::vector<Value>& rows, const Substitution& here) {
    const Value inside = inner.compare(CompareOp::lt, at, size(inner, bound), "inside");
    const std::vector<Operand> wanted(rows.begin(), rows.end());
    const std::vector<Value> made = inner.if_else_many(
        names_of(rows), inside, [&](Builder& then) { return copied(then, code, wanted, here); },
        [&](Builder&) { return zeros(rows); });
    return {made.begin(), made.end()};
  }

  Value query_at(Builder& inner, const Thread& at, Value across) const {
    return inner.size(first_query_ + Poly(at.query) * queries_ + Poly(across), "query");
  }

  std::vector<Value> whole(Builder& block) {
    // Rows of queries, and where sums start.
    std::vector<Value> query_rows;
    if (!query_rows_.empty())
      query_rows = in_block(block, names_of(query_rows_), [&](Builder& thread, const Thread& at) {
        Results results;
        for (const Value row : each_query(thread, names_of(query_rows_), {}, [&](Builder&inner, BoundValues all) {
               const Value query = query_at(inner, at, all[0]);
               Substitution here = here_;
               here.insert_or_assign(indices_.back(), Operand(query));
               return guarded(inner, query, widths_.back(), query_code_, query_rows_, here);
             }))
          results.emplace_back(row, KernelResult::Kind::private_);
        return results;
      });
    const std::vector<Value> start = in_block(block, {"folded"}, [&](Builder& thread, const Thread&) {
      Results results;
      for (const ReduceOp& reduce : fold_.reduces)
        for (const Operand& neutral : reduce.neutral)
          results.emplace_back(thread.let("init", Replicate{{queries_}, neutral}), KernelResult::Kind::private_);
      return results;
    });
    std::vector<Tile> tiles;
    if (contraction_ != nullptr)
      for (const ContractionOperand& operand : contraction_->operands)
        tiles.push_back(
            operand.varies(outer_)
                ? make_tile(block, *contraction_, operand, outer_, query_threads_ * queries_, depth_, query_axis())
                : make_tile(block, *contraction_, operand, outer_ + 1, tile(), depth_, key_axis()));
    std::vector<Value> carried = start;
    for (const Tile& one : tiles) carried.push_back(one.shared);
    const std::vector<Value> done = loop_over(
        block, ceil_div(fold_.keys, tile()), carried, [&](Builder& body, Value index, std::vector<Value> now) {
          first_key_ = Poly(index) * tile();
          std::vector<Value> shared(now.begin() + static_cast<std::ptrdiff_t>(start.size()), now.end());
          Value products;
          if (contraction_ != nullptr) products = contracted(body, tiles, shared);
          now.resize(start.size());
          std::vector<Value> next = step(body, now, query_rows, products);
          next.insert(next.end(), shared.begin(), shared.end());
          return next;
        });
    return finish(block, {done.begin(), done.begin() + static_cast<std::ptrdiff_t>(start.size())});
  }

  std::vector<Value> loop_over(Builder& block, const Poly& bound, const std::vector<Value>& carried,
                               const std::function<std::vector<Value>(Builder&, Value, std::vector<Value>)>& fill) {
    Loop loop;
    loop.index = values_.add(Type::scalar(ScalarType::i64), "tile");
    loop.bound = bound;
    std::vector<Type> types;
    for (const Value v : carried) {
      loop.initial.emplace_back(v);
      loop.params.push_back(values_.add(values_.type(v), values_.name(v)));
      types.push_back(values_.type(v));
    }
    loop.body = block.body([&](Builder& body) {
      const std::vector<Value> next = fill(body, loop.index, loop.params);
      return std::vector<Operand>(next.begin(), next.end());
    });
    const std::vector<std::string> names = names_of(carried);
    return block.let_typed(names, types, std::move(loop));
  }

  // The contraction of the block's queries with a tile of keys, some steps of its depth at a time.
  Value contracted(Builder& body, const std::vector<Tile>& tiles, std::vector<Value>& shared) {
    const Value init = in_block(body, {"sums"}, [&](Builder& thread, const Thread&) {
      const Value zero = thread.let("init", Replicate{registers(keys_), contraction_->reduce.neutral[0]});
      return Results{{zero, KernelResult::Kind::private_}};
    })[0];
    std::vector<Value> carried{init};
    carried.insert(carried.end(), shared.begin(), shared.end());
    const Poly depth = contraction_->dims.back().size;
    std::vector<Value> done =
        loop_over(body, ceil_div(depth, depth_), carried, [&](Builder& inner, Value index, std::vector<Value> now) {
          const Poly first = Poly(index) * depth_;
          std::vector<TileOperand> operands;
          for (std::size_t k = 0; k < tiles.size(); ++k) {
            now[k + 1] = copy(inner, tiles[k], now[k + 1], tiles[k].dim == outer_ ? first_query_ : first_key_, first);
            operands.push_back({now[k + 1], tiles[k].axes});
          }
          now[0] = contract(inner, *contraction_, keys_, poly_min(depth_, depth - first), now[0], operands);
          return now;
        });
    shared.assign(done.begin() + 1, done.end());
    return done[0];
  }

  // One tile of keys.
  std::vector<Value> step(Builder& body, const std::vector<Value>& before, const std::vector<Value>& query_rows,
                          Value products) {
    return in_block(body, {"folded"}, [&](Builder& thread, const Thread& at) {
      const auto key_at = [&](Builder& inner, Value along) {
        return inner.size(first_key_ + Poly(at.along) * keys_ + Poly(along), "key");
      };
      std::vector<Value> key_rows;
      if (!key_rows_.empty())
        key_rows = thread.screma(names_of(key_rows_), {keys_}, {},
                                 [&](Builder& inner, BoundValues all) {
                                   const Value key = key_at(inner, all[0]);
                                   Substitution here = here_;
                                   here.insert_or_assign(fold_.key, Operand(key));
                                   return guarded(inner, key, fold_.keys, key_code_, key_rows_, here);
                                 },
                                 {});
      std::vector<Value> rows;
      for (const Value row : before) rows.push_back(thread.let("row", Index{row, at.own}));
      for (const Value row : query_rows) rows.push_back(thread.let("row", Index{row, at.own}));
      Value sums;
      if (products) sums = thread.let("row", Index{products, at.own});
      Results results;
      for (const Value row : each_query(thread, {"folded"}, rows, [&](Builder&inner, BoundValues all) {
             return pairs(inner, all, key_rows, sums, key_at);
           }))
        results.emplace_back(row, KernelResult::Kind::private_);
      return results;
    });
  }

  // What a thread's keys give for one of its queries, folded with what there is: `all` is the query's register, then
  // that, then elements of the rows of queries.
  std::vector<Operand> pairs(Builder& inner, BoundValues all, const std::vector<Value>& key_rows, Value sums,
                             const std::function<Value(Builder&, Value)>& key_at) {
    const std::size_t folded = fold_.results.size();
    std::vector<Operand> neutral;
    for (const ReduceOp& reduce : fold_.reduces)
      neutral.insert(neutral.end(), reduce.neutral.begin(), reduce.neutral.end());
    const std::vector<Value> part = inner.screma(
        {"part"}, {keys_}, key_rows,
        [&](Builder& pair, BoundValues keys) {
          Substitution here = here_;
          for (std::size_t k = 0; k < query_rows_.size(); ++k)
            here.insert_or_assign(query_rows_[k], Operand(all[1 + folded + k]));
          for (std::size_t k = 0; k < key_rows_.size(); ++k) here.insert_or_assign(key_rows_[k], Operand(keys[1 + k]));
          const Value key = key_at(pair, keys[0]);
          here.insert_or_assign(fold_.key, Operand(key));
          if (sums)
            here.insert_or_assign(fold_.contraction->pattern[0], Operand(register_of(pair, sums, keys[0], all[0])));
          const std::vector<Operand> made = copied(pair, pair_code_, fold_.results, here);
          const Value inside = pair.compare(CompareOp::lt, key, size(pair, fold_.keys), "inside");
          const std::vector<Value> counted = pair.if_else_many(
              {"x"}, inside, [&](Builder&) { return made; }, [&](Builder&) { return neutral; });
          return std::vector<Operand>(counted.begin(), counted.end());
        },
        fold_.reduces);
    return joined(inner, {all.begin() + 1, all.begin() + 1 + static_cast<std::ptrdiff_t>(folded)}, part);
  }

  // op(x, y) for each operator.
  std::vector<Operand> joined(Builder& inner, const std::vector<Value>& x, const std::vector<Value>& y) const {
    std::vector<Operand> results;
    std::size_t next = 0;
    for (const ReduceOp& reduce : fold_.reduces) {
      const auto from = static_cast<std::ptrdiff_t>(next),
                 to = from + static_cast<std::ptrdiff_t>(reduce.neutral.size());
      std::vector<Operand> arguments(x.begin() + from, x.begin() + to);
      arguments.insert(arguments.end(), y.begin() + from, y.begin() + to);
      for (const Operand& made : inline_lambda(reduce.op, arguments, values_, inner.stms())) results.push_back(made);
      next += reduce.neutral.size();
    }
    return results;
  }

  // What the threads of each query have, by way of shared memory, and the code behind; a thread a query does it.
  std::vector<Value> finish(Builder& block, const std::vector<Value>& folded) {
    const std::vector<Value> shared = in_block(block, {"parts"}, [&](Builder& thread, const Thread& at) {
      Results results;
      for (const Value row : folded)
        results.emplace_back(thread.let("row", Index{row, at.own}), KernelResult::Kind::returns);
      return results;
    });
    // Without the dim of keys, so that rows are tiles of the result.
    return in_queries(block, [&](Builder& thread, const std::vector<DimIndex>& own, Value query_thread) {
      (void)own;
      return thread.screma(
          {"out"}, one_row(), {},
          [&](Builder& inner, BoundValues all) {
            const Value across = all[outer_];
            Thread at{{}, Value{}, query_thread};
            const std::vector<Value> total = inner.screma(
                {"total"}, {threads_}, {},
                [&](Builder& k, BoundValues other) {
                  std::vector<Operand> elements;
                  for (const Value part : shared) elements.emplace_back(shared_by_query(k, part, other[0], at, across));
                  return elements;
                },
                fold_.reduces);
            const Value query = query_at(inner, at, across);
            Substitution here = here_;
            here.insert_or_assign(indices_.back(), Operand(query));
            for (std::size_t k = 0; k < total.size(); ++k) here.insert_or_assign(fold_.folded[k], Operand(total[k]));
            std::set<Value> read = read_by(fold_.after, values_);
            for (const Operand& result : fold_.returned)
              if (result.is_value()) read.insert(result.value());
            std::vector<Stm> code = needed_for(fold_.around, read, values_);
            append(code, fold_.after);
            const Value inside = inner.compare(CompareOp::lt, query, size(inner, widths_.back()), "inside");
            std::vector<Operand> zero;
            for (const Operand& result : fold_.returned) zero.emplace_back(Scalar::zero(values_.type(result).element));
            const std::vector<Value> out = inner.if_else_many(
                {"out"}, inside, [&](Builder& then) { return copied(then, code, fold_.returned, here); },
                [&](Builder&) { return zero; });
            return std::vector<Operand>(out.begin(), out.end());
          },
          {});
    });
  }

  std::vector<Poly> one_row() const {
    std::vector<Poly> shape(outer_, Poly(1));
    shape.push_back(queries_);
    return shape;
  }

  std::vector<Value> in_queries(
      Builder& block, const std::function<std::vector<Value>(Builder&, const std::vector<DimIndex>&, Value)>& fill) {
    SegOp threads{.level = SegLevel::inblock};
    std::vector<DimIndex> own;
    Value last;
    for (std::size_t w = 0; w <= outer_; ++w) {
      last = values_.add(Type::scalar(ScalarType::i64), w < outer_ ? "t" : "t_q");
      threads.space.push_back({last, w < outer_ ? Poly(1) : query_threads_});
      own.push_back(DimIndex::fix(Poly(last)));
    }
    threads.body = block.body([&](Builder& thread) {
      const std::vector<Value> rows = fill(thread, own, last);
      return std::vector<Operand>(rows.begin(), rows.end());
    });
    threads.results.assign(flat_.pattern.size(), {KernelResult::Kind::private_, {}});
    return block.let_many({"out"}, std::move(threads));
  }

  const Stm& flat_;
  const PairFold& fold_;
  const Contraction* contraction_;
  Poly depth_;
  std::vector<Stm> key_code_, query_code_, pair_code_;
  std::vector<Value> key_rows_, query_rows_;
};

}  // namespace

std::optional<TiledFold> tile_fold(const Stm& flat, const HostViews& views, const std::string& prefix,
                                   ValueTable& values) {
  const std::optional<PairFold> fold = match_fold(flat, values);
  if (!fold) return std::nullopt;
  const Screma& map = std::get<Screma>(flat.op);
  TiledFold result;
  std::set<std::string> reused;
  for (const Stm& stm : fold->code) {
    const Index* index = get_if<Index>(stm);
    if (index == nullptr || !values.type(stm.pattern[0]).is_scalar()) continue;
    const bool key = fold->by_key.contains(stm.pattern[0]), query = fold->by_query.contains(stm.pattern[0]);
    if (key && query) return std::nullopt;  // an element for one pair alone
    if (key) reused.insert(values.name(index->array));
  }
  std::optional<Contraction> contraction;
  if (fold->contraction) {
    std::vector<Stm> around = fold->around;
    append(around, fold->code);
    std::vector<std::pair<Value, Poly>> space;
    for (std::size_t k = 0; k < map.indices.size(); ++k) space.emplace_back(map.indices[k], map.widths[k]);
    space.emplace_back(fold->key, fold->keys);
    const auto match = match_reduction(around, space, *fold->contraction, views, values);
    if (!match || !std::holds_alternative<Contraction>(*match)) return std::nullopt;
    contraction = std::get<Contraction>(*match);
    if (unfit_for_tiles(*contraction, false)) return std::nullopt;
    for (const ContractionOperand& operand : contraction->operands)
      if (operand.varies(map.indices.size())) reused.insert(values.name(operand.base));
  }
  // Without a contraction inside, threads that share a query's keys read elements from the first cache as fast.
  if (!contraction || reused.empty()) return std::nullopt;
  result.reused.assign(reused.begin(), reused.end());
  result.queries = map.widths.back();
  result.keys = fold->keys;
  Builder host(values);
  host.set_location(flat.location);
  FoldKernel kernel(flat, *fold, contraction ? &*contraction : nullptr, values);
  const Value from = host.let("from", GetSize{prefix + ".from", SizeClass::threshold, kLeastFoldBlocks});
  Stm made = kernel.run(prefix, host);
  const Value many = host.compare(CompareOp::le, from, host.size(kernel.blocks(), "blocks"), "many");
  const Value long_enough =
      host.compare(CompareOp::le, host.size(kernel.tile(), "tile"), host.size(fold->keys, "keys"), "long_enough");
  result.pays = host.binary(BinaryOp::conj, many, long_enough, "pays");
  result.results = made.pattern;
  result.kernel.push_back(std::move(made));
  result.before = host.take();
  return result;
}

}  // namespace apl
