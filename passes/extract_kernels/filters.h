// A scan, and a scatter whose positions it says, as one kernel.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "passes/extract_kernels/body_uses.h"
#include "passes/extract_kernels/chunks.h"

namespace apl {

// The statements of a body that are a filter: a scan that counts flags, its last element, arrays of so many elements, a
// scatter into them. Or where the arrays' size is known before: a scan, the arrays, a scatter into them.
struct Filter {
  std::set<std::size_t> members;
  std::size_t scan = 0, scatter = 0;
  Value count;          // what the last element is called, if the arrays have so many
  std::string refusal;  // why they are no kernel of their own; empty: nothing known is against it
};

// The filter that begins with statement `first`, a scan; nullopt: there is none. One with a count takes the place of
// its scan, one without that of its scatter. Statements `taken` are members of other filters: a scatter that reads two
// scans is a filter with one of them.
std::optional<Filter> find_filter(const Body& body, const BodyUses& uses, std::size_t first,
                                  const std::set<std::size_t>& taken, const ValueTable& values);

// The body with statement `first`, which scans several things or reduces beside, as several statements, if one of them
// begins a filter then; null: none does.
BodyPtr with_filters_apart(const Body& body, const BodyUses& uses, std::size_t first,
                           const std::set<std::size_t>& taken, ValueTable& values);

// It as one kernel, on GPUs; nullopt: blocks cannot share it.
std::optional<std::vector<Stm>> make_filter(const Body& body, const Filter& filter, const Chunks& chunks,
                                            ValueTable& values);

// On CPUs: a chunk a thread, and a kernel that moves the chunks together; nullopt: elements go elsewhere.
std::optional<std::vector<Stm>> make_chunked_filter(const Body& body, const Filter& filter, const Chunks& chunks,
                                                    ValueTable& values);

}  // namespace apl
