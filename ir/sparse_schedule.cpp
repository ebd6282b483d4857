#include "ir/sparse_schedule.h"

#include <fmt/format.h>
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "ir/sparse_soa.h"
#include "ir/walk.h"

namespace apl {

using Family = SparseSchedule::Family;
using Role = SparseSchedule::Role;

std::string_view to_text(Family family) {
  switch (family) {
    case Family::general: return "general";
    case Family::product: return "product";
    case Family::rows: return "rows";
    case Family::sddmm: return "sddmm";
  }
  return {};
}

std::string_view to_text(Role role) {
  switch (role) {
    case Role::batch: return "batch";
    case Role::row: return "row";
    case Role::n: return "n";
    case Role::nonzero: return "nonzero";
    case Role::column: return "column";
    case Role::depth: return "depth";
  }
  return {};
}

std::optional<std::size_t> dim_of(const SparseSchedule& schedule, Role role) {
  const auto found = std::ranges::find(schedule.dims, role, &SparseSchedule::Dim::role);
  return found == schedule.dims.end() ? std::nullopt
                                      : std::optional(static_cast<std::size_t>(found - schedule.dims.begin()));
}

namespace {

bool is_zero(const Operand& x) { return x.is_constant() && x.constant() == Scalar::zero(x.constant().type()); }

// Through conversions between floats.
Operand bare(Operand x, const std::map<Value, const Stm*>& definitions, const ValueTable& values) {
  const auto found = x.is_value() ? definitions.find(x.value()) : definitions.end();
  const Convert* convert = found == definitions.end() ? nullptr : get_if<Convert>(*found->second);
  const auto is_float_value = [&](const Operand& y) { return is_float(values.type(y).element); };
  return convert != nullptr && is_float_value(x) && is_float_value(convert->x) ? convert->x : x;
}

// The sum of a kernel, and what makes its results: the body, or with rows of sums a map over them.
struct SumOf {
  Value sum;
  Operand result;
  const Screma* map = nullptr;
};

SumOf sum_of(const SegOp& kernel) {
  SumOf found{.sum = {}, .result = kernel.body->results.front()};
  const Value result = found.result.is_value() ? found.result.value() : Value{};
  for (const Stm& stm : kernel.body->stms) {
    const Screma* screma = get_if<Screma>(stm);
    if (screma == nullptr || stm.pattern.empty()) continue;
    if (!screma->reduces.empty()) {
      found.sum = stm.pattern.front();
    } else if (stm.pattern.front() == result && screma->map.params.size() == 1 &&
               screma->map.body->results.size() == 1) {
      found.map = screma;
      found.sum = screma->map.params.front();
      found.result = screma->map.body->results.front();
    }
  }
  return found;
}

// One kernel, looked at from its results.
class Derivation {
 public:
  Derivation(const Stm& stm, const std::string& matrix, const Function& function, const Layouts& layouts)
      : stm_(stm), function_(function), layouts_(layouts), op_(get_if<SegOp>(stm)) {
    made_.matrix = matrix;
  }

  SparseSchedule run() {
    const bool found = find();
    if (!found) made_ = {.matrix = made_.matrix, .why = why_, .dims = {}, .operands = {}};
    return std::move(made_);
  }

 private:
  bool refuse(std::string why) {
    if (why_.empty()) why_ = std::move(why);
    return false;
  }

  bool find() {
    if (op_ == nullptr || op_->level != SegLevel::thread || stm_.pattern.size() != 1 || op_->body == nullptr ||
        op_->body->results.size() != 1)
      return refuse("it is not one result of one kernel over the non-zeros");
    for (const SparseSoa& soa : find_soas(function_))
      if (function_.entry->params[soa.param].name == made_.matrix) soa_ = soa;
    if (!soa_) return refuse("its arrays are no arguments of the entry");
    std::size_t at = 0;
    for (const Value param : function_.params)
      if (!function_.type(param).is_memory() && at++ >= soa_->first && fields_.size() < soa_->fields.size())
        fields_.push_back(param);
    for (const SegDim& dim : op_->space) {
      space_.insert(dim.index);
      symbols_.push_back({dim.index});
      made_.dims.push_back({Role::batch, dim.bound});
    }
    define(*op_->body, true);
    if (rows_of_sums()) return true;
    if (!why_.empty()) return false;
    return plain_sum() && (sddmm_ ? sddmm() : product());
  }

  void define(const Body& body, bool outside) {
    for (const Stm& stm : body.stms) {
      for (const Value v : stm.pattern) {
        definitions_.emplace(v, &stm);
        local_.insert(v);
      }
      const Screma* screma = get_if<Screma>(stm);
      const Loop* loop = get_if<Loop>(stm);
      const bool branches = loop != nullptr || get_if<If>(stm) != nullptr;
      has_loops_ = has_loops_ || screma != nullptr || loop != nullptr;
      if ((screma != nullptr && sum_ != nullptr) || (branches && (!outside || sum_ == nullptr))) is_straight_ = false;
      if (loop != nullptr && sum_ == nullptr) {
        if (loop->index) local_.insert(loop->index);
        local_.insert(loop->params.begin(), loop->params.end());
        define(*loop->body, outside);
      }
      if (const If* branch = get_if<If>(stm))
        for (const BodyPtr& inner : {branch->then_body, branch->else_body})
          for_each_stm(*inner,
                       [&](const Stm& one) { has_loops_ = has_loops_ || get_if<Screma>(one) || get_if<Loop>(one); });
      if (screma == nullptr || sum_ != nullptr) continue;
      sum_ = screma;
      local_.insert(screma->indices.begin(), screma->indices.end());
      local_.insert(screma->map.params.begin(), screma->map.params.end());
      define(*screma->map.body, false);
    }
  }

  template <class T>
  const T* defined_by(const Operand& x) const {
    const auto found = x.is_value() ? definitions_.find(x.value()) : definitions_.end();
    return found == definitions_.end() ? nullptr : std::get_if<T>(&found->second->op);
  }
  Operand bare(const Operand& x) const { return apl::bare(x, definitions_, function_.values); }
  ScalarType element_type(const Operand& x) const { return function_.values.type(x).element; }

  std::optional<Value> field(SoaField which) const {
    const auto at = std::ranges::find(soa_->fields, which) - soa_->fields.begin();
    return at < std::ssize(fields_) ? std::optional(fields_[static_cast<std::size_t>(at)]) : std::nullopt;
  }

  // Whether x is element `at` of a field.
  bool is_element(Value x, SoaField which, const Poly& at) const {
    const Layout* layout = layouts_.find(x);
    return layout != nullptr && field(which) == layout->base && layout->lmad.rank() == 0 && layout->lmad.offset() == at;
  }

  // Whether v is an index of which the field has element `at`, converted.
  bool is_index(Value v, SoaField which, const Poly& at) const {
    const Convert* convert = defined_by<Convert>(Operand(v));
    return convert != nullptr && convert->x.is_value() && is_element(convert->x.value(), which, at);
  }

  bool is_outer(const Poly& poly) const {
    bool outer = true;
    poly.for_each_symbol([&](Value v) { outer = outer && !local_.contains(v) && !space_.contains(v); });
    return outer;
  }

  void add_dim(Role role, Poly size, std::vector<Value> symbols) {
    made_.dims.push_back({role, std::move(size)});
    symbols_.push_back(std::move(symbols));
  }

  // Where an element lies: linear in the dims, each of which is a sum of symbols.
  std::optional<SparseSchedule::Operand> access(const Operand& x) const {
    const Layout* layout = x.is_value() ? layouts_.find(x.value()) : nullptr;
    if (layout == nullptr || layout->lmad.rank() != 0 || local_.contains(layout->base)) return std::nullopt;
    SparseSchedule::Operand found{layout->base, layout->lmad.offset(), {}};
    for (const std::vector<Value>& symbols : symbols_) {
      for (const Value symbol : symbols) {
        const auto linear = found.offset.linear_in(symbol);
        if (!linear || !is_outer(linear->coefficient)) return std::nullopt;
        if (symbol == symbols.front()) found.strides.push_back(linear->coefficient);
        if (found.strides.back() != linear->coefficient) return std::nullopt;
        found.offset = Poly(linear->rest);
      }
    }
    return is_outer(found.offset) ? std::optional(found) : std::nullopt;
  }

  // Whether the element varies along just these dims, and batches; along n and depth its neighbours are.
  bool varies_along(const SparseSchedule::Operand& operand, std::initializer_list<Role> roles) const {
    for (std::size_t d = 0; d < made_.dims.size(); ++d) {
      const Role role = made_.dims[d].role;
      const bool wanted = std::ranges::find(roles, role) != roles.end();
      if (role == Role::batch) continue;
      if (!wanted && !operand.strides[d].is_zero()) return false;
      if (wanted && (role == Role::n || role == Role::depth || role == Role::nonzero) && !operand.strides[d].is_one())
        return false;
    }
    return true;
  }

  bool plain_sum() {
    if (!has_loops_) return refuse("it has no sum: each of its numbers comes from one non-zero");
    if (sum_ == nullptr || !is_straight_ || sum_->widths.size() != 1 || sum_->reduces.size() != 1 || sum_->scans() ||
        sum_->map.body->results.size() != 1)
      return refuse("there are several sums, or branches and loops in the sum or before it");
    const ReduceOp& reduce = sum_->reduces.front();
    if (as_binary_op(reduce.op) != BinaryOp::add || !is_zero(reduce.neutral.front()))
      return refuse("its operator is not a plain sum");
    for (const SegDim& dim : op_->space) {
      const auto at_nonzero = [&](Value v) { return is_index(v, SoaField::row, Poly(dim.index)); };
      if (std::ranges::any_of(local_, at_nonzero)) sddmm_ = true;
    }
    return true;
  }

  // values[first + p] times another factor, on either side, where p < count goes over the non-zeros of row i.
  struct RowTerms {
    Value i, first;
    Operand value, other;
  };
  std::optional<RowTerms> row_terms(const Operand& term, Value p, Poly count) {
    const Binary* times = defined_by<Binary>(term);
    if (times == nullptr || times->op != BinaryOp::mul) {
      refuse("its terms are not products of two numbers");
      return std::nullopt;
    }
    for (const auto& [x, y] : {std::pair{times->x, times->y}, std::pair{times->y, times->x}}) {
      const Operand value = bare(x);
      const Layout* layout = value.is_value() ? layouts_.find(value.value()) : nullptr;
      if (layout == nullptr || !layout->lmad.offset().mentions(p)) continue;
      std::optional<RowTerms> found;
      layout->lmad.offset().for_each_symbol([&](Value v) {
        for (const SegDim& dim : op_->space)
          if (is_element(v, SoaField::row_start, Poly(dim.index))) found = {dim.index, v, value, bare(y)};
      });
      if (!found) continue;
      // From row_start[i] to row_start[i + 1].
      if (const SizeExpr* size = count.symbol() ? defined_by<SizeExpr>(Operand(*count.symbol())) : nullptr)
        count = size->value;
      const auto last = (count + Poly(found->first)).symbol();
      if (last && is_element(*last, SoaField::row_start, Poly(found->i) + 1)) return found;
      refuse("the sum does not go over the non-zeros of a row (transposed operands go by columns)");
      return std::nullopt;
    }
    refuse("its terms are not the non-zeros of a row, one after the other");
    return std::nullopt;
  }

  // The dims of rows, non-zeros and columns, and the operands values and B.
  bool product_of(const RowTerms& terms, Value p) {
    for (auto&& [along, dim] : ranges::views::zip(op_->space, made_.dims))
      if (along.index == terms.i) dim.role = Role::row;
    const Layout* b_at = terms.other.is_value() ? layouts_.find(terms.other.value()) : nullptr;
    if (b_at == nullptr || b_at->lmad.rank() != 0) return refuse("the other factor is computed in the sum");
    std::optional<Value> column;
    b_at->lmad.offset().for_each_symbol([&](Value v) {
      if (is_index(v, SoaField::column, Poly(terms.first) + Poly(p))) column = v;
    });
    if (!column) return refuse("the other factor is not a row of a dense matrix");
    const Type& shape = function_.type(fields_.front());
    add_dim(Role::nonzero, function_.type(fields_[1]).shape[0], {terms.first, p});
    add_dim(Role::column, shape.shape[2], {*column});
    const auto values = access(terms.value), b = access(terms.other);
    const bool has_n = find_n(b);
    if (!b || !has_n || !varies_along(*b, {Role::n, Role::column}))
      return refuse("rows of the dense operand and of the result do not both lie side by side in memory");
    const auto n = dim_of(made_, Role::n);
    if (values && n && !values->strides[*n].is_zero())
      return refuse("the elements differ along the rows of the dense operand");
    if (!values || !varies_along(*values, {Role::nonzero}))
      return refuse("its terms are not the non-zeros of a row, one after the other");
    made_.operands = {*values, *b};
    return true;
  }

  // One dim beside the rows, if there are any: the last along which elements of B are neighbours.
  bool find_n(const std::optional<SparseSchedule::Operand>& b) {
    if (dim_of(made_, Role::n) || op_->space.size() == 1) return true;
    for (std::size_t d = op_->space.size(); b && d-- > 0;) {
      if (made_.dims[d].role != Role::batch || !b->strides[d].is_one()) continue;
      made_.dims[d].role = Role::n;
      return true;
    }
    return false;
  }

  bool has_epilogue(const std::vector<Value>& given) {
    const auto epilogue = sparse_epilogue(*op_, given, function_);
    const std::string* why = std::get_if<std::string>(&epilogue);
    return why == nullptr || refuse(*why);
  }

  bool product() {
    const Value p = sum_->indices.front();
    const auto terms = row_terms(sum_->map.body->results.front(), p, sum_->widths.front());
    if (!terms || !product_of(*terms, p) || !has_epilogue({})) return false;
    made_.family = Family::product;
    return true;
  }

  // sums = loop {row = zeros} for p < count { loop {here = row} for j < width { here with [j] = here[j] + term } }
  bool rows_of_sums() {
    const SumOf made = sum_of(*op_);
    const Operand sums = made.map != nullptr && made.map->inputs.size() == 1 ? Operand(made.map->inputs.front())
                                                                             : op_->body->results.front();
    if (made.map != nullptr && made.map->widths.size() != 1) return false;
    const Loop* over_p = defined_by<Loop>(sums);
    if (over_p == nullptr || !over_p->index || over_p->params.size() != 1) return false;
    const Replicate* zeros = defined_by<Replicate>(over_p->initial.front());
    const Loop* over_j =
        zeros != nullptr && is_zero(zeros->value) ? defined_by<Loop>(over_p->body->results.front()) : nullptr;
    if (over_j == nullptr || !over_j->index || over_j->params.size() != 1) return false;
    const Copy* before = defined_by<Copy>(over_j->initial.front());
    const Operand from = before != nullptr ? Operand(before->array) : over_j->initial.front();
    if (from != Operand(over_p->params.front())) return false;
    const auto here = [&](Value array, const std::vector<DimIndex>& dims) {
      return array == over_j->params.front() && dims.size() == 1 && !dims[0].is_slice() &&
             dims[0].start == Poly(over_j->index);
    };
    const Update* update = defined_by<Update>(over_j->body->results.front());
    const Binary* add =
        update != nullptr && here(update->array, update->dims) ? defined_by<Binary>(update->value) : nullptr;
    if (add == nullptr || add->op != BinaryOp::add) return false;
    const auto is_old = [&](const Operand& x) {
      const Index* old = defined_by<Index>(x);
      return old != nullptr && here(old->array, old->dims);
    };
    if (is_old(add->x) == is_old(add->y)) return false;
    const auto terms = row_terms(is_old(add->x) ? add->y : add->x, over_p->index, over_p->bound);
    if (!terms) return false;
    add_dim(Role::n, over_j->bound, {over_j->index});
    if (!product_of(*terms, over_p->index) || !has_epilogue({})) return false;
    made_.family = Family::rows;
    return true;
  }

  bool sddmm() {
    const Binary* times = defined_by<Binary>(sum_->map.body->results.front());
    if (times == nullptr || times->op != BinaryOp::mul) return refuse("its terms are not products of two numbers");
    const Operand factors[] = {bare(times->x), bare(times->y)};
    const auto symbols_of = [&](const Operand& x) {
      std::vector<Value> symbols;
      if (const Layout* layout = x.is_value() ? layouts_.find(x.value()) : nullptr)
        layout->lmad.offset().for_each_symbol([&](Value v) { symbols.push_back(v); });
      return symbols;
    };
    for (const Operand& x : factors)
      if (!x.is_value() || layouts_.find(x.value()) == nullptr) return refuse("the factors are computed in the kernel");
    const Type& shape = function_.type(fields_.front());
    for (std::size_t d = 0; d < op_->space.size(); ++d) {
      const Value e = op_->space[d].index;
      for (const bool swapped : {false, true}) {
        std::optional<Value> row, column;
        for (const Value v : symbols_of(factors[swapped ? 1 : 0]))
          if (is_index(v, SoaField::row, Poly(e))) row = v;
        for (const Value v : symbols_of(factors[swapped ? 0 : 1]))
          if (is_index(v, SoaField::column, Poly(e))) column = v;
        if (!row || !column) continue;
        const SparseSchedule before = made_;
        const auto symbols = symbols_;
        made_.dims[d].role = Role::nonzero;
        add_dim(Role::row, shape.shape[1], {*row});
        add_dim(Role::column, shape.shape[2], {*column});
        add_dim(Role::depth, sum_->widths.front(), {sum_->indices.front()});
        const auto x = access(factors[swapped ? 1 : 0]), y = access(factors[swapped ? 0 : 1]);
        if (x && y && varies_along(*x, {Role::row, Role::depth}) && varies_along(*y, {Role::column, Role::depth})) {
          made_.operands = {*x, *y};
          if (const auto values = only_factor(element_type(factors[0]))) made_.operands.push_back(*values);
          if (made_.operands.size() == 2 && !has_epilogue({e, *row, *column})) return false;
          made_.family = Family::sddmm;
          return true;
        }
        made_ = before;
        symbols_ = symbols;
      }
    }
    return refuse("rows of both dense operands do not lie side by side in memory");
  }

  // If the result is the sum times an element of A, or its like, and nothing else: where these are.
  std::optional<SparseSchedule::Operand> only_factor(ScalarType type) const {
    const SumOf made = sum_of(*op_);
    const Binary* scaled = defined_by<Binary>(bare(made.result));
    if (scaled == nullptr || scaled->op != BinaryOp::mul) return std::nullopt;
    const auto is_sum = [&](const Operand& x) { return bare(x) == Operand(made.sum); };
    if (is_sum(scaled->x) == is_sum(scaled->y)) return std::nullopt;
    const Operand a = bare(is_sum(scaled->x) ? scaled->y : scaled->x);
    const auto at = element_type(a) == type ? access(a) : std::nullopt;
    return at && varies_along(*at, {Role::nonzero}) ? at : std::nullopt;
  }

  const Stm& stm_;
  const Function& function_;
  const Layouts& layouts_;
  const SegOp* op_;
  SparseSchedule made_;
  std::string why_;
  std::optional<SparseSoa> soa_;
  std::vector<Value> fields_;                // of the matrix, in their order
  std::vector<std::vector<Value>> symbols_;  // of each dim
  std::map<Value, const Stm*> definitions_;
  std::set<Value> local_, space_;
  const Screma* sum_ = nullptr;
  bool is_straight_ = true;  // no branch or loop before the sum or in it, no other sum
  bool has_loops_ = false, sddmm_ = false;
};

}  // namespace

SparseSchedule sparse_schedule_of(const Stm& kernel, const std::string& matrix, const Function& function,
                                  const Layouts& layouts) {
  return Derivation(kernel, matrix, function, layouts).run();
}

SparseEpilogue sparse_sum(const SegOp& kernel) {
  const SumOf made = sum_of(kernel);
  SparseEpilogue epilogue{made.sum, {}, made.result, kernel.space};
  if (made.map != nullptr) epilogue.space.push_back({made.map->indices.front(), made.map->widths.front()});
  return epilogue;
}

std::variant<SparseEpilogue, std::string> sparse_epilogue(const SegOp& kernel, const std::vector<Value>& given,
                                                          const Function& function) {
  const SumOf made = sum_of(kernel);
  SparseEpilogue epilogue = sparse_sum(kernel);
  if (!made.sum) return epilogue;  // a row of sums is the result
  std::vector<Stm> all = kernel.body->stms;
  if (made.map != nullptr) all.insert(all.end(), made.map->map.body->stms.begin(), made.map->map.body->stms.end());
  std::map<Value, const Stm*> definitions;
  for (const Stm& stm : all)
    for (const Value v : stm.pattern) definitions.emplace(v, &stm);
  if (bare(made.result, definitions, function.values) == Operand(made.sum)) return epilogue;
  std::set<Value> needed;
  const auto need = [&](Value v) {
    if (std::ranges::find(given, v) == given.end()) needed.insert(v);
  };
  if (made.result.is_value()) need(made.result.value());
  for (auto stm = all.rbegin(); stm != all.rend(); ++stm) {
    if (std::ranges::find(stm->pattern, made.sum) != stm->pattern.end() ||
        std::ranges::none_of(stm->pattern, [&](Value v) { return needed.contains(v); }))
      continue;
    if (can_fail(stm->op, function.values)) return "code after the sum can fail";
    if (std::ranges::any_of(stm->pattern, [&](Value v) { return !function.type(v).is_scalar(); }) || get_if<Loop>(*stm))
      return "code after the sum has arrays or loops";
    for (const Value v : free_values(stm->op, function.values)) need(v);
    epilogue.stms.push_back(*stm);
  }
  if (!needed.contains(made.sum)) return "the result does not come from the sum";
  std::reverse(epilogue.stms.begin(), epilogue.stms.end());
  return epilogue;
}

std::optional<std::string> sparse_schedule_fault(const Stm& kernel, const Function& function, const Layouts& layouts) {
  const SegOp* op = get_if<SegOp>(kernel);
  if (op == nullptr || !op->sparse) return std::nullopt;
  const SparseSchedule& said = *op->sparse;
  if (said.family == Family::general) {
    if (said.sections) return "a general one has sections";
    if (said.dims.empty() && said.operands.empty()) return std::nullopt;
    return "a general one has dims or operands";
  }
  if (said.sections) {
    const SparseSchedule::Sections& sections = *said.sections;
    if (said.family == Family::sddmm) return "sections are of SpMM, not of SDDMM";
    if (sections.key.size() != 16 || sections.key.find_first_not_of("0123456789abcdef") != std::string::npos)
      return "a matrix' key has 16 hexadecimal digits";
    if (std::min({sections.rows, sections.columns, sections.pieces}) < 1)
      return "a section has no rows, columns or pieces";
  }
  if (!said.why.empty()) return "one that is not general has a reason why not";
  const SparseSchedule is = sparse_schedule_of(kernel, said.matrix, function, layouts);
  if (is.family == Family::general) return is.why;
  if (is.family != said.family)
    return fmt::format("its family is {}, not {}", to_text(is.family), to_text(said.family));
  if (is.dims.size() != said.dims.size())
    return fmt::format("it has {} dims, not {}", is.dims.size(), said.dims.size());
  for (std::size_t d = 0; d < is.dims.size(); ++d) {
    if (is.dims[d].role != said.dims[d].role)
      return fmt::format("dim {} is of {}, not of {}", d + 1, to_text(is.dims[d].role), to_text(said.dims[d].role));
    if (is.dims[d].size != said.dims[d].size) return fmt::format("dim {} has another size", d + 1);
  }
  if (is.operands.size() != said.operands.size())
    return fmt::format("it has {} operands, not {}", is.operands.size(), said.operands.size());
  for (std::size_t o = 0; o < is.operands.size(); ++o) {
    const SparseSchedule::Operand &one = is.operands[o], &other = said.operands[o];
    if (one.array != other.array) return fmt::format("operand {} is another array", o + 1);
    if (one.offset != other.offset || one.strides != other.strides)
      return fmt::format("operand {} is read at other elements", o + 1);
  }
  return std::nullopt;
}

std::optional<Value> gathered_index(const SegOp& kernel, Value array) {
  for (const Stm& stm : kernel.body->stms) {
    const Convert* convert = get_if<Convert>(stm);
    if (convert == nullptr || !convert->x.is_value()) continue;
    for (const Stm& read : kernel.body->stms) {
      const Index* index = get_if<Index>(read);
      if (index != nullptr && index->array == array && read.pattern.front() == convert->x.value())
        return stm.pattern.front();
    }
  }
  return std::nullopt;
}

}  // namespace apl
