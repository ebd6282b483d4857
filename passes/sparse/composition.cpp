// Text of compositions, and which steps may follow which.
#include "passes/sparse/composition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace apl::sparse {
namespace {

constexpr std::array<std::string_view, 6> kPrimitives = {"reorder", "divide", "squeeze", "split", "pad", "flatten"};

Diagnostic bad_composition(std::string message) {
  return make_error(Code::command_bad_argument, {}, std::move(message));
}

bool has_axis(Primitive p) { return p == Primitive::reorder || p == Primitive::divide || p == Primitive::pad; }
bool has_sizes(Primitive p) { return p == Primitive::divide || p == Primitive::split; }

std::string step_text(const Step& step) {
  std::string arguments;
  if (has_axis(step.primitive)) arguments = step.axis == Axis::rows ? "rows" : "columns";
  if (has_sizes(step.primitive))
    arguments += fmt::format("{}{}", arguments.empty() ? "" : ", ", fmt::join(step.sizes, "|"));
  const std::string_view name = kPrimitives[static_cast<std::size_t>(step.primitive)];
  return arguments.empty() ? std::string(name) : fmt::format("{}({})", name, arguments);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// What stands before the first `mark`, and the rest after it; all of it without a mark.
std::string_view cut(std::string_view& text, char mark) {
  const std::size_t at = text.find(mark);
  const std::string_view first = trimmed(text.substr(0, at));
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return first;
}

Result<Step> parse_step(std::string_view text) {
  const std::string whole(text);
  std::string_view arguments;
  if (text.ends_with(')')) {
    text.remove_suffix(1);
    std::string_view name = text;
    arguments = text;
    name = cut(arguments, '(');
    text = name;
  }
  Step step;
  std::size_t index = 0;
  while (index < kPrimitives.size() && kPrimitives[index] != text) ++index;
  if (index == kPrimitives.size()) return bad_composition(fmt::format("`{}` is no primitive", whole));
  step.primitive = static_cast<Primitive>(index);
  if (has_axis(step.primitive)) {
    const std::string_view axis = cut(arguments, ',');
    if (axis != "rows" && axis != "columns")
      return bad_composition(fmt::format("`{}`: expected rows or columns", whole));
    step.axis = axis == "rows" ? Axis::rows : Axis::columns;
  }
  if (has_sizes(step.primitive)) {
    do {
      const std::string_view word = cut(arguments, '|');
      std::int64_t size = 0;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), size);
      if (error != std::errc() || end != word.data() + word.size() || size < 1)
        return bad_composition(fmt::format("`{}`: `{}` is no size", whole, word));
      step.sizes.push_back(size);
    } while (!arguments.empty());
  }
  if (!trimmed(arguments).empty()) return bad_composition(fmt::format("`{}`: too many arguments", whole));
  return step;
}

// Why `step` cannot follow the steps before it.
std::string objection(const std::vector<Step>& before, const Step& step) {
  const Step* split = nullptr;
  bool squeezed = false, flat = false, padded = false;
  for (const Step& s : before) {
    squeezed |= s.primitive == Primitive::squeeze;
    flat |= s.primitive == Primitive::flatten;
    padded |= s.primitive == Primitive::pad;
    if (s.primitive == Primitive::split) split = &s;
  }
  switch (step.primitive) {
    case Primitive::reorder:
    case Primitive::divide:
      if (squeezed && step.axis == Axis::columns) return "there are no columns after squeeze";
      if (flat && !split) return "one list is left: split comes first";
      if (step.sizes.size() > 1 && (!split || split->sizes.size() != step.sizes.size()))
        return "several sizes need as many in a split before";
      return "";
    case Primitive::squeeze: return squeezed ? "it is squeezed already" : "";
    case Primitive::split:
      if (!squeezed) return "only lists can be split: squeeze comes first";
      if (split) return "it is split already";
      for (std::size_t k = 1; k < step.sizes.size(); ++k)
        if (step.sizes[k - 1] >= step.sizes[k]) return "the sizes must rise";
      return "";
    case Primitive::pad:
      if (!squeezed) return "blocks are full already: squeeze comes first";
      if (step.axis == Axis::columns) return "there are no columns after squeeze";
      return padded ? "it is padded already" : "";
    case Primitive::flatten:
      if (!squeezed) return "only lists can be flattened: squeeze comes first";
      return flat || split || padded ? "only rows as they are can be flattened" : "";
  }
  return "";
}

}  // namespace

std::string_view to_text(Format format) {
  switch (format) {
    case Format::block: return "block";
    case Format::ell: return "ell";
    case Format::one_d: return "1d";
  }
  return "";
}

Format Composition::format() const {
  Format format = Format::block;
  for (const Step& step : steps) {
    if (step.primitive == Primitive::squeeze) format = Format::ell;
    if (step.primitive == Primitive::flatten) return Format::one_d;
  }
  return format;
}

std::string to_text(const Composition& composition) {
  std::string text;
  for (const Step& step : composition.steps) text += (text.empty() ? "" : " > ") + step_text(step);
  return text;
}

Result<Composition> parse_composition(std::string_view text) {
  Composition composition;
  while (!trimmed(text).empty()) {
    auto step = parse_step(cut(text, '>'));
    if (!step) return step.error();
    if (const std::string why = objection(composition.steps, *step); !why.empty())
      return bad_composition(fmt::format("`{}`: {}", step_text(*step), why));
    composition.steps.push_back(std::move(*step));
  }
  const bool padded = std::any_of(composition.steps.begin(), composition.steps.end(),
                                  [](const Step& step) { return step.primitive == Primitive::pad; });
  if (composition.format() == Format::ell && !padded)
    return bad_composition("lists of several lengths are no format: pad(rows) is missing");
  return composition;
}

Composition bsr_format(std::int64_t size) {
  return {{{Primitive::divide, Axis::rows, {size}}, {Primitive::divide, Axis::columns, {size}}}};
}

Composition condensed_format(std::int64_t height, std::int64_t width) {
  return {{{Primitive::divide, Axis::rows, {height}},
           {Primitive::reorder, Axis::columns, {}},
           {Primitive::divide, Axis::columns, {width}}}};
}

Composition hyb_format(std::int64_t columns, std::int64_t widest, std::int64_t elements) {
  Step split{Primitive::split, Axis::rows, {}}, tiles{Primitive::divide, Axis::rows, {}};
  for (std::int64_t width = 1; width <= widest; width *= 2) {
    split.sizes.push_back(width);
    tiles.sizes.push_back(std::max<std::int64_t>(1, elements / width));
  }
  return {{{Primitive::divide, Axis::columns, {columns}},
           {Primitive::reorder, Axis::rows, {}},
           {Primitive::squeeze, Axis::rows, {}},
           split,
           {Primitive::pad, Axis::rows, {}},
           tiles}};
}

Composition ell_format() { return {{{Primitive::squeeze, Axis::rows, {}}, {Primitive::pad, Axis::rows, {}}}}; }

Composition one_d_format(std::int64_t run) {
  return {{{Primitive::squeeze, Axis::rows, {}},
           {Primitive::flatten, Axis::rows, {}},
           {Primitive::split, Axis::rows, {run}},
           {Primitive::divide, Axis::rows, {1}}}};
}

}  // namespace apl::sparse
