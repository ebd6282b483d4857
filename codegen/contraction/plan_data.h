// A tiled contraction as data for the choice of plans (machine/tiles/plan.h), while sizes are still symbols.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/module.h"
#include "ir/schedule.h"

struct apl_contraction;
struct apl_device;
struct apl_forced;
struct apl_plan;

namespace apl {

// An operand whose elements are computed while its tiles are copied; no instructions: it is copied as it is.
struct ComputedOperand {
  int instructions = 0, read_bytes = 0;  // of an element
  std::array<int, 2> row_numbers{};      // positions in further arrays that differ from row to row of M, and of N
};

struct PlanData {
  Location location;
  Schedule schedule;
  std::size_t space_rank = 0;
  int result_bytes = 0, widest_result = 0, accumulator_bytes = 0;
  int epilogue_arrays = 0;        // that the epilogue reads
  int stored_sum_bytes = 0;       // a sum, if the epilogue is done where results are stored; else 0
  int copies = 0;                 // operands that kernels of the same alternative transpose or align before
  bool parts_transposed = false;  // those of the alternative `split` are of transposed operands
  int matrix_products = 0;        // of matrix units for one of the contraction's; 0: it is none for them
  Poly copied_bytes;              // what those kernels write
  double operations = 1;
  std::vector<ComputedOperand> computed;  // one an operand
  std::string parameters;                 // what the names of its parameters begin with: "mm."

  const std::vector<Schedule::Dim>& dims() const { return schedule.dims; }
  // Into how many parts the reduction is split, if it is: a symbol.
  Value splits() const { return parameter_of(schedule.splits); }
  // The parameters that are not in `given`, and what the sizes and strides are made of.
  std::set<Value> symbols() const;
};

// Of a kernel with a schedule, at kernel or memory stage; nothing if it has none, or is beyond what the model of tiles
// looks at (ranks, operands).
std::optional<PlanData> plan_data(const Stm& stm, const Function& function);

// With numbers for the symbols.
void fill_in(const PlanData& data, const std::function<std::int64_t(Value)>& value_of, apl_contraction& contraction);

// Numbers of the data's parameters that are given by name, and those of the mainloop ("mm.stages").
void forced_numbers(const PlanData& data, const Function& function, const std::map<std::string, std::int64_t>& given,
                    apl_forced& forced);

// At most `most` plans for sizes of all kinds, or for those that are constants.
std::vector<apl_plan> covering_plans(const PlanData& data, const apl_forced& forced, const apl_device& device,
                                     int most);

// The plans of a program's kernels: those that are listed by number ("mm.plan1.T_a", "mm.plan1.stages"; what is not
// said is 1), else those that cover sizes of all kinds. Parts of a split reduction have eight at most.
std::vector<apl_plan> program_plans(const PlanData& data, const Function& function,
                                    const std::map<std::string, std::int64_t>& given, const apl_forced& forced,
                                    const apl_device& device, int most);

// The best plan for these sizes, by name, then those that a program would choose among, the cheapest first. Where a
// size is missing all are large.
std::vector<apl_plan> plans_by_price(const PlanData& data, const Function& function, const apl_forced& forced,
                                     const apl_device& device, const std::map<std::string, std::int64_t>& sizes);

// "mm.T_a" by what its get_size says; empty if there is none for it.
std::string parameter_name(const Function& function, Value value);

// What the model says against numbers that are given, with what would work.
std::string refusal_text(const PlanData& data, const Function& function, const apl_contraction& contraction,
                         const apl_forced& forced, const apl_device& device);
// Numbers that were given and cannot work on the device, whatever the sizes are: command.bad-parameter.
std::optional<Diagnostic> refuse_given(const PlanData& data, const Function& function, const apl_forced& forced,
                                       const apl_device& device);

}  // namespace apl
