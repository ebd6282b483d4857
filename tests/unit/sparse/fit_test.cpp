// Figures of a record from measured products, where the measurements are the model's own.
#include "suite/sparse/fit.h"

#include <doctest/doctest.h>

#include <cmath>

#include "ir/scalar.h"
#include "machine/target/records.h"

namespace apl::sparse {
namespace {

// Rows that are gathered, by 16 lanes each.
RanProduct rows_of(std::int64_t rows, std::int64_t length, std::int64_t width) {
  RanProduct ran;
  ran.type = static_cast<std::int32_t>(ScalarType::f16);
  ran.width = width;
  ran.options.lanes = 16;
  ran.options.ahead = -1;
  ran.options.staged = -1;
  ran.packed.rows = ran.packed.columns = rows;
  ran.packed.nonzeros = ran.packed.row_elements = rows * length;
  ran.packed.records = static_cast<std::int32_t>(rows);
  ran.packed.longest[2] = static_cast<std::int32_t>(length);
  ran.packed.statistics.mean = static_cast<double>(length);
  return ran;
}

RanProduct windows_of(int height, std::int64_t rows, std::int32_t steps, std::int64_t width, int split) {
  RanProduct ran = rows_of(rows, 0, width);
  ran.options = {};
  ran.options.split = split;
  ran.packed.nonzeros = rows * steps * 8;
  ran.packed.records = 0;
  ran.packed.row_elements = 0;
  ran.packed.parts = height / 8;
  ran.packed.windows = static_cast<std::int32_t>(rows / height);
  ran.packed.steps = static_cast<std::int64_t>(ran.packed.windows) * steps;
  ran.packed.units = ran.packed.steps * ran.packed.parts;
  ran.packed.longest_window = steps;
  return ran;
}

std::vector<RanProduct> products(const apl_device& device) {
  std::vector<RanProduct> all;
  for (const std::int64_t width : {64, 128, 512})
    for (const std::int64_t rows : {2048, 16384, 65536})
      for (const std::int64_t length : {4, 16, 256}) {
        all.push_back(rows_of(rows, length, width));
        for (const int height : {8, 16})
          for (const int split : {1, 4})
            all.push_back(windows_of(height, rows, static_cast<std::int32_t>(length / 4), width, split));
      }
  for (RanProduct& ran : all) ran.microseconds = predicted(device, ran);
  return all;
}

TEST_CASE("figures that products were made by are found again") {
  const apl_device start = *find_device("h200");
  apl_device other = start;
  other.sparse_launch *= 1.4;
  other.sparse_rows_megabyte *= 1.6;
  other.sparse_rows_megabyte_far *= 0.7;
  other.sparse_windows_megabyte *= 1.3;
  other.sparse_windows_step_8 *= 0.6;
  const std::vector<RanProduct> all = products(other);
  CHECK(error_of(start, all) > 0.1);
  const Fit found = fit(start, all);
  CHECK(error_of(found.device, all) < 0.01);
  CHECK(found.device.sparse_launch == doctest::Approx(other.sparse_launch).epsilon(0.03));
  CHECK(found.device.sparse_rows_megabyte == doctest::Approx(other.sparse_rows_megabyte).epsilon(0.05));
  CHECK(found.device.sparse_windows_megabyte == doctest::Approx(other.sparse_windows_megabyte).epsilon(0.05));
}

TEST_CASE("figures that no product depends on stay as they are") {
  const apl_device start = *find_device("h200");
  apl_device other = start;
  other.sparse_rows_megabyte *= 2;
  const std::vector<RanProduct> all = products(other);
  const Fit found = fit(start, all);
  CHECK(found.device.sparse_staged_round == start.sparse_staged_round);
  CHECK(found.device.sddmm_list_round == start.sddmm_list_round);
  for (const Figure& figure : found.fitted) CHECK(std::string(figure.name) != "sparse_staged_round");
}

}  // namespace
}  // namespace apl::sparse
