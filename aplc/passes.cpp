// aplc passes: what there is, from the passes' own data.
#include <fmt/format.h>

#include "aplc/driver.h"
#include "aplc/registry.h"

namespace aplc {
namespace {

std::string show(const apl::OptionValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const std::int64_t* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  return std::get<std::string>(value);
}

std::string stages(apl::StageSet set) {
  std::string text;
  for (apl::Stage stage : {apl::Stage::soac, apl::Stage::kernel, apl::Stage::memory})
    if (set & apl::stage_bit(stage)) text += (text.empty() ? "" : ", ") + std::string(apl::to_text(stage));
  return text;
}

}  // namespace

void add_passes(CLI::App& app, int& exit) {
  CLI::App* command = app.add_subcommand("passes", "list the passes, their options and remark codes");
  command->callback([&exit] {
    for (const apl::PassInfo& pass : registry().passes()) {
      print_out("{:<17} {} [{}]\n", pass.name, pass.summary, stages(pass.takes));
      for (const apl::PassOption& option : pass.options)
        print_out("    {{{}={}}}  {}\n", option.name, show(option.default_value), option.help);
      for (const auto& [code, when] : pass.remark_codes) print_out("    remark {:<24}{}\n", code, when);
    }
    const auto standard = [](apl::Machine machine) {
      return apl::standard_pipeline(apl::Stage::memory, machine, false, registry());
    };
    print_out("\nstandard pipeline: {}\n", standard(apl::Machine::gpu));
    print_out("for C:             {}\n", standard(apl::Machine::cpu));
    print_out("\ninsertion points of the standard pipelines, for --insert and plug-ins:\n");
    for (const apl::InsertionPointInfo& point : apl::insertion_points())
      print_out("{:<17} {} [{}]\n", point.name, point.where, apl::to_text(point.stage));
    exit = kFine;
  });
}

}  // namespace aplc
