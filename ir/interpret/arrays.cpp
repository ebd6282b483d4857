// Making arrays, and views of arrays.
#include <fmt/format.h>

#include "ir/interpret/machine.h"

namespace apl::interpreter {

void Machine::exec(const Stm& stm, const Iota& op) {
  sizes({op.count}, "iota");
  Array to = destination(stm.pattern.front());
  const Scalar start = scalar(op.start);
  const Scalar stride = scalar(op.stride);
  for (std::int64_t i = 0; i < to.dims[0].size; ++i) {
    auto step = evaluate(BinaryOp::mul, convert(Scalar::integer(ScalarType::i64, i), op.element), stride);
    auto value = step ? evaluate(BinaryOp::add, start, *step) : std::nullopt;
    if (!value) fail(Code::bug_internal, fmt::format("an iota of {}.", to_text(op.element)));
    memory_.store(to, to.offset + i * to.dims[0].stride, *value);
  }
  count_written(to.count());
  assign(stm.pattern.front(), std::move(to));
}

void Machine::exec(const Stm& stm, const Replicate& op) {
  const std::vector<std::int64_t> outer = sizes(op.shape, "replicate");
  if (op.value.is_value() && !is_scalar(op.value.value())) readable(op.value.value());
  Array to = destination(stm.pattern.front());
  if (op.value.is_constant() || is_scalar(op.value.value())) {
    memory_.fill(to, scalar(op.value));
    count_written(to.count());
  } else {
    std::vector<std::int64_t> at;
    const std::int64_t count = count_of(outer);
    for (std::int64_t flat = 0; flat < count; ++flat) {
      unflatten(flat, outer, at);
      std::int64_t position = to.offset;
      for (std::size_t k = 0; k < at.size(); ++k) position += at[k] * to.dims[k].stride;
      write_row(to, outer.size(), position, op.value);
    }
  }
  assign(stm.pattern.front(), std::move(to));
}

void Machine::exec(const Stm& stm, const Scratch& op) {
  sizes(op.shape, "an array");
  assign(stm.pattern.front(), destination(stm.pattern.front(), Fill::undefined));
}

void Machine::exec(const Stm& stm, const Copy& op) {
  readable(op.array);
  Array from = take(op.array);
  // The last reader of the only owner may keep it. That is not for the program to rely on, so it costs the same.
  if (!type(stm.pattern.front()).memory && from.storage.use_count() == 1) {
    count_copied(from);
    return alias(stm.pattern.front(), std::move(from));
  }
  Array to = destination(stm.pattern.front());
  copy_into(from, to);
  assign(stm.pattern.front(), std::move(to));
}

namespace {

Array permuted(const Array& array, const std::vector<int>& permutation) {
  Array result = array;
  for (std::size_t k = 0; k < permutation.size(); ++k)
    result.dims[k] = array.dims[static_cast<std::size_t>(permutation[k])];
  return result;
}

}  // namespace

void Machine::exec(const Stm& stm, const Rearrange& op) {
  readable(op.array);
  alias(stm.pattern.front(), permuted(take(op.array), op.permutation));
}

void Machine::exec(const Stm& stm, const Manifest& op) {
  Array from = permuted(readable(op.array), op.permutation);
  Array to = destination(stm.pattern.front());
  copy_into(from, to);
  assign(stm.pattern.front(), std::move(to));
}

void Machine::exec(const Stm& stm, const Reshape& op) {
  readable(op.array);
  const std::vector<std::int64_t> shape = sizes(op.shape, "an array");
  Array array = take(op.array);
  if (count_of(shape) != array.count())
    fail(Code::run_shape_mismatch, fmt::format("`{}` of shape {} cannot be reshaped to {}.", name(op.array),
                                               shape_text(shape_of(array)), shape_text(shape)));
  const bool in_block = static_cast<bool>(type(stm.pattern.front()).memory);
  if (!in_block && !array.row_major()) {
    count_copied(array);
    array = memory_.compact(array);
  }
  array.dims = row_major_dims(shape);
  alias(stm.pattern.front(), std::move(array));
}

void Machine::exec(const Stm& stm, const ArrayLit& op) {
  Array to = destination(stm.pattern.front());
  for (std::size_t k = 0; k < op.elements.size(); ++k)
    write_row(to, 1, to.offset + static_cast<std::int64_t>(k) * to.dims[0].stride, op.elements[k]);
  assign(stm.pattern.front(), std::move(to));
}

void Machine::exec(const Stm& stm, const Alloc& op) {
  const std::int64_t bytes = sizes({op.bytes}, "an allocation").front();
  Array block;
  block.storage = memory_.allocate(count_of({bytes}), Fill::undefined);
  if (work_ != nullptr) work_->allocated += elements_in_block(stm.pattern.front(), bytes);
  // Allocated by a block for its threads: each has a copy.
  if (op.space == Space::thread && in_block_ && memory_.thread() < 0) block.storage->split_per_thread();
  assign(stm.pattern.front(), std::move(block));
}

}  // namespace apl::interpreter
