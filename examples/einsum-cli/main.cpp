// einsum [--check | --c | --cuda | --ir] ij,jk->ik: what apl makes of a sum in Einstein's notation.
//   (nothing)  what the passes say of it
//   --check    the optimised program gives the same results as the sum written out, on random arguments
//   --c        a C library        --cuda  one CUDA file with a function that launches the kernel
//   --ir       the IR before the passes
#include <cstring>
#include <iostream>

#include <apl/codegen/emit/kernel_file.h>
#include <apl/codegen/emit/library.h>
#include <apl/ir/print.h>
#include <apl/passes/pipeline.h>
#include <apl/testing.h>

#include "einsum.h"

namespace {

int fail(const apl::Diagnostic& error) {
  std::cerr << apl::render(error, "einsum", "");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::cerr << "usage: einsum [--check | --c | --cuda | --ir] ij,jk->ik\n", 64;
  const std::string mode = argc > 2 ? argv[1] : "";
  const auto made = einsum(argv[argc - 1]);
  if (!made) return fail(made.error());
  if (mode == "--ir") return std::cout << apl::print(*made), 0;

  const apl::Machine machine = mode == "--c" ? apl::Machine::cpu : apl::Machine::gpu;
  const auto pipeline =
      apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory, machine), apl::PassRegistry::builtin());
  if (!pipeline) return fail(pipeline.error());
  apl::PipelineOptions options;
  if (mode.empty())
    options.remarks = [](const apl::Remark& remark) { std::cout << apl::render(remark, "einsum") << '\n'; };
  apl::Module module = *made;
  if (const auto status = apl::run_pipeline(module, *pipeline, options); !status) return fail(status.error());

  if (mode == "--check") {
    const auto same = apl::testing::same_meaning(*made, module);
    if (!same) return std::cerr << "error: " << same.explanation << '\n', 1;
    std::cout << "same results as the sum written out\n";
  } else if (mode == "--c") {
    const auto library = apl::generate_library(module, apl::c_target(), {}, {.name = "einsum", .version = "0"});
    if (!library) return fail(library.error());
    std::cout << library->source;
  } else if (mode == "--cuda") {
    const auto kernels = apl::generate_kernel_file(module, "einsum", {});
    if (!kernels) return fail(kernels.error());
    std::cout << kernels->text;
  } else if (!mode.empty()) {
    return std::cerr << "einsum: there is no option " << mode << '\n', 64;
  }
}
