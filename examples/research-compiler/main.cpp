// research-compiler FILE.toy NAME: a compiler for a little language, with apl behind its tree.
// Writes NAME.c and NAME.h, a C library, and NAME.cu, the kernels of the same program for GPUs.
#include <fstream>
#include <iostream>
#include <sstream>

#include <apl/codegen/emit/library.h>
#include <apl/passes/pipeline.h>

#include "tree.h"

namespace {

std::string read(const std::string& name) {
  std::ifstream stream(name);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

int fail(const apl::Diagnostic& error, const std::string& file, const std::string& text) {
  std::cerr << apl::render(error, file, text);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "usage: research-compiler FILE.toy NAME\n", 64;
  const std::string file = argv[1], name = argv[2], text = read(file);

  const auto definitions = toy::parse(text);
  if (!definitions) return fail(definitions.error(), file, text);
  const auto module = toy::lower(*definitions, file);
  if (!module) return fail(module.error(), file, text);

  // Three passes: one kernel for what one loop would do, kernels, and memory for their arrays.
  const auto pipeline = apl::parse_pipeline("fuse,extract-kernels,place-memory", apl::PassRegistry::builtin());
  if (!pipeline) return fail(pipeline.error(), "<pipeline>", "");
  apl::PipelineOptions options;
  options.remarks = [&](const apl::Remark& remark) { std::cout << apl::render(remark, file) << '\n'; };
  apl::Module lowered = *module;
  if (const auto status = apl::run_pipeline(lowered, *pipeline, options); !status)
    return fail(status.error(), file, text);

  const auto library =
      apl::generate_library(lowered, apl::c_target(), {}, {.name = name.substr(name.rfind('/') + 1), .version = "0"});
  if (!library) return fail(library.error(), file, text);
  std::ofstream(name + ".c") << library->source;
  std::ofstream(name + ".h") << library->header;
  const auto kernels = apl::generate(lowered, apl::cuda_target());
  if (!kernels) return fail(kernels.error(), file, text);
  std::ofstream(name + ".cu") << kernels->kernels;
}
