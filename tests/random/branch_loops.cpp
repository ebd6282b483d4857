// Loops that carry arrays which branches, matches and further loops inside overwrite in place: sieves with an early
// exit, union-find, worklists and interpreters' states have this form. Each iteration writes a bounded number of
// elements, so the work of a program is linear in n.
#include <fmt/format.h>

#include <random>

#include "tests/random/generator.h"

namespace apl::random_tests {

namespace {

class BranchLoops {
 public:
  explicit BranchLoops(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15U + 3), seed_(seed) {}

  Program run() {
    Program program{seed_, fmt::format("e{}", seed_), {}, {}, {}, {}, {}};
    program.sizes = {{{"n", 1}}, {{"n", 2}}, {{"n", 7}}, {{"n", 50}}};
    program.linear_in = {{"n", 300}};
    arrays_ = {any_array("a")};
    if (chance(40)) arrays_.push_back(any_array("b"));
    for (std::int64_t k = chance(50) ? between(1, 2) : 0; k > 0; --k) program.definitions.push_back(helper(k));
    program.definitions.push_back(entry(program.entry));
    return program;
  }

 private:
  struct Array {
    std::string name;
    ScalarType type = ScalarType::i64;
    std::int64_t row = 0;  // elements of a row; 0: the array has no rows

    std::string text() const {
      return fmt::format("[n]{}{}", row == 0 ? "" : fmt::format("[{}]", row), apl::to_text(type));
    }
  };

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  std::string fresh() { return fmt::format("v{}", next_name_++); }
  template <class T>
  const T& any_of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(between(0, std::ssize(all) - 1))];
  }

  Array any_array(const std::string& name) {
    static const std::vector<ScalarType> kTypes{ScalarType::i32, ScalarType::i64, ScalarType::i8,     ScalarType::u16,
                                                ScalarType::f32, ScalarType::f64, ScalarType::boolean};
    return {name, any_of(kTypes), chance(25) ? between(1, 3) : 0};
  }

  // What loops carry: the arrays and a number.
  Type state_type() const {
    Type type;
    for (const Array& array : arrays_) {
      type.fields.push_back(Type{array.type, {}, {}});
      if (array.row > 0) type.fields.back() = type.fields.back().array_of(Size::constant(array.row));
      type.fields.back() = type.fields.back().array_of({"n", 1, 1 << 20, 0, {}});
    }
    type.fields.push_back(Type{ScalarType::i64, {}, {}});
    return type;
  }
  std::string state() const {
    std::string text;
    for (const Array& array : arrays_) text += array.name + ", ";
    return "(" + text + "s)";
  }
  // The parameters of a loop. Two arrays need types that say that both are unique: results of loops alias each other
  // otherwise, and a branch could not consume both.
  std::string carried() const {
    if (arrays_.size() == 1) return state();
    std::string text;
    for (const Array& array : arrays_) text += fmt::format("{}: *{}, ", array.name, array.text());
    return "(" + text + "s: i64)";
  }
  // Names, or parameters, without the brackets around them.
  static std::string inside(const std::string& text) { return text.substr(1, text.size() - 2); }
  Expr in_state(const std::vector<Piece>& pieces) { return make(state_type(), 0, pieces); }

  // An i64 of any value.
  std::string number() {
    std::vector<std::string> known = indices_;
    known.insert(known.end(), {"s", "s"});
    switch (between(0, 4)) {
      case 0: return fmt::format("({} * {} + {})", any_of(known), between(2, 7), any_of(known));
      case 1: return fmt::format("({} + {})", any_of(known), between(0, 3));
      case 2: return fmt::format("({} / {})", any_of(known), between(2, 3));
      default: return any_of(known);
    }
  }
  std::string index() { return chance(15) ? "(n - 1)" : fmt::format("{} % n", number()); }
  std::string place(const Array& array) {
    return array.row == 0 ? index() : fmt::format("{}, {}", index(), between(0, array.row - 1));
  }
  std::string element(const Array& array) { return fmt::format("{}[{}]", array.name, place(array)); }

  // The element as an i64.
  std::string as_number(const Array& array) {
    const std::string x = element(array), type(apl::to_text(array.type));
    if (is_float(array.type)) return fmt::format("(if {} > 0{} then 1 else 0)", x, type);
    return array.type == ScalarType::i64 ? x : fmt::format("(i64.{} {})", type, x);
  }
  std::string condition() {
    const Array& array = any_of(arrays_);
    switch (between(0, 4)) {
      case 0: return fmt::format("{} % {} == {}", number(), between(2, 3), between(0, 1));
      case 1: return fmt::format("{} {} {}", number(), chance(50) ? "<" : "!=", number());
      case 2: return fmt::format("{} < 3 || {} > 5", as_number(array), number());
      default: return fmt::format("{} {} {}", as_number(array), chance(50) ? "==" : "<", between(0, 2));
    }
  }
  std::string new_element(const Array& array) {
    const std::string x = element(array), type(apl::to_text(array.type));
    if (array.type == ScalarType::boolean) return chance(50) ? fmt::format("(not {})", x) : condition();
    if (is_float(array.type))
      return chance(60) ? fmt::format("({} + 1{})", x, type) : fmt::format("({}.i64 (s % 8))", type);
    switch (between(0, 2)) {
      case 0: return fmt::format("({} + {}{})", x, between(1, 3), type);
      case 1: return fmt::format("({} * {} + {})", x, element(array), x);
      default: return fmt::format("({}.i64 {})", type, number());
    }
  }
  std::string new_number() {
    switch (between(0, 3)) {
      case 0: return fmt::format("(s + {}) % 1009", number());
      case 1: return fmt::format("(s * 3 + {}) % 127", as_number(any_of(arrays_)));
      default: return "s";
    }
  }

  // One array overwritten at a place; all of a row, sometimes.
  Expr update() {
    // The number first: it reads what is then consumed.
    const Array& changed = any_of(arrays_);
    const std::string next = fresh();
    std::string text = fmt::format("(let {} = {} in (", next, new_number());
    for (const Array& array : arrays_) {
      const bool whole_row = array.row > 0 && chance(30);
      const std::string at = whole_row ? index() : place(array);
      const std::string with =
          whole_row ? fmt::format("replicate {} ({})", array.row, new_element(array)) : new_element(array);
      text += array.name == changed.name ? fmt::format("{} with [{}] = {}, ", array.name, at, with) : array.name + ", ";
    }
    return in_state({text + next + "))"});
  }

  // An expression of the state's type from the state's names. `times`: how often at most it is done in an iteration.
  Expr step(int depth, std::int64_t times) {
    if (depth <= 0) return chance(75) ? update() : in_state({state()});
    switch (between(0, 9)) {
      case 0:
      case 1: {
        const std::string when = condition();
        const Expr yes = step(depth - 1, times), no = chance(40) ? in_state({state()}) : step(depth - 1, times);
        const bool swapped = chance(30);
        return in_state({"(if " + when + " then ", swapped ? no : yes, " else ", swapped ? yes : no, ")"});
      }
      case 2: {
        const std::string what = number();
        const std::int64_t cases = between(2, 3);
        std::vector<Piece> pieces{fmt::format("(match {} % {}", what, cases + 1)};
        for (std::int64_t k = 0; k < cases; ++k) {
          pieces.emplace_back(fmt::format("\n case {} -> ", k));
          pieces.emplace_back(step(depth - 1, times));
        }
        pieces.emplace_back("\n case _ -> ");
        pieces.emplace_back(step(depth - 1, times));
        pieces.emplace_back(")");
        return in_state(pieces);
      }
      case 3:
      case 4:
      case 5: return times > 4 ? update() : inner_for(depth, times);
      case 6: return times > 4 ? update() : inner_while(depth, times);
      case 7: {
        const Expr first = step(depth - 1, times), second = step(depth - 1, times);
        return in_state({"(let " + state() + " = ", first, "\n in ", second, ")"});
      }
      case 8:
        if (!helpers_.empty()) return call_of_helper();
        [[fallthrough]];
      default: return update();
    }
  }
  Expr call_of_helper() {
    std::string arguments;
    for (const Array& array : arrays_) arguments += array.name + " ";
    return in_state({fmt::format("({} {}s {})", any_of(helpers_), arguments, number())});
  }
  Expr inner_for(int depth, std::int64_t times) {
    const std::int64_t most = between(1, 3);
    const std::string j = fresh();
    const std::string bound = chance(60) ? std::to_string(most) : fmt::format("({} % {})", number(), most + 1);
    const std::string head = fmt::format("(loop {} = {} for {} < {} do ", carried(), state(), j, bound);
    indices_.push_back(j);
    const Expr body = step(depth - 1, times * most);
    indices_.pop_back();
    return in_state({head, body, ")"});
  }
  Expr inner_while(int depth, std::int64_t times) {
    const std::int64_t most = between(1, 3);
    const std::string j = fresh(), names = inside(state());
    indices_.push_back(j);
    const std::string when = condition();
    const Expr body = step(depth - 1, times * most);
    indices_.pop_back();
    return in_state({fmt::format("(let ({}, _) = loop ({}, {}) = ({}, 0) while {} < {} && ({}) do (let {} = ", names,
                                 inside(carried()), j, names, j, most, when, state()),
                     body, fmt::format(" in ({}, {} + 1)) in {})", names, j, state())});
  }

  Expr helper(std::int64_t number) {
    const std::string name = fmt::format("f{}_{}", seed_, number);
    std::string params, results;
    for (const Array& array : arrays_) {
      params += fmt::format(" ({}: *{})", array.name, array.text());
      results += fmt::format("*{}, ", array.text());
    }
    indices_ = {"i"};
    const Expr body = step(2, 1);
    helpers_.push_back(name);
    return make_text({fmt::format("def {} [n]{} (s: i64) (i: i64): ({}i64) =\n  ", name, params, results), body});
  }

  Expr entry(const std::string& name) {
    std::string head = fmt::format("entry {} [n]", name), start, types;
    for (const Array& array : arrays_) {
      const bool own = chance(60);
      head += fmt::format(" ({}: {}{})", array.name, own ? "*" : "", array.text());
      start += own ? array.name + ", " : fmt::format("copy {}, ", array.name);
      types += array.text() + ", ";
    }
    indices_ = {"i"};
    const Expr body = step(static_cast<int>(between(2, 4)), 1);
    start = "(" + start + "0)";
    const std::string names = inside(state());
    std::vector<Piece> loop;
    if (chance(70)) {
      loop = {fmt::format("  loop {} = {} for i < n do\n    ", carried(), start), body};
    } else {
      // Until some iteration says that it is enough.
      loop = {fmt::format("  let ({}, _) = loop ({}, i) = ({}, 0) while i < n && s != 77 do\n    let {} = ", names,
                          inside(carried()), inside(start), state()),
              body, fmt::format("\n    in ({}, i + 1)\n  in {}", names, state())};
    }
    std::vector<Piece> pieces{fmt::format("{}: ({}i64) =\n", head, types)};
    pieces.insert(pieces.end(), loop.begin(), loop.end());
    return make_text(pieces);
  }

  std::mt19937_64 random_;
  std::uint64_t seed_;
  int next_name_ = 0;
  std::vector<Array> arrays_;
  std::vector<std::string> indices_;  // that are in scope
  std::vector<std::string> helpers_;
};

}  // namespace

Program random_branch_loops(std::uint64_t seed) { return BranchLoops(seed).run(); }

}  // namespace apl::random_tests
