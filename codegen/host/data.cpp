// Host code: what it says to the backend about memory, and its own checks.
#include "codegen/host/host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "codegen/kernel/c_string.h"
#include "ir/layouts.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;

// ---- what a backend does; a derived class may say it in another way ----

void Host::check_status() { out_.line("if (status != APL_SUCCESS) goto done;"); }
std::string Host::upload_call(const std::string& to, const std::string& from, const std::string& bytes) {
  return fmt::format("ctx->backend->upload(ctx, {}, {}, {})", to, from, bytes);
}
std::string Host::download_call(const std::string& to, const std::string& from, const std::string& bytes) {
  return fmt::format("ctx->backend->download(ctx, {}, {}, {})", to, from, bytes);
}
std::string Host::copy_call(const std::string& to, const std::string& from, const std::string& bytes) {
  return fmt::format("ctx->backend->copy(ctx, {}, {}, {})", to, from, bytes);
}
std::string Host::synchronise_call() { return "ctx->backend->synchronise(ctx)"; }

// A check that failed in a kernel ends the entry before the host acts on what is missing. After the copy nothing is
// left to wait for.
void Host::download_scalar(const std::string& to, const std::string& from, const std::string& bytes) {
  run_call(download_call(to, from, bytes));
  run_call(synchronise_call());
}

void Host::run_call(const std::string& call) {
  out_.line("status = {};", call);
  check_status();
}

// The bytes, where they are known now.
std::optional<std::int64_t> Host::fixed_bytes(const Extent& extent) const {
  if (!extent.rows.empty()) return std::nullopt;
  std::int64_t bytes = extent.width;
  for (const Poly& size : extent.shape) {
    const auto number = size.constant();
    if (!number || *number < 0 || __builtin_mul_overflow(bytes, *number, &bytes)) return std::nullopt;
  }
  return bytes;
}

std::string Host::sizes_text(const Extent& extent) {
  std::vector<std::string> sizes;
  if (!extent.rows.empty()) sizes.push_back(extent.rows);
  for (const Poly& size : extent.shape) sizes.push_back(text(size));
  return fmt::format("{}", fmt::join(sizes, ", "));
}

std::string Host::extent_text(const Extent& extent) {
  return fmt::format("{}({}, {}, {}, {}, {})", extent.kernel_checks ? "APL_CHECKED_EXTENT" : "APL_EXTENT", extent.width,
                     extent.location.line, extent.location.column, unit_.call(extent.location), sizes_text(extent));
}

void Host::allocate(Value block, const Extent& extent) {
  const std::string name = unit_.name(block), what = c_string(table_.name(block));
  const auto bytes = fixed_bytes(extent);
  if (unit_.target.on_device() && bytes && *bytes <= APL_CELL_BYTES && use_.is_written_for_host(block)) {
    run_call(fmt::format("apl_allocate_cell(ctx, {}, {}, &{})", *bytes, what, name));
  } else if (has_capacities_) {
    run_call(bytes
                 ? fmt::format("apl_reserve_bytes(ctx, {}, {}, &{}, &{})", *bytes, what, name, capacity(block))
                 : fmt::format("apl_reserve(ctx, {}, {}, &{}, &{})", extent_text(extent), what, name, capacity(block)));
  } else {
    run_call(bytes ? fmt::format("ctx->backend->allocate(ctx, {}, {}, &{})", *bytes, what, name)
                   : fmt::format("apl_allocate(ctx, {}, {}, &{})", extent_text(extent), what, name));
  }
}

const std::string& Host::capacity(Value block) {
  std::string& name = capacities_[block];
  if (name.empty()) name = unit_.fresh(unit_.name(block) + "_capacity");
  return name;
}

std::string Host::reserve_threads(const std::string& hint, const Extent& extent, bool may_lack) {
  const std::string name = unit_.fresh(hint + "_of_threads", {"_capacity"});
  scratch_.push_back(name);
  run_call(fmt::format("apl_reserve_threads(ctx, {}, {}, {}, &{}, &{}_capacity)", may_lack, extent_text(extent),
                       c_string(hint), name, name));
  return name;
}

std::string Host::reserve_zeros(const std::string& bytes) {
  const std::string name = unit_.fresh("zeros");
  out_.line("void *{} = NULL;", name);
  run_call(fmt::format("ctx->backend->zeros(ctx, {}, &{})", bytes, name));
  return name;
}

// Memory for a kernel that says how much it takes.
std::string Host::reserve_packed(const std::string& kernel, const std::vector<std::string>& arguments) {
  const std::string name = unit_.fresh("packed", {"_capacity"});
  scratch_.push_back(name);
  std::string list;
  for (const std::string& argument : arguments) list += argument + ", ";
  run_call(fmt::format("apl_reserve_bytes(ctx, {}({}NULL), \"packed operands\", &{}, &{}_capacity)", kernel, list, name,
                       name));
  return name;
}

void Host::check_extent(const Extent& extent) {
  out_.open("{{");
  out_.line("int64_t bytes = 0;");
  run_call(fmt::format("apl_bytes_of(ctx, {}, &bytes)", extent_text(extent)));
  out_.close("}}");
}

// Where arrays of the host lie, and which statements make them.
void Host::find_arrays(const Body& body) {
  for (const Stm& stm : body.stms) {
    // Rows that a kernel makes may be of a size that it checks.
    const SegOp* kernel = get_if<SegOp>(stm);
    const bool checks = kernel && can_fail(*kernel->body, table_);
    const auto note = [&](Value v) {
      const Type& type = table_.type(v);
      if (type.memory)
        arrays_[type.memory->block].push_back(
            {byte_size(type.element), type.shape, stm.location, checks && type.rank() > kernel->space.size()});
    };
    for (Value v : stm.pattern) note(v);
    if (!get_if<Loop>(stm) && !is_branch(stm.op)) continue;
    for_each_binder(stm.op, note);
    for_each_body(stm.op, [&](const BodyPtr& inner) { find_arrays(*inner); });
  }
}

// The array that the block was made for is the first that fills it.
Host::Extent Host::extent_of(Value block, const Alloc& alloc) {
  Extent result{1, {alloc.bytes}, {}};
  if (const auto found = arrays_.find(block); found != arrays_.end())
    for (const Extent& array : std::views::reverse(found->second))
      if (product(array.shape) * Poly(array.width) == alloc.bytes) result = array;
  result.kernel_checks ? void(kernel_checked_.insert(result.shape)) : know_products(result.shape);
  return result;
}

// Of neighbouring sizes of an array that is there, in so far as they are no products themselves.
void Host::know_products(const std::vector<Poly>& shape) {
  for (std::size_t first = 0; first < shape.size(); ++first) {
    Poly product = 1;
    for (std::size_t k = first; k < shape.size(); ++k) {
      if (std::ranges::any_of(shape[k].terms(), [](const Term& term) { return term.factors.size() > 1; })) break;
      product *= shape[k];
      if (k > first) products_.insert(product);
    }
  }
}

// A block may serve for an array of another shape, and a space is larger than results without elements.
void Host::check_results(const Stm& stm, const SegOp& op) {
  const bool checks = get_if<SegOp>(stm) && can_fail(*op.body, table_);
  const auto check = [&](const Extent& extent) {
    if (extent.shape.size() < 2 || fixed_bytes(extent) || products_.contains(product(extent.shape)) ||
        (extent.kernel_checks && kernel_checked_.contains(extent.shape)))
      return;
    check_extent(extent);
    if (!extent.kernel_checks) know_products(extent.shape);
  };
  for (Value v : stm.pattern)
    if (const Type& type = table_.type(v); type.memory && !get_if<Scatter>(stm))
      check({byte_size(type.element), type.shape, stm.location, checks && type.rank() > op.space.size()});
  // Those of blocks are parts of results.
  if (op.level == SegLevel::block) return;
  Extent space{1, {}, stm.location};
  for (const SegDim& dim : op.space) space.shape.push_back(dim.bound);
  check(space);
}

// Nobody reads it any more. The next call gets it anew.
void Host::release(const std::string& block) {
  out_.line("if ({0}) ctx->backend->release(ctx, {0});", block);
  out_.line("{} = NULL;", block);
}

void Host::refuse_if(const ExprPtr& condition, apl_failure_code code, Location location, const std::string& message,
                     const std::vector<ExprPtr>& numbers) {
  out_.open("if ({}) {{", text(condition));
  std::string arguments;
  for (const ExprPtr& x : numbers) arguments += ", (long long)(" + text(x) + ")";
  out_.line("snprintf(ctx->error, sizeof ctx->error, {}{});", c_string(message), arguments);
  out_.line("ctx->error_code = {};", static_cast<int>(code));
  out_.line("ctx->error_line = {};", location.line);
  out_.line("ctx->error_column = {};", location.column);
  out_.line("ctx->error_call = {};", unit_.call(location));
  out_.line("status = APL_PROGRAM_ERROR;");
  out_.line("goto done;");
  out_.close("}}");
}

// ---- the rest is the same for all ----

// An array of scalars that the host knows.
void Host::upload(const ArrayLit& op, Value array) {
  const std::string type = c_type({op.element.element, false});
  if (op.elements.empty() || op.element.element == ScalarType::unit) return;
  std::vector<std::string> elements;
  for (const Operand& x : op.elements) elements.push_back(text(values_.operand(x)));
  out_.open("{{");
  out_.line("const {} elements[] = {{{}}};", type, fmt::join(elements, ", "));
  run_call(upload_call(block(table_.type(array).memory->block), "elements", "sizeof elements"));
  out_.close("}}");
}

void Host::upload(const Update& op, const Stm& stm) {
  const Type& type = table_.type(op.array);
  if (op.checked) check_dims(op.array, op.dims, stm.location);
  if (type.element == ScalarType::unit) return;
  const std::string name = c_type({type.element, false});
  const Lmad here = index_layout(type.memory->layout, op.dims);
  out_.open("{{");
  out_.line("const {} element = {};", name, text(values_.operand(op.value)));
  run_call(upload_call(fmt::format("({} *){} + ({})", name, block(type.memory->block), text(here.offset())), "&element",
                       "sizeof element"));
  out_.close("}}");
}

void Host::download(const Index& op, const Stm& stm) {
  const Type& source = table_.type(op.array);
  Lmad here = index_layout(source.memory->layout, op.dims);
  Value v = stm.pattern.front();
  if (!is_variable(v)) return;
  std::string type = c_type({table_.type(v).element, false});
  out_.line("{} {};", type, unit_.name(v));
  download_scalar("&" + unit_.name(v),
                  fmt::format("(const {} *){} + ({})", type, block(source.memory->block), text(here.offset())),
                  "sizeof " + unit_.name(v));
}

// A block as the host has it: an allocation, or the data of a parameter.
std::string Host::block(Value b) {
  for (std::size_t k = 0; k < unit_.function.params.size(); ++k) {
    const Type& type = table_.type(unit_.function.params[k]);
    if (type.memory && type.memory->block == b)
      return input(k + (is_entry() ? 0 : unit_.function.sizes.size())) + ".data";
  }
  return unit_.name(b);
}

void Host::check_dims(Value array, const std::vector<DimIndex>& dims, Location location) {
  for (const BoundsCheck& bound : bounds_checks(values_, table_.type(array), dims))
    refuse_if(bound.outside, APL_INDEX, location, bound.message, bound.numbers);
}

}  // namespace apl::lower
