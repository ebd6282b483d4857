// Which kernels the rules choose, through a context that only notes what it is asked for; and NVRTC's word on them.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "runtime/backends/cuda.h"
#include "runtime/backends/toolchain.h"
#include "runtime/embed.h"
#include "runtime/sparse/device_kernel.h"
#include "runtime/sparse/device_operand.h"
#include "tests/unit/skip.h"
#include "tests/unit/sparse/matrices.h"
#include "tests/unit/sparse/tiles.h"

namespace {

namespace sparse_test = apl::sparse_test;
using apl::sparse_test::h200;

// Gives addresses that are never looked at.
struct Notes {
  std::map<std::string, std::string> texts;
  std::vector<std::string> launches;
  std::int64_t blocks = 0, shared_bytes = 0;
  int threads = 0;
  std::uintptr_t next = 4096;
  apl_backend backend{};
  apl_context context{};

  Notes() {
    backend.allocate = [](apl_context* ctx, std::int64_t bytes, const char*, void** data) {
      auto& next = of(ctx).next;
      *data = reinterpret_cast<void*>(next);
      next += static_cast<std::uintptr_t>(bytes) / 256 * 256 + 256;
      return 0;
    };
    backend.release = [](apl_context*, void*) { return 0; };
    backend.upload = [](apl_context*, void*, const void*, std::int64_t) { return 0; };
    backend.load = [](apl_context* ctx, const char* name, const char* text) {
      of(ctx).texts.emplace(name, text);
      return 0;
    };
    backend.launch = [](apl_context* ctx, const apl_launch* launch) {
      of(ctx).launches.emplace_back(launch->kernel);
      of(ctx).blocks = launch->blocks;
      of(ctx).shared_bytes = launch->shared_bytes;
      of(ctx).threads = launch->threads;
      return 0;
    };
    context.backend = &backend;
    context.state = this;
  }
  const apl_device* device = &h200();
  static Notes& of(apl_context* ctx) { return *static_cast<Notes*>(ctx->state); }

  std::string spmm(const apl::sparse::Csr& m, std::int32_t type, std::int64_t width, std::uintptr_t address = 1 << 20,
                   const apl_sparse_options* options = nullptr) {
    const apl_sparse_csr csr = apl::csr_view(m);
    apl_sparse_packed* packed = nullptr;
    REQUIRE(apl_sparse_packed_make(&csr, nullptr, device, type, width, options, &packed) == APL_SPARSE_FINE);
    apl_sparse_operand a{};
    REQUIRE(apl_sparse_upload(&context, packed, type, &a) == APL_SUCCESS);
    apl_sparse_packed_free(packed);
    auto* data = reinterpret_cast<void*>(address);
    REQUIRE(apl_sparse_spmm(&context, &a, {data, width}, {data, width}, width, options, nullptr) == APL_SUCCESS);
    REQUIRE(apl_sparse_release(&context, &a) == APL_SUCCESS);
    return launches.back();
  }
  std::string sddmm(const apl::sparse::Csr& m, std::int32_t type, std::int64_t depth,
                    const apl_sparse_options* options = nullptr) {
    const apl_sparse_csr csr = apl::csr_view(m);
    apl_sparse_sddmm_packed* samples = nullptr;
    REQUIRE(apl_sparse_sddmm_packed_make(&csr, nullptr, device, type, depth, options, &samples) == APL_SPARSE_FINE);
    apl_sparse_sddmm_operand a{};
    REQUIRE(apl_sparse_upload_sddmm(&context, samples, type, &a) == APL_SUCCESS);
    apl_sparse_sddmm_packed_free(samples);
    auto* data = reinterpret_cast<void*>(1 << 20);
    REQUIRE(apl_sparse_sddmm(&context, &a, data, {data, depth}, {data, depth}, depth, data, nullptr) == APL_SUCCESS);
    REQUIRE(apl_sparse_release_sddmm(&context, &a) == APL_SUCCESS);
    return launches.back();
  }
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// `rows` rows of `length` non-zeros each; `together` rows have the same columns.
apl::sparse::Csr even(std::int64_t rows, std::int64_t columns, std::int64_t length, std::int64_t together) {
  apl::sparse::Csr m{rows, columns, {0}, {}, {}};
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t k = 0; k < length; ++k)
      m.column.push_back(static_cast<std::int32_t>((i / together * 7919 + k * (columns / length)) % columns));
    std::sort(m.column.end() - length, m.column.end());
    m.row_start.push_back(m.nonzeros());
  }
  return m;
}

// All texts as one, for one call of the compiler: each in a namespace of its own, after what they share.
std::string one_text(const std::map<std::string, std::string>& texts) {
  const std::string &any = texts.begin()->second, head = any.substr(0, any.find("device.h\"\n") + 10);
  std::string all = head + apl_sparse_kernel_part(APL_SPARSE_TEXT_WARP);
  int number = 0;
  for (const auto& [name, text] : texts) {
    REQUIRE(text.starts_with(head));
    const std::string own = text.substr(head.size());
    for (std::size_t at = 0; (at = own.find("#define APL_SPARSE_", at)) != std::string::npos; at += 8)
      all += "#undef" + own.substr(at + 7, own.find_first_of(" (", at + 8) - at - 7) + "\n";
    all += "namespace kernel" + std::to_string(number++) + " {\n" + own + "\n}\n";
  }
  return all;
}

// Every type at each access width, through every template: what programs can ask for, but for the numbers that only
// change how often something is repeated.
void launch_all(Notes& notes) {
  const apl::sparse::Csr apart = even(6000, 6000, 6, 1), shared = even(2048, 4096, 64, 16);
  for (const std::int32_t type : {APL_I8, APL_I16, APL_I32, APL_U64, APL_F16, APL_F32, APL_F64})
    for (const std::int64_t width : {1, 2, 4, 8, 16}) {
      notes.spmm(apart, type, width);
      notes.sddmm(apart, type, width);
    }
  for (const std::int64_t width : {33, 34, 36, 100, 128}) {
    notes.spmm(shared, APL_F16, width);
    notes.sddmm(shared, APL_F16, width);
  }
  for (const std::int32_t type : {APL_I8, APL_I32, APL_F32, APL_F64})
    for (const std::int64_t width : {33, 66, 128}) notes.spmm(shared, type, width);
  notes.sddmm(shared, APL_F16, 256);
  notes.spmm(even(1500, 300, 60, 1), APL_F16, 128);
  notes.spmm(even(1500, 300, 60, 1), APL_F64, 128);
}

// Every set of numbers that the model chooses among, with accesses of 16 bytes, which take the most registers.
void launch_shapes(Notes& notes, std::int32_t type) {
  const auto spmm = [&](const apl::sparse::Csr& m, std::int64_t width, const apl_sparse_options& options) {
    notes.spmm(m, type, width, 1 << 20, &options);
  };
  const apl::sparse::Csr apart = even(300, 300, 6, 1);
  for (const int piece : {-1, 4})
    for (const int lanes : {4, 8, 16})
      for (const int ahead : {-1, 1})
        if (ahead < 0 || lanes == 16)
          spmm(apart, 128, {.window = -1, .piece = piece, .lanes = lanes, .ahead = ahead, .staged = -1});
  spmm(even(300, 60, 6, 1), 128, {.window = -1, .piece = -1, .staged = 1});
  // Windows alone, and beside a row that is in none of them.
  const apl::sparse::Csr shared = even(256, 512, 48, 16);
  apl::sparse::Csr mixed = shared;
  for (std::int32_t j = 0; j < 100; ++j) mixed.column.push_back(j);
  mixed.row_start.push_back(mixed.nonzeros());
  ++mixed.rows;
  for (const apl::sparse::Csr* m : std::vector<const apl::sparse::Csr*>{&shared, &mixed})
    for (int window = 8; window <= apl_sparse_highest_window(notes.device, type); window *= 2)
      for (const int split : {1, 2, 4, 8}) {
        spmm(*m, 128, {.window = window, .apart = 64, .split = split});
        if (apl_sparse_is_half(type) != 0) spmm(*m, 32, {.window = window, .apart = 64, .split = split});
        if (window == 32 && split <= 2) spmm(shared, 128, {.window = 32, .split = split, .resident = 4});
      }
  for (const std::int64_t depth : {32, 64, 96, 128, 256})
    for (const int window : {-1, 8}) {
      const apl_sparse_options options{.window = window};
      notes.sddmm(shared, type, depth, &options);
    }
}

}  // namespace

TEST_CASE("sparse kernels: kernels are chosen by shared columns, type, width and alignment") {
  Notes notes;
  // Rows that share no columns are gathered, 16 bytes a lane.
  const apl::sparse::Csr apart = even(6000, 6000, 6, 1);
  CHECK(has(notes.spmm(apart, APL_F16, 128), "apl_spmm_f16_16x8_8_0x0"));
  CHECK(has(notes.spmm(apart, APL_F16, 32), "apl_spmm_f16_4x8_"));
  CHECK(has(notes.spmm(apart, APL_F16, 36), "x4_8_0x0"));
  CHECK(has(notes.spmm(apart, APL_F16, 33), "x1_8_0x0"));
  CHECK(has(notes.spmm(apart, APL_F16, 128, (1 << 20) + 4), "x2_"));  // an address that allows accesses of 4 bytes
  CHECK(has(notes.spmm(apart, APL_F32, 128), "apl_spmm_f32_16x4_"));
  CHECK(has(notes.spmm(apart, APL_I8, 1), "apl_spmm_i8_1x1_"));
  CHECK(has(notes.sddmm(apart, APL_F16, 128), "_16x8"));
  // Rows that do share them come in windows, if they are long, on the tensor cores, if they are f16.
  const apl::sparse::Csr shared = even(2048, 4096, 64, 16);
  CHECK(has(notes.spmm(shared, APL_F16, 128), "_2x8_"));
  // In other types they come in windows without tensor cores.
  CHECK(has(notes.spmm(shared, APL_F32, 128), "_4_p"));
  CHECK(has(notes.spmm(shared, APL_F64, 128), "_4_p"));
  CHECK(has(notes.spmm(apart, APL_F32, 128), "_0x0_"));
  CHECK(has(notes.sddmm(shared, APL_F16, 128), "apl_sddmm_f16_4_4_"));
  CHECK(has(notes.sddmm(shared, APL_F32, 128), "apl_sddmm_f32_8_0_"));
  // Few columns, gathered often.
  CHECK(has(notes.spmm(even(1500, 300, 60, 1), APL_F16, 128), "_staged"));
}

TEST_CASE("sparse kernels: the estimates say dense for pruned weights and small matrices, not for graphs") {
  const auto says_dense = [](const apl::sparse::Csr& m, std::int64_t width) {
    const apl_sparse_csr csr = apl::csr_view(m);
    apl_sparse_packed* packed = nullptr;
    REQUIRE(apl_sparse_packed_make(&csr, nullptr, &h200(), APL_F16, width, nullptr, &packed) == APL_SPARSE_FINE);
    apl_sparse_sddmm_packed* samples = nullptr;
    REQUIRE(apl_sparse_sddmm_packed_make(&csr, nullptr, &h200(), APL_F16, width, nullptr, &samples) == APL_SPARSE_FINE);
    const double product = apl_sparse_microseconds(packed, APL_F16, width),
                 sampled = apl_sparse_sddmm_microseconds(samples, APL_F16, width);
    apl_sparse_packed_free(packed);
    apl_sparse_sddmm_packed_free(samples);
    CHECK(product > 1);
    CHECK(sampled > 1);
    return std::pair{
        apl_sparse_prefers_dense(&h200(), product,
                                 apl_sparse_dense_microseconds(&h200(), APL_F16, m.rows, m.columns, width)) != 0,
        apl_sparse_prefers_dense(&h200(), sampled,
                                 apl_sparse_dense_microseconds(&h200(), APL_F16, m.rows, width, m.columns)) != 0};
  };
  // 5 to 10 % of a layer of 768 by 768, by gathered rows and windows.
  CHECK(says_dense(even(768, 768, 38, 1), 128) == std::pair{true, true});
  CHECK(says_dense(even(3072, 768, 38, 1), 128) == std::pair{true, true});
  CHECK(says_dense(even(768, 768, 96, 16), 256) == std::pair{true, true});
  // A graph, small and larger.
  CHECK(says_dense(even(2704, 2704, 4, 1), 128) == std::pair{false, false});
  CHECK(says_dense(even(20000, 20000, 5, 1), 128) == std::pair{false, false});
}

TEST_CASE("sparse kernels: a few very long rows are cut, in every type, and stay out of windows; others are not") {
  const auto packed_of = [](const apl::sparse::Csr& m, std::int32_t type) {
    const apl_sparse_csr csr = apl::csr_view(m);
    apl_sparse_packed* made = nullptr;
    REQUIRE(apl_sparse_packed_make(&csr, nullptr, &h200(), type, 128, nullptr, &made) == APL_SPARSE_FINE);
    const apl_sparse_packed packed = *made;  // its numbers
    apl_sparse_packed_free(made);
    return packed;
  };
  // Eight rows of 20,000 non-zeros in a graph of short rows, and in one whose rows share their columns.
  for (const std::int64_t together : {1, 16}) {
    apl::sparse::Csr m = even(20000, 20000, together == 1 ? 5 : 64, together);
    apl::sparse::Csr with{m.rows, m.columns, {0}, {}, {}};
    for (std::int64_t i = 0; i < m.rows; ++i) {
      if (i % 2500 == 7) {
        for (std::int32_t j = 0; j < m.columns; ++j) with.column.push_back(j);
      } else {
        with.column.insert(with.column.end(), m.row(i).begin(), m.row(i).end());
      }
      with.row_start.push_back(with.nonzeros());
    }
    for (const std::int32_t type : {APL_F16, APL_BF16, APL_F32, APL_F64}) {
      CAPTURE(together);
      CAPTURE(type);
      const apl_sparse_packed cut = packed_of(with, type), whole = packed_of(m, type);
      CHECK(cut.cuts == 8);
      CHECK(cut.pieces >= 8 * 5);
      CHECK(whole.cuts == 0);
      CHECK((cut.windows > 0) == (whole.windows > 0));
      CHECK(cut.longest_window == whole.longest_window);
    }
  }
}

TEST_CASE("sparse kernels: nothing runs for nothing") {
  Notes notes;
  notes.launches.emplace_back("none");
  CHECK(notes.spmm(even(0, 10, 1, 1), APL_F16, 8) == "none");
  CHECK(notes.spmm(even(10, 10, 1, 1), APL_F16, 0) == "none");
  CHECK(notes.sddmm(even(0, 10, 1, 1), APL_F16, 8) == "none");
}

TEST_CASE("sparse kernels: NVRTC compiles every type at every width, without a device" * doctest::test_suite("nvrtc")) {
  Notes notes;
  launch_all(notes);
  CHECK(has(one_text(notes.texts), "namespace"));
  const auto cubin = apl::compile_with_nvrtc(one_text(notes.texts), "sm_90");
  if (!cubin && cubin.error().code == apl::Code::unsupported_backend) {
    return tests::skip(cubin.error().message);
  }
  CHECK_MESSAGE(cubin, cubin.error().message);
}

TEST_CASE("sparse kernels: none spills registers, whatever the model chooses" * doctest::test_suite("nvcc")) {
  Notes notes;
  for (const std::int32_t type : {APL_F16, APL_F32, APL_F64}) launch_shapes(notes, type);
  CHECK(notes.texts.size() > 80);
  const std::string text = one_text(notes.texts);
  if (auto found = apl::run_tool({"nvcc", "--version"}); !found) return tests::skip(found.error().message);
  auto folder = apl::TemporaryFolder::make("/tmp");
  REQUIRE(folder);
  const std::string file = folder->path() + "/shapes.cu";
  std::ofstream(file) << text;
  std::ofstream(folder->path() + "/device.h") << apl::device_header_text();
  const auto compiled =
      apl::run_tool({"nvcc", "-std=c++17", "-arch=sm_90", "-Xptxas", "--warn-on-spills,--warning-as-error", "-cubin",
                     "-I" + folder->path(), "-o", folder->path() + "/shapes.cubin", file});
  CHECK_MESSAGE(compiled, compiled.error().message);
}

TEST_CASE("sparse kernels: clang's parser takes every type at every width as HIP, for waves of 64" *
          doctest::test_suite("clang")) {
  const apl_device mi300 = *apl::find_device("mi300");
  Notes notes;
  notes.device = &mi300;
  launch_all(notes);
  const std::string text = one_text(notes.texts);
  CHECK(text.starts_with("#define APL_WARP 64\n"));
  if (!apl::run_tool({"clang", "--version"})) {
    return tests::skip("there is no clang");
  }
  const std::string source(APL_SOURCE_DIR);
  const auto file = std::filesystem::temp_directory_path() / fmt::format("apl_sparse_kernels_{}.hip", getpid());
  std::ofstream(file) << text;
  const auto said =
      apl::run_tool({"clang", "-x", "hip", "--cuda-device-only", "--offload-arch=gfx90a", "-nogpulib", "-nogpuinc",
                     "-include", source + "/tests/hip/builtins.h", "-std=c++17", "-fsyntax-only", "-w", "-I" + source,
                     "-I" + source + "/runtime/device", file.string()});
  std::filesystem::remove(file);
  CHECK_MESSAGE(said, said.error().message);
}
