// Branches among many: chains of `else if`, and `match`. A few are branches inside each other, the form that passes
// know best. Many would nest too deeply, and be too slow: they are searches in a sorted table.
//
//   if a then x else if b then y ...   k = if a then 0 else if b then 1 ...     the number of the first that holds,
//                                      if k < 8 then (if k < 4 then ...) else   and a search for what has that number
//
//   match x case #a -> .. case #b ->   if tag < 2 then (if tag < 1 ...) else    where one scalar decides,
//
// and where cases also ask for other scalars, or the values of one are scattered, a search for the number of the case:
// neighbours that ask for the same scalar are one search, of which each step may go on to search for the next scalar.
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "frontend/lower/lowerer.h"

namespace apl::frontend {

namespace {

// More branches than this are not put inside each other.
constexpr std::size_t kMostInside = 8;

// Integers of a type in their order, as numbers that are compared without sign.
std::uint64_t rank(const Scalar& x) {
  const std::uint64_t bits = static_cast<std::uint64_t>(x.as_int());
  return is_signed(x.type()) ? bits ^ (std::uint64_t{1} << 63U) : bits;
}

std::uint64_t least_rank(ScalarType type) {
  return is_signed(type) ? rank(Scalar::integer(type, std::int64_t{-1} << (bit_width(type) - 1))) : 0;
}

std::uint64_t most_rank(ScalarType type) {
  if (!is_signed(type)) return rank(Scalar::integer(type, -1));
  return least_rank(type) + (std::numeric_limits<std::uint64_t>::max() >> (64 - bit_width(type)));
}

Operand number_of(std::size_t k) { return Operand(Scalar::integer(ScalarType::i32, static_cast<std::int64_t>(k))); }

}  // namespace

// One condition of a pattern: that a scalar is a constant. Integers are searched for.
struct Lowerer::CaseTest {
  StaticValue x, wanted;
  std::optional<std::pair<Operand, Scalar>> search = {};  // the scalar and what it must be
  std::uint64_t least = 0, most = 0;                      // ranks that it can have
};

// A case that may match, with all that its pattern asks for.
struct Lowerer::CaseRow {
  std::size_t number = 0;
  std::vector<CaseTest> tests;

  // The one that searches for the scalar, if there is one.
  const CaseTest* test_of(const Operand& x) const {
    const auto found = std::ranges::find_if(tests, [&](const CaseTest& t) { return t.search && t.search->first == x; });
    return found == tests.end() ? nullptr : &*found;
  }
};

// Neighbouring cases that ask for one scalar, by what they want it to be.
struct Lowerer::CaseRun {
  StaticValue x;
  std::vector<std::pair<Scalar, std::vector<CaseRow>>> groups;  // ascending
};

// ---- if -------------------------------------------------------------------------------------------------------------

StaticValue Lowerer::lower_if(const Expr& expr, const IfExpr& branch) {
  const std::size_t count = branch.arms.size();
  if (count <= kMostInside) return lower_arms(expr, branch, 0);
  // The number of the first arm from `k` to `end` whose condition holds.
  const Operand none = number_of(count);
  const std::function<Operand(std::size_t, std::size_t)> among = [&](std::size_t k, std::size_t end) {
    const Operand condition = operand(lower(*branch.arms[k].condition));
    return choose_number(
        condition, [&] { return number_of(k); }, [&] { return k + 1 < end ? among(k + 1, end) : none; });
  };
  const auto group = [&](std::size_t k) { return among(k * kMostInside, std::min(count, (k + 1) * kMostInside)); };
  const Operand taken = first_of(0, (count + kMostInside - 1) / kMostInside, none, group);
  std::vector<Scalar> keys;
  for (std::size_t k = 0; k <= count; ++k) keys.push_back(number_of(k).constant());
  return search(expr, StaticValue(taken), keys, 0, keys.size(),
                [&](std::size_t k) { return lower(k < count ? *branch.arms[k].value : *branch.else_value); });
}

StaticValue Lowerer::lower_arms(const Expr& expr, const IfExpr& branch, std::size_t first) {
  const IfArm& arm = branch.arms[first];
  const Operand condition = operand(lower(*arm.condition));
  return lower_branch(
      expr, condition, [&] { return lower(*arm.value); },
      [&] { return first + 1 < branch.arms.size() ? lower_arms(expr, branch, first + 1) : lower(*branch.else_value); });
}

// ---- match ----------------------------------------------------------------------------------------------------------

StaticValue Lowerer::lower_match(const Expr& expr, const MatchExpr& match) {
  if (match.cases.size() <= kMostInside) return lower_cases(expr, match, lower(*match.x), 0);
  // Index arithmetic is computed once, so that cases ask for one scalar.
  const StaticValue value = map_leaves(lower(*match.x), [&](const StaticValue& leaf) {
    return leaf.index() == nullptr ? leaf : StaticValue(as_poly(operand(leaf)));
  });
  const std::vector<CaseRow> rows = case_rows(match, value);
  if (rows.size() <= kMostInside) return lower_cases(expr, match, value, 0);
  const Leaf leaf = [&](std::size_t row) {
    const MatchCase& taken = match.cases[rows[row].number];
    bind_pattern(*taken.pattern, value);
    return lower(*taken.body);
  };
  if (auto made = lower_table(expr, rows, leaf)) return *std::move(made);
  std::vector<CaseRow> numbered = rows;
  for (std::size_t k = 0; k < numbered.size(); ++k) numbered[k].number = k;
  numbered.back().tests.clear();  // some case matches
  const Operand taken = first_case(numbered, number_of(rows.size() - 1));
  std::vector<Scalar> keys;
  for (std::size_t k = 0; k < rows.size(); ++k) keys.push_back(number_of(k).constant());
  return search(expr, StaticValue(taken), keys, 0, keys.size(), leaf);
}

// The cases from `first` on, inside each other. Whatever the last one asks for holds: some case matches.
StaticValue Lowerer::lower_cases(const Expr& expr, const MatchExpr& match, const StaticValue& value,
                                 std::size_t first) {
  const MatchCase& next = match.cases[first];
  const auto taken = [&] {
    bind_pattern(*next.pattern, value);
    return lower(*next.body);
  };
  const bool last = first + 1 == match.cases.size();
  const auto condition = last ? std::nullopt : matches(*next.pattern, value);
  if (!condition) return taken();
  // What is known not to match need not be lowered: its payload may be a function.
  if (const Operand* known = condition->operand(); known && known->is_constant() && !known->constant().as_bool())
    return lower_cases(expr, match, value, first + 1);
  return lower_branch(expr, operand(*condition), taken, [&] { return lower_cases(expr, match, value, first + 1); });
}

// ---- searches -------------------------------------------------------------------------------------------------------

// The cases that may match, each with what its pattern asks for.
std::vector<Lowerer::CaseRow> Lowerer::case_rows(const MatchExpr& match, const StaticValue& value) {
  std::vector<CaseRow> rows;
  for (std::size_t k = 0; k < match.cases.size(); ++k) {
    CaseRow row{.number = k, .tests = {}};
    if (!collect_tests(*match.cases[k].pattern, value, row.tests)) continue;
    rows.push_back(std::move(row));
    if (rows.back().tests.empty()) break;
  }
  return rows;
}

// Adds what the pattern asks for; false if it is known that the value does not match.
bool Lowerer::collect_tests(const Pattern& pattern, const StaticValue& value, std::vector<CaseTest>& tests) {
  if (const auto* typed = std::get_if<PatternTyped>(&pattern.node)) return collect_tests(*typed->pattern, value, tests);
  if (const auto* literal = std::get_if<PatternLiteral>(&pattern.node))
    return add_test(value, lower(*literal->value), std::nullopt, tests);
  if (const auto* tuple = std::get_if<PatternTuple>(&pattern.node)) {
    for (std::size_t k = 0; k < tuple->elements.size(); ++k)
      if (!collect_tests(*tuple->elements[k], project(value, std::to_string(k)), tests)) return false;
  }
  if (const auto* record = std::get_if<PatternRecord>(&pattern.node)) {
    for (const auto& field : record->fields)
      if (!collect_tests(*field.value, project(value, field.name), tests)) return false;
  }
  const auto* constructor = std::get_if<PatternConstructor>(&pattern.node);
  if (constructor == nullptr) return true;
  const TypeArgument type = resolve_type(checked_.pattern_types[pattern.id], frame_);
  const SumLayout layout = sum_layout(type);
  const auto found = std::ranges::find(layout.constructors, constructor->name, &SumLayout::Constructor::name);
  const std::size_t count = layout.constructors.size();
  const Scalar tag = Scalar::integer(ScalarType::u8, found - layout.constructors.begin());
  if (count > 1 && !add_test(project(value, std::string(kTag)), scalar(tag), count - 1, tests)) return false;
  for (const auto& [inner, part] : ranges::views::zip(constructor->payload, found->parts))
    if (!collect_tests(*inner, payload(value, part, type.frame), tests)) return false;
  return true;
}

// `most`: the largest value of a tag.
bool Lowerer::add_test(const StaticValue& x, const StaticValue& wanted, std::optional<std::uint64_t> most,
                       std::vector<CaseTest>& tests) {
  const Operand scalar = operand(x), constant = operand(wanted);
  if (!constant.is_constant() || !is_integer(constant.constant().type())) {
    tests.push_back({.x = x, .wanted = wanted});
    return true;
  }
  if (scalar.is_constant()) return scalar == constant;
  const ScalarType type = constant.constant().type();
  tests.push_back({.x = x,
                   .wanted = wanted,
                   .search = std::pair(scalar, constant.constant()),
                   .least = least_rank(type),
                   .most = most.value_or(most_rank(type))});
  return true;
}

// Where each case asks for one value of the same scalar, these follow each other, and only the last may ask for
// nothing: a search for the value.
std::optional<StaticValue> Lowerer::lower_table(const Expr& expr, const std::vector<CaseRow>& rows, const Leaf& leaf) {
  const bool has_rest = rows.back().tests.empty();
  std::vector<std::pair<Scalar, std::size_t>> table;
  for (std::size_t k = 0; k + (has_rest ? 1 : 0) < rows.size(); ++k) {
    const std::vector<CaseTest>& tests = rows[k].tests;
    if (tests.size() != 1 || !tests[0].search || tests[0].search->first != rows[0].tests[0].search->first)
      return std::nullopt;
    table.emplace_back(tests[0].search->second, k);
  }
  std::ranges::sort(table, {}, [](const auto& entry) { return rank(entry.first); });
  for (std::size_t k = 1; k < table.size(); ++k)
    if (rank(table[k].first) != rank(table[k - 1].first) + 1) return std::nullopt;
  const CaseTest& test = rows[0].tests[0];
  std::vector<Scalar> keys;
  for (const auto& [key, row] : table) keys.push_back(key);
  const auto found = [&] {
    return search(expr, test.x, keys, 0, keys.size(), [&](std::size_t k) { return leaf(table[k].second); });
  };
  if (!has_rest) return found();
  std::optional<StaticValue> inside;
  if (rank(keys.back()) != test.most) inside = compare(CompareOp::le, test.x, scalar(keys.back()));
  if (rank(keys.front()) != test.least) {
    const StaticValue above = compare(CompareOp::le, scalar(keys.front()), test.x);
    inside = inside ? binary(BinaryOp::conj, above, *inside) : above;
  }
  if (!inside) return found();
  return lower_branch(expr, operand(*inside), found, [&] { return leaf(rows.size() - 1); });
}

// What `leaf` makes for the key that `x` is; it is one of those from `from` to `to`.
StaticValue Lowerer::search(const Expr& expr, const StaticValue& x, const std::vector<Scalar>& keys, std::size_t from,
                            std::size_t to, const Leaf& leaf) {
  if (to - from == 1) return leaf(from);
  const std::size_t middle = from + (to - from) / 2;
  const Operand below = operand(compare(CompareOp::lt, x, scalar(keys[middle])));
  return lower_branch(
      expr, below, [&] { return search(expr, x, keys, from, middle, leaf); },
      [&] { return search(expr, x, keys, middle, to, leaf); });
}

Operand Lowerer::choose_number(const Operand& condition, const std::function<Operand()>& yes,
                               const std::function<Operand()>& no) {
  const BodyPtr then_body = body([&] { return std::vector<Operand>{yes()}; });
  const BodyPtr else_body = body([&] { return std::vector<Operand>{no()}; });
  return Operand(builder_->let("case", If{condition, then_body, else_body}));
}

// What the first of `find(from)`, ..., `find(to - 1)` gives that is not `none`; those behind it are not computed.
Operand Lowerer::first_of(std::size_t from, std::size_t to, const Operand& none,
                          const std::function<Operand(std::size_t number)>& find) {
  if (to - from == 1) return find(from);
  const std::size_t middle = from + (to - from) / 2;
  const Operand early = first_of(from, middle, none, find);
  const Operand found = operand(compare(CompareOp::ne, StaticValue(early), StaticValue(none)));
  return choose_number(
      found, [&] { return early; }, [&] { return first_of(middle, to, none, find); });
}

// The number of the first row whose tests all hold.
Operand Lowerer::first_case(const std::vector<CaseRow>& rows, const Operand& none) {
  std::vector<std::size_t> begins;  // of rows that are looked at together
  std::vector<std::optional<Operand>> searched;
  for (std::size_t k = 0; k < rows.size();) {
    begins.push_back(k);
    std::size_t end = k + 1;
    searched.emplace_back();
    // The scalar for which most rows from here on ask.
    for (const CaseTest& test : rows[k].tests) {
      if (!test.search) continue;
      std::size_t last = k + 1;
      while (last < rows.size() && rows[last].test_of(test.search->first) != nullptr) ++last;
      if (last <= end) continue;
      end = last;
      searched.back() = test.search->first;
    }
    if (rows[k].tests.empty()) break;  // nothing comes behind it
    k = end;
  }
  const auto end_of = [&](std::size_t part) { return part + 1 < begins.size() ? begins[part + 1] : rows.size(); };
  return first_of(0, begins.size(), none, [&](std::size_t part) {
    const CaseRow& row = rows[begins[part]];
    if (searched[part]) {
      const CaseRun run = run_of(rows, begins[part], end_of(part), *searched[part]);
      const CaseTest& test = *row.test_of(*searched[part]);
      return case_of_run(run, 0, run.groups.size(), test.least, test.most, none);
    }
    std::optional<StaticValue> holds;
    for (const CaseTest& test : row.tests) {
      const StaticValue one = equal(test.x, test.wanted);
      holds = holds ? binary(BinaryOp::conj, *holds, one) : one;
    }
    if (!holds) return number_of(row.number);
    return choose_number(
        operand(*holds), [&] { return number_of(row.number); }, [&] { return none; });
  });
}

// The rows by what they want the scalar to be, without that test.
Lowerer::CaseRun Lowerer::run_of(const std::vector<CaseRow>& rows, std::size_t from, std::size_t to, const Operand& x) {
  CaseRun run{.x = rows[from].test_of(x)->x, .groups = {}};
  std::map<std::uint64_t, std::pair<Scalar, std::vector<CaseRow>>> groups;
  for (std::size_t k = from; k < to; ++k) {
    CaseRow row = rows[k];
    const CaseTest* test = row.test_of(x);
    const Scalar wanted = test->search->second;
    row.tests.erase(row.tests.begin() + (test - row.tests.data()));
    auto& group = groups[rank(wanted)];
    group.first = wanted;
    group.second.push_back(std::move(row));
  }
  for (auto& [key, group] : groups) run.groups.push_back(std::move(group));
  return run;
}

// The same among some of the groups, where the rank of the scalar is from `least` to `most`.
Operand Lowerer::case_of_run(const CaseRun& run, std::size_t from, std::size_t to, std::uint64_t least,
                             std::uint64_t most, const Operand& none) {
  if (to - from == 1) {
    const auto& [wanted, rows] = run.groups[from];
    if (least == most) return first_case(rows, none);
    return choose_number(
        operand(compare(CompareOp::eq, run.x, scalar(wanted))), [&] { return first_case(rows, none); },
        [&] { return none; });
  }
  const std::size_t middle = from + (to - from) / 2;
  const std::uint64_t first = rank(run.groups[middle].first);
  return choose_number(
      operand(compare(CompareOp::lt, run.x, scalar(run.groups[middle].first))),
      [&] { return case_of_run(run, from, middle, least, first - 1, none); },
      [&] { return case_of_run(run, middle, to, first, most, none); });
}

}  // namespace apl::frontend
