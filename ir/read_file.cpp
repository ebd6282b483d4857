#include "ir/read_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <new>
#include <stdexcept>

#include "ir/system_error.h"

namespace apl {
namespace {

class Descriptor {
 public:
  explicit Descriptor(const std::string& name)
      : is_owned_(name != "-"), number_(is_owned_ ? open(name.c_str(), O_RDONLY | O_CLOEXEC) : STDIN_FILENO) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (is_owned_ && number_ >= 0) close(number_);
  }
  int number() const { return number_; }

 private:
  bool is_owned_;
  int number_;
};

// So much may come before it is too much for this machine.
std::uint64_t most_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return UINT64_MAX;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes) / 2;
}

}  // namespace

Result<std::string> read_bytes(const std::string& name) {
  // Devices such as /dev/zero have no end; what is typed into a terminal is shorter.
  constexpr std::uint64_t kMostOfDevice = std::uint64_t{64} << 20U;
  const std::string what = name == "-" ? "cannot read standard input" : fmt::format("cannot read {}", name);
  const Descriptor file(name);
  struct stat status {};
  if (file.number() < 0 || fstat(file.number(), &status) != 0) return system_error(errno, what);
  if (S_ISDIR(status.st_mode)) return system_error(EISDIR, what);
  const bool is_device = S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode);
  const std::uint64_t most = is_device ? kMostOfDevice : most_bytes();
  if (S_ISREG(status.st_mode) && static_cast<std::uint64_t>(status.st_size) > most) return system_error(ENOMEM, what);
  try {
    std::string text;
    if (S_ISREG(status.st_mode)) text.reserve(static_cast<std::size_t>(status.st_size));
    std::array<char, 1 << 16> buffer{};
    for (;;) {
      const ssize_t count = read(file.number(), buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return system_error(errno, what);
      if (count == 0) return text;
      text.append(buffer.data(), static_cast<std::size_t>(count));
      if (text.size() <= most) continue;
      if (!is_device) return system_error(ENOMEM, what);
      return make_error(Code::command_no_such_file, {},
                        fmt::format("{}: a device that gives more than {} MiB", what, kMostOfDevice >> 20U));
    }
  } catch (const std::bad_alloc&) {
    return system_error(ENOMEM, what);
  } catch (const std::length_error&) {
    return system_error(ENOMEM, what);
  }
}

}  // namespace apl
