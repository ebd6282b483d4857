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

// How factors are kept, and what they are multiplied and summed in.
struct Kind {
  const char *name, *factor, *sum, *attribute;
};
constexpr Kind kKinds[] = {
    {"f32", "f32", "f32", ""},
    {"f64", "f64", "f64", ""},
    {"f16", "f16", "f32", ""},
    {"h16", "f16", "f16", ""},
    {"bf16", "f32", "f32", "bf16(A, B)"},
    {"tf32", "f32", "f32", "tf32"},
    {"3xtf32", "f32", "f32", "f32_3xtf32"},
    {"i8", "i8", "i32", ""},
};

// Code after the reduction, with `s` for the sum, `i` for the result's indices, `n` for the last of them: what it is
// named, its parameters behind A and B (dims of the result in brackets, the last alone), and the code.
struct Form {
  const char *name, *parameters, *code;
};
constexpr Form kForms[] = {
    {"plain", "", "s"},
    {"added", " (alpha: TYPE) (beta: TYPE) (C: DIMSTYPE)", "alpha * s + beta * C[ALL]"},
    {"biased", " (b: LASTTYPE)", "TYPE.max (s + b[INNER]) ZERO"},
    {"both", " (b: LASTTYPE) (C: DIMSTYPE)", "TYPE.max (s + b[INNER]) ZERO + C[ALL]"},
    {"two", " (C: DIMSTYPE) (D: DIMSTYPE)", "s * C[ALL] + D[ALL]"},
};

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

// Nested maps around a sum, with elements that are converted where they are read.
Measured program_of(const Einsum& einsum, const Kind& kind, const Form& form) {
  const std::string factor = kind.factor, sum = kind.sum;
  const auto indices = [](const std::string& dims) {
    std::string at;
    for (const char dim : dims) at += fmt::format("{}i_{}", at.empty() ? "" : ", ", dim);
    return at;
  };
  const auto read = [&](const char* array, const std::string& dims) {
    return fmt::format("{}{}[{}]", factor == sum ? "" : sum + "." + factor + " ", array, indices(dims));
  };
  std::string sums, dims;
  for (const char dim : einsum.left + einsum.right) {
    if (dims.find(dim) != std::string::npos) continue;
    dims += dim;
    if (einsum.result.find(dim) == std::string::npos) sums += dim;
  }
  std::ranges::sort(dims);
  const auto filled = [&](const char* text) {
    const std::string last = einsum.result.empty() ? "" : einsum.result.substr(einsum.result.size() - 1);
    std::string made = replaced(text, "DIMS", brackets(einsum.result));
    made = replaced(replaced(made, "LAST", brackets(last)), "ALL", indices(einsum.result));
    return replaced(replaced(replaced(made, "INNER", indices(last)), "TYPE", sum), "ZERO", sum == "i32" ? "0" : "0.0");
  };
  std::string body = read("A", einsum.left) + " * " + read("B", einsum.right);
  for (std::size_t k = sums.size(); k-- > 0;)
    body = fmt::format("{}.sum (tabulate s{} (\\i_{} -> {}))", sum, sums[k], sums[k], body);
  if (form.parameters[0] != '\0') body = fmt::format("let s = {} in {}", body, filled(form.code));
  for (std::size_t k = einsum.result.size(); k-- > 0;)
    body = fmt::format("tabulate s{} (\\i_{} -> {})", einsum.result[k], einsum.result[k], body);
  Measured made{fmt::format("{}_{}", einsum.name, kind.name), "", {}};
  if (form.parameters[0] != '\0') made.entry += fmt::format("_{}", form.name);
  if (kind.attribute[0] != '\0') made.source = fmt::format("#[{}]\n", kind.attribute);
  made.source += fmt::format("entry {} {} (A: {}{}) (B: {}{}){} : {}{} =\n  {}\n", made.entry, brackets(dims),
                             brackets(einsum.left), factor, brackets(einsum.right), factor, filled(form.parameters),
                             brackets(einsum.result), sum, body);
  for (const auto& [dim, size] : einsum.sizes) made.sizes[fmt::format("s{}", dim)] = size;
  return made;
}

// Those of bench/contractions_gpu.py's `shapes` whose tiles have rows and columns.
std::vector<Einsum> other_shapes() {
  std::vector<Einsum> all;
  for (const std::int64_t n : {4, 16, 64})
    all.push_back({fmt::format("tall_{}", n), "mn", "mk", "kn", {{'m', 1 << 20}, {'n', n}, {'k', 64}}});
  all.push_back({"tall_4096x8", "mn", "mk", "kn", {{'m', 4096}, {'n', 8}, {'k', 4096}}});
  all.push_back({"few_results", "mn", "km", "kn", {{'m', 128}, {'n', 128}, {'k', 1 << 20}}});
  for (const std::int64_t n : {512, 768, 1024, 3000, 4097, 5000})
    all.push_back({fmt::format("square_{}", n), "mn", "mk", "kn", {{'m', n}, {'n', n}, {'k', n}}});
  for (const auto& [batch, n] : {std::pair{1000000, 4}, {65536, 16}, {512, 128}})
    all.push_back({fmt::format("batch_{}", n), "bmn", "bmk", "bkn", {{'b', batch}, {'m', n}, {'n', n}, {'k', n}}});
  const std::map<char, std::int64_t> attention{{'h', 16}, {'i', 2048}, {'j', 2048}, {'d', 64}};
  all.push_back({"scores", "hij", "hid", "hjd", attention});
  all.push_back({"context", "hid", "hij", "hjd", attention});
  return all;
}

}  // namespace

std::vector<std::string> suite_kinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

std::vector<std::string> suite_forms() {
  std::vector<std::string> names;
  for (const Form& form : kForms) names.emplace_back(form.name);
  return names;
}

Result<std::vector<Measured>> measured_suite(const std::string& tccg, const std::vector<std::string>& kinds,
                                             const std::vector<std::string>& forms) {
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
  for (Einsum& einsum : other_shapes()) all.push_back(std::move(einsum));
  std::vector<Measured> made;
  const auto is_asked = [](const std::vector<std::string>& names, const char* name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (const Einsum& einsum : all)
    for (const Kind& kind : kKinds)
      for (const Form& form : kForms)
        if (is_asked(kinds, kind.name) && is_asked(forms, form.name)) made.push_back(program_of(einsum, kind, form));
  return made;
}

}  // namespace apl::contraction_tests
