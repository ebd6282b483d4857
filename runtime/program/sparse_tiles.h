// The tiles of plans as arguments of programs (ir/sparse_soa.h): made by the packer.
#pragma once

#include <functional>
#include <vector>

#include "ir/sparse_arguments.h"
#include "runtime/program/sparse_plans.h"

namespace apl::program {

// By that plan, or by the built-in one. A plan that is for another matrix, or makes no tiles, is run.argument.
Result<HostTiles> pack_tiles(const HostCsr& matrix, const apl_sparse_plan* plan = nullptr);

// Takes for each operand the plan that is for its matrix and for what the program does with it, else the built-in one;
// what becomes of the plans is passed to `see`, whose argument lasts for the call. Errors are those of plans_for.
TileMaker tile_maker(std::vector<GivenPlan> plans = {}, std::function<void(const PlanUse&)> see = {});

}  // namespace apl::program
