#include "tests/planted/generate.h"

#include <algorithm>
#include <random>

#include "ir/builder.h"
#include "ir/walk.h"

namespace apl::planted {

namespace {

constexpr std::int64_t kTable = 6;  // the length of arrays whose elements are read by their number

class Generator {
 public:
  Generator(std::uint64_t seed, std::size_t size) : random_(seed * 0x9e3779b97f4a7c15U + 5), size_(size) {}

  Module run() {
    Function f;
    f.name = "main";
    n_ = f.values.add(Type::scalar(ScalarType::i64), "n");
    f.sizes = {n_};
    const Type array = Type::array(ScalarType::i32, {n_});
    EntryInfo entry{.name = "main", .params = {}, .param_values = {}, .results = {}};
    for (const char* name : {"xs", "ys"}) {
      f.params.push_back(f.values.add(array, name));
      arrays_.push_back(f.params.back());
      entry.params.push_back({name, "[n]i32"});
    }
    for (const char* name : {"a", "b", "c"}) {
      f.params.push_back(f.values.add(Type::scalar(ScalarType::i32), name));
      scalars_.push_back(f.params.back());
      entry.params.push_back({name, "i32"});
    }
    entry.param_values.assign(entry.params.size(), 1);
    Builder builder(f.values);
    // All kinds in turn, then at random.
    for (int kind = 0; count(builder) < size_; ++kind) statement(builder, kind < kKinds ? kind : below(kKinds));
    // What no statement reads is a result.
    std::vector<Operand> results;
    std::set<Value> read;
    for (const Stm& stm : builder.stms()) read.merge(free_values(stm.op, f.values));
    for (const Stm& stm : builder.stms())
      for (const Value v : stm.pattern)
        if (!read.contains(v) || get_if<Update>(stm)) results.emplace_back(v);
    for (const Operand& result : results) {
      f.results.push_back(f.values.type(result));
      const Type& type = f.results.back();
      const std::string element(to_text(type.element));
      entry.results.push_back({!type.is_array()           ? element
                               : type.shape[0].constant() ? "[" + std::to_string(kTable) + "]" + element
                                                          : "[n]" + element});
    }
    f.body = builder.finish(std::move(results));
    f.entry = std::move(entry);
    Module module;
    module.file = "planted";
    module.functions.push_back(std::make_shared<const Function>(std::move(f)));
    return module;
  }

 private:
  static constexpr int kKinds = 12;

  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }

  static std::size_t count(Builder& builder) {
    std::size_t all = 0;
    for (const Stm& stm : builder.stms()) {
      ++all;
      for_each_body(stm.op, [&](const BodyPtr& body) { for_each_stm(*body, [&](const Stm&) { ++all; }); });
    }
    return all;
  }

  // A recent value more often than an old one.
  template <class T>
  const T& pick(const std::vector<T>& values) {
    const int size = static_cast<int>(values.size());
    return values[static_cast<std::size_t>(std::max(size - 1 - below(8), below(size)))];
  }
  static Operand i32(std::int64_t x) { return Scalar::integer(ScalarType::i32, x); }

  // A few scalar statements over `pool`, which may be of a lambda.
  Value chain(Builder& b, std::vector<Value> pool, int length) {
    Value last = pool.back();
    for (int k = 0; k < length; ++k) {
      const Value other = pick(pool);
      switch (below(9)) {
        case 0: last = b.binary(BinaryOp::add, last, i32(1 + below(5)), "s"); break;
        case 1: last = b.binary(BinaryOp::sub, last, other, "d"); break;
        case 2: last = b.binary(BinaryOp::mul, last, other, "p"); break;
        case 3: last = b.binary(BinaryOp::max, last, other, "m"); break;
        case 4: last = b.binary(BinaryOp::min, other, last, "m"); break;
        case 5: last = b.binary(BinaryOp::exor, last, other, "x"); break;
        case 6: last = b.binary(BinaryOp::conj, last, i32(7 + below(9)), "x"); break;
        case 7: last = b.unary(UnaryOp::neg, last, "g"); break;
        default: last = b.binary(BinaryOp::add, last, other, "s"); break;
      }
      pool.push_back(last);
    }
    return last;
  }

  Value mapped(Builder& b, const std::vector<Value>& inputs) {
    const std::vector<Type> types(inputs.size(), Type::scalar(ScalarType::i32));
    Screma map{.widths = {Poly(n_)},
               .indices = {b.values().add(Type::scalar(ScalarType::i64), "i")},
               .inputs = inputs,
               .map = {},
               .reduces = {}};
    map.map = b.lambda(types, {"u", "v"}, [&](Builder& inner, const std::vector<Value>& params) {
      std::vector<Value> pool{pick(scalars_)};
      pool.insert(pool.end(), params.begin(), params.end());
      const Value last = chain(inner, pool, 2 + below(4));
      if (params.size() < 2) return std::vector<Operand>{last};
      // The order of the inputs counts.
      const Value difference = inner.binary(BinaryOp::sub, params[0], params[1], "d");
      return std::vector<Operand>{inner.binary(BinaryOp::exor, last, difference, "x")};
    });
    return b.let("zs", std::move(map));
  }

  Value folded(Builder& b, bool scan, BinaryOp op, std::int64_t neutral) {
    const Type i32_type = Type::scalar(ScalarType::i32);
    Screma soac{.widths = {Poly(n_)},
                .indices = {b.values().add(Type::scalar(ScalarType::i64), "i")},
                .inputs = {pick(arrays_)},
                .map = {},
                .reduces = {}};
    soac.map = b.lambda({i32_type}, {"u"},
                        [&](Builder&, const std::vector<Value>& params) { return std::vector<Operand>{params[0]}; });
    ReduceOp reduce{.op = {}, .neutral = {i32(neutral)}, .commutative = true, .scan = scan};
    reduce.op = b.lambda({i32_type, i32_type}, {"x", "y"}, [&](Builder& inner, const std::vector<Value>& params) {
      return std::vector<Operand>{inner.binary(op, params[0], params[1], "z")};
    });
    soac.reduces.push_back(std::move(reduce));
    return b.let(scan ? "cs" : "r", std::move(soac));
  }

  void statement(Builder& b, int kind) {
    const Type i32_type = Type::scalar(ScalarType::i32);
    const auto scalar = [&](Value v) { scalars_.push_back(v); };
    switch (kind) {
      case 0: scalar(chain(b, scalars_, 3)); break;
      case 1: arrays_.push_back(mapped(b, {pick(arrays_)})); break;
      case 2: arrays_.push_back(mapped(b, {arrays_.back(), arrays_[arrays_.size() - 2]})); break;
      case 3: scalar(folded(b, false, BinaryOp::add, 0)); break;
      case 4: arrays_.push_back(folded(b, true, BinaryOp::add, 0)); break;
      case 5: {  // a branch
        const Value condition = b.compare(below(2) ? CompareOp::lt : CompareOp::eq, pick(scalars_), pick(scalars_));
        If branch{.condition = condition, .then_body = {}, .else_body = {}};
        for (BodyPtr* body : {&branch.then_body, &branch.else_body})
          *body = b.body([&](Builder& inner) { return std::vector<Operand>{chain(inner, scalars_, 1 + below(3))}; });
        scalar(b.let("t", std::move(branch)));
        break;
      }
      case 6: {  // a loop
        const Value param = b.values().add(i32_type, "acc");
        Loop loop{.params = {param},
                  .initial = {pick(scalars_)},
                  .index = b.values().add(Type::scalar(ScalarType::i64), "k"),
                  .bound = 2 + below(3),
                  .body = {}};
        loop.body = b.body([&](Builder& inner) {
          std::vector<Value> pool{pick(scalars_), param};
          return std::vector<Operand>{chain(inner, pool, 2 + below(3))};
        });
        scalar(b.let("l", std::move(loop)));
        break;
      }
      case 7: {  // a table and one of its elements
        const Value table = b.let("is", Iota{ScalarType::i32, kTable, pick(scalars_), i32(1 + below(3))});
        tables_.push_back(table);
        scalar(b.index(table, {Poly(below(kTable))}, "e"));
        break;
      }
      case 8: tables_.push_back(b.let("fs", Replicate{{Poly(kTable)}, pick(scalars_)})); break;
      case 9: {
        if (tables_.empty()) break;
        const Value copy = b.let("cp", Copy{pick(tables_)});
        const Value next = b.let("us", Update{copy, {DimIndex::fix(below(kTable))}, pick(scalars_), false});
        tables_.push_back(next);
        scalar(b.index(next, {Poly(below(kTable))}, "e"));
        break;
      }
      case 10: {
        const Value wide = b.convert(ScalarType::i64, pick(scalars_), "w");
        scalar(b.convert(ScalarType::i32, b.binary(BinaryOp::add, wide, i64_constant(2)), "w"));
        break;
      }
      default: scalar(b.compare(CompareOp::lt, pick(scalars_), pick(scalars_))), scalars_.pop_back(); break;
    }
  }

  std::mt19937_64 random_;
  std::size_t size_;
  Value n_;
  std::vector<Value> scalars_, arrays_, tables_;
};

}  // namespace

Module generate(std::uint64_t seed, std::size_t size) { return Generator(seed, size).run(); }

}  // namespace apl::planted
