// Arrays of NumPy, torch, JAX and scipy as arguments and results, without copies.
#pragma once

#include "python/compiler.h"

namespace apl::python {

namespace nb = nanobind;
using namespace nb::literals;

inline apl::Diagnostic bad(std::string message) {
  return apl::make_error(apl::Code::run_argument, {}, std::move(message));
}

inline std::optional<apl::ScalarType> scalar_type(nb::dlpack::dtype type) {
  using Code = nb::dlpack::dtype_code;
  if (type.lanes != 1) return std::nullopt;
  const auto at = [&](std::uint8_t code, std::uint8_t bits) { return type.code == code && type.bits == bits; };
  for (const apl::ScalarType known :
       {apl::ScalarType::i8, apl::ScalarType::i16, apl::ScalarType::i32, apl::ScalarType::i64})
    if (at(static_cast<std::uint8_t>(Code::Int), static_cast<std::uint8_t>(8 * apl::byte_size(known)))) return known;
  for (const apl::ScalarType known :
       {apl::ScalarType::u8, apl::ScalarType::u16, apl::ScalarType::u32, apl::ScalarType::u64})
    if (at(static_cast<std::uint8_t>(Code::UInt), static_cast<std::uint8_t>(8 * apl::byte_size(known)))) return known;
  for (const apl::ScalarType known : {apl::ScalarType::f16, apl::ScalarType::f32, apl::ScalarType::f64})
    if (at(static_cast<std::uint8_t>(Code::Float), static_cast<std::uint8_t>(8 * apl::byte_size(known)))) return known;
  if (at(static_cast<std::uint8_t>(Code::Bfloat), 16)) return apl::ScalarType::bf16;
  if (at(static_cast<std::uint8_t>(Code::Bool), 8)) return apl::ScalarType::boolean;
  return std::nullopt;
}

inline nb::dlpack::dtype dtype_of(apl::ScalarType type) {
  using Code = nb::dlpack::dtype_code;
  const Code code = type == apl::ScalarType::boolean ? Code::Bool
                    : type == apl::ScalarType::bf16  ? Code::Bfloat
                    : apl::is_float(type)            ? Code::Float
                    : apl::is_signed(type)           ? Code::Int
                                                     : Code::UInt;
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * apl::byte_size(type)), 1};
}

using AnyArray = nb::ndarray<nb::ro>;

inline bool is_contiguous(const AnyArray& array) {
  if (array.size() == 0) return true;
  std::int64_t step = 1;
  for (std::size_t k = array.ndim(); k-- > 0;) {
    if (array.shape(k) != 1 && array.stride(k) != step) return false;
    step *= static_cast<std::int64_t>(array.shape(k));
  }
  return true;
}

// One argument, and what keeps its memory there.
struct Given {
  apl::BorrowedValue value;
  apl::HostValue scalar;
  AnyArray array;
  nb::object keep;
};

// Objects that have __cuda_array_interface__ and no DLPack.
inline bool from_cuda_interface(nb::handle object, Given& given) {
  if (!nb::hasattr(object, "__cuda_array_interface__") || nb::hasattr(object, "__dlpack__")) return false;
  const auto interface = nb::cast<nb::dict>(object.attr("__cuda_array_interface__"));
  const auto kind = nb::cast<std::string>(interface["typestr"]);
  const char* const known[] = {"<i1", "<i2", "<i4", "<i8", "<u1", "<u2", "<u4", "<u8", "<f2", "", "<f4", "<f8"};
  bool found = false;
  for (std::size_t k = 0; k < std::size(known); ++k)
    if (kind.substr(1) == std::string_view(known[k]).substr(known[k][0] != '\0' ? 1 : 0) && known[k][0] != '\0') {
      given.value.type = static_cast<apl::ScalarType>(k);
      found = true;
    }
  if (kind.ends_with("b1")) given.value.type = apl::ScalarType::boolean, found = true;
  if (!found) throw Failed{{bad("an array of elements " + kind)}, {}, {}};
  if (interface.contains("strides") && !interface["strides"].is_none())
    throw Failed{{bad("an array of a device that is not contiguous")}, {}, {}};
  for (const nb::handle size : interface["shape"]) given.value.shape.push_back(nb::cast<std::int64_t>(size));
  const auto data = nb::cast<nb::tuple>(interface["data"]);
  given.value.data = reinterpret_cast<const void*>(nb::cast<std::uintptr_t>(data[0]));
  given.value.on_device = true;
  given.keep = nb::borrow(object);
  return true;
}

inline void take(nb::handle object, const apl::ValueType& wanted, Given& given) {
  if (wanted.rank == 0) {
    const apl::ScalarType type = wanted.element;
    apl::Scalar scalar;
    nb::object plain = nb::borrow(object);
    if (nb::hasattr(plain, "item")) plain = plain.attr("item")();
    if (type == apl::ScalarType::boolean) {
      scalar = apl::Scalar::boolean(nb::cast<bool>(plain));
    } else if (apl::is_float(type)) {
      scalar = apl::Scalar::floating(type, nb::cast<double>(nb::float_(plain)));
    } else if (nb::isinstance<nb::int_>(plain)) {
      const nb::int_ number(plain);
      const auto bits = 8 * apl::byte_size(type);
      const nb::int_ low(apl::is_signed(type) ? -(nb::int_(1) << nb::int_(bits - 1)) : nb::object(nb::int_(0)));
      const nb::int_ high(nb::int_(1) << nb::int_(apl::is_signed(type) ? bits - 1 : bits));
      if (number < low || !(number < high))
        throw Failed{{bad("a number that " + std::string(apl::to_text(type)) + " cannot hold")}, {}, {}};
      scalar = apl::is_signed(type) ? apl::Scalar::integer(type, nb::cast<std::int64_t>(number))
                                    : apl::Scalar::from_bits(type, nb::cast<std::uint64_t>(number));
    } else {
      throw Failed{{bad("a number of type " + std::string(apl::to_text(type)) + " is wanted")}, {}, {}};
    }
    given.scalar = apl::HostValue::scalar(scalar);
    given.value.type = type;
    given.value.data = given.scalar.data.data();
    return;
  }
  if (from_cuda_interface(object, given)) return;
  if (!nb::try_cast(object, given.array, false))
    throw Failed{{bad(std::string("no array: an object of type ") + Py_TYPE(object.ptr())->tp_name)}, {}, {}};
  if (!is_contiguous(given.array)) {
    const nb::object dense = nb::hasattr(object, "contiguous")
                                 ? object.attr("contiguous")()
                                 : nb::module_::import_("numpy").attr("ascontiguousarray")(object);
    if (!nb::try_cast(dense, given.array, false) || !is_contiguous(given.array))
      throw Failed{{bad("an array that is not contiguous")}, {}, {}};
  }
  const auto type = scalar_type(given.array.dtype());
  if (!type) throw Failed{{bad("an array of elements that apl does not have")}, {}, {}};
  given.value.type = *type;
  for (std::size_t k = 0; k < given.array.ndim(); ++k)
    given.value.shape.push_back(static_cast<std::int64_t>(given.array.shape(k)));
  given.value.data = given.array.data();
  given.value.on_device = given.array.device_type() == nb::device::cuda::value;
}

struct Matrix {
  apl::ProgramMatrix matrix;
};

// How results are handed over.
enum class Like { numpy, torch, jax, dlpack };

template <class... Framework>
nb::object as_array(const apl::OwnedValue& value, int number) {
  std::vector<std::size_t> shape(value.shape().begin(), value.shape().end());
  auto owner = std::make_unique<apl::OwnedValue>(value);
  void* data = owner->data();
  nb::capsule keep(owner.get(), [](void* held) noexcept {
    // Waits for its turn with the program, which another thread may hold that wants the interpreter's lock.
    const nb::gil_scoped_release release;
    delete static_cast<apl::OwnedValue*>(held);
  });
  static_cast<void>(owner.release());
  const int device = value.on_device() ? nb::device::cuda::value : nb::device::cpu::value;
  return nb::cast(nb::ndarray<Framework...>(data, shape.size(), shape.data(), keep, nullptr, dtype_of(value.type()),
                                            device, value.on_device() ? number : 0));
}

inline nb::object as_scalar(const apl::OwnedValue& value) {
  apl::HostValue host = apl::HostValue::zeros(value.type(), {});
  if (!host.data.empty()) std::memcpy(host.data.data(), value.data(), host.data.size());
  const apl::Scalar scalar = host.at(0);
  if (value.type() == apl::ScalarType::unit) return nb::make_tuple();
  if (value.type() == apl::ScalarType::boolean) return nb::cast(host.data[0] != std::byte{0});
  if (apl::is_float(value.type())) return nb::cast(scalar.as_float());
  if (!apl::is_signed(value.type())) return nb::cast(static_cast<std::uint64_t>(scalar.as_int()));
  return nb::cast(scalar.as_int());
}

inline nb::object as_object(const apl::OwnedValue& value, Like like, int number) {
  if (value.shape().empty()) return as_scalar(value);
  if (like == Like::torch) return as_array<nb::pytorch>(value, number);
  if (like == Like::jax) return as_array<nb::jax>(value, number);
  if (like == Like::dlpack || value.on_device() || value.type() == apl::ScalarType::bf16)
    return as_array<nb::array_api>(value, number);
  return as_array<nb::numpy>(value, number);
}

}  // namespace apl::python
