#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "ir/host_value.h"
#include "passes/sparse/profile.h"
#include "tests/unit/ir/texts.h"

namespace apl::fuzz {

namespace {

std::vector<std::string> read_files(const std::string& folder, const std::string& extension) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == extension) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::ifstream in(path);
    texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return texts;
}

// The programs of a page: those that are fenced, and the first columns of tables of programs and messages.
std::vector<std::string> programs_of(const std::string& page) {
  std::vector<std::string> programs;
  std::ifstream in(page);
  bool fenced = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      fenced = !fenced && line == "```futhark";
      if (fenced) programs.emplace_back();
      continue;
    }
    if (fenced) programs.back() += line + "\n";
    const std::size_t end = line.find("` | `");
    if (fenced || !line.starts_with("| `") || end == std::string::npos) continue;
    std::string program = line.substr(3, end - 3);
    for (std::size_t at = 0; (at = program.find("\\|", at)) != std::string::npos;) program.erase(at, 1);
    programs.push_back(std::move(program));
  }
  return programs;
}

// Names and numbers as wholes, else single bytes.
std::vector<std::string> tokens_of(const std::string& text) {
  std::vector<std::string> tokens;
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; };
  for (std::size_t k = 0; k < text.size();) {
    std::size_t end = k + 1;
    if (is_word(text[k]))
      while (end < text.size() && is_word(text[end])) ++end;
    tokens.push_back(text.substr(k, end - k));
    k = end;
  }
  return tokens;
}

class Mutator {
 public:
  Mutator(const std::vector<std::string>& pool, std::uint64_t seed) : pool_(pool), random_(seed) {}

  std::string run() {
    text_ = pool_[below(pool_.size())];
    for (std::size_t k = 1 + below(4); k > 0 && !text_.empty(); --k) change();
    return text_;
  }

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

  void change() {
    static const std::vector<std::string> kNumbers = {"9223372036854775807",
                                                      "-9223372036854775808",
                                                      "18446744073709551616",
                                                      "99999999999999999999999",
                                                      "4294967296",
                                                      "0",
                                                      "-1",
                                                      "1e400",
                                                      "1000000007",
                                                      "0x8000000000000000",
                                                      "65536"};
    static const std::vector<std::string> kOpening = {"(",
                                                      "[",
                                                      "{",
                                                      "\\x -> ",
                                                      "if true then ",
                                                      "let x = ",
                                                      "-",
                                                      "!",
                                                      "[[",
                                                      "((",
                                                      "map (",
                                                      "#[a] ",
                                                      "size(",
                                                      "min(n, ",
                                                      "[0 :+ ",
                                                      "#a (",
                                                      "f32.(",
                                                      "m (",
                                                      "vjp (",
                                                      "?[n].",
                                                      "match x case ",
                                                      "module m = { ",
                                                      "module type t = { ",
                                                      "module m (p: ",
                                                      "type t = #a (",
                                                      "import \"x\" "};
    switch (below(11)) {
      case 0: text_[below(text_.size())] = static_cast<char>(random_() % 256); break;
      case 1: text_[below(text_.size())] ^= static_cast<char>(1 << below(8)); break;
      case 2: text_.resize(below(text_.size())); break;
      case 3: {
        const std::string& other = pool_[below(pool_.size())];
        text_ = text_.substr(0, below(text_.size())) + other.substr(below(other.size()));
        break;
      }
      case 4: {
        // Deep nesting, closed or not.
        const std::string& open = kOpening[below(kOpening.size())];
        const std::size_t at = below(text_.size()), times = std::size_t{1} << below(17);
        std::string deep;
        for (std::size_t k = 0; k < times && deep.size() < (1 << 20); ++k) deep += open;
        text_.insert(at, deep);
        break;
      }
      default: change_tokens(kNumbers);
    }
  }

  void change_tokens(const std::vector<std::string>& numbers) {
    std::vector<std::string> tokens = tokens_of(text_);
    const std::size_t at = below(tokens.size()), count = 1 + below(below(8) == 0 ? 40 : 3);
    const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(at);
    const auto last = tokens.begin() + static_cast<std::ptrdiff_t>(std::min(at + count, tokens.size()));
    switch (below(5)) {
      case 0: tokens.erase(first, last); break;
      case 1: {
        const std::vector<std::string> twice(first, last);
        tokens.insert(first, twice.begin(), twice.end());
        break;
      }
      case 2: std::swap(tokens[at], tokens[below(tokens.size())]); break;
      case 3: tokens[at] = tokens[below(tokens.size())]; break;
      default: {
        // A number made huge.
        for (std::size_t k = 0; k < tokens.size(); ++k) {
          std::string& token = tokens[(at + k) % tokens.size()];
          if (std::isdigit(static_cast<unsigned char>(token[0])) == 0) continue;
          const std::size_t digits = token.find_first_not_of("0123456789");
          token = numbers[below(numbers.size())] + (digits == std::string::npos ? "" : token.substr(digits));
          break;
        }
      }
    }
    text_.clear();
    for (const std::string& token : tokens) text_ += token;
  }

  const std::vector<std::string>& pool_;
  std::mt19937_64 random_;
  std::string text_;
};

}  // namespace

Pool read_pool(const std::string& source_folder) {
  Pool pool;
  for (const char* folder : {"/examples", "/tests/golden", "/tests/library", "/tests/programs"})
    for (std::string& text : read_files(source_folder + folder, ".fut")) pool.sources.push_back(std::move(text));
  for (std::string& text : programs_of(source_folder + "/docs/language.md")) pool.sources.push_back(std::move(text));
  pool.modules = read_files(source_folder + "/tests/golden", ".aplir");
  for (const std::string_view text : test_texts::kAll) pool.modules.emplace_back(text);
  pool.values = {
      "[[1i32, 2i32], [3i32, -4i32]] 5u8 true f32.nan -f64.inf 0x1F -- end\n \"a\\nb\" empty([0][3]f32)",
      "[1.5, 2.0e3, -0.0] [true, false,] [[[1u64]]] 1_000i64 0b101u8 3f16",
      "empty([2][0]bool) [[f32.inf, -f32.inf], [1f32, 2f32]] 9223372036854775807i64 255u8",
  };
  const std::vector<std::int32_t> ints = {1, -2, 3, 4, 5, 6};
  const std::vector<double> floats = {1.5, -2, 0};
  const std::string binary = HostValue::array(ScalarType::i32, {2, 3}, ints).to_binary();
  pool.values.push_back(binary);
  pool.values.push_back(HostValue::array(ScalarType::f64, {3}, floats).to_binary() + " 7i32 " + binary);
  pool.values.push_back(HostValue::scalar(Scalar::boolean(true)).to_binary() +
                        HostValue::zeros(ScalarType::u8, {0, 7}).to_binary());
  pool.matrices = {
      "%%MatrixMarket matrix coordinate real general\n% c\n3 4 4\n1 1 1.5\n3 2 -2e3\n\n3 2 7\n2 4 0\n",
      "%%MatrixMarket matrix coordinate integer symmetric\r\n5 5 3\r\n1 1 4\r\n5 2 -1\r\n5 4 2\r\n",
      "%%MatrixMarket matrix coordinate pattern skew-symmetric\n3 3 2\n2 1\n3 1\n",
      "%%MatrixMarket matrix array real general\n2 3\n1\n0\n2.5\n-1\n0\n4\n",
      "4, 6, 5\n0 2 2 3 5\n0 5 3 1 2\n",
  };
  pool.tilings = {
      "apl-sparse-plan 1\nmatrix 4 6 5 12ab\noperator spmm\ndense 128 part 64\nnote by hand\nform tiles\norder 3 1 0 "
      "2\n"
      "lists 1 2 8 elements 64 run 32\ngroups 1\n1 32@0>=4 8@3>=1 64@0>=2 ell\nend\n",
      "apl-sparse-plan 1\nmatrix 300 6 5 ffffffffffffffff\noperator sddmm\ndense 8 part 8\nform tiles\norder natural\n"
      "lists 4 elements 4 run 1\ngroups 5\n3 run\n1 16@3>=16 run\n1 ell\nend\n",
      "divide(columns, 64) > reorder(rows) > squeeze > split(1|2|4) > pad(rows) > divide(rows, 8|4|2)",
      "divide(rows, 16) > reorder(columns) > divide(columns, 16)",
      apl::sparse::to_text(*apl::sparse::builtin_profile("cpu")),
  };
  return pool;
}

Reader reader_of(std::uint64_t seed) {
  switch (seed % 10) {
    case 9: return Reader::tiling;
    case 8: return Reader::matrix;
    case 0: return Reader::values;
    case 1:
    case 3:
    case 5: return Reader::ir;
    default: return Reader::source;
  }
}

Input mutated(const Pool& pool, std::uint64_t seed) {
  const auto from = [&](const std::vector<std::string>& texts) {
    return Input{.reader = reader_of(seed), .text = Mutator(texts, seed).run(), .imported = {}};
  };
  switch (reader_of(seed)) {
    case Reader::tiling: return from(pool.tilings);
    case Reader::matrix: return from(pool.matrices);
    case Reader::values: return from(pool.values);
    case Reader::ir: return from(pool.modules);
    case Reader::source: break;
  }
  Input input = from(pool.sources);
  input.imported = seed % 4 == 0 ? Mutator(pool.sources, ~seed).run() : pool.sources[seed / 10 % pool.sources.size()];
  return input;
}

}  // namespace apl::fuzz
