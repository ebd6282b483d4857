// Tiles of a product with a constant matrix on a GPU: kernels are compiled by several processes and timed by the
// device's clock, without the program around them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "aplc/kernel_compilers.h"
#include "codegen/codegen.h"
#include "codegen/sparse/constant.h"
#include "machine/target/records.h"
#include "runtime/backends/backend.h"

namespace aplc {

// L's M1 and N1, and the pieces of a section.
struct Tile {
  std::int64_t rows = 1, columns = 1, pieces = 1;
  auto operator<=>(const Tile&) const = default;
  std::string text() const;
};

// What a proxy has of L's reductions; no number of clusters is three for each block that a multiprocessor holds.
struct Reductions {
  bool kernels = true, clusters = true, loops = true, shares = true;
  std::int64_t cluster_count = 0;
};

class DeviceTiles {
 public:
  struct Product {
    const apl::KnownMatrix* known = nullptr;
    std::int64_t width = 1;
    const apl::HostValue* b = nullptr;  // may be null
    Reductions reductions;
    int jobs = 1;
  };

  // Starts the compilers first, so that they are copies of a process that has no driver.
  static apl::Result<std::unique_ptr<DeviceTiles>> open(Product product);

  const apl_device& device() const { return device_; }

  struct Timed {
    double microseconds = 0;
    std::int64_t blocks = 0, threads = 0, shared_bytes = 0, registers = 0, machine_code = 0;  // the last in bytes
    double compile_seconds = 0;
  };
  // Compiles all of them, then times one after the other.
  std::vector<apl::Result<Timed>> measure(const std::vector<Tile>& tiles, bool are_proxies);

 private:
  struct Text {
    std::string name, text, code;
    std::int64_t sections = 0;
    double seconds = 0;
    apl::Status status = apl::Unit{};
  };

  explicit DeviceTiles(Product product) : product_(std::move(product)) {}
  apl::Status allocate();
  std::string key(const Tile& tile, bool is_proxy) const;
  apl::lower::ConstantProduct constant_product(const Tile& tile, bool is_proxy) const;
  void write(Text& text, const Tile& tile, bool is_proxy) const;
  apl::Result<Timed> time(const Text& text, const Tile& tile, bool is_proxy);
  std::int64_t element_bytes() const;

  const Product product_;
  std::unique_ptr<KernelCompilers> compilers_;
  std::unique_ptr<apl::Backend> backend_;
  std::string architecture_;
  apl_device device_{};
  void* b_ = nullptr;
  void* c_ = nullptr;
  std::map<std::string, std::int64_t> columns_of_;  // the largest N1 of a proxy's tiles, by its key
  std::map<std::string, std::int64_t> active_of_;   // the most blocks that a multiprocessor holds of one of them
};

// Bytes of code that a multiprocessor fetches for one product, about: of all blocks that it has.
double code_bytes(const apl::HostCsr& matrix, const Tile& tile, std::int64_t width, const apl_device& device);

}  // namespace aplc
