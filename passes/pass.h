// What a pass is: declared data (name, summary, stages, typed options) and one function. Passes in the tree
// are listed in passes/passes.def; a pass outside the tree makes a PassInfo of its own and adds it to a
// PassRegistry (docs/adding-a-pass.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/module.h"

namespace apl {

// `no` means: the printed module is the same as before. The pass manager checks it when verifying.
enum class Change : std::uint8_t { no, yes };

using OptionValue = std::variant<bool, std::int64_t, std::string>;

struct PassOption {
  std::string name;           // "max-tile"
  OptionValue default_value;  // its alternative is the option's type
  std::string help;
};

// What a pass gets beside the module. Everything it says goes through `remarks`.
class PassContext {
 public:
  RemarkSink remarks;                              // may be empty
  std::map<std::string, OptionValue> options;      // this pass's, defaults filled in
  std::map<std::string, std::int64_t> parameters;  // tuning parameters given by the user: "mm.T_a" -> 16

  bool flag(std::string_view name) const;  // throws std::out_of_range if undeclared
  std::int64_t integer(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  void remark(const Remark& remark) const {
    if (remarks) remarks(remark);
  }
};

using StageSet = std::uint8_t;  // bit i: Stage i
constexpr StageSet stage_bit(Stage stage) { return static_cast<StageSet>(1U << static_cast<unsigned>(stage)); }
constexpr StageSet kAnyStage = 7;

struct PassInfo {
  std::string name;     // "tile-contraction"
  std::string summary;  // one line
  StageSet takes = kAnyStage;
  std::function<Stage(Stage)> gives = [](Stage stage) { return stage; };
  std::vector<PassOption> options;
  std::vector<std::pair<std::string, std::string>> remark_codes;  // code -> when it is given
  std::function<Result<Change>(Module&, PassContext&)> run;
  // It takes no module with derivatives (jvp, vjp): `differentiate` comes before it.
  bool needs_differentiate = false;
  bool required = false;  // no limit on pass applications leaves it out; so it is with passes that change the stage
};

// Where pipelines from outside the tree can be inserted into the standard pipelines (passes/insertion_points.def).
enum class InsertionPoint : std::uint8_t {
#define APL_INSERTION_POINT(name, text, stage, where) name,
#include "passes/insertion_points.def"
#undef APL_INSERTION_POINT
};

struct InsertionPointInfo {
  InsertionPoint point;
  std::string_view name;  // "before-fuse"
  Stage stage;            // of the module there
  std::string_view where;
};
const std::vector<InsertionPointInfo>& insertion_points();  // in the order in which pipelines pass them
std::optional<InsertionPoint> insertion_point(std::string_view name);

class PassRegistry {
 public:
  static PassRegistry builtin();  // the passes of passes.def, in their usual order
  void add(PassInfo pass) { passes_.push_back(std::move(pass)); }
  const PassInfo* find(std::string_view name) const;
  const std::vector<PassInfo>& passes() const { return passes_; }

  // A pipeline's text for every standard pipeline that passes this point; several stand there in the order of the
  // calls.
  void insert(InsertionPoint point, std::string pipeline) { insertions_[point].push_back(std::move(pipeline)); }
  const std::map<InsertionPoint, std::vector<std::string>>& insertions() const { return insertions_; }

 private:
  std::vector<PassInfo> passes_;
  std::map<InsertionPoint, std::vector<std::string>> insertions_;
};

}  // namespace apl
