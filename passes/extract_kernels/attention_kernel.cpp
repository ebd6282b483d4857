// The kernel of an attention, at block level: a block has a tile of queries and goes through the keys in tiles.
//
//   segmap(block) (b_c < ceil_div(e, T*R_c), b_i < ceil_div(n, T_i*R_i)) {
//     Q_s = copy_tile(..)                                        the queries, once
//     m, t, o = -inf, 0, 0                                       private: R_i, R_i and R_c x R_i a thread
//     loop tile < ceil_div(keys, T*R_j) {
//       K_s, V_s = copy_tile(..)
//       s = score(tile_contract(Q_s, K_s))                       private, R_j x R_i; -inf beyond the last key
//       m' = max(m, the maximum of s over the block's threads)   by way of shared memory
//       p = exp(s - m')                                          shared: the tile of weights
//       t' = t * exp(m - m') + the thread's sum of p
//       o' = tile_contract(o * exp(m - m'), p, V_s)
//     }
//     return after(o, the sum of t over the block's threads)
//   }
//
// So no score is ever written to memory. The depth of Q and K is in shared memory at once: there is a version for rows
// up to 64 and one for those up to 128 elements; others, and few queries, are left to the kernels of the nest taken
// apart. Columns beyond a tile are other blocks', which make the scores again.
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <limits>
#include <set>

#include "ir/builder.h"
#include "ir/walk.h"
#include "passes/extract_kernels/attention.h"
#include "passes/extract_kernels/block_kernel.h"

namespace apl {
namespace {

// Default numbers: 8 x 32 threads with 4 queries each, 8 keys, and 8 or 16 columns. A warp has neighbouring queries,
// whose elements it loads without bank conflicts, and the same keys or columns, of which one element serves all its
// threads.
constexpr std::int64_t kThreads = 8, kQueryThreads = 32, kQueries = 4, kKeys = 8;
// Blocks from which on it runs: on an H100 it takes 0.72 ms for 256 of them (16 heads of 2048 queries and keys) and the
// kernels of the nest taken apart 1.53; for 32 blocks 0.71 and 0.25.
constexpr std::int64_t kLeastBlocks = 256;

// The two contractions: of queries and keys, and of weights and values.
struct Contractions {
  Contraction scores, sums;
  Value weights;  // stands for the array of weights in the second
};

std::variant<Contractions, Refusal> contractions_of(const Attention& attention, const HostViews& views,
                                                    ValueTable& values) {
  const auto refused = [&](const std::optional<Match>& match, const char* what) {
    const Refusal* why = match ? std::get_if<Refusal>(&*match) : nullptr;
    return Refusal{"no-tiles", attention.location,
                   std::string("the ") + what + " cannot be tiled" + (why != nullptr ? ": " + why->message : ""),
                   why != nullptr ? why->suggestion : ""};
  };
  std::vector<std::pair<Value, Poly>> space;
  for (const auto& [index, width] : ranges::views::zip(attention.indices, attention.widths))
    space.emplace_back(index, width);
  std::vector<Stm> stms = attention.around;
  append(stms, attention.before);
  space.emplace_back(attention.key, attention.keys);
  const auto scores = match_reduction(stms, space, attention.contraction, views, values);
  if (!scores || !std::holds_alternative<Contraction>(*scores)) return refused(scores, "scores");
  // The weights are an array here.
  Contractions both{std::get<Contraction>(*scores), {}, {}};
  std::vector<Poly> shape = attention.widths, at;
  shape.push_back(attention.keys);
  both.weights = values.add(Type::array(attention.element, shape), "weights");
  for (const Value index : attention.indices) at.emplace_back(index);
  Builder builder(values);
  const Value sum = builder
                        .screma({"o"}, {attention.keys}, {},
                                [&](Builder& inner, BoundValues indices) {
                                  std::vector<Poly> here = at;
                                  here.emplace_back(indices[0]);
                                  const Value weight = inner.index(both.weights, here, "w");
                                  Substitution key;
                                  key.insert_or_assign(attention.key, Operand(indices[0]));
                                  const BodyPtr value =
                                      copy_fresh(make_body(attention.value, {attention.valued}), key, values, values);
                                  inner.append_all(value->stms);
                                  return std::vector<Operand>{inner.binary(BinaryOp::mul, weight, value->results[0])};
                                },
                                {builder.reduce_op(BinaryOp::add, Scalar::zero(attention.element))})
                        .front();
  (void)sum;
  space.back() = {attention.column, attention.columns};
  const auto sums = match_reduction(attention.around, space, builder.stms().back(), views, values);
  if (!sums || !std::holds_alternative<Contraction>(*sums)) return refused(sums, "weighted sums");
  both.sums = std::get<Contraction>(*sums);
  return both;
}

class KernelBuilder : BlockKernel {
 public:
  KernelBuilder(const Stm& flat, const Attention& attention, const Contractions& both, ValueTable& values)
      : BlockKernel(attention.indices, attention.widths, values), flat_(flat), attention_(attention), both_(both) {}

  // `prefix` begins the names of tuning parameters.
  Stm run(const std::string& prefix, std::int64_t depth, std::int64_t columns, Builder& host) {
    const auto number = [&](const char* name, SizeClass size_class, std::int64_t usual) {
      return Poly(host.let(name, GetSize{prefix + "." + name, size_class, usual}));
    };
    threads_ = number("T_k", SizeClass::tile_size, kThreads);
    query_threads_ = number("T_q", SizeClass::tile_size, kQueryThreads);
    queries_ = number("R_q", SizeClass::reg_tile_size, kQueries);
    keys_ = number("R_k", SizeClass::reg_tile_size, kKeys);
    columns_ = number("R_c", SizeClass::reg_tile_size, columns);
    depth_ = number("T_d", SizeClass::tile_size, depth);
    SegOp kernel{.level = SegLevel::block};
    outer_space(kernel, {&both_.scores, &both_.sums});
    const Value column = values_.add(Type::scalar(ScalarType::i64), "b_c");
    const Value query = values_.add(Type::scalar(ScalarType::i64), "b_q");
    kernel.space.push_back({column, ceil_div(attention_.columns, threads_ * columns_)});
    kernel.space.push_back({query, ceil_div(attention_.widths.back(), query_threads_ * queries_)});
    first_query_ = Poly(query) * query_threads_ * queries_;
    first_column_ = Poly(column) * threads_ * columns_;
    Value tile;
    kernel.body = host.body([&](Builder& block) {
      tile = whole(block);
      return std::vector<Operand>{tile};
    });
    KernelResult result{KernelResult::Kind::regtile, {}};
    const auto extent = [&](const Poly& bound, const Poly& tile_size, const Poly& reg, std::size_t axis) {
      result.extents.push_back({bound, tile_size, reg, {{static_cast<int>(axis), bound}}});
    };
    for (std::size_t w = 0; w < outer_; ++w) extent(attention_.widths[w], 1, 1, w);
    extent(attention_.columns, threads_, columns_, outer_ + 1);
    extent(attention_.widths.back(), query_threads_, queries_, outer_);
    kernel.results = {std::move(result)};
    const Value made = values_.add(values_.type(flat_.pattern[0]), values_.name(flat_.pattern[0]));
    return {.pattern = {made}, .op = std::move(kernel), .location = flat_.location, .certificates = flat_.certificates};
  }

  const Poly& depth() const { return depth_; }
  Poly blocks() const {
    Poly blocks = ceil_div(attention_.widths.back(), query_threads_ * queries_);
    for (std::size_t w = 0; w < outer_; ++w) blocks *= attention_.widths[w];
    return blocks;
  }

 private:
  // ---- the block ----

  // What the loop over the keys carries.
  struct State {
    Value most, total;  // if there are such
    Value sums;
    std::vector<Value> tiles;
  };
  std::vector<Value> all(const State& state) const {
    std::vector<Value> values;
    for (const Value v : {state.most, state.total})
      if (v) values.push_back(v);
    values.push_back(state.sums);
    values.insert(values.end(), state.tiles.begin(), state.tiles.end());
    return values;
  }
  State unpack(const std::vector<Value>& values) const {
    State state;
    std::size_t next = 0;
    if (attention_.most) state.most = values[next++];
    if (!attention_.sums.empty()) state.total = values[next++];
    state.sums = values[next++];
    state.tiles.assign(values.begin() + static_cast<std::ptrdiff_t>(next), values.end());
    return state;
  }

  Scalar lowest() const { return Scalar::floating(attention_.element, -std::numeric_limits<double>::infinity()); }
  Scalar zero() const { return Scalar::zero(attention_.element); }

  Value whole(Builder& block) {
    const Contraction &scores = both_.scores, &sums = both_.sums;
    const std::size_t query = outer_, key = outer_ + 1;
    std::vector<std::optional<Tile>> tiles;  // of the scores' operands, then of the sums'
    for (const ContractionOperand& operand : scores.operands)
      tiles.emplace_back(operand.varies(query)
                             ? make_tile(block, scores, operand, query, query_threads_ * queries_, depth_, query_axis())
                             : make_tile(block, scores, operand, key, threads_ * keys_, depth_, key_axis()));
    for (const ContractionOperand& operand : sums.operands) {
      if (operand.base == both_.weights)
        tiles.emplace_back();
      else
        tiles.emplace_back(make_tile(block, sums, operand, key, threads_ * columns_, threads_ * keys_, key_axis()));
    }
    // Queries stay for the whole loop.
    std::vector<Value> resident(tiles.size());
    State state;
    for (std::size_t k = 0; k < tiles.size(); ++k) {
      if (!tiles[k]) continue;
      if (k < scores.operands.size() && tiles[k]->dim == query)
        resident[k] = copy(block, *tiles[k], tiles[k]->shared, first_query_, 0);
      else
        state.tiles.push_back(tiles[k]->shared);
    }
    start(block, state);
    Loop loop;
    for (const Value v : all(state)) {
      loop.initial.emplace_back(v);
      loop.params.push_back(values_.add(values_.type(v), values_.name(v)));
    }
    loop.index = values_.add(Type::scalar(ScalarType::i64), "tile");
    loop.bound = ceil_div(attention_.keys, threads_ * keys_);
    first_key_ = Poly(loop.index) * threads_ * keys_;
    loop.body = block.body([&](Builder& body) {
      State inner = unpack(loop.params);
      std::vector<TileOperand> of_scores, of_sums;
      std::size_t next = 0;
      for (std::size_t k = 0; k < tiles.size(); ++k) {
        const bool first = k < scores.operands.size();
        if (!tiles[k]) {
          of_sums.push_back({Value{}, {depth_axis(), query_axis()}});
          continue;
        }
        Value made = resident[k];
        if (!made) {
          made = first ? copy(body, *tiles[k], inner.tiles[next], first_key_, 0)
                       : copy(body, *tiles[k], inner.tiles[next], first_column_, first_key_);
          inner.tiles[next++] = made;
        }
        (first ? of_scores : of_sums).push_back({made, tiles[k]->axes});
      }
      step(body, inner, of_scores, of_sums);
      const std::vector<Value> results = all(inner);
      return std::vector<Operand>(results.begin(), results.end());
    });
    std::vector<std::string> names;
    std::vector<Type> types;
    for (const Value v : all(state)) {
      names.push_back(values_.name(v));
      types.push_back(values_.type(v));
    }
    return finish(block, unpack(block.let_typed(names, types, std::move(loop))));
  }

  void start(Builder& block, State& state) {
    std::vector<std::string> names;
    if (attention_.most) names.emplace_back("most");
    if (!attention_.sums.empty()) names.emplace_back("total");
    names.emplace_back("sums");
    std::vector<Value> made = in_block(block, names, [&](Builder& thread, const Thread&) {
      Results results;
      const auto fill = [&](std::vector<Poly> shape, const Operand& value) {
        results.emplace_back(thread.let("init", Replicate{std::move(shape), value}), KernelResult::Kind::private_);
      };
      if (attention_.most) fill({queries_}, lowest());
      if (!attention_.sums.empty()) fill({queries_}, zero());
      fill(registers(columns_), both_.sums.reduce.neutral[0]);
      return results;
    });
    const std::vector<Value> tiles = state.tiles;
    state = unpack(made);
    state.tiles = tiles;
  }

  // One tile of keys.
  void step(Builder& body, State& state, const std::vector<TileOperand>& of_scores, std::vector<TileOperand> of_sums) {
    const Value init = in_block(body, {"sums"}, [&](Builder& thread, const Thread&) {
      const Value zeros = thread.let("init", Replicate{registers(keys_), both_.scores.reduce.neutral[0]});
      return Results{{zeros, KernelResult::Kind::private_}};
    })[0];
    const Value products = contract(body, both_.scores, keys_, both_.scores.dims.back().size, init, of_scores);
    const Value weights = attention_.most ? rescaled(body, state, products) : plain(body, state, products);
    // The tile of weights has a key in each row.
    std::vector<int> permutation;
    const std::size_t rank = outer_ + 2;
    for (std::size_t d = 0; d < rank; ++d) {
      permutation.push_back(static_cast<int>(d));
      permutation.push_back(static_cast<int>(rank + d));
    }
    const Value rows = body.rearrange(weights, permutation, "weights");
    const Value tile = body.let("weights_s", Reshape{rows, {threads_ * keys_, query_threads_ * queries_}});
    for (TileOperand& operand : of_sums)
      if (!operand.tile) operand.tile = tile;
    state.sums = contract(body, both_.sums, columns_, poly_min(threads_ * keys_, attention_.keys - first_key_),
                          state.sums, of_sums);
  }

  // The scores of a thread, or the weights that code makes of them; beyond the last key `otherwise`.
  Value scored(Builder& thread, const Thread& at, Value products, const Operand& result, const Scalar& otherwise) {
    const Value row = thread.let("row", Index{products, at.own});
    std::vector<Stm> code = needed_for(attention_.around, read_by(attention_.score, values_), values_);
    append(code, attention_.score);
    const bool reads = has_reads(code);
    return each(thread, "scores", keys_, {row},
                [&](Builder& inner, Value along, Value across, const std::vector<Value>& element) -> Operand {
                  const Value key = inner.size(first_key_ + Poly(at.along) * keys_ + Poly(along), "key");
                  const Value query = inner.size(first_query_ + Poly(at.query) * queries_ + Poly(across), "query");
                  Value inside = inner.compare(CompareOp::lt, key, size(inner, attention_.keys), "inside");
                  if (reads)
                    inside = inner.binary(BinaryOp::conj, inside,
                                          inner.compare(CompareOp::lt, query, size(inner, attention_.widths.back())),
                                          "inside");
                  Substitution here = here_;
                  here.insert_or_assign(attention_.key, Operand(key));
                  here.insert_or_assign(attention_.indices.back(), Operand(query));
                  here.insert_or_assign(attention_.contraction.pattern[0], Operand(element[0]));
                  return inner.if_else(
                      "score", inside, [&](Builder& then) { return copied(then, code, {result}, here)[0]; },
                      [&](Builder&) { return Operand(otherwise); });
                });
  }

  // Weights without a maximum.
  Value plain(Builder& body, State& state, Value products) {
    const State before = state;
    const bool total = !attention_.sums.empty();
    const std::vector<Value> made =
        in_block(body, total ? std::vector<std::string>{"total", "weights"} : std::vector<std::string>{"weights"},
                 [&](Builder& thread, const Thread& at) {
                   const Value weights = scored(thread, at, products, attention_.weighted, zero());
                   Results results;
                   if (total)
                     results.emplace_back(summed(thread, at, before.total, {}, weights), KernelResult::Kind::private_);
                   results.emplace_back(weights, KernelResult::Kind::returns);
                   return results;
                 });
    if (total) state.total = made[0];
    return made.back();
  }

  // A thread's part of the sum of the weights.
  Value summed(Builder& thread, const Thread& at, Value before, Value factor, Value weights) {
    std::vector<Value> rows{thread.let("row", Index{before, at.own})};
    if (factor) rows.push_back(factor);
    return each_query(thread, {"total"}, rows, [&](Builder& inner, BoundValues all) {
      const Value more = folded(inner, BinaryOp::add, zero(), keys_,
                                [&](Builder& k, Value along) { return register_of(k, weights, along, all[0]); });
      const Value old = factor ? inner.binary(BinaryOp::mul, all[1], all[2]) : all[1];
      return std::vector<Operand>{inner.binary(BinaryOp::add, old, more)};
    })[0];
  }

  Value rescaled(Builder& body, State& state, Value products) {
    const State before = state;
    const std::vector<Value> scores = in_block(body, {"scores", "most"}, [&](Builder& thread, const Thread& at) {
      const Value own = scored(thread, at, products, attention_.scored, lowest());
      const Value most = each_query(thread, {"most"}, {}, [&](Builder& inner, BoundValues all) {
        return std::vector<Operand>{folded(inner, BinaryOp::max, lowest(), keys_, [&](Builder& k, Value along) {
          return register_of(k, own, along, all[0]);
        })};
      })[0];
      return Results{{own, KernelResult::Kind::private_}, {most, KernelResult::Kind::returns}};
    });
    std::vector<std::string> names{"most"};
    if (!attention_.sums.empty()) names.emplace_back("total");
    names.emplace_back("sums");
    names.emplace_back("weights");
    const std::vector<Value> made = in_block(body, names, [&](Builder& thread, const Thread& at) {
      const Value own = thread.let("row", Index{scores[0], at.own}),
                  old = thread.let("row", Index{before.most, at.own}),
                  sums = thread.let("row", Index{before.sums, at.own});
      const std::vector<Value> most =
          each_query(thread, {"most", "base", "factor"}, {old}, [&](Builder& inner, BoundValues all) {
            const Value here = folded(inner, BinaryOp::max, lowest(), threads_, [&](Builder& k, Value other) {
              return shared_by_query(k, scores[1], other, at, all[0]);
            });
            const Value now = inner.binary(BinaryOp::max, all[1], here, "most");
            // Before any key counts, differences of infinities are kept out.
            const Value none = inner.compare(CompareOp::eq, now, lowest(), "none");
            const Value base = inner.if_else(
                "base", none, [&](Builder&) { return Operand(zero()); }, [&](Builder&) { return Operand(now); });
            const Value factor = inner.unary(UnaryOp::exp, inner.binary(BinaryOp::sub, all[1], base), "factor");
            return std::vector<Operand>{now, base, factor};
          });
      const Value weights =
          each(thread, "weights", keys_, {own},
               [&](Builder& inner, Value, Value across, const std::vector<Value>& element) -> Operand {
                 const Value base = inner.index(most[1], {Poly(across)});
                 return inner.unary(UnaryOp::exp, inner.binary(BinaryOp::sub, element[0], base), "w");
               });
      Results results{{most[0], KernelResult::Kind::private_}};
      if (!attention_.sums.empty())
        results.emplace_back(summed(thread, at, before.total, most[2], weights), KernelResult::Kind::private_);
      const Value scaled = each(thread, "sums", columns_, {sums},
                                [&](Builder& inner, Value, Value across, const std::vector<Value>& element) -> Operand {
                                  return inner.binary(BinaryOp::mul, element[0], inner.index(most[2], {Poly(across)}));
                                });
      results.emplace_back(scaled, KernelResult::Kind::private_);
      results.emplace_back(weights, KernelResult::Kind::returns);
      return results;
    });
    const std::vector<Value> tiles = state.tiles;
    state = unpack({made.begin(), made.end() - 1});
    state.tiles = tiles;
    return made.back();
  }

  // The results of a tile: sums over all threads of a query, and the code behind.
  Value finish(Builder& block, const State& state) {
    Value shared;
    if (state.total)
      shared = in_block(block, {"totals"}, [&](Builder& thread, const Thread& at) {
        return Results{{thread.let("row", Index{state.total, at.own}), KernelResult::Kind::returns}};
      })[0];
    return in_block(block, {"out"}, [&](Builder& thread, const Thread& at) {
      const Value sums = thread.let("row", Index{state.sums, at.own});
      Value total, most;
      if (shared)
        total = each_query(thread, {"total"}, {}, [&](Builder& inner, BoundValues all) {
          return std::vector<Operand>{folded(inner, BinaryOp::add, zero(), threads_, [&](Builder& k, Value other) {
            return shared_by_query(k, shared, other, at, all[0]);
          })};
        })[0];
      if (state.most) most = thread.let("row", Index{state.most, at.own});
      const Value out =
          each(thread, "out", columns_, {sums},
               [&](Builder& inner, Value along, Value across, const std::vector<Value>& element) -> Operand {
                 const Value column = inner.size(first_column_ + Poly(at.along) * columns_ + Poly(along), "column");
                 const Value query = inner.size(first_query_ + Poly(at.query) * queries_ + Poly(across), "query");
                 const Value inside = inner.binary(
                     BinaryOp::conj, inner.compare(CompareOp::lt, query, size(inner, attention_.widths.back())),
                     inner.compare(CompareOp::lt, column, size(inner, attention_.columns)), "inside");
                 Substitution here = here_;
                 here.insert_or_assign(attention_.column, Operand(column));
                 here.insert_or_assign(attention_.indices.back(), Operand(query));
                 here.insert_or_assign(attention_.summed, Operand(element[0]));
                 for (const Value sum : attention_.sums)
                   here.insert_or_assign(sum, Operand(inner.index(total, {Poly(across)}, "total")));
                 if (most) here.insert_or_assign(attention_.most, Operand(inner.index(most, {Poly(across)}, "most")));
                 std::vector<Stm> code = needed_for(attention_.around, after_reads(), values_);
                 append(code, attention_.after);
                 return inner.if_else(
                     "out", inside, [&](Builder& then) { return copied(then, code, {attention_.result}, here)[0]; },
                     [&](Builder&) { return Operand(zero()); });
               });
      return Results{{out, KernelResult::Kind::private_}};
    })[0];
  }

  std::set<Value> after_reads() const {
    std::set<Value> read = read_by(attention_.after, values_);
    if (attention_.result.is_value()) read.insert(attention_.result.value());
    return read;
  }

  const Stm& flat_;
  const Attention& attention_;
  const Contractions& both_;
  Poly columns_, depth_;
  Poly first_column_;
};

}  // namespace

std::variant<StreamedAttention, Refusal> stream_attention(const Stm& flat, const Attention& attention,
                                                          const HostViews& views, const std::string& prefix,
                                                          ValueTable& values) {
  auto both = contractions_of(attention, views, values);
  if (const Refusal* refusal = std::get_if<Refusal>(&both)) return *refusal;
  const auto& contractions = std::get<Contractions>(both);
  for (const auto& [contraction, what] :
       {std::pair(&contractions.scores, "scores"), std::pair(&contractions.sums, "weighted sums")})
    if (const auto why = unfit_for_tiles(*contraction, attention.branched && contraction == &contractions.scores))
      return Refusal{"no-tiles", attention.location, std::string("the ") + what + " cannot be tiled: " + *why, {}};
  StreamedAttention result;
  Builder host(values);
  host.set_location(flat.location);
  const Value from = host.let("from", GetSize{prefix + ".from", SizeClass::threshold, kLeastBlocks});
  const Poly depth = contractions.scores.dims.back().size;
  for (const auto& [name, most, columns] : {std::tuple("short", std::int64_t{64}, std::int64_t{8}),
                                            std::tuple("long", std::int64_t{128}, std::int64_t{16})}) {
    KernelBuilder builder(flat, attention, contractions, values);
    Stm kernel = builder.run(prefix + "." + name, most, columns, host);
    const Value fits =
        host.compare(CompareOp::le, host.size(depth, "depth"), host.size(builder.depth(), "most"), "fits");
    const Value pays = host.compare(CompareOp::le, from, host.size(builder.blocks(), "blocks"), "pays");
    const Value some = host.compare(CompareOp::lt, i64_constant(0), host.size(attention.keys, "keys"), "some");
    StreamedAttention::Version version{name, {}, {}, kernel.pattern};
    version.fits = host.binary(BinaryOp::conj, host.binary(BinaryOp::conj, fits, pays), some, "fits");
    version.kernel.push_back(std::move(kernel));
    result.versions.push_back(std::move(version));
  }
  result.before = host.take();
  return result;
}

}  // namespace apl
