// What a pass is: declared data (name, summary, stages, typed options) and one function. Passes in the tree
// are listed in passes/passes.def; a pass outside the tree makes a PassInfo of its own and adds it to a
// PassRegistry (docs/adding-a-pass.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
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
};

class PassRegistry {
 public:
  static PassRegistry builtin();  // the passes of passes.def, in their usual order
  void add(PassInfo pass) { passes_.push_back(std::move(pass)); }
  const PassInfo* find(std::string_view name) const;
  const std::vector<PassInfo>& passes() const { return passes_; }

 private:
  std::vector<PassInfo> passes_;
};

}  // namespace apl
