// bf16 in generated programs: every number, and how others are rounded, against ir/scalar.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <bit>

#include "codegen/codegen.h"
#include "ir/parse.h"
#include "passes/pipeline.h"
#include "runtime/program/program.h"

namespace {

using apl::HostValue;
using apl::Scalar;
using apl::ScalarType;

constexpr const char* kConversions = R"(
stage soac

entry widen (x : "[n]bf16") : {"[n]f32", "[n]f64", "[n]i64", "[n]bool"}
fun widen [n] (x : [n]bf16) : {[n]f32, [n]f64, [n]i64, [n]bool} = {
  let {a : [n]f32, b : [n]f64, c : [n]i64, d : [n]bool} =
    map(i < n, {x},
      \{y : bf16} -> {
        let {f : f32} = convert(y, f32)
        let {g : f64} = convert(y, f64)
        let {h : i64} = convert(y, i64)
        let {k : bool} = convert(y, bool)
        in {f, g, h, k}
      })
  in {a, b, c, d}
}

entry round (x : "[n]f32", y : "[n]f64") : {"[n]bf16", "[n]bf16", "[n]u16"}
fun round [n] (x : [n]f32, y : [n]f64) : {[n]bf16, [n]bf16, [n]u16} = {
  let {a : [n]bf16, b : [n]bf16, c : [n]u16} =
    map(i < n, {x, y},
      \{f : f32, g : f64} -> {
        let {u : bf16} = convert(f, bf16)
        let {v : bf16} = convert(g, bf16)
        let {w : u16} = bitcast(u, u16)
        let {r : bf16} = bitcast(w, bf16)
        in {r, v, w}
      })
  in {a, b, c}
}
)";

apl::Program program(const std::string& backend) {
  auto module = apl::parse_module(kConversions, "conversions.aplir");
  REQUIRE_MESSAGE(module, (module ? "" : module.error().message));
  const bool c = backend == "c";
  const auto pipeline =
      apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory, c ? apl::Machine::cpu : apl::Machine::gpu),
                          apl::PassRegistry::builtin());
  REQUIRE(apl::run_pipeline(*module, *pipeline, {}));
  const auto text = apl::generate(*module, c ? apl::c_target() : apl::cuda_target());
  REQUIRE_MESSAGE(text, (text ? "" : text.error().message));
  apl::ProgramOptions options;
  options.backend = backend;
  auto loaded = apl::Program::load(text->host, options);
  REQUIRE_MESSAGE(loaded, (loaded ? "" : loaded.error().message));
  return *std::move(loaded);
}

// Whether each element of `got` is the one of `from`, converted.
bool is_converted(const HostValue& got, const HostValue& from) {
  for (std::int64_t k = 0; k < from.element_count(); ++k) {
    if (got.at(k) == apl::convert(from.at(k), got.type)) continue;
    MESSAGE(from.at(k).to_text() << " became " << got.at(k).to_text());
    return false;
  }
  return true;
}

}  // namespace

TEST_CASE("bf16: all 65536 numbers are read as ir/scalar reads them, and are what they were when rounded again") {
  std::vector<std::uint16_t> patterns(1 << 16);
  for (std::size_t k = 0; k < patterns.size(); ++k) patterns[k] = static_cast<std::uint16_t>(k);
  const HostValue all = HostValue::array(ScalarType::bf16, {1 << 16}, patterns);
  for (const char* backend : {"c", "emulate"}) {
    INFO(std::string(backend));
    apl::Program there = program(backend);
    const auto wide = there.call("widen", {all});
    REQUIRE(wide);
    for (const HostValue& got : *wide) CHECK(is_converted(got, all));
    const auto again = there.call("round", {(*wide)[0], (*wide)[1]});
    REQUIRE(again);
    for (std::int64_t k = 0; k < all.element_count(); ++k)
      REQUIRE(((*again)[0].at(k) == all.at(k) && (*again)[1].at(k) == all.at(k)));
  }
}

TEST_CASE("bf16: f32 and f64 are rounded once, to the nearest even") {
  // About every exponent, ties and their neighbours; in f64 also what becomes a tie only if it is rounded to f32 first.
  std::vector<float> floats = {0.0F, -0.0F, 3.3895e38F, 3.39e38F, 3.4e38F, INFINITY, -INFINITY, NAN, 1e-40F, 5e-45F};
  for (std::uint32_t exponent = 0; exponent < 255; exponent += 3)
    for (const std::uint32_t low : {0x0000U, 0x7FFFU, 0x8000U, 0x8001U, 0x18000U, 0x17FFFU, 0x7F8000U, 0x7FFFFFU})
      floats.push_back(std::bit_cast<float>((exponent << 23) + low + (exponent % 2 << 31)));
  std::vector<double> doubles;
  for (const float x : floats) doubles.push_back(static_cast<double>(x));
  for (std::size_t k = 0; k < doubles.size(); k += 2)
    if (std::isfinite(doubles[k])) doubles[k] *= k % 4 == 0 ? 1 + 1e-12 : 1 - 1e-12;
  const auto count = static_cast<std::int64_t>(floats.size());
  const HostValue x = HostValue::array(ScalarType::f32, {count}, floats);
  const HostValue y = HostValue::array(ScalarType::f64, {count}, doubles);
  for (const char* backend : {"c", "emulate"}) {
    INFO(std::string(backend));
    const auto got = program(backend).call("round", {x, y});
    REQUIRE(got);
    CHECK(is_converted((*got)[0], x));
    CHECK(is_converted((*got)[1], y));
    CHECK((*got)[2].data == (*got)[0].data);
  }
}
