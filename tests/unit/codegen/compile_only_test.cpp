// The kernels of the examples, compiled for a GPU on machines that have none.
#include <fstream>

#include "runtime/backends/cuda.h"
#include "runtime/embed.h"
#include "tests/unit/codegen/emitted.h"
#include "tests/unit/skip.h"

TEST_CASE("compile only: the ends of every type are numbers that NVRTC knows" * doctest::test_suite("nvrtc")) {
  std::string source;
  for (const std::string type : {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"})
    source += "entry ends_" + type + " (xs: []" + type + ") = map (\\x -> (" + type + ".max x " + type + ".lowest, " +
              type + ".min x " + type + ".highest)) xs\n";
  for (const std::string type : {"f16", "f32", "f64"})
    source += "entry no_number_" + type + " (xs: []" + type + ") = map (\\x -> if x == 0 then " + type + ".nan else " +
              type + ".inf) xs\n";
  const apl::ProgramText text = emitted::text_of(emitted::compiled("ends.fut", source), apl::cuda_target());
  const auto cubin = apl::compile_with_nvrtc(text.kernels, "sm_90");
  if (!cubin && cubin.error().code == apl::Code::unsupported_backend) {
    return tests::skip(cubin.error().message);
  }
  CHECK_MESSAGE(cubin, cubin.error().message);
}

TEST_CASE("compile only: NVRTC compiles the examples' kernels without a device" * doctest::test_suite("nvrtc")) {
  // Full tiles of two ranks, whose unrolled loops take the compiler seconds; small ones of all that the examples have:
  // layouts, ranks, element types, operators of two results, elements read by index.
  for (const std::string name : {"mm0", "mm1", "mm1_iota", "mm2", "mm3", "sd1_7", "sd2_3", "listing2", "listing3"}) {
    CAPTURE(name);
    const apl::Module module = emitted::example(name);
    std::vector<emitted::Numbers> numbers{emitted::small_tiles(module)};
    if (name == "mm1" || name == "listing2") numbers.emplace_back();
    for (const emitted::Numbers& each : numbers) {
      const apl::ProgramText text = emitted::text_of(module, apl::cuda_target(), each);
      auto cubin = apl::compile_with_nvrtc(text.kernels, "sm_90");
      if (!cubin && cubin.error().code == apl::Code::unsupported_backend) {
        return tests::skip(cubin.error().message);
      }
      CHECK_MESSAGE(cubin, cubin.error().message);
      if (!cubin) continue;
      CHECK(cubin->substr(1, 3) == "ELF");
      for (const apl::KernelInfo& info : text.kernel_infos) {
        CAPTURE(info.name);
        CHECK(emitted::contains(*cubin, ".text." + info.name));
      }
    }
  }
}

TEST_CASE("compile only: contractions with code around them" * doctest::test_suite("nvrtc")) {
  std::ifstream in(std::string(APL_SOURCE_DIR) + "/tests/programs/contractions.fut");
  REQUIRE(in);
  const std::string source(std::istreambuf_iterator<char>(in), {});
  const apl::Module all = emitted::compiled("contractions.fut", source);
  apl::Module one = all;  // with the numbers that run, in a tile of full size
  std::erase_if(one.functions, [](const apl::FunctionPtr& f) { return f->is_entry() && f->entry->name != "epilogue"; });
  for (const auto& [module, numbers] :
       {std::pair(all, emitted::small_tiles(all)), std::pair(one, emitted::Numbers{})}) {
    const apl::ProgramText text = emitted::text_of(module, apl::cuda_target(), numbers);
    const auto cubin = apl::compile_with_nvrtc(text.kernels, "sm_90");
    if (!cubin && cubin.error().code == apl::Code::unsupported_backend) {
      return tests::skip(cubin.error().message);
    }
    CHECK_MESSAGE(cubin, cubin.error().message);
  }
}

TEST_CASE("compile only: nvcc compiles functions that stay functions" * doctest::test_suite("nvcc")) {
  if (auto found = apl::run_tool({"nvcc", "--version"}); !found) return tests::skip(found.error().message);
  const apl::Module module = emitted::compiled("levels.fut", emitted::levels_of_calls(6));
  const apl::ProgramText text = emitted::text_of(module, apl::cuda_target());
  CHECK(emitted::contains(text.kernels, "APL_FUNCTION"));
  auto folder = kernels::take(apl::TemporaryFolder::make("/tmp"));
  std::ofstream(folder.path() + "/device.h") << apl::device_header_text();
  std::ofstream(folder.path() + "/kernels.cu") << text.kernels;
  auto compiled = apl::run_tool({"nvcc", "-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", "-c",
                                 folder.path() + "/kernels.cu", "-o", folder.path() + "/kernels.o"});
  CHECK_MESSAGE(compiled, compiled.error().message);
}
