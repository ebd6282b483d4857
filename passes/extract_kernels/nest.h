// Perfect nests of maps, as kernels see them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/module.h"

namespace apl {

// A map nest: the levels from the outside in, the statements between them, the body of the innermost.
struct Nest {
  struct Level {
    std::vector<Poly> widths;
    std::vector<Value> indices;
    std::vector<Value> inputs;
    std::vector<Value> params;  // rows of the inputs
    std::vector<Stm> before;    // of the level's lambda: what is not the next level
  };
  std::vector<Level> levels;
  BodyPtr body;                      // the innermost lambda's, without its parameters' definitions
  std::vector<std::size_t> results;  // result k of the nest is result results[k] of `body`
  std::vector<Attribute> attributes;
  std::vector<Value> certificates;
  std::string stopped;  // why it goes no deeper although there is a map inside; empty: it is perfect
  std::string stopped_code;
};

// Whether an attribute of the statement asks for one thread.
bool asks_for_sequential(const Stm& stm);

// The nest of a statement that is a map (a Screma without reductions).
Nest find_nest(const Stm& stm, const ValueTable& values);

// The nest as one map over all its widths, without inputs: the lambda reads by index. The nest's values become its.
Stm flatten(const Stm& stm, const Nest& nest, ValueTable& values);

// Such a map whose lambda, of the statements `stms`, makes nothing but what `wanted`, one of them, makes.
Stm only(const Stm& flat, const std::vector<Stm>& stms, const Stm& wanted, const ValueTable& values);

// Such a map as a kernel of one thread an index.
Stm make_kernel(Stm flat);

// `let row = from`, with a copy if `uses` overwrite the row: nobody overwrites a row of an array that is not its own.
void add_row(Value row, Index from, const std::vector<Stm>& uses, Location location, ValueTable& values,
             std::vector<Stm>& stms);

// Parameters of the loop that its body scatters into, each once, and does nothing else with.
std::set<Value> scattered_params(const Loop& loop);

// A kernel with one thread (a space without dims) that runs `stm`.
Stm make_serial_kernel(const Stm& stm, ValueTable& values);

// The scatter or histogram as a kernel of one thread an index; nullopt if it must run in one thread.
std::optional<Stm> make_scatter_kernel(const Stm& stm, ValueTable& values);

// replicate, iota, copy or manifest as a map without inputs; nullopt for other operations.
std::optional<Stm> make_producer_map(const Stm& stm, ValueTable& values);

}  // namespace apl
