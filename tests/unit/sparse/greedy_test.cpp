// Algorithm 2 on candidates that are listed one by one: figure 6, and the bound of theorem 3.1.
#include "passes/sparse/greedy.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace apl::sparse_test {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct SubTaskSet {
  double cost;
  std::uint32_t points;
  bool replaces = false;  // may replace others
};

// All candidates in a list; a replacement can replace what it covers.
struct ListedCover {
  std::vector<SubTaskSet> candidates;
  std::uint32_t universe;
  std::uint32_t left = universe;
  std::vector<char> taken = std::vector<char>(candidates.size());
  std::size_t best = 0, other = 0;

  bool done() const { return left == 0; }
  double limit() const { return kNever; }

  double average(const SubTaskSet& task, double saved) const {
    const int gained = std::popcount(task.points & left);
    return gained == 0 ? kNever : (task.cost - saved) / gained;
  }
  double saved_by(const SubTaskSet& task) const {
    double saved = 0;
    for (std::size_t k = 0; k < candidates.size(); ++k)
      if (taken[k] && (candidates[k].points & ~task.points) == 0) saved += candidates[k].cost;
    return saved;
  }
  double find_best() {
    double least = kNever;
    for (std::size_t k = 0; k < candidates.size(); ++k)
      if (const double a = average(candidates[k], 0); a < least) least = a, best = k;
    return least;
  }
  double find_replacement() {
    double least = kNever;
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      if (!candidates[k].replaces) continue;
      const double saved = saved_by(candidates[k]);
      if (const double a = average(candidates[k], saved); saved > 0 && a < least) least = a, other = k;
    }
    return least;
  }
  void take(std::size_t k) {
    taken[k] = 1;
    left &= ~candidates[k].points;
  }
  void select(double most) {
    take(best);
    for (std::size_t k = 0; k < candidates.size(); ++k)
      if (average(candidates[k], 0) <= most) take(k);
  }
  void replace() {
    for (std::size_t k = 0; k < candidates.size(); ++k)
      if (taken[k] && (candidates[k].points & ~candidates[other].points) == 0) taken[k] = 0;
    take(other);
  }
  double cost() const {
    double sum = 0;
    for (std::size_t k = 0; k < candidates.size(); ++k) sum += taken[k] ? candidates[k].cost : 0;
    return sum;
  }
};

// x1 covers 0-7, x2 8-10; x3 five new points for 6; x4 all of them for 12, in place of x1 and x2.
ListedCover figure_6() { return {{{8, 0xFF}, {3, 0x700}, {6, 0xF800}, {12, 0xFFFF, true}}, 0xFFFF}; }

TEST_CASE("figure 6: withdrawing two sub-tasks costs 12 instead of 17") {
  // As the figure starts: x1 and x2 are selected.
  for (const bool withdraw : {true, false}) {
    ListedCover cover = figure_6();
    cover.take(0);
    cover.take(1);
    CHECK(cover.find_best() == 1.2);
    CHECK(cover.best == 2);
    CHECK(cover.find_replacement() == 0.2);
    CHECK(sparse::cover_greedily(cover, {1.0, withdraw, 0}) == 1);
    CHECK(cover.cost() == (withdraw ? 12 : 17));
  }
}

TEST_CASE("theorem 3.1: greedy costs at most r H(|U|) times the optimum") {
  std::mt19937_64 random(11);
  double worst = 0;
  for (int round = 0; round < 2000; ++round) {
    const int points = 1 + static_cast<int>(random() % 8);
    const std::uint32_t universe = (1U << points) - 1;
    std::vector<SubTaskSet> candidates;
    // Single points always exist, so that there is a solution.
    for (int k = 0; k < points; ++k) candidates.push_back({1 + static_cast<double>(random() % 20), 1U << k});
    for (std::uint64_t k = random() % 7; k > 0; --k)
      candidates.push_back({1 + static_cast<double>(random() % 40), 1 + static_cast<std::uint32_t>(random() % universe),
                            random() % 2 == 0});
    double optimum = kNever;
    for (std::uint32_t chosen = 0; chosen < 1U << candidates.size(); ++chosen) {
      double cost = 0;
      std::uint32_t covered = 0;
      for (std::size_t k = 0; k < candidates.size(); ++k)
        if (chosen >> k & 1) cost += candidates[k].cost, covered |= candidates[k].points;
      if ((covered & universe) == universe) optimum = std::min(optimum, cost);
    }
    double harmonic = 0;
    for (int k = 1; k <= points; ++k) harmonic += 1.0 / k;
    const double ratio = 1 + static_cast<double>(random() % 5) / 10;
    ListedCover cover{candidates, universe};
    sparse::cover_greedily(cover, {ratio, random() % 2 == 0, 0});
    CHECK(cover.left == 0);
    CHECK(cover.cost() >= optimum);
    CHECK(cover.cost() <= ratio * harmonic * optimum + 1e-9);
    worst = std::max(worst, cover.cost() / optimum);
  }
  CHECK(worst > 1.2);  // greedy is not the optimum
}

TEST_CASE("levels bound the rounds") {
  ListedCover cover = figure_6();
  cover.candidates.pop_back();
  cover.taken.pop_back();
  CHECK(sparse::cover_greedily(cover, {1.0, true, 1}) == 1);
  CHECK(cover.left != 0);
}

}  // namespace
}  // namespace apl::sparse_test
