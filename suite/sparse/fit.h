// Fits the figures of a device's record to measured sparse products: the model is that of runtime/sparse itself
// (device_cost.c), whose numbers are varied until it errs least.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine/tiles/plan.h"
#include "runtime/sparse/device_operand.h"

namespace apl::sparse {

// A product that ran: of SpMM if `packed` has rows, else of SDDMM. Shapes are without their arrays.
struct RanProduct {
  std::string name;
  std::int32_t type = 0;
  std::int64_t width = 0;
  apl_sparse_options options{};  // what ran: lanes, split and so on
  apl_sparse_packed packed{};
  apl_sparse_sddmm_packed samples{};
  double microseconds = 0;
};

// Microseconds, by the model with this device's figures.
double predicted(const apl_device& device, const RanProduct& sample);
// Root mean square of the logarithms of predicted over measured times.
double error_of(const apl_device& device, const std::vector<RanProduct>& samples);

// A figure of the record that the model of sparse products takes.
struct Figure {
  const char* name;
  double apl_device::*value;
};
const std::vector<Figure>& figures();

struct Fit {
  apl_device device;
  std::vector<Figure> fitted;  // those that the samples depend on
};
// From the figures of `start`, to which those stay near that the samples hardly depend on.
Fit fit(const apl_device& start, const std::vector<RanProduct>& samples);

}  // namespace apl::sparse
