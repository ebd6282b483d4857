// Branches, loops, calls.
#include <fmt/format.h>

#include <algorithm>

#include "ir/call_table.h"
#include "ir/interpret/machine.h"

namespace apl::interpreter {

// An array on its way to `target`. At the memory stage its elements are taken along if it lies elsewhere, before
// anything is written: what is yielded is yielded at once. Nothing is counted where blocks are exchanged instead.
Datum Machine::on_its_way(Datum datum, const Operand& from, Value target, bool is_exchanged) {
  if (datum.is_scalar || !type(target).memory || !from.is_value()) return datum;
  const auto& source = type(from.value()).memory;
  if (!source || *source == *type(target).memory) return datum;
  Datum taken{false, {}, memory_.compact(datum.array)};
  if (counting_ != nullptr)
    origins_.insert_or_assign(taken.array.storage.get(),
                              is_exchanged ? frame_->arrays[target.id] : std::move(datum.array));
  return taken;
}

void Machine::arrive(Value target, Datum datum) {
  if (datum.is_scalar || !type(target).memory) return bind(target, std::move(datum));
  const Array from = std::move(datum.array);
  alias(target, from);
  const Array& to = frame_->arrays[target.id];
  if (from.storage == to.storage) return;
  if (counting_ != nullptr) {
    const auto origin = origins_.extract(from.storage.get());
    count_copy(origin ? origin.mapped() : from, to);
  }
  memory_.copy(from, to);
}

void Machine::exec(const Stm& stm, const If& op) {
  run_branch(stm, scalar(op.condition).as_bool() ? *op.then_body : *op.else_body);
}

// Any that may run: all give the same.
void Machine::exec(const Stm& stm, const Choose& op) {
  if (counting_ != nullptr) return run_branch(stm, *op.alternatives.back().body);
  const auto given = options_.parameters.find(op.parameter);
  if (given != options_.parameters.end()) {
    const std::int64_t number = given->second, count = static_cast<std::int64_t>(op.alternatives.size());
    if (number < 1)
      fail(Code::command_bad_parameter, fmt::format("{}={}: a parameter is at least 1.", op.parameter, number));
    const Choose::Alternative& asked = op.alternatives[static_cast<std::size_t>(std::min(number, count) - 1)];
    if (scalar(asked.condition).as_bool()) return run_branch(stm, *asked.body);
  }
  std::vector<const Body*> possible;
  for (const Choose::Alternative& alternative : op.alternatives)
    if (scalar(alternative.condition).as_bool()) possible.push_back(alternative.body.get());
  run_branch(stm, *possible[random_.below(possible.size())]);
}

void Machine::run_branch(const Stm& stm, const Body& body) {
  const BodyLifetimes& lifetimes = lifetimes_of(body);
  run(body, lifetimes);
  std::vector<Datum> results;
  for (std::size_t k = 0; k < stm.pattern.size(); ++k)
    results.push_back(on_its_way(take_result(body, lifetimes, k), body.results[k], stm.pattern[k]));
  for (bool arrays : {false, true})
    for (std::size_t k = 0; k < stm.pattern.size(); ++k)
      if (type(stm.pattern[k]).is_array() == arrays) arrive(stm.pattern[k], std::move(results[k]));
}

// Whether host code exchanges the names of two blocks instead of copying what a round gives: it lies in a block that
// the loop has for another array.
bool Machine::is_exchanged(const Loop& op, const Operand& result) const {
  if (in_block_ || thread_.active || !result.is_value()) return false;
  const auto& source = type(result.value()).memory;
  return source && std::ranges::any_of(op.params, [&](Value param) {
           const auto& memory = type(param).memory;
           return memory && memory->block == source->block;
         });
}

void Machine::exec(const Stm& stm, const Loop& op) {
  const BodyLifetimes& lifetimes = lifetimes_of(*op.body);
  const std::size_t count = op.params.size();
  std::vector<Datum> state(count);
  for (std::size_t k = 0; k < count; ++k) state[k] = on_its_way(take_datum(op.initial[k]), op.initial[k], op.params[k]);
  const std::int64_t bound = op.index ? integer(op.bound) : 0;
  note_terms(op.initial, bound);
  auto bind_params = [&] {
    // Sizes and blocks before the arrays whose types mention them.
    for (bool arrays : {false, true})
      for (std::size_t k = 0; k < count; ++k)
        if (type(op.params[k]).is_array() == arrays) arrive(op.params[k], std::move(state[k]));
  };
  auto iterate = [&] {
    run(*op.body, lifetimes);
    for (std::size_t k = 0; k < count; ++k)
      state[k] = on_its_way(take_result(*op.body, lifetimes, k), op.body->results[k], op.params[k],
                            is_exchanged(op, op.body->results[k]));
  };
  if (op.index) {
    for (std::int64_t i = 0; i < bound; ++i) {
      bind_params();
      set(op.index, Scalar::integer(ScalarType::i64, i));
      iterate();
    }
  } else {
    while (state.front().scalar.as_bool()) {
      bind_params();
      iterate();
    }
  }
  for (bool arrays : {false, true})
    for (std::size_t k = 0; k < count; ++k)
      if (type(stm.pattern[k]).is_array() == arrays) arrive(stm.pattern[k], std::move(state[k]));
}

void Machine::exec(const Stm& stm, const Apply& op) {
  const Function& callee = *module_.find(op.function);
  std::vector<Datum> sizes;
  std::vector<Datum> params;
  for (std::size_t k = 0; k < op.arguments.size(); ++k)
    (k < callee.sizes.size() ? sizes : params).push_back(take_datum(op.arguments[k]));
  std::vector<Datum> results;
  try {
    results = call(callee, sizes, std::move(params));
  } catch (RunError& error) {
    // As where the callee is inlined. Calls that are nested too deeply say so without all of them.
    if (error.diagnostic.location && stm.location && error.diagnostic.code != Code::unsupported_construct)
      note_call(error.diagnostic, stm.location, module_.calls);
    throw;
  }
  const auto next = bind_result_sizes(stm, callee, results);
  std::size_t k = 0;
  for (auto v = next; v != stm.pattern.end(); ++v) {
    if (type(*v).is_memory()) {  // the block of the next result
      assign(*v, memory_.compact(results[k].array));
      continue;
    }
    Datum& result = results[k++];
    if (type(*v).memory) result.array = frame_->arrays[type(*v).memory->block.id];
    bind(*v, std::move(result));
  }
}

// The sizes that the callee decides come first, each as the dim of a result that has it. Gives where results begin.
std::vector<Value>::const_iterator Machine::bind_result_sizes(const Stm& stm, const Function& callee,
                                                              const std::vector<Datum>& results) {
  for (std::size_t s = 0; s < callee.result_sizes.size(); ++s)
    for (std::size_t k = 0; k < results.size(); ++k)
      for (std::size_t d = 0; d < callee.results[k].rank(); ++d)
        if (callee.results[k].shape[d] == Poly(callee.result_sizes[s]))
          set(stm.pattern[s], Scalar::integer(ScalarType::i64, results[k].array.dims[d].size));
  return stm.pattern.begin() + static_cast<std::ptrdiff_t>(callee.result_sizes.size());
}

}  // namespace apl::interpreter
