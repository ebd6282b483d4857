// Index functions of arrays before memory is placed: each array (or element) value as an LMAD over the
// row-major elements of a base array, through rearrange, reshape, slices, fixed indices and SOAC rows;
// exact or unknown with the reason, never a guess (T 4.7.2.2 lists what guessing cost).
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "ir/module.h"

namespace apl {

// `lmad` maps indices of the value to positions in the row-major element order of `base`; its symbols may be
// indices of enclosing spaces, widths and loops. A value that is no view is its own base.
struct Layout {
  Value base;
  Lmad lmad;
};

class Layouts {
 public:
  explicit Layouts(const Function& function);

  // Null if unknown; then why() says which operation lost it.
  const Layout* find(Value value) const;
  const std::string& why(Value value) const;

 private:
  void enter(const Body& body);
  void statement(const Stm& stm);
  void bind_rows(const std::vector<Value>& indices, const std::vector<Value>& inputs, const std::vector<Value>& rows);
  void own_base(Value value);
  void derive(Value result, Value source, const Lmad::Outcome& outcome);

  const Function& function_;
  std::unordered_map<Value, Layout> layouts_;
  std::unordered_map<Value, std::string> reasons_;
};

// The layout of `source` under an index expression; every dim not named is kept whole.
Lmad index_layout(const Lmad& source, const std::vector<DimIndex>& dims);

}  // namespace apl
