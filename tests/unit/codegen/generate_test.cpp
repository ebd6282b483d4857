// What holds for every generated text, whatever its words.
#include <fmt/format.h>

#include <regex>
#include <set>

#include "ir/interpret.h"
#include "ir/parse.h"
#include "runtime/embed.h"
#include "runtime/program/program.h"
#include "tests/testing.h"
#include "tests/unit/codegen/emitted.h"

namespace {

using apl::HostValue;
using apl::Target;
using emitted::contains;
using emitted::count;
using emitted::example;
using emitted::take;
using emitted::text_of;

const std::vector<std::string> kExamples{"mm0",   "mm1",   "mm1_iota", "mm2",     "mm3",
                                         "sd1_7", "sd2_3", "listing2", "listing3"};

constexpr std::int64_t kThreads = 1024;           // what every GPU has for a block
constexpr std::int64_t kSharedBytes = 64 * 1024;  // that every GPU since Turing lends to one that asks

std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t first = text.find(from);
  REQUIRE_MESSAGE(first != std::string::npos, from);
  const std::size_t last = text.find(to, first + from.size());
  REQUIRE_MESSAGE(last != std::string::npos, to);
  return text.substr(first, last - first);
}

std::string kernel_of(const std::string& kernels, const std::string& name) {
  return between(kernels, fmt::format(" void {}(", name), fmt::format("APL_EXPORT({})", name));
}

// The line's text after its indentation; empty past the end.
std::string stripped(const std::vector<std::string>& lines, std::size_t k) {
  if (k >= lines.size()) return "";
  const std::size_t first = lines[k].find_first_not_of(' ');
  return first == std::string::npos ? "" : lines[k].substr(first);
}

apl::Module parsed(const std::string& text) { return take(apl::parse_module(text, "test.aplir")); }

// What C is made of a program's text.
std::string c_of(const std::string& program) {
  apl::Module module = emitted::compiled("test.fut", program);
  const std::string passes = apl::standard_pipeline(apl::Stage::memory, apl::Machine::cpu);
  take(apl::run_pipeline(module, take(apl::parse_pipeline(passes, apl::PassRegistry::builtin())), {}));
  return take(apl::generate(module, take(apl::find_target("c")), {})).host;
}

// The kernels that CUDA has of a program's text.
std::string kernels_of(const std::string& program) {
  apl::Module module = emitted::compiled("test.fut", program);
  const std::string passes = apl::standard_pipeline(apl::Stage::memory, apl::Machine::gpu);
  take(apl::run_pipeline(module, take(apl::parse_pipeline(passes, apl::PassRegistry::builtin())), {}));
  return take(apl::generate(module, apl::cuda_target(), {})).kernels;
}

std::string kernels_and_host_of(const std::string& program) {
  apl::Module module = emitted::compiled("test.fut", program);
  const std::string passes = apl::standard_pipeline(apl::Stage::memory, apl::Machine::gpu);
  take(apl::run_pipeline(module, take(apl::parse_pipeline(passes, apl::PassRegistry::builtin())), {}));
  const apl::ProgramText text = take(apl::generate(module, apl::cuda_target(), {}));
  return text.kernels + text.host;
}

const std::string kMap = R"(stage kernel

entry main (A : "[n]i32") : {"[n]i32"}
fun main [n] (A : [n]i32) : {[n]i32} = {
  let {B : [n]i32} =
    segmap(thread) (i < n) {
      let {x : i32} = A[i]
      let {y : i32} = add(x, 1i32)
      return {returns y}
    } @5:3-8:9
  in {B}
}
)";

// From the kernel stage on.
apl::Module placed(const std::string& text) {
  apl::Module module = parsed(text);
  take(apl::run_pipeline(module, take(apl::parse_pipeline("place-memory", apl::PassRegistry::builtin())), {}));
  return module;
}

}  // namespace

TEST_CASE("generate: text is as long as the source where each function calls another one twice") {
  const std::vector<std::pair<std::string, std::string (*)(const std::string&)>> languages{
      {"c", c_of}, {"cuda", kernels_and_host_of}};
  for (const auto& [language, text_of] : languages) {
    CAPTURE(language);
    const auto lines = [&](int levels) { return count(text_of(emitted::levels_of_calls(levels)), "\n"); };
    const std::size_t six = lines(6), twelve = lines(12), twenty_four = lines(24);
    CHECK(six < 4000);  // all expanded, more than 20,000: s0 alone would be there 1,458 times
    // As many lines for each level, whichever of them are expanded in others.
    CHECK(twenty_four - twelve < 5 * (twelve - six) / 2);
  }
}

TEST_CASE("generate: the same module gives the same text") {
  for (Target target : {apl::c_target(), apl::cuda_target()}) {
    const apl::Module module = emitted::at(apl::Stage::memory, example("listing3"));
    const apl::ProgramText one = take(apl::generate(module, target)), two = take(apl::generate(module, target));
    CHECK(one.host == two.host);
    CHECK(one.kernels == two.kernels);
    // And so does the whole way there.
    CHECK(text_of(example("listing3"), target).host == one.host);
  }
}

TEST_CASE("generate: a module that has no memory yet is refused") {
  for (apl::Stage stage : {apl::Stage::soac, apl::Stage::kernel}) {
    auto refused = apl::generate(emitted::at(stage, example("mm1")), apl::cuda_target());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == apl::Code::command_bad_pipeline);
  }
}

TEST_CASE("generate: kernels are told about as they are written and launched") {
  for (const std::string& name : kExamples) {
    CAPTURE(name);
    const apl::ProgramText text = text_of(example(name), apl::cuda_target());
    REQUIRE_FALSE(text.kernel_infos.empty());
    CHECK(count(text.kernels, "APL_KERNEL(") == text.kernel_infos.size());
    CHECK(count(text.kernels, "APL_EXPORT(") == text.kernel_infos.size());
    CHECK(count(text.host, "const struct apl_launch launch") == text.kernel_infos.size());
    std::map<std::string, int> names;
    for (const apl::KernelInfo& info : text.kernel_infos) {
      CAPTURE(info.name);
      CHECK(++names[info.name] == 1);
      CHECK(count(text.kernels, fmt::format("APL_KERNEL({}) void {}(", info.threads, info.name)) == 1);
      CHECK(count(text.kernels, fmt::format("APL_EXPORT({})\n", info.name)) == 1);
      const std::string launch = between(text.host, fmt::format(".kernel = \"{}\"", info.name), "};");
      CHECK(contains(launch, fmt::format(".threads = {},", info.threads)));
      CHECK(contains(launch, fmt::format(".shared_bytes = {},", info.shared_bytes)));
      CHECK(info.location.line > 0);
      // Arguments are as many as parameters.
      const std::string params = between(text.kernels, fmt::format(" void {}(", info.name), ") {");
      CHECK(contains(launch, fmt::format(".arg_count = {},", 1 + count(params, ", "))));
    }
  }
}

TEST_CASE("generate: default tile numbers stay within what every GPU has") {
  for (const std::string& name : kExamples)
    for (const apl::KernelInfo& info : text_of(example(name), apl::cuda_target()).kernel_infos) {
      CAPTURE(info.name);
      CHECK(info.threads >= 1);
      CHECK(info.threads <= kThreads);
      CHECK(info.shared_bytes <= kSharedBytes);
    }
}

TEST_CASE("generate: shared arrays lie apart, aligned, within the block's bytes") {
  const std::regex shared(R"(apl_shared_at<(\w+)>\((\d+), (\d+)\))");
  const std::map<std::string, std::int64_t> bytes{{"float", 4}, {"int32_t", 4}, {"double", 8}, {"int64_t", 8}};
  for (const std::string& name : kExamples) {
    const apl::ProgramText text = text_of(example(name), apl::cuda_target());
    std::size_t tiles = 0;
    for (const apl::KernelInfo& info : text.kernel_infos) {
      CAPTURE(info.name);
      const std::string kernel = kernel_of(text.kernels, info.name);
      // Results that go through shared memory lie where the tiles were.
      const std::string before = kernel.substr(0, kernel.find("// write-back"));
      std::int64_t end = 0;
      for (std::sregex_iterator found(before.begin(), before.end(), shared), last; found != last; ++found, ++tiles) {
        const std::int64_t size = bytes.at(found->str(1)), offset = std::stoll(found->str(2));
        CHECK(offset >= end);
        CHECK(offset % size == 0);
        end = offset + size * std::stoll(found->str(3));
      }
      CHECK(end <= info.shared_bytes);
    }
    CHECK(tiles >= 2);
  }
}

TEST_CASE("generate: a tiled kernel has a barrier a tile, and one behind each tile's tables") {
  for (const std::string name : {"mm0", "mm1", "mm2", "mm3", "sd2_3"}) {
    const apl::ProgramText text = text_of(example(name), apl::cuda_target());
    for (const apl::KernelInfo& info : text.kernel_infos) {
      CAPTURE(info.name);
      const auto lines = emitted::lines_of(kernel_of(text.kernels, info.name));
      std::vector<std::string> after;  // what follows each barrier
      for (std::size_t k = 0; k < lines.size(); ++k)
        if (stripped(lines, k) == "apl_barrier();") after.push_back(stripped(lines, k + 1).substr(0, 5));
      CHECK(after == std::vector<std::string>{"APL_U", "if (t", "}"});
    }
  }
}

// Of a signed product CUDA's compilers take it that it does not wrap, and cancel it against the divisor.
TEST_CASE("generate: what is divided or compared on a GPU is computed without signs where it may wrap") {
  const std::string kernels = kernels_of(
      "entry halves [n] (xs: [n]i64): [n]i64 = map (\\x -> (x * 6 - 4) / 3) xs\n"
      "entry least [n] (xs: [n]i64): [n]i64 = map (\\x -> i64.min x (x + 3)) xs\n");
  CHECK(contains(kernels, "(int64_t)(6 * (uint64_t)x - 4)"));
  CHECK(contains(kernels, "(int64_t)((uint64_t)x + 3)"));
}

TEST_CASE("generate: so are bounds of loops on a GPU, but not those that are one number") {
  const std::string kernels = kernels_of(
      "entry rounds [k] (ns: [k]i64): [k]i64 = map (\\n -> loop s = 0i64 for i < n * n do s + i) ns\n"
      "entry squares [k] (ns: [k]i64): [k]i64 = map (\\n -> i64.sum (map (\\i -> i * i) (iota (n * n)))) ns\n"
      "entry plain [k] (ns: [k]i64): [k]i64 = map (\\n -> loop s = 0i64 for i < n do s + i) ns\n");
  CHECK(contains(kernels, "i < (int64_t)((uint64_t)n * (uint64_t)n); ++i"));
  CHECK(contains(kernels, "bound = (int64_t)((uint64_t)n * (uint64_t)n)"));
  CHECK(contains(kernels, "i < n; ++i"));
}

TEST_CASE("generate: kernels without shared memory have no barrier") {
  const apl::ProgramText text = take(apl::generate(placed(kMap), apl::cuda_target()));
  REQUIRE(text.kernel_infos.size() == 1);
  CHECK(text.kernel_infos[0].shared_bytes == 0);
  CHECK(count(text.kernels, "apl_barrier") == 0);
  CHECK(count(text.kernels, "apl_shared") == 0);
  CHECK(text.kernel_infos[0].location.line == 5);
}

TEST_CASE("generate: the inner loop has no division and no indices of 64 bits") {
  for (const std::string name : {"mm0", "mm1", "mm2", "mm3", "sd1_7", "sd2_3", "listing2", "listing3"}) {
    const apl::ProgramText text = text_of(example(name), apl::cuda_target());
    CHECK(contains(text.kernels, "for (int64_t tile_q = 0;"));
    for (const apl::KernelInfo& info : text.kernel_infos) {
      CAPTURE(info.name);
      const std::string kernel = kernel_of(text.kernels, info.name);
      if (!contains(kernel, "for (int64_t tile_q = 0;")) continue;
      // From where copies are under way, or the tiles there, to what is done for the rest of the depth.
      const bool fast = contains(kernel, "apl_cp_async_commit();");
      const std::string main =
          between(kernel, "for (int64_t tile_q = 0;", fast ? "// write-back" : "if (has_remainder) {");
      std::string inner = main.substr(main.rfind(fast ? "apl_cp_async_commit();" : "apl_barrier();"));
      if (fast) inner.resize(inner.find("} else {"));
      CHECK(contains(inner, "acc["));
      for (const std::string part : {" / ", " % ", "_div("}) {
        CAPTURE(part);
        CHECK_FALSE(contains(inner, part));
      }
      // The index that argmin gives is an i64.
      CHECK(contains(inner, "int64_t") == contains(info.name, "argmin"));
    }
  }
}

TEST_CASE("generate: sums on a CPU are loops that become vectors, and flattened arrays are read without a division") {
  const std::string flat = c_of("entry total [n][m] (A: [n][m]f32): f32 = f32.sum (flatten A)");
  const std::string loop = between(flat, "#pragma omp simd reduction(+:", "\n    }\n");
  const std::string read = between(loop, "A_1[", "]");
  CHECK_FALSE(contains(read, "apl_floor_div"));
  CHECK_FALSE(contains(read, "m *"));

  const std::string rows = "[n][m] (A: [n][m]f32): [n]f32 = map (\\row -> f32.sum row) A";
  CHECK(contains(c_of("entry rows " + rows), "#pragma omp simd reduction(+:"));
  const std::string in_order = "entry rows [n][m] (A: [n][m]f32): [n]f32 = map (\\row -> #[sequential] f32.sum row) A";
  CHECK_FALSE(contains(c_of(in_order), "omp simd"));
  const std::string least = "entry rows [n][m] (A: [n][m]f32): [n]f32 = map (\\row -> f32.minimum row) A";
  CHECK(contains(c_of(least), "#pragma omp simd reduction(min:"));
  // Each result by an operator of its own, and what the map yields besides.
  const std::string pair =
      "entry sums [n] (xs: [n]f32): (f32, i32, [n]f32) = let (a, b) = "
      "reduce_comm (\\(a, b) (c, d) -> (a + c, i32.max b d)) (0, 0) (map (\\x -> (x * x, i32.f32 x)) xs) "
      "in (a, b, map (\\x -> f32.exp x) xs)";
  CHECK(contains(c_of(pair), "reduction(+:"));
  CHECK(contains(c_of(pair), "reduction(max:"));

  const std::string columns = c_of("entry sums [n][m] (A: [n][m]f32): [m]f32 = map f32.sum (transpose A)");
  CHECK(contains(columns, "float sums[1024];"));
  CHECK(contains(columns, "#pragma omp simd\n"));
}

TEST_CASE(
    "generate: on a CPU any commutative operator has partial results, windows are written out, transpositions go in "
    "squares") {
  const std::string place =
      "[n] (xs: [n]f32): (f32, i64) = reduce_comm (\\(a, i) (b, j) -> if a > b || (a == b && i < j) then (a, i) else "
      "(b, j)) "
      "(-f32.inf, i64.highest) (zip xs (iota n))";
  const std::string lanes = c_of("entry largest " + place);
  CHECK(contains(lanes, "partial_1[lane] = "));
  CHECK(contains(lanes, ">= 128) {"));
  std::string in_order = "entry largest " + place;
  in_order.replace(in_order.find("reduce_comm"), 11, "reduce");
  CHECK_FALSE(contains(c_of(in_order), "partial_1[lane] = "));

  const std::string window =
      "entry blur [n][m] (A: [n][m]f32): [][]f32 = tabulate_2d (n - 4) (m - 4) (\\i j -> "
      "f32.sum (flatten (tabulate_2d 5 5 (\\a b -> A[i + a, j + b]))))";
  CHECK(contains(c_of(window), "#pragma GCC unroll 5"));
  std::string wide = window;
  while (wide.find('5') != std::string::npos) wide.replace(wide.find('5'), 1, "11");
  CHECK_FALSE(contains(c_of(wide), "GCC unroll"));

  const std::string turned =
      "entry turned [n][m] (A: [n][m]f32) (B: [m][n]f32): [m][n]f32 = map2 (map2 (+)) (transpose A) B";
  CHECK(contains(c_of(turned), "float square[1024];"));
  CHECK_FALSE(contains(c_of("entry twice [n][m] (A: [n][m]f32): [n][m]f32 = map (map (* 2)) A"), "square"));
}

TEST_CASE("generate: a GPU's thread takes four windows below each other, if they overlap that way") {
  const auto folded = [](const std::string& size, const std::string& element) {
    return kernels_of(
        "entry blur [n][m][k] (A: [n][m]f32) (B: [k]f32): [][]f32 = tabulate_2d (n - k) (m - k) (\\i j -> "
        "f32.sum (tabulate " +
        size + " (\\a -> #[unsafe] " + element + ")))");
  };
  const std::string stacked = "i_stack = ";
  CHECK(contains(folded("7", "A[i + a, j] * B[a]"), stacked));
  CHECK_FALSE(contains(folded("7", "A[i + a, j] * B[a]"), "_folded["));
  CHECK(contains(folded("k", "A[i + a, j] * B[a]"), "_folded[4];"));
  CHECK(contains(folded("70", "A[i + a, j] * B[a]"), "_folded[4];"));
  // Along rows, from rows that lie apart, of rows and columns as of a product, and of a length of the thread's own.
  CHECK_FALSE(contains(folded("7", "A[i, j + a] * B[a]"), stacked));
  CHECK_FALSE(contains(folded("7", "A[i + 2 * a, j] * B[a]"), stacked));
  CHECK_FALSE(contains(folded("m", "A[i, a] * A[a, j]"), stacked));
  CHECK_FALSE(contains(folded("(i64.min i k)", "A[i + a, j] * B[a]"), stacked));
  // A division may fail.
  CHECK_FALSE(contains(kernels_of("entry shares [n][m] (A: [n][m]i32): [][]i32 = tabulate_2d (n - 7) m (\\i j -> "
                                  "i32.sum (tabulate 7 (\\a -> A[i + a, j] / A[i, j])))"),
                       stacked));
}

TEST_CASE("generate: accumulators and operands of the inner loop stay in registers") {
  // Every loop whose variable is part of an index of a thread's own array is unrolled, so that each index is a number.
  const std::regex access(R"(\b(?:acc|\w+_r(?:_\d+)?)\[([^\]]*)\])"), word(R"([a-z]\w*)"),
      head(R"(^for \(\w+ (\w+) = )");
  for (const std::string name : {"mm1", "sd2_3", "listing3"})
    for (const bool small : {false, true}) {
      CAPTURE(name);
      const apl::Module module = example(name);
      const apl::ProgramText text =
          text_of(module, apl::cuda_target(), small ? emitted::small_tiles(module) : emitted::Numbers{});
      for (const apl::KernelInfo& info : text.kernel_infos) {
        CAPTURE(info.name);
        const std::string kernel = kernel_of(text.kernels, info.name);
        if (!contains(kernel, "for (int64_t tile_q = 0;")) continue;
        const auto lines = emitted::lines_of(kernel);
        std::set<std::string> indices;
        for (const std::string& line : lines)
          for (std::sregex_iterator found(line.begin(), line.end(), access), end; found != end; ++found) {
            const std::string index = found->str(1);
            for (std::sregex_iterator part(index.begin(), index.end(), word); part != end; ++part)
              indices.insert(part->str());
          }
        std::size_t loops = 0;
        for (std::size_t k = 1; k < lines.size(); ++k) {
          const std::string line = stripped(lines, k);
          std::smatch loop;
          if (!std::regex_search(line, loop, head) || !indices.count(loop.str(1))) continue;
          CAPTURE(line);
          ++loops;
          CHECK(stripped(lines, k - 1) == "APL_UNROLL");
        }
        CHECK(loops >= (contains(kernel, "apl_load<") ? 5 : 6));  // vectors of operands are loaded whole
      }
    }
}

TEST_CASE("generate: tile numbers are the options' or the module's own") {
  const apl::Module module = emitted::at(apl::Stage::memory, example("mm1", "mm1"));
  CHECK(contains(take(apl::generate(module, apl::cuda_target())).kernels, "const int T_a = 16;"));
  apl::CodegenOptions options;
  options.parameters = {{"mm1.T_a", 4}, {"mm1.T_b", 8}};
  const apl::ProgramText text = take(apl::generate(module, apl::cuda_target(), options));
  CHECK(contains(text.kernels, "const int T_a = 4;"));
  CHECK(contains(text.kernels, "const int T_b = 8;"));
  CHECK(text.kernel_infos.at(0).threads == 32);
}

TEST_CASE("generate: kernels for the GPU are in the host's text, those in C are functions of it") {
  const apl::Module module = emitted::at(apl::Stage::memory, example("mm1"));
  const apl::ProgramText cuda = take(apl::generate(module, apl::cuda_target())),
                         c = take(apl::generate(module, apl::c_target()));
  CHECK(contains(cuda.host, "const char apl_kernel_text[] ="));
  CHECK_FALSE(contains(cuda.host, "threads.h"));
  CHECK(count(cuda.kernels, "#include") == 1);
  CHECK(contains(cuda.kernels, "#include \"device.h\"\n"));
  CHECK(c.kernels.empty());
  CHECK_FALSE(contains(c.host, "apl_kernel_text"));
  CHECK_FALSE(contains(c.host, "apl_barrier"));
  CHECK_FALSE(contains(c.host, "APL_KERNEL"));
  CHECK(contains(c.host, "#include \"threads.h\"\n"));
  CHECK(contains(c.host, "apl_loop(apl_part_of_mm1_"));
  for (const apl::ProgramText* text : {&cuda, &c})
    for (const std::string entry : {"mm1", "mm1_i32"}) CHECK(count(text->host, "int apl_entry_" + entry + "(") == 1);
}

TEST_CASE("generate: a C compiler has nothing to say about the text") {
  auto folder = take(apl::TemporaryFolder::make("/tmp"));
  auto write = [&](const std::string& name, std::string_view text) {
    std::ofstream(folder.path() + "/" + name) << text;
    return folder.path() + "/" + name;
  };
  write("context.h", apl::context_header_text());
  write("scalar.h", apl::scalar_header_text());
  write("threads.h", apl::threads_header_text());
  std::vector<std::string> command{"cc", "-std=c11", "-fopenmp", "-Wall", "-Werror", "-fsyntax-only"};
  for (const std::string& name : kExamples) {
    const apl::Module module = example(name);
    for (const emitted::Numbers& numbers : {emitted::Numbers{}, emitted::small_tiles(module)})
      for (Target target : {apl::c_target(), apl::cuda_target()}) {
        const std::string file =
            fmt::format("{}_{}_{}.c", name, !target.on_device() ? "c" : "cuda", numbers.empty() ? "defaults" : "small");
        command.push_back(write(file, text_of(module, target, numbers).host));
      }
  }
  auto compiled = apl::run_tool(command);
  CHECK_MESSAGE(compiled, compiled.error().message);
}

TEST_CASE("generate: micro-kernels of a packed contraction call no function for the least of two numbers") {
  auto folder = take(apl::TemporaryFolder::make("/tmp"));
  const std::string file = folder.path() + "/least.c", assembly = folder.path() + "/least.s";
  std::ofstream(folder.path() + "/context.h") << apl::context_header_text();
  std::ofstream(folder.path() + "/scalar.h") << apl::scalar_header_text();
  std::ofstream(folder.path() + "/threads.h") << apl::threads_header_text();
  std::ofstream(folder.path() + "/packed.h") << apl::packed_header_text();
  std::ofstream(file) << c_of(
      "entry main [m][n][k] (A: [m][k]f32) (B: [k][n]f32): [m][n]f32 = map (\\row -> map (\\column -> "
      "f32.minimum (map2 (+) row column)) (transpose B)) A");
  auto compiled = apl::run_tool({"cc", "-std=c11", "-O2", "-w", "-S", "-o", assembly, file});
  REQUIRE_MESSAGE(compiled, compiled.error().message);
  std::ifstream in(assembly);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  const std::string kernel = between(text, "_compute_0:", ".size");
  CHECK(contains(kernel, "\n"));
  CHECK_FALSE(contains(kernel, "apl_fmin"));
}

TEST_CASE("generate: what an entry gives and takes has no more dims than its interface has room for") {
  const auto made = [](int dims) {
    std::string ones, text = "stage kernel\n\n";
    for (int d = 0; d < dims; ++d) ones += "[1]";
    std::string space;
    for (int d = 0; d < dims; ++d) space += fmt::format("{}at{} < 1", d == 0 ? "" : ", ", d);
    text += fmt::format("entry main (x : \"i32\") : {{\"{0}i32\"}}\nfun main [] (x : i32) : {{{0}i32}} = {{\n", ones);
    text += fmt::format("  let {{xs : {}i32}} =\n    segmap(thread) ({}) {{\n", ones, space);
    text += "      return {returns x}\n    }\n  in {xs}\n}\n";
    return apl::generate(placed(text), apl::c_target());
  };
  CHECK(made(32));
  const auto refused = made(33);
  REQUIRE(!refused);
  CHECK(refused.error().code == apl::Code::unsupported_construct);
  CHECK(refused.error().message.find("a result of 33 dims; 32 at most") != std::string::npos);
}

TEST_CASE("generate: what the host allocates it also releases") {
  for (const std::string& name : kExamples) {
    CAPTURE(name);
    const std::string host = text_of(example(name), apl::cuda_target()).host;
    const std::regex allocation(R"(allocate\(ctx, [^;]*, &(\w+)\);\n *if \(status != APL_SUCCESS\) goto done;)");
    std::size_t checked = 0;
    for (std::sregex_iterator found(host.begin(), host.end(), allocation), end; found != end; ++found, ++checked)
      CHECK(contains(host, fmt::format("if ({0}) ctx->backend->release(ctx, {0});", found->str(1))));
    // None is left unchecked.
    CHECK(checked == count(host, "allocate(ctx, "));
    CHECK(checked >= 1);
  }
}

TEST_CASE("generate: the entry refuses arguments whose sizes do not fit, with the parameter's name") {
  auto floats = [](std::int64_t rows, std::int64_t columns) {
    return HostValue::array(apl::ScalarType::f32, {rows, columns},
                            std::vector<float>(static_cast<std::size_t>(rows * columns), 1));
  };
  const apl::Module module = example("mm1", "mm1");
  for (const std::string backend : {"c", "emulate"}) {
    CAPTURE(backend);
    apl::ProgramOptions options;
    options.backend = backend;
    apl::Program program =
        take(apl::Program::load(text_of(module, backend == "c" ? apl::c_target() : apl::cuda_target()).host, options));
    auto refused = program.call("mm1", {floats(2, 3), floats(4, 2)});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == apl::Code::run_shape_mismatch);
    CHECK(contains(refused.error().message, "argument `Y`: dim 0 has size 4, expected 3"));
    // Nothing to compute, and nothing to add up, are no errors.
    CHECK(take(program.call("mm1", {floats(0, 3), floats(3, 2)})).at(0) == floats(0, 2));
    CHECK(take(program.call("mm1", {floats(1, 0), floats(0, 2)})).at(0) ==
          HostValue::array(apl::ScalarType::f32, {1, 2}, std::vector<float>{0, 0}));
    CHECK(take(program.call("mm1", {floats(1, 3), floats(3, 1)})).at(0) ==
          HostValue::array(apl::ScalarType::f32, {1, 1}, std::vector<float>{3}));
  }
}

TEST_CASE("generate: kernels that may stray look whether a check failed, where one can") {
  const auto kernels = [](const std::string& source) {
    const apl::Module memory = emitted::at(apl::Stage::memory, emitted::compiled("stray.fut", source));
    return take(apl::generate(memory, apl::cuda_target(), {})).kernels;
  };
  const std::string gathers = "entry f [n] (is: [n]i64) (xs: [n]i64) : [n]i64 = map (\\i -> #[unsafe] xs[i]) is\n";
  const std::string checks = "entry g [n] (is: [n]i64) (xs: [n]i64) : [n]i64 = map (\\i -> xs[i]) is\n";
  CHECK_FALSE(contains(kernels(gathers), "failed"));
  CHECK_FALSE(contains(kernels(checks), "failed"));
  const std::string both = kernels(gathers + checks);
  CHECK(count(kernel_of(both, "f_xs"), "apl_has_failed(failed)") == 1);
  CHECK(count(kernel_of(both, "g_xs"), "apl_has_failed(failed)") == 0);
  CHECK(count(kernel_of(both, "g_xs"), "apl_mark_failed(failed)") == 1);
}

TEST_CASE("generate: threads whose arrays would take too much memory together run in parts") {
  const apl::Module source = emitted::compiled(
      "parts.fut",
      "entry ends [n][m] (xs: [n]i64) (ys: [m]i64) : [n]i64 =\n"
      "  map (\\x -> let zs = loop zs = replicate m x for i < x % m do zs with [i + 1] = zs[i] + ys[i]\n"
      "             in zs[x % m]) xs\n");
  const apl::Module memory = emitted::at(apl::Stage::memory, source);
  const auto run = [&](std::int64_t bytes, std::int64_t n, std::int64_t m) {
    apl::CodegenOptions options;
    options.parameters["bytes_of_threads"] = bytes;
    const std::string host = take(apl::generate(memory, apl::cuda_target(), options)).host;
    CHECK(contains(host, "first_thread < threads"));
    apl::ProgramOptions load;
    load.backend = "emulate";
    apl::Program program = take(apl::Program::load(host, load));
    const apl::Function& entry = *source.find_entry("ends");
    const std::vector<HostValue> inputs = take(apl::testing::random_arguments(entry, {{"n", n}, {"m", m}}, 1));
    CHECK(take(program.call("ends", inputs)) == take(apl::interpret(source, "ends", inputs, {})));
  };
  run(std::int64_t{1} << 31, 600, 8);
  run(20000, 600, 8);  // 256 threads at a time
  run(1, 600, 8);
  run(20000, 0, 8);
  run(20000, 512, 8);
}

TEST_CASE("generate: rows that are too long for the team that is to hold them are an error, not a wrong result") {
  const apl::ProgramText text = take(apl::generate(placed(R"(stage kernel

entry main (A : "[m][n]i32") : {"[m]i32"}
fun main [m, n] (A : [m][n]i32) : {[m]i32} = {
  let {r : [m]i32} =
    segmap(thread) (i < m) team(1) rows {
      let {row : [n]i32} = A[i]
      let {s : i32} =
        reduce(k < n, {row}, \{x : i32} -> { in {x} },
          {commutative \{a : i32, b : i32} -> { let {ab : i32} = add(a, b) in {ab} }, {0i32}})
      return {returns s}
    }
  in {r}
}
)"),
                                                   apl::cuda_target()));
  apl::ProgramOptions options;
  options.backend = "emulate";
  apl::Program program = take(apl::Program::load(text.host, text.kernels, options));
  const auto row = [](std::int64_t n) {
    return HostValue::array(apl::ScalarType::i32, {1, n}, std::vector<std::int32_t>(static_cast<std::size_t>(n), 3));
  };
  CHECK(take(program.call("main", {row(16)})).front() ==
        HostValue::array(apl::ScalarType::i32, {1}, std::vector<std::int32_t>{48}));
  const auto refused = program.call("main", {row(17)});
  REQUIRE_FALSE(refused);
  CHECK(contains(refused.error().message, "rows of 17 elements are too long for teams of 1 threads"));
}
