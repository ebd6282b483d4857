// A Screma while it runs.
#pragma once

#include <vector>

#include "ir/interpret/streams.h"

namespace apl::interpreter {

struct Machine::ScremaRun {
  Machine& machine;
  const Stm& stm;
  const Screma& op;
  const Body& map;
  const BodyLifetimes& map_lifetimes;
  Streams streams;
  std::vector<const BodyLifetimes*> reduce_lifetimes;
  std::vector<Datum> accumulators;  // of all operators, one after the other
  std::vector<Value> homes;         // where they lie at the memory stage
  std::vector<Array> scanned;       // by accumulator, of those that scan
  std::vector<Array> mapped;
  bool scalars_only = true;  // no operator works on arrays

  ScremaRun(Machine& m, const Stm& s, const Screma& o)
      : machine(m), stm(s), op(o), map(*o.map.body), map_lifetimes(m.lifetimes_of(map)), streams{m,        o.indices,
                                                                                                 o.inputs, o.map.params,
                                                                                                 {},       {},
                                                                                                 {}} {}

  void start();
  void run_index(std::int64_t flat);
  void fold(std::int64_t flat, std::vector<Datum> operands);
  void fold_scalars(std::int64_t flat, const Scalar* operands);
  void finish();

 private:
  void note(std::int64_t flat, std::size_t k);
};

}  // namespace apl::interpreter
