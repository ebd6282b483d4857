// Profiles of devices and the cost model.
#include "passes/sparse/cost.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

namespace apl::sparse_test {
namespace {

using namespace sparse;
using Kind = TileShape::Kind;

// Costs are the roofline number: bytes, or operations over the peak.
Profile plain_profile(double peak = 1e9) {
  Profile profile = *builtin_profile("h200");
  profile.peak = peak;
  for (Coefficients* c : {&profile.spmm_ell, &profile.spmm_segments, &profile.sddmm_ell, &profile.sddmm_segments})
    *c = {1, 0, 1, 0};
  profile.launch = 0;
  return profile;
}

TEST_CASE("costs are those of the elements' type: blocks have them by bytes, dense products a rate a type") {
  const Profile& gpu = *builtin_profile("h200");
  for (const std::int64_t bytes : {2, 4, 8}) CHECK(CostModel(gpu, {Operator::spmm, 128, bytes}, 128).has_blocks());
  CHECK_FALSE(CostModel(gpu, {Operator::spmm, 128, 1}, 128).has_blocks());
  CHECK_FALSE(CostModel(gpu, {Operator::sddmm, 128, 4}, 128).has_blocks());
  CHECK_FALSE(CostModel(gpu, {Operator::spmm, 128, 4}, 128).has_block(32));
  CHECK(CostModel(gpu, {Operator::spmm, 128, 4}, 128).block(8, 100) >
        1.5 * CostModel(gpu, {Operator::spmm, 128, 2}, 128).block(8, 100));
  const auto dense = [&](std::int64_t bytes) {
    return CostModel(gpu, {Operator::spmm, 128, bytes}, 128).dense_product(4096, 4096);
  };
  CHECK(dense(4) > 8 * dense(2));
  CHECK(dense(8) > 2 * dense(4));
  const Profile again = *parse_profile(to_text(gpu));
  CHECK(again == gpu);
  // A profile that says nothing of types has one rate, and blocks for all of them.
  const Profile& cpu = *builtin_profile("cpu");
  CHECK(CostModel(cpu, {Operator::spmm, 128, 8}, 128).has_blocks());
  CHECK(CostModel(cpu, {Operator::spmm, 128, 8}, 128).dense_product(100, 100) ==
        CostModel(cpu, {Operator::spmm, 128, 4}, 128).dense_product(100, 100));
}

TEST_CASE("bytes and operations are those of table 3, with indices") {
  const Profile bytes = plain_profile();
  const Problem spmm{Operator::spmm, 64, 2}, sddmm{Operator::sddmm, 64, 2};
  // 8 lists of 4, 20 distinct columns: values and indices, rows of B, rows of C.
  const TileShape ell{Kind::ell, false, 8, 4, 20};
  CHECK(CostModel(bytes, spmm, 32).cost(ell) == 32 * 2 + 32 * 4 + 20 * 32 * 2 + 8 * 32 * 2);
  CHECK(CostModel(bytes, sddmm, 64).cost(ell) == 32 * 2 + 32 * 4 + 20 * 64 * 2 + 8 * 64 * 2 + 32 * 2);
  const TileShape run{Kind::segment, false, 5, 30, 21};
  CHECK(CostModel(bytes, spmm, 32).cost(run) == 30 * 2 + 30 * 8 + 21 * 32 * 2 + 5 * 32 * 2);
  CHECK(CostModel(bytes, sddmm, 64).cost(run) == 30 * 2 + 30 * 8 + (5 + 21) * 64 * 2 + 30 * 2);
  // Atomic additions read what they write.
  TileShape shared = ell;
  shared.shared = true;
  CHECK(CostModel(bytes, spmm, 32).cost(shared) == doctest::Approx(CostModel(bytes, spmm, 32).cost(ell) + 8 * 32 * 2));
  CHECK(CostModel(bytes, sddmm, 64).cost(shared) == CostModel(bytes, sddmm, 64).cost(ell));
  // With a peak of one operation a byte operations decide.
  CHECK(CostModel(plain_profile(1), spmm, 32).cost(ell) == 2 * 32 * 32);
}

TEST_CASE("block costs come from the table, on a line between its entries") {
  const Profile& h200 = *builtin_profile("h200");
  const auto step = [&](std::int64_t part) {
    return CostModel(h200, {}, part).block(8, 1) - CostModel(h200, {}, part).block(8, 0);
  };
  CHECK(step(128) == doctest::Approx(86.6));
  CHECK(step(80) == doctest::Approx((26.8 + 86.6) / 2));
  CHECK(step(16) == doctest::Approx(26.8 / 2));
  CHECK(step(1024) == doctest::Approx(2 * 329));
  CHECK_FALSE(CostModel(h200, {Operator::sddmm, 128, 2}, 128).has_block(64));
}

TEST_CASE("a partition costs what the busiest worker does") {
  Profile profile = plain_profile();
  profile.workers = 2;
  profile.launch = 10;
  const TileShape run{Kind::segment, false, 1, 1, 1};  // 1 by 1: 2 + 8 + 4 j
  const std::vector<TileShape> three(3, run);
  const Problem problem{Operator::spmm, 2, 2};
  CHECK(CostModel(profile, problem, 2).total(three) == 10 + 2 * 18);
  CHECK(CostModel(profile, problem, 1).total(three) == 10 + 3 * 14);
  CHECK(CostModel(profile, problem, 2).total({}) == 10);
  // So many that the smallest are not handed out one by one.
  const std::vector<TileShape> many(10001, run);
  CHECK(CostModel(profile, problem, 2).total(many) == doctest::Approx(10 + 5000.5 * 18));
}

TEST_CASE("algorithm 1 finds the coefficients that made the measurements") {
  const Profile profile = plain_profile(4);
  const Problem problem{Operator::spmm, 128, 4};
  const Coefficients truth{0.02, 50, 0.8, 0.3};
  Profile made = profile;
  made.spmm_ell = truth;
  std::mt19937_64 random(1);
  std::vector<Sample> samples;
  for (int k = 0; k < 40; ++k) {
    Sample sample{{Kind::ell, false, 1 + static_cast<std::int64_t>(random() % 32),
                   1 + static_cast<std::int64_t>(random() % 64), 1 + static_cast<std::int64_t>(random() % 200)}};
    sample.nanoseconds = CostModel(made, problem, 64).cost(sample.shape);
    sample.shape.shared = true;
    sample.atomic_nanoseconds = CostModel(made, problem, 64).cost(sample.shape);
    samples.push_back(sample);
  }
  const Coefficients found = fit(profile, problem, 64, samples);
  CHECK(found.a == doctest::Approx(truth.a));
  CHECK(found.b == doctest::Approx(truth.b));
  CHECK(found.c == doctest::Approx(truth.c));
  CHECK(found.d == doctest::Approx(truth.d));
  CHECK(fit_line(std::vector<double>{1, 1}, std::vector<double>{2, 4}) == std::pair(0.0, 3.0));
}

TEST_CASE("profiles print as what they were parsed from; mistakes are said at their line") {
  for (const char* name : {"h200", "cpu"}) {
    const Profile& profile = *builtin_profile(name);
    const auto again = parse_profile(to_text(profile));
    REQUIRE_MESSAGE(again, again.error().message);
    CHECK(*again == profile);
  }
  CHECK(builtin_profile("abacus") == nullptr);
  const std::string good = to_text(*builtin_profile("cpu"));
  const auto line_of_error = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    const auto profile = parse_profile(text);
    CHECK_MESSAGE(!profile, text);
    return profile ? 0 : profile.error().location.line;
  };
  CHECK(line_of_error("profile 2", "profile 3") == 1);
  CHECK(line_of_error("kind cpu", "kind tpu") == 3);
  CHECK(line_of_error("workers 1", "workers 0") == 4);
  CHECK(line_of_error("workers 1", "workers nan") == 4);
  CHECK(line_of_error("launch 1000", "lunch 1000") == 5);
  CHECK(line_of_error("spmm block 8", "spmm block 9") > 0);
  CHECK(line_of_error("ell-widths 1 2", "ell-widths 2 1") > 0);
  CHECK(line_of_error("segment-length 256\n", "") > 0);
  CHECK(line_of_error("peak 0.84\n", "launch 2\n") == 6);
}

TEST_CASE("profiles of version 1 have other words for the same") {
  std::string text = to_text(*builtin_profile("cpu"));
  for (const auto& [now, old] : std::vector<std::pair<std::string, std::string>>{{"profile 2", "profile 1"},
                                                                                 {"spmm segments", "spmm run"},
                                                                                 {"sddmm segments", "sddmm run"},
                                                                                 {"ell-widths", "lists"},
                                                                                 {"ell-elements", "list-elements"},
                                                                                 {"segment-length", "run-length"},
                                                                                 {"name cpu", "name run"}}) {
    REQUIRE(text.find(now) != std::string::npos);
    text.replace(text.find(now), now.size(), old);
  }
  const auto read = parse_profile(text);
  REQUIRE_MESSAGE(read, read.error().message);
  Profile expected = *builtin_profile("cpu");
  expected.name = "run";
  CHECK(*read == expected);
}

}  // namespace
}  // namespace apl::sparse_test
