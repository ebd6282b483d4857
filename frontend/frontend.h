// Futhark source to IR. Nothing else of frontend/ is needed to use it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "ir/diagnostic.h"
#include "ir/module.h"

namespace apl {

struct SourceFile {
  std::string name;  // for messages; imports are found beside it
  std::string text;
  std::map<std::string, std::int64_t> parameters =
      {};  // what expressions marked #[param(name)] are; else they are kept
  // The text of an imported file by its name, nullopt if there is none; if not set, files are read from disk.
  std::function<std::optional<std::string>(const std::string& name)> read = {};
  // Called with the name of each #[param(name)] in it, if it is set and the program is right.
  std::function<void(const std::string& name)> parameter = {};
  bool safe = false;  // indices inside #[unsafe] are checked, too
};

// Parses, infers types and sizes, and lowers all entries to IR of the soac stage: first-order, monomorphic, with
// arrays of tuples as tuples of arrays. `file` and `source` of the module are set.
// Every error goes to the sink, several where there are several; nullopt if there was one. Never throws, whatever
// the bytes are.
std::optional<Module> compile(const SourceFile& source, const DiagnosticSink& sink);

// Only parses and infers. True if there was no error.
bool check(const SourceFile& source, const DiagnosticSink& sink);

}  // namespace apl
