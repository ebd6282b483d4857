// Products with matrices that are known when the program is compiled: the code has structure and values.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

#include "codegen/codegen.h"
#include "codegen/sparse/constant.h"
#include "codegen/sparse/occupancy.h"
#include "codegen/sparse/proxy.h"
#include "codegen/sparse/sections.h"
#include "frontend/frontend.h"
#include "ir/interpret.h"
#include "machine/target/records.h"
#include "passes/pipeline.h"
#include "runtime/backends/cuda.h"
#include "runtime/program/known_matrix.h"
#include "runtime/program/program.h"
#include "tests/testing.h"
#include "tests/unit/skip.h"

namespace {

using apl::HostValue;
using apl::Module;
using Values = std::vector<HostValue>;

std::string spmm(const std::string& type, const std::string& attributes = "#[sparse(A)] #[constant(A)]") {
  return fmt::format(
      "{1}\nentry f [n][m][b] (A: [n][m]{0}) (B: [m][b]{0}): [n][b]{0} =\n"
      "  map (\\row -> map (\\col -> {0}.sum (map2 (*) row col)) (transpose B)) A\n",
      type, attributes);
}

Module read(const std::string& text) {
  auto source = apl::compile({"known.fut", text}, {});
  REQUIRE(source);
  return *std::move(source);
}

using Parameters = std::map<std::string, std::int64_t>;

struct Made {
  std::string host;
  std::vector<apl::Remark> remarks;
  bool said(const std::string& code) const {
    return std::ranges::any_of(remarks, [&](const apl::Remark& remark) { return remark.code == code; });
  }
};

// The program for this matrix.
Made make(Module module, const std::optional<HostValue>& matrix, bool on_device, const Parameters& parameters = {}) {
  if (matrix) module.known.push_back(apl::known_matrix("f", "A", apl::to_csr(*matrix)));
  Made made;
  apl::PipelineOptions options;
  options.parameters = parameters;
  options.remarks = [&](const apl::Remark& remark) { made.remarks.push_back(remark); };
  const auto pipeline =
      apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory, on_device ? apl::Machine::gpu : apl::Machine::cpu),
                          apl::PassRegistry::builtin());
  REQUIRE(apl::run_pipeline(module, *pipeline, options));
  auto text = apl::generate(module, on_device ? apl::cuda_target() : apl::c_target());
  REQUIRE_MESSAGE(text, (text ? std::string() : text.error().message));
  made.host = text->host;
  return made;
}

// Calls twice: what the runtime keeps of an argument must not change what it is.
void check(const Module& source, const std::string& host, const std::string& backend, const Values& inputs) {
  const auto expected = apl::interpret(source, "f", inputs);
  REQUIRE(expected);
  apl::ProgramOptions options;
  options.backend = backend;
  auto program = apl::Program::load(host, options);
  REQUIRE_MESSAGE(program, (program ? std::string() : program.error().message));
  for (int call = 0; call < 2; ++call) {
    const auto got = program->call("f", inputs);
    REQUIRE_MESSAGE(got, (got ? std::string() : got.error().message));
    CHECK(apl::testing::same_results(*got, *expected));
  }
}

// A third of the elements, with a row without any, one that is full, ones and minus ones.
Values random_inputs(const Module& source, std::int64_t n, std::int64_t m, std::int64_t b, std::uint64_t seed) {
  auto values = apl::testing::random_arguments(*source.find_entry("f"), {{"n", n}, {"m", m}, {"b", b}}, seed);
  REQUIRE(values);
  HostValue& a = values->front();
  const apl::Scalar zero = apl::Scalar::zero(a.type);
  const apl::Scalar one = apl::convert(apl::Scalar::integer(apl::ScalarType::i32, 1), a.type);
  for (std::int64_t k = 0; k < a.element_count(); ++k) {
    const std::int64_t row = k / m;
    if (row == 2 || (row != 4 && (k * 7 + row) % 3 != 0)) a.set(k, zero);
    if (k % 11 == 0 && a.at(k) != zero) a.set(k, one);
  }
  return *std::move(values);
}

}  // namespace

TEST_CASE("code for a known matrix gives what the program means, for all types") {
  for (const std::string type : {"f32", "f64", "i8", "i16", "i32", "u8", "u16", "u32", "u64"}) {
    CAPTURE(type);
    const Module source = read(spmm(type));
    const Values inputs = random_inputs(source, 13, 21, 37, 3);
    const Made made = make(source, inputs.front(), false, {{"f.A.rows", 5}, {"f.A.columns", 8}});
    REQUIRE(made.said("constant"));
    CHECK(made.host.find("APL_SECTION") != std::string::npos);
    check(source, made.host, "c", inputs);
  }
}

TEST_CASE("halves are added up as floats") {
  const Module half = read(
      "#[sparse(A)] #[constant(A)]\nentry f [n][m][b] (A: [n][m]f16) (B: [m][b]f16): [n][b]f16 =\n"
      "  map (\\row -> map (\\col -> f16.f32 (f32.sum (map2 (\\a x -> f32.f16 a * f32.f16 x) row col))) (transpose B)) "
      "A\n");
  const Module bfloat = read(spmm("f32", "#[sparse(A)] #[constant(A)] #[bf16(A, B)]"));
  for (const Module* source : {&half, &bfloat}) {
    const Values inputs = random_inputs(*source, 13, 21, 37, 3);
    const Made made = make(*source, inputs.front(), false);
    CHECK(made.said("constant"));
    check(*source, made.host, "c", inputs);
  }
}

TEST_CASE("sections of any shape cover every row") {
  const Module source = read(spmm("f32"));
  const Values inputs = random_inputs(source, 23, 17, 50, 8);
  for (const Parameters& parameters : {Parameters{{"f.A.rows", 1}, {"f.A.columns", 1}},
                                       Parameters{{"f.A.rows", 4}, {"f.A.columns", 16}, {"f.A.pieces", 3}},
                                       Parameters{{"f.A.rows", 40}, {"f.A.columns", 32}},
                                       Parameters{{"f.A.rows", 3}, {"f.A.columns", 48}, {"f.A.pieces", 99}},
                                       Parameters{{"f.A.rows", 2}, {"f.A.columns", 3}}}) {
    const Made made = make(source, inputs.front(), false, parameters);
    CHECK(made.said("constant"));
    check(source, made.host, "c", inputs);
  }
}

TEST_CASE("another matrix than the known one is multiplied by the program's general kernel") {
  const Module source = read(spmm("f32"));
  Values inputs = random_inputs(source, 13, 21, 37, 3);
  const Made made = make(source, inputs.front(), false);
  REQUIRE(made.said("constant"));
  // One value differs, then the pattern, then the sizes.
  std::int64_t at = 0;
  while (inputs.front().at(at) == apl::Scalar::zero(apl::ScalarType::f32)) ++at;
  inputs.front().set(at, apl::Scalar::floating(apl::ScalarType::f32, 77));
  check(source, made.host, "c", inputs);
  inputs.front().set(at, apl::Scalar::zero(apl::ScalarType::f32));
  check(source, made.host, "c", inputs);
  check(source, made.host, "c", random_inputs(source, 14, 21, 37, 3));
  check(source, made.host, "c", random_inputs(source, 13, 21, 5, 3));  // narrower than a strip
}

TEST_CASE("what is not compiled into the program says why") {
  const Module source = read(spmm("f32"));
  const Values inputs = random_inputs(source, 13, 21, 8, 3);
  CHECK(make(source, std::nullopt, false).said("constant-not-given"));
  CHECK(make(source, inputs.front(), false, {{"f.A.variant", 1}}).said("constant-not-wanted"));
  const HostValue none = HostValue::zeros(apl::ScalarType::f32, {13, 21});
  const Made empty = make(source, none, false);
  CHECK(empty.said("constant-general"));
  check(source, empty.host, "c", {none, inputs.back()});
  HostValue infinite = inputs.front();
  infinite.set(0, apl::Scalar::floating(apl::ScalarType::f32, INFINITY));
  CHECK(make(source, infinite, false).said("constant-not-finite"));
  const Made large = make(source, inputs.front(), false, {{"f.A.columns", 1 << 20}});
  CHECK(large.said("constant-too-large"));
  check(source, large.host, "c", inputs);
}

TEST_CASE("sections hold every non-zero once, and rows that share columns stand together") {
  HostValue dense = HostValue::zeros(apl::ScalarType::i32, {6, 8});
  for (const auto& [row, column] : {std::pair{0, 0}, {0, 1}, {3, 0}, {3, 1}, {1, 5}, {1, 6}, {5, 5}, {5, 6}, {4, 7}})
    dense.set(row * 8 + column, apl::Scalar::integer(apl::ScalarType::i32, 1 + row));
  const apl::Sections made = apl::make_sections(apl::to_csr(dense), 2, 1, apl::kMostTerms);
  CHECK(made.empty_rows == std::vector<std::int32_t>{2});
  REQUIRE(made.sections.size() == 3);
  CHECK(made.sections[0].rows == std::vector<std::int32_t>{0, 3});
  CHECK(made.sections[1].rows == std::vector<std::int32_t>{1, 5});
  CHECK(made.sections[2].rows == std::vector<std::int32_t>{4});
  CHECK(made.sections[0].loads() == 2);
  CHECK(made.sections[0].terms() == 4);
  // Pieces have about as many terms each, and never more than are allowed.
  const apl::Sections cut = apl::make_sections(apl::to_csr(dense), 6, 1, 3);
  REQUIRE(cut.sections.size() == 1);
  CHECK(cut.sections.front().pieces.size() == 3);
  CHECK(cut.sections.front().terms() == 9);
}

TEST_CASE("kernels for a known matrix give what the program means") {
  const std::string after =
      "#[sparse(A)] #[constant(A)]\nentry f [n][m][b] (A: [n][m]f32) (B: [m][b]f32) (bias: [b]f32): [n][b]f32 =\n"
      "  map (\\row -> map2 (\\col x -> f32.max 0 (x + f32.sum (map2 (*) row col))) (transpose B) bias) A\n";
  for (const std::string& text : {spmm("f32"), spmm("f64"), spmm("i16"), spmm("u32"), after,
                                  spmm("f32", "#[sparse(A)] #[constant(A)] #[bf16(A, B)]")}) {
    CAPTURE(text);
    const Module source = read(text);
    const Values inputs = random_inputs(source, 13, 21, 37, 3);
    const Made made = make(source, inputs.front(), true, {{"f.A.rows", 4}, {"f.A.columns", 32}, {"f.A.pieces", 2}});
    REQUIRE(made.said("constant"));
    CHECK(made.host.find("APL_CONSTANT_FUNCTION") != std::string::npos);
    check(source, made.host, "emulate", inputs);
  }
}

TEST_CASE("matrices of one element, row or column are code like others") {
  const Module source = read(spmm("f32"));
  bool on_device = false;
  for (const auto& [n, m, b] : {std::tuple<std::int64_t, std::int64_t, std::int64_t>{1, 1, 1},
                                {1, 1, 40},
                                {1, 50, 17},
                                {50, 1, 33},
                                {20, 30, 9},
                                {20, 30, 1}}) {
    CAPTURE(n);
    CAPTURE(m);
    CAPTURE(b);
    auto inputs = apl::testing::random_arguments(*source.find_entry("f"), {{"n", n}, {"m", m}, {"b", b}}, 5);
    REQUIRE(inputs);
    inputs->front().set(0, apl::Scalar::floating(apl::ScalarType::f32, -2.5));
    const std::int64_t columns = on_device ? 24 : b == 1 ? 1 : 8;
    const Made made =
        make(source, inputs->front(), on_device, {{"f.A.rows", 7}, {"f.A.columns", columns}, {"f.A.pieces", 5}});
    REQUIRE(made.said("constant"));
    check(source, made.host, on_device ? "emulate" : "c", *inputs);
    on_device = !on_device;
  }
}

TEST_CASE("integers wrap at the ends of their types") {
  bool on_device = true;
  for (const auto& [type, least, most] : {std::tuple<std::string, std::int64_t, std::int64_t>{"i8", -128, 127},
                                          {"i32", INT32_MIN, INT32_MAX},
                                          {"u32", 0, UINT32_MAX}}) {
    CAPTURE(type);
    const Module source = read(spmm(type));
    Values inputs = random_inputs(source, 5, 9, 20, 3);
    const apl::ScalarType element = inputs.front().type;
    for (std::int64_t k = 0; k < 9; ++k)
      inputs.front().set(9 + k,
                         apl::convert(apl::Scalar::integer(apl::ScalarType::i64, k % 2 ? least : most), element));
    inputs.back().set(3, apl::convert(apl::Scalar::integer(apl::ScalarType::i64, least), element));
    const Made made = make(source, inputs.front(), on_device, {{"f.A.columns", 8}});
    REQUIRE(made.said("constant"));
    check(source, made.host, on_device ? "emulate" : "c", inputs);
    on_device = !on_device;
  }
}

TEST_CASE("NVRTC compiles kernels for known matrices" * doctest::test_suite("nvrtc")) {
  apl::HostCsr wide;  // one row of more terms than a piece may have
  wide.rows = 3;
  wide.columns = 6000;
  for (std::int32_t k = 0; k < 6000; ++k) wide.column.push_back(k);
  wide.row_start = {0, 0, 6000, 6000};
  wide.values = HostValue::zeros(apl::ScalarType::f32, {6000});
  for (std::int64_t k = 0; k < 6000; ++k) wide.values.set(k, apl::Scalar::floating(apl::ScalarType::f32, 0.5 * k + 1));
  std::vector<std::pair<apl::HostCsr, apl::SparseSchedule::Sections>> cases = {
      {wide, {.key = "k", .rows = 2, .columns = 128, .pieces = 1}}};
  for (const std::string type : {"f16", "f32", "f64", "i8", "i64", "u32"}) {
    const Module source = read(spmm(type));
    const apl::HostCsr matrix = apl::to_csr(random_inputs(source, 30, 40, 4, 9).front());
    cases.push_back({matrix, {.key = "k", .rows = 6, .columns = 128, .pieces = 3}});
    cases.push_back({matrix, {.key = "k", .rows = 7, .columns = 24, .pieces = 5}});
  }
  for (const auto& [matrix, sections] : cases)
    for (const bool is_proxy : {false, true}) {
      apl::lower::ConstantProduct product;
      product.name = "product";
      product.matrix = &matrix;
      product.sections = sections;
      product.result = matrix.values.type;
      if (is_proxy) product.proxy = apl::ProxyOptions{.clusters = 2, .any_columns = true, .moves_rows = true};
      const std::string text = "#define APL_CONSTANT_NAME product_kernel\n#define APL_CONSTANT_B_ROW 200\n" +
                               apl::lower::print_constant_device(product, {}, {}, 32).text;
      // A jump leads past whatever stands before it: each call is given its parameters behind its label.
      const auto count = [&](const std::string& wanted) {
        std::int64_t found = 0;
        for (std::size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) ++found;
        return found;
      };
      CHECK(count("st.param.b64 [b]") == count(" call"));
      CHECK(count("{ .param .align 8 .b8 b[8]") == count(" call"));
      const auto code = apl::compile_with_nvrtc(text, "sm_90", {});
      if (!code && code.error().code == apl::Code::unsupported_backend) return tests::skip(code.error().message);
      REQUIRE_MESSAGE(code, (code ? std::string() : code.error().message));
      CHECK(code->find("product_kernel") != std::string::npos);
    }
}

TEST_CASE("clusters join what is nearest, and are as many as are asked for") {
  const std::vector<apl::SectionFeatures> features = {{10, 20}, {11, 21}, {50, 90}, {10, 20}, {52, 91}, {300, 300}};
  const auto three = apl::cluster_sections(features, 3);
  CHECK(three[0] == three[1]);
  CHECK(three[0] == three[3]);
  CHECK(three[2] == three[4]);
  CHECK(std::set<std::size_t>{three[0], three[2], three[5]}.size() == 3);
  CHECK(std::set<std::size_t>(three.begin(), three.end()).size() == 3);
  const auto one = apl::cluster_sections(features, 1);
  CHECK(std::ranges::count(one, one.front()) == 6);
  const auto many = apl::cluster_sections(features, 99);
  CHECK(std::set<std::size_t>(many.begin(), many.end()).size() == 5);  // two are the same
  CHECK(apl::cluster_sections({}, 3).empty());
}

TEST_CASE("a proxy has the loads and terms of each cluster's mean, and ends where L says") {
  const Module source = read(spmm("f32"));
  const apl::HostCsr matrix = apl::to_csr(random_inputs(source, 60, 50, 4, 9).front());
  const apl::Sections sections = apl::make_sections(matrix, 4, 1, apl::kMostTerms);
  std::int64_t terms = 0;
  for (const apl::Section& section : sections.sections) terms += section.terms();
  REQUIRE(terms == matrix.nonzeros());
  const apl::SectionUses proxy = apl::make_proxy(matrix, sections, 4, 1, {.clusters = 3, .truncates = true});
  CHECK(proxy.functions.sections.size() == 3);
  REQUIRE(proxy.uses.size() == sections.sections.size());
  std::int64_t made = 0;
  for (const apl::SectionUses::Use& use : proxy.uses) made += proxy.functions.sections[use.function].terms();
  CHECK(std::abs(made - terms) <= std::ssize(proxy.uses));  // rounded means
  // 300 / density columns are more than there are here; a wide matrix is cut.
  apl::HostCsr wide;
  wide.rows = 1;
  wide.columns = 2000;
  for (std::int32_t k = 0; k < 2000; ++k) wide.column.push_back(k);
  wide.row_start = {0, 2000};
  wide.values = HostValue::zeros(apl::ScalarType::f32, {2000});
  const apl::Sections long_row = apl::make_sections(wide, 1, 1, apl::kMostTerms);
  CHECK(apl::make_proxy(wide, long_row, 1, 1, {.clusters = 1, .truncates = true}).functions.sections[0].loads() == 300);
  CHECK(apl::make_proxy(wide, long_row, 1, 1, {.clusters = 1, .truncates = false}).functions.sections[0].loads() ==
        2000);
}

TEST_CASE("blocks of a proxy's function read different rows of B, none behind the last") {
  const Module source = read(spmm("f32"));
  for (const std::int64_t rows : {1, 4, 40}) {
    const apl::HostCsr matrix = apl::to_csr(random_inputs(source, 60, 50, 4, 9).front());
    const apl::Sections sections = apl::make_sections(matrix, rows, 2, apl::kMostTerms);
    const apl::ProxyOptions options{.clusters = 3, .truncates = true, .moves_rows = true};
    const apl::SectionUses proxy = apl::make_proxy(matrix, sections, rows, 2, options);
    std::int32_t last = 0;
    for (const apl::Section& section : proxy.functions.sections)
      for (const auto& piece : section.pieces) last = std::max(last, piece.back().column);
    CAPTURE(rows);
    CHECK(last + proxy.spare_rows < matrix.columns);
    if (rows == 1) CHECK(proxy.spare_rows > 0);
    const apl::SectionUses still = apl::make_proxy(matrix, sections, rows, 2, {.clusters = 3, .truncates = true});
    CHECK(still.spare_rows == 0);
  }
}

TEST_CASE("proxies write no rows that the matrix does not have") {
  const Module source = read(spmm("f32"));
  for (const std::int64_t n : {3, 4, 11, 40}) {
    const apl::HostCsr matrix = apl::to_csr(random_inputs(source, n, 30, 4, 9).front());
    for (const std::int64_t rows : {1, 2, 8, 24}) {
      const apl::Sections sections = apl::make_sections(matrix, rows, 1, apl::kMostTerms);
      const apl::SectionUses proxy = apl::make_proxy(matrix, sections, rows, 1, {.clusters = 2, .truncates = true});
      for (const apl::SectionUses::Use& use : proxy.uses)
        for (const std::int32_t row : proxy.functions.sections[use.function].rows) {
          CAPTURE(n);
          CAPTURE(rows);
          CHECK(row + use.base < n);
        }
    }
  }
}

TEST_CASE("a multiprocessor holds as many blocks as there are, and as its registers, threads and memory allow") {
  const apl_device device = *apl::find_device("h200");
  CHECK(apl::active_blocks({.blocks = 128, .threads = 128, .registers = 32}, device) == 1);
  CHECK(apl::active_blocks({.blocks = 384, .threads = 128, .registers = 32}, device) == 3);
  CHECK(apl::active_blocks({.blocks = 9999, .threads = 128, .registers = 32}, device) == 16);
  CHECK(apl::active_blocks({.blocks = 9999, .threads = 128, .registers = 64}, device) == 8);
  CHECK(apl::active_blocks({.blocks = 9999, .threads = 1024, .registers = 32}, device) == 2);
  CHECK(apl::active_blocks({.blocks = 9999, .threads = 32, .registers = 16}, device) == 32);
  CHECK(apl::active_blocks({.blocks = 9999, .threads = 128, .registers = 32, .shared_bytes = 48 << 10}, device) == 4);
  CHECK(apl::active_blocks({.blocks = 0, .threads = 128, .registers = 32}, device) == 1);
}

TEST_CASE("shared memory holds a proxy to the blocks of its kernel") {
  const apl_device device = *apl::find_device("h200");
  apl::BlockNeeds proxy{.blocks = 9999, .threads = 128, .registers = 16, .shared_bytes = 512};
  REQUIRE(apl::active_blocks(proxy, device) == 16);
  CHECK(apl::proxy_shared_bytes(proxy, 16, device) == 512);
  // Of one block it takes all that a block can have, which is less than a multiprocessor's.
  for (std::int64_t active = 1; active < 16; ++active) {
    CAPTURE(active);
    apl::BlockNeeds held = proxy;
    held.shared_bytes = apl::proxy_shared_bytes(proxy, active, device);
    CHECK(held.shared_bytes > proxy.shared_bytes);
    CHECK(held.shared_bytes <= device.block_shared);
    CHECK(apl::active_blocks(held, device) == active);
  }
}
