#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "aplc/report/report.h"

namespace apl {
std::string_view report_style_text();
std::string_view report_script_text();
std::string_view report_chart_text();
}  // namespace apl

namespace aplc::report_page {
namespace {

using Json = nlohmann::ordered_json;

std::string time_text(const std::optional<double>& seconds) {
  return seconds ? microseconds_text(*seconds * 1e6) : "unknown";
}

std::string class_of(const OverviewRow& row) {
  if (row.decision.starts_with("not ")) return "missed";
  return row.decision.starts_with("tiled ") && !row.decision.starts_with("tiled for") ? "good" : "";
}

class Page {
 public:
  explicit Page(const Input& input)
      : input_(input),
        overviews_(overviews(*input.module, input.remarks, input.sizes, input.file, input.text, input.device,
                             input.parameters)),
        has_charts_(!apl::report_chart_text().empty()) {}

  std::string run() {
    out_ += fmt::format(
        "<!doctype html>\n<html lang=en>\n<head><meta charset=utf-8><meta name=viewport "
        "content=\"width=device-width, initial-scale=1\">\n<title>{} on {}</title>\n<link rel=icon href=\"data:,\">\n"
        "<style>\n{}</style></head>\n<body>\n<h1>{} on {}</h1>\n",
        escaped(input_.file), input_.device.name, apl::report_style_text(), escaped(input_.file), input_.device.name);
    out_ +=
        "<nav aria-label=sections><a href=#lines>Lines</a><a href=#source>Source</a><a href=#kernels>Kernels</a>"
        "<a href=#contractions>Contractions</a>";
    if (!input_.products.empty()) out_ += "<a href=#sparse>Sparse operands</a>";
    out_ += "<a href=#passes>Passes</a><a href=#code>Code</a></nav>\n<main>\n";
    lines();
    source();
    kernels();
    contractions();
    sparse();
    tuning();
    passes();
    out_ += fmt::format(
        "<h2 id=code>Generated code</h2>\n<details><summary>{} lines</summary>\n<pre tabindex=0>{}</pre></details>\n",
        std::count(input_.generated.begin(), input_.generated.end(), '\n'), escaped(input_.generated));
    data_["device"] = {
        {"name", input_.device.name},
        {"peak", 2 * input_.device.multiprocessors * input_.device.fmas_per_clock * input_.device.clock_ghz * 1e9},
        {"bandwidth", input_.device.memory_gbs * 1e9}};
    if (has_charts_) {
      std::string json = data_.dump();
      // The text of a script ends at the first `</`.
      for (std::size_t at = 0; (at = json.find("</", at)) != std::string::npos; at += 3) json.insert(at + 1, "\\");
      out_ += fmt::format(
          "<script type=\"application/json\" id=data>{}</script>\n<script>{}</script>\n<script>{}</script>\n", json,
          apl::report_chart_text(), apl::report_script_text());
    }
    return out_ + "</main></body></html>\n";
  }

 private:
  // A chart, if there is a library for it; `what` is read to those who do not see it.
  // Of so many bars; 0: of points.
  void chart(const std::string& id, const std::string& what, std::size_t bars = 0) {
    if (has_charts_)
      out_ += fmt::format(
          "<figure><div class=chart style=\"height: {}rem\"><canvas id={} role=img aria-label=\"{}\"></canvas></div>"
          "<figcaption>{}</figcaption></figure>\n",
          bars == 0 ? 20 : 4 + 2 * bars, id, escaped(what), escaped(what));
  }

  void lines() {
    out_ += "<h2 id=lines>What became of each line</h2>\n";
    data_["entries"] = Json::array();
    for (std::size_t k = 0; k < overviews_.size(); ++k) {
      const Overview& overview = overviews_[k];
      std::vector<std::string> sizes;
      for (const auto& [name, size] : overview.sizes) sizes.push_back(fmt::format("{} = {}", name, size));
      out_ += fmt::format(
          "<h3>{}{}</h3>\n<div class=scroll><table><thead><tr><th scope=col>time<th scope=col>share<th scope=col>line"
          "<th scope=col>source<th scope=col>what<th scope=col>what was done</thead>\n",
          escaped(overview.entry),
          overview.is_constant ? ", a constant: once for each context"
          : sizes.empty()      ? ", sizes unknown"
                               : escaped(fmt::format(" with {}", fmt::join(sizes, ", "))));
      double whole = 0;
      for (const OverviewRow& row : overview.rows) whole += row.seconds.value_or(0);
      Json rows = Json::array();
      for (const OverviewRow& row : overview.rows) {
        out_ += fmt::format(
            "<tr><td class=number>{}<td class=number>{}<td class=number><a href=#L{}>{}</a><td><code>{}</code>"
            "<td>{}<td class={}>{}\n",
            time_text(row.seconds), row.seconds && whole > 0 ? fmt::format("{:.0f}%", 100 * *row.seconds / whole) : "",
            row.location.line, row.location.line, escaped(row.source), escaped(row.what),
            class_of(row).empty() ? "plain" : class_of(row), escaped(row.decision));
        if (row.seconds)
          rows.push_back({{"label", fmt::format("{}: {}", row.location.line, row.what)},
                          {"seconds", *row.seconds},
                          {"what", row.decision},
                          {"missed", class_of(row) == "missed"},
                          {"tiled", class_of(row) == "good"}});
      }
      out_ += fmt::format("</table></div>\n<p>Most would help: {}.</p>\n", escaped(overview.help));
      Json points = Json::array();
      for (const KernelCost& kernel : overview.kernels) {
        if (!kernel.seconds || kernel.bytes <= 0 || kernel.operations <= 0) continue;
        points.push_back({{"label", fmt::format("line {}: {}", kernel.location.line, time_text(kernel.seconds))},
                          {"intensity", kernel.operations / kernel.bytes},
                          {"rate", kernel.operations * std::max(1.0, kernel.launches) / *kernel.seconds}});
      }
      if (!rows.empty())
        chart(fmt::format("time-{}", k), fmt::format("Predicted time of the lines of {}", overview.entry), rows.size());
      data_["entries"].push_back({{"rows", std::move(rows)}, {"kernels", std::move(points)}});
    }
    if (overviews_.empty()) out_ += "<p>The program has no entry, so that nothing of it runs.</p>\n";
  }

  void source() {
    out_ += "<h2 id=source>Source</h2>\n<div class=scroll><table class=source>\n";
    std::uint32_t number = 0;
    for (std::size_t begin = 0; begin < input_.text.size();) {
      const std::size_t end = std::min(input_.text.find('\n', begin), input_.text.size());
      ++number;
      std::string margin, all;
      std::size_t count = 0;
      for (const Overview& overview : overviews_)
        for (const OverviewRow& row : overview.rows)
          if (row.location.line == number)
            margin += fmt::format("<div class={}>{}: {}</div>", class_of(row).empty() ? "plain" : class_of(row),
                                  escaped(row.what), escaped(row.decision));
      for (const apl::Remark& remark : input_.remarks) {
        if (remark.location.line != number) continue;
        ++count;
        all += fmt::format("<li>{}: {}", escaped(remark.pass), escaped(remark.message));
        if (!remark.suggestion.empty()) all += fmt::format(" <em>{}</em>", escaped(remark.suggestion));
      }
      if (count > 0)
        margin += fmt::format("<details><summary>{} decision{}</summary><ul>{}</ul></details>", count,
                              count == 1 ? "" : "s", all);
      out_ += fmt::format("<tr id=L{}{}><td>{}<td>{}<td>{}\n", number, margin.empty() ? "" : " class=decided", number,
                          escaped(input_.text.substr(begin, end - begin)), margin);
      begin = end + 1;
    }
    out_ += "</table></div>\n";
  }

  void kernels() {
    out_ += "<h2 id=kernels>Kernels</h2>\n";
    for (std::size_t k = 0; k < overviews_.size(); ++k) {
      const Overview& overview = overviews_[k];
      std::vector<std::string> labels;
      for (const KernelCost& kernel : overview.kernels) {
        std::string what;
        for (std::size_t p = 0; p < overview.plans.size(); ++p)
          if (overview.plans[p].remark.location.line == kernel.location.line &&
              overview.plans[p].remark.location.column == kernel.location.column)
            what = ", " + overview.einsums[p];
        for (const OverviewRow& row : overview.rows)
          if (row.location.line == kernel.location.line && what.empty()) what = ", " + row.what;
        labels.push_back(kernel.location ? fmt::format("line {}{}", kernel.location.line, what) : "made by passes");
      }
      const std::string graph = flow_graph(function_of(*input_.module, overview), overview.kernels, labels);
      out_ += fmt::format("<h3>{}</h3>\n", escaped(overview.entry));
      out_ += graph.empty()
                  ? fmt::format("<p>{}</p>\n", overview.kernels.empty() ? "Nothing runs in parallel."
                                                                        : "There are too many kernels for a picture.")
                  : fmt::format(
                        "<figure class=scroll>{}<figcaption>An edge leads from what makes an array to what "
                        "reads it.</figcaption></figure>\n",
                        graph);
      if (std::ranges::any_of(overview.kernels, [](const KernelCost& kernel) {
            return kernel.seconds && kernel.bytes > 0 && kernel.operations > 0;
          }))
        chart(fmt::format("roofline-{}", k),
              fmt::format("Roofline: the kernels of {} below what {} can do", overview.entry, input_.device.name));
    }
  }

  void contractions() {
    out_ += "<h2 id=contractions>Contractions</h2>\n";
    std::size_t number = 0;
    for (const Overview& overview : overviews_)
      for (std::size_t k = 0; k < overview.plans.size(); ++k) {
        const ExplainedPlan& plan = overview.plans[k];
        out_ += fmt::format("<h3>{} of {}, line {}: {}</h3>\n", escaped(overview.einsums[k]), escaped(overview.entry),
                            plan.remark.location.line, escaped(plan.remark.message));
        if (const std::string picture = tile_picture(plan, overview.einsums[k]); !picture.empty())
          out_ += fmt::format(
              "<figure class=scroll>{}<figcaption>Dark is what one block computes, and the tiles that it reads for "
              "one step; light is all that it reads.</figcaption></figure>\n",
              picture);
        const std::vector<std::pair<std::string, std::string>> facts = facts_of_tiling(plan, overview.einsums[k]);
        out_ += dims_table(plan, dim_names(facts));
        if (input_.device.warp > 0)
          if (const std::string map =
                  shared_map(shared_parts(plan, input_.device), input_.device, plan.cost.blocks_per_multiprocessor);
              !map.empty())
            out_ += fmt::format(
                "<figure class=scroll>{}<figcaption>Shared memory of a block, from its first byte on; numbers are the "
                "stages of the copies that are ahead of the arithmetic.</figcaption></figure>\n",
                map);
        out_ += "<details><summary>Layouts, windows and the plan</summary><div class=scroll><table>\n";
        for (const auto& [key, value] : facts) fact(key, value);
        for (const auto& [key, value] : plan.remark.facts) fact(key, value);
        out_ += "</table></div></details>\n";
        ++number;
      }
    if (number > 0) return;
    out_ += "<p>No contraction of this program is tiled.</p>\n<ul>\n";
    for (const Overview& overview : overviews_)
      for (const OverviewRow& row : overview.rows)
        if (row.decision.starts_with("not "))
          out_ += fmt::format("<li>Line {}: {}\n", row.location.line, escaped(row.decision));
    out_ += "</ul>\n";
  }

  // What tile-contraction said when it made this contraction.
  std::vector<std::pair<std::string, std::string>> facts_of_tiling(const ExplainedPlan& plan,
                                                                   const std::string& einsum) const {
    for (const apl::Remark& remark : input_.remarks) {
      if (remark.pass != "tile-contraction" || remark.code != "tiled" || remark.function != plan.remark.function)
        continue;
      const auto found = std::ranges::find(remark.facts, "einsum", [](const auto& f) { return f.first; });
      if (found != remark.facts.end() && found->second == einsum) return remark.facts;
    }
    return {};
  }

  // Of the fact "batch:free b:free a:contracted".
  static std::vector<std::string> dim_names(const std::vector<std::pair<std::string, std::string>>& facts) {
    std::vector<std::string> names;
    for (const auto& [key, value] : facts) {
      if (key != "dims") continue;
      std::istringstream words(value);
      for (std::string word; words >> word;) names.push_back(word.substr(0, word.rfind(':')));
    }
    return names;
  }

  void fact(const std::string& key, const std::string& value) {
    out_ += fmt::format("<tr><th scope=row>{}<td>{}\n", escaped(key), escaped(value));
  }

  void sparse() {
    data_["products"] = Json::array();
    if (input_.products.empty()) return;
    out_ += "<h2 id=sparse>Sparse operands</h2>\n";
    for (std::size_t k = 0; k < input_.products.size(); ++k) {
      const SparseProduct& product = input_.products[k];
      out_ += fmt::format("<h3>{}</h3>\n<div class=beside><figure class=\"scroll picture\">{}</figure>\n",
                          escaped(product.title), product.picture);
      Json plans = Json::array();
      std::string rows;
      for (const auto& [name, nanoseconds] : product.plans) {
        plans.push_back({{"name", name}, {"microseconds", nanoseconds / 1e3}});
        rows += fmt::format("<tr><th scope=row>{}<td class=number>{}\n", escaped(name),
                            microseconds_text(nanoseconds / 1e3));
      }
      out_ += "<div>";
      if (!product.plans.empty()) {
        chart(fmt::format("plans-{}", k), "Predicted time of the plans that were compared; the fastest is green",
              product.plans.size());
        out_ += fmt::format("<details><summary>All plans</summary><table>{}</table></details>\n", rows);
      }
      out_ += fmt::format("</div></div>\n<p>{}</p>\n", escaped(product.note));
      data_["products"].push_back(std::move(plans));
    }
  }

  void tuning() {
    data_["tuning"] = Json::array();
    if (input_.trials.empty()) return;
    out_ += "<h2>Tuning</h2>\n";
    for (const auto& [parameters, microseconds] : input_.trials)
      data_["tuning"].push_back({{"parameters", parameters}, {"microseconds", microseconds}});
    chart("tuning", "Measured time of each trial");
    out_ += "<details><summary>All trials</summary><div class=scroll><table>\n";
    for (const auto& [parameters, microseconds] : input_.trials) fact(microseconds_text(microseconds), parameters);
    out_ += "</table></div></details>\n";
  }

  void passes() {
    out_ += "<h2 id=passes>Passes</h2>\n<p>The IR before and after each pass that changed something.</p>\n";
    for (std::size_t k = 1; k < input_.stages.size(); ++k)
      out_ += fmt::format("<details><summary>{}. {}</summary>\n{}</details>\n", k, escaped(input_.stages[k].pass),
                          side_by_side(input_.stages[k - 1].text, input_.stages[k].text));
    if (!input_.stages.empty())
      out_ += fmt::format("<details><summary>All of the IR at the end</summary><pre tabindex=0>{}</pre></details>\n",
                          escaped(input_.stages.back().text));
  }

  const Input& input_;
  std::vector<Overview> overviews_;
  bool has_charts_;
  Json data_;
  std::string out_;
};

}  // namespace

std::string page(const Input& input) { return Page(input).run(); }

}  // namespace aplc::report_page
