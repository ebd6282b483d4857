#include "aplc/tune_numbers.h"

#include <algorithm>

#include "ir/walk.h"

namespace aplc {

namespace {

std::vector<std::int64_t> values_of(const apl::GetSize& size, int threads) {
  const std::int64_t usual = size.default_value;
  std::vector<std::int64_t> values;
  switch (size.size_class) {
    case apl::SizeClass::threshold:
    case apl::SizeClass::grid_size: values = {usual / 4, usual * 4, usual / 16, usual * 16}; break;
    case apl::SizeClass::thread_block_size: values = {usual / 2, usual / 4}; break;
    case apl::SizeClass::thread_count: values = {2 * std::int64_t{threads}, 1, 4 * std::int64_t{threads}}; break;
    case apl::SizeClass::tile_size:
    case apl::SizeClass::reg_tile_size: break;
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 20;  // as tile numbers
  std::erase_if(values, [](std::int64_t value) { return value < 1 || value > kMost; });
  return values;
}

}  // namespace

std::vector<std::vector<Parameters>> number_spaces(const apl::Module& lowered, const std::set<std::string>& entries,
                                                   int threads) {
  std::vector<std::vector<Parameters>> spaces;
  std::set<std::string> seen;
  for (const std::string& entry : entries) {
    const apl::Function* function = lowered.find_entry(entry);
    if (function == nullptr) continue;
    for_each_stm(*function->body, [&](const apl::Stm& stm) {
      const auto* size = apl::get_if<apl::GetSize>(stm);
      if (size == nullptr || size->name.ends_with("splits") || !seen.insert(size->name).second) return;
      std::vector<Parameters> space;
      for (const std::int64_t value : values_of(*size, threads)) space.push_back({{size->name, value}});
      if (!space.empty()) spaces.push_back(std::move(space));
    });
  }
  return spaces;
}

}  // namespace aplc
