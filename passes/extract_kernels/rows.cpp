// Rows that fit into the registers of a team of threads:
//
//   map(i < m) { let {xs} = xss[i]  let {s} = reduce(j < n, {xs}, ..)  let {ys} = map(j < n, {xs}, ..)  in {ys} }
// =>
//   choose first {
//     rows when 1 <= n <= limit { segmap(thread) (i < m) team(T) rows { .. the same .. } }
//     apart                     { a kernel or several for each reduction, scan and map }
//   }
//
// Memory is read and written once, then, and what crosses from one operation to another stays in registers. T is a
// power of two that the host computes: so many threads that each has at most kRowElements elements, 4 in short rows, a
// warp at least in longer ones (neighbours read neighbours), and more threads where there are few rows.
#include "passes/extract_kernels/rows.h"

#include <algorithm>

#include "ir/builder.h"
#include "ir/team.h"
#include "ir/walk.h"
#include "passes/extract_kernels/nest.h"
#include "passes/extract_kernels/reductions.h"

namespace apl {

namespace {

constexpr std::int64_t kLongestRow = kMostTeam * kRowElements;
// Elements that a thread of a short row has; threads that read neighbours where rows are longer; threads that keep a
// GPU busy, over all rows.
constexpr std::int64_t kElementsOfShort = 4, kNeighbours = 32, kThreadsOfRows = std::int64_t{1} << 17;
// A known number of elements that one thread goes through (extract_kernels/parts).
constexpr std::int64_t kRowOfThread = 32;
// A thread has so many elements where there are threads enough.
constexpr std::int64_t kFewElements = 2;

// The smallest power of two that is no less than `number`, which is at least 1.
Value power_of_two_from(const Poly& number, Builder& host) {
  const Value twice = host.size(2 * number - 1, "team");
  const Value digits = host.binary(BinaryOp::sub, i64_constant(63), host.unary(UnaryOp::clz, twice), "digits");
  return host.binary(BinaryOp::shl, i64_constant(1), digits, "team");
}

// Whether rows lie with their elements side by side, for all that reads them.
bool lie_along_rows(const Screma& map, const HostViews& views, const ValueTable& values) {
  std::vector<Stm> prefix;
  for (const Stm& stm : map.map.body->stms) {
    if (get_if<Screma>(stm) && segments_lie_side_by_side(stm, {map.widths, map.indices, prefix}, views, values))
      return false;
    prefix.push_back(stm);
  }
  return true;
}

}  // namespace

std::optional<RowsTogether> rows_together(const Stm& flat, const HostViews& views, const std::string& prefix,
                                          ValueTable& values) {
  const Screma& map = std::get<Screma>(flat.op);
  const auto& stms = map.map.body->stms;
  const auto operations = std::ranges::count_if(stms, [](const Stm& stm) { return get_if<Screma>(stm) != nullptr; });
  const bool folds = std::ranges::any_of(stms, [](const Stm& stm) {
    const Screma* screma = get_if<Screma>(stm);
    return screma != nullptr && !screma->reduces.empty();
  });
  if (operations < 2 || !folds) return std::nullopt;
  Substitution none;
  const Stm whole = make_kernel(flat);
  const BodyPtr copy =
      copy_fresh(make_body({whole}, {whole.pattern.begin(), whole.pattern.end()}), none, values, values);
  Stm kernel = copy->stms.front();
  SegOp& op = std::get<SegOp>(kernel.op);
  op.rows = true;
  op.team = Poly(1);
  if (team_fault(op, values) || !lie_along_rows(map, views, values)) return std::nullopt;
  if (row_width(op).constant().value_or(kLongestRow) <= kRowOfThread) return std::nullopt;
  RowsTogether result{.operations = static_cast<std::size_t>(operations), .width = row_width(op)};
  Builder host(values);
  host.set_location(flat.location);
  const Poly& width = result.width;
  const Poly limit = host.let("limit", GetSize{prefix + ".rows", SizeClass::threshold, kLongestRow});
  const Value is_short = host.compare(CompareOp::le, host.size(width, "width"),
                                      host.size(poly_min(limit, kLongestRow), "limit"), "is_short");
  const Value has_some = host.compare(CompareOp::lt, i64_constant(0), host.size(width, "width"), "has_some");
  result.fits = host.binary(BinaryOp::conj, has_some, is_short, "fits");
  result.before = host.take();
  const Poly most = host.let("team", GetSize{prefix + ".team", SizeClass::thread_block_size, kMostTeam});
  const Poly free = floor_div(kThreadsOfRows, poly_max(1, product(map.widths)));
  const Poly wanted =
      poly_max(poly_min(ceil_div(width, kElementsOfShort), kNeighbours), poly_min(free, ceil_div(width, kFewElements)));
  const Poly needed = ceil_div(width, kRowElements);
  op.team = Poly(power_of_two_from(poly_max(1, poly_max(needed, poly_min(wanted, poly_min(most, kMostTeam)))), host));
  host.append(std::move(kernel));
  result.kernel = host.take();
  result.results = result.kernel.back().pattern;
  return result;
}

}  // namespace apl
