// The fields of every operation, listed once: what walks, substitutes, compares, numbers or prints operations in
// general goes over these lists, so that a new field is known everywhere. A list that leaves a field out does not
// compile, and neither does a walk that meets a type of field it does not know.
//
// The type of a field says its role: Binder, OptionalBinder and Binders are bound by the operation, other Values,
// Operands, Polys and what holds them are read, a BodyPtr is a nested body. Binders are in scope in the next nested
// body.
#pragma once

#include <concepts>
#include <optional>
#include <type_traits>
#include <variant>
#include <vector>

#include "ir/op.h"

namespace apl {

// Structs that consist of their fields, below an operation too.
template <class T>
inline constexpr bool is_record = false;

namespace detail {

template <class F, class... Fields>
constexpr void each(F& f, Fields&... fields) {
  (f(fields), ...);
}

template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_variant = false;
template <class... T>
inline constexpr bool is_variant<std::variant<T...>> = true;
template <>
inline constexpr bool is_variant<Op> = true;

}  // namespace detail

// for_each_field(record, f): f(field) for each field in the order of declaration; of a const record they are const.
#define APL_FIELDS(Record, ...)                         \
  template <>                                           \
  inline constexpr bool is_record<Record> = true;       \
  template <class R, class F>                           \
  requires std::same_as<std::remove_const_t<R>, Record> \
  constexpr void for_each_field(R& record, F&& f) {     \
    auto& [__VA_ARGS__] = record;                       \
    detail::each(f, __VA_ARGS__);                       \
  }

// Pieces of operations.
APL_FIELDS(Lambda, params, body)
APL_FIELDS(DimIndex, start, count, stride)
APL_FIELDS(ReduceOp, op, neutral, commutative, scan)
APL_FIELDS(SegDim, index, bound)
APL_FIELDS(TileExtent::Part, axis, bound)
APL_FIELDS(TileExtent, bound, tile, reg, split)
APL_FIELDS(KernelResult, kind, extents)
APL_FIELDS(TileGuard::Part, bound, stride)
APL_FIELDS(TileGuard, start, bound, split)
APL_FIELDS(TileAffine, start, strides)
APL_FIELDS(TileCondition, at, bound)
APL_FIELDS(TileGather, positions, at, stride)
APL_FIELDS(TileRead, array, at)
APL_FIELDS(TileDim, tile, reg)
APL_FIELDS(TileOperand, tile, axes)
APL_FIELDS(Schedule::Dim, role, size, tile, reg)
APL_FIELDS(Schedule::Operand, name, element, strides, conditions, gathers, copy_bytes, swizzled)
APL_FIELDS(Schedule, unit, parameters, dims, operands, remainder, stages, tiles_per_block, splits)
APL_FIELDS(SparseSchedule::Dim, role, size)
APL_FIELDS(SparseSchedule::Operand, array, offset, strides)
APL_FIELDS(SparseSchedule::Sections, key, rows, columns, pieces)
APL_FIELDS(SparseSchedule, family, sections, matrix, why, dims, operands)

APL_FIELDS(Choose::Alternative, name, condition, body)

// Operations.
APL_FIELDS(Use, x)
APL_FIELDS(Unary, op, x)
APL_FIELDS(Binary, op, x, y)
APL_FIELDS(Compare, op, x, y)
APL_FIELDS(Convert, to, x, same_bits)
APL_FIELDS(SizeExpr, value)
APL_FIELDS(Index, array, dims, checked)
APL_FIELDS(Update, array, dims, value, checked)
APL_FIELDS(Iota, element, count, start, stride)
APL_FIELDS(Replicate, shape, value)
APL_FIELDS(Scratch, element, shape)
APL_FIELDS(Copy, array)
APL_FIELDS(Rearrange, array, permutation)
APL_FIELDS(Manifest, array, permutation)
APL_FIELDS(Reshape, array, shape)
APL_FIELDS(ArrayLit, element, elements)
APL_FIELDS(Assert, condition, message)
APL_FIELDS(If, condition, then_body, else_body)
APL_FIELDS(Choose, by, parameter, alternatives)
APL_FIELDS(Loop, params, initial, index, bound, body)
APL_FIELDS(Apply, function, arguments)
APL_FIELDS(GetSize, name, size_class, default_value)
APL_FIELDS(Screma, widths, indices, inputs, map, reduces)
APL_FIELDS(Scatter, widths, indices, inputs, map, rank, targets, op)
APL_FIELDS(Derivative, mode, arguments, seeds, function)
APL_FIELDS(SegOp, level, space, body, results, schedule, sparse, team, rows, blocks)
APL_FIELDS(SharedArray, element, layout)
APL_FIELDS(CopyTile, target, source, window, guards, where, gathers, pad, also, map)
APL_FIELDS(TileContract, space, depth, accumulators, operands, map, reduce)
APL_FIELDS(Alloc, bytes, space)

#undef APL_FIELDS

// Fields that name no value: numbers, words, choices.
template <class T>
concept PlainField = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::same_as<T, std::string>;

// Calls f(leaf) for all that a field holds, in order, with records, lists, optionals and variants opened: plain fields,
// Value, Operand, Poly, Lmad, Type, Binder, Binders, BodyPtr.
template <class T, class F>
void for_each_leaf(T& field, const F& f) {
  using Field = std::remove_const_t<T>;
  if constexpr (is_record<Field>) {
    for_each_field(field, [&](auto& inner) { for_each_leaf(inner, f); });
  } else if constexpr (detail::is_list<Field>) {
    for (auto& item : field) for_each_leaf(item, f);
  } else if constexpr (detail::is_optional<Field>) {
    if (field) for_each_leaf(*field, f);
  } else if constexpr (detail::is_variant<Field>) {
    std::visit([&](auto& held) { for_each_leaf(held, f); }, field);
  } else if constexpr (!std::same_as<Field, std::monostate>) {
    f(field);
  }
}

// A walk over some leaves: what the walk does not say of plain fields, binders and bodies is to leave them alone.
// Everything else has to be said.
struct UsesOnly {
  void operator()(const PlainField auto&) const {}
  void operator()(const Binder&) const {}
  void operator()(const OptionalBinder&) const {}
  void operator()(const Binders&) const {}
  void operator()(const BodyPtr&) const {}
};

}  // namespace apl
