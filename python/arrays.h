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

// What is wrong with an argument.
inline Failed wrong(std::string message) { return {{bad(std::move(message))}, {}, {}}; }

// For messages: "ndarray of dtype object", "str".
inline std::string described(nb::handle object) {
  std::string text = Py_TYPE(object.ptr())->tp_name;
  text.erase(0, text.rfind('.') + 1);
  if (nb::hasattr(object, "dtype")) text += std::string(" of dtype ") + nb::str(nb::getattr(object, "dtype")).c_str();
  return text;
}

// NumPy's arrays with a mask: their elements alone are not what they mean.
inline void refuse_mask(nb::handle object) {
  if (nb::hasattr(object, "mask") && nb::hasattr(object, "filled"))
    throw wrong("a masked array: entries take no masks; `filled` gives an array without one");
}

// What the array interface of CUDA says, of elements without gaps.
inline void read_cuda_interface(const nb::dict& interface, Given& given) {
  static constexpr std::pair<std::string_view, apl::ScalarType> kKinds[] = {
      {"|i1", apl::ScalarType::i8},  {"<i2", apl::ScalarType::i16}, {"<i4", apl::ScalarType::i32},
      {"<i8", apl::ScalarType::i64}, {"|u1", apl::ScalarType::u8},  {"<u2", apl::ScalarType::u16},
      {"<u4", apl::ScalarType::u32}, {"<u8", apl::ScalarType::u64}, {"<f2", apl::ScalarType::f16},
      {"<f4", apl::ScalarType::f32}, {"<f8", apl::ScalarType::f64}, {"|b1", apl::ScalarType::boolean}};
  auto kind = nb::cast<std::string>(interface["typestr"]);
  // One byte has no order.
  if (kind.size() == 3 && kind[2] == '1') kind[0] = '|';
  const auto known = std::ranges::find(kKinds, kind, [](const auto& one) { return std::string(one.first); });
  if (known == std::end(kKinds)) throw wrong("an array of elements " + kind);
  given.value.type = known->second;
  if (interface.contains("mask") && !interface["mask"].is_none()) throw wrong("an array of a device that has a mask");
  for (const nb::handle size : interface["shape"]) {
    given.value.shape.push_back(nb::cast<std::int64_t>(size));
    if (given.value.shape.back() < 0) throw wrong("an array of a device with a negative size");
  }
  const bool has_elements = std::ranges::find(given.value.shape, 0) == given.value.shape.end();
  if (interface.contains("strides") && !interface["strides"].is_none()) {
    const auto strides = nb::cast<nb::tuple>(interface["strides"]);
    auto step = static_cast<std::int64_t>(apl::byte_size(given.value.type));
    for (std::size_t k = given.value.shape.size(); has_elements && k-- > 0;) {
      if (given.value.shape[k] != 1 && nb::cast<std::int64_t>(strides[k]) != step)
        throw wrong("an array of a device that is not contiguous");
      step *= given.value.shape[k];
    }
  }
  given.value.data = reinterpret_cast<const void*>(nb::cast<std::uintptr_t>(nb::cast<nb::tuple>(interface["data"])[0]));
  if (given.value.data == nullptr && has_elements) throw wrong("an array of a device without memory");
  given.value.on_device = true;
}

// Objects that have __cuda_array_interface__ and no DLPack.
inline bool from_cuda_interface(nb::handle object, Given& given) {
  if (!nb::hasattr(object, "__cuda_array_interface__") || nb::hasattr(object, "__dlpack__")) return false;
  const auto fail = [&](const char* why) {
    throw wrong(std::string("`__cuda_array_interface__` of an object of type ") + Py_TYPE(object.ptr())->tp_name +
                " does not describe an array: " + why);
  };
  try {
    read_cuda_interface(nb::cast<nb::dict>(object.attr("__cuda_array_interface__")), given);
  } catch (const nb::python_error& error) {
    fail(error.what());
  } catch (const std::bad_cast&) {
    fail("a part of it is of another type");
  }
  given.keep = nb::borrow(object);
  return true;
}

inline apl::Scalar number(nb::handle object, apl::ScalarType type) {
  const std::string name(apl::to_text(type));
  nb::object plain = nb::borrow(object);
  try {
    if (nb::hasattr(plain, "item")) plain = plain.attr("item")();
  } catch (const nb::python_error&) {
    throw wrong("a number of type " + name + " is wanted, not several: " + described(object));
  }
  const bool has_index = PyIndex_Check(plain.ptr()) != 0;
  if (type == apl::ScalarType::boolean) {
    if (nb::isinstance<nb::bool_>(plain)) return apl::Scalar::boolean(nb::cast<bool>(plain));
  } else if (apl::is_float(type)) {
    if (has_index || nb::hasattr(plain, "__float__")) {
      const double value = PyFloat_AsDouble(plain.ptr());
      if (value != -1.0 || PyErr_Occurred() == nullptr) return apl::Scalar::floating(type, value);
      PyErr_Clear();
      throw wrong("a number that " + name + " cannot hold");
    }
  } else if (nb::isinstance<nb::int_>(plain)) {
    const nb::int_ given(plain);
    const auto bits = 8 * apl::byte_size(type);
    const nb::int_ low(apl::is_signed(type) ? -(nb::int_(1) << nb::int_(bits - 1)) : nb::object(nb::int_(0)));
    const nb::int_ high(nb::int_(1) << nb::int_(apl::is_signed(type) ? bits - 1 : bits));
    if (given < low || !(given < high)) throw wrong("a number that " + name + " cannot hold");
    return apl::is_signed(type) ? apl::Scalar::integer(type, nb::cast<std::int64_t>(given))
                                : apl::Scalar::from_bits(type, nb::cast<std::uint64_t>(given));
  }
  throw wrong("a number of type " + name + " is wanted, not " + described(object));
}

// Tensors of torch whose gradients would be lost.
inline void refuse_gradient(nb::handle object) {
  if (nb::hasattr(object, "requires_grad") && nb::isinstance<nb::bool_>(object.attr("requires_grad")) &&
      nb::cast<bool>(object.attr("requires_grad")))
    throw wrong("a tensor that requires a gradient: entries have no derivative in torch; call `.detach()` on it");
}

// What to write for an array of another element type; empty where nothing is surely right.
inline std::string conversion(nb::handle object, const std::string& name, apl::ScalarType wanted) {
  const std::string module = nb::cast<std::string>(nb::str(nb::handle(Py_TYPE(object.ptr())).attr("__module__")));
  const std::string package = module.substr(0, module.find('.'));
  if (wanted == apl::ScalarType::unit) return {};
  const std::string short_name(apl::to_text(wanted));
  const std::string type = wanted == apl::ScalarType::boolean ? package == "torch" ? "bool" : "bool_"
                           : wanted == apl::ScalarType::bf16  ? "bfloat16"
                           : apl::is_float(wanted)            ? "float" + short_name.substr(1)
                           : apl::is_signed(wanted)           ? "int" + short_name.substr(1)
                                                              : "uint" + short_name.substr(1);
  if (package == "torch") return "write `" + name + ".to(torch." + type + ")`";
  if (package == "jax" || package == "jaxlib") return "write `" + name + ".astype(jax.numpy." + type + ")`";
  if (package == "numpy" && wanted != apl::ScalarType::bf16) return "write `" + name + ".astype(numpy." + type + ")`";
  return {};
}

inline void take(nb::handle object, const apl::ValueType& wanted, Given& given) {
  refuse_mask(object);
  refuse_gradient(object);
  if (wanted.rank == 0) {
    given.scalar = apl::HostValue::scalar(number(object, wanted.element));
    given.value.type = wanted.element;
    given.value.data = given.scalar.data.data();
    return;
  }
  if (from_cuda_interface(object, given)) return;
  if (!nb::try_cast(object, given.array, false)) throw wrong("no array that apl can read: " + described(object));
  if (!is_contiguous(given.array)) {
    const nb::object dense = nb::hasattr(object, "contiguous")
                                 ? object.attr("contiguous")()
                                 : nb::module_::import_("numpy").attr("ascontiguousarray")(object);
    if (!nb::try_cast(dense, given.array, false) || !is_contiguous(given.array))
      throw wrong("an array that is not contiguous");
  }
  const auto type = scalar_type(given.array.dtype());
  if (!type) throw wrong("an array of elements that apl does not have: " + described(object));
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
