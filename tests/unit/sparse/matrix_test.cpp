// Sparse matrices from entries, columns, dense arrays and files.
#include "passes/sparse/matrix.h"

#include <doctest/doctest.h>

#include <numeric>
#include <random>
#include <string>

#include "passes/sparse/read.h"
#include "tests/unit/sparse/matrices.h"

namespace apl::sparse_test {
namespace {

using namespace sparse;

std::vector<double> dense_elements(const Csr& m) {
  std::vector<double> dense(static_cast<std::size_t>(m.rows * m.columns));
  for (std::int64_t row = 0, k = 0; row < m.rows; ++row)
    for (const std::int32_t column : m.row(row))
      dense[static_cast<std::size_t>(row * m.columns + column)] =
          m.values.empty() ? (static_cast<void>(k++), 1.0) : m.values[static_cast<std::size_t>(k++)];
  return dense;
}

TEST_CASE("entries in any order and several times make the same matrix as their sums in a dense array") {
  for (const std::string& kind : sparse_test::kinds())
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      INFO(kind << ", seed " << seed);
      const Csr once = sparse_test::random_matrix(kind, 20, seed);
      Coo entries{once.rows, once.columns, {}, {}, {}};
      std::vector<double> dense(static_cast<std::size_t>(once.rows * once.columns));
      std::mt19937_64 random(seed);
      for (std::int64_t k = 0; k < 3 * once.nonzeros(); ++k) {
        entries.row.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(once.rows)));
        entries.column.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(once.columns)));
        entries.value.push_back(1 + static_cast<double>(random() % 5));
        dense[static_cast<std::size_t>(entries.row.back() * once.columns + entries.column.back())] +=
            entries.value.back();
      }
      const auto matrix = from_coo(entries);
      REQUIRE(matrix);
      CHECK(dense_elements(*matrix) == dense);
      CHECK(*matrix == *from_dense(once.rows, once.columns, dense));
      const Csr turned = transpose(*matrix);
      CHECK(transpose(turned) == *matrix);
      CHECK(*from_csc(once.rows, once.columns, turned.row_start, turned.column, turned.values) == *matrix);
    }
}

TEST_CASE("explicit zeros are non-zeros, and zeros of a dense array are not") {
  const auto entries = from_coo({2, 2, {1, 0}, {0, 1}, {0, 3}});
  REQUIRE(entries);
  CHECK(entries->nonzeros() == 2);
  CHECK(entries->values == std::vector<double>{3, 0});
  CHECK(from_dense(2, 2, dense_elements(*entries))->nonzeros() == 1);
}

TEST_CASE("parts that do not fit together are refused") {
  CHECK_FALSE(from_coo({2, 2, {2}, {0}, {1}}));
  CHECK_FALSE(from_coo({2, 2, {0}, {-1}, {1}}));
  CHECK_FALSE(from_coo({2, 2, {0}, {0, 1}, {}}));
  CHECK_FALSE(from_coo({-1, 2, {}, {}, {}}));
  CHECK_FALSE(from_coo({std::int64_t{1} << 31, 2, {}, {}, {}}));
  CHECK_FALSE(from_csr(2, 2, {0, 1}, {0}, {}));
  CHECK_FALSE(from_csr(2, 2, {0, 2, 1}, {0}, {}));
  CHECK_FALSE(from_csr(2, 2, {0, 1, 1}, {2}, {}));
  CHECK_FALSE(from_csr(2, 2, {0, 1, 1}, {1}, {1, 2}));
  CHECK_FALSE(from_dense(2, 2, std::vector<double>(3)));
}

TEST_CASE("matrices that differ have different keys, values apart") {
  const Csr a = sparse_test::pattern(3, 3, {{0, 1}, {2, 2}});
  Csr valued = a;
  valued.values = {5, 6};
  CHECK(pattern_hash(a) == pattern_hash(valued));
  for (const Csr& b : {sparse_test::pattern(3, 3, {{0, 1}, {1, 2}}), sparse_test::pattern(3, 3, {{0, 2}, {2, 1}}),
                       sparse_test::pattern(3, 3, {{2, 1}, {0, 2}}), sparse_test::pattern(4, 3, {{0, 1}, {2, 2}}),
                       sparse_test::pattern(3, 4, {{0, 1}, {2, 2}}), sparse_test::pattern(3, 3, {})})
    CHECK(pattern_hash(a) != pattern_hash(b));
}

TEST_CASE("Matrix Market files mean what they say") {
  const auto read = [](const std::string& remainder) { return read_matrix("%%MatrixMarket matrix " + remainder); };
  const auto elements = [&](const std::string& remainder) {
    const auto matrix = read(remainder);
    REQUIRE_MESSAGE(matrix, remainder << ": " << matrix.error().message);
    return dense_elements(*matrix);
  };
  using Dense = std::vector<double>;
  CHECK(elements("coordinate real general\n% c\n\n2 3 3\n2 1 -1.5e1\n1 3 +2\n\n1 3 0.5") ==
        Dense{0, 0, 2.5, -15, 0, 0});
  CHECK(elements("coordinate integer symmetric\r\n2 2 2\r\n1 1 4\r\n2 1 -7\r\n") == Dense{4, -7, -7, 0});
  CHECK(elements("COORDINATE pattern GENERAL\n1 2 1\n1 2\n") == Dense{0, 1});
  CHECK(elements("coordinate real skew-symmetric\n2 2 1\n2 1 3\n") == Dense{0, -3, 3, 0});
  CHECK(elements("array real general\n2 2\n1\n0\n3\n4\n") == Dense{1, 3, 0, 4});
  CHECK(elements("coordinate real general\n1 1 1\n1 1 1e-320\n") == Dense{1e-320});
  CHECK(elements("coordinate real general\n0 0 0\n").empty());
  CHECK(read("coordinate pattern symmetric\n3 3 0\n")->row_start.size() == 4);
  CHECK(read("coordinate real general\n1 1 1\n1 1 0\n")->nonzeros() == 1);
}

TEST_CASE("what is wrong with a file is said at its line") {
  struct Case {
    const char* text;
    Code code;
    std::uint32_t line;
    const char* message;
  };
  const Case cases[] = {
      {"%%MatrixMarkt matrix coordinate real general\n1 1 0\n", Code::syntax_error, 1, "first word"},
      {"%%MatrixMarket tensor coordinate real general\n1 1 0\n", Code::syntax_error, 1, "`tensor`"},
      {"%%MatrixMarket matrix coordinate complex general\n1 1 0\n", Code::unsupported_construct, 1, "complex"},
      {"%%MatrixMarket matrix coordinate real hermitian\n1 1 0\n", Code::unsupported_construct, 1, "complex"},
      {"%%MatrixMarket matrix coordinate real general\n%\n1 x 0\n", Code::syntax_error, 3, "expected rows"},
      {"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n1 1\n", Code::syntax_error, 4, "expected a value"},
      {"%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n", Code::syntax_error, 3, "the row is not"},
      {"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 0 1\n", Code::syntax_error, 3, "the column is not"},
      {"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1 5\n", Code::syntax_error, 3, "more on the line"},
      {"%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 5.5\n", Code::syntax_error, 3, "integer"},
      {"%%MatrixMarket matrix coordinate real general\n2 2 5\n1 1 1\n", Code::syntax_error, 2, "5 entries announced"},
      {"%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n", Code::syntax_error, 3, "above the diagonal"},
      {"%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n", Code::syntax_error, 2, "symmetric"},
      {"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 1\n", Code::syntax_error, 3, "diagonal"},
      {"%%MatrixMarket matrix coordinate real general\n2000000000 1 1\n1 1 1\n", Code::unsupported_construct, 2,
       "large"},
      {"%%MatrixMarket matrix coordinate real general\n1 1 99999999999999999999\n", Code::syntax_error, 2, "expected"},
      {"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n", Code::syntax_error, 2, "4 values announced"},
      {"%%MatrixMarket matrix array real general\n1 1\n1\n2\n", Code::syntax_error, 4, "more values"},
      {"2, 2\n", Code::syntax_error, 2, "expected rows"},
      {"2, 2, 1\n0 1 1\n2\n", Code::syntax_error, 3, "column"},
      {"2, 2, 1\n0 1 0\n1\n", Code::syntax_error, 2, "ends before"},
      {"2, 2, 1\n0 1 1\n1 1\n", Code::syntax_error, 3, "more columns"},
      {"1000000000, 2, 1\n0 1 1\n1\n", Code::syntax_error, 1, "do not fit"},
  };
  for (const Case& c : cases) {
    const auto matrix = read_matrix(c.text);
    REQUIRE_MESSAGE(!matrix, c.text);
    INFO(c.text << matrix.error().message);
    CHECK(matrix.error().code == c.code);
    CHECK(matrix.error().location.line == c.line);
    CHECK(matrix.error().message.find(c.message) != std::string::npos);
  }
}

TEST_CASE("a matrix is the same after it is written and read") {
  for (const std::string& kind : sparse_test::kinds()) {
    const Csr matrix = sparse_test::random_matrix(kind, 30, 1);
    INFO(kind);
    const auto again = read_matrix(to_matrix_market(matrix));
    REQUIRE(again);
    CHECK(again->column == matrix.column);
    CHECK(again->row_start == matrix.row_start);
    CHECK(again->values == matrix.values);
    const auto pruned = read_matrix(to_smtx(matrix));
    REQUIRE(pruned);
    CHECK(pattern_hash(*pruned) == pattern_hash(matrix));
  }
}

TEST_CASE("a file read in many pieces is the file read in one") {
  Coo entries{5000, 5000, {}, {}, {}};
  std::mt19937_64 random(7);
  for (int k = 0; k < 40000; ++k) {
    entries.row.push_back(static_cast<std::int32_t>(random() % 5000));
    entries.column.push_back(static_cast<std::int32_t>(random() % 5000));
    entries.value.push_back(static_cast<double>(random() % 100));
  }
  const auto matrix = from_coo(entries);
  REQUIRE(matrix);
  std::string text = to_matrix_market(*matrix);
  const auto again = read_matrix(text, {true, 3});
  REQUIRE(again);
  CHECK(*again == *matrix);
  text.replace(text.size() - 2, 1, "x");
  const auto broken = read_matrix(text, {true, 3});
  REQUIRE_FALSE(broken);
  CHECK(broken.error().location.line == static_cast<std::uint32_t>(matrix->nonzeros()) + 2);
}

}  // namespace
}  // namespace apl::sparse_test
