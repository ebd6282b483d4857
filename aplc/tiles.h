// Whether a program goes over the tiles of its sparse operands.
#pragma once

namespace CLI {
class App;
}

namespace aplc {

struct TileOptions {
  bool wanted = false;         // the tiles of plans, or of the built-in plan
  bool deterministic = false;  // but not where the order of additions shows in the result

  void add_to(CLI::App& command);
};

}  // namespace aplc
