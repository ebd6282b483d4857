// Compiling generated text with the system's compiler, and loading it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/diagnostic.h"

namespace apl {

// A folder of our own; removed with all that is in it.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make(const std::string& parent);
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// A shared object in memory; closed when the last copy goes.
class SharedObject {
 public:
  static Result<SharedObject> open(const std::string& path);
  void* symbol(const std::string& name) const;  // null if it is not there

  template <class Function>
  Function function(const std::string& name) const {
    return reinterpret_cast<Function>(symbol(name));
  }

 private:
  std::shared_ptr<void> handle_;
};

// Compiled objects by everything that went into them. Shared by whoever was given it, on any thread. With a folder they
// are kept there too, and other processes may use it at the same time: a file holds its whole key and a checksum of the
// object, and appears whole or not at all. What cannot be written, and what has been damaged, is compiled again.
class ObjectCache {
 public:
  ObjectCache() = default;
  explicit ObjectCache(std::string folder) : folder_(std::move(folder)) {}
  std::optional<std::string> find(const std::string& key) const;
  void add(std::string key, std::string object);
  bool is_kept() const { return !folder_.empty(); }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> objects_;
  std::string folder_;
  bool trimmed_ = false;
};

// Where and how compilers run.
struct Workplace {
  std::string temporary_folder = "/tmp";  // parent of the folders that are made and removed
  std::string keep_folder;                // if set, a folder that exists: sources and objects are copied there
  std::shared_ptr<ObjectCache> cache;     // may be null
  std::function<void(std::string)> log;   // one line for each compilation; may be null
};

struct Compilation {
  std::vector<std::string> command;                             // the compiler and its flags, without files
  std::vector<std::string> libraries;                           // flags that follow the files
  std::vector<std::pair<std::string, std::string_view>> files;  // name and text; the first is compiled
  std::string output;                                           // name of the shared object
};

// bug.internal with the compiler's words if it refuses, unsupported.backend if there is none that works, machine.io or
// machine.resources if the machine fails.
Result<SharedObject> compile_shared(const Compilation& compilation, const Workplace& workplace);

// Runs a program without a shell and gives what it printed; that is the error's message if it fails (bug.internal, or
// machine.* where it says so or was ended by a signal; unsupported.backend if there is no such program).
Result<std::string> run_tool(const std::vector<std::string>& command);

}  // namespace apl
