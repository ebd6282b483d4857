// What a plan makes of a contraction: its dims, the tiles of a block, and the block's shared memory.
#include <fmt/format.h>

#include <algorithm>

#include "aplc/report/report.h"

namespace aplc::report_page {
namespace {

std::int64_t extent_of(const ExplainedPlan& plan, int dim) {
  return std::int64_t{plan.plan.tile[dim]} * (dim < plan.contraction->space_rank ? plan.plan.reg[dim] : 1);
}

std::string bytes_text(std::int64_t bytes) {
  return bytes < 1024 ? fmt::format("{} B", bytes) : fmt::format("{:.4g} KiB", static_cast<double>(bytes) / 1024);
}

}  // namespace

std::string tile_picture(const ExplainedPlan& plan, const std::string& einsum) {
  if (!plan.contraction || plan.contraction->operand_count < 2) return {};
  const apl_contraction& c = *plan.contraction;
  // The free dims of each side and those that are summed, flattened: how large, and how much of them a block has.
  double size[3] = {1, 1, 1}, tile[3] = {1, 1, 1};
  for (int d = 0; d < c.dim_count; ++d) {
    const bool is_free = d < c.space_rank;
    const bool in_first = c.operands[0].strides[d] != 0, in_second = c.operands[1].strides[d] != 0;
    if (is_free && in_first && in_second) continue;  // a batch, of which a block has one
    const int side = !is_free ? 2 : in_first ? 0 : 1;
    size[side] *= static_cast<double>(std::max<std::int64_t>(1, c.dims[d].size));
    tile[side] *= plan.plan.tile[d] * (is_free ? plan.plan.reg[d] : 1);
  }
  for (int side = 0; side < 3; ++side) tile[side] = std::min(tile[side], size[side]);
  constexpr double kLong = 260, kShort = 40;
  const double largest = std::max({size[0], size[1], size[2]});
  const auto length = [&](int side) { return std::max(kShort, kLong * size[side] / largest); };
  const double m = length(0), n = length(1), q = length(2), left = q + 40, top = q + 40;
  const auto step = [&](int side, double extent) { return std::max(2.0, extent * tile[side] / size[side]); };
  const double block_m = step(0, m), block_n = step(1, n), block_q = step(2, q);
  std::string svg = fmt::format(
      "<svg role=img aria-label=\"tiles of {}\" viewBox=\"0 0 {:.0f} {:.0f}\" width={:.0f}>\n<title>{}: the result "
      "with its "
      "blocks of {:.0f} by {:.0f}, and what one block reads of the operands, {:.0f} at a time</title>\n",
      escaped(einsum), std::max(left + n + 10, 360.0), top + m + 50, std::max(left + n + 10, 360.0), escaped(einsum),
      tile[0], tile[1], tile[2]);
  const auto rect = [&](const char* kind, double x, double y, double w, double h) {
    svg += fmt::format("<rect class={} x={:.1f} y={:.1f} width={:.1f} height={:.1f} />\n", kind, x, y, w, h);
  };
  // The first operand on the left, the second above, as in the product of matrices.
  rect("matrix", 0, top, q, m);
  rect("matrix", left, 0, n, q);
  rect("matrix", left, top, n, m);
  constexpr double kMostLines = 64;
  if (m / block_m <= kMostLines)
    for (double y = block_m; y < m; y += block_m)
      svg += fmt::format("<path class=grid d=\"M{:.1f} {:.1f}h{:.1f}\"/>\n", left, top + y, n);
  if (n / block_n <= kMostLines)
    for (double x = block_n; x < n; x += block_n)
      svg += fmt::format("<path class=grid d=\"M{:.1f} {:.1f}v{:.1f}\"/>\n", left + x, top, m);
  rect("strip", 0, top, q, block_m);
  rect("strip", left, 0, block_n, q);
  rect("block", 0, top, block_q, block_m);
  rect("block", left, 0, block_n, block_q);
  rect("block", left, top, block_n, block_m);
  const auto label = [&](double x, double y, const std::string& text) {
    svg += fmt::format("<text x={:.1f} y={:.1f}>{}</text>\n", x, y, escaped(text));
  };
  label(0, top + m + 40, fmt::format("{}: {:.0f} by {:.0f}", plan.operands[0], size[0], size[2]));
  label(left, q + 18, fmt::format("{}: {:.0f} by {:.0f}", plan.operands[1], size[2], size[1]));
  label(left, top + m + 20,
        fmt::format("{:.0f} by {:.0f}, in blocks of {:.0f} by {:.0f}", size[0], size[1], tile[0], tile[1]));
  return svg + "</svg>\n";
}

std::string dims_table(const ExplainedPlan& plan, std::vector<std::string> names) {
  if (!plan.contraction) return {};
  const apl_contraction& c = *plan.contraction;
  const auto count = static_cast<std::size_t>(c.dim_count);
  if (names.size() + 1 == count) names.insert(names.begin(), "part");  // of a reduction that is split
  if (names.size() != count) {
    names.clear();
    for (std::size_t d = 0; d < count; ++d) names.push_back(fmt::format("dim {}", d + 1));
  }
  std::string table =
      "<div class=scroll><table class=dims><thead><tr><th scope=col>dims<th scope=col>kind<th scope=col>size"
      "<th scope=col>threads<th scope=col>elements of a thread<th scope=col>of a block<th scope=col>blocks or "
      "steps</thead>\n";
  struct Row {
    std::string names, kind;
    std::int64_t size = 1, threads = 1, each = 1, extent = 1;
  };
  std::vector<Row> rows;
  std::size_t merged[2] = {};  // row of M and of N, and one: their dims are tiled as if they were one
  for (int d = 0; d < c.dim_count; ++d) {
    const bool is_space = d < c.space_rank;
    const bool is_m = c.dims[d].kind == APL_DIM_M, is_merged = is_m || c.dims[d].kind == APL_DIM_N;
    std::size_t at = rows.size();
    if (is_merged && merged[is_m] != 0) at = merged[is_m] - 1;
    if (at == rows.size()) rows.emplace_back();
    if (is_merged) merged[is_m] = at + 1;
    Row& row = rows[at];
    row.names += (row.names.empty() ? "" : ", ") + names[static_cast<std::size_t>(d)];
    row.kind = !is_space                             ? "contracted"
               : c.dims[d].kind == APL_DIM_BATCH     ? "batch"
               : c.dims[d].kind == APL_DIM_INVARIANT ? "no operand varies along it"
               : is_merged                           ? (is_m ? "M" : "N")
                                                     : "free";
    row.size *= c.dims[d].size;
    row.threads *= is_space ? plan.plan.tile[d] : 1;
    row.each *= is_space ? plan.plan.reg[d] : plan.plan.tile[d];
    row.extent *= std::max<std::int64_t>(1, extent_of(plan, d));
  }
  for (const Row& row : rows)
    table += fmt::format(
        "<tr><th scope=row>{}<td>{}<td class=number>{}<td class=number>{}<td class=number>{}<td class=number>{}<td "
        "class=number>{}\n",
        escaped(row.names), row.kind, row.size, row.threads, row.each, row.extent,
        (row.size + row.extent - 1) / row.extent);
  return table + "</table></div>\n";
}

// In the order in which the kernel has them: stages of each operand's tile, tables, results on their way out.
std::vector<SharedPart> shared_parts(const ExplainedPlan& plan, const apl_device& device) {
  std::vector<SharedPart> parts;
  if (!plan.contraction) return parts;
  const apl_contraction& c = *plan.contraction;
  std::int64_t rest = plan.cost.block_shared;
  // Only the mainloop has stages; 0 is as many as the code generator likes, which is three.
  const int stages = !plan.cost.has_mainloop ? 1 : plan.plan.stages > 0 ? plan.plan.stages : 3;
  for (int o = 0; o < c.operand_count; ++o) {
    std::int64_t bytes = c.operands[o].bytes;
    for (int d = 0; d < c.dim_count; ++d)
      if (c.operands[o].strides[d] != 0 && c.dims[d].kind != APL_DIM_BATCH) bytes *= extent_of(plan, d);
    parts.push_back({plan.operands[static_cast<std::size_t>(o)], bytes * stages, stages});
    rest -= bytes * stages;
  }
  if (rest <= 0) return parts;
  if (!plan.cost.has_mainloop) {
    parts.push_back({"padding of rows", rest, 1});
    return parts;
  }
  apl_mn_dim mn[2] = {};
  std::int64_t results = 0;
  if (apl_plan_mainloop(&c, &plan.plan, device.warp, device.matrix_units, &mn[0], &mn[1]) != 0 && mn[1].vector > 1 &&
      apl_matrix_rows(&mn[0], &mn[1]) < 0)
    results = std::min(rest, std::int64_t{plan.cost.threads} * mn[1].each * c.result_bytes);
  if (rest > results) parts.push_back({"tables of row offsets", rest - results, 1});
  if (results > 0) parts.push_back({"results before they are written", results, 1});
  return parts;
}

std::string shared_map(const std::vector<SharedPart>& parts, const apl_device& device, int blocks) {
  std::int64_t used = 0;
  for (const SharedPart& part : parts) used += part.bytes;
  if (used == 0) return {};
  constexpr double kWidth = 680, kHeight = 44, kTop = 20, kLine = 22;
  const double scale = kWidth / static_cast<double>(used);
  const double legend = kTop + kHeight + 40, below = legend + kLine * static_cast<double>(parts.size()) + 26;
  std::string svg = fmt::format(
      "<svg role=img aria-label=\"shared memory of a block\" viewBox=\"0 0 {:.0f} {:.0f}\" width={:.0f}>\n"
      "<title>Shared memory of a block: {} of {}</title>\n",
      kWidth + 60, below + 44, kWidth + 60, bytes_text(used), bytes_text(device.block_shared));
  std::int64_t at = 0;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const SharedPart& part = parts[k];
    const std::int64_t step = part.bytes / part.stages;
    for (int stage = 0; stage < part.stages; ++stage) {
      const double x = static_cast<double>(at + stage * step) * scale, width = static_cast<double>(step) * scale;
      svg += fmt::format("<rect class=\"part part{}\" x={:.1f} y={} width={:.1f} height={} />\n", k % 6, x, kTop, width,
                         kHeight);
      if (part.stages > 1 && width > 18)
        svg += fmt::format("<text x={:.1f} y={} text-anchor=middle>{}</text>\n", x + width / 2, kTop + 27, stage + 1);
    }
    svg += fmt::format("<text class=small x={:.1f} y={}>{}</text>\n", static_cast<double>(at) * scale, kTop - 6,
                       k == 0 || static_cast<double>(part.bytes) * scale > 60 ? bytes_text(at) : "");
    const double y = legend + kLine * static_cast<double>(k);
    svg += fmt::format(
        "<rect class=\"part part{}\" x=0 y={:.0f} width=14 height=14 /><text x=22 y={:.0f}>{}: {}</text>\n", k % 6,
        y - 12, y, escaped(part.name),
        part.stages > 1 ? fmt::format("{}, {} stages of {}", bytes_text(part.bytes), part.stages, bytes_text(step))
                        : bytes_text(part.bytes));
    at += part.bytes;
  }
  svg += fmt::format("<text class=small x={:.1f} y={} text-anchor=end>{}</text>\n", kWidth, kTop + kHeight + 16,
                     bytes_text(used));
  // Below: what the blocks of a multiprocessor take of its memory.
  const double all = static_cast<double>(device.multiprocessor_shared);
  const double each = kWidth * static_cast<double>(used + device.reserved_shared) / all;
  svg += fmt::format("<rect class=matrix x=0 y={:.0f} width={} height=14 />\n", below, kWidth);
  for (int k = 0; k < blocks; ++k)
    svg += fmt::format("<rect class=block x={:.1f} y={:.0f} width={:.1f} height=14 />\n", k * each + 1, below,
                       std::max(1.0, each - 2));
  svg += fmt::format("<text x=0 y={:.0f}>{} block{} at a time in the {} of a multiprocessor</text>\n", below + 34,
                     blocks, blocks == 1 ? "" : "s", bytes_text(device.multiprocessor_shared));
  return svg + "</svg>\n";
}

}  // namespace aplc::report_page
