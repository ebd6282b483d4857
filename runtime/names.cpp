#include "runtime/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <utility>

namespace apl {
namespace {

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_constituent(char c) { return is_lower(c) || is_upper(c) || is_digit(c) || c == '_'; }

// Futhark's: what starts with an underscore is none.
bool is_identifier(std::string_view name) {
  return !name.empty() && (is_lower(name[0]) || is_upper(name[0])) && std::ranges::all_of(name, is_constituent);
}

std::string hexadecimal_code(unsigned char c) {
  std::string digits = fmt::format("{:x}", c);
  if (!is_digit(digits[0])) digits.insert(0, "0");
  return "z" + digits + "U";
}

constexpr std::string_view kFloats = "flt";  // of ir/ops.def

// Words of C, C++ and CUDA, names that generated functions have themselves, functions that they call, and macros.
// Macros in capitals are recognised by their look.
const std::unordered_set<std::string_view>& known_words() {
  static const std::unordered_set<std::string_view> words = {
      // C and C++
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
      "char8_t", "class", "co_await", "co_return", "co_yield", "compl", "concept", "const", "const_cast", "consteval",
      "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double", "dynamic_cast", "else",
      "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long",
      "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private",
      "protected", "public", "register", "reinterpret_cast", "requires", "restrict", "return", "short", "signed",
      "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local",
      "throw", "true", "try", "typedef", "typeid", "typename", "typeof", "union", "unsigned", "using", "virtual",
      "void", "volatile", "while", "xor", "xor_eq",
      // CUDA
      "blockDim", "blockIdx", "dim3", "gridDim", "threadIdx", "uchar", "uint", "ulong", "ushort", "warpSize",
      // generated functions
      "args", "blocks", "ctx", "done", "element", "elements", "failed", "failure", "flat", "inputs", "kernel", "launch",
      "main", "outputs", "status", "stream", "tries", "host_floor_div", "host_ceil_div", "host_index_min",
      "host_index_max", "release_at_end", "std",
      // of the C library: functions and variables that are called, or are no functions
      "abs", "alloca", "close_range", "copy_file_range", "daylight", "div", "environ", "errno", "free",
      "get_current_dir_name", "index", "malloc", "math_errhandling", "max", "memcpy", "memset", "min", "offsetof",
      "optarg", "opterr", "optind", "optopt", "signgam", "snprintf", "stderr", "stdin", "stdout", "timezone", "tzname",
      // macros, and their functions
      "fpclassify", "isfinite", "isgreater", "isgreaterequal", "isinf", "isless", "islessequal", "islessgreater",
      "isnan", "isnormal", "isunordered", "linux", "sched_priority", "signbit", "unix", "va_arg", "va_copy", "va_end",
      "va_start", "L_ctermid", "L_cuserid", "L_tmpnam", "P_tmpdir", "i386", "no_argument", "optional_argument",
      "required_argument", "st_atime", "st_ctime", "st_mtime",
  // mathematics: what operations on floats are called, and other names that C has there
#define APL_UNARY(name, text, domain) kFloats == #domain ? text : "",
#define APL_BINARY(name, text, domain) kFloats == #domain ? text : "",
#include "ir/ops.def"
      "cospi", "exp10", "exp2", "expm1", "fabs", "fma", "fmax", "fmin", "fmod", "j0", "j1", "jn", "pow", "rint",
      "sinpi", "tanpi", "tgamma", "trunc", "y0", "y1", "yn"};
  return words;
}

// What a launch passes, numbered, in variables of its own: arg_0, arg_1.
bool is_launch_argument(std::string_view name) {
  return name.starts_with("arg_") && name.size() > 4 && std::ranges::all_of(name.substr(4), is_digit);
}

// With f32's functions of mathematics.
bool is_known(std::string_view name) {
  const auto& words = known_words();
  return is_launch_argument(name) || words.contains(name) ||
         (name.size() > 1 && name.ends_with('f') && words.contains(name.substr(0, name.size() - 1)));
}

// The beginning that whole families of others' names have, if this is one of them.
std::string_view prefix_of_others(std::string_view name, bool is_global) {
  for (const std::string_view prefix : {"apl", "APL", "futhark", "FUTHARK", "host", "M", "L", "P"})
    if (name.starts_with(prefix) && name.substr(prefix.size()).starts_with('_') && name.size() > prefix.size() + 1)
      if (prefix.size() > 1 || !is_lower(name[2])) return prefix;
  for (const std::string_view prefix : {"cuda", "nvrtc", "PRI", "SCN"})
    if (name.starts_with(prefix)) return prefix;
  // Functions, which a variable may hide.
  for (const std::string_view prefix : {"omp", "pthread", "posix", "clock", "timer", "timespec", "sched"})
    if (is_global && name.starts_with(prefix) && name.substr(prefix.size()).starts_with('_')) return prefix;
  return {};
}
// CUDA's and HIP's types float2, uchar4, longlong1, which a variable may hide.
bool is_vector_type(std::string_view name) {
  if (name.empty() || name.back() < '1' || name.back() > '4') return false;
  name.remove_suffix(1);
  if (name.starts_with('u') && name != "u") name.remove_prefix(1);
  constexpr std::string_view kElements[] = {"char", "short", "int", "long", "longlong", "float", "double", "half"};
  return std::ranges::find(kElements, name) != std::end(kElements);
}

bool ends_like_others(std::string_view name, bool is_global) {
  if (is_global && is_vector_type(name)) return true;
  for (const std::string_view ending : {"_l", "_r", "_np", "_unlocked", "_exit", "_alloc"})
    if (is_global && name.ends_with(ending)) return true;
  return name.ends_with("_t");
}
bool looks_like_macro(std::string_view name) {
  return std::ranges::none_of(name, is_lower) && std::ranges::count_if(name, is_upper) >= 2;
}

// An identifier like `name`, which nobody else's family has.
std::string like(std::string_view name, bool is_global) {
  std::string base;
  for (char c : name) base += is_constituent(c) ? c : '_';
  if (base.empty() || is_digit(base[0]) || base[0] == '_') base.insert(0, "x");
  if (is_known(base)) return base;
  if (const std::string_view prefix = prefix_of_others(base, is_global); !prefix.empty()) {
    base.insert(prefix.size(), "x");
  } else if (ends_like_others(base, is_global) || looks_like_macro(base)) {
    base += "_x";
  }
  return base;
}

}  // namespace

std::string z_encoded(std::string_view text) {
  static constexpr std::string_view kPlain = "()[]:Zz&|^$=>#.<-!+'\\/*%";
  static constexpr std::string_view kCodes[] = {"ZL", "ZR", "ZM", "ZN", "ZC", "ZZ", "zz", "za", "zb", "zc", "zd", "ze",
                                                "zg", "zh", "zi", "zl", "zm", "zn", "zp", "zq", "zr", "zs", "zt", "zv"};
  std::string code;
  for (std::size_t k = 0; k < text.size(); ++k) {
    const char c = text[k];
    const std::size_t at = kPlain.find(c);
    if (at != std::string_view::npos) {
      code += kCodes[at];
    } else if (is_constituent(c) && !(k == 0 && is_digit(c))) {
      code += c;
    } else {
      code += hexadecimal_code(static_cast<unsigned char>(c));
    }
  }
  return code;
}

namespace {

// The text as a part of a C name, as Futhark reads it: blanks are taken for parts of words but after a comma, so that
// no record with a blank after its colon has such a name.
class OpaqueNameReader {
 public:
  explicit OpaqueNameReader(std::string_view text) : text_(text) {}

  std::optional<std::string> run() {
    std::optional<std::string> name = type();
    return at_ == text_.size() ? name : std::nullopt;
  }

 private:
  bool take(std::string_view token) {
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  std::optional<std::string> word() {
    const std::size_t end = std::min(text_.find_first_of("[]{}(),.:", at_), text_.size());
    if (end == at_) return std::nullopt;
    const std::size_t from = std::exchange(at_, end);
    return std::string(text_.substr(from, end - from));
  }
  std::optional<std::string> type() {
    int rank = 0;
    while (take("[]")) ++rank;
    if (rank > 0) {
      const auto element = type();
      return element ? std::optional(fmt::format("arr{}d_{}", rank, *element)) : std::nullopt;
    }
    if (take("(")) return parts(")");
    if (take("{")) return parts("}");
    auto name = word();
    if (name && take(".")) {
      const auto last = word();
      return last ? std::optional(*name + "_" + *last) : std::nullopt;
    }
    return name;
  }
  // Of a tuple or a record.
  std::optional<std::string> parts(std::string_view close) {
    const bool is_tuple = close == ")";
    std::string names;
    int count = 0;
    while (!take(close)) {
      if (count > 0 && !take(",")) return std::nullopt;
      while (count > 0 && take(" ")) continue;
      const auto label = is_tuple ? std::string() : word();
      if (!label || (!is_tuple && !take(":"))) return std::nullopt;
      const auto part = type();
      if (!part) return std::nullopt;
      names += is_tuple ? "_" + *part : "__" + *label + "_" + *part;
      ++count;
    }
    if (!is_tuple) return count == 0 ? "rec__" : "rec" + names;
    return count == 0 ? "unit" : fmt::format("tup{}{}", count, names);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// RFC 1321, in hexadecimal digits.
std::string md5(std::string_view text) {
  constexpr std::size_t kBlock = 64, kLength = 8;
  constexpr int kSteps = 64;
  constexpr int kShifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  std::string padded = std::string(text) + '\x80';
  while (padded.size() % kBlock != kBlock - kLength) padded += '\0';
  const std::uint64_t bits = std::uint64_t{8} * text.size();
  for (std::size_t k = 0; k < kLength; ++k) padded += static_cast<char>(bits >> (8 * k));
  std::uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  for (std::size_t block = 0; block < padded.size(); block += kBlock) {
    std::uint32_t words[16] = {};
    for (std::size_t k = 0; k < kBlock; ++k)
      words[k / 4] |= std::uint32_t{static_cast<unsigned char>(padded[block + k])} << (8 * (k % 4));
    auto [a, b, c, d] = std::to_array(state);
    for (int step = 0; step < kSteps; ++step) {
      const int round = step / 16;
      const std::uint32_t mixed = round == 0   ? (b & c) | (~b & d)
                                  : round == 1 ? (d & b) | (~d & c)
                                  : round == 2 ? b ^ c ^ d
                                               : c ^ (b | ~d);
      const int word = round == 0 ? step : round == 1 ? 5 * step + 1 : round == 2 ? 3 * step + 5 : 7 * step;
      const auto constant = static_cast<std::uint32_t>(std::floor(std::abs(std::sin(step + 1.0)) * 0x1p32));
      const std::uint32_t sum = a + mixed + constant + words[word % 16];
      a = std::exchange(d, std::exchange(c, std::exchange(b, b + std::rotl(sum, kShifts[round][step % 4]))));
    }
    const std::uint32_t added[4] = {a, b, c, d};
    for (int k = 0; k < 4; ++k) state[k] += added[k];
  }
  std::string digits;
  for (const std::uint32_t word : state)
    for (int k = 0; k < 4; ++k) digits += fmt::format("{:02x}", (word >> (8 * k)) & 0xff);
  return digits;
}

}  // namespace

std::string opaque_name(std::string_view type) {
  const std::optional<std::string> readable = OpaqueNameReader(type).run();
  return "opaque_" + (readable && is_identifier(*readable) ? *readable : md5(type));
}

std::string api_name(std::string_view name) { return is_identifier(name) ? std::string(name) : z_encoded(name); }

// No name of a source starts with a digit.
std::string symbol_part(std::string_view name) {
  return is_identifier(name) ? std::string(name) : "0" + z_encoded(name);
}

std::string legal_name(std::string_view name) {
  NameScope file, scope;
  return scope.add(std::string(name), {}, &file);
}

std::string NameScope::add(const std::string& hint, std::initializer_list<std::string_view> endings, NameScope* outer) {
  const std::string base = like(hint, outer != nullptr);
  const auto is_free = [&](const std::string& name) {
    return !is_known(name) && !taken_.contains(name) && (outer == nullptr || !outer->taken_.contains(name));
  };
  const auto is_wholly_free = [&](const std::string& name) {
    return is_free(name) &&
           std::ranges::all_of(endings, [&](std::string_view ending) { return is_free(name + std::string(ending)); });
  };
  std::string name = base;
  // Many values share a hint: go on where the last of them ended.
  for (int& n = suffixes_[base]; !is_wholly_free(name);) name = fmt::format("{}_{}", base, ++n);
  const auto take = [&](const std::string& made) {
    taken_.insert(made);
    if (outer != nullptr) outer->taken_.insert(made);
  };
  take(name);
  for (std::string_view ending : endings) take(name + std::string(ending));
  return name;
}

std::string comment_text(std::string_view text) {
  std::string result;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      result += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else if (c == '\\') {
      result += "\\\\";
    } else {
      result += c;
    }
  }
  // A backslash at a line's end, or its trigraph, would go on in the next line.
  if (result.ends_with('\\') || result.ends_with("?"
                                                 "?/"))
    result += '"';
  return result;
}

}  // namespace apl
