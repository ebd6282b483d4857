#include "ir/host_value.h"

#include <fmt/format.h>

namespace apl {

HostValue HostValue::scalar(const Scalar& scalar) {
  HostValue value = zeros(scalar.type(), {});
  value.set(0, scalar);
  return value;
}

HostValue HostValue::zeros(ScalarType type, std::vector<std::int64_t> shape) {
  HostValue value{type, std::move(shape), {}};
  value.data.resize(static_cast<std::size_t>(value.element_count()) * static_cast<std::size_t>(byte_size(type)));
  return value;
}

std::int64_t HostValue::element_count() const {
  std::int64_t count = 1;
  for (std::int64_t size : shape) count *= size;
  return count;
}

Scalar HostValue::at(std::int64_t flat) const {
  auto size = static_cast<std::size_t>(byte_size(type));
  std::uint64_t bits = 0;  // little endian, as every machine we generate code for
  std::memcpy(&bits, data.data() + static_cast<std::size_t>(flat) * size, size);
  return Scalar::from_bits(type, bits);
}

void HostValue::set(std::int64_t flat, const Scalar& element) {
  auto size = static_cast<std::size_t>(byte_size(type));
  std::uint64_t bits = element.bits();
  std::memcpy(data.data() + static_cast<std::size_t>(flat) * size, &bits, size);
}

namespace {

void append_text(const HostValue& value, std::size_t dim, std::int64_t& flat, std::string& out) {
  if (dim == value.rank()) {
    out += value.at(flat++).to_text();
    return;
  }
  out += '[';
  for (std::int64_t i = 0; i < value.shape[dim]; ++i) {
    if (i != 0) out += ", ";
    append_text(value, dim + 1, flat, out);
  }
  out += ']';
}

}  // namespace

std::string HostValue::to_text() const {
  std::string text;
  if (rank() != 0 && element_count() == 0) {
    for (std::int64_t size : shape) text += fmt::format("[{}]", size);
    return fmt::format("empty({}{})", text, apl::to_text(type));
  }
  std::int64_t flat = 0;
  append_text(*this, 0, flat, text);
  return text;
}

std::string HostValue::to_binary() const {
  std::string out = fmt::format("b\x02{}{:>4}", static_cast<char>(rank()), apl::to_text(type));
  const std::size_t header = out.size();
  out.resize(header + shape.size() * 8 + data.size());
  if (!shape.empty()) std::memcpy(out.data() + header, shape.data(), shape.size() * 8);
  if (!data.empty()) std::memcpy(out.data() + header + shape.size() * 8, data.data(), data.size());
  return out;
}

}  // namespace apl
