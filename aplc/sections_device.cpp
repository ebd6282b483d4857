#include "aplc/sections_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "aplc/driver.h"
#include "codegen/sparse/occupancy.h"
#include "passes/sparse/parallel.h"
#include "runtime/backends/cuda.h"

namespace aplc {
namespace {

// The blocks of a tile's launch.
std::int64_t blocks_of(std::int64_t sections, const Tile& tile, std::int64_t width) {
  return sections * ((width + tile.columns - 1) / tile.columns);
}

}  // namespace

std::string Tile::text() const { return fmt::format("{} {} {}", rows, columns, pieces); }

double code_bytes(const apl::HostCsr& matrix, const Tile& tile, std::int64_t width, const apl_device& device) {
  const apl::Sections sections = apl::make_sections(matrix, tile.rows, tile.pieces, apl::kMostTerms);
  if (sections.sections.empty()) return 0;
  double instructions = 0;
  for (const apl::Section& section : sections.sections) {
    // A row's sum is stored by each piece; a function has some instructions around that.
    constexpr double kAround = 8;
    const auto pieces = static_cast<double>(section.pieces.size());
    instructions += static_cast<double>(section.loads() + section.terms()) +
                    pieces * (static_cast<double>(section.rows.size()) + kAround);
  }
  constexpr double kInstructionBytes = 16;
  const auto count = static_cast<double>(sections.sections.size());
  const std::int64_t blocks = blocks_of(std::ssize(sections.sections), tile, width);
  const std::int64_t multiprocessors = std::max(1, device.multiprocessors);
  const auto held = static_cast<double>((blocks + multiprocessors - 1) / multiprocessors);
  return kInstructionBytes * instructions / count * held;
}

apl::Result<std::unique_ptr<DeviceTiles>> DeviceTiles::open(Product product) {
  std::unique_ptr<DeviceTiles> tiles(new DeviceTiles(std::move(product)));
  auto compilers = KernelCompilers::start(tiles->product_.jobs);
  if (!compilers) return std::move(compilers).error();
  tiles->compilers_ = std::make_unique<KernelCompilers>(*std::move(compilers));
  auto backend = apl::make_cuda_backend({});
  if (!backend) return std::move(backend).error();
  tiles->backend_ = *std::move(backend);
  auto architecture = tiles->backend_->architecture();
  if (!architecture) return std::move(architecture).error();
  tiles->architecture_ = *architecture;
  tiles->device_ = tiles->backend_->device();
  if (auto allocated = tiles->allocate(); !allocated) return std::move(allocated).error();
  return tiles;
}

std::int64_t DeviceTiles::element_bytes() const { return apl::byte_size(product_.known->matrix->values.type); }

apl::Status DeviceTiles::allocate() {
  const apl::HostCsr& matrix = *product_.known->matrix;
  const std::int64_t b_bytes = matrix.columns * product_.width * element_bytes();
  auto b = backend_->allocate(b_bytes, "B");
  if (!b) return std::move(b).error();
  b_ = *b;
  auto c = backend_->allocate(matrix.rows * product_.width * element_bytes(), "C");
  if (!c) return std::move(c).error();
  c_ = *c;
  std::vector<std::byte> zeros;
  const std::byte* data = nullptr;
  if (product_.b != nullptr && std::ssize(product_.b->data) == b_bytes) {
    data = product_.b->data.data();
  } else {
    zeros.resize(static_cast<std::size_t>(b_bytes));
    data = zeros.data();
  }
  return backend_->upload(b_, data, b_bytes);
}

// Tiles of the same key have the same text.
std::string DeviceTiles::key(const Tile& tile, bool is_proxy) const {
  if (is_proxy && product_.reductions.kernels) return fmt::format("proxy_{}_{}", tile.rows, tile.pieces);
  return fmt::format("{}_{}_{}_{}", is_proxy ? "proxy" : "constant", tile.rows, tile.columns, tile.pieces);
}

apl::lower::ConstantProduct DeviceTiles::constant_product(const Tile& tile, bool is_proxy) const {
  apl::lower::ConstantProduct product;
  product.name = "constant";
  product.matrix = &*product_.known->matrix;
  product.sections = {.key = product_.known->key, .rows = tile.rows, .columns = tile.columns, .pieces = tile.pieces};
  product.result = product_.known->matrix->values.type;
  product.b_row = product_.width;
  if (!is_proxy) return product;
  const Reductions& reductions = product_.reductions;
  apl::ProxyOptions options{.truncates = reductions.loops, .any_columns = reductions.kernels, .moves_rows = true};
  const std::string name = key(tile, true);
  if (reductions.clusters)
    options.clusters = reductions.cluster_count > 0 ? reductions.cluster_count : 3 * active_of_.at(name);
  if (reductions.kernels) product.sections.columns = columns_of_.at(name);
  product.proxy = options;
  return product;
}

void DeviceTiles::write(Text& text, const Tile& tile, bool is_proxy) const {
  const apl::lower::DeviceText written =
      apl::lower::print_constant_device(constant_product(tile, is_proxy), {}, {}, device_.warp);
  text.text = fmt::format("#define APL_CONSTANT_NAME {}\n#define APL_CONSTANT_B_ROW {}\n{}", text.name, product_.width,
                          written.text);
  text.sections = written.sections;
}

apl::Result<DeviceTiles::Timed> DeviceTiles::time(const Text& text, const Tile& tile, bool is_proxy) {
  const std::int64_t sum_bytes = apl::byte_size(apl::lower::constant_sum_type(product_.known->matrix->values.type));
  Timed timed;
  timed.blocks = blocks_of(text.sections, tile, product_.width);
  timed.threads = tile.columns * tile.pieces;
  timed.shared_bytes = tile.rows * tile.columns * tile.pieces * sum_bytes;
  timed.machine_code = std::ssize(text.code);
  timed.compile_seconds = text.seconds;
  std::int64_t c_row = product_.width, width = product_.width;
  int columns = static_cast<int>(tile.columns);
  void* args[] = {&b_, &c_, &c_row, &width, &columns};
  apl_launch launch{text.name.c_str(),
                    timed.blocks,
                    static_cast<std::int32_t>(timed.threads),
                    static_cast<std::int32_t>(timed.shared_bytes),
                    is_proxy && product_.reductions.kernels ? 5 : 4,
                    args};
  const auto registers = [&]() -> std::int64_t {
    for (const apl::KernelStats& kernel : backend_->kernels())
      if (kernel.name == text.name) return kernel.registers;
    return 0;
  };
  if (auto launched = backend_->launch(launch); !launched) return std::move(launched).error();
  timed.registers = registers();
  if (is_proxy && product_.reductions.shares) {
    apl::BlockNeeds needs{timed.blocks, timed.threads, apl::kCalledRegisters, timed.shared_bytes};
    const std::int64_t active = apl::active_blocks(needs, device_);
    needs.registers = timed.registers;
    timed.shared_bytes = apl::proxy_shared_bytes(needs, active, device_);
    launch.shared_bytes = static_cast<std::int32_t>(timed.shared_bytes);
  }
  if (auto begun = backend_->begin_launch_times(); !begun) return std::move(begun).error();
  auto launched = backend_->launch(launch);
  auto microseconds = backend_->end_launch_times();
  if (!launched) return std::move(launched).error();
  if (!microseconds) return std::move(microseconds).error();
  timed.microseconds = *microseconds;
  return timed;
}

std::vector<apl::Result<DeviceTiles::Timed>> DeviceTiles::measure(const std::vector<Tile>& tiles, bool are_proxies) {
  std::map<std::string, Text> texts;
  std::vector<std::pair<Text*, const Tile*>> first;
  for (const Tile& tile : tiles) {
    const std::string name = key(tile, are_proxies);
    columns_of_[name] = std::max(columns_of_[name], tile.columns);
    const std::int64_t sections = (product_.known->matrix->rows + tile.rows - 1) / tile.rows;
    const apl::BlockNeeds needs{blocks_of(sections, tile, product_.width), tile.columns * tile.pieces,
                                apl::kCalledRegisters, tile.rows * tile.columns * tile.pieces * element_bytes()};
    active_of_[name] = std::max(active_of_[name], apl::active_blocks(needs, device_));
    const auto [found, is_new] = texts.try_emplace(name);
    if (!is_new) continue;
    found->second.name = name;
    first.push_back({&found->second, &tile});
  }
  std::atomic<std::size_t> next = 0;
  apl::sparse::on_threads(std::min(compilers_->count(), static_cast<int>(first.size())), [&](int worker) {
    for (std::size_t k = next++; k < first.size(); k = next++) {
      Text& text = *first[k].first;
      write(text, *first[k].second, are_proxies);
      const auto start = std::chrono::steady_clock::now();
      auto code = compilers_->compile(worker, text.text, architecture_);
      text.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      text.text.clear();
      if (code) text.code = *std::move(code);
      if (!code) text.status = std::move(code).error();
    }
  });
  for (const auto& [text, tile] : first)
    if (text->status) text->status = backend_->load_code(text->code);
  std::vector<apl::Result<Timed>> times;
  for (const Tile& tile : tiles) {
    const Text& text = texts.at(key(tile, are_proxies));
    times.push_back(text.status ? time(text, tile, are_proxies) : apl::Result<Timed>(text.status.error()));
  }
  return times;
}

}  // namespace aplc
