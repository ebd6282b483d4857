// Tile numbers that make small inputs interesting.
#include <functional>

#include "ir/walk.h"
#include "passes/pipeline.h"
#include "tests/testing.h"

namespace apl::testing {

namespace {

// Each tuning parameter that the kernels of a machine have.
template <class Visit>
void for_each_parameter(const Module& module, Machine machine, Visit visit) {
  Module kernel = module;
  const auto pipeline = parse_pipeline(standard_pipeline(Stage::kernel, machine), PassRegistry::builtin());
  if (!pipeline || !run_pipeline(kernel, *pipeline, {})) return;
  for (const FunctionPtr& function : kernel.functions)
    for_each_stm(*function->body, [&](const Stm& stm) {
      if (const auto* size = get_if<GetSize>(stm)) visit(*size);
    });
}

}  // namespace

std::map<std::string, std::int64_t> small_tiles(const Module& module) {
  std::map<std::string, std::int64_t> numbers;
  for_each_parameter(module, Machine::gpu, [&](const GetSize& size) {
    // Several blocks share what they can.
    if (size.name.find(".blocks") != std::string::npos && size.name.find(".hist") == std::string::npos) {
      numbers[size.name] = 5;
      return;
    }
    // Threads 2, registers 1 and 2 in turn, depth 3.
    const bool threads = size.size_class == SizeClass::tile_size;
    const bool depth = threads && size.name.find(".T_q") != std::string::npos;
    numbers[size.name] = depth ? 3 : threads ? 2 : 1 + static_cast<std::int64_t>(numbers.size() % 4 == 1);
  });
  // On a CPU three threads share what they can.
  for_each_parameter(module, Machine::cpu, [&](const GetSize& size) {
    if (size.size_class == SizeClass::thread_count) numbers[size.name] = 3;
    if (size.name.find(".chunk_from") != std::string::npos) numbers[size.name] = 1;
  });
  return numbers;
}

std::map<std::string, std::int64_t> thresholds(const Module& module, std::int64_t number) {
  std::map<std::string, std::int64_t> numbers;
  for_each_parameter(module, Machine::gpu, [&](const GetSize& size) {
    if (size.size_class == SizeClass::threshold) numbers[size.name] = number;
  });
  return numbers;
}

}  // namespace apl::testing
