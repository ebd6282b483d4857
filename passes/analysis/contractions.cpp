#include "passes/analysis/contractions.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/builder.h"
#include "ir/walk.h"

namespace apl {

std::string_view to_text(DimClass dim_class) {
  switch (dim_class) {
    case DimClass::batch: return "batch";
    case DimClass::free: return "free";
    case DimClass::invariant: return "invariant";
    case DimClass::contracted: return "contracted";
  }
  return "?";
}

namespace {

Refusal refusal(std::string code, Location location, std::string message, std::string suggestion = {}) {
  return {std::move(code), location, std::move(message), std::move(suggestion)};
}

std::string quoted(const std::string& name) { return "`" + name + "`"; }

std::string array_name(const ContractionOperand& operand, const ValueTable& values) {
  return quoted(values.name(operand.base));
}

// What is used again of an operand although it varies along all dims: windows of neighbouring results overlap, where a
// step of the reduction goes as far in the array as one of the space. Nothing if they do not.
std::string overlap_text(const Contraction& contraction, const ContractionOperand& operand, const ValueTable& values) {
  std::string along;
  for (std::size_t d = 0; d < contraction.space_rank; ++d) {
    bool meets = false;
    for (std::size_t e = contraction.space_rank; e < contraction.dims.size(); ++e)
      meets = meets || (operand.varies(e) && operand.strides[e] == operand.strides[d]);
    if (meets) along += (along.empty() ? "" : ", ") + quoted(contraction.dims[d].name);
  }
  if (along.empty()) return {};
  return "windows of " + array_name(operand, values) + " overlap along " + along +
         ": neighbouring results share elements, which caches keep; but there is no parallel dim along which a whole "
         "tile would be used again";
}

}  // namespace

std::optional<Refusal> refuse_without_free_dims(const Contraction& contraction, const ValueTable& values) {
  std::string varying;
  for (std::size_t d = 0; d < contraction.space_rank; ++d) {
    const ContractionDim& dim = contraction.dims[d];
    if (dim.dim_class == DimClass::free) return std::nullopt;
    if (dim.dim_class == DimClass::batch) varying += (varying.empty() ? "" : ", ") + quoted(dim.name);
  }
  if (varying.empty())
    return refusal("no-free-dim", contraction.location,
                   "no operand varies along any parallel dim: all threads compute the same",
                   "reduce once, outside of the map nest");
  // Arrays that vary along no parallel dim are in all threads anyway.
  const auto streams = [&](const ContractionOperand& operand) {
    return !operand.index && !contraction.is_resident(operand);
  };
  std::string streamed, operands, first;
  bool all_threads = true;
  for (const ContractionOperand& operand : contraction.operands) {
    if (!streams(operand)) continue;
    streamed += (streamed.empty() ? "" : ", ") + array_name(operand, values);
    for (std::size_t d = 0; d < contraction.space_rank; ++d) all_threads = all_threads && !operand.varies(d);
  }
  if (all_threads && !streamed.empty())
    return refusal("no-free-dim", contraction.location,
                   "what the reduction goes over (" + streamed +
                       ") varies along no parallel dim: all threads read the same elements at a time, which the cache "
                       "gives to all of them at once");
  for (const ContractionOperand& operand : contraction.operands) {
    bool counts = false;
    for (std::size_t d = 0; d < contraction.space_rank; ++d) counts = counts || operand.varies(d);
    if (!counts || operand.index) continue;
    operands += (operands.empty() ? "" : ", ") + array_name(operand, values);
    if (first.empty()) first = array_name(operand, values);
  }
  for (const ContractionOperand& operand : contraction.operands)
    if (const std::string overlap = overlap_text(contraction, operand, values); streams(operand) && !overlap.empty())
      return refusal("no-free-dim", contraction.location, overlap,
                     "map over one more dim, along which " + array_name(operand, values) +
                         " does not vary: several sets of weights at once");
  return refusal("no-free-dim", contraction.location,
                 "what varies along a parallel dim (" + operands + ") varies along all of " + varying +
                     ": each element is used once",
                 "map over one more dim, along which " + first + " does not vary: several right-hand sides at once");
}

std::optional<Refusal> refuse_operand_without_reuse(const Contraction& contraction, const ValueTable& values) {
  std::string free;
  for (std::size_t d = 0; d < contraction.space_rank; ++d)
    if (contraction.dims[d].dim_class == DimClass::free)
      free += (free.empty() ? "" : ", ") + quoted(contraction.dims[d].name);
  if (free.empty())
    return refusal("operand-variant-to-all", contraction.location,
                   "there is no free dim, along which elements are used again",
                   "map over one more dim, along which an operand does not vary: several right-hand sides at once");
  for (const ContractionOperand& operand : contraction.operands) {
    bool misses = operand.index || contraction.is_resident(operand);
    for (std::size_t d = 0; d < contraction.space_rank; ++d)
      misses = misses || (contraction.dims[d].dim_class == DimClass::free && !operand.varies(d));
    if (const std::string overlap = misses ? "" : overlap_text(contraction, operand, values); !overlap.empty())
      return refusal("operand-variant-to-all", contraction.location, overlap,
                     "map over one more dim, along which " + array_name(operand, values) +
                         " does not vary: several sets of weights at once");
    if (!misses)
      return refusal("operand-variant-to-all", contraction.location,
                     "operand " + array_name(operand, values) + " varies along every free dim (" + free +
                         "): each of its elements is used once",
                     "map over one more dim, along which " + array_name(operand, values) +
                         " does not vary: several right-hand sides at once");
  }
  return std::nullopt;
}

std::optional<Refusal> refuse_uncovered_dim(const Contraction& contraction) {
  for (std::size_t e = contraction.space_rank; e < contraction.dims.size(); ++e) {
    bool covered = std::any_of(contraction.operands.begin(), contraction.operands.end(),
                               [&](const ContractionOperand& operand) { return operand.varies(e); });
    if (!covered && !contraction.dims[e].size.is_one())
      return refusal("reduction-dim-unused", contraction.location,
                     "no operand varies along the reduction dim " + quoted(contraction.dims[e].name),
                     "reduce over the other dims, and combine the result with itself as often as that dim has indices");
  }
  return std::nullopt;
}

namespace {

struct FailingOperation {
  std::string what;
  Location location;
  bool divides = false;
};

// The first one.
std::optional<FailingOperation> failing_operation(const Body& body, const Contraction& contraction,
                                                  const ValueTable& values) {
  for (const Stm& stm : body.stms) {
    if (!can_fail(stm.op, values)) continue;
    std::optional<FailingOperation> inside;
    for_each_body(stm.op, [&](const BodyPtr& inner) {
      if (!inside) inside = failing_operation(*inner, contraction, values);
    });
    if (inside) return inside;
    const Binary* division = get_if<Binary>(stm);
    const auto made = [&](const std::string& what) {
      return FailingOperation{what, stm.location ? stm.location : contraction.location, division != nullptr};
    };
    if (get_if<Assert>(stm) || stm.pattern.empty()) return made("it makes a check");
    const std::string name = quoted(values.name(stm.pattern.front()));
    if (get_if<Index>(stm) || get_if<Update>(stm)) return made("it reads or writes " + name + " with a check");
    if (division == nullptr) return made("it makes " + name);
    if (division->y.is_constant()) return made("it divides by 0");
    const Value divisor = division->y.value();
    for (const ContractionOperand& operand : contraction.operands)
      if (operand.element == divisor) return made("it divides by an element of " + array_name(operand, values));
    return made("it divides by " + quoted(values.name(divisor)) + ", which may be 0");
  }
  return std::nullopt;
}

bool may_not_end(const Body& body) {
  bool found = false;
  for_each_stm(body, [&](const Stm& stm) {
    const Loop* loop = get_if<Loop>(stm);
    found = found || (loop && !loop->index);
  });
  return found;
}

}  // namespace

std::optional<Refusal> refuse_failing_map(const Contraction& contraction, const ValueTable& values) {
  if (may_not_end(*contraction.map.body))
    return refusal("map-can-fail", contraction.location,
                   "the map function has a while loop, which may not end for the padded elements of a tile",
                   "loop a known number of times, or compute the function in a map before");
  if (may_not_end(*contraction.reduce.op.body))
    return refusal("operator-can-fail", contraction.location,
                   "the reduction operator has a while loop, which may not end for the padded elements of a tile",
                   "loop a known number of times");
  if (const auto failing = failing_operation(*contraction.map.body, contraction, values))
    return refusal("map-can-fail", failing->location,
                   "the map function can fail: " + failing->what + "; a tile computes padded elements too",
                   failing->divides ? "divide only where the divisor is not 0, as in `if y == 0 then 0 else x / y`"
                                    : "compute what can fail in a map before");
  if (const auto failing = failing_operation(*contraction.reduce.op.body, contraction, values))
    return refusal("operator-can-fail", failing->location,
                   "the reduction operator can fail: " + failing->what + "; a tile computes padded elements too",
                   "use an operator without division and checks");
  return std::nullopt;
}

std::optional<Match> match_alone(const Stm& kernel, ValueTable& values) {
  Function function;
  function.values = values;
  for (const Value v : free_values(kernel.op, values)) function.params.push_back(v);
  function.body = make_body({kernel}, {});
  return match_contraction(kernel, Layouts(function), values);
}

std::vector<Match> find_contractions(const Function& function, ValueTable& values) {
  std::vector<Match> matches;
  Layouts layouts(function);
  for_each_stm(*function.body, [&](const Stm& stm) {
    if (auto match = match_contraction(stm, layouts, values)) matches.push_back(std::move(*match));
  });
  return matches;
}

bool ContractionOperand::varies(std::size_t dim) const {
  return !strides[dim].is_zero() ||
         std::ranges::any_of(gathers, [&](const ContractionGather& g) { return !g.at.strides[dim].is_zero(); });
}

bool Contraction::is_resident(const ContractionOperand& operand) const {
  for (std::size_t d = space_rank; d < dims.size(); ++d)
    if (operand.varies(d)) return false;
  return true;
}

std::optional<std::size_t> Contraction::dim_of(Value index) const {
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (dims[d].index == index) return d;
  return std::nullopt;
}

std::string Contraction::einsum(const Function&) const {
  // One letter a dim: its own name where that is a letter of its own, else the next free one.
  std::map<std::size_t, char> letters;
  std::set<char> taken;
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (dims[d].name.size() == 1 && taken.insert(dims[d].name[0]).second) letters[d] = dims[d].name[0];
  char next = 'a';
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (letters.count(d)) continue;
    while (taken.count(next)) ++next;
    taken.insert(letters[d] = next);
  }
  std::string text;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const ContractionOperand& operand = operands[k];
    const auto alike = [&](const ContractionOperand& other) {
      for (std::size_t d = 0; d < dims.size(); ++d)
        if (other.varies(d) != operand.varies(d)) return false;
      return true;
    };
    const auto here = operands.begin() + static_cast<std::ptrdiff_t>(k);
    if (operand.index || std::find_if(operands.begin(), here, alike) != here) continue;
    if (!text.empty()) text += ',';
    for (int d : operand.axes) text += letters[static_cast<std::size_t>(d)];
  }
  text += "->";
  for (std::size_t d = 0; d < space_rank; ++d) text += letters[d];
  return text;
}

}  // namespace apl
