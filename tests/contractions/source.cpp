// A contraction's text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "tests/contractions/operators.h"

namespace apl::contraction_tests {

namespace {

class Source {
 public:
  explicit Source(const Spec& spec) : spec_(spec), op_(operator_text(spec)) {}

  std::string run() {
    const std::string body = spec_.rows ? rows() : indexed();
    std::string result;
    for (std::size_t d = 0; d < spec_.space_rank; ++d) result += fmt::format("[{}]", spec_.dims[d].size);
    const std::string attribute = spec_.attribute.empty() ? "" : fmt::format("#[{}]\n", spec_.attribute);
    return fmt::format("{}entry {}{} : {}{} =\n{}  {}\n", attribute, spec_.entry, parameters(), result, op_.result,
                       lets_, lets_.empty() ? body : "in " + body);
  }

 private:
  const std::string& size(std::size_t dim) const { return spec_.dims[dim].size; }
  std::string index(std::size_t dim) const { return "i_" + spec_.dims[dim].index; }
  std::size_t contracted() const { return spec_.dims.size() - spec_.space_rank; }

  // Of an operand's arrays: "X", or "X0" and "X1".
  std::vector<std::string> names(std::size_t operand) const {
    const std::string letter(1, "XYZVU"[operand]);
    if (op_.arrays == 1) return {letter};
    std::vector<std::string> all;
    for (int k = 0; k < op_.arrays; ++k) all.push_back(letter + std::to_string(k));
    return all;
  }

  std::string array_type(const std::vector<Axis>& axes, bool seen, ScalarType type) const {
    std::string text;
    for (std::size_t k = 0; k < axes.size(); ++k) {
      const std::string& n = size(axes[k].dim);
      const View view = axes[k].view;
      if (view == View::window) {
        text += fmt::format("[{}]", n);
        ++k;
      } else if (axes[k].joined) {
        text += fmt::format("[{}*{}]", n, size(axes[k + 1].dim));
        ++k;
      } else if (!seen && (view == View::padded || view == View::strided)) {
        text += view == View::padded ? fmt::format("[{}+3]", n) : fmt::format("[3*{}+2]", n);
      } else {
        text += fmt::format("[{}]", n);
      }
    }
    return text + std::string(apl::to_text(type));
  }

  std::string parameters() const {
    std::set<std::string> sizes;
    std::string arrays, text;
    for (std::size_t o = 0; o < spec_.operands.size(); ++o)
      for (const std::string& name : names(o))
        arrays += fmt::format(" ({}: {})", name, array_type(spec_.operands[o], false, op_.stored));
    for_each_gather(
        [&](const std::string& name, const std::string& n) { arrays += fmt::format(" ({}: [{}]i64)", name, n); });
    for (std::size_t o = 0; o < spec_.factors.size(); ++o)
      if (has_further(o))
        arrays += fmt::format(" ({}: {})", further_name(o), array_type(spec_.factors[o].axes, false, further_type(o)));
    if (!spec_.residual.empty()) arrays += fmt::format(" (W: {})", array_type(spec_.residual, false, spec_.type));
    for (const Dim& dim : spec_.dims) sizes.insert(dim.size);
    for (const std::string& name : sizes)
      text += spec_.sizes_given ? fmt::format(" ({}: i64)", name) : fmt::format(" [{}]", name);
    return text + arrays;
  }

  // The further array of an operand's factor.
  static std::string further_name(std::size_t operand) { return fmt::format("F{}", operand); }
  bool has_further(std::size_t operand) const { return !spec_.factors[operand].axes.empty(); }
  ScalarType further_type(std::size_t operand) const {
    return spec_.factors[operand].factor == Factor::masked ? ScalarType::boolean : op_.stored;
  }

  // The array of indices for an axis of an operand.
  static std::string gather_name(std::size_t operand, std::size_t axis) { return fmt::format("I{}_{}", operand, axis); }

  template <class F>
  void for_each_gather(F&& f) const {
    for (std::size_t o = 0; o < spec_.operands.size(); ++o)
      for (std::size_t k = 0; k < spec_.operands[o].size(); ++k)
        if (spec_.operands[o][k].view == View::gathered) f(gather_name(o, k), size(spec_.operands[o][k].dim));
  }

  std::string element(const std::string& name, const std::vector<Axis>& axes, std::size_t operand = 0) const {
    std::vector<std::string> at, conditions;
    const auto inside = [&](const std::string& number, const std::string& n) {
      at.push_back(number);
      conditions.push_back(fmt::format("0 <= {0} && {0} < {1}", number, n));
    };
    for (std::size_t k = 0; k < axes.size(); ++k) {
      const std::string i = index(axes[k].dim);
      if (axes[k].view == View::window) {
        inside(fmt::format("{} + {} - 1", i, index(axes[k + 1].dim)), size(axes[k].dim));
        ++k;
        continue;
      }
      if (axes[k].joined) {
        at.push_back(fmt::format("{}*{} + {}", i, size(axes[k + 1].dim), index(axes[k + 1].dim)));
        ++k;
        continue;
      }
      switch (axes[k].view) {
        case View::plain: at.push_back(i); break;
        case View::padded: at.push_back("1+" + i); break;
        case View::strided: at.push_back("3*" + i + "+1"); break;
        case View::reversed: at.push_back(fmt::format("{}-1-{}", size(axes[k].dim), i)); break;
        case View::guarded:
        case View::window: inside(fmt::format("{} + ({})", i, axes[k].shift), size(axes[k].dim)); break;
        case View::gathered: at.push_back(fmt::format("{}[{}]", gather_name(operand, k), i)); break;
      }
    }
    const std::string read = fmt::format("{}[{}]", name, fmt::join(at, ", "));
    if (conditions.empty()) return read;
    return fmt::format("(if {} then {} else {})", fmt::join(conditions, " && "), read, spec_.otherwise);
  }

  std::string reduce(const std::string& array) const {
    if (!op_.sum.empty() && spec_.seed % 2 == 0 && !spec_.says_commutative)
      return fmt::format("{} ({})", op_.sum, array);
    const char* function = spec_.says_commutative ? "reduce_comm" : "reduce";
    return fmt::format("{} {} {} ({})", function, op_.op, op_.neutral, array);
  }

  std::string loop(std::size_t dim, const std::string& initial, const std::string& body) const {
    return fmt::format("(loop acc = {} for {} < {} do {})", initial, index(dim), size(dim), body);
  }

  // ---- elements by index

  std::string indexed() {
    for_each_gather([&](const std::string& name, const std::string& n) {
      lets_ += fmt::format("  let {0} = map (\\x -> x % {1}) {0}\n", name, n);
    });
    std::vector<std::string> elements;
    for (std::size_t o = 0; o < spec_.operands.size(); ++o)
      for (const std::string& name : names(o)) elements.push_back(element(name, spec_.operands[o], o));
    const std::size_t first = spec_.space_rank;
    for (std::size_t o = 0; o < spec_.factors.size(); ++o)
      elements[o] = factor_text(spec_.factors[o].factor, op_.stored, elements[o],
                                has_further(o) ? element(further_name(o), spec_.factors[o].axes) : "",
                                index(spec_.dims.size() - 1));
    std::string flat = index(first);
    for (std::size_t d = first + 1; d < spec_.dims.size(); ++d)
      flat = fmt::format("({})*{} + {}", flat, size(d), index(d));
    std::string text = map_text(spec_, elements, flat);
    if (spec_.fold == Fold::loop) {
      text = fmt::format("{} acc ({})", op_.op, text);
      for (std::size_t d = spec_.dims.size(); d-- > first;) text = loop(d, d == first ? op_.neutral : "acc", text);
    } else if (spec_.fold == Fold::flattened && contracted() > 1) {
      std::string sizes, indices;
      for (std::size_t d = first; d < spec_.dims.size(); ++d) sizes += " " + size(d), indices += index(d) + " ";
      text = reduce(fmt::format("{} (tabulate_{}d{} (\\{}-> {}))", contracted() == 2 ? "flatten" : "flatten_3d",
                                contracted(), sizes, indices, text));
    } else {
      for (std::size_t d = spec_.dims.size(); d-- > first;)
        text = reduce(fmt::format("tabulate {} (\\{} -> {})", size(d), index(d), text));
    }
    text = after(text, spec_.residual.empty() ? "1" : element("W", spec_.residual));
    for (std::size_t d = first; d-- > 0;)
      text = (spec_.seed >> d) % 3 == 0 ? fmt::format("map (\\{} -> {}) (iota {})", index(d), text, size(d))
                                        : fmt::format("tabulate {} (\\{} -> {})", size(d), index(d), text);
    return text;
  }

  std::string after(const std::string& reduced, const std::string& added) const {
    return spec_.op == Operator::scaled_sum ? fmt::format("2 * ({}) + {}", reduced, added) : reduced;
  }

  // ---- maps over rows

  static std::string mapped(std::size_t depth, const std::string& function) {
    std::string text = function;
    for (std::size_t k = 0; k < depth; ++k) text = (k == 0 ? "map " : "map (") + text + (k == 0 ? "" : ")");
    return text;
  }

  // Views, then transposes until the dims are in order.
  void canonical(const std::string& name, const std::vector<Axis>& axes, ScalarType type) {
    std::vector<std::string> slices;
    bool sliced = false;
    for (std::size_t k = 0; k < axes.size(); ++k) {
      const std::string& n = size(axes[k].dim);
      if (axes[k].joined) ++k;
      switch (axes[k].view) {
        case View::plain: slices.emplace_back(":"); break;
        case View::padded: slices.push_back(fmt::format("1:1+{}", n)); break;
        case View::strided: slices.push_back(fmt::format("1:1+3*{}:3", n)); break;
        case View::reversed: slices.emplace_back("::-1"); break;
        case View::guarded:
        case View::window:
        case View::gathered: break;  // these are read by index
      }
      sliced = sliced || axes[k].view != View::plain;
    }
    if (sliced)
      lets_ +=
          fmt::format("  let {0} = {0}[{1}] :> {2}\n", name, fmt::join(slices, ", "), array_type(axes, true, type));
    std::vector<std::size_t> dims;
    for (const Axis& axis : axes) {
      if (axis.joined) lets_ += fmt::format("  let {0} = {1} {0}\n", name, mapped(dims.size(), "unflatten"));
      dims.push_back(axis.dim);
    }
    for (bool sorted = false; !sorted;) {
      sorted = true;
      for (std::size_t k = 0; k + 1 < dims.size(); ++k) {
        if (dims[k] < dims[k + 1]) continue;
        std::swap(dims[k], dims[k + 1]);
        lets_ += fmt::format("  let {0} = {1} {0}\n", name, mapped(k, "transpose"));
        sorted = false;
      }
    }
  }

  struct Row {
    std::string name;
    const std::vector<Axis>* axes;
  };

  // `body` for every row along the dim of the arrays that have it.
  std::string map_over(std::size_t dim, const std::vector<Row>& rows, const std::string& body) const {
    std::string names;
    int count = 0;
    for (const Row& row : rows)
      if (std::any_of(row.axes->begin(), row.axes->end(), [&](const Axis& a) { return a.dim == dim; }))
        names += " " + row.name, ++count;
    if (count == 0) return fmt::format("map (\\_ -> {}) (iota {})", body, size(dim));
    return fmt::format("map{} (\\{} -> {}){}", count == 1 ? "" : std::to_string(count), names.substr(1), body, names);
  }

  std::string rows() {
    std::vector<Row> all;
    for (std::size_t o = 0; o < spec_.operands.size(); ++o)
      for (const std::string& name : names(o)) {
        canonical(name, spec_.operands[o], op_.stored);
        all.push_back({name, &spec_.operands[o]});
      }
    std::vector<std::string> elements;
    for (const Row& row : all) elements.push_back(row.name);
    const std::size_t operands = elements.size();
    for (std::size_t o = 0; o < spec_.factors.size(); ++o)
      if (has_further(o)) {
        canonical(further_name(o), spec_.factors[o].axes, further_type(o));
        all.push_back({further_name(o), &spec_.factors[o].axes});
        elements.push_back(further_name(o));
      }
    // Elements of the operands, then of further arrays, as the map function has them.
    const auto map_of = [&](const std::vector<std::string>& of, const std::string& at) {
      std::vector<std::string> factors(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(operands));
      std::size_t further = operands;
      for (std::size_t o = 0; o < spec_.factors.size(); ++o)
        factors[o] = factor_text(spec_.factors[o].factor, op_.stored, of[o], has_further(o) ? of[further++] : "", at);
      return map_text(spec_, factors, at);
    };
    const std::size_t first = spec_.space_rank;
    std::string text;
    if (spec_.fold == Fold::loop) {
      std::vector<std::string> at;
      for (std::size_t d = first; d < spec_.dims.size(); ++d) at.push_back(index(d));
      for (std::string& e : elements) e += fmt::format("[{}]", fmt::join(at, ", "));
      text = fmt::format("{} acc ({})", op_.op, map_of(elements, index(first)));
      for (std::size_t d = spec_.dims.size(); d-- > first;) text = loop(d, d == first ? op_.neutral : "acc", text);
    } else if (spec_.fold == Fold::flattened || contracted() == 1) {
      const std::string flatten = contracted() == 1 ? "" : contracted() == 2 ? "flatten " : "flatten_3d ";
      std::string names, inputs, count;
      for (const std::string& e : elements) names += e + " ", inputs += fmt::format(" ({}{})", flatten, e);
      for (std::size_t d = first; d < spec_.dims.size(); ++d) count += (count.empty() ? "" : "*") + size(d);
      const bool indexed = spec_.op == Operator::argmin;
      if (indexed) names += "k ", inputs += fmt::format(" (iota ({}))", count);
      text = reduce(fmt::format("map{} (\\{}-> {}){}", elements.size() + (indexed ? 1 : 0), names,
                                map_of(elements, "k"), inputs));
    } else {
      text = map_of(elements, "");
      for (std::size_t d = spec_.dims.size(); d-- > first;) text = reduce(map_over(d, all, text));
    }
    text = after(text, "1");
    for (std::size_t d = first; d-- > 0;) text = map_over(d, all, text);
    return text;
  }

  const Spec& spec_;
  const OperatorText op_;
  std::string lets_;
};

}  // namespace

std::string to_source(const Spec& spec) { return Source(spec).run(); }

}  // namespace apl::contraction_tests
