// Algorithm 2 of STile, greedy with withdraw, as corrected: what is selected joins what was, and points that withdrawn
// sub-tasks alone covered are open again.
#pragma once

namespace apl::sparse {

struct GreedyOptions {
  double ratio = 1.2;    // local search: all that are at most so much worse than the best go with it
  bool withdraw = true;  // lines 8 to 11
  int levels = 0;        // at most so many rounds; 0: as many as it takes
};

// A Cover knows the candidates and what is covered:
//   bool done()                        nothing is left to cover
//   double limit()                     the average cost at which what is left can be had anyway; infinite without that
//   double find_best()                 the least cost of a candidate for each new point; infinite if there is none
//   double find_replacement()          the same, the sub-tasks that it can replace being given back; infinite without
//   void select(double most)           takes the best, and others that cost at most `most` a point even after it
//   void replace()                     takes the replacement
// Gives the number of rounds: the depth of the decomposition.
template <class Cover>
int cover_greedily(Cover& cover, const GreedyOptions& options) {
  // Each round makes the whole cheaper, or covers more; rounds are bounded all the same, because costs are rounded.
  constexpr int kMostRounds = 100000;
  int round = 0;
  for (; !cover.done() && round < (options.levels > 0 ? options.levels : kMostRounds); ++round) {
    const double limit = cover.limit();
    const double best = cover.find_best();
    const double other = options.withdraw ? cover.find_replacement() : limit;
    if (!(best < limit) && !(other < limit)) break;
    if (other < limit && other <= best) {
      cover.replace();
    } else {
      cover.select(best * options.ratio < limit ? best * options.ratio : limit);
    }
  }
  return round;
}

}  // namespace apl::sparse
