// The loops around micro-kernels of packed contractions: positions, orders of dims, runs and blocks.
// C that programs are made of, of which a test needs a part.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
// So that small contractions take all threads, and split the depth.
#define APL_PACKED_WORK_OF_THREAD 512
#define APL_PACKED_DEPTH_OF_THREAD 8
#include "runtime/backends/packed.h"
#pragma GCC diagnostic pop

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

std::vector<std::int64_t> all_positions(const apl_packed_group& group, const apl_packed_strides& strides) {
  std::vector<std::int64_t> result;
  for (std::int64_t flat = 0; flat < apl_packed_size(&group); ++flat) {
    std::int64_t left = flat, position = 0;
    for (int d = group.rank - 1; d >= 0; --d)
      position += left % group.size[d] * strides.stride[d], left /= group.size[d];
    result.push_back(position);
  }
  return result;
}

struct Dims {
  apl_packed_group group{};
  apl_packed_strides strides{};
};

Dims random_dims(std::mt19937& random, int rank) {
  Dims dims;
  dims.group.rank = rank;
  for (int d = 0; d < rank; ++d) {
    dims.group.size[d] = 1 + static_cast<std::int64_t>(random() % 5);
    dims.strides.stride[d] = static_cast<std::int64_t>(random() % 40) - 5;
  }
  return dims;
}

}  // namespace

TEST_CASE("positions of any part of any group of dims") {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const Dims dims = random_dims(random, static_cast<int>(random() % 5));
    const std::vector<std::int64_t> all = all_positions(dims.group, dims.strides);
    const std::size_t first = random() % all.size(), count = random() % (all.size() - first + 1);
    std::vector<std::int64_t> got(count, -1000);
    apl_packed_positions(&dims.group, &dims.strides, static_cast<std::int64_t>(first), static_cast<std::int64_t>(count),
                         got.data());
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(first);
    CHECK(got == std::vector<std::int64_t>(from, from + static_cast<std::ptrdiff_t>(count)));
  }
}

TEST_CASE("no positions of an empty dim") {
  Dims dims;
  dims.group.rank = 2;
  dims.group.size[0] = 3;
  std::int64_t untouched = 7;
  apl_packed_positions(&dims.group, &dims.strides, 0, 0, &untouched);
  CHECK(untouched == 7);
}

TEST_CASE("runs need neighbours in the result and in the flattened dim") {
  const std::vector<std::int64_t> positions{4, 5, 6, 9, 10, 11}, indices{0, 1, 2, 3, 4, 9};
  std::vector<std::int64_t> runs(6);
  apl_packed_runs(positions.data(), indices.data(), 6, runs.data());
  CHECK(runs == std::vector<std::int64_t>{3, 2, 1, 2, 1, 1});
}

TEST_CASE("the order of dims is that of memory, and every element keeps its operands") {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    apl_packed p{};
    const auto fill = [&](apl_packed_group& group, std::vector<apl_packed_strides*> tables) {
      group.rank = static_cast<std::int32_t>(random() % 4);
      for (int d = 0; d < group.rank; ++d) {
        group.size[d] = 1 + static_cast<std::int64_t>(random() % 4);
        for (apl_packed_strides* table : tables) table->stride[d] = static_cast<std::int64_t>(random() % 30);
      }
    };
    p.m_operands = p.n_operands = 1;
    p.reorders = random() % 2 == 0;
    fill(p.m, {&p.m_row[0], &p.m_result});
    fill(p.n, {&p.n_row[0], &p.n_result});
    fill(p.k, {&p.m_step[0], &p.n_step[0]});
    const apl_packed before = p;
    apl_packed_order(&p);
    const auto pairs = [](const apl_packed_group& group, const apl_packed_strides& a, const apl_packed_strides& b) {
      const auto first = all_positions(group, a), second = all_positions(group, b);
      std::vector<std::pair<std::int64_t, std::int64_t>> result;
      for (std::size_t k = 0; k < first.size(); ++k) result.emplace_back(first[k], second[k]);
      std::ranges::sort(result);
      return result;
    };
    CHECK(pairs(p.m, p.m_row[0], p.m_result) == pairs(before.m, before.m_row[0], before.m_result));
    CHECK(pairs(p.n, p.n_row[0], p.n_result) == pairs(before.n, before.n_row[0], before.n_result));
    CHECK(pairs(p.k, p.m_step[0], p.n_step[0]) == pairs(before.k, before.m_step[0], before.n_step[0]));
    if (!p.reorders) CHECK(all_positions(p.k, p.m_step[0]) == all_positions(before.k, before.m_step[0]));
    // Indices are those of the dims as they were.
    apl_packed_strides index{};
    apl_packed_index(&before.m, &index);
    CHECK(pairs(p.m, p.m_index, p.m_result) == pairs(before.m, index, before.m_result));
    // N ends with the fastest dim of the result, or of the operand where more is read than written.
    const bool by_result = apl_packed_size(&p.m) >= apl_packed_size(&p.k);
    const apl_packed_strides& of = by_result ? p.n_result : p.n_row[0];
    const int fastest = apl_packed_fastest(&p.n, &of);
    if (fastest >= 0) CHECK(of.stride[fastest] == of.stride[p.n.rank - 1]);
  }
}

TEST_CASE("blocks cover all panels, and memory holds them") {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    apl_packed p{};
    apl_packed_kernel& tile = p.kernels[0];
    tile.rows = 1 + static_cast<std::int32_t>(random() % 14), tile.columns = 8 << (random() % 4);
    p.m_bytes = p.n_bytes = p.accumulator_bytes = 4 << (random() % 3);
    p.m_operands = p.n_operands = 1;
    const std::int64_t most[] = {1, 10, 300, 20000};
    const auto size = [&] {
      return static_cast<std::int64_t>(random() % static_cast<unsigned>(most[random() % 4] + 1));
    };
    p.m.rank = p.n.rank = p.k.rank = p.batch.rank = 1;
    p.m.size[0] = size(), p.n.size[0] = size(), p.k.size[0] = size(), p.batch.size[0] = 1 + size() % 50;
    const apl_packed_blocks b = apl_packed_cut_blocks(&p);
    CHECK(b.depth >= 1);
    CHECK(b.m_parts >= 1);
    CHECK(b.n_parts >= 1);
    CHECK(b.threads >= 1);
    CHECK(b.m_panels * b.m_parts * tile.rows >= p.m.size[0]);
    CHECK(b.n_parts <= b.n_panels);
    const apl_packed_space s = apl_packed_space_of(&p, &b);
    CHECK(s.all >= b.threads * b.m_panels * b.depth * tile.rows * p.m_bytes);
    CHECK(s.all >= b.teams * b.n_panels * b.depth * tile.columns * p.n_bytes);
  }
}

TEST_CASE("steps in blocks of two dims are all steps, and runs are neighbours in memory") {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    apl_packed p{};
    p.m_operands = p.n_operands = 1, p.reorders = true;
    p.k.rank = 2 + static_cast<std::int32_t>(random() % 2);
    for (int d = 0; d < p.k.rank; ++d) {
      p.k.size[d] = 2 + static_cast<std::int64_t>(random() % 40);
      p.m_step[0].stride[d] = p.n_step[0].stride[d] = 1000 * (d + 1);
    }
    // Contiguous along a dim of its own each, or both along the last.
    const int last = p.k.rank - 1, other = random() % 4 == 0 ? last : 0;
    p.m_step[0].stride[last] = 1, p.n_step[0].stride[other] = 1;
    const apl_packed before = p;
    apl_packed_order(&p);
    CHECK(p.blocked == (other != last));
    const std::int64_t all = apl_packed_size(&p.k);
    std::vector<std::int64_t> m(static_cast<std::size_t>(all)), n(m);
    // In parts, as blocks of the depth are.
    for (std::int64_t q = 0; q < all;) {
      const std::int64_t count = std::min<std::int64_t>(all - q, 1 + static_cast<std::int64_t>(random() % 300));
      apl_packed_steps(&p, &p.m_step[0], q, count, m.data() + q);
      apl_packed_steps(&p, &p.n_step[0], q, count, n.data() + q);
      q += count;
    }
    std::vector<std::pair<std::int64_t, std::int64_t>> pairs, expected;
    const auto all_m = all_positions(before.k, before.m_step[0]), all_n = all_positions(before.k, before.n_step[0]);
    for (std::size_t q = 0; q < m.size(); ++q)
      pairs.emplace_back(m[q], n[q]), expected.emplace_back(all_m[q], all_n[q]);
    std::ranges::sort(pairs), std::ranges::sort(expected);
    CHECK(pairs == expected);
    for (const auto& [steps, stride] : {std::pair(&m, p.m_stride), std::pair(&n, p.n_stride)}) {
      std::vector<std::int64_t> first(m.size()), length(m.size()), seen(m.size());
      const std::int64_t runs = apl_packed_step_runs(steps->data(), all, 1, all, stride, first.data(), length.data());
      bool neighbours = true;
      for (std::size_t r = 0; r < static_cast<std::size_t>(runs); ++r)
        for (std::int64_t x = 0; x < length[r]; ++x) {
          const auto q = static_cast<std::size_t>(first[r] + x * stride);
          neighbours = neighbours && q < m.size();
          if (!neighbours) break;
          ++seen[q];
          neighbours = (*steps)[q] == (*steps)[static_cast<std::size_t>(first[r])] + x;
        }
      CHECK(neighbours);
      if (runs > 0) CHECK(std::ranges::all_of(seen, [](std::int64_t times) { return times == 1; }));
      // Whole lines are read by long runs.
      if (stride == 1 && p.k.size[last] >= 16) CHECK(runs > 0);
    }
  }
}

namespace {

// A contraction of integers, whose functions count what they read and write out of bounds.
struct Product {
  std::vector<std::int32_t> m, n, result;
};
constexpr std::int32_t kUnwritten = std::numeric_limits<std::int32_t>::min();
constexpr int kTiles[kPackedKernels][2] = {{5, 8}, {5, 4}, {6, 8}, {2, 8}, {7, 4}, {3, 4}, {7, 2}, {3, 2}, {3, 12}};
// What each test's arrays begin with in every batch.
std::int64_t m_batch, n_batch, result_batch;

template <bool of_n>
void pack(const void* arguments, const std::int64_t* batch, const apl_packed_panel* panel, void* packed) {
  const auto& from = of_n ? static_cast<const Product*>(arguments)->n : static_cast<const Product*>(arguments)->m;
  auto* to = static_cast<std::int32_t*>(packed);
  for (std::int64_t q = 0; q < panel->depth; ++q)
    for (std::int64_t r = 0; r < panel->most; ++r)
      to[q * panel->most + r] = from.at(
          static_cast<std::size_t>((of_n ? n_batch : m_batch) * batch[0] + panel->row[0][r] + panel->step[0][q]));
  if (!panel->contiguous) return;
  for (std::int64_t r = 0; r < panel->most; ++r) CHECK(panel->row[0][r] == panel->row[0][0] + r);
}

template <int kernel>
void compute(const void* arguments, const std::int64_t* batch, std::int64_t depth, const apl_packed_panel* m,
             const void* n, void* accumulators, bool first, const apl_packed_tile*) {
  constexpr std::int64_t rows = kTiles[kernel][0], columns = kTiles[kernel][1];
  auto* sums = static_cast<std::int32_t*>(accumulators);
  const auto n_element = [&](std::int64_t q, std::int64_t j) {
    if (kernel != kPackedInPlace) return static_cast<const std::int32_t*>(n)[q * columns + j];
    const auto* panel = static_cast<const apl_packed_panel*>(n);
    const std::int64_t at = n_batch * batch[0] + panel->row[0][0] + panel->step[0][q] + j;
    return static_cast<const Product*>(arguments)->n.at(static_cast<std::size_t>(at));
  };
  if (first) std::fill_n(sums, rows * columns, 0);
  const auto& source = static_cast<const Product*>(arguments)->m;
  for (std::int64_t q = 0; q < depth; ++q)
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int32_t element =
          kernel < kPackedDirect
              ? static_cast<const std::int32_t*>(m->packed)[q * rows + i]
              : source.at(static_cast<std::size_t>(m_batch * batch[0] + m->row[0][i] + m->step[0][q]));
      for (std::int64_t j = 0; j < columns; ++j) sums[i * columns + j] += element * n_element(q, j);
    }
}

void store(const void* arguments, const std::int64_t* batch, const apl_packed_tile* tile, const void* accumulators) {
  auto& result = const_cast<Product*>(static_cast<const Product*>(arguments))->result;
  for (std::int64_t i = 0; i < tile->rows; ++i)
    for (std::int64_t j = 0; j < tile->columns; ++j) {
      std::int32_t& element =
          result.at(static_cast<std::size_t>(result_batch * batch[0] + tile->row[i] + tile->column[j]));
      CHECK(element == kUnwritten);
      element = static_cast<const std::int32_t*>(accumulators)[i * tile->width + j];
    }
}

void combine(const void*, const std::int64_t*, const apl_packed_tile* tile, void* accumulators, const void* later) {
  for (std::int64_t x = 0; x < tile->height * tile->width; ++x)
    static_cast<std::int32_t*>(accumulators)[x] += static_cast<const std::int32_t*>(later)[x];
}

// Some threads come at once, some when all is done, as those that had no core.
void run_by_threads(std::int64_t threads, const apl_work* work) {
  const auto units = std::make_unique<apl_units>();
  apl_units_open(units.get(), threads, work);
  const std::int64_t all = apl_units_before(work, work->phases);
  std::vector<std::thread> others;
  for (std::int64_t me = 1; me < threads; ++me)
    others.emplace_back([&units, all, me] {
      if (me % 2 == 0) apl_units_wait(units.get(), all);
      apl_units_work(units.get(), me);
    });
  apl_units_work(units.get(), 0);
  apl_units_wait(units.get(), all);
  for (std::thread& other : others) other.join();
}

// None comes in time, and the caller does what is cut for more.
void run_by_caller(std::int64_t threads, const apl_work* work) {
  const auto units = std::make_unique<apl_units>();
  apl_units_open(units.get(), threads, work);
  apl_units_work(units.get(), 0);
}

template <int... kernel>
void set_kernels(apl_packed& p, std::integer_sequence<int, kernel...>) {
  ((p.kernels[kernel] = {kTiles[kernel][0], kTiles[kernel][1], compute<kernel>}), ...);
}

}  // namespace

TEST_CASE("every result is computed once, whatever the sizes and layouts, within the memory asked for") {
  std::mt19937 random(5);
  int direct = 0, packed = 0, split = 0, alone = 0;
  for (int round = 0; round < 400; ++round) {
    apl_packed p{};
    // Without OpenMP, which unit tests are compiled without.
    const int threads = 1 + round % 5;
    apl_thread_pool = round % 3 == 0 ? run_by_caller : run_by_threads;
    setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 1);
    const std::int64_t most[] = {3, 20, 120};
    const auto size = [&] { return static_cast<std::int64_t>(random() % static_cast<unsigned>(most[random() % 3])); };
    p.batch.rank = p.m.rank = p.n.rank = p.k.rank = 1;
    const std::int64_t batch = round % 4 == 0 ? 1 + size() % 5 : 1, m = size(), n = size(),
                       k = size() * (round % 9 ? 1 : 20);
    p.batch.size[0] = batch, p.m.size[0] = m, p.n.size[0] = n, p.k.size[0] = k;
    const bool by_m = random() % 2, by_n = random() % 2, by_result = random() % 2;
    p.m_row[0].stride[0] = by_m ? 1 : k, p.m_step[0].stride[0] = by_m ? m : 1;
    p.n_row[0].stride[0] = by_n ? 1 : k, p.n_step[0].stride[0] = by_n ? n : 1;
    p.m_result.stride[0] = by_result ? 1 : n, p.n_result.stride[0] = by_result ? m : 1;
    m_batch = m * k, n_batch = n * k, result_batch = m * n;
    p.m_bytes = p.n_bytes = p.accumulator_bytes = 4, p.m_operands = p.n_operands = 1;
    p.reorders = random() % 2;
    p.pack_m = pack<false>, p.pack_n = pack<true>, p.combine = combine, p.store = store;
    set_kernels(p, std::make_integer_sequence<int, kPackedKernels>());
    Product product;
    for (std::int64_t e = 0; e < batch * m * k; ++e) product.m.push_back(static_cast<std::int32_t>(random() % 19) - 9);
    for (std::int64_t e = 0; e < batch * n * k; ++e) product.n.push_back(static_cast<std::int32_t>(random() % 19) - 9);
    product.result.assign(static_cast<std::size_t>(batch * m * n), kUnwritten);
    std::vector<std::int32_t> want(product.result.size());
    const auto at = [&](const std::vector<std::int32_t>& array, std::int64_t position) {
      return array[static_cast<std::size_t>(position)];
    };
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          std::int32_t sum = 0;
          for (std::int64_t q = 0; q < k; ++q)
            sum += at(product.m, b * m_batch + i * p.m_row[0].stride[0] + q * p.m_step[0].stride[0]) *
                   at(product.n, b * n_batch + j * p.n_row[0].stride[0] + q * p.n_step[0].stride[0]);
          want[static_cast<std::size_t>(b * result_batch + i * p.m_result.stride[0] + j * p.n_result.stride[0])] = sum;
        }
    const apl_packed before = p;
    const std::int64_t bytes = apl_packed_run(&p, &product, nullptr);
    std::vector<char> space(static_cast<std::size_t>(bytes) + 64 + 64, 'x');
    char* const begin = space.data() + (64 - reinterpret_cast<std::uintptr_t>(space.data()) % 64);
    p = before;
    apl_packed_run(&p, &product, begin);
    CHECK(product.result == want);
    CHECK(std::all_of(begin + bytes, space.data() + space.size(), [](char c) { return c == 'x'; }));
    (apl_packed_is_direct(&p) ? direct : packed) += 1;
    split += apl_packed_k_parts(&p) > 1, alone += threads == 1;
    if (threads == 1) CHECK(apl_packed_k_parts(&p) == 1);
  }
  unsetenv("OMP_NUM_THREADS");
  CHECK(direct > 100);
  CHECK(packed > 20);
  CHECK(split > 20);
  CHECK(alone > 20);
}
