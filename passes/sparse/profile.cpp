// Device profiles: a line a number, in any order.
#include "passes/sparse/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <tuple>
#include <utility>

#include "machine/target/records.h"
#include "machine/target/target.h"

namespace apl::sparse {
namespace {

// The profile at the end of a machine's record.
constexpr std::string_view kFirstWord = "apl-device-profile";
// Rates of the dense product by the bytes of an element, where they are not that of `dense`.
constexpr std::array<std::string_view, 4> kDenseKeys = {"dense-1", "dense-2", "dense-4", "dense-8"};

Diagnostic bad_profile(std::uint32_t line, std::string message) {
  return make_error(Code::syntax_error, {line, 1, line, 1}, std::move(message));
}

class ProfileReader {
 public:
  explicit ProfileReader(std::string_view text) : text_(text) {}

  Result<Profile> read() {
    std::set<std::string> seen;
    while (next_line()) {
      if (words_.empty() || words_[0].starts_with('#')) continue;
      const std::string problem = read_line();
      if (!problem.empty()) return bad_profile(line_, problem);
      std::string key(words_[0]);
      if (words_.size() > 2 && !std::isdigit(static_cast<unsigned char>(words_[1][0])))
        key += " " + std::string(words_[1]);
      if (!seen.insert(key).second && key.find("block") == std::string::npos)
        return bad_profile(line_, fmt::format("`{}` is there twice", key));
    }
    for (const char* key : {"name", "workers", "launch", "peak", "dense", "spmm ell", "spmm segments", "sddmm ell",
                            "sddmm segments", "block-tile", "ell-widths", "ell-elements", "segment-length"})
      if (!seen.count(key)) return bad_profile(line_, fmt::format("`{}` is missing", key));
    std::sort(profile_.blocks.begin(), profile_.blocks.end(), [](const BlockCost& a, const BlockCost& b) {
      return std::tuple(a.op, a.bytes, a.height, a.dense) < std::tuple(b.op, b.bytes, b.height, b.dense);
    });
    return profile_;
  }

 private:
  bool next_line() {
    if (text_.empty()) return false;
    const std::size_t end = text_.find('\n');
    std::string_view line = text_.substr(0, end);
    text_ = end == std::string_view::npos ? std::string_view() : text_.substr(end + 1);
    ++line_;
    words_.clear();
    while (true) {
      const std::size_t begin = line.find_first_not_of(" \t\r");
      if (begin == std::string_view::npos) return true;
      const std::size_t stop = std::min(line.find_first_of(" \t\r", begin), line.size());
      const std::string_view word = line.substr(begin, stop - begin);
      const bool is_key = words_.empty() || (words_.size() == 1 && words_[0].ends_with("mm"));  // spmm, sddmm
      words_.push_back(is_key ? renamed(word) : word);
      line.remove_prefix(stop);
    }
  }

  // Keys of version 1 as they are called now.
  static std::string_view renamed(std::string_view word) {
    static constexpr std::pair<std::string_view, std::string_view> kOld[] = {{"lists", "ell-widths"},
                                                                             {"list-elements", "ell-elements"},
                                                                             {"run", "segments"},
                                                                             {"run-length", "segment-length"}};
    const auto* found = std::ranges::find(kOld, word, &std::pair<std::string_view, std::string_view>::first);
    return found == std::end(kOld) ? word : found->second;
  }

  // The numbers from word `first` on, `count` of them; false if they are not that.
  bool numbers(std::size_t first, std::size_t count, std::vector<double>& values, double least = 0) {
    values.clear();
    if (words_.size() != first + count) return false;
    for (std::size_t k = first; k < words_.size(); ++k) {
      double value = 0;
      const auto [end, error] = std::from_chars(words_[k].data(), words_[k].data() + words_[k].size(), value);
      if (error != std::errc() || end != words_[k].data() + words_[k].size() || !(value >= least) || value > 1e15)
        return false;
      values.push_back(value);
    }
    return true;
  }

  // What is wrong with the line, or nothing.
  std::string read_line() {
    const std::string_view key = words_[0];
    std::vector<double> v;
    if (key == kFirstWord) return numbers(1, 1, v) && (v[0] == 1 || v[0] == 2) ? "" : "only versions 1 and 2 are known";
    if (key == "name") {
      if (words_.size() != 2) return "expected a name";
      profile_.name = words_[1];
      return "";
    }
    if (key == "kind") {
      if (words_.size() != 2 || (words_[1] != "cpu" && words_[1] != "gpu")) return "expected cpu or gpu";
      profile_.gpu = words_[1] == "gpu";
      return "";
    }
    if (key == "spmm" || key == "sddmm") return read_operator(key == "spmm" ? Operator::spmm : Operator::sddmm);
    if (key == "ell-widths") return read_widths();
    if (key == "dense") {
      if (!numbers(1, 2, v) || v[0] == 0) return "expected a rate and a time";
      for (std::size_t k = 0; k < kDenseKeys.size(); ++k)
        if (!has_own_rate_[k]) profile_.dense_rates[k] = v[0];
      profile_.dense_launch = v[1];
      return "";
    }
    if (const auto* of = std::ranges::find(kDenseKeys, key); of != kDenseKeys.end()) {
      if (!numbers(1, 1, v) || v[0] == 0) return "expected a rate";
      const auto k = static_cast<std::size_t>(of - kDenseKeys.begin());
      profile_.dense_rates[k] = v[0];
      has_own_rate_[k] = true;
      return "";
    }
    const bool whole = key == "workers" || key == "ell-elements" || key == "segment-length";
    if (!numbers(1, 1, v, whole ? 1 : 0) || (whole && v[0] > 1e6)) return "expected a number";
    if (key == "workers") {
      profile_.workers = static_cast<int>(v[0]);
    } else if (key == "ell-elements") {
      profile_.ell_elements = static_cast<std::int64_t>(v[0]);
    } else if (key == "segment-length") {
      profile_.segment_length = static_cast<std::int64_t>(v[0]);
    } else if (key == "launch") {
      profile_.launch = v[0];
    } else if (key == "peak" && v[0] > 0) {
      profile_.peak = v[0];
    } else if (key == "block-tile") {
      profile_.block_tile = v[0];
    } else {
      return fmt::format("`{}` is no key of a profile", key);
    }
    return "";
  }

  std::string read_operator(Operator op) {
    std::vector<double> v;
    const std::string_view what = words_.size() > 1 ? words_[1] : std::string_view();
    if (what == "block") {
      if (!numbers(2, 3, v) && !numbers(2, 4, v))
        return "expected rows, iterations and nanoseconds, and for elements of how many bytes";
      if (v[0] != 8 && v[0] != 16 && v[0] != 32 && v[0] != 64) return "blocks have 8, 16, 32 or 64 rows";
      if (v[1] < 1 || v[2] <= 0) return "expected rows, iterations and nanoseconds";
      if (v.size() > 3 && v[3] != 1 && v[3] != 2 && v[3] != 4 && v[3] != 8) return "elements have 1, 2, 4 or 8 bytes";
      profile_.blocks.push_back({op, static_cast<std::int64_t>(v[0]), static_cast<std::int64_t>(v[1]), v[2],
                                 v.size() > 3 ? static_cast<std::int64_t>(v[3]) : 0});
      return "";
    }
    if (what != "ell" && what != "segments") return "expected block, ell or segments";
    if (!numbers(2, 4, v)) return "expected four numbers";
    const bool ell = what == "ell";
    Coefficients& line = op == Operator::spmm ? (ell ? profile_.spmm_ell : profile_.spmm_segments)
                                              : (ell ? profile_.sddmm_ell : profile_.sddmm_segments);
    line = {v[0], v[1], v[2], v[3]};
    return "";
  }

  std::string read_widths() {
    std::vector<double> v;
    if (words_.size() > 17 || !numbers(1, words_.size() - 1, v, 1) || v.empty()) return "expected 1 to 16 widths";
    for (std::size_t k = 0; k < v.size(); ++k) {
      if (v[k] > 1 << 20 || (k > 0 && v[k] <= v[k - 1])) return "widths rise";
      profile_.widths.push_back(static_cast<std::int64_t>(v[k]));
    }
    return "";
  }

  std::string_view text_;
  std::uint32_t line_ = 0;
  std::vector<std::string_view> words_;
  std::array<bool, 4> has_own_rate_{};
  Profile profile_;
};

Profile of_record(const std::string& name) {
  const std::string text = *device_record_text(name);
  return *parse_profile(std::string_view(text).substr(text.find(kFirstWord)));
}

std::string line_text(const Coefficients& line) { return fmt::format("{} {} {} {}", line.a, line.b, line.c, line.d); }

}  // namespace

std::string_view to_text(Operator op) { return op == Operator::spmm ? "spmm" : "sddmm"; }

Result<Profile> parse_profile(std::string_view text) { return ProfileReader(text).read(); }

std::string to_text(const Profile& p) {
  std::string text = fmt::format(
      "apl-device-profile 2\nname {}\nkind {}\nworkers {}\nlaunch {}\npeak {}\ndense {} {}\nspmm ell {}\nspmm segments "
      "{}\nsddmm ell "
      "{}\nsddmm segments {}\nblock-tile {}\n",
      p.name, p.gpu ? "gpu" : "cpu", p.workers, p.launch, p.peak, p.dense_rates[1], p.dense_launch,
      line_text(p.spmm_ell), line_text(p.spmm_segments), line_text(p.sddmm_ell), line_text(p.sddmm_segments),
      p.block_tile);
  for (std::size_t k = 0; k < kDenseKeys.size(); ++k)
    if (p.dense_rates[k] != p.dense_rates[1]) text += fmt::format("{} {}\n", kDenseKeys[k], p.dense_rates[k]);
  for (const BlockCost& b : p.blocks)
    text += fmt::format("{} block {} {} {}{}\n", to_text(b.op), b.height, b.dense, b.nanoseconds,
                        b.bytes != 0 ? fmt::format(" {}", b.bytes) : "");
  return text + fmt::format("ell-widths {}\nell-elements {}\nsegment-length {}\n", fmt::join(p.widths, " "),
                            p.ell_elements, p.segment_length);
}

const Profile* builtin_profile(std::string_view name) {
  const auto usual = [](std::string_view dialect) { return std::string(find_dialect(dialect)->record); };
  static const std::string gpu_name = usual("cuda"), cpu_name = usual("c");
  static const Profile gpu = of_record(gpu_name), cpu = of_record(cpu_name);
  return name == gpu_name ? &gpu : name == cpu_name ? &cpu : nullptr;
}

}  // namespace apl::sparse
