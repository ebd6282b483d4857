// What became of a program, as `aplc explain` and `aplc report` say it.
#include "aplc/explain_overview.h"
#include "aplc/report/report.h"
#include "capi/compiler.h"
#include "codegen/codegen.h"
#include "ir/print.h"
#include "machine/target/records.h"

namespace apl::capi {

struct Compiler::Explained {
  Module module;  // at the memory stage
  std::vector<Remark> remarks;
  std::vector<aplc::report_page::Stage> stages;
  apl_device device{};
};

Result<Compiler::Explained> Compiler::explained(const Module& module, bool keep_stages) {
  if (module.stage != Stage::soac)
    return make_error(Code::command_bad_argument, {},
                      "only a module at the soac stage can be explained: the passes' remarks are what is said");
  auto device = find_device(device_.empty() ? "cpu" : device_);
  if (!device) return std::move(device).error();
  Explained all;
  all.module = module;
  all.device = *device;
  const bool is_cpu = device->warp == 0;
  auto pipeline = parse_pipeline(
      apl::standard_pipeline(Stage::memory, is_cpu ? Machine::cpu : Machine::gpu, true, registry), registry);
  if (!pipeline) return std::move(pipeline).error();
  PipelineOptions options = pipeline_options();
  options.remarks = [&](const Remark& remark) {
    all.remarks.push_back(remark);
    if (remarks) remarks(remark);
  };
  if (keep_stages) all.stages.push_back({"", print(module)});
  options.after_pass = [&](const PassReport& pass, const Module& after) {
    if (keep_stages && pass.change == Change::yes) all.stages.push_back({pass.pass, print(after)});
  };
  if (auto done = run_pipeline(all.module, *pipeline, options); !done) return std::move(done).error();
  for (Remark& remark : aplc::explain_plans(all.module, sizes, module.file, module.source, *device, parameters))
    all.remarks.push_back(std::move(remark));
  return all;
}

Result<std::string> Compiler::explain(const Module& module) {
  constexpr std::size_t kScreen = 25;  // lines
  auto all = explained(module, false);
  if (!all) return std::move(all).error();
  return aplc::overview_text(
      aplc::overviews(all->module, all->remarks, sizes, module.file, module.source, all->device, parameters),
      module.file, all->device, kScreen, false);
}

Result<std::string> Compiler::report(const Module& module) {
  auto all = explained(module, true);
  if (!all) return std::move(all).error();
  const bool is_cpu = all->device.warp == 0;
  auto generated = emit_program(all->module, is_cpu ? "c" : "cuda");
  if (!generated) return std::move(generated).error();
  aplc::report_page::Input input;
  input.file = module.file.substr(module.file.rfind('/') + 1);
  input.text = module.source;
  input.module = &all->module;
  input.remarks = std::move(all->remarks);
  input.stages = std::move(all->stages);
  input.sizes = sizes;
  input.device = all->device;
  input.parameters = parameters;
  input.generated = std::move(*generated);
  return aplc::report_page::page(input);
}

}  // namespace apl::capi
