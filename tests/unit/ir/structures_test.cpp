// What is built, not parsed, survives printing and parsing: fields that both forgot would show here.
#include <doctest/doctest.h>

#include "ir/parse.h"
#include "ir/print.h"
#include "tests/testing.h"

namespace {

using namespace apl;

// Wraps an operation over three arrays and an index into a module.
class Sample {
 public:
  Sample() {
    n = f.values.add(Type::scalar(ScalarType::i64), "n");
    f.sizes = {n};
    A = f.values.add(Type::array(ScalarType::f32, {n}), "A");
    x = f.values.add(Type::scalar(ScalarType::f32), "x");
    f.params = {A, x};
    f.name = "f";
  }
  Value fresh(Type type, const std::string& name) { return f.values.add(std::move(type), name); }
  Lambda first_of_two() {
    const Value a = fresh(Type::scalar(ScalarType::f32), "a");
    const Value b = fresh(Type::scalar(ScalarType::f32), "b");
    return {{a, b}, make_body({}, {Operand(a)})};
  }
  Module with(Op op) {
    f.body = make_body({Stm{{fresh(Type::scalar(ScalarType::f32), "r")}, std::move(op), {}, {}, {}}}, {});
    return {Stage::kernel, "", "", {std::make_shared<const Function>(f)}};
  }

  Function f;
  Value n, A, x;
};

}  // namespace

TEST_CASE("operations that differ in one field differ in the parsed text too") {
  constexpr auto rows = SparseSchedule::Family::rows;
  Sample s;
  const Poly n = s.n;
  const Scalar one = Scalar::floating(ScalarType::f32, 1);
  const Value i = s.fresh(Type::scalar(ScalarType::i64), "i");
  const Lambda lambda = s.first_of_two();
  const Lambda swapped{lambda.params, make_body({}, {Operand(lambda.params[1])})};
  const BodyPtr body = make_body({}, {Operand(one)});
  const BodyPtr other = make_body({}, {Operand(s.x)});
  const Lambda op = s.first_of_two();
  const ReduceOp plain{op, {one}, false};
  const ReduceOp commutative{op, {one}, true};
  const ReduceOp neutral{op, {Operand(s.x)}, false};
  const auto row = Lmad::row_major({n});
  const Lmad shifted(1, {{n, 1}});
  const Lmad strided(0, {{n, 2}});
  using Kind = KernelResult::Kind;
  using Dims = std::vector<DimIndex>;
  using Space = std::vector<SegDim>;
  const std::vector<SegDim> space = {{i, n}};

  const std::vector<std::vector<Op>> families = {
      {Use{s.x}, Use{one}, SizeExpr{n}, SizeExpr{1}, SizeExpr{0}},
      {Unary{UnaryOp::neg, s.x}, Unary{UnaryOp::abs, s.x}, Unary{UnaryOp::neg, one}},
      {Binary{BinaryOp::sub, s.x, one}, Binary{BinaryOp::sub, one, s.x}, Binary{BinaryOp::add, s.x, one}},
      {Compare{CompareOp::lt, s.x, one}, Compare{CompareOp::lt, one, s.x}, Compare{CompareOp::le, s.x, one}},
      {Convert{ScalarType::f32, s.x}, Convert{ScalarType::f64, s.x}, Convert{ScalarType::f32, one},
       Convert{ScalarType::f32, s.x, true}},
      {Index{s.A, {DimIndex::fix(0)}}, Index{s.A, {DimIndex::fix(0)}, true}, Index{s.A, {}},
       Index{s.A, Dims{DimIndex::slice(0, n)}}, Index{s.A, Dims{DimIndex::slice(0, n, 2)}},
       Index{s.A, Dims{DimIndex::slice(1, n)}}, Index{s.A, Dims{DimIndex::slice(0, n + 1)}}},
      {Update{s.A, {DimIndex::fix(0)}, s.x}, Update{s.A, {DimIndex::fix(0)}, s.x, true},
       Update{s.A, {DimIndex::fix(0)}, one}, Update{s.A, {DimIndex::fix(1)}, s.x}},
      {Iota{ScalarType::i32, n, s.x, one}, Iota{ScalarType::i32, n, one, s.x}, Iota{ScalarType::i32, n + 1, s.x, one},
       Iota{ScalarType::i64, n, s.x, one}},
      {Replicate{{n}, s.x}, Replicate{{n, 1}, s.x}, Replicate{{}, s.x}, Replicate{{n}, one}},
      {Scratch{ScalarType::f32, {n}}, Scratch{ScalarType::f64, {n}}, Scratch{ScalarType::f32, {n, n}}},
      {Copy{s.A}, Copy{s.x}, Rearrange{s.A, {0}}, Rearrange{s.A, {1}}, Manifest{s.A, {0}}, Manifest{s.A, {0, 1}}},
      {Reshape{s.A, {n}}, Reshape{s.A, {1, n}}, Reshape{s.x, {n}}},
      {ArrayLit{Type::scalar(ScalarType::f32), {s.x}}, ArrayLit{Type::scalar(ScalarType::f64), {s.x}},
       ArrayLit{Type::scalar(ScalarType::f32), {}}, ArrayLit{Type::array(ScalarType::f32, {n}), {s.x}}},
      {Assert{s.x, {}}, Assert{s.x, {"a"}}, Assert{s.x, {"a", Operand(s.x)}}, Assert{s.x, {Operand(one)}}},
      {If{s.x, body, other}, If{s.x, other, body}, If{one, body, other}},
      {Choose{Choose::By::model, "p", {{"a", s.x, body}}}, Choose{Choose::By::first, "p", {{"a", s.x, body}}},
       Choose{Choose::By::model, "q", {{"a", s.x, body}}}, Choose{Choose::By::model, "p", {{"b", s.x, body}}},
       Choose{Choose::By::model, "p", {{"a", one, body}}}, Choose{Choose::By::model, "p", {{"a", s.x, other}}},
       Choose{Choose::By::model, "p", {{"a", s.x, body}, {"b", s.x, body}}}},
      {Loop{{lambda.params[0]}, {one}, i, n, body}, Loop{{lambda.params[0]}, {one}, i, n + 1, body},
       Loop{{lambda.params[0]}, {s.x}, i, n, body}, Loop{{lambda.params[0]}, {one}, Value(), 0, body},
       Loop{{lambda.params[0]}, {one}, i, n, other}},
      {Apply{"f", {}}, Apply{"g", {}}, Apply{"f", {s.x}}, Apply{"f g", {}}},
      {GetSize{"a", SizeClass::tile_size, 1}, GetSize{"b", SizeClass::tile_size, 1},
       GetSize{"a", SizeClass::reg_tile_size, 1}, GetSize{"a", SizeClass::thread_block_size, 1},
       GetSize{"a", SizeClass::grid_size, 1}, GetSize{"a", SizeClass::threshold, 1},
       GetSize{"a", SizeClass::tile_size, -2}},
      {Screma{{n}, {i}, {s.A}, lambda, {}}, Screma{{n + 1}, {i}, {s.A}, lambda, {}}, Screma{{n}, {i}, {}, lambda, {}},
       Screma{{}, {}, {s.A}, lambda, {}}, Screma{{n}, {i}, {s.A}, swapped, {}},
       Screma{{n}, {i}, {s.A}, lambda, {plain}}, Screma{{n}, {i}, {s.A}, lambda, {commutative}},
       Screma{{n}, {i}, {s.A}, lambda, {neutral}}},
      {SegOp{SegLevel::thread, space, body, {{}}},
       SegOp{SegLevel::block, space, body, {{}}},
       SegOp{SegLevel::inblock, space, body, {{}}},
       SegOp{SegLevel::thread, Space{}, body, {{}}},
       SegOp{SegLevel::thread, {{i, n + 1}}, body, {{}}},
       SegOp{SegLevel::thread, space, other, {{}}},
       SegOp{SegLevel::thread, space, body, {{}}, Schedule{}},
       SegOp{SegLevel::thread, space, body, {{}}, Schedule{.parameters = "mm."}},
       SegOp{SegLevel::thread, space, body, {{}}, Schedule{.dims = {{Schedule::Role::m, n}}}},
       SegOp{SegLevel::thread, space, body, {{}}, Schedule{.dims = {{Schedule::Role::n, n}}}},
       SegOp{SegLevel::thread, space, body, {{}}, Schedule{.dims = {{Schedule::Role::m, n + 1}}}},
       SegOp{SegLevel::thread, space, body, {{}}, Schedule{.operands = {{"A", ScalarType::f32, {n}}}}},
       SegOp{SegLevel::thread, space, body, {{}}, Schedule{.operands = {{"A", ScalarType::f32, {1}}}}},
       SegOp{SegLevel::thread, space, body, {{}}, Schedule{.stages = 2}},
       SegOp{SegLevel::thread, space, body, {{}}, {}, SparseSchedule{}},
       SegOp{SegLevel::thread, space, body, {{}}, {}, SparseSchedule{.family = rows}},
       SegOp{SegLevel::thread, space, body, {{}}, {}, SparseSchedule{.matrix = "A"}},
       SegOp{SegLevel::thread, space, body, {{}}, {}, SparseSchedule{.why = "A"}},
       SegOp{SegLevel::thread,
             space,
             body,
             {{}},
             {},
             SparseSchedule{.family = rows, .dims = {{SparseSchedule::Role::n, n}}}},
       SegOp{SegLevel::thread,
             space,
             body,
             {{}},
             {},
             SparseSchedule{.family = rows, .dims = {{SparseSchedule::Role::row, n}}}},
       SegOp{SegLevel::thread,
             space,
             body,
             {{}},
             {},
             SparseSchedule{.family = rows, .dims = {{SparseSchedule::Role::n, n + 1}}}},
       SegOp{SegLevel::thread, space, body, {{}}, {}, SparseSchedule{.family = rows, .operands = {{s.A, 0, {n}}}}},
       SegOp{SegLevel::thread, space, body, {{}}, {}, SparseSchedule{.family = rows, .operands = {{s.A, 1, {n}}}}},
       SegOp{SegLevel::thread, space, body, {{}}, {}, SparseSchedule{.family = rows, .operands = {{s.A, 0, {1}}}}},
       SegOp{SegLevel::thread, space, body, {{}}, {}, SparseSchedule{.family = rows, .operands = {{s.x, 0, {n}}}}},
       SegOp{SegLevel::thread, space, body, {{Kind::private_, {}}}},
       SegOp{SegLevel::thread, space, body, {{Kind::regtile, {{n, 2, 3}}}}},
       SegOp{SegLevel::thread, space, body, {{Kind::regtile, {{n, 3, 2}}}}},
       SegOp{SegLevel::thread, space, body, {{Kind::regtile, {{n, 2, 3}, {n, 1, 1}}}}}},
      {SharedArray{ScalarType::f32, row}, SharedArray{ScalarType::f16, row}, SharedArray{ScalarType::f32, shifted},
       SharedArray{ScalarType::f32, strided}},
      {CopyTile{s.A, s.x, row, {{0, n}}, {}, {}, one}, CopyTile{s.x, s.A, row, {{0, n}}, {}, {}, one},
       CopyTile{s.A, s.x, shifted, {{0, n}}, {}, {}, one}, CopyTile{s.A, s.x, row, {{0, {}}}, {}, {}, one},
       CopyTile{s.A, s.x, row, {{1, n}}, {}, {}, one}, CopyTile{s.A, s.x, row, {{0, n}}, {}, {}, s.x},
       CopyTile{s.A, s.x, row, {{0, n}}, {{{0, {{1}}}, {}}}, {}, one},
       CopyTile{s.A, s.x, row, {{0, n}}, {{{0, {{1}}}, n}}, {}, one},
       CopyTile{s.A, s.x, row, {{0, n}}, {}, {{s.x, {0, {{1}}}, n}}, one},
       CopyTile{s.A, s.x, row, {{0, n}}, {}, {}, one, {{s.A, {0, {{1}}}}}, lambda},
       CopyTile{s.A, s.x, row, {{0, n}}, {}, {}, one, {{{}, {0, {{1}}}}}, lambda},
       CopyTile{s.A, s.x, row, {{0, n}}, {}, {}, one, {{{}, {1, {{1}}}}}, lambda},
       CopyTile{s.A, s.x, row, {{0, n}}, {}, {}, one, {{{}, {0, {{1}}}}}, swapped}},
      {TileContract{{{2, 3}}, {n}, {s.A}, {{s.A, {0}}}, lambda, plain},
       TileContract{{{3, 2}}, {n}, {s.A}, {{s.A, {0}}}, lambda, plain},
       TileContract{{{2, 3}}, {n, 1}, {s.A}, {{s.A, {0}}}, lambda, plain},
       TileContract{{{2, 3}}, {n}, {}, {{s.A, {0}}}, lambda, plain},
       TileContract{{{2, 3}}, {n}, {s.A}, {{s.A, {1}}}, lambda, plain},
       TileContract{{{2, 3}}, {n}, {s.A}, {{s.x, {0}}}, lambda, plain},
       TileContract{{{2, 3}}, {n}, {s.A}, {{s.A, {0}}}, lambda, commutative},
       TileContract{{{2, 3}}, {n}, {s.A}, {{s.A, {0}}}, swapped, plain}},
      {Alloc{n, apl::Space::global}, Alloc{n, apl::Space::shared}, Alloc{n, apl::Space::thread},
       Alloc{n + 1, apl::Space::global}},
  };
  for (const std::vector<Op>& family : families) {
    for (std::size_t k = 0; k < family.size(); ++k) {
      Sample fresh = s;
      const Module module = fresh.with(family[k]);
      const std::string text = print(module);
      const auto again = parse_module(text, "a");
      REQUIRE_MESSAGE(again, again.error().message << "\n" << text);
      const auto different = testing::difference(module, *again);
      CHECK_MESSAGE(!different, different.value_or("") << "\n" << text);
      for (std::size_t j = 0; j < k; ++j) {
        Sample second = s;
        const Module other_module = second.with(family[j]);
        CHECK_MESSAGE(testing::difference(other_module, *again), "two different operations have one text:\n" << text);
      }
    }
  }
}
