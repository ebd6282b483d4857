// Kernels over non-zeros that are not what their schedules say: a test for every invariant, each broken on purpose.
#include "ir/sparse_schedule.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/sparse/products.h"
#include "ir/attributes.h"
#include "ir/interpret.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "ir/walk.h"
#include "passes/pipeline.h"

// Of its own: tests are compiled several in one.
namespace sparse_schedule_test {
namespace {

using apl::SparseSchedule;

template <class T>
T take(apl::Result<T> result) {
  if (!result) MESSAGE(result.error().message);
  REQUIRE(result);
  return std::move(*result);
}

constexpr const char* kProduct = R"(stage kernel

#[sparse(A)]
entry mm (A : "[m][q]f32", B : "[2][q][n]f32") : {"[2][m][n]f32"}
fun mm [m, n, q] (A : [m][q]f32, B : [2][q][n]f32) : {[2][m][n]f32} = {
  let {C : [2][m][n]f32} =
    segmap(thread) (h < 2, i < m, j < n) {
      let {xs : [q]f32} = A[i]
      let {ys : [q]f32} = B[h, 0 :+ q, j]
      let {c : f32} =
        redomap(k < q, {xs, ys}, \{x : f32, y : f32} -> { let {xy : f32} = mul(x, y) in {xy} },
          {commutative \{u : f32, v : f32} -> { let {uv : f32} = add(u, v) in {uv} }, {0.0f32}})
      let {d : f32} = mul(c, 2.0f32)
      return {returns d}
    }
  in {C}
}
)";

constexpr const char* kSddmm = R"(stage kernel

#[sparse(A)]
entry sd (A : "[m][q]f32", X : "[m][n]f32", Y : "[q][n]f32") : {"[m][q]f32"}
fun sd [m, n, q] (A : [m][q]f32, X : [m][n]f32, Y : [q][n]f32) : {[m][q]f32} = {
  let {C : [m][q]f32} =
    segmap(thread) (i < m, j < q) {
      let {a : f32} = A[i, j]
      let {xs : [n]f32} = X[i]
      let {ys : [n]f32} = Y[j]
      let {c : f32} =
        redomap(k < n, {xs, ys}, \{x : f32, y : f32} -> { let {xy : f32} = mul(x, y) in {xy} },
          {commutative \{u : f32, v : f32} -> { let {uv : f32} = add(u, v) in {uv} }, {0.0f32}})
      let {d : f32} = mul(a, c)
      return {returns d}
    }
  in {C}
}
)";

apl::Module made(const char* text, const std::string& pipeline) {
  apl::Module module = take(apl::parse_module(text, "product.aplir"));
  take(apl::run_pipeline(module, take(apl::parse_pipeline(pipeline, apl::PassRegistry::builtin())), {}));
  return module;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  CAPTURE(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// All that the parser or the verifier says of the text.
std::string verdict(const std::string& text) {
  const auto module = apl::parse_module(text, "broken.aplir");
  if (!module) return module.error().message;
  std::string all;
  for (const apl::Diagnostic& error : apl::verify(*module)) all += error.message + "\n";
  return all;
}

// The function with every kernel's sparse schedule changed.
apl::Module changed(const apl::Module& module, const std::function<void(apl::SegOp&)>& change) {
  apl::Module result = module;
  apl::Function function = *module.functions.front();
  std::vector<apl::Stm> stms = function.body->stms;
  for (apl::Stm& stm : stms)
    if (apl::SegOp* kernel = std::get_if<apl::SegOp>(&stm.op); kernel && kernel->sparse) change(*kernel);
  function.body = apl::make_body(std::move(stms), function.body->results);
  result.functions.front() = std::make_shared<const apl::Function>(std::move(function));
  return result;
}

constexpr const char* kMemory = "sparsify,coalesce,simplify,place-memory";

}  // namespace

TEST_CASE("sparse schedule: what sparsify makes holds at every stage, and survives the textual IR") {
  struct Case {
    const char *program, *pipeline, *says;
  };
  for (const Case& one :
       {Case{kProduct, "sparsify", "sparse(product \"A\""}, Case{kProduct, kMemory, "sparse(product"},
        Case{kProduct, "sparsify{few-threads}", "sparse(rows \"A\""},
        Case{kProduct, "sparsify{few-threads},simplify,place-memory", "sparse(rows \"A\""},
        Case{kSddmm, "sparsify", "sparse(sddmm \"A\""}, Case{kSddmm, kMemory, "sparse(sddmm \"A\""}}) {
    CAPTURE(one.pipeline);
    const std::string text = print(made(one.program, one.pipeline));
    CAPTURE(text);
    CHECK(text.find(one.says) != std::string::npos);
    CHECK(verdict(text) == "");
    CHECK(print(take(apl::parse_module(text, "again.aplir"))) == text);
  }
}

TEST_CASE("sparse schedule: a body that is not what it says is refused, each way with its reason") {
  const std::string product = print(made(kProduct, "sparsify")), rows = print(made(kProduct, "sparsify{few-threads}")),
                    sddmm = print(made(kSddmm, "sparsify")), memory = print(made(kProduct, kMemory));
  struct Case {
    const std::string& text;
    const char *from, *to, *reason;
  };
  const Case cases[] = {
      {product, "sparse(product \"A\"", "sparse(rows \"A\"", "its family is product, not rows"},
      {product, "sparse(product \"A\"", "sparse(spmm \"A\"", "`general`, `product`, `rows` or `sddmm`"},
      {product, "sparse(product \"A\"", "sparse(product \"B\"", "its arrays are no arguments of the entry"},
      {product, "dims (batch 2, row m, n n,", "dims (batch 2, row m, batch n,", "dim 3 is of n, not of batch"},
      {product, "dims (batch 2, row m, n n,", "dims (batch 2, row q, n n,", "dim 2 has another size"},
      {product, ", column q)", ")", "it has 5 dims, not 4"},
      {product, "row m, n n", "m m, n n", "`batch`, `row`, `n`, `nonzero`, `column` or `depth`"},
      {product, "(A_values at 0 [0, 0, 0, 1, 0], ", "(", "it has 2 operands, not 1"},
      {product, "B at 0 [", "A_values at 0 [", "operand 2 is another array"},
      {product, "B at 0 [", "B at 1 [", "operand 2 is read at other elements"},
      {product, "A_values at 0 [0, 0, 0, 1, 0]", "A_values at 0 [0, 0, 0, 2, 0]",
       "operand 1 is read at other elements"},
      {memory, "B at 0 [", "B at n [", "operand 2 is read at other elements"},
      // The body is another.
      {product, "= mul(a, y)", "= add(a, y)", "its terms are not products of two numbers"},
      {product, "= add(u, v)", "= mul(u, v)", "its operator is not a plain sum"},
      {product, "{0.0f32}})", "{1.0f32}})", "its operator is not a plain sum"},
      {product, "A_row_start[i + 1]", "A_row_start[i]", "the sum does not go over the non-zeros of a row"},
      {product, "A_values[first + p]", "A_values[first + 2*p]", "its terms are not the non-zeros of a row"},
      {product, "A_column[first + p]", "A_column[first]", "the other factor is not a row of a dense matrix"},
      {product, "= B[h, ", "= B[0, ", "operand 2 is read at other elements"},
      {product, "= mul(sum, 2.0f32)", "= mul(3.0f32, 2.0f32)", "the result does not come from the sum"},
      {rows, "replicate([n], 0.0f32)", "replicate([n], 1.0f32)", "there are several sums, or branches and loops"},
      {sddmm, "= mul(x, y)", "= add(x, y)", "its terms are not products of two numbers"},
      {sddmm, "= X[i]", "= X[j]", "rows of both dense operands do not lie side by side in memory"},
      {sddmm, "A_values at 0 [1, 0, 0, 0]", "A_values at 1 [1, 0, 0, 0]", "operand 3 is read at other elements"},
      {sddmm, ", A_values at 0 [1, 0, 0, 0])", ")", "it has 3 operands, not 2"},
      {sddmm, "= mul(a, c)", "= add(a, c)", "it has 2 operands, not 3"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.text);
    CAPTURE(std::string(one.from));
    CAPTURE(std::string(one.to));
    const std::string said = verdict(replaced(one.text, one.from, one.to));
    CAPTURE(said);
    CHECK(!said.empty());
    CHECK(said.find(one.reason) != std::string::npos);
  }
}

TEST_CASE("sparse schedule: a general one has a reason, and nothing else") {
  const apl::Module module = made(kProduct, "sparsify");
  const auto said = [&](const std::function<void(SparseSchedule&)>& change) {
    std::string all;
    for (const apl::Diagnostic& error :
         apl::verify(changed(module, [&](apl::SegOp& kernel) { change(*kernel.sparse); })))
      all += error.message;
    return all;
  };
  CHECK(said([](SparseSchedule&) {}) == "");
  CHECK(said([](SparseSchedule& one) {
          one.family = SparseSchedule::Family::general;
        }).find("a general one has dims or operands") != std::string::npos);
  CHECK(said([](SparseSchedule& one) { one.why = "it rains"; }).find("one that is not general has a reason why not") !=
        std::string::npos);
}

TEST_CASE("sparse schedule: a pass that breaks it leaves the kernel without, with a remark") {
  apl::PassRegistry registry = apl::PassRegistry::builtin();
  apl::PassInfo breaks;
  breaks.name = "break";
  breaks.summary = "adds the terms of a product";
  breaks.takes = apl::stage_bit(apl::Stage::kernel);
  breaks.run = [](apl::Module& module, apl::PassContext&) -> apl::Result<apl::Change> {
    apl::Function function = *module.functions.front();
    const std::function<apl::BodyPtr(const apl::BodyPtr&)> added = [&](const apl::BodyPtr& body) {
      std::vector<apl::Stm> stms = body->stms;
      for (apl::Stm& stm : stms) {
        if (apl::Binary* times = std::get_if<apl::Binary>(&stm.op); times && times->op == apl::BinaryOp::mul)
          times->op = apl::BinaryOp::sub;
        stm.op = apl::map_bodies(stm.op, added);
      }
      return apl::make_body(std::move(stms), body->results);
    };
    function.body = added(function.body);
    module.functions.front() = std::make_shared<const apl::Function>(std::move(function));
    return apl::Change::yes;
  };
  registry.add(breaks);
  apl::Module module = take(apl::parse_module(kProduct, "product.aplir"));
  apl::PipelineOptions options;
  std::vector<apl::Remark> remarks;
  options.remarks = [&](const apl::Remark& remark) { remarks.push_back(remark); };
  take(apl::run_pipeline(module, take(apl::parse_pipeline("sparsify,break", registry)), options));
  CHECK(print(module).find("segmap(thread)") != std::string::npos);
  CHECK(print(module).find("sparse(product") == std::string::npos);
  REQUIRE(!remarks.empty());
  CHECK(remarks.back().code == apl::kScheduleDropped);
  CHECK(remarks.back().pass == "break");
  CHECK(remarks.back().message.find("its terms are not products of two numbers") != std::string::npos);
}

TEST_CASE("sparse schedule: without it a kernel is the program's own, and means the same") {
  for (const char* program : {kProduct, kSddmm}) {
    const apl::Module with = made(program, kMemory);
    const apl::Module without = changed(with, [](apl::SegOp& kernel) { kernel.sparse.reset(); });
    CHECK(verdict(print(without)) == "");
    const auto asks = [](const apl::Module& module) {
      return take(apl::generate(module, apl::cuda_target())).host.find("ctx->backend->sparse_") != std::string::npos;
    };
    CHECK(asks(with));
    CHECK(!asks(without));
    const auto why_not = [&](const apl::Module& module) {
      std::string why;
      const apl::Function& function = *module.functions.front();
      for (const apl::Stm& stm : function.body->stms) {
        if (!apl::has_attribute(stm.attributes, apl::attribute::sparse_product)) continue;
        CHECK(!apl::lower::find_sparse_product(stm, function, &why));
        CHECK(!apl::lower::find_sparse_sddmm(stm, function, &why));
      }
      return why;
    };
    CHECK(why_not(without).find("dropped its schedule") != std::string::npos);
    // A kernel that is general says why.
    const apl::Module general = changed(with, [](apl::SegOp& stripped) {
      stripped.sparse = SparseSchedule{.matrix = "A", .why = "somebody said so", .dims = {}, .operands = {}};
    });
    CHECK(!asks(general));
    CHECK(verdict(print(general)) == "");
    CHECK(why_not(general) == "somebody said so");
    std::vector<apl::HostValue> inputs{
        apl::HostValue::array<float>(apl::ScalarType::f32, {3, 4}, {1, 0, 0, 2, 0, 0, 0, 0, 0, 3, 0, 0})};
    if (program == kProduct) {
      inputs.push_back(apl::HostValue::array<float>(apl::ScalarType::f32, {2, 4, 5}, std::vector<float>(40, 3)));
    } else {
      inputs.push_back(apl::HostValue::array<float>(apl::ScalarType::f32, {3, 5}, std::vector<float>(15, 3)));
      inputs.push_back(apl::HostValue::array<float>(apl::ScalarType::f32, {4, 5}, std::vector<float>(20, 2)));
    }
    const std::string entry = program == kProduct ? "mm" : "sd";
    CHECK(take(apl::interpret(with, entry, inputs, {})) == take(apl::interpret(without, entry, inputs, {})));
  }
}

}  // namespace sparse_schedule_test
