// Property tests: entries of one argument, with #[prop], that must be true for every argument. Random arguments are
// tried, and one for which the entry is false is made smaller before it is reported.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aplc/test/executable.h"
#include "aplc/test/program.h"
#include "ir/module.h"

namespace aplc {

struct PropertyVerdict {
  TestKind kind = TestKind::none;  // none: true for all arguments that were tried
  std::string message;
};

// Tests the entry `name`. As in Futhark, #[prop(gen(G), shrink(S), size(N))] may name entries
// `G (size: i64) (seed: u64): t` that makes arguments, `S (x: t) (random: u64): t` that makes them smaller, and the
// size of the arguments: of each dim that is no constant, without G. Without S it is tried whether smaller sizes, with
// the same seed, do; without G and S, also elements that are nearer to 0.
PropertyVerdict test_property(const apl::Module& front, Executable& executable, const std::string& name,
                              const PropertyOptions& options);

// Entries with #[prop] that are none of `properties`.
std::vector<std::string> untested_properties(const apl::Module& front, const std::vector<std::string>& properties);

}  // namespace aplc
