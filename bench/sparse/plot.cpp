#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/sparse/report.h"

namespace apl::bench {
namespace {

constexpr double kWidth = 560, kHeight = 420, kLeft = 70, kBottom = 50, kTop = 30, kRight = 20;

// A logarithmic axis from one power of ten to another.
struct Axis {
  double low = 0, high = 1;

  void fit(double least, double most) {
    low = std::floor(std::log10(least));
    high = std::max(low + 1, std::ceil(std::log10(most)));
  }
  double place(double value) const { return (std::log10(value) - low) / (high - low); }
};

}  // namespace

std::string plot(const std::string& title, const std::string& x_name, const std::string& y_name,
                 const std::vector<PlotPoint>& points, bool diagonal) {
  Axis x, y;
  if (!points.empty()) {
    const auto [x_low, x_high] =
        std::minmax_element(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
    const auto [y_low, y_high] =
        std::minmax_element(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.y < b.y; });
    x.fit(x_low->x, x_high->x);
    y.fit(y_low->y, y_high->y);
  }
  if (diagonal) x.low = y.low = std::min(x.low, y.low), x.high = y.high = std::max(x.high, y.high);
  const auto at_x = [&](double value) { return kLeft + x.place(value) * (kWidth - kLeft - kRight); };
  const auto at_y = [&](double value) { return kHeight - kBottom - y.place(value) * (kHeight - kBottom - kTop); };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" font-family=\"sans-serif\" "
      "font-size=\"11\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n<text x=\"{2}\" y=\"18\" "
      "font-size=\"13\">{3}</text>\n",
      kWidth, kHeight, kLeft, title);
  for (double power = x.low; power <= x.high; ++power) {
    const double here = at_x(std::pow(10, power));
    svg += fmt::format(
        "<path d=\"M{0:.1f} {1}V{2}\" stroke=\"#ddd\"/><text x=\"{0:.1f}\" y=\"{3}\" "
        "text-anchor=\"middle\">1e{4:.0f}</text>\n",
        here, kTop, kHeight - kBottom, kHeight - kBottom + 16, power);
  }
  for (double power = y.low; power <= y.high; ++power) {
    const double here = at_y(std::pow(10, power));
    svg += fmt::format(
        "<path d=\"M{0} {1:.1f}H{2}\" stroke=\"#ddd\"/><text x=\"{3}\" y=\"{4:.1f}\" "
        "text-anchor=\"end\">1e{5:.0f}</text>\n",
        kLeft, here, kWidth - kRight, kLeft - 6, here + 4, power);
  }
  if (diagonal)
    svg += fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"#888\"/>\n", at_x(std::pow(10, x.low)),
                       at_y(std::pow(10, x.low)), at_x(std::pow(10, x.high)), at_y(std::pow(10, x.high)));
  svg += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>\n", (kLeft + kWidth) / 2,
                     kHeight - 12, x_name);
  svg += fmt::format("<text transform=\"translate(16 {:.0f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                     kHeight / 2, y_name);
  for (const PlotPoint& point : points) {
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"#1f5fa8\" fill-opacity=\"0.6\"/>",
                       at_x(point.x), at_y(point.y));
    if (!point.name.empty())
      svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"9\">{}</text>", at_x(point.x) + 4,
                         at_y(point.y) - 3, point.name);
    svg += "\n";
  }
  return svg + "</svg>\n";
}

}  // namespace apl::bench
