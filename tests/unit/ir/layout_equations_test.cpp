// The equations about layouts of T (the thesis), with the errata of its text: 5, 6, 10-14, 16-23, 25-26, and
// the layouts of its listing 9.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "ir/lmad.h"
#include "ir/variance.h"
#include "tests/unit/ir/random_values.h"

namespace apl {
namespace {

using testing_random::Random;
using testing_random::thousand_cases;

// One symbol per name, in order of first use.
class Names {
 public:
  Poly operator[](const std::string& name) { return value(name); }
  Value value(const std::string& name) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) return names_.push_back(name), Value{static_cast<std::uint32_t>(names_.size() - 1)};
    return Value{static_cast<std::uint32_t>(found - names_.begin())};
  }

 private:
  std::vector<std::string> names_;
};

std::vector<Poly> numbers(std::initializer_list<int> list) { return {list.begin(), list.end()}; }

std::int64_t product_of(const std::vector<std::int64_t>& sizes, std::size_t begin, std::size_t end) {
  std::int64_t result = 1;
  for (std::size_t k = begin; k < end; ++k) result *= sizes[k];
  return result;
}

TEST_CASE("eq 5: with a stride of 36 words, 32 threads touch 8 banks; with an odd stride all 32") {
  const auto banks = [](std::int64_t stride) {
    std::set<std::int64_t> touched;
    for (const std::int64_t point : testing_random::points(Lmad(0, {{32, stride}}))) touched.insert(point % 32);
    return touched.size();
  };
  CHECK(banks(36) == 8);
  for (std::int64_t stride = 1; stride < 64; stride += 2) CHECK(banks(stride) == 32);
}

// The number of words when dim k alone (0-based) gets one element more.
std::int64_t naively_padded(const std::vector<std::int64_t>& sizes, std::size_t k) {
  return product_of(sizes, 0, sizes.size()) + product_of(sizes, 0, k) * product_of(sizes, k + 1, sizes.size());
}

TEST_CASE("eq 6, corrected: padding dim 3 of (2, 3, 4, 5) takes 150 words") {
  CHECK(naively_padded({2, 3, 4, 5}, 2) == 150);
}

TEST_CASE("law: inequality 18, padding the inner dims together takes no more than padding one of them") {
  thousand_cases(1000, [](Random& random) {
    std::vector<std::int64_t> sizes;
    for (std::int64_t rank = random.between(2, 6); rank > 0; --rank) sizes.push_back(random.between(1, 8));
    const auto j = static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(sizes.size()) - 2));
    const Lmad padded = Lmad::padded({sizes.begin(), sizes.end()}, j);
    const std::int64_t inner = product_of(sizes, j + 1, sizes.size());
    // Eq 17: all the words, overhead included, are the outermost stride times the outermost size.
    const std::int64_t words = *(padded.dims()[0].stride * padded.dims()[0].size).constant();
    CHECK(words == product_of(sizes, 0, j + 1) * (inner + (inner % 2 == 0 ? 1 : 0)));
    CHECK(*padded.dims()[j].stride.constant() % 2 == 1);
    CHECK(padded.injective() == Proof::yes);
    if (inner % 2 != 0) {
      CHECK(padded == Lmad::row_major({sizes.begin(), sizes.end()}));
      return;
    }
    for (std::size_t k = j + 1; k < sizes.size(); ++k) CHECK(words <= naively_padded(sizes, k));
  });
}

TEST_CASE("eqs 10 and 12: a tile of a larger array, and its index function") {
  Names s;
  const Lmad tile(s["pi"], {{s["Ta"], s["Nb"] * s["Nc"]}, {s["Tb"], s["Nc"]}, {s["Tc"], 1}});
  const Lmad array = Lmad::row_major({s["Na"], s["Nb"], s["Nc"]});
  const Poly pi = array.apply({s["a0"], s["b0"], s["c0"]});
  const Lmad sliced = array.slice(0, s["a0"], s["Ta"], 1).slice(1, s["b0"], s["Tb"], 1).slice(2, s["c0"], s["Tc"], 1);
  CHECK(sliced == tile.substitute([&](Value v) { return v == s.value("pi") ? std::optional(pi) : std::nullopt; }));
  CHECK(tile.apply({s["a"], s["b"], s["c"]}) == s["pi"] + (s["a"] * s["Nb"] + s["b"]) * s["Nc"] + s["c"]);
}

TEST_CASE("eq 11: the tile in shared memory is row-major") {
  Names s;
  const Lmad shared(0, {{s["Ta"], s["Tb"] * s["Tc"]}, {s["Tb"], s["Tc"]}, {s["Tc"], 1}});
  CHECK(Lmad::row_major({s["Ta"], s["Tb"], s["Tc"]}) == shared);
  CHECK(shared.contiguous() == Proof::yes);
}

TEST_CASE("eqs 13 and 14: a flat thread index into the tile") {
  Names s;
  const Poly tid = s["tid"];
  const Poly bc = s["Tb"] * s["Tc"];
  const auto index = unflatten_index(tid, {s["Ta"], s["Tb"], s["Tc"]});
  REQUIRE(index.size() == 3);
  CHECK(index[0] == floor_div(tid, bc));
  CHECK(index[1] == floor_div(remainder(tid, bc), s["Tc"]));
  CHECK(index[2] == remainder(remainder(tid, bc), s["Tc"]));
  const Lmad tile(s["pi"], {{s["Ta"], s["Nb"] * s["Nc"]}, {s["Tb"], s["Nc"]}, {s["Tc"], 1}});
  CHECK(tile.apply_flat(tid) == s["pi"] + (index[0] * s["Nb"] + index[1]) * s["Nc"] + index[2]);
  // Unflattening a flattened index gives the index back.
  SizeFacts facts;
  for (const char* d : {"a", "b", "c"}) facts.index_of(s.value(d), s[std::string("T") + d]);
  const auto back = unflatten_index((s["a"] * s["Tb"] + s["b"]) * s["Tc"] + s["c"], {s["Ta"], s["Tb"], s["Tc"]});
  CHECK(prove_equal(back[0], s["a"], facts) == Proof::yes);
  CHECK(prove_equal(back[1], s["b"], facts) == Proof::yes);
  CHECK(prove_equal(back[2], s["c"], facts) == Proof::yes);
}

TEST_CASE("eq 16: the tiles of both operands of Z_bickja = X_jqai * Y_bcqk, in global and in shared memory") {
  Names s;
  const auto tile_size = [&s](char d) {
    return d == 'q' ? s["Q_q"] : s[std::string("T_") + d] * s[std::string("R_") + d];
  };
  const auto array_size = [&s](char d) { return s[std::string("N_") + d]; };
  const auto sizes = [](const std::string& dims, const auto& size) {
    std::vector<Poly> result;
    for (const char d : dims) result.push_back(size(d));
    return result;
  };
  // The tile that starts where each dim has gone o_d far.
  const auto global_tile = [&](const std::string& dims) {
    Lmad lmad = Lmad::row_major(sizes(dims, array_size));
    for (std::size_t k = 0; k < dims.size(); ++k)
      lmad = lmad.slice(k, s[std::string("o_") + dims[k]], tile_size(dims[k]), 1);
    return lmad;
  };
  const Poly tj = s["T_j"] * s["R_j"], ta = s["T_a"] * s["R_a"], ti = s["T_i"] * s["R_i"], q = s["Q_q"];
  const Poly tb = s["T_b"] * s["R_b"], tc = s["T_c"] * s["R_c"], tk = s["T_k"] * s["R_k"];

  const Lmad x = global_tile("jqai");
  CHECK(x ==
        Lmad(x.offset(), {{tj, s["N_q"] * s["N_a"] * s["N_i"]}, {q, s["N_a"] * s["N_i"]}, {ta, s["N_i"]}, {ti, 1}}));
  CHECK(Lmad::row_major(sizes("jqai", tile_size)) == Lmad(0, {{tj, q * ta * ti}, {q, ta * ti}, {ta, ti}, {ti, 1}}));
  const Lmad y = global_tile("bcqk");
  CHECK(y ==
        Lmad(y.offset(), {{tb, s["N_c"] * s["N_q"] * s["N_k"]}, {tc, s["N_q"] * s["N_k"]}, {q, s["N_k"]}, {tk, 1}}));
  CHECK(Lmad::row_major(sizes("bcqk", tile_size)) == Lmad(0, {{tb, tc * q * tk}, {tc, q * tk}, {q, tk}, {tk, 1}}));
}

TEST_CASE("eqs 19-23, corrected: padded strides") {
  const auto strides = [](const std::vector<Poly>& shape, std::size_t j) { return Lmad::padded(shape, j).strides(); };
  CHECK(strides(numbers({2, 3, 4, 5}), 1) == numbers({63, 21, 5, 1}));  // j = 2, counted from 1
  CHECK(strides(numbers({2, 3, 4, 5}), 0) == numbers({61, 20, 5, 1}));
  CHECK(strides(numbers({2, 3, 4, 5}), 2) == numbers({60, 20, 5, 1}));  // 5 is odd
  CHECK(strides(numbers({2, 3, 4, 5}), 3) == numbers({60, 20, 5, 1}));  // nothing further in
  Names s;
  const Poly t = s["T"], r = s["R"], q = s["Q"];
  const Lmad symbolic = Lmad::padded({q, t * r}, 0);
  CHECK(symbolic.dims()[0].stride == t * r + 1 - remainder(t * r, 2));
  CHECK(symbolic.dims()[1].stride == Poly(1));
  CHECK(prove_divisible(symbolic.dims()[0].stride, 2) == Proof::no);
  CHECK(symbolic.injective() == Proof::yes);
}

TEST_CASE("eqs 25 and 26: variance indices, and what they gather") {
  Names s;
  const auto dims = [&s](const std::string& names) {
    std::vector<Value> result;
    for (const char d : names) result.push_back(s.value(std::string(1, d)));
    return result;
  };
  CHECK(variance_indices(dims("jqai"), dims("bickja")) == std::vector<int>{4, 5, 1});  // eq 15
  CHECK(variance_indices(dims("bcqk"), dims("bickja")) == std::vector<int>{0, 2, 3});
  CHECK(variance_indices(dims("aqc"), dims("cba")) == std::vector<int>{2, 0});  // listing 2
  CHECK(variance_indices(dims("bq"), dims("cba")) == std::vector<int>{1});
  const std::vector<std::string> tiles{"Tb", "Ti", "Tc", "Tk", "Tj", "Ta"};
  CHECK(gather(tiles, variance_indices(dims("jqai"), dims("bickja"))) == std::vector<std::string>{"Tj", "Ta", "Ti"});
}

TEST_CASE("listing 9, corrected: transpositions, or a flattening between them, and the true strides") {
  Names s;
  const Poly J = s["J"], Q = s["Q"], A = s["A"], I = s["I"];
  const Lmad x = Lmad::row_major({J, Q, A, I});
  const Lmad a = x.permute({3, 0, 2, 1});
  CHECK(a == Lmad(0, {{I, 1}, {J, Q * A * I}, {A, I}, {Q, A * I}}));
  CHECK(recover_order(a).order == std::vector<int>{1, 3, 2, 0});
  CHECK(recover_order(a).exact);

  const Lmad expected(0, {{I, 1}, {A, I}, {J, Q * A * I}, {Q, A * I}});
  const auto reshaped = x.reshape({J * Q, A, I});
  REQUIRE(reshaped);
  const auto b = reshaped->permute({2, 1, 0}).reshape({I, A, J, Q});
  REQUIRE(b);
  CHECK(*b == expected);
  CHECK(*x.flatten(0, 1)->permute({2, 1, 0}).unflatten(2, {J, Q}) == expected);
  CHECK(recover_order(*b).order == std::vector<int>{2, 3, 1, 0});
}

}  // namespace
}  // namespace apl
