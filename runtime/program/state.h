// What a program is made of; of program.cpp and in_place.cpp alone.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/sparse_arguments.h"
#include "runtime/backends/openmp.h"
#include "runtime/names.h"
#include "runtime/program/bridge.h"
#include "runtime/program/program.h"
#include "runtime/program/sparse_operands.h"
#include "runtime/program/sparse_tiles.h"
#include "runtime/sparse/csr_view.h"

namespace apl {

namespace program {

// Inputs in the backend's memory; the blocks that are ours go when it does.
class Arguments {
 public:
  explicit Arguments(Bridge& bridge) : bridge_(bridge) {}
  ~Arguments() {
    for (void* block : blocks_)
      if (auto ignored = bridge_.release(block); !ignored) continue;
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  Status add(const HostValue& value) { return add(value.type, value.shape, value.data.data(), value.data.size()); }
  Status add(ScalarType type, const std::vector<std::int64_t>& shape, const void* host, std::size_t bytes) {
    auto described = describe(type, shape);
    if (!described) return std::move(described).error();
    apl_value& out = *described;
    if (shape.empty()) {
      std::memcpy(&out.scalar, host, std::min(bytes, sizeof out.scalar));
      values_.push_back(out);
      return Unit{};
    }
    auto block = bridge_.allocate(static_cast<std::int64_t>(bytes), "an argument");
    if (!block) return std::move(block).error();
    blocks_.push_back(*block);
    out.data = *block;
    values_.push_back(out);
    return bridge_.backend().upload(*block, host, static_cast<std::int64_t>(bytes));
  }
  // An array whose memory is somebody else's.
  Status borrow(ScalarType type, const std::vector<std::int64_t>& shape, const void* data) {
    auto described = describe(type, shape);
    if (!described) return std::move(described).error();
    described->data = const_cast<void*>(data);  // NOLINT(cppcoreguidelines-pro-type-const-cast): an input is only read
    values_.push_back(*described);
    return Unit{};
  }
  void borrow(const apl_value& value) { values_.push_back(value); }
  const apl_value* values() const { return values_.data(); }
  std::size_t size() const { return values_.size(); }

 private:
  static Result<apl_value> describe(ScalarType type, const std::vector<std::int64_t>& shape) {
    if (shape.size() > APL_MAX_RANK)
      return make_error(Code::run_argument, {},
                        fmt::format("an argument of {} dims; {} at most", shape.size(), APL_MAX_RANK));
    apl_value value{};
    value.type = static_cast<std::int32_t>(type);
    value.rank = static_cast<std::int32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), value.shape);
    return value;
  }

  Bridge& bridge_;
  std::vector<apl_value> values_;
  std::vector<void*> blocks_;
};

// An entry and what is handed over to it.
struct Prepared {
  apl_entry function;
  SoaInterface sparse;
  PackedArguments packed;
  std::unique_ptr<Arguments> arguments;
};

inline Result<HostValue> fetch(Bridge& bridge, const apl_value& output) {
  const auto type = static_cast<ScalarType>(output.type);
  HostValue value = HostValue::zeros(type, {output.shape, output.shape + output.rank});
  if (output.rank == 0) {
    std::memcpy(value.data.data(), &output.scalar, value.data.size());
    return value;
  }
  auto copied = bridge.backend().download(value.data.data(), output.data, static_cast<std::int64_t>(value.data.size()));
  if (!copied) return std::move(copied).error();
  return value;
}

}  // namespace program

// All of it under `mutex`, but for what is fixed when the program is loaded.
struct Program::State {
  std::mutex mutex;
  SharedObject object;
  std::optional<program::Bridge> bridge;
  std::vector<EntryType> entries;
  std::vector<program::GivenPlan> plans;
  std::vector<Remark> tile_remarks;  // of plans whose tiles are arguments of this call
  RemarkSink remarks;
  std::set<std::string> said;
  double microseconds = 0;

  Result<apl_entry> find(std::string_view entry) const {
    if (auto function = object.function<apl_entry>("apl_entry_" + symbol_part(entry))) return function;
    return make_error(Code::command_bad_argument, {}, fmt::format("the program has no entry `{}`", entry));
  }

  // Found once.
  struct Known {
    apl_entry function = nullptr;
    SoaInterface sparse;
  };
  std::map<std::string, Known, std::less<>> known;
  Result<const Known*> look_up(std::string_view entry) {
    if (const auto found = known.find(entry); found != known.end()) return &found->second;
    auto function = find(entry);
    if (!function) return std::move(function).error();
    return &known.emplace(entry, Known{*function, sparse(entry)}).first->second;
  }

  // What of the entry's arguments is sparse.
  SoaInterface sparse(std::string_view entry) const {
    const auto* text = static_cast<const char*>(object.symbol("apl_operands_" + symbol_part(entry)));
    return text == nullptr ? SoaInterface{} : SoaInterface::from_text(text);
  }

  // Arguments as the entry takes them; without sparse operands nothing.
  Result<PackedArguments> pack(const SoaInterface& sparse, const std::vector<HostValue>& inputs,
                               std::string_view entry) {
    if (sparse.empty()) return PackedArguments{};
    const auto see = [&](const program::PlanUse& use) { tile_remarks.push_back(program::plan_remark(use, entry, {})); };
    return pack_arguments(sparse, inputs, program::tile_maker(plans, see));
  }

  // The plans for the operands of this call, held against what they are.
  Status place_plans(const SoaInterface& sparse, const std::vector<HostValue>& values,
                     const program::Arguments& arguments) {
    for (std::size_t k = 0; k < sparse.soas.size() && !plans.empty(); ++k) {
      const SparseSoa& soa = sparse.soas[k];
      if (std::ranges::find(plans, sparse.names[k], &program::GivenPlan::operand) == plans.end()) continue;
      const auto rows = program::rows_of_soa(soa, values);
      if (!rows) continue;
      auto fitting = program::plans_for(plans, sparse.names[k], csr_view(*rows));
      if (!fitting) return std::move(fitting).error();
      const auto column = std::ranges::find(soa.fields, SoaField::column) - soa.fields.begin();
      const bool by_rows = column != std::ssize(soa.fields);
      const apl_value* block = arguments.values() + soa.first + (by_rows ? column : 0);
      bridge->sparse().plan(bridge->age_of(block->data).value_or(0), std::move(*fitting));
    }
    return Unit{};
  }

  // Finds the entry, and uploads what it takes.
  Result<program::Prepared> prepare(std::string_view entry, const std::vector<HostValue>& inputs) {
    auto function = find(entry);
    if (!function) return std::move(function).error();
    const SoaInterface operands = sparse(entry);
    auto packed = pack(operands, inputs, entry);
    if (!packed) return std::move(packed).error();
    program::Prepared prepared{*function, operands, *std::move(packed), std::make_unique<program::Arguments>(*bridge)};
    for (const HostValue& input : operands.empty() ? inputs : prepared.packed.values)
      if (auto added = prepared.arguments->add(input); !added) return std::move(added).error();
    if (auto placed = place_plans(operands, prepared.packed.values, *prepared.arguments); !placed)
      return std::move(placed).error();
    return prepared;
  }

  // Says what became of each plan, once.
  void report_plans(std::string_view entry) {
    std::vector<Remark> all = std::move(tile_remarks);
    tile_remarks.clear();
    const std::string own = std::string_view(bridge->backend().name()) == "c"
                                ? "backend c has its own form"
                                : "no product with it is one that the runtime has kernels for";
    for (const program::PlanUse& use : bridge->sparse().take_uses())
      all.push_back(program::plan_remark(use, entry, own));
    for (const Remark& remark : all)
      if (remarks && said.insert(render(remark, "")).second) remarks(remark);
  }

  // One call. Whatever happens, only what was there before it is allocated after it.
  Result<std::vector<HostValue>> call(apl_entry entry, const program::Arguments& arguments, bool want_results) {
    const std::uint64_t mark = bridge->mark();
    auto results = call_entry(entry, arguments, want_results);
    auto released = bridge->release_since(mark);
    if (results && !released) return std::move(released).error();
    return results;
  }

 private:
  static constexpr std::int32_t kNotSet = -1;  // the entry sets the types of the results that it has
  static constexpr std::size_t kMaxResults = 256;
  std::vector<apl_value> outputs_;

 public:
  // The entry itself; its results are the first of what is given.
  Result<std::span<const apl_value>> enter(apl_entry entry, const apl_value* inputs, bool timed) {
    outputs_.resize(kMaxResults);
    for (apl_value& output : outputs_) output.type = kNotSet, output.data = nullptr;
    bridge->clear_error();
    if (timed)
      if (auto ok = bridge->backend().start_timer(); !ok) return std::move(ok).error();
    const ForkedThreads threads(object);
    const int status = entry(bridge->context(), inputs, outputs_.data());
    if (status != APL_SUCCESS) return bridge->error(status);
    if (timed) {
      auto time = bridge->backend().stop_timer();
      if (!time) return std::move(time).error();
      microseconds = *time;
    }
    const auto end = std::ranges::find(outputs_, kNotSet, &apl_value::type);
    return std::span<const apl_value>(outputs_.begin(), end);
  }

 private:
  Result<std::vector<HostValue>> call_entry(apl_entry entry, const program::Arguments& arguments, bool want_results) {
    auto outputs = enter(entry, arguments.values(), true);
    if (!outputs) return std::move(outputs).error();
    std::vector<HostValue> results;
    if (!want_results) return results;
    for (const apl_value& output : *outputs) {
      auto value = program::fetch(*bridge, output);
      if (!value) return std::move(value).error();
      results.push_back(std::move(*value));
    }
    return results;
  }
};

}  // namespace apl
