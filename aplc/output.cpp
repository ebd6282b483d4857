#include "aplc/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>

#include "aplc/driver.h"
#include "ir/system_error.h"

namespace aplc {
namespace {

int first_out_error = 0;
bool out_is_product = false;  // standard output takes a file, and nothing else
std::set<std::pair<dev_t, ino_t>> inputs_read;

// What a chain of links ends at, which need not be there. Links of the kernel's own stand for open files and cannot be
// followed by their text.
std::optional<std::string> behind_links(std::string name) {
  constexpr int kMostLinks = 40;
  for (int k = 0; k < kMostLinks; ++k) {
    std::error_code none;
    const std::filesystem::path link = std::filesystem::read_symlink(name, none);
    if (none) return name;
    if (name.starts_with("/proc/")) return std::nullopt;
    name = link.is_absolute() ? link.string() : (std::filesystem::path(name).parent_path() / link).string();
  }
  return name;
}

mode_t mode_of_new_files() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

void put_out(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size() && first_out_error == 0) first_out_error = errno;
}

int put_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

}  // namespace

void write_out(std::string_view text) { out_is_product ? write_error(text) : put_out(text); }

void flush_out() {
  errno = 0;
  if (std::fflush(stdout) != 0 && first_out_error == 0) first_out_error = errno;
}

void write_error(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

int report(const apl::Diagnostic& error) {
  write_error(apl::render(error, error.file.empty() ? "aplc" : error.file, ""));
  return exit_code(error);
}

void open_standard_files() {
  // The lowest number that is free is taken.
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file)
    if (fcntl(file, F_GETFD) < 0) open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int finish_output(int exit) {
  flush_out();
  if (first_out_error == 0 && std::ferror(stdout) == 0) return exit;
  const int code = report(apl::system_error(first_out_error ? first_out_error : EIO, "cannot write standard output"));
  return exit == kFine ? code : exit;
}

void note_input(const std::string& name) {
  struct stat status {};
  if ((name == "-" ? fstat(STDIN_FILENO, &status) : stat(name.c_str(), &status)) == 0 && S_ISREG(status.st_mode))
    inputs_read.emplace(status.st_dev, status.st_ino);
}

apl::Status OutputFile::failed(int error) const {
  return apl::system_error(error, fmt::format("cannot write {}", name_));
}

apl::Result<OutputFile> OutputFile::open(const std::string& name, Inputs inputs) {
  OutputFile out;
  out.name_ = name;
  struct stat status {};
  const bool is_there = stat(name.c_str(), &status) == 0;
  if (!is_there && errno != ENOENT) return out.failed(errno).error();
  if (name.empty() || (is_there && S_ISDIR(status.st_mode))) return out.failed(name.empty() ? ENOENT : EISDIR).error();
  if (is_there && inputs == Inputs::kept && inputs_read.contains({status.st_dev, status.st_ino}))
    return apl::make_error(apl::Code::command_bad_argument, {},
                           fmt::format("cannot write {}: it is also read by this command", name));
  const bool is_regular = is_there && S_ISREG(status.st_mode);
  // Also for those who may do anything: a file without any right to write it is kept for a reason.
  constexpr mode_t kAnybodyWrites = 0222;
  if (is_regular &&
      ((status.st_mode & kAnybodyWrites) == 0 || faccessat(AT_FDCWD, name.c_str(), W_OK, AT_EACCESS) != 0))
    return out.failed(EACCES).error();
  const auto target = behind_links(name);
  out.target_ = target.value_or(name);
  out.path_ = out.target_;
  out.is_direct_ = !target || (is_there && (!is_regular || status.st_nlink > 1));
  if (out.is_direct_) return out;
  const std::filesystem::path folder = std::filesystem::path(out.target_).parent_path();
  std::string path = (folder / ".aplc-XXXXXX").string();
  const SignalsWait wait;
  out.file_ = mkostemp(path.data(), O_CLOEXEC);
  if (out.file_ < 0) {
    // A file may be written although its folder takes no new ones.
    out.is_direct_ = is_there && (errno == EACCES || errno == EPERM || errno == EROFS);
    if (out.is_direct_) return out;
    return out.failed(errno).error();
  }
  out.path_ = path;
  out.removed_.emplace(path);
  out.mode_ = is_there ? status.st_mode & 07777 : mode_of_new_files();
  struct stat ours {};
  if (!is_there || fstat(out.file_, &ours) != 0 || (ours.st_uid == status.st_uid && ours.st_gid == status.st_gid) ||
      fchown(out.file_, status.st_uid, status.st_gid) == 0)
    return out;
  // Its owner cannot be kept but by writing to the file itself.
  close(out.file_);
  unlink(path.c_str());
  out.file_ = -1;
  out.removed_.reset();
  out.path_ = out.target_;
  out.is_direct_ = true;
  return out;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : name_(std::move(other.name_)),
      target_(std::move(other.target_)),
      path_(std::move(other.path_)),
      mode_(other.mode_),
      is_direct_(other.is_direct_),
      file_(std::exchange(other.file_, -1)),
      removed_(std::exchange(other.removed_, std::nullopt)) {}

OutputFile::~OutputFile() {
  if (file_ >= 0) close(file_);
  if (removed_) unlink(path_.c_str());
}

apl::Status OutputFile::open_directly() {
  file_ = ::open(path_.c_str(), O_WRONLY | O_TRUNC | O_NOCTTY | O_CLOEXEC);
  if (file_ < 0) return failed(errno);
  return apl::Unit{};
}

apl::Status OutputFile::write(std::string_view text) {
  if (is_direct_ && file_ < 0)
    if (auto opened = open_directly(); !opened) return opened;
  if (const int error = put_all(file_, text)) return failed(error);
  return apl::Unit{};
}

apl::Status OutputFile::finish(bool executable) {
  if (is_direct_) {
    if (file_ >= 0 && close(std::exchange(file_, -1)) != 0) return failed(errno);
    return apl::Unit{};
  }
  const mode_t may_run = executable ? (mode_ & 0444) >> 2U : 0;
  // By name: another program may have made the file anew.
  if (chmod(path_.c_str(), mode_ | may_run) != 0) return failed(errno);
  if (close(std::exchange(file_, -1)) != 0) return failed(errno);
  if (std::rename(path_.c_str(), target_.c_str()) != 0) return failed(errno);
  removed_.reset();
  return apl::Unit{};
}

apl::Status check_output(const std::string& name, Inputs inputs) {
  out_is_product = out_is_product || name == "-";
  if (name.empty() || name == "-") return apl::Unit{};
  auto file = OutputFile::open(name, inputs);
  if (!file) return std::move(file).error();
  return apl::Unit{};
}

apl::Status write_file(const std::string& name, std::string_view text, Inputs inputs) {
  auto file = OutputFile::open(name, inputs);
  if (!file) return std::move(file).error();
  if (auto written = file->write(text); !written) return written;
  return file->finish();
}

apl::Status append_file(const std::string& name, std::string_view text) {
  const std::string what = fmt::format("cannot write {}", name);
  const int file = open(name.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return apl::system_error(errno, what);
  int error = put_all(file, text);
  if (close(file) != 0 && error == 0) error = errno;
  if (error != 0) return apl::system_error(error, what);
  return apl::Unit{};
}

int emit(const std::string& name, std::string_view text) {
  if (name.empty() || name == "-") {
    put_out(text);
    return kFine;
  }
  const auto written = write_file(name, text);
  return written ? kFine : report(written.error());
}

}  // namespace aplc
