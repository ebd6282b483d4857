// The C API's own text: declarations, and definitions over runtime/embedded.
#pragma once

#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/emit/library/api_types.h"

namespace apl::library {

struct Api {
  Target target = c_target();
  ApiTypes types;
  std::vector<ApiEntry> entries;
  std::vector<ProgramParameter> parameters;
};

// Of arrays, opaque types and entries; what every library has stands before it.
std::string api_declarations(const Api& api);
// What the declarations promise, behind the tables.
std::string api_definitions(const Api& api);
// The tables of runtime/embedded/object.h: types, entries, parameters.
std::string api_tables(const Api& api);
// As Futhark's manifest.
std::string api_manifest(const Api& api, const std::string& version);

}  // namespace apl::library
