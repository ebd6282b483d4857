// A little language of vectors and numbers, and its tree.
//
//   distance(x: vector, y: vector) = sum((x - y) * (x - y))
//
// All vectors of a definition have one length; elements are 32-bit floats. `#` begins a comment.
#pragma once

#include <string>
#include <vector>

#include <apl/ir/diagnostic.h>
#include <apl/ir/module.h>

namespace toy {

struct Expr {
  enum class Kind { number, name, binary, sum };
  Kind kind = Kind::number;
  double number = 0;
  std::string name;
  char op = 0;  // + - * /
  std::vector<Expr> operands;
  apl::Location location;
};

struct Param {
  std::string name;
  bool is_vector = false;
};

struct Definition {
  std::string name;
  std::vector<Param> params;
  Expr body;
  apl::Location location;
};

apl::Result<std::vector<Definition>> parse(const std::string& text);

// One entry a definition, at the soac stage. Errors are of names that are not defined.
apl::Result<apl::Module> lower(const std::vector<Definition>& definitions, const std::string& file);

}  // namespace toy
