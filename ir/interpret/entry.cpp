// Calling an entry: values in, sizes from their shapes, values out.
#include <fmt/format.h>

#include <cstring>
#include <set>

#include "ir/interpret/machine.h"

namespace apl::interpreter {

Datum Machine::from_host(const HostValue& value) {
  for (std::int64_t size : value.shape)
    if (size < 0) fail(Code::run_argument, fmt::format("an argument has shape {}.", shape_text(value.shape)));
  const std::int64_t expected = count_of(value.shape) * byte_size(value.type);
  if (static_cast<std::int64_t>(value.data.size()) != expected)
    fail(Code::run_argument, fmt::format("an argument of type {}{} has {} bytes, {} are needed.",
                                         shape_text(value.shape), to_text(value.type), value.data.size(), expected));
  Array array = memory_.make_array(value.type, value.shape, Fill::zero);
  if (!value.data.empty()) std::memcpy(array.storage->bytes.data(), value.data.data(), value.data.size());
  if (value.shape.empty()) return {true, memory_.load(array, 0), {}};
  return {false, {}, std::move(array)};
}

HostValue Machine::to_host(const Datum& datum, std::size_t position) {
  HostValue value;
  Array array;
  if (datum.is_scalar) {
    array = memory_.make_array(datum.scalar.type(), {}, Fill::zero);
    memory_.store(array, 0, datum.scalar);
  } else {
    if (datum.array.private_rank != 0) fail(Code::run_race, "a result of the entry is private to threads.");
    array = memory_.compact(datum.array);
  }
  for (std::size_t at = 0; at < array.storage->defined.size(); ++at) {
    if (array.storage->defined[at]) continue;
    std::vector<std::int64_t> indices;
    unflatten(static_cast<std::int64_t>(at) / byte_size(array.element), shape_of(array), indices);
    fail(Code::run_undefined_read,
         fmt::format("element {} of result {} is never written.", shape_text(indices), position + 1));
  }
  value.type = array.element;
  value.shape = shape_of(array);
  value.data = array.storage->bytes;
  return value;
}

std::vector<Datum> Machine::bind_arguments(const Function& function, const std::vector<HostValue>& arguments,
                                           std::vector<Datum>& sizes) {
  std::vector<Value> formals;  // the parameters that are given; blocks follow from them
  for (Value param : function.params)
    if (!type(param).is_memory()) formals.push_back(param);
  // The last of both are values of constants.
  const std::size_t constants = function.params.size() - function.given_params().size();
  if (formals.size() != arguments.size())
    fail(Code::run_argument, fmt::format("entry `{}` takes {} values, but {} are given.",
                                         function.entry ? function.entry->name : function.name,
                                         formals.size() - constants, arguments.size() - constants));
  std::vector<Datum> given;
  std::set<Value> known;
  for (std::size_t k = 0; k < formals.size(); ++k) {
    const Type& t = type(formals[k]);
    const HostValue& argument = arguments[k];
    if (argument.type != t.element || argument.shape.size() != t.rank())
      fail(Code::run_argument,
           fmt::format("`{}` should be of type {} with {} dims, but a {} with {} dims is given.", name(formals[k]),
                       to_text(t.element), t.rank(), to_text(argument.type), argument.shape.size()));
    given.push_back(from_host(argument));
    if (given.back().is_scalar) set(formals[k], given.back().scalar), known.insert(formals[k]);
  }
  // A dim that is a size alone fixes it; every other dim must then agree.
  for (std::size_t k = 0; k < formals.size(); ++k)
    for (std::size_t d = 0; d < type(formals[k]).rank(); ++d)
      if (auto symbol = type(formals[k]).shape[d].symbol(); symbol && known.insert(*symbol).second)
        set(*symbol, Scalar::integer(ScalarType::i64, arguments[k].shape[d]));
  for (Value size : function.sizes) {
    if (!known.count(size)) fail(Code::run_argument, fmt::format("no argument fixes the size `{}`.", name(size)));
    sizes.push_back({true, slot(size), {}});
  }
  for (std::size_t k = 0; k < formals.size(); ++k)
    for (std::size_t d = 0; d < type(formals[k]).rank(); ++d)
      if (const std::int64_t expected = integer(type(formals[k]).shape[d]); expected != arguments[k].shape[d])
        fail(Code::run_shape_mismatch, fmt::format("dim {} of `{}` should be {}, but it is {}.", d + 1,
                                                   name(formals[k]), expected, arguments[k].shape[d]));
  // Now the blocks of the parameters, each filled as its array's layout says.
  std::vector<Datum> params;
  std::size_t next = 0;
  for (Value param : function.params) params.push_back(type(param).is_memory() ? Datum{false, {}, {}} : given[next++]);
  for (std::size_t k = 0; k < function.params.size(); ++k) {
    const Type& t = type(function.params[k]);
    if (!t.memory) continue;
    Array& block = frame_->arrays[t.memory->block.id];
    if (block.storage)
      fail(Code::unsupported_construct, fmt::format("two parameters lie in block `{}`.", name(t.memory->block)));
    std::int64_t elements = integer(t.memory->layout.offset()) + 1;
    for (const LmadDim& dim : t.memory->layout.dims())
      elements += std::max<std::int64_t>(0, (integer(dim.size) - 1) * integer(dim.stride));
    block = memory_.make_array(t.element, {std::max<std::int64_t>(0, elements)}, Fill::undefined);
    Array array = bound(function.params[k]);
    check_shape(function.params[k], array);
    memory_.copy(params[k].array, array);
    params[k].array = std::move(array);
    for (std::size_t b = 0; b < function.params.size(); ++b)
      if (function.params[b] == t.memory->block) params[b].array = block;
  }
  return params;
}

std::vector<HostValue> Machine::run_entry(const Function& function, const std::vector<HostValue>& arguments) {
  std::vector<Datum> results;
  try {
    std::vector<Datum> sizes;
    std::vector<Datum> params;
    {
      Frame frame = make_frame(function);
      frame_ = &frame;
      params = bind_arguments(function, arguments, sizes);
    }
    frame_ = nullptr;
    results = call(function, sizes, std::move(params));
    std::vector<HostValue> values;
    for (std::size_t k = 0; k < results.size(); ++k) values.push_back(to_host(results[k], k));
    return values;
  } catch (RunError& error) {
    if (!error.diagnostic.location) error.diagnostic.location = function.location;
    throw;
  }
}

}  // namespace apl::interpreter
