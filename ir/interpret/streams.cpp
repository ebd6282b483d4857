#include "ir/interpret/streams.h"

#include <fmt/format.h>

namespace apl::interpreter {

void Machine::Streams::start(const std::vector<Poly>& polys, std::string_view what) {
  widths = machine.sizes(polys, what);
  for (Value v : inputs) {
    arrays.push_back(machine.readable(v));
    for (std::size_t k = 0; k < widths.size(); ++k)
      if (arrays.back().dims[k].size != widths[k])
        fail(Code::run_shape_mismatch, fmt::format("`{}` of shape {} is mapped over widths {}.", machine.name(v),
                                                   shape_text(shape_of(arrays.back())), shape_text(widths)));
  }
}

std::int64_t Machine::Streams::position_in(const Array& array) const {
  std::int64_t position = array.offset;
  for (std::size_t k = 0; k < at.size(); ++k) position += at[k] * array.dims[k].stride;
  return position;
}

void Machine::Streams::bind(std::int64_t flat) {
  unflatten(flat, widths, at);
  for (std::size_t k = 0; k < indices.size(); ++k) machine.set(indices[k], Scalar::integer(ScalarType::i64, at[k]));
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    const std::int64_t position = position_in(arrays[k]);
    if (machine.is_scalar(params[k])) {
      machine.set(params[k], machine.element(inputs[k], arrays[k], position));
    } else {
      machine.alias(params[k], row_at(arrays[k], widths.size(), position));
    }
  }
}

}  // namespace apl::interpreter
