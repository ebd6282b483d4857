// Arrays that a thread makes for itself: where they lie, and the operations that fill them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/lower/lower.h"
#include "codegen/lower/register_loops.h"
#include "ir/layouts.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

// Up to this many elements an array of known size is a local variable.
constexpr std::int64_t kLocalElements = 1024;

}  // namespace

// A thread's own block, called after its array; a capacity may go with it.
auto Kernel::thread_buffer(Value block) -> Buffer {
  Buffer made;
  made.name = unit_.fresh(block_name(unit_.function.values, block), {"_capacity"});
  made.element = elements_.at(block);
  made.kind = BufferKind::thread;
  return made;
}

// A block of known size is a local array. Otherwise it is memory of the heap that grows as needed; on a GPU, where a
// heap for every thread is slow, all threads' copies lie interleaved in one allocation of the host, if it can know
// their size.
void Kernel::thread_block(const Stm& stm, const Alloc& alloc, KernelBlock& out) {
  const Value block = stm.pattern.front();
  Buffer made = thread_buffer(block);
  const auto width = static_cast<std::int64_t>(std::max<std::size_t>(1, byte_size(made.element)));
  const Poly elements = floor_div(alloc.bytes, Poly(width));
  const CType type{made.element, false};
  if (const auto count = unit_.fold(elements); count && *count <= kLocalElements) {
    made.count = std::max<std::int64_t>(1, *count);
    out.push_back(declare_array(type, made.name, made.count));
    buffers_[block] = std::move(made);
    return;
  }
  bool known_outside = unit_.target.on_device();
  elements.for_each_symbol([&](Value v) { known_outside = known_outside && outside_.count(v) != 0; });
  const auto [shape, location] = array_in(block, alloc.bytes, width);
  if (known_outside) {
    made.interleaved = true;
    scratch_.push_back({made.name, made.element, shape, !certain_.contains(block)});
    function_.params.push_back({made.name, type, BufferKind::global_out});
    if (!certain_.contains(block)) {
      KernelBlock failed;
      Stm here;
      here.location = location;
      fail(APL_NO_CAPACITY, here, fmt::format("out of memory for `{}`", made.name), {}, failed);
      out.push_back(kernel::branch(call("apl_lacks", {variable(made.name)}), std::move(failed)));
    }
    buffers_[block] = std::move(made);
    return;
  }
  open_slot(made);
  buffers_[block] = made;
  grow(made, shape, location, out);
}

// The array that the block was made for is the first that fills it.
Kernel::Bound Kernel::array_in(Value block, const Poly& bytes, std::int64_t width) const {
  if (const auto found = arrays_.find(block); found != arrays_.end())
    for (const Bound& array : found->second)
      if (product(array.shape) * Poly(width) == bytes) return array;
  return {{floor_div(bytes, Poly(width))}, {}};
}

void Kernel::open_slot(const Buffer& buffer) {
  Stmt slot;
  slot.kind = Stmt::Kind::heap;
  slot.name = buffer.name;
  slot.type = {buffer.element, false};
  heap_.push_back(slot);
}

void Kernel::grow(const Buffer& buffer, const std::vector<Poly>& shape, Location location, KernelBlock& out) {
  Stm here;
  here.location = location;
  Stmt grow;
  grow.kind = Stmt::Kind::grow;
  grow.name = buffer.name;
  grow.type = {buffer.element, false};
  std::string sizes;
  std::vector<ExprPtr> numbers;
  for (const Poly& size : shape) {
    numbers.push_back(values_.poly(size));
    sizes += "[%lld]";
    grow.value = grow.value ? call("apl_size_product", {grow.value, numbers.back()}) : numbers.back();
  }
  if (!grow.value) grow.value = literal(std::int64_t{1});
  if (shape.size() > 1 && shape.size() <= kMaxFailureNumbers) {
    KernelBlock failed;
    fail(APL_NO_CAPACITY, here, fmt::format("an array of shape {} has too many elements.", sizes), numbers, failed);
    out.push_back(kernel::branch(infix("<", variable("APL_MOST_ELEMENTS"), grow.value), std::move(failed)));
  }
  fail(APL_NO_CAPACITY, here, fmt::format("out of memory for `{}`", buffer.name), {}, grow.body);
  out.push_back(std::move(grow));
}

// The block of an array whose size a loop or branch decides: memory of the heap that grows when an array is yielded.
void Kernel::growing_block(Value block) {
  Buffer made = thread_buffer(block);
  open_slot(made);
  growing_.insert(block);
  buffers_[block] = std::move(made);
}

// `fill` for every index of a shape, in nested loops.
void Kernel::for_elements(const std::vector<Poly>& shape, KernelBlock& out,
                          const std::function<void(const std::vector<ExprPtr>&, KernelBlock&)>& fill) {
  std::vector<std::int64_t> counts;
  for (const Poly& size : shape)
    if (const auto count = unit_.fold(size)) counts.push_back(*count);
  // Numbers known now: the loops disappear, and the array may lie in registers.
  if (counts.size() == shape.size())
    return for_registers(counts, std::vector<std::string>(counts.size(), "r"), out, fill);
  std::vector<std::string> names;
  std::vector<ExprPtr> at;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    names.push_back(unit_.fresh("i"));
    at.push_back(variable(names.back()));
  }
  KernelBlock inner;
  fill(at, inner);
  for (std::size_t k = shape.size(); k-- > 0;) {
    KernelBlock around;
    around.push_back(for_loop(kIndex, names[k], values_.poly(shape[k]), std::move(inner)));
    inner = std::move(around);
  }
  out.insert(out.end(), inner.begin(), inner.end());
}

void Kernel::copy_elements(Value target, Value source, Location location, KernelBlock& out) {
  const Type& type = unit_.function.type(source);
  if (type.element == ScalarType::unit) return;
  for_elements(type.shape, out, [&](const std::vector<ExprPtr>& at, KernelBlock& inner) {
    inner.push_back(assign(element_of(target, at, location), element_of(source, at, location)));
  });
}

// What a loop, branch or operator yields goes to where the receiving value lies, unless it lies there.
void Kernel::yield_value(const Operand& from, Value target, Location location, KernelBlock& out) {
  const ValueTable& table = unit_.function.values;
  if (!table.type(target).is_array()) return;
  const Type& source = table.type(from.value());
  const MemoryBinding& to = *table.type(target).memory;
  if (*source.memory == to) return;
  if (!growing_.contains(to.block)) return copy_elements(target, from.value(), location, out);
  // The target's sizes are on their way, too: it is dense in the sizes of the source.
  grow(buffer(to.block, location), source.shape, location, out);
  if (source.element == ScalarType::unit) return;
  const Lmad dense = Lmad::row_major(source.shape);
  for_elements(source.shape, out, [&](const std::vector<ExprPtr>& at, KernelBlock& inner) {
    inner.push_back(
        assign(element_flat(to.block, layout_position(dense, at), location), element_of(from.value(), at, location)));
  });
}

bool Kernel::array_operation(const Stm& stm, KernelBlock& out) {
  const ValueTable& table = unit_.function.values;
  const Value first = stm.pattern.front();
  const Type& type = table.type(first);
  if (const Copy* copy = get_if<Copy>(stm)) {
    copy_elements(first, copy->array, stm.location, out);
  } else if (const Manifest* manifest = get_if<Manifest>(stm)) {
    for_elements(type.shape, out, [&](const std::vector<ExprPtr>& at, KernelBlock& inner) {
      std::vector<ExprPtr> source(at.size());
      for (std::size_t k = 0; k < at.size(); ++k) source[static_cast<std::size_t>(manifest->permutation[k])] = at[k];
      inner.push_back(assign(element_of(first, at, stm.location), element_of(manifest->array, source, stm.location)));
    });
  } else if (const Iota* iota = get_if<Iota>(stm)) {
    for_elements(type.shape, out, [&](const std::vector<ExprPtr>& at, KernelBlock& inner) {
      ExprPtr x = at[0];
      if (iota->element != ScalarType::i64) x = values_.convert(Convert{iota->element, {}}, ScalarType::i64, x);
      x = values_.binary(BinaryOp::mul, iota->element, values_.operand(iota->stride), x);
      x = values_.binary(BinaryOp::add, iota->element, values_.operand(iota->start), x);
      inner.push_back(assign(element_of(first, at, stm.location), x));
    });
  } else if (const Replicate* replicate = get_if<Replicate>(stm)) {
    if (type.element == ScalarType::unit) return true;
    const std::size_t outer = replicate->shape.size();
    for_elements(type.shape, out, [&](const std::vector<ExprPtr>& at, KernelBlock& inner) {
      const std::vector<ExprPtr> row(at.begin() + static_cast<std::ptrdiff_t>(outer), at.end());
      inner.push_back(assign(
          element_of(first, at, stm.location),
          row.empty() ? values_.operand(replicate->value) : element_of(replicate->value.value(), row, stm.location)));
    });
  } else if (const ArrayLit* literal = get_if<ArrayLit>(stm)) {
    for (std::size_t k = 0; k < literal->elements.size(); ++k)
      store(first, {kernel::literal(static_cast<std::int64_t>(k))}, literal->elements[k], stm.location, out);
  } else if (const Update* update = get_if<Update>(stm)) {
    if (update->checked) check_dims(update->array, update->dims, stm, out);
    if (table.type(update->value).element == ScalarType::unit) return true;
    const MemoryBinding& where = *table.type(update->array).memory;
    const Lmad part = index_layout(where.layout, update->dims);
    const bool row = update->value.is_value() && table.type(update->value.value()).is_array();
    const auto made = row ? table.type(update->value.value()).memory : nullptr;
    if (made && made->block == where.block && made->layout == part) return true;  // built in place
    for_elements(row ? table.type(update->value.value()).shape : std::vector<Poly>{}, out,
                 [&](const std::vector<ExprPtr>& at, KernelBlock& inner) {
                   inner.push_back(assign(
                       element_flat(where.block, layout_position(part, at), stm.location),
                       row ? element_of(update->value.value(), at, stm.location) : values_.operand(update->value)));
                 });
  } else {
    return false;
  }
  return true;
}

void Kernel::check_dims(Value array, const std::vector<DimIndex>& dims, const Stm& stm, KernelBlock& out) {
  for (const BoundsCheck& check : bounds_checks(values_, unit_.function.type(array), dims)) {
    KernelBlock failed;
    fail(1, stm, check.message, check.numbers, failed);
    out.push_back(kernel::branch(check.outside, std::move(failed)));
  }
}

// One check of all dims, which says what the interpreter says: the whole index, and the whole shape.
std::vector<BoundsCheck> bounds_checks(Values& values, const Type& type, const std::vector<DimIndex>& dims) {
  if (dims.empty()) return {};
  const ExprPtr zero = literal(std::int64_t{0});
  const auto outside = [&](const ExprPtr& i, const ExprPtr& end) {
    return infix("||", infix("<", i, zero), infix("<=", end, i));
  };
  BoundsCheck check;
  std::string index, shape;
  std::vector<ExprPtr> sizes;
  for (std::size_t k = 0; k < dims.size(); ++k) {
    const ExprPtr size = values.poly(type.shape[k]), start = values.poly(dims[k].start);
    ExprPtr bad = outside(start, size);
    index += k == 0 ? "%lld" : ", %lld";
    check.numbers.push_back(start);
    if (dims[k].is_slice()) {
      const ExprPtr count = values.poly(*dims[k].count);
      const ExprPtr last = values.poly(dims[k].start + (*dims[k].count - 1) * dims[k].stride);
      // An empty slice may start anywhere.
      bad = infix("||", infix("<", count, zero),
                  infix("&&", infix("<", zero, count), infix("||", bad, outside(last, size))));
      index += ":%lld";
      check.numbers.push_back(values.poly(dims[k].start + *dims[k].count * dims[k].stride));
      if (dims[k].stride.constant() != 1) {
        index += ":%lld";
        check.numbers.push_back(values.poly(dims[k].stride));
      }
    }
    check.outside = k == 0 ? bad : infix("||", check.outside, bad);
  }
  for (const Poly& size : type.shape) {
    shape += "[%lld]";
    check.numbers.push_back(values.poly(size));
  }
  if (check.numbers.size() > kMaxFailureNumbers) {
    check.numbers.clear();
    index = "...";
    shape = fmt::format("{} dims", type.rank());
  }
  check.message = fmt::format("Index [{}] out of bounds for array of shape {}.", index, shape);
  return {check};
}

}  // namespace apl::lower
