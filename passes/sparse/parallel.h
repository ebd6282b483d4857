// Work shared out to threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace apl::sparse {

// How many threads to use; 0 is one a processor.
inline int thread_count(int wanted) {
  return wanted > 0 ? wanted : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// run(worker) in `threads` threads, the caller being one of them.
template <class Run>
void on_threads(int threads, const Run& run) {
  std::vector<std::thread> others;
  for (int worker = 1; worker < threads; ++worker) others.emplace_back([&run, worker] { run(worker); });
  run(0);
  for (std::thread& other : others) other.join();
}

// run(begin, end) over pieces of [0, count), handed out as threads become free.
template <class Run>
void in_pieces(std::int64_t count, std::int64_t piece, int threads, const Run& run) {
  const std::int64_t pieces = (count + piece - 1) / piece;
  std::atomic<std::int64_t> next = 0;
  on_threads(static_cast<int>(std::min<std::int64_t>(thread_count(threads), std::max<std::int64_t>(pieces, 1))),
             [&](int) {
               for (std::int64_t k = next++; k < pieces; k = next++) run(k * piece, std::min(count, (k + 1) * piece));
             });
}

}  // namespace apl::sparse
