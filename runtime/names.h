// Names of a source, and texts that quote them, in generated C, CUDA and JSON. A name of a source may be anything: it
// may have primes, and be a word of C, a macro of its headers or a name of the runtime.
#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

namespace apl {

// GHC's z-encoding, as Futhark has it: "x'" is "xzq". Different texts have different codes.
std::string z_encoded(std::string_view text);
// As Futhark names functions of its C API: an identifier of C is kept, anything else is z-encoded. "x'" and "xzq" are
// not told apart.
std::string api_name(std::string_view name);
// What Futhark's C API calls an opaque type, by its name in the manifest: "opaque_tup2_i32_arr1d_f32" of
// "(i32, []f32)", and the MD5 sum of a name that is not made of words, tuples and arrays alone.
std::string opaque_name(std::string_view type);
// The same for what is looked up by the source's name alone: different names give different results, which may start
// with a digit and so want something before them.
std::string symbol_part(std::string_view name);

// A function's name like this one: an identifier, and neither a word of C, C++ or CUDA nor a name of their headers or
// the runtime.
std::string legal_name(std::string_view name);

// Names that are each taken once.
class NameScope {
 public:
  // An identifier like `hint` that neither this scope nor `outer`, the file, has, and that can have the endings too;
  // all are taken in both.
  std::string add(const std::string& hint, std::initializer_list<std::string_view> endings = {},
                  NameScope* outer = nullptr);
  bool contains(const std::string& name) const { return taken_.contains(name); }

 private:
  std::set<std::string> taken_;
  std::unordered_map<std::string, int> suffixes_;  // the last that was tried, by what it is added to
};

// A text that stands in a `//` comment and cannot end it, or go on in the next line.
std::string comment_text(std::string_view text);

}  // namespace apl
