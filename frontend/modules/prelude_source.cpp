// What of the prelude is written in the language: the module types that every program sees (numeric, integral, real and
// the like, made from lists of names by type), and functions on arrays for which no operation of the IR is needed. It
// is evaluated where a program uses one of its names.
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

std::string interfaces_text() {
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

// `acc`: a function that writes to an accumulator is run once to count its writes, and once for each of them to see
// which it is; so all of them are done side by side, in whatever loops and branches they stand. Of what one run of it
// scatters to one place, only the last is written.
//
// `flatmap` has no element to start its result with before it knows one. It is as long as all rows together from the
// start, so that each row is written once, and derivatives need not follow a loop whose arrays grow.
//
// `flat_index_2d`, `flat_update_2d`, ...: elements offset + i*s + j*t + ... of an array, for all i, j, ...
constexpr std::string_view kFunctions = R"(
module intrinsics = {
  type~ acc 't = _accumulator_of t

  def acc_write [k] 'a (acc: *acc ([k]a)) (i: i64) (v: a) : *acc ([k]a) =
    let (count, wanted, once, index, value) = _writes acc
    let (index, value) =
      if count == wanted then (i, copy v) else (if once && count > wanted && i == index then -1 else index, copy value)
    in _accumulator (count + 1, wanted, once, index, value)

  def stream_writes [k] [n] 'a 'b (x: a) (once: bool) (f: *acc ([k]a) -> b -> acc ([k]a)) (bs: [n]b)
      : ?[m].[m](i64, a) =
    let go wanted b = f (_accumulator (0, wanted, once, -1, copy x)) b
    let counts = map (\b -> (_writes (go (-1) b)).0) bs
    let offsets = exscan (+) 0 counts
    let m = i64.sum counts
    let starts = map2 (\count offset -> if count > 0 then offset else -1) counts offsets
    let owners = scan i64.max 0 (scatter (replicate m 0) starts (indices bs))
    in map2 (\i owner -> let (_, _, _, index, value) = _writes (go (i - offsets[owner]) bs[owner]) in (index, value))
            (iota m) owners

  def scatter_stream [k] [n] 'a 'b (dest: *[k]a) (f: *acc ([k]a) -> b -> acc ([k]a)) (bs: [n]b) : *[k]a =
    if k == 0 then dest
    else let (is, vs) = unzip (stream_writes (copy dest[0]) true f bs) in scatter dest is vs
  def hist_stream [k] [n] 'a 'b (dest: *[k]a) (op: a -> a -> a) (ne: a) (f: *acc ([k]a) -> b -> acc ([k]a))
      (bs: [n]b) : *[k]a =
    let (is, vs) = unzip (stream_writes ne false f bs) in reduce_by_index dest op ne is vs

  def update [n] [k] 'a (as: *[n]a) (is: [k]i64) (vs: [k]a) : *[n]a =
    let written = map2 (\i v -> if 0 <= i && i < n then v else copy as[i]) is vs in scatter as is written

  def flat_index_2d [n] 'a (as: [n]a) (o: i64) (n1: i64) (s1: i64) (n2: i64) (s2: i64) : *[n1][n2]a =
    tabulate n1 (\i -> tabulate n2 (\j -> as[o + i * s1 + j * s2]))
  def flat_index_3d [n] 'a (as: [n]a) (o: i64) (n1: i64) (s1: i64) (n2: i64) (s2: i64) (n3: i64) (s3: i64)
      : *[n1][n2][n3]a =
    tabulate n1 (\i -> flat_index_2d as (o + i * s1) n2 s2 n3 s3)
  def flat_index_4d [n] 'a (as: [n]a) (o: i64) (n1: i64) (s1: i64) (n2: i64) (s2: i64) (n3: i64) (s3: i64) (n4: i64)
      (s4: i64) : *[n1][n2][n3][n4]a =
    tabulate n1 (\i -> flat_index_3d as (o + i * s1) n2 s2 n3 s3 n4 s4)

  def flat_update_2d [n] [k] [l] 'a (as: *[n]a) (o: i64) (s1: i64) (s2: i64) (vs: [k][l]a) : *[n]a =
    update as (flatten (tabulate_2d k l (\i j -> o + i * s1 + j * s2))) (flatten vs)
  def flat_update_3d [n] [k] [l] [p] 'a (as: *[n]a) (o: i64) (s1: i64) (s2: i64) (s3: i64) (vs: [k][l][p]a) : *[n]a =
    update as (flatten_3d (tabulate_3d k l p (\i j h -> o + i * s1 + j * s2 + h * s3))) (flatten_3d vs)
  def flat_update_4d [n] [k] [l] [p] [q] 'a (as: *[n]a) (o: i64) (s1: i64) (s2: i64) (s3: i64) (s4: i64)
      (vs: [k][l][p][q]a) : *[n]a =
    update as
      (flatten_4d (tabulate k (\i -> tabulate_3d l p q (\j h g -> o + i * s1 + j * s2 + h * s3 + g * s4))))
      (flatten_4d vs)
}

def jvp 'a 'b (f: a -> b) (x: a) (dx: a) : b = (jvp2 f x dx).1
def vjp 'a 'b (f: a -> b) (x: a) (dy: b) : a = (vjp2 f x dy).1
def jmp2 'a 'b [n] (f: a -> b) (x: a) (dxs: [n]a) : (b, [n]b) = (f x, map (\dx -> (jvp2 f x dx).1) dxs)
def mjp2 'a 'b [n] (f: a -> b) (x: a) (dys: [n]b) : (b, [n]a) = (f x, map (\dy -> (vjp2 f x dy).1) dys)
def jmp 'a 'b [n] (f: a -> b) (x: a) (dxs: [n]a) : [n]b = (jmp2 f x dxs).1
def mjp 'a 'b [n] (f: a -> b) (x: a) (dys: [n]b) : [n]a = (mjp2 f x dys).1

def flatmap [n] 'a 'b 'c (f: a -> ?[k].([k]b, c)) (as: [n]a) : ?[m].([n]i64, [m]bool, [n]i64, [m]b, [n]c) =
  let shape = map (\x -> length (f x).0) as
  let offsets = exscan (+) 0 shape
  let m = i64.sum shape
  let start : [m]b =
    if m == 0 then [] :> [m]b
    else let first = loop i = 0 while shape[i] == 0 do i + 1 in replicate m (f as[first]).0[0]
  let elements =
    loop all = start for i < n do
      let k = shape[i] in #[unsafe] (all with [offsets[i]:offsets[i] + k] = ((f as[i]).0 :> [k]b))
  let flags = scatter (replicate m false) offsets (replicate n true)
  in (shape, flags, offsets, elements, map (\x -> (f x).1) as)
def flatmap' [n] 'a 'b (f: a -> ?[k].[k]b) (as: [n]a) : ?[m].([n]i64, [m]bool, [n]i64, [m]b) =
  let (shape, flags, offsets, elements, _) = flatmap (\x -> (f x, ())) as
  in (shape, flags, offsets, elements)
)";

bool is_prelude_interface(const std::string& name) {
  for (const char* known : {"from_prim", "numeric", "integral", "real", "float"})
    if (name == known) return true;
  return false;
}

}  // namespace

void Modules::evaluate_prelude() {
  if (prelude_) return;
  Program& program = checker_.out_.program;
  const DiagnosticSink silent;
  ImportedFile file;
  // Places in the prelude are nobody's.
  const std::string functions(program.uses_prelude_source ? kFunctions : "");
  file.declarations = parse_file(interfaces_text() + functions, kPreludeFile, program, silent);
  resize_tables();
  program.prelude.push_back(std::move(file));
  ScopeTable scope = std::exchange(checker_.scope_, {});
  const std::string path = std::exchange(path_, "");
  const bool inside = std::exchange(in_module_, false);
  checker_.scope_.enter("_accumulator_of", checker_.accumulator_of());
  prelude_ = declarations(program.prelude.back().declarations, false);
  in_module_ = inside;
  path_ = path;
  checker_.scope_ = std::move(scope);
}

// Functions that a program names are in scope like names of the prelude's table.
void Modules::enter_prelude() {
  if (!checker_.out_.program.uses_prelude_source) return;
  evaluate_prelude();
  for (const auto& [name, value] : prelude_->values) checker_.scope_.enter(name, value);
  for (const auto& [name, module] : prelude_->modules) checker_.scope_.enter(name, module);
}

InterfacePtr Modules::prelude_interface(const std::string& name) {
  if (!is_prelude_interface(name)) return nullptr;
  evaluate_prelude();
  const auto found = prelude_->interfaces.find(name);
  return found == prelude_->interfaces.end() ? nullptr : found->second;
}

}  // namespace apl::frontend
