// The loops over the lanes. The usual operations and types have loops of their own; all others ask ir/scalar.h for each
// lane, so that the meaning is the same.
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ir/interpret/columns.h"
#include "ir/scalar.h"

namespace apl::interpreter {
namespace {

// Calls `visit` with a number of the C++ type that holds the type's values; false for floats of 16 bits and bool.
template <class Visit>
bool with_type(ScalarType type, const Visit& visit) {
  switch (type) {
    case ScalarType::i8: return visit(std::int8_t{});
    case ScalarType::i16: return visit(std::int16_t{});
    case ScalarType::i32: return visit(std::int32_t{});
    case ScalarType::i64: return visit(std::int64_t{});
    case ScalarType::u8: return visit(std::uint8_t{});
    case ScalarType::u16: return visit(std::uint16_t{});
    case ScalarType::u32: return visit(std::uint32_t{});
    case ScalarType::u64: return visit(std::uint64_t{});
    case ScalarType::f32: return visit(float{});
    case ScalarType::f64: return visit(double{});
    default: return false;
  }
}

// The one NaN of its type.
template <class T>
T canonical(T x) {
  if constexpr (std::is_floating_point_v<T>) return x != x ? std::numeric_limits<T>::quiet_NaN() : x;
  return x;
}

// The operation as a function of two numbers, if it has a loop: no division of integers, which can fail.
template <class T, class Visit>
bool with_operation(BinaryOp op, const Visit& visit) {
  constexpr bool kFloat = std::is_floating_point_v<T>;
  using Wrapping = typename std::conditional_t<kFloat, std::type_identity<T>, std::make_unsigned<T>>::type;
  const auto wrapped = [](auto f) {
    return [f](T a, T b) { return static_cast<T>(f(static_cast<Wrapping>(a), static_cast<Wrapping>(b))); };
  };
  switch (op) {
    case BinaryOp::add: return visit(wrapped([](Wrapping a, Wrapping b) { return a + b; }));
    case BinaryOp::sub: return visit(wrapped([](Wrapping a, Wrapping b) { return a - b; }));
    case BinaryOp::mul:
      if constexpr (sizeof(T) == 2 && !kFloat)  // 16 bits are multiplied as int, which could overflow
        return visit(
            [](T a, T b) { return static_cast<T>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b)); });
      else
        return visit(wrapped([](Wrapping a, Wrapping b) { return a * b; }));
    case BinaryOp::min:
      if constexpr (kFloat) return visit([](T a, T b) { return smaller_number(a, b); });
      return visit([](T a, T b) { return a < b ? a : b; });
    case BinaryOp::max:
      if constexpr (kFloat) return visit([](T a, T b) { return larger_number(a, b); });
      return visit([](T a, T b) { return a < b ? b : a; });
    default: break;
  }
  if constexpr (kFloat) {
    if (op == BinaryOp::div) return visit([](T a, T b) { return a / b; });
  } else {
    if (op == BinaryOp::conj) return visit([](T a, T b) { return static_cast<T>(a & b); });
    if (op == BinaryOp::disj) return visit([](T a, T b) { return static_cast<T>(a | b); });
    if (op == BinaryOp::exor) return visit([](T a, T b) { return static_cast<T>(a ^ b); });
  }
  return false;
}

bool quick_binary(BinaryOp op, const Column& x, const Column& y, std::size_t lanes, Column& to) {
  const bool logic = op == BinaryOp::conj || op == BinaryOp::disj || op == BinaryOp::exor;
  const bool bytes = x.type() == ScalarType::boolean && logic;
  return with_type(bytes ? ScalarType::u8 : x.type(), [&]<class T>(T) {
    return with_operation<T>(op, [&](auto f) {
      const T* a = x.as<T>();
      const T* b = y.as<T>();
      T* r = to.as<T>();
      for (std::size_t k = 0; k < lanes; ++k) r[k] = canonical<T>(f(a[k], b[k]));
      return true;
    });
  });
}

bool quick_compare(CompareOp op, const Column& x, const Column& y, std::size_t lanes, Column& to) {
  return with_type(x.type(), [&]<class T>(T) {
    const T* a = x.as<T>();
    const T* b = y.as<T>();
    auto* r = to.as<std::uint8_t>();
    const auto loop = [&](auto f) {
      for (std::size_t k = 0; k < lanes; ++k) r[k] = f(a[k], b[k]) ? 1 : 0;
      return true;
    };
    switch (op) {
      case CompareOp::eq: return loop([](T p, T q) { return p == q; });
      case CompareOp::ne: return loop([](T p, T q) { return p != q; });
      case CompareOp::lt: return loop([](T p, T q) { return p < q; });
      case CompareOp::le: return loop([](T p, T q) { return p <= q; });
    }
    return false;
  });
}

// Between numbers, where C++ converts as the IR does; not from floats to integers, and not where bits stay.
bool quick_convert(const Column& x, std::size_t lanes, Column& to) {
  return with_type(x.type(), [&]<class From>(From) {
    return with_type(to.type(), [&]<class To>(To) {
      if constexpr (std::is_floating_point_v<From> && !std::is_floating_point_v<To>) {
        return false;
      } else {
        const From* a = x.as<From>();
        To* r = to.as<To>();
        for (std::size_t k = 0; k < lanes; ++k) r[k] = canonical<To>(static_cast<To>(a[k]));
        return true;
      }
    });
  });
}

template <class Evaluate>
bool each_lane(std::size_t lanes, Column& to, const Evaluate& evaluate) {
  for (std::size_t k = 0; k < lanes; ++k) {
    const std::optional<Scalar> result = evaluate(k);
    if (!result) return false;
    to.set(k, *result);
  }
  return true;
}

template <class Position>
void load(const std::byte* bytes, std::size_t lanes, Column& to, const Position& position) {
  const bool plain = with_type(to.type(), [&]<class T>(T) {
    T* r = to.as<T>();
    for (std::size_t k = 0; k < lanes; ++k) {
      T x;
      std::memcpy(&x, bytes + position(k) * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
      r[k] = canonical<T>(x);
    }
    return true;
  });
  if (plain) return;
  const int width = byte_size(to.type());
  for (std::size_t k = 0; k < lanes; ++k) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes + position(k) * width, static_cast<std::size_t>(width));
    to.set(k, Scalar::from_bits(to.type(), bits));
  }
}

bool load_elements(const ColumnStep& step, const ColumnSource& source, std::size_t lanes,
                   std::vector<Column>& columns) {
  std::int64_t positions[kLanes];
  for (std::size_t k = 0; k < lanes; ++k) positions[k] = source.starts ? source.starts[k] : source.start;
  bool inside = true;
  for (std::size_t d = 0; d < step.dims.size(); ++d) {
    const auto* at = columns[step.dims[d]].as<std::int64_t>();
    const Dim dim = source.dims[d];
    for (std::size_t k = 0; k < lanes; ++k) {
      inside = inside && at[k] >= 0 && at[k] < dim.size;
      positions[k] += at[k] * dim.stride;
    }
    if (!inside) return false;
  }
  load_lanes(source.bytes, positions, lanes, columns[step.target]);
  return true;
}

bool run_step(const ColumnStep& step, const std::vector<ColumnSource>& sources, std::size_t lanes,
              std::vector<Column>& columns) {
  using Kind = ColumnStep::Kind;
  if (step.kind == Kind::element) return load_elements(step, sources[step.array], lanes, columns);
  const Column& x = columns[step.x];
  if (step.kind == Kind::check) {
    for (std::size_t k = 0; k < lanes; ++k)
      if (x.as<std::uint8_t>()[k] == 0) return false;
    return true;
  }
  Column& to = columns[step.target];
  const Column& y = columns[step.y];
  switch (step.kind) {
    case Kind::unary: return each_lane(lanes, to, [&](std::size_t k) { return evaluate(step.unary, x.get(k)); });
    case Kind::binary:
      return quick_binary(step.binary, x, y, lanes, to) ||
             each_lane(lanes, to, [&](std::size_t k) { return evaluate(step.binary, x.get(k), y.get(k)); });
    case Kind::compare:
      return quick_compare(step.compare, x, y, lanes, to) ||
             each_lane(lanes, to, [&](std::size_t k) { return evaluate(step.compare, x.get(k), y.get(k)); });
    default:
      return (!step.same_bits && quick_convert(x, lanes, to)) || each_lane(lanes, to, [&](std::size_t k) {
               return std::optional(convert(x.get(k), to.type(), step.same_bits));
             });
  }
}

}  // namespace

Scalar Column::get(std::size_t lane) const {
  const auto width = static_cast<std::size_t>(byte_size(type_));
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes_.data() + lane * width, width);
  return Scalar::from_bits(type_, bits);
}

void Column::set(std::size_t lane, const Scalar& value) {
  const auto width = static_cast<std::size_t>(byte_size(type_));
  const std::uint64_t bits = value.bits();
  std::memcpy(bytes_.data() + lane * width, &bits, width);
}

void Column::fill(const Scalar& value) {
  set(0, value);
  const auto width = static_cast<std::size_t>(byte_size(type_));
  for (std::size_t done = 1; done < kLanes; done *= 2) std::memcpy(data() + done * width, data(), done * width);
}

bool run_columns(const ColumnCode& code, const std::vector<ColumnSource>& sources, std::size_t lanes,
                 std::vector<Column>& columns) {
  for (const ColumnStep& step : code.steps)
    if (!run_step(step, sources, lanes, columns)) return false;
  return true;
}

void load_lanes(const std::byte* bytes, std::int64_t start, std::int64_t stride, std::size_t lanes, Column& to) {
  if (stride == 1) {
    const bool copied = with_type(to.type(), [&]<class T>(T) {
      T* r = to.as<T>();
      std::memcpy(r, bytes + start * static_cast<std::int64_t>(sizeof(T)), lanes * sizeof(T));
      for (std::size_t k = 0; k < lanes && std::is_floating_point_v<T>; ++k) r[k] = canonical<T>(r[k]);
      return true;
    });
    if (copied) return;
  }
  load(bytes, lanes, to, [&](std::size_t k) { return start + static_cast<std::int64_t>(k) * stride; });
}

void load_lanes(const std::byte* bytes, const std::int64_t* starts, std::size_t lanes, Column& to) {
  load(bytes, lanes, to, [&](std::size_t k) { return starts[k]; });
}

bool folds_lanes(BinaryOp op, ScalarType type) {
  return with_type(type, [&]<class T>(T) { return with_operation<T>(op, [](auto) { return true; }); });
}

Scalar fold_lanes(BinaryOp op, bool flipped, const Scalar& start, const Column& elements, std::size_t lanes,
                  Column* running) {
  std::uint64_t bits = start.bits();
  with_type(start.type(), [&]<class T>(T) {
    return with_operation<T>(op, [&](auto f) {
      const T* x = elements.as<T>();
      T sum;
      std::memcpy(&sum, &bits, sizeof sum);
      if (!flipped && running == nullptr) {
        for (std::size_t k = 0; k < lanes; ++k) sum = f(sum, x[k]);
      } else {
        for (std::size_t k = 0; k < lanes; ++k) {
          sum = flipped ? f(x[k], sum) : f(sum, x[k]);
          if (running != nullptr) running->as<T>()[k] = canonical<T>(sum);
        }
      }
      sum = canonical<T>(sum);
      bits = 0;
      std::memcpy(&bits, &sum, sizeof sum);
      return true;
    });
  });
  return Scalar::from_bits(start.type(), bits);
}

}  // namespace apl::interpreter
