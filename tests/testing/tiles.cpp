// Tile numbers that make small inputs interesting.
#include "ir/walk.h"
#include "passes/pipeline.h"
#include "tests/testing.h"

namespace apl::testing {

std::map<std::string, std::int64_t> small_tiles(const Module& module) {
  std::map<std::string, std::int64_t> numbers;
  Module kernel = module;
  const auto pipeline = parse_pipeline(standard_pipeline(Stage::kernel), PassRegistry::builtin());
  if (!pipeline || !run_pipeline(kernel, *pipeline, {})) return numbers;
  for (const FunctionPtr& function : kernel.functions)
    for_each_stm(*function->body, [&](const Stm& stm) {
      const auto* size = get_if<GetSize>(stm);
      if (!size) return;
      // Several blocks share what they can.
      if (size->name.find(".blocks") != std::string::npos && size->name.find(".hist") == std::string::npos) {
        numbers[size->name] = 5;
        return;
      }
      // Threads 2, registers 1 and 2 in turn, depth 3.
      const bool threads = size->size_class == SizeClass::tile_size;
      const bool depth = threads && size->name.find(".T_q") != std::string::npos;
      numbers[size->name] = depth ? 3 : threads ? 2 : 1 + static_cast<std::int64_t>(numbers.size() % 4 == 1);
    });
  return numbers;
}

}  // namespace apl::testing
