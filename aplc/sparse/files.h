// Files of the sparse subcommands: matrices of gigabytes, plans, profiles.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "passes/sparse/matrix.h"
#include "passes/sparse/profile.h"
#include "runtime/sparse/sparse.h"
#include "suite/sparse/handles.h"

namespace aplc::sparse {

// A file that is not copied into memory, unless it is packed by gzip; or standard input ("-"), which is.
class FileText {
 public:
  explicit FileText(const std::string& name);
  ~FileText();
  FileText(const FileText&) = delete;
  FileText& operator=(const FileText&) = delete;

  // The error that made it unreadable; null if it was read.
  const apl::Diagnostic* problem() const { return problem_ ? &*problem_ : nullptr; }
  std::string_view text() const { return text_; }

 private:
  bool map(const std::string& name);

  std::optional<apl::Diagnostic> problem_;
  void* mapped_ = nullptr;
  std::string_view text_;
  std::string copy_;
};

using apl::sparse::PlanPointer;
using apl::sparse::TilesPointer;

// Each reports on stderr what is wrong, and sets `exit` then.
std::optional<apl::sparse::Csr> load_matrix(const std::string& file, bool values, int& exit);
// A built-in name or a file.
std::optional<apl::sparse::Profile> load_profile(const std::string& name, int& exit);
// `notes` (may be null) gets what the plan's own notes say.
PlanPointer load_plan(const std::string& file, int& exit, std::vector<std::string>* notes = nullptr);
// `file` is for messages.
PlanPointer parse_plan(std::string_view text, const std::string& file, int& exit);
// Of a plan's text: what was compared when it was searched, for people.
std::vector<std::string> notes_of(std::string_view plan);
// Whether the plan is for the matrix; an error of the command if not.
bool check_plan(const apl::sparse::Csr& matrix, const apl_sparse_plan& plan, int& exit);
TilesPointer make_tiles(const apl::sparse::Csr& matrix, const apl_sparse_plan& plan, int& exit);

// "8.53 us", with the unit that fits.
std::string time_text(double nanoseconds);

}  // namespace aplc::sparse
