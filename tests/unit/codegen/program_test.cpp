#include "runtime/program/program.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/embed.h"
#include "tests/unit/codegen/kernels.h"

namespace {

using apl::HostValue;
using apl::Program;
using apl::ProgramOptions;
using apl::ScalarType;
using kernels::contains;
using kernels::take;

// A C file as generated for the backend: add(A: [n]f32, s: f32) = (A + s, n), check(A: [n]i32) halves even numbers.
std::string program_text(const std::string& kernel_text) {
  std::string text = R"(#include "context.h"
#include "scalar.h"
#include <stdio.h>

const struct apl_location apl_locations[] = {{0, 0, 0, ""}, {7, 3, 0, "element %lld is %lld, which is odd"}};

static int failed(int status) { return status != APL_SUCCESS; }

#ifdef APL_HAS_KERNELS
static int run_add(struct apl_context *ctx, float *A, float s, float *C, int64_t n) {
  void *args[] = {&A, &s, &C, &n};
  struct apl_launch launch = {"add", (n + 31) / 32, 32, 0, 4, args};
  return ctx->backend->launch(ctx, &launch);
}
static int run_check(struct apl_context *ctx, int32_t *A, int32_t *C, int64_t n) {
  void *args[] = {&A, &C, &n, &ctx->failure};
  struct apl_launch launch = {"checked", (n + 31) / 32, 32, 0, 4, args};
  return ctx->backend->launch(ctx, &launch);
}
#else
static int run_add(struct apl_context *ctx, float *A, float s, float *C, int64_t n) {
  (void)ctx;
  for (int64_t i = 0; i < n; ++i) C[i] = A[i] + s;
  return APL_SUCCESS;
}
static int run_check(struct apl_context *ctx, int32_t *A, int32_t *C, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (A[i] % 2 != 0) apl_fail(ctx->failure, APL_ASSERT, 1, i, A[i], 0, 0);
    else C[i] = apl_div_i32(A[i], 2);
  }
  return APL_SUCCESS;
}
#endif

int apl_entry_add(struct apl_context *ctx, const struct apl_value *inputs, struct apl_value *outputs) {
  int64_t n = inputs[0].shape[0];
  if (n > 1000000) {
    snprintf(ctx->error, sizeof ctx->error, "%lld elements are too many", (long long)n);
    return APL_PROGRAM_ERROR;
  }
  void *C = 0, *scratch = 0;
  int status = ctx->backend->allocate(ctx, n * 4, "C", &C);
  if (failed(status)) return status;
  status = ctx->backend->allocate(ctx, n * 4, "scratch", &scratch);
  if (failed(status)) return status;
  status = run_add(ctx, inputs[0].data, inputs[1].scalar.f32, scratch, n);
  if (failed(status)) return status;
  status = ctx->backend->copy(ctx, C, scratch, n * 4);
  if (failed(status)) return status;
  status = ctx->backend->synchronise(ctx);
  if (failed(status)) return status;
  ctx->backend->release(ctx, scratch);
  outputs[0].type = APL_F32, outputs[0].rank = 1, outputs[0].shape[0] = n, outputs[0].data = C;
  outputs[1].type = APL_I64, outputs[1].rank = 0, outputs[1].scalar.i64 = n;
  return APL_SUCCESS;
}

int apl_entry_check(struct apl_context *ctx, const struct apl_value *inputs, struct apl_value *outputs) {
  int64_t n = inputs[0].shape[0];
  void *C = 0;
  int status = ctx->backend->allocate(ctx, n * 4, "C", &C);
  if (failed(status)) return status;
  status = run_check(ctx, inputs[0].data, C, n);
  if (failed(status)) return status;
  status = ctx->backend->synchronise(ctx);
  if (failed(status)) return status;
  outputs[0].type = APL_I32, outputs[0].rank = 1, outputs[0].shape[0] = n, outputs[0].data = C;
  return APL_SUCCESS;
}

int apl_entry_greedy(struct apl_context *ctx, const struct apl_value *inputs, struct apl_value *outputs) {
  void *C = 0;
  (void)outputs;
  return ctx->backend->allocate(ctx, inputs[0].scalar.i64, "everything", &C);
}

int apl_entry_twice(struct apl_context *ctx, const struct apl_value *inputs, struct apl_value *outputs) {
  (void)outputs;
  int status = ctx->backend->release(ctx, inputs[0].data);
  return failed(status) ? status : ctx->backend->release(ctx, inputs[0].data);
}
)";
  if (kernel_text.empty()) return text;
  std::string literal;
  for (char c : kernel_text) {
    if (c == '\n')
      literal += "\\n\"\n\"";
    else if (c == '"' || c == '\\')
      literal += std::string("\\") + c;
    else
      literal += c;
  }
  return "#define APL_HAS_KERNELS\n" + text + "\nconst char apl_kernel_text[] =\n\"" + literal + "\";\n";
}

const std::string kKernelText = kernels::kChecked + R"(
APL_KERNEL(32) void add(apl_in<float> A, float s, apl_out<float> C, int64_t n) {
  const int64_t i = apl_block() * 32 + apl_thread();
  if (i < n) C(i) = A(i) + s;
}
APL_EXPORT(add)
)";

Program load(const std::string& backend, ProgramOptions options = {}) {
  options.backend = backend;
  return take(Program::load(program_text(backend == "c" ? "" : kKernelText), options));
}

std::size_t folders_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

// A folder of the test's own, so that what is left behind can be counted.
class Folder {
 public:
  Folder() : folder_(take(apl::TemporaryFolder::make("/tmp"))) {}
  std::string path() const { return folder_.path(); }

 private:
  apl::TemporaryFolder folder_;
};

HostValue floats(const std::vector<float>& elements) {
  const auto n = static_cast<std::int64_t>(elements.size());
  return HostValue::array(ScalarType::f32, {n}, elements);
}

}  // namespace

TEST_CASE("program: an entry gives its results on every backend of this machine") {
  for (const std::string backend : {"c", "emulate"}) {
    CAPTURE(backend);
    Program program = load(backend);
    auto results =
        take(program.call("add", {floats({1, 2, 3}), HostValue::scalar(apl::Scalar::floating(ScalarType::f32, 0.5))}));
    REQUIRE(results.size() == 2);
    CHECK(results[0].to_text() == "[1.5f32, 2.5f32, 3.5f32]");
    CHECK(results[1].to_text() == "3i64");
    CHECK(program.last_microseconds() > 0);
    CHECK(program.peak_bytes() == 36);
    results = take(program.call("add", {floats({}), HostValue::scalar(apl::Scalar::floating(ScalarType::f32, 0.5))}));
    CHECK(results[0].to_text() == "empty([0]f32)");
    CHECK(program.kernels().empty());
  }
}

TEST_CASE("program: a failed check is the program's error with its place and values") {
  for (const std::string backend : {"c", "emulate"}) {
    CAPTURE(backend);
    Program program = load(backend);
    std::vector<std::int32_t> numbers(100, 2);
    numbers[70] = 13;
    auto failed = program.call("check", {HostValue::array(ScalarType::i32, {100}, numbers)});
    REQUIRE_FALSE(failed);
    CHECK(failed.error().code == apl::Code::run_assertion);
    CHECK(failed.error().message == "element 70 is 13, which is odd");
    CHECK(failed.error().location.line == 7);
    CHECK(failed.error().location.column == 3);
    // The next call is not burdened by it.
    auto results =
        take(program.call("check", {HostValue::array(ScalarType::i32, {2}, std::vector<std::int32_t>{4, -6})}));
    CHECK(results[0].to_text() == "[2i32, -3i32]");
  }
}

TEST_CASE("program: errors of the host code and of the backend come back with their codes") {
  for (const std::string backend : {"c", "emulate"}) {
    CAPTURE(backend);
    Program program = load(backend);
    auto s = HostValue::scalar(apl::Scalar::floating(ScalarType::f32, 0));
    auto many = program.call("add", {floats(std::vector<float>(1000001)), s});
    REQUIRE_FALSE(many);
    CHECK(many.error().code == apl::Code::run_shape_mismatch);
    CHECK(many.error().message == "1000001 elements are too many");

    auto greedy = program.call("greedy", {HostValue::scalar(apl::Scalar::integer(ScalarType::i64, INT64_MAX / 2))});
    REQUIRE_FALSE(greedy);
    CHECK(greedy.error().code == apl::Code::run_out_of_memory);
    CHECK(contains(greedy.error().message, "4611686018427387903 bytes for everything"));

    auto twice = program.call("twice", {floats({1})});
    REQUIRE_FALSE(twice);
    CHECK(twice.error().code == apl::Code::bug_internal);

    auto none = program.call("nothing", {});
    REQUIRE_FALSE(none);
    CHECK(none.error().code == apl::Code::command_bad_argument);
    CHECK(program.call("add", {floats({1}), s}));
  }
}

TEST_CASE("program: a benchmark gives as many times as asked for") {
  Program program = load("c");
  auto times =
      take(program.benchmark("add", {floats({1, 2}), HostValue::scalar(apl::Scalar::floating(ScalarType::f32, 1))}, 5));
  REQUIRE(times.size() == 5);
  for (double time : times) CHECK(time > 0);
}

TEST_CASE("program: a text that does not compile brings the compiler's words") {
  auto bad = Program::load("#include \"context.h\"\nint f(void) { return nonsense; }\n");
  REQUIRE_FALSE(bad);
  CHECK(bad.error().code == apl::Code::bug_internal);
  CHECK(contains(bad.error().message, "nonsense"));

  ProgramOptions options;
  options.backend = "abacus";
  auto unknown = Program::load("", options);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == apl::Code::command_bad_argument);

  options.backend = "c";
  options.c_compiler = "no-such-compiler";
  auto missing = Program::load("", options);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == apl::Code::unsupported_backend);
}

TEST_CASE("program: kernels may be given apart from the host text") {
  ProgramOptions options;
  options.backend = "emulate";
  Program program = take(Program::load(program_text(kKernelText),
                                       kernels::replace(kKernelText, "if (i < n) C(i) = A", "C(i) = A"), options));
  auto failed = program.call("add", {floats({1, 2, 3}), HostValue::scalar(apl::Scalar::floating(ScalarType::f32, 1))});
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == apl::Code::run_index_out_of_bounds);
  CHECK(contains(failed.error().message, "kernel add: thread "));
  CHECK(contains(failed.error().message, "`an argument`, which has 3"));
}

TEST_CASE("program: temporary files go, kept files stay, compiled texts are found again") {
  Folder temporary, kept;
  ProgramOptions options;
  options.temporary_folder = temporary.path();
  options.keep_folder = kept.path();
  options.cache = std::make_shared<apl::ObjectCache>();
  std::vector<std::string> log;
  options.log = [&](std::string line) { log.push_back(std::move(line)); };
  const std::vector<HostValue> inputs{floats({1}), HostValue::scalar(apl::Scalar::floating(ScalarType::f32, 1))};
  {
    Program first = load("emulate", options), second = load("emulate", options);
    CHECK(folders_in(temporary.path()) == 0);
    CHECK(take(first.call("add", inputs)) == take(second.call("add", inputs)));
  }
  for (const char* name :
       {"program.c", "context.h", "scalar.h", "threads.h", "program.so", "kernels.cpp", "device.h", "kernels.so"})
    CHECK_MESSAGE(std::filesystem::exists(kept.path() + "/" + name), name);
  REQUIRE(log.size() == 4);
  CHECK(contains(log[0], "cc -std=c11"));
  CHECK(contains(log[1], "c++ -std=c++17"));
  CHECK(log[2] == "program.so: compiled before");
  CHECK(log[3] == "kernels.so: compiled before");
}

TEST_CASE("program: two programs run in two threads") {
  Program programs[] = {load("emulate"), load("emulate")};
  std::vector<HostValue> results[2];
  std::vector<std::thread> threads;
  for (int k = 0; k < 2; ++k)
    threads.emplace_back([&, k] {
      for (int n = 0; n < 50; ++n) {
        auto got = programs[k].call("add", {floats(std::vector<float>(100, static_cast<float>(k))),
                                            HostValue::scalar(apl::Scalar::floating(ScalarType::f32, 1))});
        if (got) results[k] = std::move(*got);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (int k = 0; k < 2; ++k) {
    REQUIRE(results[k].size() == 2);
    CHECK(results[k][0] == floats(std::vector<float>(100, static_cast<float>(k + 1))));
  }
}

TEST_CASE("program: the headers in the library are those of the tree") {
  auto text_of = [](const std::string& name) {
    std::ifstream in(std::string(APL_SOURCE_DIR) + "/" + name);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  // A part stands where its whole includes it.
  const auto with_parts = [&](const std::string& name, const std::vector<std::string>& parts) {
    std::string text = text_of(name);
    for (const std::string& part : parts) {
      const std::string include = "#include \"" + part + "\"\n";
      REQUIRE(text.find(include) != std::string::npos);
      for (std::size_t at = 0; (at = text.find(include, at)) != std::string::npos;)
        text.replace(at, include.size(), text_of(part));
    }
    return text;
  };
  CHECK(apl::context_header_text() ==
        with_parts("runtime/backends/context.h",
                   {"machine/tiles/plan.h", "machine/tiles/device_fields.def", "ir/scalar_types.def"}));
  CHECK(apl::scalar_header_text() == text_of("runtime/backends/scalar.h"));
  CHECK(apl::device_header_text() ==
        with_parts("runtime/device/device.h",
                   {"runtime/device/emulated.h", "runtime/device/hip.h", "runtime/device/cuda.h",
                    "runtime/device/gpu.h", "runtime/device/numbers.h", "runtime/device/warp.h",
                    "runtime/device/matrix.h", "runtime/device/fragments.h"}));
}
