#include "aplc/test/structure.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "aplc/registry.h"
#include "ir/walk.h"
#include "passes/pipeline.h"

namespace aplc {
namespace {

constexpr const char* kSoacs = "inline,differentiate,simplify,cse,fuse,simplify,cse";
constexpr const char* kKernels = "inline,differentiate,simplify,cse,fuse,simplify,cse,elide-copies,extract-kernels";

constexpr auto kSoacNames =
    std::to_array<std::string_view>({"Screma", "Hist", "Loop", "ForLoop", "WhileLoop", "If", "True", "False"});
constexpr auto kKernelNames = std::to_array<std::string_view>({"SegMap", "SegRed", "SegScan", "SegHist"});

bool is_gpu(const apl::suite::Structure& structure) {
  return structure.pipelines.size() == 1 && structure.pipelines.front() == "gpu";
}

// `/A/B`: anchored at the function's top.
struct Path {
  bool anchored = false;
  std::vector<std::string> names;
};

Path parse_path(std::string_view text) {
  Path path;
  path.anchored = text.starts_with('/');
  if (path.anchored) text.remove_prefix(1);
  for (;;) {
    const std::size_t slash = text.find('/');
    path.names.emplace_back(text.substr(0, slash));
    if (slash == std::string_view::npos) return path;
    text.remove_prefix(slash + 1);
  }
}

using Nest = std::vector<std::string>;

bool matches(const Nest& nest, const Path& path) {
  if (nest.size() < path.names.size() || (path.anchored && nest.size() != path.names.size())) return false;
  return std::equal(path.names.rbegin(), path.names.rend(), nest.rbegin());
}

// Each operation that has a name there, with what surrounds it: a loop counts as ForLoop or WhileLoop inside of Loop, a
// branch surrounds with If/True or If/False, a scatter as the Screma that Futhark makes of it.
void for_each_nest(const apl::BodyPtr& body, Nest& nest, const std::function<void(const Nest&)>& visit) {
  if (!body) return;
  const auto seen = [&](const char* name) {
    nest.emplace_back(name);
    visit(nest);
    nest.pop_back();
  };
  const auto inside = [&](const char* name, const apl::BodyPtr& inner) {
    nest.emplace_back(name);
    for_each_nest(inner, nest, visit);
    nest.pop_back();
  };
  for (const apl::Stm& stm : body->stms) {
    if (const auto* loop = std::get_if<apl::Loop>(&stm.op)) {
      seen("Loop");
      nest.emplace_back("Loop");
      seen(loop->index ? "ForLoop" : "WhileLoop");
      for_each_nest(loop->body, nest, visit);
      nest.pop_back();
    } else if (apl::is_branch(stm.op)) {
      const std::vector<apl::BodyPtr> bodies = apl::branches(stm.op);
      seen("If");
      nest.emplace_back("If");
      seen("True");
      seen("False");
      inside("True", bodies.front());
      inside("False", bodies.back());
      nest.pop_back();
    } else {
      const auto* scatter = std::get_if<apl::Scatter>(&stm.op);
      const char* name = std::holds_alternative<apl::Screma>(stm.op) ? "Screma"
                         : scatter                                   ? (scatter->op ? "Hist" : "Screma")
                                                                     : nullptr;
      if (name) seen(name);
      apl::for_each_body(stm.op, [&](const apl::BodyPtr& inner) {
        if (name)
          inside(name, inner);
        else
          for_each_nest(inner, nest, visit);
      });
    }
  }
}

apl::Status run(apl::Module& module, const char* text, const apl::PipelineOptions& options) {
  auto pipeline = apl::parse_pipeline(text, registry());
  if (!pipeline) return std::move(pipeline).error();
  return apl::run_pipeline(module, *pipeline, options);
}

// What a kernel came from, as extract-kernels says; chunks of one reduction are one.
const char* origin(const apl::Remark& remark) {
  if (remark.pass != "extract-kernels" || remark.kind != apl::RemarkKind::applied) return nullptr;
  const auto says = [&](std::string_view word) { return remark.message.find(word) != std::string::npos; };
  if (remark.code == "kernel") return "SegMap";
  if (remark.code == "reduction") return "SegRed";
  if (remark.code == "scan") return "SegScan";
  if (remark.code == "segmented") return says("scans that") ? "SegScan" : "SegRed";
  if (remark.code == "scatter") return says("histogram") ? "SegHist" : "Scatter";
  return nullptr;
}

}  // namespace

bool is_portable(const apl::suite::Structure& structure) {
  const bool soacs =
      structure.pipelines.empty() || (structure.pipelines.size() == 1 && structure.pipelines.front() == "soacs");
  if (!soacs && !is_gpu(structure)) return false;
  return std::ranges::all_of(structure.counts, [&](const auto& count) {
    const Path path = parse_path(count.first);
    if (!soacs) return !path.anchored && path.names.size() == 1 && std::ranges::count(kKernelNames, path.names[0]) > 0;
    return std::ranges::all_of(path.names,
                               [](const std::string& name) { return std::ranges::count(kSoacNames, name) > 0; });
  });
}

apl::Result<StructureCounts> count_structure(const apl::Module& front, const apl::suite::Structure& structure,
                                             const Parameters& parameters) {
  apl::Module module = front;
  StructureCounts counts;
  apl::PipelineOptions options;
  options.parameters = parameters;
  if (is_gpu(structure)) {
    for (const std::string_view name : kKernelNames) counts.emplace(name, 0);
    options.remarks = [&](const apl::Remark& remark) {
      if (const char* name = origin(remark)) ++counts[name];
    };
    if (auto status = run(module, kKernels, options); !status) return std::move(status).error();
    return counts;
  }
  if (auto status = run(module, kSoacs, options); !status) return std::move(status).error();
  counts = {{"Screma", 0}, {"Hist", 0}};
  for (const auto& [path, wanted] : structure.counts) counts.emplace(path, 0);
  std::vector<std::pair<Path, int*>> paths;
  for (auto& [path, count] : counts) paths.emplace_back(parse_path(path), &count);
  Nest nest;
  for (const apl::FunctionPtr& function : module.functions)
    for_each_nest(function->body, nest, [&](const Nest& at) {
      for (const auto& [path, count] : paths)
        if (matches(at, path)) ++*count;
    });
  return counts;
}

}  // namespace aplc
