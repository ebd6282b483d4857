// Known matrices in C. Numbers lie in a table in the order in which the code reads them, as machines without immediate
// operands of that kind would keep them; the compiler sees a pointer, else it would make a vector of each. 1 and -1 are
// additions. A section is a function of its own: it goes over strips of columns of B, whose sums it keeps in
// registers, so that its code is fetched once. A strip that would reach over the end begins earlier: what it makes
// again is what was there. Rows of B are found by adding up strides, most of which are the same few.
//
//   static void spmm_A_0(const float *value, const float *b, int64_t b_row, float *c, int64_t c_row, int64_t width) {
//     for (int64_t j = 0; j < width; j += 16) {
//       const int64_t at = j < width - 16 ? j : width - 16;
//       const float *row = b + at + 3 * b_row;
//       const spmm_A_sum x0 = spmm_A_load(row);
//       s0_0 += x0 * value[0];
//       s1_0 += x0;
//       ...
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "codegen/kernel/writer.h"
#include "codegen/sparse/constant.h"
#include "ir/type.h"

namespace apl::lower {

ScalarType constant_sum_type(ScalarType element) {
  return is_storage(element) || element == ScalarType::f16 ? ScalarType::f32 : element;
}

std::string constant_text(const HostValue& values, std::int64_t nonzero) {
  const Scalar x = values.at(nonzero);
  if (is_float(x.type())) {
    const double number = x.as_float();
    return fmt::format("{}{:a}{}", std::signbit(number) ? "-" : "", std::abs(number),
                       constant_sum_type(values.type) == ScalarType::f32 ? "f" : "");
  }
  // Unsigned, so that they wrap.
  const auto bits = static_cast<std::uint64_t>(x.as_int());
  const int width = 8 * byte_size(values.type);
  return fmt::format("{}u", width < 64 ? bits & ((std::uint64_t{1} << width) - 1) : bits) + (width == 64 ? "ll" : "");
}

SectionUses constant_functions(const ConstantProduct& product) {
  const SparseSchedule::Sections& numbers = product.sections;
  Sections sections = make_sections(*product.matrix, numbers.rows, numbers.pieces, kMostTerms);
  return product.proxy ? make_proxy(*product.matrix, sections, numbers.rows, numbers.pieces, *product.proxy)
                       : own_sections(std::move(sections));
}

namespace {

constexpr std::int64_t kVectorBytes = 64;
constexpr std::int64_t kWaiting = 16;  // strips whose sums wait for the next piece

// What C calls elements in memory, and what they are added up in: integers wrap.
std::string c_type_of(ScalarType type) {
  if (is_float(type)) return std::string(facts(type).kernel_type);
  return fmt::format("uint{}_t", 8 * byte_size(type));
}

// One element as a number.
std::string read_text(ScalarType type, const std::string& element) {
  if (type == ScalarType::f16) return "apl_from_half(" + element + ")";
  if (is_storage(type)) return fmt::format("apl_from_{}({})", to_text(type), element);
  return element;
}

// Elements of a vector: a power of two that divides the strip.
std::int64_t lanes_of(std::int64_t strip, std::int64_t bytes) {
  std::int64_t lanes = 1;
  while (strip % (2 * lanes) == 0 && 2 * lanes * bytes <= kVectorBytes) lanes *= 2;
  return lanes;
}

class CText {
 public:
  explicit CText(const ConstantProduct& product)
      : product_(product),
        made_(constant_functions(product)),
        sections_(made_.functions),
        element_(product.matrix->values.type),
        sum_(constant_sum_type(element_)),
        strip_(product.sections.columns),
        lanes_(lanes_of(strip_, byte_size(sum_))),
        vectors_(strip_ / lanes_) {}

  std::string run() {
    declare_types();
    for (std::size_t s = 0; s < sections_.sections.size(); ++s) write_section(s);
    write_table();
    return out_.take();
  }

 private:
  std::string name(const char* part) const { return fmt::format("{}_{}", product_.name, part); }
  bool is_scalar() const { return lanes_ == 1; }

  void declare_types() {
    const std::string sum = c_type_of(sum_), element = c_type_of(element_), result = c_type_of(product_.result);
    out_.line("// {} by {} with {} non-zeros: {} sections of up to {} rows, strips of {} columns{}.",
              product_.matrix->rows, product_.matrix->columns, product_.matrix->nonzeros(), made_.uses.size(),
              product_.sections.rows, strip_, product_.proxy ? "; a proxy" : "");
    if (is_scalar()) {
      out_.line("typedef {} {};", sum, name("sum"));
    } else {
      out_.line("typedef {} {} __attribute__((vector_size({})));", sum, name("sum"), lanes_ * byte_size(sum_));
    }
    out_.open("static inline {} {}(const {} *from) {{", name("sum"), name("load"), element);
    if (is_scalar()) {
      out_.line("return {};", read_text(element_, "*from"));
    } else {
      out_.line("{} x;", name("sum"));
      if (element_ == sum_ || is_integer(element_)) {
        out_.line("__builtin_memcpy(&x, from, sizeof x);");
      } else {
        out_.line("for (int k = 0; k < {}; ++k) x[k] = {};", lanes_, read_text(element_, "from[k]"));
      }
      out_.line("return x;");
    }
    out_.close("}}");
    out_.open("static inline void {}({} *to, {} x) {{", name("store"), result, name("sum"));
    const bool narrow = product_.result != sum_ && !is_integer(sum_);
    if (is_scalar()) {
      out_.line("*to = {};", narrow ? "apl_to_half(x)" : "x");
    } else if (narrow) {
      out_.line("for (int k = 0; k < {}; ++k) to[k] = apl_to_half(x[k]);", lanes_);
    } else {
      out_.line("__builtin_memcpy(to, &x, sizeof x);");
    }
    out_.close("}}");
    out_.line("");
  }

  std::string b_row(std::int64_t times) const {
    if (product_.b_row) return fmt::format("{}", times * *product_.b_row);
    return times == 1 ? "b_row" : fmt::format("{} * b_row", times);
  }

  // One column: a row of B times the numbers of those rows that use it.
  void write_column(const SectionColumn& column, std::vector<bool>& begun) {
    if (const std::int64_t step = column.column - last_column_; step > 0) out_.line("row += {};", b_row(step));
    last_column_ = column.column;
    out_.open("{{");
    for (std::int64_t v = 0; v < vectors_; ++v)
      out_.line("const {} x{} = {}(row{});", name("sum"), v, name("load"),
                v == 0 ? "" : fmt::format(" + {}", v * lanes_));
    for (const SectionColumn::Term& term : column.terms) {
      const auto r = static_cast<std::size_t>(term.row);
      const std::string number = number_of(term.nonzero);
      for (std::int64_t v = 0; v < vectors_; ++v)
        out_.line("s{}_{} {};", r, v, fmt::format(fmt::runtime(number), begun[r] ? "+" : "", v));
      begun[r] = true;
    }
    out_.close("}}");
  }

  // A format of what is assigned to or added to a sum: of the operator, and the number of the vector.
  std::string number_of(std::int64_t nonzero) {
    const Scalar x = product_.matrix->values.at(nonzero);
    const double number = is_float(x.type()) ? x.as_float() : static_cast<double>(x.as_int());
    if (number == 1) return "{}= x{}";
    if (number == -1 && (is_float(sum_) || byte_size(sum_) >= 4)) return "{}= -x{}";
    numbers_.push_back(constant_text(product_.matrix->values, nonzero));
    return fmt::format("{{}}= x{{}} * value[{}]", std::ssize(numbers_) - 1 - first_number_);
  }

  void write_section(std::size_t s) {
    const Section& section = sections_.sections[s];
    out_.line("// rows {}", fmt::join(section.rows, ", "));
    out_.open(
        "APL_SECTION static void {}_{}(const {} *value, const {} *b, int64_t b_row, {} *c, int64_t c_row, "
        "int64_t width) {{",
        product_.name, s, c_type_of(sum_), c_type_of(element_), c_type_of(product_.result));
    out_.line("APL_FUSED");
    out_.line("(void)value, (void)b_row, (void)c_row;");
    first_number_ = std::ssize(numbers_);
    starts_.push_back(first_number_);
    const std::size_t pieces = section.pieces.size();
    if (pieces > 1) {
      // The code of one piece goes over some strips before that of the next does; sums wait here.
      out_.line("{} wait[{}][{}];", name("sum"), kWaiting, std::ssize(section.rows) * vectors_);
      out_.open("for (int64_t first = 0; first < width; first += {}) {{", kWaiting * strip_);
      out_.line("const int64_t end = width - first < {0} ? width : first + {0};", kWaiting * strip_);
    }
    std::vector<bool> begun(section.rows.size());
    for (std::size_t p = 0; p < pieces; ++p) write_piece(section, p, begun);
    if (pieces > 1) out_.close("}}");
    out_.close("}}");
    out_.line("");
  }

  void write_piece(const Section& section, std::size_t p, std::vector<bool>& begun) {
    const bool is_one = section.pieces.size() == 1, is_last = p + 1 == section.pieces.size();
    const std::vector<SectionColumn>& piece = section.pieces[p];
    out_.open("for (int64_t j = {}; j < {}; j += {}) {{", is_one ? "0" : "first", is_one ? "width" : "end", strip_);
    out_.line("const int64_t at = j < width - {0} ? j : width - {0};", strip_);
    if (!is_one) out_.line("{} *const sums = wait[(j - first) / {}];", name("sum"), strip_);
    out_.line("const {} *row = b + at;", c_type_of(element_));
    std::vector<bool> used(section.rows.size(), is_last);
    for (const SectionColumn& column : piece)
      for (const SectionColumn::Term& term : column.terms) used[static_cast<std::size_t>(term.row)] = true;
    for_each_sum(section, used, [&](std::size_t r, std::int64_t v) {
      if (begun[r]) {
        out_.line("{} s{}_{} = sums[{}];", name("sum"), r, v, static_cast<std::int64_t>(r) * vectors_ + v);
      } else {
        out_.line("{} s{}_{};", name("sum"), r, v);
      }
    });
    last_column_ = 0;
    for (const SectionColumn& column : piece) write_column(column, begun);
    for_each_sum(section, used, [&](std::size_t r, std::int64_t v) {
      if (is_last) {
        out_.line("{}(c + {} * c_row + at{}, s{}_{});", name("store"), section.rows[r],
                  v == 0 ? "" : fmt::format(" + {}", v * lanes_), r, v);
      } else {
        out_.line("sums[{}] = s{}_{};", static_cast<std::int64_t>(r) * vectors_ + v, r, v);
      }
    });
    out_.close("}}");
  }

  template <class Do>
  void for_each_sum(const Section& section, const std::vector<bool>& used, const Do& act) {
    for (std::size_t r = 0; r < section.rows.size(); ++r)
      for (std::int64_t v = 0; v < vectors_ && used[r]; ++v) act(r, v);
  }

  void write_table() {
    const std::string element = c_type_of(element_), result = c_type_of(product_.result);
    const bool any = !sections_.sections.empty();
    const std::string sum = c_type_of(sum_);
    if (any) {
      if (numbers_.empty()) numbers_.emplace_back("0");
      out_.open("static const {} {}[] = {{", sum, name("value"));
      constexpr std::size_t kPerLine = 8;
      for (std::size_t k = 0; k < numbers_.size(); k += kPerLine)
        out_.line(
            "{},",
            fmt::join(numbers_.begin() + static_cast<std::ptrdiff_t>(k),
                      numbers_.begin() + static_cast<std::ptrdiff_t>(std::min(k + kPerLine, numbers_.size())), ", "));
      out_.close("}};");
      out_.open("static const struct {{");
      out_.line("void (*run)(const {} *, const {} *, int64_t, {} *, int64_t, int64_t);", sum, element, result);
      out_.line("int64_t value, row;");
      out_.close("}} {}[] = {{", name("table"));
      out_.indent();
      for (const SectionUses::Use& use : made_.uses)
        out_.line("{{{}_{}, {}, {}}},", product_.name, use.function, starts_[use.function], use.base);
      out_.close("}};");
    }
    if (!sections_.empty_rows.empty())
      out_.line("static const int32_t {}[] = {{{}}};", name("empty"), fmt::join(sections_.empty_rows, ", "));
    if (any) write_unit(element, result);
    out_.open("static void {}(const void *b, int64_t b_row, void *c, int64_t c_row, int64_t width) {{", product_.name);
    out_.line("(void)b, (void)b_row;");
    if (!sections_.empty_rows.empty()) {
      out_.line("for (int64_t k = 0; k < {}; ++k)", sections_.empty_rows.size());
      out_.line("  __builtin_memset(({0} *)c + {1}[k] * c_row, 0, (size_t)width * sizeof({0}));", result,
                name("empty"));
    }
    if (any) {
      out_.line("struct {} job = {{b, b_row, c, c_row, width}};", name("job"));
      out_.line("const struct apl_work work = {{{}, &job, 1, {{{}, 0}}}};", name("unit"), made_.uses.size());
      out_.line("apl_in_parallel({} * width > {} ? apl_threads() : 1, &work);", product_.matrix->nonzeros(), 1 << 15);
    }
    out_.close("}}");
    out_.line("");
  }

  // A section as a unit of work: sections differ in length, and threads claim them one by one.
  void write_unit(const std::string& element, const std::string& result) {
    out_.open("struct {} {{", name("job"));
    out_.line("const void *b;");
    out_.line("int64_t b_row;");
    out_.line("void *c;");
    out_.line("int64_t c_row, width;");
    out_.close("}};");
    out_.open("static void {}(void *job, int64_t phase, int64_t unit, int64_t me) {{", name("unit"));
    out_.line("const struct {} *const all = job;", name("job"));
    out_.line("(void)phase, (void)me;");
    out_.line("{0}[unit].run({1} + {0}[unit].value, (const {2} *)all->b, all->b_row,", name("table"), name("value"),
              element);
    out_.line("  ({1} *)all->c + {0}[unit].row * all->c_row, all->c_row, all->width);", name("table"), result);
    out_.close("}}");
  }

  const ConstantProduct& product_;
  const SectionUses made_;
  const Sections& sections_;
  const ScalarType element_, sum_;
  const std::int64_t strip_, lanes_, vectors_;  // a strip is so many vectors of so many elements
  std::int64_t last_column_ = 0, first_number_ = 0;
  std::vector<std::string> numbers_;  // of all sections
  std::vector<std::int64_t> starts_;  // where each section's begin
  Writer out_;
};

}  // namespace

std::string print_constant_c(const ConstantProduct& product) { return CText(product).run(); }

}  // namespace apl::lower
