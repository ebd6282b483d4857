// A plug-in whose pass uses what a standard library has of its own (streams, expressions, exceptions), then throws.
#include <iostream>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "passes/plugin.h"

namespace {

using namespace apl;

Result<Change> run(Module&, PassContext& context) {
  std::ostringstream text;
  text << 3.5 << " and " << std::regex_match(std::string("abc"), std::regex("a.c"));
  try {
    throw std::runtime_error("an exception inside");
  } catch (const std::exception& exception) {
    text << " and " << exception.what();
  }
  Remark remark;
  remark.pass = "throws";
  remark.code = "before";
  remark.message = text.str();
  context.remark(remark);
  std::cerr << "a stream of the plug-in" << std::endl;
  throw std::runtime_error("it left the pass");
}

}  // namespace

APL_PASS_PLUGIN("throws", "1", [](PassRegistry& registry) {
  PassInfo pass;
  pass.name = "throws";
  pass.summary = "throws an exception";
  pass.remark_codes = {{"before", "before it throws"}};
  pass.run = run;
  registry.add(pass);
  pass.name = "throws-number";
  pass.run = [](Module&, PassContext&) -> Result<Change> { throw 42; };
  registry.add(pass);
})
