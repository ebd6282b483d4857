#include "runtime/backends/toolchain.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "ir/read_file.h"
#include "ir/system_error.h"
#include "runtime/backends/openmp.h"

extern char** environ;

namespace apl {

namespace {

Status write_text(const std::string& path, std::string_view text) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  int error = file < 0 ? errno : 0;
  while (error == 0 && !text.empty()) {
    const ssize_t count = write(file, text.data(), text.size());
    if (count < 0 && errno != EINTR) error = errno;
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
  }
  if (file >= 0 && close(file) != 0 && error == 0) error = errno;
  if (error != 0) return system_error(error, fmt::format("cannot write {}", path));
  return Unit{};
}

// 128 bits of a text, two FNV-1a hashes with different starts.
std::string name_of(std::string_view key) {
  std::uint64_t a = 0xcbf29ce484222325U, b = 0x9e3779b97f4a7c15U;
  for (const char c : key) {
    a = (a ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    b = (b ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    b ^= b >> 29U;
  }
  return fmt::format("{:016x}{:016x}", a, b);
}

// The object comes after it.
std::string header_of(std::string_view key, std::string_view object) {
  return fmt::format("apl-object {} {} {}\n{}\n", key.size(), object.size(), name_of(object), key);
}

// The object of a cached file; nothing if the file is another key's, was cut or has changed since it was written.
std::optional<std::string> object_in(std::string text, std::string_view key) {
  const std::size_t line = text.find('\n');
  if (line == std::string::npos || text.size() < line + key.size() + 2) return std::nullopt;
  const std::string_view object = std::string_view(text).substr(line + key.size() + 2);
  if (!text.starts_with(header_of(key, object))) return std::nullopt;
  text.erase(0, text.size() - object.size());
  return text;
}

// Old files go when there is too much.
void trim(const std::string& folder) {
  constexpr std::uintmax_t kMost = std::uintmax_t{512} << 20U;
  struct Entry {
    std::filesystem::file_time_type used;
    std::uintmax_t bytes;
    std::filesystem::path path;
  };
  std::vector<Entry> entries;
  std::uintmax_t total = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    entries.push_back({it->last_write_time(ignored), it->file_size(ignored), it->path()});
    if (!ignored) total += entries.back().bytes;
  }
  if (total <= kMost) return;
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& entry : entries) {
    if (total <= kMost / 2) break;
    if (std::filesystem::remove(entry.path, error)) total -= std::min(total, entry.bytes);
  }
}

// Under another name first: readers see all of the file or none of it.
void write_whole(const std::string& folder, const std::string& name, std::string_view text) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::string temporary = folder + "/new-XXXXXX";
  const int file = mkstemp(temporary.data());
  if (file < 0) return;
  close(file);
  if (!write_text(temporary, text) || std::rename(temporary.c_str(), (folder + "/" + name).c_str()) != 0)
    std::filesystem::remove(temporary, error);
}

// What tells a compiler from another one of the same name, and what `-march=native` means to it.
std::string machine_and_compiler(const std::string& compiler) {
  std::string text;
  if (auto version = run_tool({compiler, "--version"})) text = std::move(*version);
  std::ifstream cpu("/proc/cpuinfo");
  for (std::string line; std::getline(cpu, line) && !line.empty();)
    if (line.starts_with("model name") || line.starts_with("flags") || line.starts_with("Features")) text += line;
  return text;
}

std::string key_of(const Compilation& compilation, bool kept) {
  std::string key;
  auto add = [&](std::string_view part) { key += fmt::format("{}:{};", part.size(), part); };
  for (const auto* words : {&compilation.command, &compilation.libraries})
    for (const std::string& word : *words) add(word);
  for (const auto& [name, text] : compilation.files) {
    add(name);
    add(text);
  }
  if (kept) add(machine_and_compiler(compilation.command.front()));
  return key;
}

}  // namespace

Result<TemporaryFolder> TemporaryFolder::make(const std::string& parent) {
  std::string path = parent + "/apl-XXXXXX";
  if (!mkdtemp(path.data())) return system_error(errno, fmt::format("cannot make a temporary folder in {}", parent));
  return TemporaryFolder(path);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Result<SharedObject> SharedObject::open(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    const std::string message = fmt::format("cannot load {}: {}", path, why ? why : "unknown reason");
    // Only a name that is missing is of our making; the loader says no more than a text.
    const bool is_bug = message.find("undefined symbol") != std::string::npos;
    return make_error(is_bug ? Code::bug_internal : Code::machine_resources, {}, message);
  }
  keep_openmp_loaded();
  SharedObject object;
  object.handle_ = std::shared_ptr<void>(handle, [](void* h) { dlclose(h); });
  return object;
}

void* SharedObject::symbol(const std::string& name) const {
  return handle_ ? dlsym(handle_.get(), name.c_str()) : nullptr;
}

std::optional<std::string> ObjectCache::find(const std::string& key) const {
  {
    std::lock_guard lock(mutex_);
    auto found = objects_.find(key);
    if (found != objects_.end()) return found->second;
  }
  if (folder_.empty()) return std::nullopt;
  const std::string path = folder_ + "/" + name_of(key);
  auto text = read_bytes(path);
  auto object = text ? object_in(std::move(*text), key) : std::nullopt;
  if (!object) return std::nullopt;
  std::error_code ignored;
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now(), ignored);
  return object;
}

void ObjectCache::add(std::string key, std::string object) {
  std::lock_guard lock(mutex_);
  if (!folder_.empty()) {
    if (!std::exchange(trimmed_, true)) trim(folder_);
    write_whole(folder_, name_of(key), header_of(key, object) + object);
  }
  objects_.insert_or_assign(std::move(key), std::move(object));
}

namespace {

// What of the machine's a tool complains about, if it does.
std::optional<Code> fault_in(std::string_view text) {
  for (const int error : {ENOSPC, EDQUOT, EIO, EMFILE, ENFILE, ENOMEM, EAGAIN}) {
    const Diagnostic known = system_error(error, "");
    // As `: No space left on device`, without the colon.
    if (text.find(std::string_view(known.message).substr(2)) != std::string_view::npos) return known.code;
  }
  return std::nullopt;
}

// The environment, with messages in the language in which they are looked for.
std::vector<std::string> plain_environment() {
  std::vector<std::string> variables{"LC_ALL=C"};
  for (char** variable = environ; variable && *variable; ++variable)
    if (!std::string_view(*variable).starts_with("LC_ALL=")) variables.emplace_back(*variable);
  return variables;
}

}  // namespace

Result<std::string> run_tool(const std::vector<std::string>& command) {
  int output[2];
  const std::string what = fmt::format("cannot run the compiler `{}`", command[0]);
  if (pipe2(output, O_CLOEXEC) != 0) return system_error(errno, what);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::vector<std::string> variables = plain_environment();
  std::vector<char*> envp;
  for (std::string& variable : variables) envp.push_back(variable.data());
  envp.push_back(nullptr);
  pid_t child = 0;
  const int spawned = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  close(output[1]);
  std::string text;
  char buffer[4096];
  while (spawned == 0) {
    const ssize_t n = read(output[0], buffer, sizeof buffer);
    if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && errno != EINTR)) break;
  }
  close(output[0]);
  if (spawned != 0) {
    Diagnostic error = system_error(spawned, what);
    if (error.code == Code::command_no_such_file) error.code = Code::unsupported_backend;
    return error;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  if (WIFSIGNALED(status))
    return make_error(
        Code::machine_resources, {},
        fmt::format("`{}` was ended: {}\n{}", fmt::join(command, " "), strsignal(WTERMSIG(status)), text));
  return make_error(fault_in(text).value_or(Code::bug_internal), {},
                    fmt::format("`{}` failed:\n{}", fmt::join(command, " "), text));
}

namespace {

// A compiler that cannot compile an empty file either lacks something, or has a flag that it does not know: then our
// text is not what is wrong.
Diagnostic explain_refusal(Diagnostic error, const Compilation& compilation, const std::string& folder) {
  if (error.code != Code::bug_internal) return error;
  const std::string source = folder + "/empty-" + compilation.files.front().first;
  if (auto written = write_text(source, "typedef int nothing;\n"); !written) return std::move(written).error();
  std::vector<std::string> command = compilation.command;
  command.insert(command.end(), {source, "-o", folder + "/empty.so"});
  command.insert(command.end(), compilation.libraries.begin(), compilation.libraries.end());
  auto empty = run_tool(command);
  if (empty) return error;
  Diagnostic reason = std::move(empty).error();
  if (reason.code == Code::bug_internal) reason.code = Code::unsupported_backend;
  return reason;
}

}  // namespace

Result<SharedObject> compile_shared(const Compilation& compilation, const Workplace& workplace) {
  // Always a folder of its own: the loader knows objects by their path, and two programs must not be one to it.
  auto folder = TemporaryFolder::make(workplace.temporary_folder);
  if (!folder) return std::move(folder).error();
  const std::string source = folder->path() + "/" + compilation.files.front().first;
  const std::string object = folder->path() + "/" + compilation.output;
  auto log = [&](std::string line) {
    if (workplace.log) workplace.log(std::move(line));
  };
  auto keep = [&](const std::string& name) {
    std::error_code error;
    if (!workplace.keep_folder.empty())
      std::filesystem::copy_file(folder->path() + "/" + name, workplace.keep_folder + "/" + name,
                                 std::filesystem::copy_options::overwrite_existing, error);
    if (error) log(fmt::format("cannot keep {} in {}: {}", name, workplace.keep_folder, error.message()));
  };
  for (const auto& [name, text] : compilation.files) {
    if (auto written = write_text(folder->path() + "/" + name, text); !written) return std::move(written).error();
    keep(name);
  }
  const std::string key = key_of(compilation, workplace.cache && workplace.cache->is_kept());
  if (auto known = workplace.cache ? workplace.cache->find(key) : std::nullopt) {
    if (auto written = write_text(object, *known); !written) return std::move(written).error();
    log(fmt::format("{}: compiled before", compilation.output));
  } else {
    std::vector<std::string> command = compilation.command;
    command.insert(command.end(), {"-I", folder->path(), source, "-o", object});
    command.insert(command.end(), compilation.libraries.begin(), compilation.libraries.end());
    const auto start = std::chrono::steady_clock::now();
    auto said = run_tool(command);
    if (!said) return explain_refusal(std::move(said).error(), compilation, folder->path());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    log(fmt::format("{} ({:.2f} s)", fmt::join(command, " "), seconds.count()));
    if (!said->empty()) log(*said);
    if (workplace.cache)
      if (auto bytes = read_bytes(object)) workplace.cache->add(key, std::move(*bytes));
  }
  keep(compilation.output);
  return SharedObject::open(object);
}

}  // namespace apl
