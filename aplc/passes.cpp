// aplc passes: what there is, from the passes' own data.
#include <fmt/format.h>

#include "aplc/driver.h"

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
    const apl::PassRegistry registry = apl::PassRegistry::builtin();
    for (const apl::PassInfo& pass : registry.passes()) {
      print_out("{:<18}{} [{}]\n", pass.name, pass.summary, stages(pass.takes));
      for (const apl::PassOption& option : pass.options)
        print_out("    {{{}={}}}  {}\n", option.name, show(option.default_value), option.help);
      for (const auto& [code, when] : pass.remark_codes) print_out("    remark {:<24}{}\n", code, when);
    }
    print_out("\nstandard pipeline: {}\n", apl::standard_pipeline(apl::Stage::memory));
    print_out("for C:             {}\n", apl::standard_pipeline(apl::Stage::memory, apl::Machine::cpu));
    exit = kFine;
  });
}

}  // namespace aplc
