// What the forms on whole arrays give.
#include <algorithm>
#include <limits>
#include <stdexcept>

#include "tests/oracle/evaluator.h"

namespace apl::oracle {
namespace {

using Rows = std::vector<Value>;

std::int64_t length_of(const Rows& rows) { return static_cast<std::int64_t>(rows.size()); }

Number extreme(ScalarType type, bool highest) {
  if (is_real(type)) return real(type, (highest ? 1 : -1) * std::numeric_limits<double>::infinity());
  const int width = width_of(type);
  if (!is_signed_type(type)) return integer(type, highest ? -1 : 0);
  const std::int64_t top = static_cast<std::int64_t>((std::uint64_t(1) << (width - 1)) - 1);
  return integer(type, highest ? top : -top - 1);
}

// The reductions that have names: f32.sum, and ...
Number named_reduction(const std::string& name, ScalarType type, const Rows& rows) {
  const std::string what = name.substr(name.find('.') + 1);
  const auto start = [&](int whole) { return is_real(type) ? real(type, whole) : integer(type, whole); };
  BinaryOp op = BinaryOp::add;
  Number result = start(0);
  if (what == "product") op = BinaryOp::mul, result = start(1);
  if (what == "minimum") op = BinaryOp::min, result = extreme(type, true);
  if (what == "maximum") op = BinaryOp::max, result = extreme(type, false);
  if (what == "and") op = BinaryOp::both, result = boolean(true);
  if (what == "or") op = BinaryOp::either, result = boolean(false);
  for (const Value& row : rows) result = apply(op, result, row.number);
  return result;
}

// Of a value, at least 1: a row without elements takes memory, too.
std::int64_t element_count(const Value& value) {
  std::int64_t count = 1;
  for (const Value& part : value.parts) count += element_count(part);
  return count;
}

}  // namespace

// Elements that are made count as steps: nothing else bounds the memory that a program takes.
void Evaluator::spend(std::int64_t elements) {
  if (elements > most_steps_ - steps_) throw std::length_error("an evaluation makes too many elements");
  steps_ += elements;
}

std::int64_t Evaluator::count(const Tree& tree, const char* what) {
  const std::int64_t n = whole(tree);
  if (n < 0) fail(what);
  spend(n);
  return n;
}

Value Evaluator::repeated(std::int64_t count, const Value& row) {
  const std::int64_t elements = element_count(row);
  if (count > most_steps_ / elements) spend(most_steps_ + 1);
  spend(count * elements);
  return {{}, Rows(static_cast<std::size_t>(count), row)};
}

Value Evaluator::soac(const Node& node) {
  switch (node.form) {
    case Form::map: {
      std::vector<Rows> arrays;
      for (const Tree& kid : node.kids) arrays.push_back(eval(kid).parts);
      return {{}, run_lanes(length_of(arrays.front()), [&](std::int64_t k) {
                std::vector<Value> row;
                for (const Rows& rows : arrays) row.push_back(rows[static_cast<std::size_t>(k)]);
                return call(node.lambdas[0], std::move(row));
              })};
    }
    case Form::tabulate: {
      const auto index = [](std::int64_t k) { return Value{integer(ScalarType::i64, k), {}}; };
      const std::int64_t n = count(node.kids[0], "size");
      return {{}, run_lanes(n, [&](std::int64_t k) { return call(node.lambdas[0], {index(k)}); })};
    }
    case Form::tabulate_2d: {
      const auto index = [](std::int64_t k) { return Value{integer(ScalarType::i64, k), {}}; };
      const std::int64_t n = count(node.kids[0], "size"), m = count(node.kids[1], "size");
      return {
          {}, run_lanes(n, [&](std::int64_t k) {
            return Value{{}, run_lanes(m, [&](std::int64_t j) { return call(node.lambdas[0], {index(k), index(j)}); })};
          })};
    }
    case Form::filter: {
      Value result;
      const Rows rows = eval(node.kids[0]).parts;
      const Rows kept = run_lanes(
          length_of(rows), [&](std::int64_t k) { return call(node.lambdas[0], {rows[static_cast<std::size_t>(k)]}); });
      for (std::size_t k = 0; k < rows.size(); ++k)
        if (kept[k].number.is_true()) result.parts.push_back(rows[k]);
      return result;
    }
    default: {  // partition
      const Rows rows = eval(node.kids[0]).parts;
      const Rows kept = run_lanes(
          length_of(rows), [&](std::int64_t k) { return call(node.lambdas[0], {rows[static_cast<std::size_t>(k)]}); });
      Value result{{}, {Value{}, Value{}}};
      for (std::size_t k = 0; k < rows.size(); ++k)
        result.parts[kept[k].number.is_true() ? 0 : 1].parts.push_back(rows[k]);
      return result;
    }
  }
}

Value Evaluator::folded(const Node& node) {
  if (node.form == Form::reduce && node.lambdas.empty())
    return {named_reduction(node.name, node.type.scalar, eval(node.kids[0]).parts), {}};
  Value sum = eval(node.kids[0]), result;
  for (Value& row : eval(node.kids[1]).parts) {
    if (node.form == Form::exscan) result.parts.push_back(sum);
    sum = call(node.lambdas[0], {std::move(sum), std::move(row)});
    if (node.form == Form::scan) result.parts.push_back(sum);
  }
  return node.form == Form::reduce ? sum : result;
}

// Elements that go to computed positions; those out of bounds are left out.
Value Evaluator::placed(const Node& node) {
  Value target;
  std::size_t first = 1;  // of the indices, among the kids
  switch (node.form) {
    case Form::histogram: {
      const Value neutral = eval(node.kids[0]);
      target = repeated(count(node.kids[1], "size"), neutral);
      first = 2;
      break;
    }
    case Form::spread: {
      const std::int64_t n = count(node.kids[0], "size");
      target = repeated(n, eval(node.kids[1]));
      first = 2;
      break;
    }
    case Form::reduce_by_index: first = 2; [[fallthrough]];
    default: target = eval(node.kids[0]);
  }
  const Rows indices = eval(node.kids[first]).parts;
  Rows values = eval(node.kids[first + 1]).parts;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    const std::int64_t at = indices[k].number.whole;
    if (at < 0 || at >= length_of(target.parts)) continue;
    Value& element = target.parts[static_cast<std::size_t>(at)];
    element =
        node.lambdas.empty() ? std::move(values[k]) : call(node.lambdas[0], {std::move(element), std::move(values[k])});
  }
  return target;
}

Value Evaluator::updated(const Node& node) {
  Value target = eval(node.kids[0]);
  if (node.form == Form::update) {
    const std::vector<std::int64_t> at = position(node, node.kids.size() - 1, target);
    Value* element = &target;
    for (const std::int64_t i : at) element = &element->parts[static_cast<std::size_t>(i)];
    *element = eval(node.kids.back());
    return target;
  }
  Slice part = slice(node, length_of(target.parts));
  Rows rows = eval(node.kids[4]).parts;
  for (std::int64_t k = 0; k < part.count; ++k)
    target.parts[static_cast<std::size_t>(part.first + k * part.stride)] = std::move(rows[static_cast<std::size_t>(k)]);
  return target;
}

Value Evaluator::made(const Node& node) {
  Value result;
  switch (node.form) {
    case Form::indices:
    case Form::iota: {
      const std::int64_t n =
          node.form == Form::iota ? count(node.kids[0], "size") : length_of(eval(node.kids[0]).parts);
      for (std::int64_t k = 0; k < n; ++k) result.parts.push_back({integer(ScalarType::i64, k), {}});
      return result;
    }
    case Form::range: {
      const std::int64_t first = whole(node.kids[0]), end = whole(node.kids[1]);
      const std::int64_t second = node.kids.size() == 3 ? whole(node.kids[2]) : first + 1;
      if (end < first || second <= first) fail("size");
      for (std::int64_t k = first; k < end; k += second - first) {
        spend(1);
        result.parts.push_back({integer(ScalarType::i64, k), {}});
      }
      return result;
    }
    case Form::replicate: {
      const std::int64_t n = count(node.kids[0], "size");
      return repeated(n, eval(node.kids[1]));
    }
    case Form::zip: {
      std::vector<Rows> arrays;
      for (const Tree& kid : node.kids) arrays.push_back(eval(kid).parts);
      for (std::size_t k = 0; k < arrays.front().size(); ++k) {
        result.parts.emplace_back();
        for (const Rows& rows : arrays) result.parts.back().parts.push_back(rows[k]);
      }
      return result;
    }
    default: {  // unzip
      result.parts.resize(node.type.fields.size());
      for (const Value& row : eval(node.kids[0]).parts)
        for (std::size_t k = 0; k < row.parts.size(); ++k) result.parts[k].parts.push_back(row.parts[k]);
      return result;
    }
  }
}

Value Evaluator::rearranged(const Node& node) {
  Value source = eval(node.kids[0]), result;
  Rows& rows = source.parts;
  switch (node.form) {
    case Form::concat:
      for (Value& row : eval(node.kids[1]).parts) rows.push_back(std::move(row));
      return source;
    case Form::reverse: std::reverse(rows.begin(), rows.end()); return source;
    case Form::transpose:
      result.parts.resize(static_cast<std::size_t>(size(node.type.dims[0])));
      for (const Value& row : rows)
        for (std::size_t k = 0; k < row.parts.size(); ++k) result.parts[k].parts.push_back(row.parts[k]);
      return result;
    case Form::flatten:
      for (Value& row : rows)
        for (Value& element : row.parts) result.parts.push_back(std::move(element));
      return result;
    case Form::unflatten: {
      const std::int64_t n = size(node.type.dims[0]), m = size(node.type.dims[1]);
      if (n * m != length_of(rows)) fail("Value of shape");
      for (std::int64_t k = 0; k < n; ++k)
        result.parts.push_back({{}, Rows(rows.begin() + k * m, rows.begin() + (k + 1) * m)});
      return result;
    }
    case Form::slice: {
      const Slice part = slice(node, length_of(rows));
      for (std::int64_t k = 0; k < part.count; ++k)
        result.parts.push_back(rows[static_cast<std::size_t>(part.first + k * part.stride)]);
      return result;
    }
    case Form::column: {
      const std::int64_t at = whole(node.kids[1]);
      if (at < 0 || at >= size(node.kids[0]->type.dims[1])) fail("Index [");
      for (Value& row : rows) result.parts.push_back(std::move(row.parts[static_cast<std::size_t>(at)]));
      return result;
    }
    case Form::coerce:
      if (size(node.type.dims[0]) != length_of(rows)) fail("Value of shape");
      return source;
    default: return source;  // copy
  }
}

Value Evaluator::array(const Node& node) {
  switch (node.form) {
    case Form::map:
    case Form::tabulate:
    case Form::tabulate_2d:
    case Form::filter:
    case Form::partition: return soac(node);
    case Form::reduce:
    case Form::scan:
    case Form::exscan: return folded(node);
    case Form::histogram:
    case Form::reduce_by_index:
    case Form::scatter:
    case Form::spread: return placed(node);
    case Form::update:
    case Form::slice_update: return updated(node);
    case Form::iota:
    case Form::indices:
    case Form::range:
    case Form::replicate:
    case Form::zip:
    case Form::unzip: return made(node);
    case Form::take:
    case Form::drop: {
      const std::int64_t n = whole(node.kids[0]);
      Rows rows = eval(node.kids[1]).parts;
      if (n < 0 || n > length_of(rows)) fail("Index [");
      if (node.form == Form::take) return {{}, Rows(rows.begin(), rows.begin() + n)};
      return {{}, Rows(rows.begin() + n, rows.end())};
    }
    case Form::rotate: {  // as the prelude has it: the sum of index and amount wraps
      const Number by = number(node.kids[0]);
      const Rows rows = eval(node.kids[1]).parts;
      const Number n = integer(ScalarType::i64, length_of(rows));
      Value result;
      for (std::int64_t k = 0; k < length_of(rows); ++k) {
        const Number at = apply(BinaryOp::add, integer(ScalarType::i64, k), by);
        result.parts.push_back(rows[static_cast<std::size_t>(apply(BinaryOp::mod, at, n).whole)]);
      }
      return result;
    }
    case Form::head:
    case Form::last: {
      Rows rows = eval(node.kids[0]).parts;
      if (rows.empty()) fail("Index [");
      return node.form == Form::head ? rows.front() : rows.back();
    }
    case Form::length: return {integer(ScalarType::i64, length_of(eval(node.kids[0]).parts)), {}};
    default: return rearranged(node);
  }
}

}  // namespace apl::oracle
