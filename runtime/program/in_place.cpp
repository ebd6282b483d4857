// Calls without copies: arguments stay where they are, results stay in the program's memory.
#include <fmt/format.h>

#include <cstdint>

#include "runtime/program/state.h"

namespace apl {

// Its arrays are blocks of the program like any argument's, so that the runtime knows them again.
struct ProgramMatrix::State {
  std::shared_ptr<Program::State> program;
  std::string operand;
  HostCsr matrix;
  std::vector<SoaField> fields;
  std::vector<apl_value> values;  // one for each field
  std::vector<program::GivenPlan> plans;
  std::vector<const program::GivenPlan*> fitting;
  std::vector<Remark> remarks;  // of plans whose tiles are among the values, until a call reports them

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    const std::lock_guard turn(program->mutex);
    for (const apl_value& value : values)
      if (auto ignored = program->bridge->release(value.data); !ignored) continue;
  }

  // What the runtime knows the matrix by.
  const void* key() const {
    const auto at = std::ranges::find(fields, SoaField::column) - fields.begin();
    return values[at == std::ssize(fields) ? 0 : static_cast<std::size_t>(at)].data;
  }
};

const HostCsr& ProgramMatrix::matrix() const { return state_->matrix; }

struct OwnedValue::State {
  std::shared_ptr<Program::State> program;
  apl_value value{};
  ScalarType type = ScalarType::unit;
  std::vector<std::int64_t> shape;
  bool on_device = false;
  std::optional<ProgramMatrix> pattern;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (!value.data) return;
    const std::lock_guard turn(program->mutex);
    if (auto ignored = program->bridge->release(value.data); !ignored) return;
  }
};

ScalarType OwnedValue::type() const { return state_->type; }
const std::vector<std::int64_t>& OwnedValue::shape() const { return state_->shape; }
void* OwnedValue::data() const { return state_->shape.empty() ? &state_->value.scalar : state_->value.data; }
bool OwnedValue::on_device() const { return state_->on_device; }
const std::optional<ProgramMatrix>& OwnedValue::pattern() const { return state_->pattern; }
Result<HostValue> OwnedValue::fetch() const {
  const std::lock_guard turn(state_->program->mutex);
  return program::fetch(*state_->program->bridge, state_->value);
}

namespace {

Status check_matrix(const HostCsr& matrix, const std::string& operand) {
  const auto wrong = [&](const std::string& what) {
    return make_error(Code::run_argument, {}, fmt::format("sparse operand `{}`: {}", operand, what));
  };
  constexpr std::int64_t kMost = INT32_MAX;
  if (matrix.rows < 0 || matrix.columns < 0 || matrix.rows > kMost || matrix.columns > kMost)
    return wrong(fmt::format("{} rows and {} columns; 0 to 2^31 - 1 of each", matrix.rows, matrix.columns));
  if (std::ssize(matrix.row_start) != matrix.rows + 1 || matrix.row_start.front() != 0 ||
      matrix.row_start.back() != matrix.nonzeros())
    return wrong("the starts of rows go from 0 to the number of non-zeros, one for each row and one more");
  if (matrix.values.shape != std::vector{matrix.nonzeros()})
    return wrong(fmt::format("{} columns, but {} values", matrix.nonzeros(), matrix.values.element_count()));
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    if (matrix.row_start[static_cast<std::size_t>(row)] > matrix.row_start[static_cast<std::size_t>(row) + 1])
      return wrong(fmt::format("row {} ends before it starts", row));
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    std::int64_t last = -1;
    for (const std::int32_t column : matrix.row(row)) {
      if (column <= last || column >= matrix.columns)
        return wrong(fmt::format("row {}: column {} after {} in a matrix of {} columns; columns rise", row, column,
                                 last, matrix.columns));
      last = column;
    }
  }
  return Unit{};
}

std::string described(const BorrowedValue& value) {
  return fmt::format("an array of {} dims of {}", value.shape.size(), to_text(value.type));
}

// What the entry takes, where it is known.
Status check_arguments(const std::vector<EntryType>& entries, std::string_view name,
                       const std::vector<BorrowedValue>& inputs) {
  const auto entry = std::ranges::find(entries, name, &EntryType::name);
  if (entry == entries.end()) return Unit{};
  if (entry->inputs.size() != inputs.size())
    return make_error(
        Code::run_argument, {},
        fmt::format("entry `{}` takes {} values, {} are given", name, entry->inputs.size(), inputs.size()));
  std::size_t k = 0;
  for (const EntryType::Param& param : entry->params)
    for (std::size_t v = 0; v < param.values; ++v, ++k) {
      const ValueType& wanted = entry->inputs[k];
      if (inputs[k].matrix ? wanted.sparse : inputs[k].type == wanted.element && inputs[k].shape.size() == wanted.rank)
        continue;
      return make_error(Code::run_argument, {},
                        fmt::format("argument `{}` of entry `{}` is of type {}; {} is given", param.name, name,
                                    param.type, inputs[k].matrix ? "a sparse matrix" : described(inputs[k])));
    }
  return Unit{};
}

std::size_t bytes_of(const BorrowedValue& value) {
  std::size_t count = static_cast<std::size_t>(byte_size(value.type));
  for (const std::int64_t size : value.shape) count *= static_cast<std::size_t>(size);
  return count;
}

// Memory of the host as a value of its own.
HostValue copied(const BorrowedValue& value) {
  HostValue host{value.type, value.shape, std::vector<std::byte>(bytes_of(value))};
  if (!host.data.empty()) std::memcpy(host.data.data(), value.data, host.data.size());
  return host;
}

bool is_aligned(const void* data, ScalarType type) {
  const auto size = static_cast<std::uintptr_t>(std::max<std::int64_t>(1, byte_size(type)));
  return reinterpret_cast<std::uintptr_t>(data) % size == 0;
}

}  // namespace

Result<ProgramMatrix> Program::make_matrix(std::string_view entry, std::string_view operand, HostCsr matrix) {
  if (auto fine = check_matrix(matrix, std::string(operand)); !fine) return std::move(fine).error();
  std::unique_lock turn(state_->mutex);
  auto known = state_->look_up(entry);
  if (!known) return std::move(known).error();
  const SoaInterface& sparse = (*known)->sparse;
  const auto at = static_cast<std::size_t>(std::ranges::find(sparse.names, operand) - sparse.names.begin());
  if (at == sparse.names.size())
    return make_error(Code::run_argument, {},
                      fmt::format("entry `{}` has no operand `{}` that is sparse", entry, operand));
  if (const auto of = std::ranges::find(state_->entries, entry, &EntryType::name); of != state_->entries.end()) {
    std::size_t k = 0;
    for (const EntryType::Param& param : of->params) {
      if (param.name == operand && of->inputs[k].element != matrix.values.type)
        return make_error(Code::run_argument, {},
                          fmt::format("sparse operand `{}` of entry `{}` is of type {}; a matrix of {} is given",
                                      operand, entry, param.type, to_text(matrix.values.type)));
      k += param.values;
    }
  }
  auto made = std::make_shared<ProgramMatrix::State>();
  // Its destructor takes a turn of its own.
  struct Unlock {
    std::unique_lock<std::mutex>& turn;
    ~Unlock() {
      if (turn.owns_lock()) turn.unlock();
    }
  } unlock{turn};
  made->program = state_;
  made->operand = std::string(operand);
  made->fields = sparse.soas[at].fields;
  made->plans = state_->plans;
  auto fitting = program::plans_for(made->plans, made->operand, csr_view(matrix));
  if (!fitting) return std::move(fitting).error();
  made->fitting = std::move(*fitting);
  const auto see = [&](const program::PlanUse& use) { made->remarks.push_back(program::plan_remark(use, entry, {})); };
  auto fields = soa_values(made->operand, matrix, made->fields, program::tile_maker(made->plans, see));
  if (!fields) return std::move(fields).error();
  program::Bridge& bridge = *state_->bridge;
  for (const HostValue& field : *fields) {
    apl_value value{};
    value.type = static_cast<std::int32_t>(field.type);
    value.rank = static_cast<std::int32_t>(field.rank());
    std::copy(field.shape.begin(), field.shape.end(), value.shape);
    const auto bytes = static_cast<std::int64_t>(field.data.size());
    auto block = bridge.allocate(bytes, "a sparse operand");
    if (!block) return std::move(block).error();
    value.data = *block;
    made->values.push_back(value);
    if (auto copied = bridge.backend().upload(*block, field.data.data(), bytes); !copied)
      return std::move(copied).error();
  }
  made->matrix = std::move(matrix);
  return ProgramMatrix(std::move(made));
}

bool Program::reads_in_place(const BorrowedValue& value) const {
  return !value.shape.empty() && state_->bridge->backend().can_borrow(value.on_device) &&
         is_aligned(value.data, value.type);
}

Result<std::vector<OwnedValue>> Program::call_in_place(std::string_view entry, const std::vector<BorrowedValue>& inputs,
                                                       bool wait) {
  if (auto fine = check_arguments(state_->entries, entry, inputs); !fine) return std::move(fine).error();
  // Dense matrices for sparse operands.
  std::vector<std::optional<ProgramMatrix>> matrices;
  {
    std::unique_lock turn(state_->mutex);
    auto known = state_->look_up(entry);
    if (!known) return std::move(known).error();
    const SoaInterface& sparse = (*known)->sparse;
    turn.unlock();
    std::size_t position = 0;
    for (const BorrowedValue& input : inputs) {
      const std::size_t next = matrices.size();
      const bool is_operand = next < sparse.soas.size() && sparse.soas[next].first == position;
      if (!is_operand) {
        if (input.matrix)
          return make_error(Code::run_argument, {},
                            fmt::format("entry `{}` takes the sparse operand as a dense matrix", entry));
        ++position;
        continue;
      }
      if (input.matrix &&
          (input.matrix->state_->program != state_ || input.matrix->state_->operand != sparse.names[next]))
        return make_error(Code::run_argument, {},
                          fmt::format("the matrix that is given for `{}` was made for another operand or program",
                                      sparse.names[next]));
      if (!input.matrix && (input.shape.size() != 2 || input.on_device))
        return make_error(Code::run_argument, {},
                          fmt::format("sparse operand `{}`: {} is given", sparse.names[next],
                                      input.on_device ? "device memory" : described(input)));
      auto matrix = input.matrix ? Result<ProgramMatrix>(*input.matrix)
                                 : make_matrix(entry, sparse.names[next], to_csr(copied(input)));
      if (!matrix) return std::move(matrix).error();
      position += sparse.soas[next].fields.size();
      matrices.emplace_back(std::move(*matrix));
    }
  }

  std::unique_lock turn(state_->mutex);
  const Program::State::Known& known = **state_->look_up(entry);
  program::Bridge& bridge = *state_->bridge;
  std::optional<program::Arguments> arguments(std::in_place, bridge);
  std::size_t next = 0;
  for (const BorrowedValue& input : inputs) {
    const bool is_operand = next < known.sparse.soas.size() && known.sparse.soas[next].first == arguments->size();
    if (is_operand) {
      ProgramMatrix::State& matrix = *matrices[next++]->state_;
      for (const apl_value& value : matrix.values) arguments->borrow(value);
      if (!matrix.fitting.empty()) bridge.sparse().plan(bridge.age_of(matrix.key()).value_or(0), matrix.fitting);
      std::ranges::move(matrix.remarks, std::back_inserter(state_->tile_remarks));
      matrix.remarks.clear();
      continue;
    }
    Status added = Unit{};
    if (reads_in_place(input)) {
      added = arguments->borrow(input.type, input.shape, input.data);
    } else if (!input.on_device) {
      added = arguments->add(input.type, input.shape, input.data, bytes_of(input));
    } else {
      added = make_error(Code::run_argument, {},
                         fmt::format("backend {} cannot read memory of a device", bridge.backend().name()));
    }
    if (!added) return std::move(added).error();
  }
  const std::uint64_t mark = bridge.mark();
  bridge.wait_at_end(wait);
  auto outputs = state_->enter(known.function, arguments->values(), wait);
  bridge.wait_at_end(true);
  std::vector<OwnedValue> results;
  const bool on_device = bridge.backend().can_borrow(true);
  if (outputs)
    for (const apl_value& output : *outputs) {
      bridge.keep(output.data);
      auto owned = std::make_shared<OwnedValue::State>();
      owned->program = state_;
      owned->value = output;
      owned->type = static_cast<ScalarType>(output.type);
      owned->shape.assign(output.shape, output.shape + output.rank);
      owned->on_device = on_device && output.rank > 0;
      for (const auto& [result, soa] : known.sparse.results)
        if (result == results.size()) owned->pattern = matrices[soa];
      results.push_back(OwnedValue(std::move(owned)));
    }
  auto released = bridge.release_since(mark);
  state_->report_plans(entry);
  arguments.reset();  // gives blocks back, which is part of this turn
  turn.unlock();
  if (!outputs) return std::move(outputs).error();
  if (!released) return std::move(released).error();
  return results;
}

Status Program::set_sparse_plans(const std::vector<SparsePlan>& texts) {
  auto plans = program::read_plans(texts);
  if (!plans) return std::move(plans).error();
  const std::lock_guard turn(state_->mutex);
  if (auto followed = program::check_followed(*plans); !followed && !state_->bridge->sparse().uses_library())
    return followed;
  state_->plans = std::move(*plans);
  return Unit{};
}

Status Program::set_stream(void* stream) {
  const std::lock_guard turn(state_->mutex);
  return state_->bridge->backend().set_stream(stream);
}

Status Program::wait() {
  const std::lock_guard turn(state_->mutex);
  return state_->bridge->wait();
}

Status Program::copy_to(const OwnedValue& value, void* to) {
  auto bytes = static_cast<std::int64_t>(byte_size(value.type()));
  for (const std::int64_t size : value.shape()) bytes *= size;
  const std::lock_guard turn(state_->mutex);
  Backend& backend = state_->bridge->backend();
  // A number is on the host: its bytes go to the device.
  const bool is_upload = value.shape().empty() && backend.can_borrow(true);
  return is_upload ? backend.upload(to, value.data(), bytes) : backend.copy(to, value.data(), bytes);
}

const std::vector<EntryType>& Program::entries() const { return state_->entries; }

}  // namespace apl
