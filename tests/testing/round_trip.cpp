#include "ir/parse.h"
#include "ir/print.h"
#include "tests/testing.h"

namespace apl::testing {

Verdict round_trips(const Module& module) {
  // With locations, so that those are tried too.
  const PrintOptions options{.locations = true};
  const std::string text = print(module, options);
  const auto again = parse_module(text, "printed");
  if (!again) return Verdict::no("the printed module does not parse:\n" + render(again.error(), "printed", text));
  if (const auto where = difference(module, *again)) return Verdict::no("the parsed module is another one: " + *where);
  const std::string second = print(*again, options);
  if (second != text)
    return Verdict::no("the parsed module prints otherwise:\n" + text_diff(text, second, "printed", "printed again"));
  return {};
}

}  // namespace apl::testing
