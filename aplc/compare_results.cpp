#include "aplc/compare_results.h"

#include <fmt/format.h>

#include "runtime/program/sparse_tiles.h"
#include "tests/testing.h"

namespace aplc {

apl::Status compare_results(const apl::Module& before, const apl::Module& after, const Parameters& parameters) {
  apl::testing::LawOptions options;
  options.parameters = parameters;
  options.tiles = apl::program::tile_maker();
  const apl::testing::Verdict verdict = apl::testing::same_meaning(before, after, options);
  if (verdict) return apl::Unit{};
  if (!verdict.decided)
    return apl::make_error(verdict.code.value_or(apl::Code::command_bad_argument), {},
                           fmt::format("the results cannot be compared: {}", verdict.explanation));
  return apl::make_error(apl::Code::bug_internal, {},
                         fmt::format("the passes changed the program's results: {}", verdict.explanation));
}

}  // namespace aplc
