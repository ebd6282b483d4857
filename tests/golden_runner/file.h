// A golden file: directives, the input, and what was recorded.
//
//   -- What this file shows, in words.
//   -- RUN: simplify,tile-contraction{tile=4}     the pipeline; `none` only compiles
//   -- PARAM: mm.T_a=2                            a tuning parameter; any number of lines
//   -- MATRIX: mm.A 2x3 1 0 0 0 2.5 inf           what a constant operand is known to be, of f32; any number of lines
//   -- SIZES: m=3 n=5                             sizes that the law must try; any number of lines
//   -- WANT: segmap/loop/segmap 2                 structure of the output; any number of lines
//   -- IDEMPOTENT                                 running the pipeline on the output changes nothing
//   -- ERROR: type.size-mismatch                  the code that the input or the pipeline is refused with
//   -- NO-LAW: reason                             input and output are not compared by running them
//   stage soac
//   ...
//   -- OUTPUT
//   stage kernel
//   ...
//   -- REMARKS
//   applied tile-contraction:tiled, mm 3:5: ...
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/module.h"

namespace apl::golden {

struct File {
  std::string path;
  std::string head;  // directives and input as they stand, ending before the line `-- OUTPUT`
  std::string pipeline;
  std::map<std::string, std::int64_t> parameters;
  std::vector<std::map<std::string, std::int64_t>> sizes;
  std::vector<std::string> wants;
  std::vector<KnownMatrix> matrices;
  bool idempotent = false;
  std::optional<std::string> error;
  std::string no_law;  // the reason

  std::optional<std::string> recorded;  // the output section with the remarks, from after `-- OUTPUT`

  bool is_source() const { return path.ends_with(".fut"); }
};

// Code command.bad-argument or command.no-such-file, with a place.
Result<File> read_file(const std::string& path);
Result<File> parse_file(const std::string& path, const std::string& text);

// Replaces the recorded part. The file is never half written: a temporary file beside it is renamed.
Status write_recorded(const File& file, std::string_view recorded);

}  // namespace apl::golden
