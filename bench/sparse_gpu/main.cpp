// Sparse products on a GPU, f16 with f32 sums or f32, beside cuSPARSE and dense cuBLAS in the same run: times, and
// every result checked in full against the plainest kernel.
//   apl_sparse_gpu [--emulate] [--operators=spmm,sddmm] [--matrices=A,B] [--widths=32,128] [--folder=DIR] [--json=FILE]
//                  [--type=f16|f32] [--sweep] [--plans] [--searched] [--once] [--no-peers] [--formats] [--mixed]
//                  [--studies] [--dense]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "bench/sparse/matrices.h"
#include "bench/sparse_gpu/bench.h"
#include "passes/sparse/read.h"
#include "tests/command_line.h"

namespace apl::bench {
namespace {

// A real matrix where its file is, else one made like it.
Case make_case(const MatrixName& name, const Request& request) {
  const std::string real = name.name.substr(0, name.name.find("_syn"));
  if (!request.folder.empty() && (real == "cora" || real == "citeseer" || real == "pubmed")) {
    std::ifstream in(request.folder + "/" + real + ".mtx");
    if (in) {
      const std::string text(std::istreambuf_iterator<char>(in), {});
      sparse::ReadOptions pattern;
      pattern.values = false;
      return {real, name.kind, need(sparse::read_matrix(text, pattern))};
    }
  }
  auto made = make_matrix(name.name, static_cast<int>(std::thread::hardware_concurrency()));
  if (!made) give_up("no matrix " + name.name);
  return {name.name, name.kind, std::move(*made)};
}

int main_of(const Request& request) {
  Bench bench(request);
  const std::vector<MatrixName>& known = matrix_names();
  for (const MatrixName& name : known) {
    const bool is_asked = request.matrices.empty() || std::find(request.matrices.begin(), request.matrices.end(),
                                                                name.name) != request.matrices.end();
    if (is_asked) bench.run(make_case(name, request));
  }
  for (const std::string& name : request.matrices)
    if (std::none_of(known.begin(), known.end(), [&](const MatrixName& other) { return other.name == name; }))
      bench.run(make_case({name, kind_of(name), 0}, request));
  return bench.finish() ? 0 : 1;
}

}  // namespace
}  // namespace apl::bench

int main(int argc, char** argv) {
  apl::bench::Request request;
  apl::CommandLine line("Sparse products on a GPU beside cuSPARSE and cuBLAS");
  line.flag("--emulate", request.emulate, "run in emulation, without times");
  line.flag("--sweep", request.sweep, "try many parameters beside the rules'");
  line.flag("--plans", request.plans, "search for plans, and run those that the model likes");
  line.flag("--searched", request.searched, "run the plans that a search finds by the models alone");
  line.flag("--studies", request.studies, "run the plans of searches that leave something out");
  line.flag("--dense", request.dense, "run our own dense product, too");
  bool mixed = false;
  line.flag("--mixed", mixed, "24 matrices of several patterns instead of those of bench/sparse/matrices.h");
  line.flag("--formats", request.formats, "cuSPARSE with COO, BSR and blocked ELL, too");
  std::string type = "f16";
  line.choice("--type", type, {"f16", "f32"}, "of the elements");
  line.flag("--once", request.once, "check results, time nothing");
  line.flag("--no-peers", request.no_peers, "ours alone");
  line.option("--operators", request.operators);
  line.option("--matrices", request.matrices);
  line.option("--widths", request.widths, "of the dense operand");
  line.option("--folder", request.folder, "with cora.mtx, citeseer.mtx, pubmed.mtx");
  line.option("--json", request.json);
  if (const auto code = line.parse(argc, argv)) return *code;
  if (mixed) request.matrices = apl::bench::mixed_names();
  request.type = *apl::scalar_type_from_text(type);
  return apl::bench::main_of(request);
}
