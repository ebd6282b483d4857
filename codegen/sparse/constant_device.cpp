// Known matrices in kernel text. A piece of a section is a function that is called by its number: a block runs those
// of one section, each by a group of threads with a column each, whose partial sums meet in shared memory. Loads of B
// are addressed by constants, and numbers are operands of the instructions that multiply by them.
//
//   APL_CONSTANT_FUNCTION void spmm_A_0_1(apl_in<float> b, int at) {
//     const apl_shared<float> sums = apl_shared_at<float>(0, 2304);
//     const float x0 = float(b(3 * int64_t(APL_CONSTANT_B_ROW)));
//     ...
//     float s0 = x0 * 0x1.8p-1f;
//     s1 += x0 * -0x1p-2f;
//     sums(at) = s0;
//   }
//
// What stands before and behind the functions is short, since a kernel takes some microseconds: between the launch and
// the first load of B there is one, of where to jump, and no division unless there are several strips.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/kernel/writer.h"
#include "codegen/sparse/constant.h"
#include "ir/type.h"

namespace apl::lower {
namespace {

constexpr std::size_t kAtOnce = 8;  // loads that are on their way before the first is used

std::string memory_type(ScalarType type) {
  if (type == ScalarType::f16) return "apl_half";
  if (is_storage(type)) return "apl_bfloat";
  if (type == ScalarType::f32) return "float";
  if (type == ScalarType::f64) return "double";
  return fmt::format("{}int{}_t", is_signed(type) ? "" : "u", 8 * byte_size(type));
}

class DeviceWriter {
 public:
  DeviceWriter(const ConstantProduct& product, std::string epilogue_type)
      : product_(product),
        made_(constant_functions(product)),
        sections_(made_.functions),
        element_(product.matrix->values.type),
        sum_(constant_sum_type(element_)),
        columns_(product.sections.columns),
        pieces_(product.sections.pieces),
        any_columns_(product.proxy && product.proxy->any_columns),
        columns_text_(any_columns_ ? "columns" : fmt::format("{}", columns_)),
        epilogue_(std::move(epilogue_type)) {
    const std::size_t rows = most_rows();
    full_sections_ = made_.uses.size();
    for (std::size_t k = 0; k < sections_.empty_rows.size(); k += rows) {
      const auto first = sections_.empty_rows.begin() + static_cast<std::ptrdiff_t>(k);
      made_.uses.push_back({sections_.sections.size(), 0});
      sections_.sections.push_back(
          {{first, first + static_cast<std::ptrdiff_t>(std::min(rows, sections_.empty_rows.size() - k))}, {}});
    }
  }

  DeviceText run(const std::string& epilogue_text, int warp) {
    out_.line("// {} by {} with {} non-zeros: {} sections of up to {} rows, in {} pieces.", product_.matrix->rows,
              product_.matrix->columns, product_.matrix->nonzeros(), sections_.sections.size(), product_.sections.rows,
              pieces_);
    out_.line("#define APL_WARP {}", warp);
    out_.line("#include \"device.h\"");
    out_.line("");
    out_.line("#if defined(APL_EMULATE)");
    out_.line("#define APL_CONSTANT_FUNCTION static");
    out_.line("#define APL_CONSTANT_TABLE static const");
    out_.line("#elif defined(__HIP__)");
    out_.line("#define APL_CONSTANT_FUNCTION static __device__ __noinline__");
    out_.line("#define APL_CONSTANT_TABLE static __device__ const");
    out_.line("#else");
    out_.line("#define APL_CONSTANT_JUMPS");
    out_.line("#define APL_CONSTANT_FUNCTION extern \"C\" __device__ __noinline__ __attribute__((used))");
    out_.line("#define APL_CONSTANT_TABLE static __device__ const");
    out_.line("#endif");
    out_.line("typedef {} apl_constant_sum;", memory_type(sum_));
    out_.line("typedef {} apl_constant_element;", memory_type(element_));
    out_.line("");
    out_.raw(epilogue_text);
    if (std::ranges::any_of(sections_.sections, [&](const Section& s) { return std::ssize(s.pieces) < pieces_; }))
      write_nothing();
    for (std::size_t s = 0; s < sections_.sections.size(); ++s) write_section(s);
    write_tables();
    write_kernel();
    return {out_.take(), std::ssize(made_.uses), columns_ * pieces_, shared_bytes()};
  }

 private:
  // Of a piece's function; `columns` where they are an argument.
  const char* parameters() const {
    return any_columns_ ? "apl_in<apl_constant_element>, int, int" : "apl_in<apl_constant_element>, int";
  }
  const char* named_parameters() const {
    return any_columns_ ? "apl_in<apl_constant_element> b, int at, int columns"
                        : "apl_in<apl_constant_element> b, int at";
  }
  // How far the sums of so many rows lie apart.
  std::string sums_of(std::int64_t rows) const {
    return any_columns_ ? fmt::format("{} * columns", rows) : fmt::format("{}", rows * columns_);
  }

  // Where a proxy's block reads, in rows of B.
  std::string moved_rows() const {
    if (made_.spare_rows == 0) return {};
    constexpr int kFar = 89;  // neighbours read other rows
    return fmt::format(" + int64_t(section * {} % {}) * APL_CONSTANT_B_ROW", kFar, made_.spare_rows + 1);
  }

  std::size_t most_rows() const { return static_cast<std::size_t>(product_.sections.rows); }
  std::int64_t shared_elements() const { return pieces_ * product_.sections.rows * columns_; }
  std::int64_t shared_bytes() const { return shared_elements() * byte_size(sum_); }

  std::string times(const std::string& x, std::int64_t nonzero) const {
    const Scalar number = product_.matrix->values.at(nonzero);
    const bool is_one = number == convert(Scalar::integer(ScalarType::i32, 1), number.type());
    if (is_one) return x;
    const std::string text = constant_text(product_.matrix->values, nonzero);
    return is_float(sum_) ? fmt::format("{} * {}", x, text)
                          : fmt::format("apl_mul<apl_constant_sum>({}, apl_constant_sum({}))", x, text);
  }

  // What a function for a group of threads without a piece does: its sums are 0.
  void write_nothing() {
    out_.open("APL_CONSTANT_FUNCTION void {}_nothing({}) {{", product_.name, named_parameters());
    write_shared();
    for (std::size_t r = 0; r < most_rows(); ++r) store_sum(r, "apl_constant_sum(0)");
    out_.close("}}");
  }

  void write_shared() {
    out_.line("const apl_shared<apl_constant_sum> sums = apl_shared_at<apl_constant_sum>(0, {});",
              sums_of(pieces_ * product_.sections.rows));
  }

  void store_sum(std::size_t r, const std::string& sum) {
    out_.line("sums(at + {}) = {};", sums_of(static_cast<std::int64_t>(r)), sum);
  }

  void write_section(std::size_t s) {
    const Section& section = sections_.sections[s];
    for (std::size_t p = 0; p < section.pieces.size(); ++p) {
      out_.line("// rows {}", fmt::join(section.rows, ", "));
      out_.open("APL_CONSTANT_FUNCTION void {}_{}_{}({}) {{", product_.name, s, p, named_parameters());
      write_shared();
      const std::vector<SectionColumn>& piece = section.pieces[p];
      std::vector<bool> begun(section.rows.size());
      for (std::size_t first = 0; first < piece.size(); first += kAtOnce) {
        const std::size_t end = std::min(first + kAtOnce, piece.size());
        for (std::size_t c = first; c < end; ++c)
          out_.line("const apl_constant_sum x{} = apl_constant_sum(b({} * int64_t(APL_CONSTANT_B_ROW)));", c,
                    piece[c].column);
        for (std::size_t c = first; c < end; ++c) write_terms(fmt::format("x{}", c), piece[c], begun);
      }
      // Pieces beyond the groups of threads are added to what a group has.
      const bool adds = static_cast<std::int64_t>(p) >= pieces_;
      for (std::size_t r = 0; r < begun.size(); ++r)
        if (begun[r])
          store_sum(r, adds ? add(fmt::format("apl_constant_sum(sums(at + {}))", sums_of(static_cast<std::int64_t>(r))),
                                  fmt::format("s{}", r))
                            : fmt::format("s{}", r));
        else if (!adds)
          store_sum(r, "apl_constant_sum(0)");
      out_.close("}}");
    }
  }

  std::string add(const std::string& a, const std::string& b) const {
    return is_float(sum_) ? fmt::format("{} + {}", a, b) : fmt::format("apl_add<apl_constant_sum>({}, {})", a, b);
  }

  void write_terms(const std::string& x, const SectionColumn& column, std::vector<bool>& begun) {
    for (const SectionColumn::Term& term : column.terms) {
      const auto r = static_cast<std::size_t>(term.row);
      const std::string product = times(x, term.nonzero);
      if (begun[r]) {
        out_.line("s{0} = {1};", r, add(fmt::format("s{}", r), product));
      } else {
        out_.line("apl_constant_sum s{} = {};", r, product);
      }
      begun[r] = true;
    }
  }

  // The rows of each section, -1 behind them; its functions, and where they begin.
  void write_tables() {
    std::vector<std::int32_t> rows, starts;
    std::vector<std::string> functions;
    const std::int64_t full_rows = product_.matrix->rows - std::ssize(sections_.empty_rows);
    for (std::size_t s = 0; s < made_.uses.size(); ++s) {
      const SectionUses::Use& use = made_.uses[s];
      const Section& section = sections_.sections[use.function];
      // Those of proxies in order, so that no two blocks write the same one.
      const bool is_in_order = product_.proxy && s < full_sections_;
      for (std::size_t r = 0; r < most_rows(); ++r) {
        const std::int64_t row = is_in_order               ? static_cast<std::int64_t>(s * most_rows() + r)
                                 : r < section.rows.size() ? section.rows[r] + use.base
                                                           : -1;
        rows.push_back(static_cast<std::int32_t>(is_in_order && row >= full_rows ? -1 : row));
      }
      starts.push_back(static_cast<std::int32_t>(functions.size()));
      for (std::size_t p = 0; p < section.pieces.size(); ++p)
        functions.push_back(fmt::format("{}_{}_{}", product_.name, use.function, p));
      while (std::ssize(functions) < starts.back() + pieces_) functions.push_back(product_.name + "_nothing");
    }
    has_starts_ = std::ssize(functions) > std::ssize(starts) * pieces_;
    starts.push_back(static_cast<std::int32_t>(functions.size()));
    out_.line("APL_CONSTANT_TABLE int32_t apl_constant_row[] = {{{}}};", fmt::join(rows, ", "));
    if (has_starts_) out_.line("APL_CONSTANT_TABLE int32_t apl_constant_start[] = {{{}}};", fmt::join(starts, ", "));
    write_call(functions);
    out_.line("");
  }

  // apl_constant_call(k, from, at) calls the k-th function. nvcc would make a tree of comparisons of a switch, and
  // ptxas saves and restores registers in functions whose address is taken; so it is a jump to one of the calls.
  void write_call(const std::vector<std::string>& functions) {
    out_.line("#if defined(APL_CONSTANT_JUMPS)");
    out_.open("static __device__ __forceinline__ void apl_constant_call(int k, {}) {{", named_parameters());
    out_.line("asm volatile(");
    std::vector<std::string> labels;
    for (std::size_t k = 0; k < functions.size(); ++k) labels.push_back(fmt::format("L{}", k));
    // Threads of a warp have the same piece where strips are whole warps.
    const char* uniform = !any_columns_ && columns_ % 32 == 0 ? ".uni" : "";
    out_.line("    \"{{\\n to: .branchtargets {};\\n\"", fmt::join(labels, ", "));
    out_.line("    \" brx.idx{} %0, to;\\n\"", uniform);
    // Each call has parameters of its own, which stand before it: functions take theirs from different registers.
    for (std::size_t k = 0; k < functions.size(); ++k) {
      out_.line("    \" L{}: {{ .param .align 8 .b8 b[8]; .param .b32 at;{}\\n\"", k,
                any_columns_ ? " .param .b32 columns;" : "");
      out_.line("    \" st.param.b64 [b], %1; st.param.b32 [at], %2;{}\\n\"",
                any_columns_ ? " st.param.b32 [columns], %3;" : "");
      out_.line("    \" call{0} {1}, (b, at{2}); }}\\n bra{0} done;\\n\"", uniform, functions[k],
                any_columns_ ? ", columns" : "");
    }
    out_.line("    \" done:\\n }}\"");
    out_.line("    ::\"r\"(k), \"l\"(b.data), \"r\"(at){} : \"memory\");", any_columns_ ? ", \"r\"(columns)" : "");
    out_.close("}}");
    out_.line("#else");
    out_.line("typedef void (*apl_constant_piece)({});", parameters());
    out_.line("APL_CONSTANT_TABLE apl_constant_piece apl_constant_pieces[] = {{{}}};", fmt::join(functions, ", "));
    out_.line("#define apl_constant_call(k, ...) apl_constant_pieces[k](__VA_ARGS__)");
    out_.line("#endif");
  }

  void write_kernel() {
    const std::string result = memory_type(product_.result);
    const std::int64_t rows = product_.sections.rows, rows_of_group = (rows + pieces_ - 1) / pieces_;
    out_.line("#define APL_CONSTANT_EXPORT(kernel) APL_EXPORT(kernel)");
    out_.open(
        "APL_KERNEL({}) void APL_CONSTANT_NAME(apl_in<apl_constant_element> b, apl_out<{}> c, int64_t c_row, int64_t "
        "width{}{}) {{",
        columns_ * pieces_, result, any_columns_ ? ", int columns" : "",
        epilogue_.empty() ? "" : fmt::format(", {} after", epilogue_));
    write_shared();
    out_.line("const int32_t n = int32_t(width);");
    out_.line("const uint32_t strips = uint32_t(n + {0} - 1) / uint32_t({0});", columns_text_);
    out_.line("uint32_t section = uint32_t(apl_block()), strip = 0;");
    out_.open("if (strips > 1) {{");
    out_.line("strip = section % strips;");
    out_.line("section /= strips;");
    out_.close("}}");
    out_.line("const int piece = apl_thread() / {0}, column = int(strip) * {0} + apl_thread() % {0};", columns_text_);
    out_.line("// The rows that this thread writes are known before the sums are.");
    out_.line("int32_t row[{}];", rows_of_group);
    out_.line("APL_UNROLL");
    out_.line("for (int k = 0; k < {}; ++k) {{", rows_of_group);
    out_.line("  const int r = piece + k * {};", pieces_);
    out_.line("  row[k] = {}apl_constant_row[int(section) * {} + r]{};",
              rows % pieces_ == 0 ? "" : fmt::format("r < {} ? ", rows), rows, rows % pieces_ == 0 ? "" : " : -1");
    out_.line("}}");
    out_.line("// Threads beyond the end read what is there, and drop it.");
    out_.line("const apl_in<apl_constant_element> from{{b.data + (column < n ? column : n - 1){}}};", moved_rows());
    out_.line("const int at = piece * {} + apl_thread() % {};", sums_of(rows), columns_text_);
    if (has_starts_) {
      out_.line("for (int k = apl_constant_start[section] + piece; k < apl_constant_start[section + 1]; k += {})",
                pieces_);
      out_.line("  apl_constant_call(k, from, at{});", any_columns_ ? ", columns" : "");
    } else {
      out_.line("apl_constant_call(int(section) * {} + piece, from, at{});", pieces_, any_columns_ ? ", columns" : "");
    }
    if (pieces_ > 1) out_.line("apl_barrier();");
    out_.line("if (column >= n) return;");
    out_.line("APL_UNROLL");
    out_.open("for (int k = 0; k < {}; ++k) {{", rows_of_group);
    out_.line("if (row[k] < 0) continue;");
    out_.line("const int in = (piece + k * {}) * {} + apl_thread() % {};", pieces_, columns_text_, columns_text_);
    out_.line("apl_constant_sum sum = sums(in);");
    if (pieces_ > 1) {
      out_.line("APL_UNROLL");
      out_.line("for (int p = 1; p < {}; ++p) {{", pieces_);
      out_.line("  const apl_constant_sum part = sums(p * {} + in);", sums_of(rows));
      out_.line("  sum = {};", add("sum", "part"));
      out_.line("}}");
    }
    out_.line("c(row[k] * c_row + column) = {}({});", result, epilogue_.empty() ? "sum" : "after(sum, row[k], column)");
    out_.close("}}");
    out_.close("}}");
    out_.line("APL_CONSTANT_EXPORT(APL_CONSTANT_NAME)");
  }

  const ConstantProduct& product_;
  SectionUses made_;
  Sections& sections_;
  const ScalarType element_, sum_;
  const std::int64_t columns_, pieces_;
  std::size_t full_sections_ = 0;  // the sections behind have no pieces
  bool has_starts_ = false;        // some section has more pieces than there are groups of threads
  const bool any_columns_;
  const std::string columns_text_, epilogue_;
  Writer out_;
};

}  // namespace

DeviceText print_constant_device(const ConstantProduct& product, const std::string& epilogue_type,
                                 const std::string& epilogue_text, int warp) {
  return DeviceWriter(product, epilogue_type).run(epilogue_text, warp);
}

}  // namespace apl::lower
