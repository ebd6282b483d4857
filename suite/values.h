// Value files, comparison of results with what is expected, and random values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/host_value.h"

namespace apl::suite {

// The text as it is, or unpacked if it is gzip's. Code run.argument if it is damaged.
Result<std::string> unpacked(std::string text);
// What a file holds, likewise; codes of read_bytes, too.
Result<std::string> read_unpacked(const std::string& name);

// All values of a file: text, binary or both, perhaps packed by gzip. `types`: of numbers without a suffix
// (ir/host_value.h). Codes command.no-such-file, run.argument.
Result<std::vector<HostValue>> read_values(const std::string& file, const std::vector<ScalarType>& types = {});

// Nullopt if they are the same, else what differs, in words. Types, shapes and number must agree; integers and bools
// exactly; NaN is equal to NaN, an infinity to itself; other floats may differ by max(0.002, 0.002 * the largest finite
// expected element of the array), as in Futhark; `tolerance`. `accepts` is asked about elements that differ more.
double tolerance(const HostValue& expected);
using Accepts = std::function<bool(std::size_t value, std::int64_t flat)>;
std::optional<std::string> difference(const std::vector<HostValue>& got, const std::vector<HostValue>& expected,
                                      const Accepts& accepts = nullptr);

// Random values, the same on every machine. Element k of a value is made from the k-th number of splitmix64 started at
// `seed`: an integer of [low, high] by multiplying the range with the number as a fraction of 2^64, a float as
// low + (high - low) * (its upper 53 bits / 2^53) rounded to its type, a bool by its highest bit.
// The ranges are all of a type's integers, and [0, 1] for floats, unless `bounds` says otherwise.
struct Bounds {
  Scalar low, high;  // inclusive
};
using AllBounds = std::map<ScalarType, Bounds>;
HostValue random_value(ScalarType type, std::vector<std::int64_t> shape, std::uint64_t seed,
                       const AllBounds& bounds = {});

// `[10][20]f32` and `i32` (random), `5i32`, `[1, 2]` (as they are). Code run.argument.
Result<HostValue> generate_value(std::string_view type_or_value, std::uint64_t seed, const AllBounds& bounds = {});

// Several of them, with blanks between, as the random inputs of test blocks: each starts at the seed.
Result<std::vector<HostValue>> generate_values(std::string_view types_or_values, std::uint64_t seed = 1);

}  // namespace apl::suite
