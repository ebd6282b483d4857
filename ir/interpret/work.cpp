// Counting what statements cost (docs/ir.md, "What a program costs").
#include "ir/work.h"

#include <algorithm>

#include "ir/interpret/screma.h"
#include "ir/walk.h"

namespace apl {

Work& Work::operator+=(const Work& other) {
  operations += other.operations;
  read += other.read;
  written += other.written;
  allocated += other.allocated;
  return *this;
}

Work WorkCount::sum() const {
  Work sum;
  for (const auto& [stm, work] : by_statement_) sum += work;
  return sum;
}

namespace interpreter {

namespace {

// Whether the elements are those of the other array, in its order: copying one to the other moves nothing.
bool same_place(const Array& a, const Array& b) {
  if (a.storage != b.storage || a.element != b.element || a.offset != b.offset || a.rank() != b.rank()) return false;
  for (std::size_t k = 0; k < a.rank(); ++k)
    if (a.dims[k].size > 1 && a.dims[k].stride != b.dims[k].stride) return false;
  return true;
}

}  // namespace

std::int64_t scalar_operations(const Op& op) {
  return std::holds_alternative<Unary>(op) || std::holds_alternative<Binary>(op) ||
                 std::holds_alternative<Compare>(op) || std::holds_alternative<Convert>(op) ||
                 std::holds_alternative<SizeExpr>(op)
             ? 1
             : 0;
}

void Machine::count_copy(const Array& from, const Array& to) {
  if (work_ == nullptr || same_place(from, to)) return;
  const std::int64_t count = to.count();
  work_->read += count;
  work_->written += count;
}

void Machine::count_copied(const Array& from) {
  if (work_ == nullptr) return;
  const std::int64_t count = from.count();
  *work_ += {.read = count, .written = count, .allocated = count};
}

void Machine::count_lanes(const Body& body, std::int64_t times) {
  for (const Stm& stm : body.stms) {
    Work& work = counting_->of(stm);
    work.operations += times * scalar_operations(stm.op);
    if (get_if<Index>(stm) != nullptr) work.read += times;
  }
}

// As run_index and fold_scalars count them.
void Machine::count_columns(const ScremaRun& run, std::int64_t done) {
  if (counting_ == nullptr || done == 0) return;
  count_lanes(run.map, done);
  for (const ReduceOp& reduce : run.op.reduces) count_lanes(*reduce.op.body, done);
  for (const Value param : run.op.map.params) work_->read += is_scalar(param) ? done : 0;
  work_->written += done * static_cast<std::int64_t>(run.mapped.size());
  for (const Array& scanned : run.scanned) work_->written += scanned.storage ? done : 0;
}

// Elements of the arrays that lie in the block: the memory stage counts bytes, which are of one type where they are of
// arrays that a program has. A block that no array lies in has bytes.
std::int64_t Machine::elements_in_block(Value block, std::int64_t bytes) {
  const ValueTable& values = frame_->function->values;
  if (block_widths_.empty() || block_widths_function_ != frame_->function) {
    block_widths_function_ = frame_->function;
    block_widths_.assign(values.size(), 0);
    for (std::uint32_t id = 0; id < values.size(); ++id)
      if (const auto& memory = values.type(Value{id}).memory)
        block_widths_[memory->block.id] = byte_size(values.type(Value{id}).element);
  }
  return bytes / std::max(1, block_widths_[block.id]);
}

}  // namespace interpreter

}  // namespace apl
