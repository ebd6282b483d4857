// The thesis' running examples: what is found of them, with the corrections of its misprints, and how they are tiled.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "ir/walk.h"
#include "passes/pipeline.h"

namespace {

using namespace apl;

struct ThesisExample {
  std::map<std::string, std::string> facts;  // of the entry's contraction
  int blocks = 0, loops = 0, copies = 0, contracts = 0, epilogues = 0;
};

void run_to_stage(Module& module, Stage stage, PipelineOptions options = {}) {
  auto pipeline = parse_pipeline(standard_pipeline(stage), PassRegistry::builtin());
  REQUIRE(pipeline);
  REQUIRE(run_pipeline(module, *pipeline, options));
}

ThesisExample thesis_example(const std::string& example, const std::string& entry) {
  std::ifstream in(std::string(APL_SOURCE_DIR) + "/examples/" + example + ".fut");
  REQUIRE(in);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  auto module = compile({example + ".fut", text}, [](const Diagnostic& d) { FAIL(d.message); });
  REQUIRE(module);
  std::erase_if(module->functions, [&](const FunctionPtr& f) { return f->is_entry() && f->entry->name != entry; });
  ThesisExample result;
  PipelineOptions options;
  options.remarks = [&](const Remark& remark) {
    if (remark.code == "tiled") result.facts.insert(remark.facts.begin(), remark.facts.end());
  };
  run_to_stage(*module, Stage::kernel, options);
  for (const FunctionPtr& function : module->functions)
    for_each_stm(*function->body, [&](const Stm& stm) {
      const SegOp* op = get_if<SegOp>(stm);
      if (op == nullptr || op->level != SegLevel::block) return;
      ++result.blocks;
      for (const Stm& inner : op->body->stms) {
        result.loops += get_if<Loop>(inner) != nullptr ? 1 : 0;
        result.epilogues += get_if<If>(inner) != nullptr ? 1 : 0;
      }
      for_each_stm(*op->body, [&](const Stm& inner) {
        result.copies += get_if<CopyTile>(inner) != nullptr ? 1 : 0;
        result.contracts += get_if<TileContract>(inner) != nullptr ? 1 : 0;
      });
    });
  return result;
}

// Listing 5: a loop over full tiles, each operand copied once and contracted, and the same once more for the rest.
void check_listing_five(const ThesisExample& found) {
  CHECK(found.blocks == 1);
  CHECK(found.loops == 1);
  CHECK(found.epilogues == 1);
  CHECK(found.copies == 4);
  CHECK(found.contracts == 2);
}

}  // namespace

TEST_CASE("thesis: listing 2 and its variance indices") {
  ThesisExample listing = thesis_example("listing2", "aqc_bq_cba");
  CHECK(listing.facts["einsum"] == "aqc,bq->cba");
  CHECK(listing.facts["X"] == "<a:c*q, q:c, c:1> varies with <2, 0>");
  CHECK(listing.facts["Y"] == "<b:q, q:1> varies with <1>");
  check_listing_five(listing);
}

TEST_CASE("thesis: listing 3 for eq 15, with the LMADs of eq 16 and the variance indices of eqs 25-26") {
  ThesisExample listing = thesis_example("listing3", "jqai_bcqk_bickja");
  CHECK(listing.facts["einsum"] == "jqai,bcqk->bickja");
  CHECK(listing.facts["X"] == "<j:i*a*q, q:i*a, a:i, i:1> varies with <4, 5, 1>");
  CHECK(listing.facts["Y"] == "<b:c*k*q, c:k*q, q:k, k:1> varies with <0, 2, 3>");
  check_listing_five(listing);
}

TEST_CASE("thesis: any rank: 12 dims of the result from source to CUDA text") {
  const std::string source =
      "entry f [a][b][c][d][e][f][g][h][i][j][k][l][q] (X: [a][b][c][q][d][e][f]f32) (Y: [g][h][q][i][j][k][l]f32)\n"
      "  : [a][g][b][h][c][i][d][j][e][k][f][l]f32 =\n"
      "  tabulate_3d a g b (\\a1 g1 b1 -> tabulate_3d h c i (\\h1 c1 i1 -> tabulate_3d d j e (\\d1 j1 e1 ->\n"
      "    tabulate_3d k f l (\\k1 f1 l1 ->\n"
      "      f32.sum (tabulate q (\\q1 -> X[a1, b1, c1, q1, d1, e1, f1] * Y[g1, h1, q1, i1, j1, k1, l1]))))))\n";
  auto module = compile({"f.fut", source}, [](const Diagnostic& d) { FAIL(d.message); });
  REQUIRE(module);
  std::string einsum;
  PipelineOptions options;
  options.remarks = [&](const Remark& remark) {
    if (remark.code == "tiled") einsum = remark.facts.front().second;
  };
  run_to_stage(*module, Stage::memory, options);
  CHECK(einsum == "abcqdef,ghqijkl->agbhcidjekfl");
  CHECK(generate(*module, cuda_target()));
}
