// Several kernels of a contraction, a plan each, in a generated program, and the choice among them when it runs.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>

#include "codegen/contraction/plan_data.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "machine/target/records.h"
#include "runtime/program/bridge.h"
#include "runtime/program/program.h"
#include "tests/unit/codegen/emitted.h"

namespace {

using apl::HostValue;
using apl::Target;
using emitted::contains;
using emitted::example;
using emitted::take;

HostValue random_floats(std::vector<std::int64_t> shape, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::size_t count = 1;
  for (std::int64_t n : shape) count *= static_cast<std::size_t>(n);
  std::vector<float> data(count);
  for (float& x : data) x = static_cast<float>(random() % 9) - 4;
  return HostValue::array<float>(apl::ScalarType::f32, shape, data);
}

apl::Module memory_module(const std::string& name, const std::string& entry, apl::Machine machine, bool packed = true) {
  apl::Module module = example(name, entry);
  std::string text = apl::standard_pipeline(apl::Stage::memory, machine);
  const std::string option = "{packed}";
  if (const std::size_t at = text.find(option); !packed && at != std::string::npos) text.erase(at, option.size());
  auto pipeline = take(apl::parse_pipeline(text, apl::PassRegistry::builtin()));
  take(apl::run_pipeline(module, pipeline, {}));
  return module;
}

apl::Result<apl::ProgramText> generated(const apl::Module& module, Target target, int plans,
                                        std::map<std::string, std::int64_t> parameters = {}) {
  apl::CodegenOptions options;
  options.plans = plans;
  options.parameters = std::move(parameters);
  return apl::generate(module, target, options);
}

TEST_CASE("plan kernels: a program chooses among them by sizes, and computes the same with each") {
  // Two entries, with arrays of one name.
  const apl::Module module = memory_module("mm1", "", apl::Machine::cpu, false);
  const apl::ProgramText text = take(generated(module, apl::c_target(), 4));
  const apl::ProgramText one = take(generated(module, apl::c_target(), 1));
  CHECK(one.kernel_infos.size() == 2);
  CHECK(text.kernel_infos.size() > 4);
  // Panels are packed for sizes of all kinds by one kernel.
  const apl::ProgramText panels = take(generated(memory_module("mm1", "", apl::Machine::cpu), apl::c_target(), 4));
  CHECK(panels.kernel_infos.size() == 2);
  apl::ProgramOptions options;
  options.c_flags = {"-O0"};
  apl::Program program = take(apl::Program::load(text.host, options));
  apl::Program reference = take(apl::Program::load(one.host, options));
  apl::Program packed = take(apl::Program::load(panels.host, options));
  const std::vector<std::int64_t> sizes[] = {{1, 1, 1}, {10, 7, 5}, {70, 65, 33}, {3, 200, 17}, {0, 4, 4}, {5, 5, 0}};
  for (const auto& n : sizes) {
    const std::vector<HostValue> inputs{random_floats({n[0], n[2]}, 1), random_floats({n[2], n[1]}, 2)};
    CAPTURE(n[0]);
    const auto want = take(reference.call("mm1", inputs));
    CHECK(take(program.call("mm1", inputs)) == want);
    CHECK(take(packed.call("mm1", inputs)) == want);
  }
}

TEST_CASE("variants: one that the model of tiles does not know is refused, not taken for another") {
  apl::Module variants = example("mm1", "mm1");
  const std::string pipeline = apl::standard_pipeline(apl::Stage::memory, apl::Machine::gpu, true);
  take(apl::run_pipeline(variants, take(apl::parse_pipeline(pipeline, apl::PassRegistry::builtin())), {}));
  const std::string text = print(variants);
  const std::string known = "untiled {";
  const std::size_t at = text.find(known);
  REQUIRE(at != std::string::npos);
  CHECK(generated(take(apl::parse_module(text, "known.aplir")), apl::cuda_target(), 12));
  const apl::Module module =
      take(apl::parse_module(std::string(text).replace(at, known.size(), "whole {"), "unknown.aplir"));
  const auto refused = generated(module, apl::cuda_target(), 12);
  REQUIRE(!refused);
  CHECK(refused.error().code == apl::Code::unsupported_construct);
  CHECK(contains(refused.error().message,
                 "the variant `whole` of a contraction, which the model of tiles does not know"));
}

TEST_CASE("plan kernels: in emulation only the one that was chosen is compiled") {
  const apl::Module module = memory_module("mm1", "mm1", apl::Machine::gpu);
  const apl::ProgramText text = take(generated(module, apl::cuda_target(), 12));
  CHECK(text.kernel_infos.size() > 2);
  std::vector<std::string> log;
  apl::ProgramOptions options;
  options.backend = "emulate";
  options.log = [&](std::string line) { log.push_back(std::move(line)); };
  apl::Program program = take(apl::Program::load(text.host, options));
  const std::vector<HostValue> inputs{random_floats({20, 9}, 1), random_floats({9, 33}, 2)};
  const std::size_t before = log.size();
  const auto first = take(program.call("mm1", inputs));
  const std::size_t after = log.size();
  CHECK(after == before + 1);
  // The same sizes again compile nothing.
  CHECK(take(program.call("mm1", inputs)) == first);
  CHECK(log.size() == after);
  apl::ProgramOptions c;
  c.c_flags = {"-O0"};
  const apl::Module cpu = memory_module("mm1", "mm1", apl::Machine::cpu);
  apl::Program reference = take(apl::Program::load(take(generated(cpu, apl::c_target(), 1)).host, c));
  CHECK(take(reference.call("mm1", inputs)) == first);
}

TEST_CASE("schedule: without it a contraction has the general kernel, which computes the same") {
  apl::Module module = memory_module("mm1", "mm1", apl::Machine::gpu);
  const apl::ProgramText with = take(generated(module, apl::cuda_target(), 1));
  const std::function<apl::BodyPtr(const apl::BodyPtr&)> stripped = [&](const apl::BodyPtr& body) {
    std::vector<apl::Stm> stms;
    for (const apl::Stm& stm : body->stms) {
      stms.push_back(stm);
      if (auto* kernel = std::get_if<apl::SegOp>(&stms.back().op)) {
        kernel->schedule.reset();
      } else {
        stms.back().op = apl::map_bodies(stm.op, stripped);
      }
    }
    return apl::make_body(std::move(stms), body->results);
  };
  for (apl::FunctionPtr& function : module.functions) {
    apl::Function made = *function;
    made.body = stripped(made.body);
    function = std::make_shared<const apl::Function>(std::move(made));
  }
  const apl::ProgramText without = take(generated(module, apl::cuda_target(), 1));
  CHECK(contains(with.kernels, "apl_cp_async"));
  CHECK(!contains(without.kernels, "apl_cp_async"));
  apl::ProgramOptions options;
  options.backend = "emulate";
  apl::Program one = take(apl::Program::load(with.host, options));
  apl::Program other = take(apl::Program::load(without.host, options));
  const std::vector<HostValue> inputs{random_floats({37, 21}, 1), random_floats({21, 50}, 2)};
  CHECK(take(one.call("mm1", inputs)) == take(other.call("mm1", inputs)));
}

TEST_CASE("schedule: what the model is asked about is what is generated, whatever numbers are given") {
  const apl_device h200 = *apl::find_device("h200");
  std::mt19937_64 random(7);
  const auto one_of = [&](std::initializer_list<std::int64_t> numbers) {
    return numbers.begin()[random() % numbers.size()];
  };
  int mainloops = 0, general = 0, refused = 0;
  for (int k = 0; k < 60; ++k) {
    apl::PipelineOptions options;
    // 0: not given.
    const auto give = [&](const char* name, std::int64_t number) {
      if (number > 0) options.parameters[std::string("mm1.") + name] = number;
    };
    give("mainloop", one_of({0, 1, 2}));
    give("copy", one_of({0, 1, 2, 3}));
    give("swizzle", one_of({0, 1, 2}));
    give("stages", one_of({0, 1, 2, 4}));
    for (const char* dim : {"m", "n"}) {
      give((std::string("T_") + dim).c_str(), one_of({0, 2, 8, 16, 24}));
      give((std::string("R_") + dim).c_str(), one_of({0, 1, 4, 8}));
    }
    give("T_q", one_of({0, 4, 16}));
    apl::Module module = example("mm1", "mm1");
    auto pipeline = take(apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory, apl::Machine::gpu),
                                             apl::PassRegistry::builtin()));
    take(apl::run_pipeline(module, pipeline, options));
    const apl::Function& function = *module.find_entry("mm1");
    std::optional<apl::PlanData> data;
    apl::for_each_stm(*function.body, [&](const apl::Stm& stm) {
      if (auto found = apl::plan_data(stm, function)) data = std::move(found);
    });
    REQUIRE(data);
    apl_forced forced;
    forced_numbers(*data, function, options.parameters, forced);
    const auto plans = apl::covering_plans(*data, forced, h200, 1);
    auto text = generated(module, apl::cuda_target(), 2, options.parameters);
    if (plans.empty() || !text) {
      CHECK(plans.empty() == !text);
      ++refused;
      continue;
    }
    apl_contraction c;
    apl::fill_in(
        *data, [](apl::Value) { return 64; }, c);
    apl_plan_cost cost;
    apl_plan_estimate(&c, &plans[0], &h200, &cost);
    CAPTURE(k);
    REQUIRE(!text->kernel_infos.empty());
    const apl::KernelInfo& kernel = text->kernel_infos.front();
    CHECK(cost.threads == kernel.threads);
    const bool has_mainloop = contains(text->kernels, "result_rows");
    CHECK((cost.has_mainloop != 0) == has_mainloop);
    if (has_mainloop) CHECK(cost.block_shared == kernel.shared_bytes);
    ++(has_mainloop ? mainloops : general);
  }
  CHECK(mainloops >= 10);
  CHECK(general >= 10);
  CHECK(refused <= 30);
}

TEST_CASE("plan kernels: threads and shared memory of the model are those of the generated kernels") {
  const apl_device h200 = *apl::find_device("h200");
  for (const char* name : {"mm0", "mm1", "sd1_7"}) {
    const apl::Module module = memory_module(name, name, apl::Machine::gpu);
    const apl::Function& function = *module.find_entry(name);
    std::optional<apl::PlanData> data;
    apl::for_each_stm(*function.body, [&](const apl::Stm& stm) {
      if (auto found = apl::plan_data(stm, function)) data = std::move(found);
    });
    REQUIRE(data);
    CHECK(data->operations == doctest::Approx(1));
    const auto plans = apl::covering_plans(*data, {}, h200, 12);
    CHECK(plans.size() > 1);
    const apl::ProgramText text = take(generated(module, apl::cuda_target(), 12));
    REQUIRE(text.kernel_infos.size() == plans.size());
    apl_contraction c;
    apl::fill_in(
        *data, [](apl::Value) { return 64; }, c);
    for (std::size_t k = 0; k < plans.size(); ++k) {
      apl_plan_cost cost;
      apl_plan_estimate(&c, &plans[k], &h200, &cost);
      CAPTURE(text.kernel_infos[k].name);
      CHECK(cost.threads == text.kernel_infos[k].threads);
      CHECK(cost.block_shared == text.kernel_infos[k].shared_bytes);
    }
  }
}

TEST_CASE("plan kernels: the model knows the block of every kind of tiled kernel") {
  const apl_device h200 = *apl::find_device("h200");
  int checked = 0, fast = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(APL_SOURCE_DIR) + "/tests/golden/tile-contraction")) {
    const std::string file = entry.path().filename();
    if (!file.ends_with(".aplir") || file.starts_with("refuses")) continue;
    std::ifstream in(entry.path());
    std::string text(std::istreambuf_iterator<char>(in), {});
    text = text.substr(0, text.find("\n-- OUTPUT\n") + 1);
    auto module = apl::parse_module(text, file);
    if (!module || module->stage != apl::Stage::kernel) continue;
    auto pipeline =
        take(apl::parse_pipeline("tile-contraction,coalesce,simplify,place-memory", apl::PassRegistry::builtin()));
    take(apl::run_pipeline(*module, pipeline, {}));
    const apl::Function& function = *module->functions.at(0);
    std::optional<apl::PlanData> data;
    apl::for_each_stm(*function.body, [&](const apl::Stm& stm) {
      if (auto found = apl::plan_data(stm, function)) data = std::move(found);
    });
    auto generated_text = generated(*module, apl::cuda_target(), 12);
    if (!data || !generated_text) continue;
    const auto plans = apl::covering_plans(*data, {}, h200, 12);
    if (generated_text->kernel_infos.size() != plans.size()) continue;  // other kernels beside it
    apl_contraction c;
    apl::fill_in(
        *data, [](apl::Value) { return 64; }, c);
    for (std::size_t k = 0; k < plans.size(); ++k) {
      const apl::KernelInfo& kernel = generated_text->kernel_infos[k];
      apl_plan_cost cost;
      apl_plan_estimate(&c, &plans[k], &h200, &cost);
      CAPTURE(file);
      CAPTURE(kernel.name);
      CHECK(cost.threads == kernel.threads);
      if (cost.has_mainloop != 0) {
        CHECK(cost.block_shared == kernel.shared_bytes);
        ++fast;
      } else {
        // Rows are padded where that helps.
        CHECK(cost.block_shared >= kernel.shared_bytes);
        CHECK(cost.block_shared <= kernel.shared_bytes * 3 / 2 + 64);
      }
    }
    ++checked;
  }
  CHECK(checked >= 15);
  CHECK(fast >= 60);
}

TEST_CASE("plan kernels: sizes for which numbers were measured get them among all of them") {
  const apl_device h200 = *apl::find_device("h200");
  struct Measured {
    const char* name;
    std::int64_t n, q;
  };
  const Measured cases[] = {{"mm0", 4096, 4096}, {"mm1", 4096, 4096}, {"mm2", 4096, 4096}, {"mm3", 4096, 4096},
                            {"sd1_7", 32, 32},   {"sd2_3", 32, 32},   {"sd1_7", 32, 31},   {"sd2_3", 32, 31},
                            {"sd1_7", 31, 31},   {"sd2_3", 31, 31},   {"sd1_7", 16, 2048}, {"sd2_3", 16, 2048}};
  for (const Measured& m : cases) {
    const apl::Module module = memory_module(m.name, m.name, apl::Machine::gpu);
    const apl::Function& function = *module.find_entry(m.name);
    std::optional<apl::PlanData> data;
    apl::for_each_stm(*function.body, [&](const apl::Stm& stm) {
      if (auto found = apl::plan_data(stm, function)) data = std::move(found);
    });
    REQUIRE(data);
    const auto plans = apl::covering_plans(*data, {}, h200, 12);
    apl_contraction c;
    apl::fill_in(
        *data, [&](apl::Value v) { return function.values.name(v) == "q" ? m.q : m.n; }, c);
    const int best = apl_plan_best_of(&c, plans.data(), static_cast<int>(plans.size()), &h200, nullptr);
    REQUIRE(best >= 0);
    apl_plan_cost cost;
    apl_plan_estimate(&c, &plans[static_cast<std::size_t>(best)], &h200, &cost);
    CAPTURE(m.name);
    CAPTURE(m.n);
    const apl_plan& plan = plans[static_cast<std::size_t>(best)];
    // Products of matrices: blocks of 256 threads that have a multiprocessor each; else two of 128 beside each other.
    const bool is_square = m.n == 4096;
    CHECK(cost.threads == (is_square ? 256 : 128));
    CHECK(cost.registers <= 255);
    CHECK(cost.blocks_per_multiprocessor == (is_square ? 1 : 2));
    CHECK(plan.stages == 3);
  }
}

TEST_CASE("plan kernels: kernels of few accumulators leave registers to the blocks that the model counts on") {
  const apl::Module module = memory_module("mm1", "mm1", apl::Machine::gpu);
  const std::string kernels = take(generated(module, apl::cuda_target(), 12)).kernels;
  // 256 x 128 elements, one block: as many registers as a thread may have, which the compiler does not take unasked.
  CHECK(contains(kernels, "APL_KERNEL(256, 1) void mm1_"));
  CHECK(contains(kernels, "APL_KERNEL(128, 5) void mm1_"));
  CHECK_FALSE(contains(take(generated(module, apl::cuda_target(), 1)).kernels, "APL_KERNEL(128, "));
}

TEST_CASE("plan kernels: given numbers stay in all of them, and impossible ones are refused with one that would work") {
  const apl::Module module = memory_module("mm1", "mm1", apl::Machine::gpu);
  const apl::ProgramText some = take(generated(module, apl::cuda_target(), 12, {{"mm1.T_a", 4}, {"mm1.T_b", 16}}));
  for (const apl::KernelInfo& kernel : some.kernel_infos) CHECK(kernel.threads == 64);
  for (int plans : {1, 12}) {
    auto refused = generated(module, apl::cuda_target(), plans, {{"mm1.T_a", 64}, {"mm1.T_b", 32}});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == apl::Code::command_bad_parameter);
    CHECK_MESSAGE(contains(refused.error().message, "2048 threads a block, 1024 at most on h200"),
                  refused.error().message);
    CHECK_MESSAGE(contains(refused.error().message, " would work"), refused.error().message);
  }
}

TEST_CASE("plan kernels: each way of a contraction computes the same, and only what it needs is compiled") {
  apl::Module module = example("mm1", "mm1");
  auto pipeline = take(apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory, apl::Machine::gpu, true),
                                           apl::PassRegistry::builtin()));
  take(apl::run_pipeline(module, pipeline, {}));
  const std::vector<HostValue> inputs{random_floats({7, 300}, 1), random_floats({300, 5}, 2)};
  const apl::Module cpu = memory_module("mm1", "mm1", apl::Machine::cpu);
  apl::ProgramOptions c;
  c.c_flags = {"-O0"};
  apl::Program reference = take(apl::Program::load(take(generated(cpu, apl::c_target(), 1)).host, c));
  const auto expected = take(reference.call("mm1", inputs));
  // Tiled; parts and what joins them; one thread a point.
  for (const auto& [variant, kernels] : {std::pair{1, 1}, {2, 2}, {3, 1}}) {
    CAPTURE(variant);
    std::vector<std::string> log;
    apl::ProgramOptions options;
    options.backend = "emulate";
    options.log = [&](std::string line) { log.push_back(std::move(line)); };
    apl::Program program = take(
        apl::Program::load(take(generated(module, apl::cuda_target(), 4, {{"mm1.variant", variant}})).host, options));
    const std::size_t before = log.size();
    CHECK(take(program.call("mm1", inputs)) == expected);
    CHECK(log.size() == before + static_cast<std::size_t>(kernels));
    CHECK(take(program.call("mm1", inputs)) == expected);
    CHECK(log.size() == before + static_cast<std::size_t>(kernels));
  }
}

TEST_CASE("plan kernels: plans that are listed are those of the program, and must work") {
  const apl::Module module = memory_module("mm1", "mm1", apl::Machine::gpu);
  const apl::ProgramText text = take(generated(module, apl::cuda_target(), 12,
                                               {{"mm1.plan1.T_a", 8},
                                                {"mm1.plan1.R_a", 2},
                                                {"mm1.plan1.T_b", 8},
                                                {"mm1.plan1.R_b", 2},
                                                {"mm1.plan1.T_q", 8},
                                                {"mm1.plan2.T_a", 16},
                                                {"mm1.plan2.T_b", 16},
                                                {"mm1.plan2.T_q", 4}}));
  REQUIRE(text.kernel_infos.size() == 2);
  CHECK(text.kernel_infos[0].threads == 64);
  CHECK(text.kernel_infos[1].threads == 256);
  auto refused = generated(module, apl::cuda_target(), 12, {{"mm1.plan1.T_a", 64}, {"mm1.plan1.T_b", 32}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == apl::Code::command_bad_parameter);
}

// A device on which some kernels spill.
class Spilling : public apl::Backend {
 public:
  std::set<std::string> spills;
  std::vector<std::string> loaded;
  const char* name() const override { return "spilling"; }
  apl::Status load(std::string_view text) override {
    loaded.emplace_back(text);
    return apl::Unit{};
  }
  apl::Result<void*> allocate(std::int64_t, const char*) override { return nullptr; }
  apl::Status release(void*) override { return apl::Unit{}; }
  apl::Status upload(void*, const void*, std::int64_t) override { return apl::Unit{}; }
  apl::Status download(void*, const void*, std::int64_t) override { return apl::Unit{}; }
  apl::Status copy(void*, const void*, std::int64_t) override { return apl::Unit{}; }
  apl::Status launch(const apl_launch&) override { return apl::Unit{}; }
  apl::Status synchronise() override { return apl::Unit{}; }
  apl_failure* failure() override { return nullptr; }
  apl::Result<apl_failure> take_failure() override { return apl_failure{}; }
  apl::Status start_timer() override { return apl::Unit{}; }
  apl::Result<double> stop_timer() override { return 0.0; }
  apl::Result<int> spilled_bytes(const std::string& kernel) override { return spills.contains(kernel) ? 8 : 0; }
};

TEST_CASE("plan kernels: one that spills is replaced by the next, with a word in the log") {
  apl_contraction c{};
  c.dim_count = 3, c.space_rank = 2, c.operand_count = 2;
  c.result_bytes = c.widest_result = c.accumulator_bytes = 4;
  c.operations = 1;
  c.dims[0] = {4096, APL_DIM_M, 0}, c.dims[1] = {4096, APL_DIM_N, 0}, c.dims[2] = {4096, APL_DIM_CONTRACTED, 0};
  c.operands[0] = {.bytes = 4, .strides = {4096, 0, 1}}, c.operands[1] = {.bytes = 4, .strides = {0, 1, 4096}};
  const apl_plan plans[] = {{{16, 8, 16}, {8, 16}, 3, 0}, {{16, 8, 16}, {8, 8}, 3, 0}};
  const char* const kernels[] = {"large", "small"};
  const apl_plan_set set{"C", 2, kernels, plans};
  const apl_lazy_kernel forms[] = {{"large", "text of large"}, {"small", "text of small"}, {nullptr, nullptr}};
  for (const std::set<std::string>& spills :
       {std::set<std::string>{}, std::set<std::string>{"large"}, std::set<std::string>{"large", "small"}}) {
    auto device = std::make_unique<Spilling>();
    Spilling& backend = *device;
    backend.spills = spills;
    apl::program::Bridge bridge(std::move(device), nullptr);
    std::vector<std::string> log;
    bridge.plans({*apl::find_device("h200"), [&](std::string line) { log.push_back(std::move(line)); }, forms});
    std::int32_t form = -1;
    for (int call = 0; call < 2; ++call)
      CHECK(bridge.context()->backend->choose(bridge.context(), &c, &set, &form) == APL_SUCCESS);
    // If all of them spill the first choice stands, and that is said.
    CHECK(form == (spills.size() == 1 ? 1 : 0));
    CHECK(log.size() == spills.size() + (spills.size() == 2 ? 1 : 0));
    CHECK(backend.loaded.size() == (spills.empty() ? 1 : 2));
    // So it is for other sizes.
    apl_contraction smaller = c;
    smaller.dims[0].size = 2048;
    CHECK(bridge.context()->backend->choose(bridge.context(), &smaller, &set, &form) == APL_SUCCESS);
    CHECK(form == (spills.size() == 1 ? 1 : 0));
  }
}

}  // namespace
