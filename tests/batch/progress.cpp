#include "tests/batch/progress.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <utility>

#include "ir/system_error.h"

namespace apl::testing {

Progress::Progress(std::string file, std::string key, std::uint64_t total)
    : file_(std::move(file)), key_(std::move(key)), total_(total) {
  if (!file_.empty()) load();
  resumed_at_ = done_;
}

void Progress::load() {
  std::ifstream in(file_);
  std::string line;
  if (!std::getline(in, line) || line != key_ || !(in >> done_)) {
    done_ = 0;
    return;
  }
  for (std::uint64_t count = 0; in >> count && in.ignore() && std::getline(in, line);) counts_[line] = count;
}

Status Progress::save() const {
  std::string text = fmt::format("{}\n{}\n", key_, done_);
  for (const auto& [name, count] : counts_) text += fmt::format("{} {}\n", count, name);
  const std::string temporary = file_ + ".new";
  if (std::ofstream(temporary) << text && std::rename(temporary.c_str(), file_.c_str()) == 0) return Unit{};
  return system_error(errno, "cannot write " + file_);
}

std::uint64_t Progress::sum(std::string_view prefix) const {
  std::uint64_t sum = 0;
  for (const auto& [name, count] : counts_)
    if (name.starts_with(prefix)) sum += count;
  return sum;
}

Status Progress::advance(std::uint64_t programs) {
  done_ += programs;
  return file_.empty() ? Status(Unit{}) : save();
}

std::string Progress::line() const {
  const auto failed = counts_.find("failed");
  std::string line = fmt::format("{} of {}, {} failed", done_, total_, failed == counts_.end() ? 0 : failed->second);
  if (done_ <= resumed_at_ || done_ >= total_) return line;
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
  const double left = spent.count() / static_cast<double>(done_ - resumed_at_) * static_cast<double>(total_ - done_);
  return line + (left < 120 ? fmt::format(", {:.0f} s left", left) : fmt::format(", {:.0f} min left", left / 60));
}

}  // namespace apl::testing
