// The choice of tile numbers (machine/tiles/plan.h).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "machine/target/records.h"

namespace {

using LetterSizes = std::map<char, std::int64_t>;

// A product with dims named by letters: operands' dims as they lie in memory, and the result's.
// Free dims of the same operands as the innermost one are N, those of none of these operands M: enough for two
// operands.
void find_mn_dims(apl_contraction& c) {
  const auto varying = [&](int d) {
    unsigned operands = 0;
    for (int o = 0; o < c.operand_count; ++o) operands |= c.operands[o].strides[d] != 0 ? 1U << o : 0U;
    return operands;
  };
  int n = -1, m = -1;
  for (int d = 0; d < c.space_rank; ++d)
    if (c.dims[d].kind == APL_DIM_FREE) n = d;
  for (int d = 0; d < c.space_rank; ++d)
    if (c.dims[d].kind == APL_DIM_FREE && (varying(d) & varying(n)) == 0) m = d;
  if (m < 0) return;
  const unsigned of_n = varying(n), of_m = varying(m);
  for (int d = 0; d < c.space_rank; ++d) {
    if (c.dims[d].kind != APL_DIM_FREE) continue;
    if (varying(d) == of_n) c.dims[d].kind = APL_DIM_N;
    if (varying(d) == of_m) c.dims[d].kind = APL_DIM_M;
  }
}

apl_contraction contraction_of(const std::vector<std::string>& operands, const std::string& result,
                               const LetterSizes& sizes, int bytes = 4) {
  std::string all = result;
  for (const std::string& operand : operands)
    for (char dim : operand)
      if (all.find(dim) == std::string::npos) all += dim;
  apl_contraction c{};
  c.dim_count = static_cast<int>(all.size());
  c.space_rank = static_cast<int>(result.size());
  c.operand_count = static_cast<int>(operands.size());
  c.result_bytes = c.widest_result = c.accumulator_bytes = bytes;
  c.operations = static_cast<float>(bytes) / 4;
  for (std::size_t d = 0; d < all.size(); ++d) {
    std::size_t vary = 0;
    for (std::size_t o = 0; o < operands.size(); ++o) {
      c.operands[o].bytes = bytes;
      const std::size_t at = operands[o].find(all[d]);
      if (at == std::string::npos) continue;
      ++vary;
      c.operands[o].strides[d] = 1;
      for (char inner : operands[o].substr(at + 1)) c.operands[o].strides[d] *= sizes.at(inner);
    }
    c.dims[d].size = sizes.at(all[d]);
    c.dims[d].kind = vary == operands.size() ? APL_DIM_BATCH : vary == 0 ? APL_DIM_INVARIANT : APL_DIM_FREE;
    if (d >= result.size()) c.dims[d].kind = APL_DIM_CONTRACTED;
  }
  find_mn_dims(c);
  return c;
}

apl_contraction product(const std::string& x, const std::string& y, std::int64_t m, std::int64_t n, std::int64_t q) {
  return contraction_of({x, y}, "ab", {{'a', m}, {'b', n}, {'q', q}});
}

apl_device device(const char* name) {
  auto found = apl::find_device(name);
  REQUIRE(found);
  return *found;
}

std::string text_of(const apl_contraction& c, const apl_plan& plan) {
  std::string text;
  for (int d = 0; d < c.dim_count; ++d)
    text += d < c.space_rank ? fmt::format("{}x{} ", plan.tile[d], plan.reg[d]) : fmt::format("{} ", plan.tile[d]);
  return text + fmt::format("stages {}", plan.stages);
}

// T 6.3 in one more way, by hand: a launch succeeds if the block is one that the device has.
bool launches(const apl_plan_cost& cost, const apl_device& d) {
  return cost.threads >= 1 && cost.threads <= d.block_threads && cost.block_shared <= d.block_shared &&
         cost.blocks <= INT32_MAX && cost.blocks_per_multiprocessor >= 1;
}

TEST_CASE("plans: sizes for which numbers were measured get them") {
  // Microseconds of f32 on an H100 (bench/results/contractions-all-h100-2026-11-26.json): large tiles of 256 threads
  // where many steps hide what one block waits for, two blocks beside each other else.
  struct Measured {
    const char *x, *y, *z;
    std::int64_t n, q;
    double microseconds;
    int threads, blocks;
  };
  const Measured cases[] = {
      {"qa", "qb", "ab", 4096, 4096, 2832, 256, 1},
      {"icaq", "qbjk", "abcijk", 31, 31, 2468, 128, 2},
  };
  const apl_device h100 = device("h100");
  for (const Measured& m : cases) {
    LetterSizes sizes;
    for (char dim : std::string("abcijk")) sizes[dim] = m.n;
    sizes['q'] = m.q;
    const apl_contraction c = contraction_of({m.x, m.y}, m.z, sizes);
    CAPTURE(m.x);
    CAPTURE(m.n);
    apl_plan_choice choice;
    REQUIRE(apl_plan_select(&c, nullptr, &h100, &choice) == 1);
    CHECK(choice.cost.threads == m.threads);
    CHECK(choice.cost.has_mainloop == 1);
    CHECK(choice.best.stages == 3);
    CHECK(choice.cost.blocks_per_multiprocessor == m.blocks);
    // The model is not far from what was measured.
    CHECK(choice.cost.seconds * 1e6 / m.microseconds > 0.75);
    CHECK(choice.cost.seconds * 1e6 / m.microseconds < 1.25);
  }
}

TEST_CASE("plans: what the model likes best was among the best when it was measured") {
  // Microseconds on an H200 (bench/results, ablation) of threads and registers along M and N, and the depth.
  struct Measured {
    int slow, slow_each, fast, fast_each, depth;
    double microseconds[4];
  };
  const Measured plans[] = {{16, 8, 8, 16, 16, {3121, 81, 125, 2468}},
                            {8, 8, 8, 8, 16, {3866, 58, 96, 2544}},
                            {16, 4, 16, 4, 16, {5019, 45, 92, 3350}},
                            {16, 4, 16, 8, 16, {3829, 56, 88, 3380}}};
  const LetterSizes short_dims{{'a', 31}, {'b', 31}, {'c', 31}, {'i', 31}, {'j', 31}, {'k', 31}, {'q', 31}};
  const apl_contraction cases[] = {product("aq", "qb", 4096, 4096, 4096), product("aq", "qb", 500, 500, 500),
                                   product("qa", "qb", 1000, 1000, 1000),
                                   contraction_of({"icaq", "qbjk"}, "abcijk", short_dims)};
  const apl_device h200 = device("h200");
  for (std::size_t k = 0; k < 4; ++k) {
    const apl_contraction& c = cases[k];
    REQUIRE(apl_plan_has_mn_dims(&c) == 1);
    double liked = 0, of_liked = 0, best = 0;
    for (const Measured& m : plans) {
      apl_plan plan{};
      for (int d = 0; d < c.dim_count; ++d) plan.tile[d] = plan.reg[d] = 1;
      // The innermost dim of each side.
      int lead[2] = {0, 0};
      for (int d = 0; d < c.space_rank; ++d)
        if (c.dims[d].kind == APL_DIM_M || c.dims[d].kind == APL_DIM_N) lead[c.dims[d].kind == APL_DIM_N] = d;
      plan.tile[lead[0]] = m.slow, plan.reg[lead[0]] = m.slow_each;
      plan.tile[lead[1]] = m.fast, plan.reg[lead[1]] = m.fast_each;
      plan.tile[c.dim_count - 1] = m.depth;
      plan.stages = 3;
      apl_plan_cost cost;
      apl_plan_estimate(&c, &plan, &h200, &cost);
      if (of_liked == 0 || cost.seconds < liked) liked = cost.seconds, of_liked = m.microseconds[k];
      best = best == 0 ? m.microseconds[k] : std::min(best, m.microseconds[k]);
    }
    CAPTURE(k);
    CHECK(of_liked <= 1.15 * best);
  }
}

TEST_CASE("plans: few large tiles leave multiprocessors idle, so that small products have small ones") {
  const apl_device h200 = device("h200");
  double last = 0;
  for (const std::int64_t n : {64, 128, 256, 512, 1024, 2048, 4096}) {
    const apl_contraction c = product("aq", "qb", n, n, n);
    apl_plan_choice choice;
    REQUIRE(apl_plan_select(&c, nullptr, &h200, &choice) == 1);
    CAPTURE(n);
    CHECK(choice.cost.seconds > last);
    if (n == 512) CHECK(choice.cost.blocks >= 64);
    if (n <= 512) CHECK(choice.best.tile[0] * choice.best.reg[0] <= 64);
    REQUIRE(choice.has_runner_up == 1);
    CHECK(choice.runner_up_cost.seconds < 2 * choice.cost.seconds);
    last = choice.cost.seconds;
  }
}

// A random contraction with one to three operands, and sizes of every kind.
apl_contraction random_contraction(std::mt19937_64& random) {
  const auto pick = [&](std::uint64_t count) { return random() % count; };
  const auto size = [&]() -> std::int64_t {
    static constexpr std::array kPrimes{2, 3, 5, 7, 11, 13, 17, 31, 61, 127, 251, 509, 1021};
    switch (pick(4)) {
      case 0: return 1;
      case 1: return kPrimes[pick(kPrimes.size())];
      case 2: return std::int64_t{1} << pick(12);
      default: return static_cast<std::int64_t>(pick(3000));
    }
  };
  const std::size_t rank = 1 + pick(10), contracted = 1 + pick(3), operands = 1 + pick(3);
  const std::string result = std::string("abcdefghij").substr(0, rank),
                    depth = std::string("qrs").substr(0, contracted);
  LetterSizes sizes;
  double elements = 1;
  for (char dim : result + depth) {
    sizes[dim] = size();
    // As much as fits into a memory, so that sizes are those of programs.
    if (elements * static_cast<double>(sizes[dim]) > 1e9) sizes[dim] = 1 + static_cast<std::int64_t>(pick(3));
    elements *= static_cast<double>(std::max<std::int64_t>(sizes[dim], 1));
  }
  std::vector<std::string> texts;
  for (std::size_t o = 0; o < operands; ++o) {
    std::string dims;
    for (char dim : result)
      if (pick(2) == 0) dims += dim;
    dims += depth;
    std::shuffle(dims.begin(), dims.end(), random);
    texts.push_back(dims);
  }
  constexpr int kBytes[] = {1, 2, 4, 8};
  apl_contraction c = contraction_of(texts, result, sizes, kBytes[pick(4)]);
  if (pick(8) == 0) c.accumulator_bytes *= 4;
  if (pick(4) == 0)
    for (int d = c.space_rank; d + 1 < c.dim_count; ++d) c.dims[d].fixed = 1;  // the operator's order counts
  return c;
}

TEST_CASE("plans: every default is valid, for any contraction and sizes") {
  constexpr int kCases = 2000;
  const std::uint64_t seed = 20261121;
  std::mt19937_64 random(seed);
  std::vector<apl_device> devices;
  for (std::string_view name : apl::device_names()) devices.push_back(device(std::string(name).c_str()));
  int bad = 0;
  for (int k = 0; k < kCases && bad < 5; ++k) {
    const apl_contraction c = random_contraction(random);
    const apl_device& d = devices[static_cast<std::size_t>(k) % devices.size()];
    apl_plan_choice choice;
    std::int64_t needed = 0, limit = 0;
    std::string wrong;
    if (apl_plan_select(&c, nullptr, &d, &choice) != 1) {
      // More blocks than a grid has is no plan's fault.
      if (choice.fault != APL_PLAN_BLOCKS) wrong = fmt::format("none, fault {}", static_cast<int>(choice.fault));
    } else if (choice.fault != APL_PLAN_FINE ||
               apl_plan_check(&c, &choice.best, &d, &needed, &limit) != APL_PLAN_FINE) {
      wrong = fmt::format("{} needs {} of {}, fault {}: {} of {}, bytes {} acc {}", text_of(c, choice.best), needed,
                          limit, static_cast<int>(choice.fault), choice.needed, choice.limit, c.operands[0].bytes,
                          c.accumulator_bytes);
    } else if (d.warp > 0 && !launches(choice.cost, d)) {
      wrong = fmt::format("{} does not launch", text_of(c, choice.best));
    } else if (!(choice.cost.seconds >= 0) || !(choice.cost.seconds < 1e6)) {
      wrong = fmt::format("{} costs {} s", text_of(c, choice.best), choice.cost.seconds);
    }
    if (!wrong.empty()) {
      ++bad;
      FAIL_CHECK(fmt::format("seed {}, case {} on {}: {}", seed, k, d.name, wrong));
    }
  }
}

TEST_CASE("plans: what is given stays, and the rest is chosen around it") {
  const apl_device h200 = device("h200");
  const apl_contraction c = product("aq", "qb", 4096, 4096, 4096);
  apl_forced forced{};
  forced.tile[0] = 4;
  forced.reg[1] = 8;
  forced.stages = 2;
  apl_plan_choice choice;
  REQUIRE(apl_plan_select(&c, &forced, &h200, &choice) == 1);
  CHECK(choice.best.tile[0] == 4);
  CHECK(choice.best.reg[1] == 8);
  CHECK(choice.best.stages == 2);
  CHECK(choice.cost.has_mainloop == 1);
  CHECK(choice.considered > 10);
}

TEST_CASE("plans: neighbours that lie together cost what one dim of their product costs") {
  const apl_device h200 = device("h200");
  const auto seconds = [&](std::int64_t apart) {
    // Y[q, b, c] with rows of c that are `apart` elements apart; b and c are one side.
    apl_contraction c{};
    c.dim_count = 4, c.space_rank = 3, c.operand_count = 2;
    c.result_bytes = c.widest_result = c.accumulator_bytes = 4;
    c.operations = 1;
    c.dims[0] = {4096, APL_DIM_M, 0}, c.dims[1] = {682, APL_DIM_N, 0}, c.dims[2] = {6, APL_DIM_N, 0};
    c.dims[3] = {4096, APL_DIM_CONTRACTED, 0};
    c.operands[0] = {.bytes = 4, .strides = {1, 0, 0, 4096}},
    c.operands[1] = {.bytes = 4, .strides = {0, apart, 1, 682 * apart}};
    const apl_plan plan{{16, 1, 8, 16}, {8, 1, 16}, 3, 0};
    apl_plan_cost cost;
    apl_plan_estimate(&c, &plan, &h200, &cost);
    return cost.seconds;
  };
  apl_contraction one{};
  one.dim_count = 3, one.space_rank = 2, one.operand_count = 2;
  one.result_bytes = one.widest_result = one.accumulator_bytes = 4;
  one.operations = 1;
  one.dims[0] = {4096, APL_DIM_M, 0}, one.dims[1] = {4092, APL_DIM_N, 0};
  one.dims[2] = {4096, APL_DIM_CONTRACTED, 0};
  one.operands[0] = {.bytes = 4, .strides = {1, 0, 4096}}, one.operands[1] = {.bytes = 4, .strides = {0, 1, 4092}};
  const apl_plan plan{{16, 8, 16}, {8, 16}, 3, 0};
  apl_plan_cost cost;
  apl_plan_estimate(&one, &plan, &h200, &cost);
  CHECK(seconds(6) == doctest::Approx(cost.seconds));
  CHECK(seconds(7) > seconds(6));
}

TEST_CASE("plans: arrays that code after the reduction reads take registers: where they are many, tiles are smaller") {
  const apl_device h200 = device("h200");
  apl_contraction c = product("aq", "qb", 4096, 4096, 4096);
  apl_plan_choice plain, after;
  REQUIRE(apl_plan_select(&c, nullptr, &h200, &plain) == 1);
  // Seen with ptxas: this plan spills with three arrays after it, and not with one.
  c.epilogue_arrays = 3;
  apl_plan_cost cost;
  REQUIRE(apl_plan_select(&c, nullptr, &h200, &after) == 1);
  apl_plan_estimate(&c, &plain.best, &h200, &cost);
  CHECK(cost.registers > h200.thread_registers);
  CHECK(after.cost.registers <= h200.thread_registers);
  c.epilogue_arrays = 1;
  apl_plan_estimate(&c, &plain.best, &h200, &cost);
  CHECK(cost.registers <= h200.thread_registers);
}

TEST_CASE("plans: where given numbers cannot work, the fault names one that would") {
  const apl_device h200 = device("h200");
  const apl_contraction c = product("aq", "qb", 4096, 4096, 4096);
  apl_plan_choice choice;
  apl_forced threads{};
  threads.tile[0] = 64, threads.tile[1] = 32;
  CHECK(apl_plan_select(&c, &threads, &h200, &choice) == 0);
  CHECK(choice.fault == APL_PLAN_THREADS);
  CHECK(choice.needed == 2048);
  CHECK(choice.limit == 1024);
  CHECK(choice.conflict_works * 2 == (choice.conflict_dim == 0 ? 64 : 32));
  apl_forced depth{};
  depth.tile[2] = 1 << 20;
  CHECK(apl_plan_select(&c, &depth, &h200, &choice) == 0);
  CHECK(choice.fault == APL_PLAN_SHARED);
  CHECK(choice.conflict_number == APL_NUMBER_TILE);
  CHECK(choice.conflict_dim == 2);
  depth.tile[2] = choice.conflict_works;
  CHECK(apl_plan_select(&c, &depth, &h200, &choice) == 1);
  // Too many registers run, if slowly: given numbers count, and the fault is a remark.
  apl_forced registers{};
  registers.reg[0] = registers.reg[1] = 16, registers.tile[0] = registers.tile[1] = 8;
  CHECK(apl_plan_select(&c, &registers, &h200, &choice) == 1);
  CHECK(choice.fault == APL_PLAN_REGISTERS);
}

TEST_CASE("plans: a dozen cover random sizes") {
  const apl_device h200 = device("h200");
  std::mt19937_64 random(7);
  std::vector<apl_contraction> samples;
  for (int k = 0; k < 40; ++k) {
    const auto size = [&] { return std::int64_t{1} << (random() % 13); };
    samples.push_back(product("aq", "qb", size(), size(), size()));
  }
  apl_plan plans[APL_MAX_PLANS];
  double worst = 0;
  const int count = apl_plan_cover(samples.data(), 40, nullptr, &h200, 1.2, APL_MAX_PLANS, plans, &worst);
  CHECK(count > 1);
  CHECK(count <= APL_MAX_PLANS);
  CHECK(worst < 1.5);
  // The best of them, for each: as good as promised.
  for (const apl_contraction& c : samples) {
    apl_plan_choice choice;
    REQUIRE(apl_plan_select(&c, nullptr, &h200, &choice) == 1);
    const int best = apl_plan_best_of(&c, plans, count, &h200, nullptr);
    REQUIRE(best >= 0);
    apl_plan_cost cost;
    apl_plan_estimate(&c, &plans[best], &h200, &cost);
    CHECK(cost.seconds <= 1.5 * 1.1 * choice.cost.seconds);
  }
  // Fewer plans, more loss; one that is struck out is not chosen.
  double worst_of_one = 0;
  CHECK(apl_plan_cover(samples.data(), 40, nullptr, &h200, 1.2, 1, plans, &worst_of_one) == 1);
  CHECK(worst_of_one > worst);
  const unsigned char banned[] = {1};
  CHECK(apl_plan_best_of(&samples[0], plans, 1, &h200, banned) == -1);
}

int select_variant(const apl_contraction* c, const apl_plan_list* tiled, const apl_plan_list* parts, int only,
                   const apl_device* device, apl_variant_choice* choice) {
  apl_variant_lists lists{};
  lists.plans[APL_VARIANT_TILED] = tiled, lists.plans[APL_VARIANT_SPLIT] = parts;
  return apl_variant_select(c, &lists, only, device, choice);
}

TEST_CASE(
    "variants: few results of a long sum are computed in parts, large products are tiled, many tiny ones are not") {
  struct Expected {
    std::int64_t m, n, q;
    int variant;
  };
  constexpr Expected kExpected[] = {{64, 64, 1000000, APL_VARIANT_SPLIT},  {32, 32, 1000000, APL_VARIANT_SPLIT},
                                    {300, 300, 4000, APL_VARIANT_SPLIT},   {4096, 1, 4096, APL_VARIANT_SPLIT},
                                    {4096, 4096, 4096, APL_VARIANT_TILED}, {1024, 1024, 1024, APL_VARIANT_TILED},
                                    {4096, 4096, 4, APL_VARIANT_TILED}};
  const apl_device h200 = device("h200");
  const apl_plan_list any{};
  for (const Expected& e : kExpected) {
    const apl_contraction c = product("aq", "qb", e.m, e.n, e.q);
    apl_variant_choice choice;
    REQUIRE(select_variant(&c, &any, &any, 0, &h200, &choice) == 1);
    CAPTURE(e.m);
    CAPTURE(e.q);
    CHECK(choice.variant == e.variant);
    // Not faster than memory and arithmetic allow.
    const double bytes = 4.0 * static_cast<double>(e.m * e.q + e.q * e.n + e.m * e.n);
    const double flops = 2.0 * static_cast<double>(e.m) * static_cast<double>(e.n * e.q);
    CHECK(choice.seconds[choice.variant] > bytes / 4.8e12);
    CHECK(choice.seconds[choice.variant] > flops / 67e12);
    if (e.variant == APL_VARIANT_SPLIT) CHECK(choice.splits > 1);
    // What is asked for counts; without plans for parts nothing is split.
    REQUIRE(select_variant(&c, &any, &any, APL_VARIANT_TILED, &h200, &choice) == 1);
    CHECK(choice.variant == APL_VARIANT_TILED);
    REQUIRE(select_variant(&c, &any, nullptr, 0, &h200, &choice) == 1);
    CHECK(choice.variant != APL_VARIANT_SPLIT);
    CHECK(choice.splits == 1);
    // Padding pays nowhere that it was measured.
    CHECK(choice.padded_seconds > choice.seconds[APL_VARIANT_TILED]);
  }
  // The measured products and tensors stay as they are.
  LetterSizes sizes{{'a', 31}, {'b', 31}, {'c', 31}, {'i', 31}, {'j', 31}, {'k', 31}, {'q', 31}};
  const apl_contraction tensor = contraction_of({"icaq", "qbjk"}, "abcijk", sizes);
  apl_variant_choice choice;
  REQUIRE(select_variant(&tensor, &any, &any, 0, &h200, &choice) == 1);
  CHECK(choice.variant == APL_VARIANT_TILED);
  LetterSizes tiny{{'b', 1000000}, {'i', 4}, {'j', 4}, {'q', 4}};
  const apl_contraction batch = contraction_of({"biq", "bqj"}, "bij", tiny);
  REQUIRE(select_variant(&batch, &any, &any, 0, &h200, &choice) == 1);
  CHECK(choice.variant == APL_VARIANT_UNTILED);
}

TEST_CASE("variants: 64 x 64 results of a million products are thirty times as fast in parts, by the model") {
  const apl_device h200 = device("h200");
  const apl_plan_list any{};
  const apl_contraction c = product("aq", "qb", 64, 64, 1000000);
  apl_variant_choice choice;
  REQUIRE(select_variant(&c, &any, &any, 0, &h200, &choice) == 1);
  CHECK(choice.seconds[APL_VARIANT_TILED] > 30 * choice.seconds[APL_VARIANT_SPLIT]);
  // Enough of them that no multiprocessor idles, and hardly anything is left for the join.
  CHECK(choice.splits >= h200.multiprocessors / 4);
  CHECK(c.dims[2].size % choice.splits < 200);
  // Parts are chosen for the plans that are there, too.
  const apl_plan plans[] = {{{8, 8, 16}, {8, 8}, 3, 0}, {{1, 8, 8, 16}, {1, 8, 8}, 3, 0}};
  const apl_plan_list whole{&plans[0], 1, nullptr}, parts{&plans[1], 1, nullptr};
  REQUIRE(select_variant(&c, &whole, &parts, 0, &h200, &choice) == 1);
  CHECK(choice.variant == APL_VARIANT_SPLIT);
  const unsigned char banned[] = {1};
  const apl_plan_list none{&plans[1], 1, banned};
  REQUIRE(select_variant(&c, &whole, &none, 0, &h200, &choice) == 1);
  CHECK(choice.variant != APL_VARIANT_SPLIT);
}

TEST_CASE("variants: what parts cost is near what was measured") {
  // Microseconds on an H200 (apl_bench --variants).
  struct Measured {
    std::int64_t m, n, q;
    double split;
  };
  constexpr Measured kMeasured[] = {{64, 64, 1000000, 325},  {32, 32, 1000000, 184},  {16, 16, 100000, 45},
                                    {128, 128, 100000, 148}, {256, 256, 100000, 415}, {512, 512, 20000, 342}};
  const apl_device h200 = device("h200");
  const apl_plan_list any{};
  for (const Measured& m : kMeasured) {
    const apl_contraction c = product("aq", "qb", m.m, m.n, m.q);
    apl_variant_choice choice;
    REQUIRE(select_variant(&c, &any, &any, 0, &h200, &choice) == 1);
    CAPTURE(m.m);
    CAPTURE(m.q);
    CHECK(choice.variant == APL_VARIANT_SPLIT);
    CHECK(choice.seconds[APL_VARIANT_SPLIT] * 1e6 / m.split > 0.65);
    CHECK(choice.seconds[APL_VARIANT_SPLIT] * 1e6 / m.split < 1.25);
  }
}

TEST_CASE("variants: parts are the contraction, cut along its outermost reduction") {
  std::mt19937_64 random(3);
  const apl_device h200 = device("h200");
  for (int k = 0; k < 300; ++k) {
    const apl_contraction c = random_contraction(random);
    const auto splits = static_cast<std::int64_t>(2 + random() % 9);
    apl_contraction parts;
    if (apl_contraction_parts(&c, splits, &parts) == 0) {
      CHECK(c.dim_count == APL_PLAN_DIMS);
      continue;
    }
    const int cut = c.space_rank;
    CHECK(parts.dims[0].size == splits);
    CHECK(parts.dims[cut + 1].size * splits <= c.dims[cut].size);
    CHECK((parts.dims[cut + 1].size + 1) * splits > c.dims[cut].size);
    for (int o = 0; o < c.operand_count; ++o)
      for (int d = 0; d < c.dim_count; ++d) CHECK(parts.operands[o].strides[d + 1] == c.operands[o].strides[d]);
    apl_plan plan{};
    for (int d = 0; d <= c.dim_count; ++d) plan.tile[d] = plan.reg[d] = 1;
    apl_plan_cost whole_cost, parts_cost;
    apl_plan_estimate(&c, &plan, &h200, &whole_cost);
    apl_plan_estimate(&parts, &plan, &h200, &parts_cost);
    CHECK(parts_cost.blocks == std::min(whole_cost.blocks * splits, std::int64_t{1} << 56));
  }
}

TEST_CASE("plans: device records are read by name, adapted to what a driver says, and refused with the line") {
  for (std::string_view name : apl::device_names())
    CHECK(std::string_view(device(std::string(name).c_str()).name) == name);
  CHECK_FALSE(apl::find_device("h300"));
  apl_device parsed;
  int line = 0;
  CHECK(apl_device_parse("name = x\nkind = cpu\nprocessors = -1\n", &parsed, &line) == 0);
  CHECK(line == 3);
  CHECK(apl_device_parse("name = x\n\nclock = 3\n", &parsed, &line) == 0);
  CHECK(line == 3);
  CHECK(apl_device_parse("name = x\nkind = gpu\nprocessors = 4\nclock_ghz = 1\n", &parsed, &line) == 0);
  const apl_device h200 = apl::device_from({"NVIDIA H200", 120, 0, 0, 0, 0, 0, 0});
  CHECK(std::string_view(h200.name) == "h200");
  CHECK(h200.multiprocessors == 120);
  const apl_device other = apl::device_from({"NVIDIA RTX 4090", 128, 101376, 102400, 1536, 65536, 2.5, 1008});
  CHECK(std::string_view(other.name) == "gpu");
  CHECK(other.memory_gbs == doctest::Approx(1008));
}

}  // namespace
