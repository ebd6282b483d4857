#include "aplc/sparse/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "aplc/driver.h"
#include "passes/sparse/read.h"
#include "runtime/sparse/csr_view.h"

namespace aplc::sparse {

bool FileText::map(const std::string& name) {
  constexpr std::string_view kPacked = "\x1f\x8b";
  struct stat status {};
  const int file = name == "-" ? -1 : ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    const auto size = static_cast<std::size_t>(status.st_size);
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data != MAP_FAILED) {
      text_ = {static_cast<const char*>(data), size};
      if (text_.starts_with(kPacked)) {
        ::munmap(data, size);
      } else {
        mapped_ = data;
      }
    }
  }
  ::close(file);
  return mapped_ != nullptr;
}

FileText::FileText(const std::string& name) {
  note_input(name);
  if (map(name)) return;
  text_ = {};
  auto text = read_unpacked_file(name);
  if (text) {
    copy_ = std::move(*text);
    text_ = copy_;
  } else {
    problem_ = std::move(text).error();
  }
}

FileText::~FileText() {
  if (mapped_) ::munmap(mapped_, text_.size());
}

namespace {

int report_problem(const apl::Diagnostic& problem, const std::string& file, std::string_view text) {
  // The line at fault is shown; of a file of gigabytes nothing more is looked at.
  print_error("{}", apl::render(problem, file, text.size() < (1U << 24) ? text : std::string_view()));
  return exit_code(problem);
}

}  // namespace

std::optional<apl::sparse::Csr> load_matrix(const std::string& file, bool values, int& exit) {
  const FileText text(file);
  if (text.problem()) {
    exit = report(*text.problem());
    return std::nullopt;
  }
  auto matrix = apl::sparse::read_matrix(text.text(), {values, 0});
  if (matrix) return std::move(*matrix);
  exit = report_problem(matrix.error(), file, text.text());
  return std::nullopt;
}

std::optional<apl::sparse::Profile> load_profile(const std::string& name, int& exit) {
  if (const apl::sparse::Profile* profile = apl::sparse::builtin_profile(name)) return *profile;
  const FileText text(name);
  if (text.problem()) {
    apl::Diagnostic error = *text.problem();
    error.message = fmt::format("`{}` is neither h200 nor cpu, and as a file: {}", name, error.message);
    exit = report(error);
    return std::nullopt;
  }
  auto profile = apl::sparse::parse_profile(text.text());
  if (profile) return std::move(*profile);
  exit = report_problem(profile.error(), name, text.text());
  return std::nullopt;
}

PlanPointer parse_plan(std::string_view text, const std::string& file, int& exit) {
  apl_sparse_plan* plan = nullptr;
  std::array<char, 200> message{};
  if (apl_sparse_plan_parse(text.data(), text.size(), &plan, message.data(), message.size()) != 0) {
    print_error("{}: error: {} [syntax.error]\n", file, message.data());
    exit = kProgram;
  }
  return PlanPointer(plan);
}

std::vector<std::string> notes_of(std::string_view plan) {
  constexpr std::string_view kNote = "note ";
  std::vector<std::string> notes;
  for (std::size_t at = 0; at < plan.size();) {
    const std::size_t end = std::min(plan.find('\n', at), plan.size());
    const std::string_view line = plan.substr(at, end - at);
    if (line.starts_with(kNote)) notes.emplace_back(line.substr(kNote.size()));
    if (line.starts_with("form")) break;
    at = end + 1;
  }
  return notes;
}

PlanPointer load_plan(const std::string& file, int& exit, std::vector<std::string>* notes) {
  const FileText text(file);
  if (text.problem()) {
    exit = report(*text.problem());
    return nullptr;
  }
  if (notes != nullptr) *notes = notes_of(text.text());
  return parse_plan(text.text(), file, exit);
}

bool check_plan(const apl::sparse::Csr& matrix, const apl_sparse_plan& plan, int& exit) {
  const apl_sparse_csr csr = apl::csr_view(matrix);
  std::array<char, 200> differs{};
  if (apl_sparse_plan_fits(&plan, &csr, differs.data(), differs.size()) == APL_SPARSE_FINE) return true;
  print_error("aplc: error: the plan {} [run.argument]\n", differs.data());
  exit = kProgram;
  return false;
}

TilesPointer make_tiles(const apl::sparse::Csr& matrix, const apl_sparse_plan& plan, int& exit) {
  const apl_sparse_csr csr = apl::csr_view(matrix);
  apl_sparse_tiles* tiles = nullptr;
  const int status = apl_sparse_pack(&csr, &plan, &tiles);
  if (status == APL_SPARSE_MALFORMED) check_plan(matrix, plan, exit);
  if (status != APL_SPARSE_FINE && status != APL_SPARSE_MALFORMED)
    print_error("aplc: error: {} [{}]\n", apl_sparse_status_text(status),
                status == APL_SPARSE_OUT_OF_MEMORY ? "run.out-of-memory" : "run.argument");
  if (status != APL_SPARSE_FINE) exit = kProgram;
  return TilesPointer(tiles);
}

std::string time_text(double nanoseconds) {
  if (nanoseconds < 1e6) return fmt::format("{:.2f} us", nanoseconds / 1e3);
  return nanoseconds < 1e9 ? fmt::format("{:.2f} ms", nanoseconds / 1e6) : fmt::format("{:.2f} s", nanoseconds / 1e9);
}

}  // namespace aplc::sparse
