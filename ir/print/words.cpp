#include "ir/print/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "ir/scalar.h"

namespace apl {

namespace {

constexpr auto kReserved = std::to_array<std::string_view>(
    {"apply",   "checked", "choose",  "copy_tile", "do",    "else", "entry",         "false", "for",
     "fun",     "if",      "in",      "let",       "loop",  "mem",  "nothing",       "of",    "private",
     "regtile", "return",  "returns", "segmap",    "stage", "then", "tile_contract", "true",  "while",
     "with"});

}  // namespace

bool is_reserved(std::string_view word) {
  if (scalar_type_from_text(word)) return true;
  return std::find(kReserved.begin(), kReserved.end(), word) != kReserved.end();
}

bool is_name_shaped(std::string_view text) {
  return !text.empty() && is_name_start(text.front()) && std::all_of(text.begin(), text.end(), is_name_rest);
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      out += c;
  }
  return out + '"';
}

std::string argument_text(std::string_view text) {
  const bool number = !text.empty() && is_digit(text.front()) && std::all_of(text.begin(), text.end(), is_name_rest);
  return number ? std::string(text) : name_or_quote(text);
}

std::string name_or_quote(std::string_view text) { return is_name_shaped(text) ? std::string(text) : quote(text); }

}  // namespace apl
