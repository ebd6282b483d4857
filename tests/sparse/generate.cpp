#include "tests/sparse/generate.h"

#include <fmt/format.h>

namespace apl::sparse_tests {
namespace {

// `sum r c`: what a row and a column give. Absent elements change nothing.
std::string sum_of(const std::string& op, const std::string& type) {
  const auto fold = [](const std::string& operation, const std::string& neutral, const std::string& term) {
    return fmt::format("reduce ({}) ({}) (map2 ({}) r c)", operation, neutral, term);
  };
  // Infinities would meet zeros in what follows.
  const bool floats = type[0] == 'f';
  const std::string most = floats ? "1000" : type + ".highest", least = floats ? "(-1000)" : type + ".lowest";
  if (op == "min-plus") return fold(type + ".min", most, fmt::format("\\a x -> if a == 0 then {} else a + x", most));
  if (op == "max-times") return fold(type + ".max", least, fmt::format("\\a x -> if a == 0 then {} else a * x", least));
  if (op == "or-and") return fold("|", "0", "&");
  if (op == "first") return fold("\\u v -> if u == 0 then v else u", "0", "\\a x -> x * a");
  return fold("+", "0", "*");
}

std::string with(std::string text, const std::string& type, const std::string& sum) {
  const std::vector<std::pair<std::string, std::string>> words = {{"T", type}, {"SUM", sum}};
  for (const auto& [word, by] : words)
    for (std::size_t at = 0; (at = text.find("$" + word, at)) != std::string::npos; at += by.size())
      text.replace(at, word.size() + 1, by);
  return text;
}

// Arrays of the entry that are kept as bf16: the sparse one, and most of the others.
std::string kept_as_bf16(std::string_view form, Random& random) {
  std::string names = "A";
  for (std::size_t at = 0; (at = form.find(": [", at)) != std::string_view::npos; ++at) {
    const std::size_t open = form.rfind('(', at);
    if (open == std::string_view::npos || form.find(')', open) < at) continue;  // the type of the result
    const std::string_view name = form.substr(open + 1, at - open - 1);
    if (name != "A" && random.chance(85)) names += fmt::format(", {}", name);
  }
  return fmt::format("#[bf16({})] ", names);
}

struct Form {
  std::string name, text;
};

const std::vector<Form>& forms() {
  static const std::vector<Form> all = {
      {"SpMM, rows of B",
       "#[sparse(A)] entry $NAME [n][m][b] (A: [n][m]$T) (B: [m][b]$T): [n][b]$T =\n"
       "  map (\\r -> map (\\c -> $SUM) (transpose B)) A"},
      {"SpMM, columns of B",
       "#[sparse(A)] entry $NAME [n][m][b] (A: [n][m]$T) (B: [b][m]$T): [n][b]$T =\n"
       "  map (\\r -> map (\\c -> $SUM) B) A"},
      {"SpMM, turned result",
       "#[sparse(A)] entry $NAME [n][m][b] (A: [n][m]$T) (B: [m][b]$T): [b][n]$T =\n"
       "  map (\\c -> map (\\r -> $SUM) A) (transpose B)"},
      {"SpMM, A turned",
       "#[sparse(A)] entry $NAME [n][m][b] (A: [n][m]$T) (B: [n][b]$T): [m][b]$T =\n"
       "  map (\\r -> map (\\c -> $SUM) (transpose B)) (transpose A)"},
      {"SpMV", "#[sparse(A)] entry $NAME [n][m] (A: [n][m]$T) (c: [m]$T): [n]$T = map (\\r -> $SUM) A"},
      {"SpMM, batches",
       "#[sparse(A)] entry $NAME [n][m][b][k] (A: [n][m]$T) (B: [k][m][b]$T): [k][n][b]$T =\n"
       "  map (\\Bk -> map (\\r -> map (\\c -> $SUM) (transpose Bk)) A) B"},
      {"SpMM, code after",
       "#[sparse(A)] entry $NAME [n][m][b] (A: [n][m]$T) (B: [m][b]$T) (d: [b]$T) (e: [n]$T): [n][b]$T =\n"
       "  map2 (\\r x -> map2 (\\c y -> $T.max 0 ($SUM + y) - x) (transpose B) d) A e"},
      {"SDDMM",
       "#[sparse(A)] entry $NAME [n][m][k] (A: [n][m]$T) (X: [n][k]$T) (Y: [m][k]$T): [n][m]$T =\n"
       "  map2 (\\row r -> map2 (\\a c -> a * ($SUM)) row Y) A X"},
      {"SDDMM, sparse result",
       "#[sparse(A, result)] entry $NAME [n][m][k] (A: [n][m]$T) (X: [n][k]$T) (Y: [k][m]$T): [n][m]$T =\n"
       "  map2 (\\row r -> map2 (\\a c -> ($SUM) * a) row (transpose Y)) A X"},
      {"SDDMM, code after",
       "#[sparse(A)] entry $NAME [n][m][k] (A: [n][m]$T) (X: [n][k]$T) (Y: [m][k]$T) (d: [n]$T) (e: [m]$T): [n][m]$T "
       "=\n"
       "  map3 (\\row r x -> map3 (\\a c y -> if a == 0 then 0 else $T.max a ($SUM) + x - y) row Y e) A X d"},
      {"SDDMM, batches",
       "#[sparse(A)] entry $NAME [n][m][g][k][b] (A: [n][m]$T) (X: [g][n][k]$T) (Y: [g][m][k]$T) (V: [g][m][b]$T)\n"
       "    : [g][n][b]$T =\n"
       "  map3 (\\X Y V -> let S = map2 (\\row x -> map2 (\\a y -> a * reduce (+) 0 (map2 (*) x y)) row Y) A X\n"
       "                  let T = map2 (\\row s -> map2 (\\a s -> if a == 0 then 0 else $T.max s 1) row s) A S\n"
       "                  in map2 (\\r t -> map (\\c -> t + $SUM) (transpose V)) T (map (reduce $T.max 0) S))\n"
       "       X Y V"},
      {"SDDMM, then SpMM",
       "#[sparse(A)] entry $NAME [n][m][k][b] (A: [n][m]$T) (X: [n][k]$T) (Y: [m][k]$T) (V: [m][b]$T): [n][b]$T =\n"
       "  let S = map2 (\\row x -> map2 (\\a y -> a * reduce (+) 0 (map2 (*) x y)) row Y) A X\n"
       "  in map (\\r -> map (\\c -> $SUM) (transpose V)) S"},
      {"SpMM, A on both sides",
       "#[sparse(A)] entry $NAME [n] (A: [n][n]$T): [n][n]$T =\n"
       "  map (\\r -> map (\\c -> $SUM) (transpose A)) A"},
      {"SpMM, A and A turned",
       "#[sparse(A)] entry $NAME [n][m] (A: [n][m]$T): ([n][n]$T, [m][m]$T) =\n"
       "  (map (\\r -> map (\\c -> $SUM) A) A, map (\\r -> map (\\c -> $SUM) (transpose A)) (transpose A))"},
      {"SpMM, two sparse",
       "#[sparse(A)] #[sparse(B)] entry $NAME [n][m][b] (A: [n][m]$T) (B: [m][b]$T): [n][b]$T =\n"
       "  map (\\r -> map (\\c -> $SUM) (transpose B)) A"},
      {"SDDMM of A and A",
       "#[sparse(A)] entry $NAME [n] (A: [n][n]$T): [n][n]$T =\n"
       "  map2 (\\row r -> map2 (\\a c -> a * ($SUM)) row (transpose A)) A A"},
      {"guarded quotients",
       "#[sparse(A)] entry $NAME [n][m][b] (A: [n][m]$T) (d: [n]$T) (B: [m][b]$T): [n][b]$T =\n"
       "  let S = map2 (\\row x -> map (\\a -> if x == 0 then 0 else a / x) row) A (map (\\x -> x * x) d)\n"
       "  in map (\\r -> map (\\c -> reduce $T.max 0 (map2 (*) r c)) (transpose B)) S"},
      {"all elements",
       "#[sparse(A)] entry $NAME [n][m] (A: [n][m]$T): ($T, $T, $T) =\n"
       "  let r = flatten A let c = r in ($SUM, reduce $T.max $T.lowest r, reduce $T.min $T.highest c)"},
      {"largest of rows and columns",
       "#[sparse(A)] entry $NAME [n][m] (A: [n][m]$T): ([n]$T, [n]i64, [m]$T, [m]i64) =\n"
       "  let first (x, i) (y, j) = if x > y || (x == y && i < j) then (x, i) else (y, j: i64)\n"
       "  let last (x, i) (y, j) = if x > y || (x == y && i > j) then (x, i) else (y, j: i64)\n"
       "  let (x, i) = unzip (map (\\r -> reduce first ($T.lowest, -1) (zip r (iota m))) A)\n"
       "  let (y, j) = unzip (map (\\c -> reduce last ($T.lowest, -1) (zip c (iota n))) (transpose A))\n"
       "  in (x, i, y, j)"},
      {"single elements",
       "#[sparse(A)] entry $NAME [n] (A: [n][n]$T): ([n]$T, [n]$T) =\n"
       "  (map (\\i -> A[i, i]) (iota n), map (\\i -> A[n - 1 - i, (i * 7) % n]) (iota n))"},
      {"SpMM, and all elements",
       "#[sparse(A)] entry $NAME [n][m][b] (A: [n][m]$T) (B: [m][b]$T): ([n][b]$T, [n]$T) =\n"
       "  (map (\\r -> map (\\c -> $SUM) (transpose B)) A, map (\\r -> reduce $T.max $T.lowest r) A)"},
  };
  return all;
}

}  // namespace

const Choices& choices() {
  static const Choices all = [] {
    Choices made{{"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"},
                 {"plus-times", "min-plus", "max-times", "first", "or-and"},
                 {},
                 {"uniform", "banded", "block", "power-law", "empty", "full", "one-row", "one-column"}};
    for (const Form& form : forms()) made.forms.push_back(form.name);
    return made;
  }();
  return all;
}

Entry random_entry(std::uint64_t seed, const std::string& name) {
  Random random(seed);
  Entry entry{.name = name, .seed = seed};
  entry.type = random.one_of(choices().types);
  // What has kernels in the runtime is drawn more often.
  if (random.chance(20)) entry.type = "f32";
  entry.sum = random.chance(40) ? "plus-times" : random.one_of(choices().sums);
  const bool is_kept = entry.type == "bf16";
  const std::string type = is_kept ? "f32" : entry.type;
  if (entry.sum == "or-and" && type[0] == 'f') entry.sum = "plus-times";
  const Form& form = random.one_of(forms());
  entry.form = form.name;
  entry.text = with(form.text, type, sum_of(entry.sum, type));
  entry.text.replace(entry.text.find("$NAME"), 5, name);
  if (is_kept) entry.text = kept_as_bf16(form.text, random) + entry.text;
  entry.matrix = random.one_of(choices().matrices);
  return entry;
}

HostValue random_matrix(const std::string& kind, ScalarType type, std::int64_t rows, std::int64_t columns,
                        Random& random) {
  if (kind == "one-row") rows = 1;
  if (kind == "one-column") columns = 1;
  HostValue matrix = HostValue::zeros(type, {rows, columns});
  const bool negative = is_signed(type) || is_float(type);
  const std::int64_t block = random.between(2, 4), width = random.between(0, 2);
  const auto percent = [&](std::int64_t i, std::int64_t j) -> int {
    if (kind == "empty") return 0;
    if (kind == "full") return 100;
    if (kind == "banded") return i - j <= width && j - i <= width ? 90 : 0;
    if (kind == "block") return (i / block * 7 + j / block * 13) % 3 == 0 ? 95 : 0;
    if (kind == "power-law") return static_cast<int>(100 / (1 + i));
    return 25;
  };
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      if (!random.chance(percent(i, j))) continue;
      std::int64_t x = random.between(1, 2);
      if (negative && random.chance(50)) x = -x;
      matrix.set(i * columns + j,
                 is_float(type) ? Scalar::floating(type, static_cast<double>(x)) : Scalar::integer(type, x));
    }
  return matrix;
}

}  // namespace apl::sparse_tests
