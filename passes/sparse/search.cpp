#include "passes/sparse/search.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <string>

#include "passes/sparse/as_run.h"
#include "passes/sparse/group_cover.h"
#include "passes/sparse/halves.h"
#include "passes/sparse/order.h"
#include "passes/sparse/parallel.h"

namespace apl::sparse {
namespace {

// Orders that are not made of larger matrices: they take longer than a search, and rarely win there.
constexpr std::int64_t kMostForBandwidth = 4'000'000, kMostForLength = 2'000'000;
// So many of the plans that the model likes best are run where they can be.
constexpr std::size_t kMostMeasured = 12;
// An order is worth a search if its rows share so much more than those of the matrix as it is.
constexpr double kBetterSharing = 1.05;

using Order = std::vector<std::int32_t>;
using Shapes = std::vector<TileShape>;

// The cheapest cut of the dense loop for these tiles.
struct Priced {
  double cost = 0;
  std::int64_t part = 1;
};

// Plans of one format that cost nothing to look at while the groups are there.
struct SingleFormats {
  Shapes ell_rows, segments;
  std::array<Shapes, 4> blocks;
};

class Search {
 public:
  Search(const Csr& matrix, const Profile& profile, const SearchOptions& options)
      : matrix_(matrix),
        profile_(profile),
        options_(options),
        threads_(thread_count(options.threads)),
        groups_((matrix.rows + kGroupRows - 1) / kGroupRows) {
    remainder_ = {profile.widths, profile.ell_elements, profile.segment_length};
    plan_.problem = options.problem;
    plan_.rows = matrix.rows;
    plan_.columns = matrix.columns;
    plan_.nonzeros = matrix.nonzeros();
    plan_.hash = pattern_hash(matrix);
    plan_.remainder = remainder_;
    plan_.device = profile.name;
    plan_.how_measured = options.measured;
    for (std::int64_t part : {32, 64, 128, 256, 512})
      if (options.problem.op == Operator::spmm && part < options.problem.dense) cuts_.push_back(part);
    cuts_.push_back(options.problem.dense);
    passes_ = options.reorder && matrix.nonzeros() <= kMostForLength ? 4 : options.reorder ? 2 : 1;
  }

  Plan run() {
    const std::int64_t part = std::min<std::int64_t>(options_.problem.dense, cuts_.size() > 1 ? 128 : cuts_.back());
    first_part_ = part;
    consider("hybrid", "natural", {}, part, true);
    // An order is for blocks; kernels without them have caches that the model does not know, and the rows as they are
    // are the best guess.
    const bool has_blocks = options_.formats.block && CostModel(profile_, options_.problem, part).has_blocks();
    if (options_.reorder && has_blocks && groups_ > 1) reorder(part);
    // Costs of the winner with the cut that is best for it may have other tiles.
    if (plan_.part != part && !stopped())
      consider("hybrid for parts of " + std::to_string(plan_.part), plan_.order, plan_.row_order, plan_.part, false);
    const double dense =
        CostModel(profile_, options_.problem, options_.problem.dense).dense_product(matrix_.rows, matrix_.columns);
    note("dense", dense);
    if (options_.measure) {
      measure_candidates(dense);
    } else if (dense < plan_.cost) {
      plan_.dense = true;
      plan_.cost = dense;
    }
    std::stable_sort(plan_.considered.begin(), plan_.considered.end(),
                     [](const auto& a, const auto& b) { return a.second < b.second; });
    plan_.complete = !stopped_;
    plan_.seconds = seconds();
    return std::move(plan_);
  }

 private:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  bool stopped() {
    if (options_.seconds > 0 && seconds() > options_.seconds) stopped_ = true;
    return stopped_;
  }

  void note(const std::string& name, double cost) { plan_.considered.emplace_back(name, cost); }

  Priced price(const Shapes& shapes) const {
    Priced best;
    for (const std::int64_t part : cuts_) {
      const double cost = CostModel(profile_, options_.problem, part).total(shapes);
      if (best.cost == 0 || cost < best.cost) best = {cost, part};
    }
    return best;
  }

  void take(const std::string& name, const Priced& priced, const std::string& order_name, const Order& order,
            std::vector<GroupPlan> groups) {
    if (options_.as_run)
      groups = as_run(groups, options_.problem.op, CostModel(profile_, options_.problem, priced.part));
    note(order_name == "natural" ? name : name + ", rows by " + order_name, priced.cost);
    if (options_.measure) candidates_.push_back({plan_.considered.back().first, priced, order_name, order, groups});
    if (plan_.cost != 0 && priced.cost >= plan_.cost) return;
    plan_.cost = priced.cost;
    plan_.part = priced.part;
    plan_.order = order_name;
    plan_.row_order = order;
    plan_.groups = std::move(groups);
  }

  // Runs the candidates, the dense product too, and takes the fastest. Those that cannot be run keep their place
  // behind.
  void measure_candidates(double dense) {
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.priced.cost < b.priced.cost; });
    // What kernels for GPUs run without a plan is of one kind; a plan is not to be worse than that.
    const auto is_plain = [&](const Candidate& c) {
      return profile_.gpu && c.order == "natural" &&
             (c.name == "ell" || c.name == "1d" || c.name.starts_with("block of "));
    };
    std::ranges::stable_partition(candidates_, is_plain);
    if (candidates_.size() > kMostMeasured) candidates_.resize(kMostMeasured);
    Plan best;
    double least = std::numeric_limits<double>::infinity();
    std::size_t done = 0;
    const std::size_t all = candidates_.size() + 1;
    const auto run = [&](const std::string& name, Plan plan) {
      report_run(name, ++done, all, least);
      const double time = options_.measure(plan);
      if (time <= 0) return;
      plan_.measured.emplace_back(name, time);
      if (time >= least) return;
      least = time;
      best = std::move(plan);
    };
    for (Candidate& candidate : candidates_) {
      if (!plan_.measured.empty() && stopped()) break;
      Plan plan = plan_;
      plan.cost = candidate.priced.cost;
      plan.part = candidate.priced.part;
      plan.order = candidate.order;
      plan.row_order = std::move(candidate.row_order);
      plan.groups = std::move(candidate.groups);
      run(candidate.name, std::move(plan));
    }
    if (!stopped()) {
      Plan plan = plan_;
      plan.dense = true;
      plan.cost = dense;
      run("dense", std::move(plan));
    }
    candidates_.clear();
    if (plan_.measured.empty()) return;
    std::stable_sort(plan_.measured.begin(), plan_.measured.end(),
                     [](const auto& a, const auto& b) { return a.second < b.second; });
    best.considered = std::move(plan_.considered);
    best.measured = std::move(plan_.measured);
    plan_ = std::move(best);
  }

  // Searches all groups with this order; with `single` plans of one format are looked at, too.
  void consider(const std::string& name, const std::string& order_name, const Order& order, std::int64_t part,
                bool single) {
    const CostModel model(profile_, options_.problem, part);
    std::vector<GroupPlan> groups(static_cast<std::size_t>(groups_));
    std::vector<char> seen(groups.size());
    std::vector<Shapes> shapes(static_cast<std::size_t>(threads_));
    std::vector<SingleFormats> singles(static_cast<std::size_t>(threads_));
    const bool composes = profile_.gpu && options_.measure && options_.formats.block && model.has_blocks() &&
                          options_.problem.op == Operator::spmm && part == first_part_;
    Halves halves(composes ? groups_ : 0);
    std::atomic<std::int64_t> next = 0;
    on_threads(threads_, [&](int worker) {
      const auto w = static_cast<std::size_t>(worker);
      RowGroup group;
      GroupTiles tiles(remainder_, matrix_.columns);
      GroupCover cover(model, remainder_, options_.formats);
      for (std::int64_t index = next++; index < groups_ && !stopped(); index = next++) {
        GroupPlan& plan = groups[static_cast<std::size_t>(index)];
        group.read(matrix_, order, index);
        if (composes) halves.look(group, index, model);
        cover.start(group);
        cover_greedily(cover, options_.greedy);
        cover.finish(plan.selections);
        const Shapes cheapest = cheapest_tiles(group, model, tiles, plan, single ? &singles[w] : nullptr);
        shapes[w].insert(shapes[w].end(), cheapest.begin(), cheapest.end());
        seen[static_cast<std::size_t>(index)] = 1;
        if (worker == 0) report(order_name, index);
      }
    });
    Shapes all;
    for (Shapes& part_of_all : shapes) {
      all.insert(all.end(), part_of_all.begin(), part_of_all.end());
      part_of_all = {};
    }
    for (std::size_t index = 0; index < groups.size(); ++index)
      if (!seen[index]) add_unseen(static_cast<std::int64_t>(index), order, all);
    take(name, price(all), order_name, order, std::move(groups));
    passes_done_ += 1;
    if (single && !stopped_) take_single(model, singles);
    if (composes && !stopped_) take_composed(model, halves, order_name, order);
  }

  // What kernels for GPUs can run as it is, at several rates of exchange between windows and gathered rows: how they
  // share a device is for a better model, or a run, to say.
  void take_composed(const CostModel& model, const Halves& halves, const std::string& order_name, const Order& order) {
    for (std::size_t h = 0; h < kWindowHeights.size(); ++h) {
      if (!model.has_block(kWindowHeights[h])) continue;
      std::vector<GroupPlan> before;
      for (const double bias : {0.5, 0.8, 1.25, 2.0}) {
        std::vector<GroupPlan> groups = halves.compose(h, bias);
        if (groups.empty() || groups == before) continue;
        before = groups;
        take("rows and windows of " + std::to_string(kWindowHeights[h]), price(halves.shapes(h, bias)), order_name,
             order, std::move(groups));
      }
    }
  }

  // The greedy algorithm bounds what ELL rows and nnz segments cost; here they are made, without the selections, too.
  Shapes cheapest_tiles(const RowGroup& group, const CostModel& model, GroupTiles& tiles, GroupPlan& plan,
                        SingleFormats* singles) const {
    const CoverFormats& formats = options_.formats;
    Shapes best;
    double least = std::numeric_limits<double>::infinity();
    GroupPlan chosen;
    const auto look = [&](std::vector<Selection> selections, Remainder remainder, Shapes* kept) {
      Shapes shapes;
      tiles.append(group, selections, remainder, shapes);
      double cost = 0;
      for (const TileShape& shape : shapes) cost += model.cost(shape);
      if (kept) kept->insert(kept->end(), shapes.begin(), shapes.end());
      if (cost >= least) return;
      least = cost;
      best = std::move(shapes);
      chosen = {std::move(selections), remainder};
    };
    if (!plan.selections.empty()) {
      if (formats.ell || !formats.segment) look(plan.selections, Remainder::ell, nullptr);
      if (formats.segment) look(plan.selections, Remainder::segment, nullptr);
    }
    if (formats.ell) look({}, Remainder::ell, singles ? &singles->ell_rows : nullptr);
    if (formats.segment) look({}, Remainder::segment, singles ? &singles->segments : nullptr);
    for (std::size_t h = 0; singles && formats.block && h < singles->blocks.size(); ++h)
      if (model.has_block(8 << h)) look(all_windows(8 << h), Remainder::ell, &singles->blocks[h]);
    plan = std::move(chosen);
    return best;
  }

  static std::vector<Selection> all_windows(int height) {
    std::vector<Selection> selections;
    for (int window = 0; window < kGroupRows / height; ++window)
      selections.push_back({static_cast<std::uint8_t>(height), static_cast<std::uint8_t>(window), 1});
    return selections;
  }

  void take_single(const CostModel& model, std::vector<SingleFormats>& singles) {
    const auto take_all = [&](const std::string& name, auto&& member, const GroupPlan& group) {
      Shapes all;
      for (SingleFormats& s : singles) {
        all.insert(all.end(), member(s).begin(), member(s).end());
        member(s) = {};
      }
      take(name, price(all), "natural", {}, std::vector<GroupPlan>(static_cast<std::size_t>(groups_), group));
    };
    if (options_.formats.ell)
      take_all("ell", [](SingleFormats& s) -> Shapes& { return s.ell_rows; }, {{}, Remainder::ell});
    if (options_.formats.segment)
      take_all("1d", [](SingleFormats& s) -> Shapes& { return s.segments; }, {{}, Remainder::segment});
    if (!options_.formats.block) return;
    for (std::size_t h = 0; h < 4; ++h) {
      if (!model.has_block(8 << h)) continue;
      take_all(block_name(8 << h), [h](SingleFormats& s) -> Shapes& { return s.blocks[h]; },
               {all_windows(8 << h), Remainder::ell});
    }
  }

  static std::string block_name(int height) { return "block of " + std::to_string(height); }

  // A group where the search has not been: its ELL rows, their columns taken for different.
  void add_unseen(std::int64_t index, const Order& order, Shapes& shapes) const {
    const std::int64_t end = std::min((index + 1) * kGroupRows, matrix_.rows);
    for (std::int64_t position = index * kGroupRows; position < end; ++position) {
      const std::int64_t row = order.empty() ? position : order[static_cast<std::size_t>(position)];
      for (std::int64_t left = matrix_.length(row), longest = remainder_.widths.back(); left > 0; left -= longest) {
        const std::int64_t count = std::min(left, longest);
        shapes.push_back({TileShape::Kind::ell, matrix_.length(row) > longest, 1,
                          remainder_.widths[width_for(remainder_.widths, count)], count});
      }
    }
  }

  void reorder(std::int64_t part) {
    const Sharing natural = column_sharing(matrix_, {});
    const auto worth = [&](const Order& order) {
      const Sharing sharing = column_sharing(matrix_, order);
      return sharing.eight > kBetterSharing * natural.eight || sharing.thirty_two > kBetterSharing * natural.thirty_two;
    };
    const auto try_order = [&](const std::string& name, const Order& order, bool always) {
      if (goes_on(name) && (always || worth(order))) consider("hybrid", name, order, part, false);
    };
    const auto going_on = [&] { return goes_on("order by labels"); };
    if (going_on()) try_order("labels", order_by_labels(matrix_, threads_, going_on), false);
    if (goes_on("order by bandwidth") && matrix_.nonzeros() <= kMostForBandwidth)
      try_order("bandwidth", order_by_bandwidth(matrix_), false);
    if (goes_on("order by length") && matrix_.nonzeros() <= kMostForLength)
      try_order("length", order_by_length(matrix_), true);
  }

  // Where groups are not looked at.
  bool goes_on(const std::string& stage) {
    if (!stopped()) report(stage, 0);
    return !stopped_;
  }

  void report(const std::string& order_name, std::int64_t index) {
    const double now = seconds();
    if (!options_.progress || now < next_report_) return;
    next_report_ = now + 0.1;
    const double here = static_cast<double>(index) / static_cast<double>(std::max<std::int64_t>(groups_, 1));
    const double done = std::min(1.0, (passes_done_ + here) / passes_);
    if (!options_.progress({order_name, done, now, done > 0 ? now / done * (1 - done) : 0, plan_.cost}))
      stopped_ = true;
  }

  // Of the candidates that are run.
  void report_run(const std::string& name, std::size_t number, std::size_t all, double least) {
    if (!options_.progress) return;
    const double now = seconds(), share = static_cast<double>(number - 1) / static_cast<double>(all);
    const std::string stage = "plan " + std::to_string(number) + " of " + std::to_string(all) + ": " + name;
    if (!options_.progress({stage, share, now, 0, least < std::numeric_limits<double>::infinity() ? least : 0}))
      stopped_ = true;
  }

  struct Candidate {
    std::string name;
    Priced priced;
    std::string order;
    Order row_order;
    std::vector<GroupPlan> groups;
  };

  const Csr& matrix_;
  const Profile& profile_;
  const SearchOptions& options_;
  std::vector<Candidate> candidates_;  // for those that measure
  int threads_;
  std::int64_t groups_;
  RemainderShape remainder_;
  std::vector<std::int64_t> cuts_;
  std::int64_t first_part_ = 0;  // into which the dense loop is cut at first
  Plan plan_;
  double passes_ = 1, passes_done_ = 0, next_report_ = 0;
  std::atomic<bool> stopped_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

Plan search(const Csr& matrix, const Profile& profile, const SearchOptions& options) {
  return Search(matrix, profile, options).run();
}

}  // namespace apl::sparse
