// How deeply bodies may be nested.
#pragma once

namespace apl {

// Everything that walks bodies uses the stack. Verified; the front end stays below it (kMostNestedBodies).
constexpr int kDeepestBodies = 200;

}  // namespace apl
