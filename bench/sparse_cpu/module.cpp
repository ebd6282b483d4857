// Products on this machine's cores: ours, called as a library and by a compiled program, and Eigen's, for
// bench/sparse_cpu.py, which times scipy's in the same process. All calls for one matrix and one operator: a Case.
// Compiled for the machine that it runs on, as Eigen has to be.
#include <omp.h>

#include <Eigen/Sparse>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <random>

#include "bench/sparse/matrices.h"
#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "ir/sparse_arguments.h"
#include "passes/pipeline.h"
#include "passes/sparse/plan.h"
#include "passes/sparse/read.h"
#include "passes/sparse/search.h"
#include "runtime/program/program.h"
#include "runtime/sparse/cpu.h"
#include "runtime/sparse/csr_view.h"
#include "suite/sparse/measure.h"

namespace {

using namespace apl::sparse;

struct Free {
  void operator()(apl_sparse_plan* plan) const { apl_sparse_plan_free(plan); }
  void operator()(apl_sparse_tiles* tiles) const { apl_sparse_tiles_free(tiles); }
  void operator()(apl_sparse_cpu_packed* packed_tiles) const { apl_sparse_cpu_packed_free(packed_tiles); }
};

template <class Number>
using Dense = Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Values and dense operands of one type; which of them are used depends on the operator.
template <class Number>
struct Operands {
  std::vector<Number> values, packed, samples;
  Dense<Number> b, c, x;
  Eigen::SparseMatrix<Number, Eigen::RowMajor> matrix;
};

struct Case {
  Csr matrix;
  std::vector<int> row_start;  // 32 bits, as Eigen and scipy have them
  std::string text;            // of the plan
  std::string format;          // what it is
  std::unique_ptr<apl_sparse_tiles, Free> tiles;
  std::unique_ptr<apl_sparse_cpu_packed, Free> packed_tiles;
  bool sddmm = false;
  std::int64_t dense = 0, part = 0;
  Operands<float> f32;
  Operands<double> f64;
  Operands<_Float16> f16;  // without Eigen, which is too slow to be a peer
  std::optional<apl::Program> program;
  std::vector<apl::HostValue> inputs;  // of the program
};

template <class Number>
constexpr apl_sparse_type type_of() {
  return sizeof(Number) == 2 ? APL_SPARSE_F16 : sizeof(Number) == 4 ? APL_SPARSE_F32 : APL_SPARSE_F64;
}

template <class Run>
double nanoseconds(const Run& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

template <class Number>
void prepare(Case& c, Operands<Number>& o) {
  std::mt19937 random(5);
  const auto number = [&] { return static_cast<Number>(static_cast<float>(random() % 2048) / 1024 - 1); };
  const Csr& m = c.matrix;
  o.values.resize(static_cast<std::size_t>(m.nonzeros()));
  for (Number& value : o.values) value = number();
  o.samples.assign(o.values.size(), Number(0));
  const auto fill = [&](Dense<Number>& d, std::int64_t rows) {
    d.resize(rows, c.dense);
    for (std::int64_t k = 0; k < rows * c.dense; ++k) d.data()[k] = number();
  };
  fill(o.b, m.columns);
  fill(o.x, c.sddmm ? m.rows : 0);
  o.c.setZero(c.sddmm ? 0 : m.rows, c.dense);
  if constexpr (sizeof(Number) != 2)
    if (!c.sddmm)
      o.matrix = Eigen::Map<const Eigen::SparseMatrix<Number, Eigen::RowMajor>>(
          m.rows, m.columns, m.nonzeros(), c.row_start.data(), m.column.data(), o.values.data());
  o.packed.resize(apl_sparse_cpu_values_bytes(c.packed.get(), type_of<Number>()) / sizeof(Number) + 1);
  apl_sparse_cpu_values(c.packed.get(), type_of<Number>(), o.values.data(), o.packed.data());
}

template <class Number>
double run_ours(Case& c, Operands<Number>& o, int threads) {
  apl_sparse_cpu_call call{};
  call.packed = c.packed.get();
  call.type = type_of<Number>();
  call.sddmm = c.sddmm;
  call.values = o.packed.data();
  call.dense = c.dense;
  call.part = c.part;
  call.b = o.b.data();
  call.x = o.x.data();
  call.y = o.b.data();
  call.b_stride = call.x_stride = call.y_stride = call.c_stride = c.dense;
  call.c = o.c.data();
  call.result = o.samples.data();
  return nanoseconds([&] {
    const int count = apl_sparse_cpu_threads(&call, threads);
    if (count == 1) {
      apl_sparse_cpu_work(&call);
    } else {
#pragma omp parallel num_threads(count)
      apl_sparse_cpu_work(&call);
    }
  });
}

template <class Number>
double run_eigen(Case& c, Operands<Number>& o, int threads) {
  Eigen::setNbThreads(threads);
  if (!c.sddmm && c.dense == 1) {
    const Eigen::Map<const Eigen::Matrix<Number, Eigen::Dynamic, 1>> b(o.b.data(), c.matrix.columns);
    Eigen::Map<Eigen::Matrix<Number, Eigen::Dynamic, 1>> result(o.c.data(), c.matrix.rows);
    return nanoseconds([&] { result.noalias() = o.matrix * b; });
  }
  if (!c.sddmm) return nanoseconds([&] { o.c.noalias() = o.matrix * o.b; });
  // Eigen has no sampled product: its dot products over the non-zeros.
  return nanoseconds([&] {
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads)
    for (std::int64_t row = 0; row < c.matrix.rows; ++row)
      for (int k = c.row_start[row]; k < c.row_start[row + 1]; ++k)
        o.samples[k] = o.values[k] * o.x.row(row).dot(o.b.row(c.matrix.column[k]));
  });
}

// The largest difference between our result and that of plain loops, over the largest result.
template <class Number>
double error_of(Case& c, Operands<Number>& o) {
  run_ours(c, o, 2);
  double worst = 0, largest = 1e-30;
  for (std::int64_t row = 0; row < c.matrix.rows; row += 1 + c.matrix.rows / 997)
    for (std::int64_t j = 0; j < (c.sddmm ? 1 : c.dense); ++j) {
      double sum = 0;
      for (int k = c.row_start[row]; k < c.row_start[row + 1]; ++k) {
        double product = static_cast<double>(o.values[k]);
        if (c.sddmm) {
          sum = 0;
          for (std::int64_t d = 0; d < c.dense; ++d)
            sum += static_cast<double>(o.x(row, d)) * static_cast<double>(o.b(c.matrix.column[k], d));
          sum *= product;
          worst = std::max(worst, std::abs(sum - static_cast<double>(o.samples[k])));
          largest = std::max(largest, std::abs(sum));
        } else {
          sum += product * static_cast<double>(o.b(c.matrix.column[k], j));
        }
      }
      if (c.sddmm) continue;
      worst = std::max(worst, std::abs(sum - static_cast<double>(o.c(row, j))));
      largest = std::max(largest, std::abs(sum));
    }
  return worst / largest;
}

constexpr const char* kPrograms = R"(
#[sparse(A)]
entry spmm [n][m][b] (A: [n][m]T) (B: [m][b]T): [n][b]T =
  map (\row -> map (\col -> T.sum (map2 (*) row col)) (transpose B)) A

#[sparse(A)]
entry spmv [n][m] (A: [n][m]T) (x: [m]T): [n]T = map (\row -> T.sum (map2 (*) row x)) A

#[sparse(A, result)]
entry sddmm [n][m][k] (A: [n][m]T) (X: [n][k]T) (Y: [m][k]T): [n][m]T =
  map2 (\row x -> map2 (\a y -> a * T.sum (map2 (*) x y)) row Y) A X
)";

const char* entry_of(const Case& c) { return c.sddmm ? "sddmm" : c.dense == 1 ? "spmv" : "spmm"; }

// Compiles the program for the case's operator, and makes its arguments of the case's operands.
template <class Number>
bool prepare_program(Case& c, const Operands<Number>& o) {
  constexpr auto kType = sizeof(Number) == 4 ? apl::ScalarType::f32 : apl::ScalarType::f64;
  std::string text = kPrograms;
  for (std::size_t at = 0; (at = text.find('T', at)) != std::string::npos;)
    text.replace(at, 1, sizeof(Number) == 4 ? "f32" : "f64");
  auto module = apl::compile({"products.fut", text}, {});
  if (!module) return false;
  const auto pipeline =
      apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory, apl::Machine::cpu), apl::PassRegistry::builtin());
  if (!pipeline || !apl::run_pipeline(*module, *pipeline, {})) return false;
  auto host = apl::generate(*module, apl::c_target());
  if (!host) return false;
  auto program = apl::Program::load(host->host, {});
  if (!program) return false;
  c.program.emplace(std::move(*program));
  const auto array = [](const auto& elements, apl::ScalarType type, std::vector<std::int64_t> shape) {
    apl::HostValue value = apl::HostValue::zeros(type, std::move(shape));
    std::memcpy(value.data.data(), elements, value.data.size());
    return value;
  };
  apl::HostCsr matrix{c.matrix.rows, c.matrix.columns, {}, {}, {}};
  matrix.row_start.assign(c.matrix.row_start.begin(), c.matrix.row_start.end());
  matrix.column.assign(c.matrix.column.begin(), c.matrix.column.end());
  matrix.values = array(o.values.data(), kType, {c.matrix.nonzeros()});
  const apl::Function& entry = *module->find_entry(entry_of(c));
  c.inputs = apl::soa_values(matrix, apl::find_soas(entry).front().fields);
  if (c.sddmm) c.inputs.push_back(array(o.x.data(), kType, {c.matrix.rows, c.dense}));
  std::vector<std::int64_t> shape = {c.matrix.columns};
  if (c.sddmm || c.dense > 1) shape.push_back(c.dense);
  c.inputs.push_back(array(o.b.data(), kType, std::move(shape)));
  return true;
}

bool use_plan(Case& c, const std::string& text) {
  apl_sparse_plan* plan = nullptr;
  char message[200];
  if (apl_sparse_plan_parse(text.data(), text.size(), &plan, message, sizeof message) != 0) return false;
  const std::unique_ptr<apl_sparse_plan, Free> owned(plan);
  const apl_sparse_csr csr = apl::csr_view(c.matrix);
  apl_sparse_tiles* tiles = nullptr;
  if (apl_sparse_pack(&csr, plan, &tiles) != 0) return false;
  c.packed.reset();
  c.tiles.reset(tiles);
  apl_sparse_cpu_packed* packed_tiles = nullptr;
  if (apl_sparse_cpu_packed_new(tiles, 2, &packed_tiles) != 0) return false;
  c.packed.reset(packed_tiles);
  c.text = text;
  c.part = plan->dense_part;
  return true;
}

}  // namespace

extern "C" {

// A matrix of bench/sparse/matrices.h, or a file of Matrix Market. Null if there is none.
Case* sparse_case(const char* name, int threads) {
  auto made = std::make_unique<Case>();
  if (const std::string path = name; path.find(".mtx") != std::string::npos) {
    std::ifstream in(path, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    auto file = read_matrix(text);
    if (!file) return nullptr;
    made->matrix = std::move(*file);
    made->matrix.values.clear();
  } else if (auto matrix = apl::bench::make_matrix(name, threads)) {
    made->matrix = std::move(*matrix);
  } else {
    return nullptr;
  }
  made->row_start.assign(made->matrix.row_start.begin(), made->matrix.row_start.end());
  return made.release();
}
void sparse_free(Case* c) { delete c; }
long sparse_size(const Case* c, int which) {
  return which == 0 ? c->matrix.rows : which == 1 ? c->matrix.columns : c->matrix.nonzeros();
}
const int* sparse_row_start(const Case* c) { return c->row_start.data(); }
const int* sparse_column(const Case* c) { return c->matrix.column.data(); }

const char* sparse_plan(const Case* c) { return c->text.c_str(); }
int sparse_use_plan(Case* c, const char* text) { return use_plan(*c, text); }
// The plan that a search finds, which chooses by running candidates here. `milliseconds` stop it; 0: nothing does.
int sparse_search(Case* c, int sddmm, long dense, int bytes, int milliseconds) {
  SearchOptions options;
  options.problem = {sddmm ? Operator::sddmm : Operator::spmm, dense, bytes};
  options.seconds = milliseconds / 1e3;
  apl::sparse::Measure measure(c->matrix, options.problem);
  options.measure = std::ref(measure);
  Plan plan = search(c->matrix, *builtin_profile("cpu"), options);
  // As blocks the dense product is one of ours, too.
  if (plan.dense) {
    plan.dense = false;
    plan.groups.assign(static_cast<std::size_t>((plan.rows + kGroupRows - 1) / kGroupRows),
                       {{{64, 0, 1}}, Remainder::ell});
  }
  c->format = plan.measured.empty() ? "" : plan.measured.front().first;
  return use_plan(*c, to_text(plan));
}
const char* sparse_format(const Case* c) { return c->format.c_str(); }
unsigned long sparse_key(const Case* c) { return pattern_hash(c->matrix); }

// Operands for the plan that is in use: bytes of an element are 2, 4 or 8. Gives the error of a first product.
double sparse_prepare(Case* c, int sddmm, long dense, int bytes) {
  c->sddmm = sddmm;
  c->dense = dense;
  if (bytes == 2) return prepare(*c, c->f16), error_of(*c, c->f16);
  if (bytes == 4) return prepare(*c, c->f32), error_of(*c, c->f32);
  return prepare(*c, c->f64), error_of(*c, c->f64);
}
// The least of several runs of a program with the same operands, after one that does not count; negative if there is
// none.
double sparse_program(Case* c, int bytes, int threads, int segments) {
  if (!c->program && !(bytes == 4 ? prepare_program(*c, c->f32) : prepare_program(*c, c->f64))) return -1;
  omp_set_num_threads(threads);
  const auto times = c->program->benchmark(entry_of(*c), c->inputs, segments);
  return times && !times->empty() ? 1000 * *std::min_element(times->begin(), times->end()) : -1;
}
double sparse_run(Case* c, int bytes, int threads, int eigen) {
  if (eigen) return bytes == 4 ? run_eigen(*c, c->f32, threads) : run_eigen(*c, c->f64, threads);
  if (bytes == 2) return run_ours(*c, c->f16, threads);
  return bytes == 4 ? run_ours(*c, c->f32, threads) : run_ours(*c, c->f64, threads);
}
const void* sparse_operand(const Case* c, int bytes, int which) {
  if (bytes == 4) return which == 0 ? c->f32.values.data() : which == 1 ? c->f32.b.data() : c->f32.c.data();
  return which == 0 ? c->f64.values.data() : which == 1 ? c->f64.b.data() : c->f64.c.data();
}
}
