#include "codegen/sparse_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/layouts.h"
#include "ir/sparse_bundle.h"
#include "ir/walk.h"

namespace apl::lower {
namespace {

// The kernel's body and its one sum.
class SparseKernel {
 public:
  SparseKernel(const Stm& stm, const apl::Function& function) : function_(function), stm_(stm) {
    op_ = get_if<SegOp>(stm);
    const bool marked =
        std::ranges::any_of(stm.attributes, [](const Attribute& a) { return a.name == kSparseAttribute; });
    if (!marked || op_ == nullptr || op_->level != SegLevel::thread || stm.pattern.size() != 1) return;
    for (const Stm& inner : op_->body->stms) define(inner);
    if (sum_ == nullptr || sums_ != 1 || sum_->widths.size() != 1 || sum_->reduces.size() != 1 || sum_->scans() ||
        sum_->map.body->results.size() != 1)
      return;
    for (const Stm& inner : sum_->map.body->stms) define(inner);
    const ReduceOp& reduce = sum_->reduces.front();
    const Operand& neutral = reduce.neutral.front();
    fits_ = as_binary_op(reduce.op) == BinaryOp::add && neutral.is_constant() &&
            (neutral.constant() == Scalar::zero(neutral.constant().type()));
  }

  bool fits() const { return fits_; }
  const SegOp& op() const { return *op_; }
  const Screma& sum() const { return *sum_; }
  Value summed() const { return sum_stm_->pattern.front(); }
  Operand term() const { return sum_->map.body->results.front(); }
  Operand result() const { return op_->body->results.front(); }
  const Type& type(Value v) const { return function_.type(v); }

  template <class T>
  const T* defined_by(const Operand& x) const {
    const auto found = x.is_value() ? definitions_.find(x.value()) : definitions_.end();
    return found == definitions_.end() ? nullptr : std::get_if<T>(&found->second->op);
  }
  // Through conversions between floats of the same argument.
  Operand bare(const Operand& x) const {
    const Convert* convert = defined_by<Convert>(x);
    const auto floats = [&](const Operand& y) { return is_float(function_.values.type(y).element); };
    return convert != nullptr && floats(x) && floats(convert->x) ? convert->x : x;
  }
  // Element `at` of a whole one-dimensional array.
  std::optional<Value> element_of(const Operand& x, const Poly& at) const {
    const Index* index = defined_by<Index>(x);
    if (index == nullptr || index->dims.size() != 1 || index->dims[0].is_slice() || !(index->dims[0].start == at))
      return std::nullopt;
    return is_whole(index->array) ? std::optional(index->array) : std::nullopt;
  }
  bool is_whole(Value array) const {
    const Type& t = type(array);
    return t.memory && t.rank() == 1 && t.memory->layout == Lmad::row_major(t.shape);
  }
  // What an index of type i32 was converted from, if x is one.
  std::optional<Operand> narrow(Value x) const {
    const Convert* convert = defined_by<Convert>(Operand(x));
    return convert != nullptr ? std::optional(convert->x) : std::nullopt;
  }

  // The element's position in its block, where x is an element that is read; parameters of the sum, too.
  std::optional<std::pair<Value, Poly>> position(const Operand& x) const {
    if (!x.is_value()) return std::nullopt;
    if (const Index* index = defined_by<Index>(x)) {
      const Type& t = type(index->array);
      if (!t.memory) return std::nullopt;
      return std::pair{t.memory->block, index_layout(t.memory->layout, index->dims).offset()};
    }
    for (std::size_t k = 0; k < sum_->map.params.size(); ++k) {
      if (!(sum_->map.params[k] == x.value())) continue;
      const Type& t = type(sum_->inputs[k]);
      if (!t.memory || t.rank() != 1) return std::nullopt;
      return std::pair{t.memory->block, t.memory->layout.apply({Poly(sum_->indices.front())})};
    }
    return std::nullopt;
  }
  ScalarType element(const Operand& x) const { return function_.values.type(x).element; }

  // position = offset + row * i + j, with nothing else that differs from thread to thread.
  std::optional<DenseRows> rows(const std::pair<Value, Poly>& at, Value i, Value j) const {
    const auto inner = at.second.linear_in(j);
    if (!inner || !inner->coefficient.is_one()) return std::nullopt;
    const auto outer = inner->rest.linear_in(i);
    if (!outer) return std::nullopt;
    bool local = false;
    for (const Poly* part : {&outer->coefficient, &outer->rest})
      part->for_each_symbol([&](Value v) { local = local || local_.contains(v) || v == i || v == j; });
    return local ? std::nullopt : std::optional(DenseRows{at.first, outer->rest, outer->coefficient});
  }

  // The bundle that has the array as that field.
  struct Parameter {
    Poly rows, columns, nonzeros;
  };
  std::optional<Parameter> parameter(Value array, BundleField field) const {
    std::vector<Value> params;
    for (const Value param : function_.params)
      if (!type(param).is_memory()) params.push_back(param);
    for (const Bundle& bundle : find_bundles(function_)) {
      const auto at = std::ranges::find(bundle.fields, field) - bundle.fields.begin();
      if (at == std::ssize(bundle.fields) || !(params[bundle.first + static_cast<std::size_t>(at)] == array)) continue;
      const Type& shape = type(params[bundle.first]);
      return Parameter{shape.shape[1], shape.shape[2], type(params[bundle.first + 1]).shape[0]};
    }
    return std::nullopt;
  }

 private:
  void define(const Stm& inner) {
    for (const Value v : inner.pattern) {
      definitions_.emplace(v, &inner);
      local_.insert(v);
    }
    if (const Screma* screma = get_if<Screma>(inner)) {
      sum_ = screma;
      sum_stm_ = &inner;
      ++sums_;
      local_.insert(screma->indices.begin(), screma->indices.end());
    }
    if (get_if<Loop>(inner) || get_if<If>(inner)) ++sums_;
  }

  const apl::Function& function_;
  const Stm& stm_;
  const SegOp* op_ = nullptr;
  const Screma* sum_ = nullptr;
  const Stm* sum_stm_ = nullptr;
  int sums_ = 0;
  bool fits_ = false;
  std::map<Value, const Stm*> definitions_;
  std::set<Value> local_;
};

const char* c_enum_of(ScalarType type) {
  return type == ScalarType::f16 ? "APL_F16" : type == ScalarType::f32 ? "APL_F32" : "APL_F64";
}

bool has_kernels(ScalarType type, ScalarType sum) {
  return type == sum ? type == ScalarType::f16 || type == ScalarType::f32 || type == ScalarType::f64
                     : type == ScalarType::f16 && sum == ScalarType::f32;
}

}  // namespace

std::optional<SparseProduct> find_sparse_product(const Stm& stm, const apl::Function& function) {
  const SparseKernel kernel(stm, function);
  if (!kernel.fits() || kernel.op().space.size() != 2) return std::nullopt;
  const Value i = kernel.op().space[0].index, j = kernel.op().space[1].index;
  // C is the sum, perhaps rounded.
  if (!(kernel.bare(kernel.result()) == Operand(kernel.summed()))) return std::nullopt;
  const Binary* times = kernel.defined_by<Binary>(kernel.term());
  if (times == nullptr || times->op != BinaryOp::mul) return std::nullopt;
  const Operand a = kernel.bare(times->x), b = kernel.bare(times->y);

  SparseProduct product;
  product.type = kernel.element(a);
  if (kernel.element(b) != product.type || kernel.element(kernel.result()) != product.type ||
      !has_kernels(product.type, kernel.element(Operand(kernel.summed()))))
    return std::nullopt;
  // values[first + p], where the sum goes from row_start[i] to row_start[i + 1].
  const Index* value = kernel.defined_by<Index>(a);
  if (value == nullptr || value->dims.size() != 1 || value->dims[0].is_slice()) return std::nullopt;
  const Poly at = value->dims[0].start;
  const Poly first = at - Poly(kernel.sum().indices.front());
  if (!first.symbol() || !kernel.is_whole(value->array)) return std::nullopt;
  product.values = value->array;
  const auto starts = kernel.element_of(Operand(*first.symbol()), Poly(i));
  Poly width = kernel.sum().widths.front();
  if (const SizeExpr* size = width.symbol() ? kernel.defined_by<SizeExpr>(Operand(*width.symbol())) : nullptr)
    width = size->value;
  const Poly last = width + first;
  if (!starts || !last.symbol() || kernel.element_of(Operand(*last.symbol()), Poly(i) + 1) != starts)
    return std::nullopt;
  product.row_start = *starts;
  // B[column[first + p]][j]
  const auto b_at = kernel.position(b);
  if (!b_at) return std::nullopt;
  std::optional<Value> k;
  b_at->second.for_each_symbol([&](Value v) {
    const auto column = kernel.narrow(v);
    const auto array = column ? kernel.element_of(*column, at) : std::nullopt;
    if (!array) return;
    k = v;
    product.column = *array;
  });
  const Type& result = kernel.type(stm.pattern.front());
  if (!k || !result.memory) return std::nullopt;
  const auto b_rows = kernel.rows(*b_at, *k, j);
  const auto c_rows = kernel.rows({result.memory->block, result.memory->layout.apply({Poly(i), Poly(j)})}, i, j);
  const auto parameter = kernel.parameter(product.column, BundleField::column);
  if (!b_rows || !c_rows || !parameter || !kernel.parameter(product.row_start, BundleField::row_start))
    return std::nullopt;
  product.rows = parameter->rows;
  product.columns = parameter->columns;
  product.nonzeros = parameter->nonzeros;
  product.width = kernel.op().space[1].bound;
  product.b = *b_rows;
  product.c = *c_rows;
  return product;
}

std::optional<SparseSampling> find_sparse_sampling(const Stm& stm, const apl::Function& function) {
  const SparseKernel kernel(stm, function);
  if (!kernel.fits() || kernel.op().space.size() != 1) return std::nullopt;
  const Value e = kernel.op().space[0].index;
  const Binary* scaled = kernel.defined_by<Binary>(kernel.bare(kernel.result()));
  const Binary* times = kernel.defined_by<Binary>(kernel.term());
  if (scaled == nullptr || scaled->op != BinaryOp::mul || times == nullptr || times->op != BinaryOp::mul)
    return std::nullopt;
  const bool sum_first = kernel.bare(scaled->x) == Operand(kernel.summed());
  const Operand a = kernel.bare(sum_first ? scaled->y : scaled->x);
  if (!(kernel.bare(sum_first ? scaled->x : scaled->y) == Operand(kernel.summed()))) return std::nullopt;
  const Operand x = kernel.bare(times->x), y = kernel.bare(times->y);

  SparseSampling sampling;
  sampling.type = kernel.element(a);
  for (const Operand& operand : {x, y, kernel.result()})
    if (kernel.element(operand) != sampling.type) return std::nullopt;
  if (!has_kernels(sampling.type, kernel.element(Operand(kernel.summed())))) return std::nullopt;
  const auto values = kernel.element_of(a, Poly(e));
  const auto x_at = kernel.position(x), y_at = kernel.position(y);
  const Type& result = kernel.type(stm.pattern.front());
  if (!values || !x_at || !y_at || !result.memory || result.rank() != 1 ||
      !(result.memory->layout == Lmad::row_major(result.shape)))
    return std::nullopt;
  sampling.values = *values;
  sampling.result = stm.pattern.front();
  // X[row[e]][k] and Y[column[e]][k], in either order.
  const Value k = kernel.sum().indices.front();
  const auto rows_by = [&](const std::pair<Value, Poly>& at, BundleField field, Value& array) {
    std::optional<DenseRows> rows;
    at.second.for_each_symbol([&](Value v) {
      const auto index = kernel.narrow(v);
      const auto from = index ? kernel.element_of(*index, Poly(e)) : std::nullopt;
      if (!from || !kernel.parameter(*from, field)) return;
      array = *from;
      rows = kernel.rows(at, v, k);
    });
    return rows;
  };
  auto x_rows = rows_by(*x_at, BundleField::row, sampling.row);
  auto y_rows = rows_by(*y_at, BundleField::column, sampling.column);
  if (!x_rows || !y_rows) {
    x_rows = rows_by(*y_at, BundleField::row, sampling.row);
    y_rows = rows_by(*x_at, BundleField::column, sampling.column);
  }
  if (!x_rows || !y_rows) return std::nullopt;
  const auto parameter = kernel.parameter(sampling.column, BundleField::column);
  sampling.rows = parameter->rows;
  sampling.columns = parameter->columns;
  sampling.nonzeros = parameter->nonzeros;
  sampling.depth = kernel.sum().widths.front();
  sampling.x = *x_rows;
  sampling.y = *y_rows;
  return sampling;
}

std::string write_sparse_call(const Stm& stm, Unit& unit, Values& values,
                              const std::function<std::string(Value)>& block, Writer& out) {
  if (unit.target == Target::c) return {};
  const ValueTable& table = unit.function.values;
  const auto text = [&](const Poly& p) { return kernel::print(values.poly(p), kernel::Dialect::c); };
  const auto array = [&](Value v) { return block(table.type(v).memory->block); };
  const auto rows = [&](const std::string& name, const DenseRows& dense, ScalarType type) {
    return fmt::format(".{0} = (char *){1} + ({2}) * {3}, .{0}_row = {4}", name, block(dense.block), text(dense.offset),
                       byte_size(type), text(dense.row));
  };
  std::string call, fields;
  if (const auto product = find_sparse_product(stm, unit.function)) {
    call = "product";
    fields = fmt::format(
        ".type = {}, .rows = {}, .columns = {}, .nonzeros = {}, .width = {}, .row_start = {}, .column = {}, "
        ".values = {}, {}, {}",
        c_enum_of(product->type), text(product->rows), text(product->columns), text(product->nonzeros),
        text(product->width), array(product->row_start), array(product->column), array(product->values),
        rows("b", product->b, product->type), rows("c", product->c, product->type));
  } else if (const auto sampling = find_sparse_sampling(stm, unit.function)) {
    call = "sampling";
    fields = fmt::format(
        ".type = {}, .rows = {}, .columns = {}, .nonzeros = {}, .depth = {}, .row = {}, .column = {}, .values = {}, "
        "{}, {}, .result = {}",
        c_enum_of(sampling->type), text(sampling->rows), text(sampling->columns), text(sampling->nonzeros),
        text(sampling->depth), array(sampling->row), array(sampling->column), array(sampling->values),
        rows("x", sampling->x, sampling->type), rows("y", sampling->y, sampling->type), array(sampling->result));
  } else {
    return {};
  }
  const std::string made = unit.fresh(table.name(stm.pattern.front()) + "_made"), asked = unit.fresh(call);
  out.line("");
  out.line("int32_t {} = 0;", made);
  out.open("if (ctx->backend->sparse_{}) {{", call);
  out.line("const struct apl_sparse_{} {} = {{{}}};", call, asked, fields);
  out.line("status = ctx->backend->sparse_{}(ctx, &{}, &{});", call, asked, made);
  out.line("if (status != APL_SUCCESS) goto done;");
  out.close("}}");
  return made;
}

}  // namespace apl::lower
