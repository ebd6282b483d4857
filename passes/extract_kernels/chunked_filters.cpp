// Filters on CPUs: each of a few threads puts what it keeps of its neighbouring elements side by side, and counts it;
// then the parts are moved together.
//
//   let {kept : i64, all : [n]f32} = if chunks == 1 {
//     .. the rows of one chunk ..
//   } else {
//     let {counts : [chunks]i64, rows : [chunks][per]f32} = segmap(thread) (c < chunks) {
//       let {kept, row} = loop {at = 0, row = room} for k < own {
//         .. the flag and the values of element c*per + k ..
//         let {next} = row with [at] = y
//         in {at + convert(flag), next}
//       }
//       return {returns kept, returns row}
//     }
//     let {ends} = scan(add, counts)
//     .. scatter of rows[c, k], where k < counts[c], to ends[c] - counts[c] + k ..
//   }
//   let {ys : [kept]f32} = all[0 :+ kept]
//
// An element that is not kept is written, too, and overwritten by the next one: so no branch depends on the data. With
// one thread nothing is moved, and nothing is read twice; so it is with two, as to move what is kept takes as long as
// to find it.
//
// Fires where the scatter puts an element for which the flag holds right behind those before it, and no other one; and
// where no value depends on that place.
#include <algorithm>

#include "ir/builder.h"
#include "ir/walk.h"
#include "passes/extract_kernels/filters.h"

namespace apl {

namespace {

using Operands = std::vector<Operand>;

// With so many threads what they win is lost again when their parts are moved.
constexpr std::int64_t kFewThreads = 2;

// The parameter of the scatter's lambda for row `row` of the scan; nullopt: it does not read it.
std::optional<Value> parameter_for(const Scatter& scatter, Value row) {
  const auto found = std::ranges::find(scatter.inputs, row);
  if (found == scatter.inputs.end()) return std::nullopt;
  return scatter.map.params[static_cast<std::size_t>(found - scatter.inputs.begin())];
}

bool is_one_less(const Body& body, Value place) {
  if (body.stms.size() != 1 || body.results.front() != Operand(body.stms.front().pattern.front())) return false;
  const SizeExpr* size = get_if<SizeExpr>(body.stms.front());
  if (size != nullptr) return size->value == Poly(place) - 1;
  const Binary* binary = get_if<Binary>(body.stms.front());
  return binary != nullptr && binary->op == BinaryOp::sub && binary->x == Operand(place) &&
         binary->y == i64_constant(1);
}

// The statement of the scatter's lambda that makes the position: the last place if the flag holds, else none.
const Stm* position_of(const Stm& scan, const Scatter& scatter, const ValueTable& values) {
  const Screma& screma = std::get<Screma>(scan.op);
  const Operand& counted = screma.map.body->results.front();
  const Operand flag = get_if<Convert>(*defining_stm(*screma.map.body, counted.value()))->x;
  const std::optional<Value> place = parameter_for(scatter, scan.pattern.front());
  const Operand& position = scatter.map.body->results.front();
  if (!place || scatter.rank != 1 || !position.is_value()) return nullptr;
  const Stm* made = defining_stm(*scatter.map.body, position.value());
  const If* branch = made != nullptr ? get_if<If>(*made) : nullptr;
  if (branch == nullptr || made->pattern.size() != 1 || !is_one_less(*branch->then_body, *place)) return nullptr;
  if (!branch->else_body->stms.empty() || branch->else_body->results.front() != i64_constant(-1)) return nullptr;
  // The flag is a row that the scan maps.
  bool is_flag = false;
  for (std::size_t k = 1; k < scan.pattern.size(); ++k) {
    const std::optional<Value> read = parameter_for(scatter, scan.pattern[k]);
    is_flag = is_flag || (read && screma.map.body->results[k] == flag && branch->condition == Operand(*read));
  }
  if (!is_flag) return nullptr;
  for (const Stm& stm : scatter.map.body->stms)
    if (&stm != made && free_values(stm.op, values).contains(*place)) return nullptr;
  const Operands& results = scatter.map.body->results;
  if (std::ranges::count(results, position) != 1 || std::ranges::find(results, Operand(*place)) != results.end())
    return nullptr;
  return made;
}

class ChunkedFilter {
 public:
  ChunkedFilter(const Stm& scan, const Stm& scatter, const Stm& position, Value count, const Chunks& chunks,
                ValueTable& values)
      : scan_(scan),
        scatter_(scatter),
        screma_(std::get<Screma>(scan.op)),
        op_(std::get<Scatter>(scatter.op)),
        position_(position),
        count_(count),
        elements_(screma_.widths.front()),
        values_(values),
        host_(values) {
    host_.set_location(scatter.location);
    for (const Value v : scatter.pattern) names_.push_back(values.name(v));
    counted_names_ = {"kept"};
    counted_names_.insert(counted_names_.end(), names_.begin(), names_.end());
    const Poly threads = host_.let("threads", GetSize{chunks.parameter, SizeClass::thread_count, chunks.most});
    const Value moved = host_.compare(CompareOp::lt, i64_constant(kFewThreads), *as_operand(threads), "moved");
    const Value most = host_
                           .let_many({"threads"}, If{Operand(moved), make_body({}, {*as_operand(threads)}),
                                                     make_body({}, {i64_constant(1)})})
                           .front();
    chunks_ = few_chunks(screma_, elements_, Poly(most), chunks, host_);
  }

  std::vector<Stm> make() {
    const Value is_one = host_.compare(CompareOp::eq, *as_operand(chunks_), i64_constant(1), "one_chunk");
    const BodyPtr whole = host_.body([&](Builder& then) {
      const std::vector<Value> rows = keep(1, elements_, then);
      Operands all{then.index(rows.front(), std::vector<Poly>{0}, "kept")};
      for (std::size_t k = 1; k < rows.size(); ++k)
        all.emplace_back(then.let(names_[k - 1], Reshape{rows[k], {elements_}}));
      return all;
    });
    const BodyPtr moved = host_.body([&](Builder& otherwise) {
      const Poly per = otherwise.size(ceil_div(elements_, chunks_), "per_chunk");
      return move(keep(chunks_, per, otherwise), per, otherwise);
    });
    const std::vector<Value> results = host_.let_many(counted_names_, If{is_one, whole, moved});
    host_.append({.pattern = {count_}, .op = Use{Operand(results.front())}, .location = scatter_.location});
    std::vector<Value> kept;
    for (std::size_t k = 1; k < results.size(); ++k)
      kept.push_back(host_.let(names_[k - 1], Index{results[k], {DimIndex::slice(0, Poly(count_))}}));
    return bound_to(scatter_, kept, host_);
  }

 private:
  Value index(const std::string& name) { return values_.add(Type::scalar(ScalarType::i64), name); }
  std::size_t arrays() const { return scatter_.pattern.size(); }
  ScalarType element(std::size_t k) const { return values_.type(scatter_.pattern[k]).element; }

  // How many each chunk keeps, and those.
  std::vector<Value> keep(const Poly& chunks, const Poly& per, Builder& host) {
    const Value c = index("c");
    SegOp kernel{.level = SegLevel::thread, .space = {{c, chunks}}};
    kernel.body = host.body([&](Builder& thread) {
      const Value own = thread.size(poly_max(0, poly_min(per, elements_ - Poly(c) * per)), "own");
      Operands start{i64_constant(0)};
      for (std::size_t k = 0; k < arrays(); ++k) start.emplace_back(thread.let("room", Scratch{element(k), {per}}));
      const std::vector<Value> made = thread.for_loop_many(
          counted_names_, Poly(own), start,
          [&](Builder& step, const std::vector<Value>& given) { return keep(step, Poly(c) * per, given); });
      return Operands(made.begin(), made.end());
    });
    kernel.results.assign(arrays() + 1, {.kind = KernelResult::Kind::returns, .extents = {}});
    return host.let_many(counted_names_, std::move(kernel));
  }

  // Where what each chunk keeps ends.
  Value ends_of(Value counts, Builder& host) {
    SegOp sums{.level = SegLevel::thread, .space = {{index("i"), 1}}};
    sums.body = host.body([&](Builder& thread) {
      return Operands{
          thread.scan("ends", thread.reduce_op(BinaryOp::add, Scalar::integer(ScalarType::i64, 0)), counts)};
    });
    sums.results.assign(1, {.kind = KernelResult::Kind::returns, .extents = {}});
    return host.let_many({"ends"}, std::move(sums)).front();
  }

  // One element of the chunk that begins at `first`: `given` are its number there, how many were kept before, and
  // those.
  Operands keep(Builder& step, const Poly& first, const std::vector<Value>& given) {
    const Value flat = step.size(first + Poly(given[0]), "at");
    const Operands row = element_at(screma_, flat, {}, step);
    Substitution here{{op_.indices.front(), Operand(flat)}};
    for (std::size_t k = 0; k < op_.inputs.size(); ++k) {
      const auto scanned = std::ranges::find(scan_.pattern, op_.inputs[k]);
      if (scanned == scan_.pattern.begin()) continue;  // the place, which nothing reads
      here.insert_or_assign(op_.map.params[k], scanned != scan_.pattern.end()
                                                   ? row[static_cast<std::size_t>(scanned - scan_.pattern.begin())]
                                                   : Operand(step.index(op_.inputs[k], std::vector<Poly>{Poly(flat)},
                                                                        values_.name(op_.map.params[k]))));
    }
    std::vector<Stm> stms;
    for (const Stm& stm : op_.map.body->stms)
      if (&stm != &position_) stms.push_back(stm);
    Operands kept(op_.map.body->results.begin() + 1, op_.map.body->results.end());
    const BodyPtr body = copy_fresh(make_body(std::move(stms), std::move(kept)), here, values_, values_);
    step.append_all(body->stms);
    Operands next{*as_operand(step.size(Poly(given[1]) + as_poly(row.front()), "next"))};
    for (std::size_t k = 0; k < arrays(); ++k)
      next.emplace_back(step.let(names_[k], Update{given[k + 2], {DimIndex::fix(Poly(given[1]))}, body->results[k]}));
    return next;
  }

  // All that the chunks keep, side by side in arrays with room for all elements, and how many there are.
  Operands move(const std::vector<Value>& kept, const Poly& per, Builder& host) {
    const Value counts = kept.front(), ends = ends_of(counts, host);
    Scatter scatter{.widths = {chunks_, per}, .indices = {index("c"), index("k")}};
    scatter.rank = 1;
    for (std::size_t k = 0; k < arrays(); ++k)
      scatter.targets.push_back(host.let("room", Scratch{element(k), {elements_}}));
    const Poly c(scatter.indices[0]), k(scatter.indices[1]);
    scatter.map.body = host.body([&](Builder& step) {
      const Value count = step.index(counts, std::vector<Poly>{c}, "count");
      const Value inside = step.compare(CompareOp::lt, Operand(scatter.indices[1]), Operand(count), "inside");
      const BodyPtr there = step.body([&](Builder& then) {
        const Value end = then.index(ends, std::vector<Poly>{0, c}, "end");
        Operands result{*as_operand(then.size(Poly(end) - Poly(count) + k, "at"))};
        for (std::size_t array = 0; array < arrays(); ++array)
          result.emplace_back(then.index(kept[array + 1], std::vector<Poly>{c, k}, names_[array]));
        return result;
      });
      Operands nowhere{i64_constant(-1)};
      std::vector<std::string> names{"at"};
      for (std::size_t array = 0; array < arrays(); ++array) {
        nowhere.emplace_back(Scalar::zero(element(array)));
        names.push_back(names_[array]);
      }
      const std::vector<Value> made = step.let_many(names, If{inside, there, make_body({}, nowhere)});
      return Operands(made.begin(), made.end());
    });
    Operands all{host.index(ends, std::vector<Poly>{0, chunks_ - 1}, "kept")};
    for (const Value made : host.let_many(names_, std::move(scatter))) all.emplace_back(made);
    return all;
  }

  const Stm &scan_, &scatter_;
  const Screma& screma_;
  const Scatter& op_;
  const Stm& position_;
  Value count_;
  Poly elements_, chunks_;
  ValueTable& values_;
  Builder host_;
  std::vector<std::string> names_, counted_names_;  // of the arrays; and, before them, of how many elements are kept
};

}  // namespace

std::optional<std::vector<Stm>> make_chunked_filter(const Body& body, const Filter& filter, const Chunks& chunks,
                                                    ValueTable& values) {
  const Stm &scan = body.stms[filter.scan], &scatter = body.stms[filter.scatter];
  for (const Value v : scatter.pattern)
    if (values.type(v).rank() != 1) return std::nullopt;
  const Stm* position = position_of(scan, std::get<Scatter>(scatter.op), values);
  if (position == nullptr) return std::nullopt;
  return ChunkedFilter(scan, scatter, *position, filter.count, chunks, values).make();
}

}  // namespace apl
