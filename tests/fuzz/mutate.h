// Texts of all kinds that a reader gets, and what may have happened to them on the way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace apl::fuzz {

// What reads the text.
enum class Reader : char { source = 's', ir = 'i', values = 'v', matrix = 'm', tiling = 't' };

struct Input {
  Reader reader = Reader::source;
  std::string text;
  std::string imported;  // the text of every file that a program imports
};

// Every text of the tree that has readers: programs, textual IR, values in text and binary, matrices, and
// what says how they are tiled.
struct Pool {
  std::vector<std::string> sources, modules, values, matrices, tilings;
};
Pool read_pool(const std::string& source_folder);

// Which reader the input of this seed is for.
Reader reader_of(std::uint64_t seed);
// A few changes to one of the texts; the same seed gives the same input.
Input mutated(const Pool& pool, std::uint64_t seed);

}  // namespace apl::fuzz
