// The search for a plan (STile, algorithm 2): greedy with withdraw in every group of rows, for several orders of the
// rows and several cuts of the dense loop, held against plans of one format and the dense product.
#pragma once

#include <functional>
#include <string_view>

#include "passes/sparse/greedy.h"
#include "passes/sparse/plan.h"
#include "passes/sparse/profile.h"

namespace apl::sparse {

struct Progress {
  std::string_view stage;   // which order is being made or searched
  double done = 0;          // 0 .. 1, of all that may have to be done
  double seconds = 0;       // so far
  double seconds_left = 0;  // an estimate
  double best = 0;          // nanoseconds of the best plan so far; 0: none yet
};

struct SearchOptions {
  Problem problem;
  GreedyOptions greedy;
  CoverFormats formats;
  bool reorder = true;
  bool as_run = false;                            // plans as kernels for GPUs run them: as_run.h
  int threads = 0;                                // 0: one a processor
  double seconds = 0;                             // stop after so many with what is there; 0: no limit
  std::function<bool(const Progress&)> progress;  // called now and then from one thread; false: stop
  // Nanoseconds of a product by this plan where there is a device to run it on, or a better model; 0 if there is none
  // for it. Of the plans that the cost model likes the one that is fastest then wins. Called from one thread.
  std::function<double(const Plan&)> measure;
  std::string_view measured = "measured";  // what notes say of such times
};

// A plan for the matrix, always: a search that is stopped leaves ELL rows where it has not been. `profile` must outlive
// the call only.
Plan search(const Csr& matrix, const Profile& profile, const SearchOptions& options);

}  // namespace apl::sparse
