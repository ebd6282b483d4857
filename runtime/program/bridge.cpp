#include "runtime/program/bridge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/program/sparse_operands.h"

namespace apl::program {

namespace {

Code failure_code(std::int32_t code) {
  switch (code) {
    case APL_INDEX: return Code::run_index_out_of_bounds;
    case APL_SCATTERED_TWICE: return Code::run_scattered_twice;
    case APL_DIV_ZERO: return Code::run_division_by_zero;
    case APL_NO_CAPACITY: return Code::run_out_of_memory;
    case APL_NEGATIVE_SIZE: return Code::run_negative_size;
    default: return Code::run_assertion;
  }
}

// The location's message, each `%lld` replaced by the next of the cell's values.
std::string fill_in(std::string text, const apl_failure& cell) {
  static constexpr std::string_view kValue = "%lld";
  std::size_t at = 0;
  for (std::int64_t value : cell.values) {
    at = text.find(kValue, at);
    if (at == std::string::npos) break;
    const std::string digits = std::to_string(value);
    text.replace(at, kValue.size(), digits);
    at += digits.size();
  }
  return text;
}

Location location_of(std::int32_t line, std::int32_t column) {
  const auto l = static_cast<std::uint32_t>(line), c = static_cast<std::uint32_t>(column);
  return {l, c, l, c};
}

// Those that were inlined around the location of the error, the innermost first.
void note_calls(Diagnostic& error, std::int32_t call, const apl_location* locations) {
  for (; call > 0; call = locations[call - 1].call)
    error.notes.push_back(called_from(location_of(locations[call - 1].line, locations[call - 1].column)));
}

int status_of(const Diagnostic& error) {
  if (error.code == Code::run_out_of_memory) return APL_OUT_OF_MEMORY;
  return code_fault(error.code) == Fault::program ? APL_PROGRAM_ERROR : APL_ERROR;
}

}  // namespace

Bridge::Bridge(std::unique_ptr<Backend> backend, const apl_location* locations)
    : backend_(std::move(backend)),
      table_(table_for(*backend_)),
      sparse_(std::make_unique<SparseOperands>(std::string_view(backend_->name()) == "c")) {
  context_.backend = &table_;
  context_.state = this;
  context_.failure = backend_->failure();
  context_.failed = backend_->failed();
  context_.locations = locations;
}

Bridge::~Bridge() {
  // A failure to free has no one to go to.
  if (auto ignored = release_since(0); !ignored) return;
}

apl_backend Bridge::table_for(const Backend& backend) {
  apl_backend table{};
  table.name = backend.name();
  table.allocate = [](apl_context* ctx, std::int64_t bytes, const char* what, void** data) {
    auto block = of(ctx).allocate(bytes, what);
    if (!block) return finish(ctx, std::move(block).error());
    *data = *block;
    return static_cast<int>(APL_SUCCESS);
  };
  table.release = [](apl_context* ctx, void* data) { return finish(ctx, of(ctx).release(data)); };
  table.upload = [](apl_context* ctx, void* data, const void* host, std::int64_t bytes) {
    return finish(ctx, of(ctx).backend_->upload(data, host, bytes));
  };
  table.download = [](apl_context* ctx, void* host, const void* data, std::int64_t bytes) {
    return finish(ctx, of(ctx).backend_->download(host, data, bytes));
  };
  table.copy = [](apl_context* ctx, void* to, const void* from, std::int64_t bytes) {
    return finish(ctx, of(ctx).backend_->copy(to, from, bytes));
  };
  table.zeros = [](apl_context* ctx, std::int64_t bytes, void** data) {
    auto zeros = of(ctx).backend_->zeros(bytes);
    if (!zeros) return finish(ctx, std::move(zeros).error());
    *data = *zeros;
    return static_cast<int>(APL_SUCCESS);
  };
  table.launch = [](apl_context* ctx, const apl_launch* launch) {
    if (launch->blocks <= 0) return static_cast<int>(APL_SUCCESS);
    ++of(ctx).launches_;
    return finish(ctx, of(ctx).backend_->launch(*launch));
  };
  table.choose = &Bridge::choose;
  table.choose_variant = &Bridge::choose_variant;
  table.synchronise = &Bridge::synchronise;
  table.load = [](apl_context* ctx, const char* name, const char* text) {
    Bridge& bridge = of(ctx);
    if (bridge.loaded_.contains(name)) return static_cast<int>(APL_SUCCESS);
    const Status loaded = bridge.backend_->load(text);
    if (loaded) bridge.loaded_.insert(name);
    return finish(ctx, loaded);
  };
  table.load_with = [](apl_context* ctx, const char* name, const char* defines, const char* text) {
    return of(ctx).loaded_.contains(name) ? static_cast<int>(APL_SUCCESS)
                                          : ctx->backend->load(ctx, name, (std::string(defines) + text).c_str());
  };
  table.sparse_product = &Bridge::sparse_product;
  table.sparse_sddmm_product = &Bridge::sparse_sddmm_product;
  table.sparse_work = &Bridge::sparse_work;
  table.is_known_matrix = &Bridge::is_known_matrix;
  table.constant = &Bridge::constant;
  table.finish = &Bridge::end_entry;
  return table;
}

int Bridge::finish(apl_context* ctx, const Status& status) {
  return status ? static_cast<int>(APL_SUCCESS) : of(ctx).fail(status.error(), status_of(status.error()));
}

int Bridge::fail(Diagnostic error, int status) {
  const std::size_t n = std::min(error.message.size(), sizeof context_.error - 1);
  std::memcpy(context_.error, error.message.data(), n);
  context_.error[n] = '\0';
  error_ = std::move(error);
  return status;
}

int Bridge::synchronise(apl_context* ctx) {
  Bridge& bridge = of(ctx);
  if (auto ok = bridge.backend_->synchronise(); !ok) return finish(ctx, ok);
  auto cell = bridge.backend_->take_failure();
  if (!cell) return finish(ctx, std::move(cell).error());
  if (cell->code == APL_OK) return APL_SUCCESS;
  Diagnostic error = make_error(failure_code(cell->code), {}, "a check failed");
  if (ctx->locations) {
    const apl_location& location = ctx->locations[cell->location];
    error.location = location_of(location.line, location.column);
    error.message = fill_in(location.message, *cell);
    note_calls(error, location.call, ctx->locations);
    ctx->call_count = cell->call_count;
    std::copy_n(cell->calls, cell->call_count, ctx->calls);
  }
  return bridge.fail(std::move(error), APL_PROGRAM_ERROR);
}

int Bridge::end_entry(apl_context* ctx) { return of(ctx).waits_ ? synchronise(ctx) : int{APL_SUCCESS}; }

Status Bridge::wait() {
  clear_error();
  if (const int status = synchronise(&context_); status != APL_SUCCESS) return error(status);
  return Unit{};
}

void Bridge::clear_error() {
  context_.error[0] = '\0';
  context_.error_code = APL_OK;
  context_.call_count = 0;
  error_.reset();
  call_ = next_;
}

Diagnostic Bridge::error(int status) const {
  Diagnostic error = error_inside(status);
  for (std::int32_t k = 0; k < context_.call_count && context_.locations; ++k)
    note_calls(error, context_.calls[k], context_.locations);
  return error;
}

// Without the calls of functions that stayed functions.
Diagnostic Bridge::error_inside(int status) const {
  // Else it went on after that error.
  if (error_ && error_->message.starts_with(std::string_view(context_.error)) && context_.error[0] != '\0')
    return *error_;
  // The host code's own words: a check on sizes, or something that it does not expect.
  Code code = Code::bug_internal;
  if (status == APL_PROGRAM_ERROR) code = Code::run_shape_mismatch;
  const bool is_check = context_.error_code != APL_OK;
  if (is_check) code = failure_code(context_.error_code);
  if (status == APL_OUT_OF_MEMORY) code = Code::run_out_of_memory;
  const std::string text = context_.error;
  Diagnostic error =
      make_error(code, {}, text.empty() ? fmt::format("the entry gave up with status {}", status) : text);
  if (is_check) {
    error.location = location_of(context_.error_line, context_.error_column);
    if (context_.locations) note_calls(error, context_.error_call, context_.locations);
  }
  return error;
}

Result<void*> Bridge::allocate(std::int64_t bytes, const char* what) {
  auto data = backend_->allocate(bytes, what);
  if (!data) return data;
  blocks_.insert_or_assign(*data, Block{bytes, keeping_ ? 0 : next_++});
  bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, bytes_);
  return data;
}

Status Bridge::release(void* data) {
  if (!data) return Unit{};
  auto known = blocks_.find(data);
  if (known == blocks_.end())
    return make_error(Code::bug_internal, {}, "the program releases a block twice, or one that it never had");
  bytes_ -= known->second.bytes;
  blocks_.erase(known);
  return backend_->release(data);
}

Status Bridge::release_since(std::uint64_t mark) {
  Status result = Unit{};
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    const auto [data, info] = *block++;
    if (info.number < mark || (info.kept && mark > 0)) continue;
    auto released = release(data);
    if (!released && result) result = std::move(released);
  }
  return result;
}

void Bridge::keep(const void* data) {
  const auto known = blocks_.find(const_cast<void*>(data));  // NOLINT(cppcoreguidelines-pro-type-const-cast): a key
  if (known != blocks_.end()) known->second.kept = true;
}

std::optional<std::uint64_t> Bridge::age_of(const void* data) const {
  const auto known = blocks_.find(const_cast<void*>(data));  // NOLINT(cppcoreguidelines-pro-type-const-cast): a key
  return known == blocks_.end() ? std::nullopt : std::optional(known->second.number);
}

std::int64_t Bridge::bytes_of(const void* data) const {
  const auto known = blocks_.find(const_cast<void*>(data));  // NOLINT(cppcoreguidelines-pro-type-const-cast): a key
  return known == blocks_.end() ? 0 : known->second.bytes;
}

int Bridge::keeping(const std::function<int()>& make) {
  const bool before = std::exchange(keeping_, true);
  const int status = make();
  keeping_ = before;
  return status;
}

// Values whose checks failed are not kept: whoever asks for them again gets the error again.
int Bridge::constant(apl_context* ctx, std::int32_t number, const apl_value** values) {
  Bridge& bridge = of(ctx);
  auto made = bridge.made_constants_.find(number);
  if (made == bridge.made_constants_.end()) {
    const apl_constant& constant = bridge.constants_[number];
    std::vector<apl_value> outputs(static_cast<std::size_t>(constant.count));
    int status = bridge.keeping([&] { return constant.make(ctx, nullptr, outputs.data()); });
    if (status != APL_SUCCESS) return status;
    status = synchronise(ctx);
    if (status != APL_SUCCESS) {
      for (const apl_value& output : outputs)
        if (auto ignored = bridge.release(output.data); !ignored) continue;
      return status;
    }
    made = bridge.made_constants_.emplace(number, std::move(outputs)).first;
  }
  *values = made->second.data();
  return APL_SUCCESS;
}

int Bridge::sparse_product(apl_context* ctx, const apl_sparse_product* product, std::int32_t* done) {
  return of(ctx).sparse_->product(of(ctx), *product, *done);
}

int Bridge::sparse_sddmm_product(apl_context* ctx, const apl_sparse_sddmm_product* sddmm, std::int32_t* done) {
  return of(ctx).sparse_->sddmm(of(ctx), *sddmm, *done);
}

int Bridge::is_known_matrix(apl_context* ctx, const apl_known_matrix* matrix, const void* row_start, const void* column,
                            const void* values, std::int32_t* is_it) {
  return of(ctx).sparse_->is_known(of(ctx), *matrix, row_start, column, values, *is_it);
}

void Bridge::sparse_work(apl_context* ctx) { of(ctx).sparse_->work(); }

}  // namespace apl::program
