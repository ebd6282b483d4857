#include "tests/contractions/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

namespace apl::contraction_tests {

namespace {

// Dims of the result and of both operands, a letter each, and sizes.
struct Einsum {
  std::string name, result, left, right;
  std::map<char, std::int64_t> sizes;
};

std::string brackets(const std::string& dims) {
  std::string text;
  for (const char dim : dims) text += fmt::format("[s{}]", dim);
  return text;
}

// Nested maps around a sum, with elements that are converted where they are read.
Measured program_of(const Einsum& einsum, const char* type) {
  const std::string kind = type == std::string("f16") ? "f32" : type;
  const auto read = [&](const char* array, const std::string& dims) {
    std::string at;
    for (const char dim : dims) at += fmt::format("{}i_{}", at.empty() ? "" : ", ", dim);
    return fmt::format("{}{}[{}]", kind == type ? "" : kind + "." + type + " ", array, at);
  };
  std::string sums, dims;
  for (const char dim : einsum.left + einsum.right) {
    if (dims.find(dim) != std::string::npos) continue;
    dims += dim;
    if (einsum.result.find(dim) == std::string::npos) sums += dim;
  }
  std::ranges::sort(dims);
  std::string body = read("A", einsum.left) + " * " + read("B", einsum.right);
  for (std::size_t k = sums.size(); k-- > 0;)
    body = fmt::format("{}.sum (tabulate s{} (\\i_{} -> {}))", kind, sums[k], sums[k], body);
  for (std::size_t k = einsum.result.size(); k-- > 0;)
    body = fmt::format("tabulate s{} (\\i_{} -> {})", einsum.result[k], einsum.result[k], body);
  Measured made{einsum.name + "_" + type, "", {}};
  made.source =
      fmt::format("entry {} {} (A: {}{}) (B: {}{}) : {}{} =\n  {}\n", made.entry, brackets(dims), brackets(einsum.left),
                  type, brackets(einsum.right), type, brackets(einsum.result), kind, body);
  for (const auto& [dim, size] : einsum.sizes) made.sizes[fmt::format("s{}", dim)] = size;
  return made;
}

}  // namespace

Result<std::vector<Measured>> measured_suite(const std::string& tccg) {
  constexpr std::int64_t kMatrix = 4096;
  std::vector<Einsum> all;
  for (const auto& [name, left, right] :
       {std::array{"mm0", "aq", "bq"}, {"mm1", "aq", "qb"}, {"mm2", "qa", "bq"}, {"mm3", "qa", "qb"}})
    all.push_back({name, "ab", left, right, {{'a', kMatrix}, {'b', kMatrix}, {'q', kMatrix}}});
  int number = 0;
  for (const auto& [free, summed] : {std::pair{32, 32}, {32, 31}, {31, 31}, {16, 2048}}) {
    std::map<char, std::int64_t> sizes{{'q', summed}};
    for (const char dim : std::string("abcijk")) sizes[dim] = free;
    ++number;
    all.push_back({fmt::format("sd1_7_ds{}", number), "abcijk", "icaq", "qbjk", sizes});
    all.push_back({fmt::format("sd2_3_ds{}", number), "abcijk", "kiaq", "bcjq", sizes});
  }
  std::ifstream file(tccg);
  std::size_t before = all.size();
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    Einsum einsum;
    std::string sign, size;
    std::istringstream words(line);
    words >> einsum.name >> einsum.result >> sign >> einsum.left >> sign >> einsum.right;
    while (words >> size) einsum.sizes[size[0]] = std::stoll(size.substr(2));
    all.push_back(std::move(einsum));
  }
  if (all.size() == before) return make_error(Code::command_no_such_file, {}, "no contraction is in " + tccg);
  std::vector<Measured> made;
  for (const Einsum& einsum : all)
    for (const char* type : {"f32", "f64", "f16"}) made.push_back(program_of(einsum, type));
  return made;
}

}  // namespace apl::contraction_tests
