#include "codegen/sparse/kernel.h"

#include <algorithm>

#include "ir/attributes.h"
#include "ir/layouts.h"
#include "ir/walk.h"

namespace apl::lower {

SparseKernel::SparseKernel(const Stm& stm, const apl::Function& function, std::string* why)
    : function_(function), stm_(stm), why_(why) {
  op_ = get_if<SegOp>(stm);
  const bool marked = has_attribute(stm.attributes, attribute::sparse_product);
  if (!marked || op_ == nullptr || op_->level != SegLevel::thread || stm.pattern.size() != 1) {
    refuse("it is not one result of one kernel over the non-zeros");
    return;
  }
  is_sparse_ = true;
  for (const Stm& inner : op_->body->stms) define(inner, false);
  if (sum_ != nullptr)
    for (const Stm& inner : sum_->map.body->stms) define(inner, true);
  bool has_loops = false;
  for_each_stm(*op_->body,
               [&](const Stm& inner) { has_loops = has_loops || get_if<Screma>(inner) || get_if<Loop>(inner); });
  if (!has_loops) {
    refuse("it has no sum: each of its numbers comes from one non-zero");
    return;
  }
  if (sum_ == nullptr || !is_straight_ || sum_->widths.size() != 1 || sum_->reduces.size() != 1 || sum_->scans() ||
      sum_->map.body->results.size() != 1) {
    refuse("there are several sums, or branches and loops in the sum or before it");
    return;
  }
  const ReduceOp& reduce = sum_->reduces.front();
  const Operand& neutral = reduce.neutral.front();
  fits_ = as_binary_op(reduce.op) == BinaryOp::add && neutral.is_constant() &&
          (neutral.constant() == Scalar::zero(neutral.constant().type()));
  if (!fits_) refuse("its operator is not a plain sum");
}

void SparseKernel::define(const Stm& inner, bool in_sum) {
  for (const Value v : inner.pattern) {
    definitions_.emplace(v, &inner);
    local_.insert(v);
  }
  const Screma* screma = get_if<Screma>(inner);
  const bool branches = get_if<Loop>(inner) != nullptr || get_if<If>(inner) != nullptr;
  if ((screma != nullptr && sum_ != nullptr) || (branches && (in_sum || sum_ == nullptr))) is_straight_ = false;
  if (const Loop* loop = get_if<Loop>(inner); loop != nullptr && sum_ == nullptr) {
    if (loop->index) local_.insert(loop->index);
    local_.insert(loop->params.begin(), loop->params.end());
    for (const Stm& own : loop->body->stms) define(own, in_sum);
  }
  if (screma == nullptr || sum_ != nullptr) return;
  sum_ = screma;
  sum_stm_ = &inner;
  local_.insert(screma->indices.begin(), screma->indices.end());
}

Operand SparseKernel::bare(const Operand& x) const {
  const Convert* convert = defined_by<Convert>(x);
  const auto floats = [&](const Operand& y) { return is_float(function_.values.type(y).element); };
  return convert != nullptr && floats(x) && floats(convert->x) ? convert->x : x;
}

std::optional<Value> SparseKernel::element_of(const Operand& x, const Poly& at) const {
  const Index* index = defined_by<Index>(x);
  if (index == nullptr || index->dims.size() != 1 || index->dims[0].is_slice() || !(index->dims[0].start == at))
    return std::nullopt;
  return is_whole(index->array) ? std::optional(index->array) : std::nullopt;
}

bool SparseKernel::is_whole(Value array) const {
  const Type& t = type(array);
  return t.memory && t.rank() == 1 && t.memory->layout == Lmad::row_major(t.shape);
}

std::optional<Operand> SparseKernel::narrow(Value x) const {
  const Convert* convert = defined_by<Convert>(Operand(x));
  return convert != nullptr ? std::optional(convert->x) : std::nullopt;
}

std::optional<std::pair<Value, Poly>> SparseKernel::position(const Operand& x) const {
  if (!x.is_value()) return std::nullopt;
  if (const Index* index = defined_by<Index>(x)) {
    const Type& t = type(index->array);
    if (!t.memory) return std::nullopt;
    return std::pair{t.memory->block, index_layout(t.memory->layout, index->dims).offset()};
  }
  for (std::size_t k = 0; sum_ != nullptr && k < sum_->map.params.size(); ++k) {
    if (!(sum_->map.params[k] == x.value())) continue;
    const Type& t = type(sum_->inputs[k]);
    if (!t.memory || t.rank() != 1) return std::nullopt;
    return std::pair{t.memory->block, t.memory->layout.apply({Poly(sum_->indices.front())})};
  }
  return std::nullopt;
}

std::optional<DenseRows> SparseKernel::rows(const std::pair<Value, Poly>& at, Value i, std::optional<Value> j) const {
  Poly rest = at.second;
  if (j) {
    const auto inner = rest.linear_in(*j);
    if (!inner || !inner->coefficient.is_one()) return std::nullopt;
    rest = inner->rest;
  }
  const auto outer = rest.linear_in(i);
  if (!outer) return std::nullopt;
  bool local = false;
  outer->rest.for_each_symbol([&](Value v) { local = local || local_.contains(v) || v == i || v == j; });
  // A row's length is the same for all batches.
  outer->coefficient.for_each_symbol([&](Value v) {
    local = local || local_.contains(v) || v == i || v == j ||
            std::ranges::find(op_->space, v, &SegDim::index) != op_->space.end();
  });
  return local ? std::nullopt : std::optional(DenseRows{at.first, outer->rest, outer->coefficient});
}

std::optional<Nonzeros> SparseKernel::nonzeros(const std::pair<Value, Poly>& at, const Poly& nonzero) const {
  const Poly offset = at.second - nonzero;
  bool local = false;
  offset.for_each_symbol([&](Value v) { local = local || local_.contains(v) || nonzero.mentions(v); });
  return local ? std::nullopt : std::optional(Nonzeros{at.first, offset});
}

std::vector<SparseKernel::ReadIndex> SparseKernel::read_indices(const Poly& position, const Poly& nonzero) const {
  std::vector<ReadIndex> found;
  position.for_each_symbol([&](Value v) {
    const auto index = narrow(v);
    if (const auto array = index ? element_of(*index, nonzero) : std::nullopt) found.push_back({v, *array});
  });
  return found;
}

std::optional<SparseKernel::RowTerms> SparseKernel::row_terms(const Operand& term, Value p, Poly count) const {
  const Binary* times = defined_by<Binary>(term);
  if (times == nullptr || times->op != BinaryOp::mul) return refuse("its terms are not products of two numbers");
  RowTerms terms;
  std::optional<Value> first;
  for (const auto& [x, y] : {std::pair{times->x, times->y}, std::pair{times->y, times->x}}) {
    const Index* value = defined_by<Index>(bare(x));
    if (value == nullptr || value->dims.back().is_slice()) continue;
    terms.nonzero = value->dims.back().start;
    first = (terms.nonzero - Poly(p)).symbol();
    const auto at = first ? position(bare(x)) : std::nullopt;
    const auto values = at ? nonzeros(*at, terms.nonzero) : std::nullopt;
    first = values ? first : std::nullopt;
    if (!first) continue;
    terms.values = *values;
    terms.type = element_type(bare(x));
    terms.other = bare(y);
    break;
  }
  if (!first) return refuse("its terms are not the non-zeros of a row, one after the other");
  // From row_start[i] to row_start[i + 1].
  if (const SizeExpr* size = count.symbol() ? defined_by<SizeExpr>(Operand(*count.symbol())) : nullptr)
    count = size->value;
  const Poly last = count + Poly(*first);
  std::optional<Value> starts;
  for (const SegDim& dim : op_->space) {
    const auto found = starts ? std::nullopt : element_of(Operand(*first), Poly(dim.index));
    if (found) {
      starts = found;
      terms.i = dim.index;
    } else {
      terms.others.push_back(dim);
    }
  }
  if (!starts || !last.symbol() || element_of(Operand(*last.symbol()), Poly(terms.i) + 1) != starts)
    return refuse("the sum does not go over the non-zeros of a row (transposed operands go by columns)");
  if (terms.values.offset.mentions(terms.i))
    return refuse("its terms are not the non-zeros of a row, one after the other");
  terms.row_start = *starts;
  return terms;
}

std::optional<SparseKernel::Parameter> SparseKernel::parameter(Value array, SoaField field) const {
  std::vector<Value> params;
  for (const Value param : function_.params)
    if (!type(param).is_memory()) params.push_back(param);
  for (const SparseSoa& soa : find_soas(function_)) {
    const auto at = std::ranges::find(soa.fields, field) - soa.fields.begin();
    if (at == std::ssize(soa.fields) || !(params[soa.first + static_cast<std::size_t>(at)] == array)) continue;
    const Type& shape = type(params[soa.first]);
    return Parameter{shape.shape[1], shape.shape[2], type(params[soa.first + 1]).shape[0]};
  }
  return std::nullopt;
}

std::optional<std::vector<Stm>> SparseKernel::epilogue(const std::vector<Value>& given) const {
  return epilogue(nullptr, result(), summed(), given);
}

std::optional<std::vector<Stm>> SparseKernel::epilogue(const Body* lambda, const Operand& result, Value sum,
                                                       const std::vector<Value>& given) const {
  if (bare(result) == Operand(sum)) return std::vector<Stm>{};
  std::set<Value> needed;
  const auto need = [&](Value v) {
    if (std::ranges::find(given, v) == given.end()) needed.insert(v);
  };
  if (result.is_value()) need(result.value());
  std::vector<Stm> all = op_->body->stms, stms;
  if (lambda != nullptr) all.insert(all.end(), lambda->stms.begin(), lambda->stms.end());
  for (auto stm = all.rbegin(); stm != all.rend(); ++stm) {
    if (std::ranges::find(stm->pattern, sum) != stm->pattern.end() ||
        std::ranges::none_of(stm->pattern, [&](Value v) { return needed.contains(v); }))
      continue;
    if (can_fail(stm->op, function_.values)) return refuse("code after the sum can fail");
    if (std::ranges::any_of(stm->pattern, [&](Value v) { return !type(v).is_scalar(); }) || get_if<Loop>(*stm))
      return refuse("code after the sum has arrays or loops");
    for (const Value v : free_values(stm->op, function_.values)) need(v);
    stms.push_back(*stm);
  }
  if (!needed.contains(sum)) return refuse("the result does not come from the sum");
  std::reverse(stms.begin(), stms.end());
  return stms;
}

std::string SparseKernel::why_not_in_place(const SparseEpilogue& epilogue) const {
  if (epilogue.empty()) return {};
  const Type& results = type(stm_.pattern.front());
  if (results.element != element_type(Operand(epilogue.sum))) return "the sums have another type than the results";
  for (const Stm& stm : epilogue.stms)
    for (const Value v : free_values(stm.op, function_.values))
      if (type(v).memory && type(v).memory->block == results.memory->block)
        return "the results take the place of an array that is read after the sums";
  return {};
}

}  // namespace apl::lower
