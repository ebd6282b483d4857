// Types: scalars and regular arrays with symbolic shape, and memory blocks at the memory stage.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ir/lmad.h"
#include "ir/poly.h"
#include "ir/scalar.h"

namespace apl {

// Where an array's elements live on a device.
enum class Space : std::uint8_t { global, shared, thread };

// At the memory stage every array is bound to a block through an index function (in elements).
struct MemoryBinding {
  Value block;
  Lmad layout;
  bool operator==(const MemoryBinding&) const = default;
};

struct Type {
  enum class Kind : std::uint8_t { data, memory };

  Kind kind = Kind::data;
  ScalarType element = ScalarType::unit;
  std::vector<Poly> shape{};                      // empty: a scalar
  Space space = Space::global;                    // of a memory block
  std::shared_ptr<const MemoryBinding> memory{};  // memory stage only; not part of type equality
  bool unique = false;                            // `*`: the parameter is consumed, or the result is fresh

  static Type scalar(ScalarType element) { return {.element = element}; }
  static Type array(ScalarType element, std::vector<Poly> shape) {
    return {.element = element, .shape = std::move(shape)};
  }
  static Type block(Space space) { return {.kind = Kind::memory, .space = space}; }

  bool is_scalar() const { return kind == Kind::data && shape.empty(); }
  bool is_array() const { return kind == Kind::data && !shape.empty(); }
  bool is_memory() const { return kind == Kind::memory; }
  std::size_t rank() const { return shape.size(); }

  // The element type of the outermost `n` dims: `[n][m]f32` without one dim is `[m]f32`.
  Type row(std::size_t n = 1) const;
  // An array of `outer` dims whose elements are this.
  Type array_of(const std::vector<Poly>& outer) const;

  // Same kind, element and shape; memory bindings and uniqueness do not count.
  bool same(const Type& other) const;
};

}  // namespace apl
