// The module types that every program sees: numeric, integral, real and the like. They are written in the language,
// made from lists of names by type, and evaluated where a program first uses one.
#include <string>
#include <utility>

#include "frontend/modules/modules.h"
#include "frontend/syntax/parser.h"

namespace apl::frontend {

namespace {

// `val NAME : TYPE` for each of the names.
std::string vals(const std::string& type, const std::string& names) {
  std::string text;
  for (std::size_t begin = 0; begin < names.size();) {
    std::size_t end = names.find(' ', begin);
    if (end == std::string::npos) end = names.size();
    const std::string name = names.substr(begin, end - begin);
    const bool op = std::isalpha(static_cast<unsigned char>(name[0])) == 0;
    text.append("val ").append(op ? "(" + name + ")" : name).append(" ").append(type).append("\n");
    begin = end + 1;
  }
  return text;
}

std::string prelude_text() {
  const std::string unary = ": t -> t", binary = ": t -> t -> t", ternary = ": t -> t -> t -> t";
  std::string conversions;
  for (const char* type : {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "bool"})
    conversions += vals(std::string(": ") + type + " -> t", type);
  const std::string bits = "val num_bits : i32\n val get_bit : i32 -> t -> i32\n val set_bit : i32 -> t -> i32 -> t\n";
  return "module type from_prim = { type t\n" + conversions + "}\n" + "module type numeric = { include from_prim\n" +
         vals(binary, "+ - * / % ** max min") + vals(": t -> t -> bool", "== != < > <= >=") +
         vals(unary, "neg abs sgn") + vals(": t", "highest lowest") +
         vals("[n] : [n]t -> t", "sum product maximum minimum") + "val to_i64 : t -> i64 }\n" +
         "module type integral = { include numeric\n" + vals(binary, "// %% & | ^ << >> >>> mul_hi") +
         vals(unary, "not") + vals(": t -> i32", "popc clz ctz") + vals(ternary, "mad_hi") + bits + "}\n" +
         "module type real = { include numeric\n" +
         vals(unary,
              "recip sqrt rsqrt cbrt exp sin cos tan sinpi cospi tanpi asin acos atan asinpi acospi atanpi sinh cosh "
              "tanh asinh acosh atanh gamma lgamma erf erfc log log2 log10 log1p ceil floor trunc round") +
         vals(binary, "atan2 atan2pi hypot") + vals(ternary, "lerp mad fma") + vals(": t -> bool", "isinf isnan") +
         vals(": t", "inf nan pi e") + "val from_fraction : i64 -> i64 -> t\n val to_f64 : t -> f64 }\n" +
         "module type float = { include real\n type int_t\n val from_bits : int_t -> t\n val to_bits : t -> int_t\n" +
         bits + vals(": t", "epsilon") + vals(binary, "nextafter copysign") + "val ldexp : t -> i32 -> t }\n";
}

bool is_prelude_interface(const std::string& name) {
  for (const char* known : {"from_prim", "numeric", "integral", "real", "float"})
    if (name == known) return true;
  return false;
}

}  // namespace

InterfacePtr Modules::prelude_interface(const std::string& name) {
  if (!is_prelude_interface(name)) return nullptr;
  if (!prelude_) {
    Program& program = checker_.out_.program;
    const DiagnosticSink silent;
    ImportedFile file;
    file.declarations = parse_file(prelude_text(), kPreludeFile, program, silent);
    resize_tables();
    // Places in the prelude are nobody's.
    program.prelude.push_back(std::move(file));
    ScopeTable scope = std::exchange(checker_.scope_, {});
    prelude_ = declarations(program.prelude.back().declarations, false);
    checker_.scope_ = std::move(scope);
  }
  const auto found = prelude_->interfaces.find(name);
  return found == prelude_->interfaces.end() ? nullptr : found->second;
}

}  // namespace apl::frontend
