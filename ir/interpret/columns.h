// Lambdas of scalar code, run for many indices at a time: each variable is a column with a lane for each index, and
// each statement a loop over the lanes. The meaning is that of ir/scalar.h. Where a lane fails, nothing has happened
// yet: the caller runs these indices one by one, and that says what is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/interpret/storage.h"
#include "ir/module.h"

namespace apl::interpreter {

constexpr std::size_t kLanes = 256;

// The elements lie side by side, each in the bytes of its type.
class Column {
 public:
  explicit Column(ScalarType type) : type_(type), bytes_(kLanes * static_cast<std::size_t>(byte_size(type))) {}

  ScalarType type() const { return type_; }
  std::byte* data() { return bytes_.data(); }
  const std::byte* data() const { return bytes_.data(); }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes_.data());
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(bytes_.data());
  }

  Scalar get(std::size_t lane) const;
  void set(std::size_t lane, const Scalar& value);
  void fill(const Scalar& value);  // in all lanes

 private:
  ScalarType type_;
  std::vector<std::byte> bytes_;
};

struct ColumnStep {
  enum class Kind : std::uint8_t { unary, binary, compare, convert, check, element };
  Kind kind = Kind::check;
  UnaryOp unary{};
  BinaryOp binary{};
  CompareOp compare{};
  bool same_bits = false;
  std::size_t target = 0, x = 0, y = 0;  // columns
  std::size_t array = 0;                 // of an element: which of the code's arrays
  std::vector<std::size_t> dims;         // and the columns of its indices
};

// An array that the lambda reads by index: one from outside, or the rows of an input.
struct ColumnArray {
  Value value;
  std::optional<std::size_t> input;
};

// A lambda as steps over columns.
struct ColumnCode {
  static constexpr std::size_t kNone = ~std::size_t{0};

  std::vector<ScalarType> types;                          // of the columns
  std::vector<std::pair<std::size_t, Operand>> uniforms;  // columns that hold one value in all lanes
  std::vector<std::size_t> indices;                       // columns of the indices; kNone: not read
  std::vector<std::size_t> params;                        // and of the parameters; kNone: not read, or a row
  std::vector<ColumnArray> arrays;
  std::vector<ColumnStep> steps;
  std::vector<std::size_t> results;
};

// nullopt if there is more in it than scalar code and elements of arrays.
std::optional<ColumnCode> compile_columns(const std::vector<Value>& indices, const Lambda& lambda,
                                          const ValueTable& values);

// An array as the steps read it: row_major or not, all of it in its storage and defined.
struct ColumnSource {
  const std::byte* bytes = nullptr;
  const std::int64_t* starts = nullptr;  // of the row of each lane; null: `start` for all
  std::int64_t start = 0;
  std::vector<Dim> dims;
};

// All steps for `lanes` lanes; false if one of them fails.
bool run_columns(const ColumnCode& code, const std::vector<ColumnSource>& sources, std::size_t lanes,
                 std::vector<Column>& columns);

// lane[k] = the element at start + k*stride, or at starts[k]. Every NaN becomes the one that there is.
void load_lanes(const std::byte* bytes, std::int64_t start, std::int64_t stride, std::size_t lanes, Column& to);
void load_lanes(const std::byte* bytes, const std::int64_t* starts, std::size_t lanes, Column& to);

// The single operation of an operator that has no more: its result in all lanes, from `start` on; `flipped` if the
// element comes first. Gives what it has at the end. With `running` also what it has after each lane.
Scalar fold_lanes(BinaryOp op, bool flipped, const Scalar& start, const Column& elements, std::size_t lanes,
                  Column* running);
// Whether fold_lanes knows it.
bool folds_lanes(BinaryOp op, ScalarType type);

}  // namespace apl::interpreter
