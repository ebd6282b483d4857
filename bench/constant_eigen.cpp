// Eigen's product of a sparse matrix with a dense one, for bench/constant.py: constant_eigen M.mtx WIDTH THREADS
// prints the median of the microseconds of some calls; with a fourth argument the least of ten times as many.
#include <Eigen/Sparse>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 4 || argc > 5) return 64;
  std::ifstream in(argv[1]);
  while (in.peek() == '%') in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  int rows = 0, columns = 0, count = 0;
  in >> rows >> columns >> count;
  std::vector<Eigen::Triplet<float>> entries;
  int i = 0, j = 0;
  for (float x = 0; in >> i >> j >> x;) entries.emplace_back(i - 1, j - 1, x);
  if (static_cast<int>(entries.size()) != count) return 1;
  Eigen::SparseMatrix<float, Eigen::RowMajor> a(rows, columns);
  a.setFromTriplets(entries.begin(), entries.end());
  const int width = std::atoi(argv[2]);
  Eigen::setNbThreads(std::atoi(argv[3]));
  using Dense = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Dense b = Dense::Random(columns, width);
  const Eigen::VectorXf x = b.col(0);
  Dense c(rows, width);
  Eigen::VectorXf y(rows);
  std::vector<double> times;
  for (int call = -5; call < (argc == 5 ? 1010 : 101); ++call) {
    const auto start = std::chrono::steady_clock::now();
    if (width == 1)
      y.noalias() = a * x;
    else
      c.noalias() = a * b;
    if (call >= 0)
      times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  std::printf("%.3f\n", times[argc == 5 ? 0 : times.size() / 2]);
  return (width == 1 ? y.sum() : c.sum()) == 1.5F ? 1 : 0;
}
