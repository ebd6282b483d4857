#include "codegen/contraction/packed_parts.h"

#include <algorithm>
#include <functional>

#include "ir/walk.h"

namespace apl::lower {
namespace {

// Whether what M's or N's operands give is one integer of 16 bits at most, widened to 32.
bool is_widened(const Lambda& packed, const ValueTable& values) {
  if (packed.params.size() != 1 || packed.body->stms.size() != 1 || packed.body->results.size() != 1) return false;
  const Convert* widened = get_if<Convert>(packed.body->stms.front());
  if (widened == nullptr || widened->same_bits || !widened->x.is_value() || widened->x.value() != packed.params.front())
    return false;
  const ScalarType from = values.type(widened->x).element;
  const bool narrow = from == ScalarType::i8 || from == ScalarType::u8 || from == ScalarType::i16;
  return narrow && bit_width(widened->to) == 32 && is_integer(widened->to);
}

}  // namespace

PackedParts::PackedParts(const Lambda& map, const std::vector<std::size_t>& mn_of, const ValueTable& values)
    : map_(map), values_(values) {
  for (std::size_t o = 0; o < map.params.size(); ++o) mn_of_[map.params[o]] = mn_of[o];
  for (const Stm& stm : map.body->stms) {
    std::set<std::size_t> read;
    bool inner = true;
    for (const Value v : free_values(stm.op, values_)) {
      const auto found = mn_of_.find(v);
      if (found != mn_of_.end()) read.insert(found->second);
      inner = inner && !mixed_.contains(v);
    }
    const bool hoisted = inner && read.size() == 1;
    for (const Value v : stm.pattern) {
      if (hoisted) {
        mn_of_[v] = *read.begin();
      } else {
        mixed_.insert(v);
      }
    }
  }
  split();
}

// Hoists what packs no more values than there are operands.
void PackedParts::split() {
  std::vector<std::vector<Value>> packed(2);
  for (const std::size_t each : {0U, 1U}) {
    packed[each] = frontier(each);
    std::size_t operands = 0;
    for (const Value p : map_.params) operands += mn_of_.at(p) == each ? 1 : 0;
    if (packed[each].size() <= operands) continue;
    std::erase_if(mn_of_, [&](const auto& entry) {
      return entry.second == each && std::ranges::find(map_.params, entry.first) == map_.params.end();
    });
    packed[each] = frontier(each);
  }
  for (const std::size_t each : {0U, 1U}) {
    std::vector<Stm> stms;
    for (const Stm& stm : map_.body->stms)
      if (!stm.pattern.empty() && is_of(stm.pattern.front(), each)) stms.push_back(stm);
    Binders params;
    for (const Value p : map_.params)
      if (mn_of_.at(p) == each) params.push_back(p);
    std::vector<Operand> results(packed[each].begin(), packed[each].end());
    mn[each] = {std::move(params), make_body(std::move(stms), std::move(results))};
    combined.params.insert(combined.params.end(), packed[each].begin(), packed[each].end());
  }
  std::vector<Stm> stms;
  for (const Stm& stm : map_.body->stms)
    if (stm.pattern.empty() || !mn_of_.contains(stm.pattern.front())) stms.push_back(stm);
  combined.body = make_body(std::move(stms), map_.body->results);
}

bool PackedParts::is_of(Value v, std::size_t s) const {
  const auto found = mn_of_.find(v);
  return found != mn_of_.end() && found->second == s;
}

// Values of M's or N's operands that are needed when all are combined, widest first, so that all are aligned where they
// lie.
std::vector<Value> PackedParts::frontier(std::size_t s) const {
  std::vector<Value> needed;
  const auto want = [&](Value v) {
    if (is_of(v, s) && std::ranges::find(needed, v) == needed.end()) needed.push_back(v);
  };
  for (const Stm& stm : map_.body->stms)
    if (stm.pattern.empty() || !mn_of_.contains(stm.pattern.front()))
      for (const Value v : free_values(stm.op, values_)) want(v);
  for (const Operand& result : map_.body->results)
    if (result.is_value()) want(result.value());
  std::ranges::stable_sort(needed, std::greater{}, [&](Value v) { return byte_size(values_.type(v).element); });
  return needed;
}

bool is_dot_product(const PackedParts& parts, const ReduceOp& reduce, const ValueTable& values) {
  return as_binary_op(reduce.op) == BinaryOp::add && as_binary_op(parts.combined) == BinaryOp::mul &&
         is_widened(parts.mn[0], values) && is_widened(parts.mn[1], values);
}

bool is_sum_of_products(const PackedParts& parts, const ReduceOp& reduce, const ValueTable& values) {
  if (as_binary_op(reduce.op) != BinaryOp::add || as_binary_op(parts.combined) != BinaryOp::mul) return false;
  const ScalarType of = values.type(reduce.op.params.front()).element;
  return (byte_size(of) == 4 || byte_size(of) == 8) && std::ranges::all_of(parts.mn, [&](const Lambda& packed) {
           return packed.body->results.size() == 1 && values.type(packed.body->results.front()).element == of;
         });
}

}  // namespace apl::lower
