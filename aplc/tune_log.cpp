#include "aplc/tune_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

namespace aplc {

std::string parameters_text(const Parameters& parameters) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : parameters) texts.push_back(fmt::format("{}={}", name, value));
  return fmt::format("{}", fmt::join(texts, " "));
}

double geometric_mean(const std::map<std::string, double>& times) {
  double sum = 0;
  for (const auto& [name, time] : times) sum += std::log(std::max(time, 1e-3));
  return std::exp(sum / static_cast<double>(std::max<std::size_t>(times.size(), 1)));
}

void TuneLog::read() {
  const auto known = read_file(file_);
  std::istringstream in(known ? *known : std::string());
  for (std::string text; std::getline(in, text);) {
    // A run that was killed may have left half a line.
    const auto line = nlohmann::json::parse(text, nullptr, false);
    try {
      if (!line.is_object() || line.value("key", "") != key_) continue;
      known_[line.at("parameters").get<std::string>()] = {line.at("times").get<std::map<std::string, double>>(),
                                                          line.value("error", "")};
    } catch (const nlohmann::json::exception&) {
      continue;
    }
  }
}

const Trial* TuneLog::find(const Parameters& parameters) const {
  const auto found = known_.find(parameters_text(parameters));
  return found == known_.end() ? nullptr : &found->second;
}

apl::Status TuneLog::add(const Parameters& parameters, const Trial& trial) {
  known_[parameters_text(parameters)] = trial;
  nlohmann::ordered_json line{{"key", key_}, {"parameters", parameters_text(parameters)}, {"times", trial.times}};
  if (!trial.error.empty()) line["error"] = trial.error;
  const auto before = read_file(file_);
  const bool half = before && !before->empty() && before->back() != '\n';
  return append_file(file_,
                     (half ? "\n" : "") + line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace aplc
