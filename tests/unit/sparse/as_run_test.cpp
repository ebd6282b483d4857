// Plans as kernels for GPUs run them.
#include "passes/sparse/as_run.h"

#include <doctest/doctest.h>

#include "passes/sparse/profile.h"
#include "passes/sparse/search.h"
#include "runtime/sparse/device_operand.h"
#include "tests/unit/sparse/matrices.h"
#include "tests/unit/sparse/tiles.h"

namespace apl::sparse {
namespace {

namespace test = apl::sparse_test;

CostModel model_of(std::int64_t bytes) { return {*builtin_profile("h200"), {Operator::spmm, 128, bytes}, 128}; }

TEST_CASE("as_run: every 32 rows with a selection are windows of the height that has most rows") {
  const std::vector<GroupPlan> groups{{{{16, 1, 4}, {8, 0, 2}}, Remainder::ell},  // both in the first half
                                      {{}, Remainder::segment},
                                      {{{64, 0, 3}}, Remainder::ell}};
  const auto run = as_run(groups, Operator::spmm, model_of(2));
  REQUIRE(run.size() == 3);
  CHECK(run[0].selections == std::vector<Selection>{{32, 0, 1}});  // 64 rows count as 32
  CHECK(run[1] == groups[1]);
  CHECK(run[2].selections == std::vector<Selection>{{32, 0, 1}, {32, 1, 1}});
  // In f32 there are windows of 8 and 16.
  const auto wide = as_run(groups, Operator::spmm, model_of(4));
  CHECK(wide[0].selections == std::vector<Selection>{{16, 0, 1}, {16, 1, 1}});
  CHECK(wide[2].selections == std::vector<Selection>{{16, 0, 1}, {16, 1, 1}, {16, 2, 1}, {16, 3, 1}});
}

TEST_CASE("as_run: what runs is run as it is") {
  for (const Operator op : {Operator::spmm, Operator::sddmm}) {
    const std::vector<GroupPlan> groups{{{{8, 3, 2}}, Remainder::ell}, {{{8, 6, 1}}, Remainder::segment}};
    const auto once = as_run(groups, op, model_of(2));
    CHECK(as_run(once, op, model_of(2)) == once);
  }
}

TEST_CASE("as_run: samples are all in windows, or a list") {
  const std::vector<GroupPlan> some{{{{8, 3, 2}}, Remainder::ell}, {}};
  CHECK(as_run(some, Operator::sddmm, model_of(2))[1].selections.size() == 8);
  const std::vector<GroupPlan> few{{{{8, 3, 2}}, Remainder::ell}, {}, {}};
  for (const GroupPlan& group : as_run(few, Operator::sddmm, model_of(2)))
    CHECK(group == GroupPlan{{}, Remainder::segment});
}

TEST_CASE("as_run: kernels have as many windows, and gather as many rows, as the plan of a search says") {
  for (const std::string& kind : test::kinds()) {
    CAPTURE(kind);
    const Csr matrix = test::random_matrix(kind, 200, 11);
    SearchOptions options;
    options.problem = {Operator::spmm, 64, 2};
    options.as_run = true;
    options.measure = [](const Plan& plan) { return plan.dense ? 0 : plan.cost; };
    const Plan plan = search(matrix, *builtin_profile("h200"), options);
    const auto parsed = test::parse_plan(to_text(plan));
    REQUIRE(parsed);
    std::int64_t windows = 0, height = 0;
    for (std::size_t group = 0; group < plan.groups.size(); ++group)
      for (const Selection& selection : plan.groups[group].selections) {
        CHECK(selection.threshold == 1);
        height = selection.height;
        windows += static_cast<std::int64_t>(group) * kGroupRows + selection.window * selection.height < matrix.rows;
      }
    apl_sparse_packed* packed = nullptr;
    const apl_sparse_csr csr = csr_view(matrix);
    REQUIRE(apl_sparse_packed_make(&csr, parsed.get(), &test::h200(), APL_F16, 64, nullptr, &packed) ==
            APL_SPARSE_FINE);
    CHECK(packed->windows == windows);
    CHECK(8 * packed->parts == height);
    apl_sparse_packed_free(packed);
  }
}

}  // namespace
}  // namespace apl::sparse
