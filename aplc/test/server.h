// A program as a process of its own that obeys Futhark's server protocol (docs/embedding.md).
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/host_value.h"

namespace aplc {

// A program that runs as a server: compiled to one, or there already.
struct ServerOptions {
  bool wanted = false;
  std::vector<std::string> options;  // for the program
  std::string program = {};          // is not compiled then; else empty
  std::string runner = {};           // starts the program, whose path is its first argument; or empty
};

class Server {
 public:
  // Starts `program` with the options and the runner of `options`. Files that values go by, and what it says on
  // standard error, lie in `folder`.
  static apl::Result<Server> start(const std::string& program, const ServerOptions& options, const std::string& folder);
  Server(Server&& other) noexcept;
  Server& operator=(Server&&) = delete;
  ~Server();

  // Results as Program::call has them: the parts of a tuple or record one after the other.
  apl::Result<std::vector<apl::HostValue>> call(const std::string& entry, const std::vector<apl::HostValue>& inputs);
  // Microseconds of each call, by the server's own clock; after `seconds` none is begun but the first.
  apl::Result<std::vector<double>> benchmark(const std::string& entry, const std::vector<apl::HostValue>& inputs,
                                             int runs, double seconds);

  // Forgets what was measured so far, and what was said.
  apl::Status clear();
  apl::Result<std::string> report();  // JSON, docs/report.schema.json
  std::string said() const;

 private:
  Server() = default;
  // What the server prints of a command; run.stopped where it refuses, or has ended.
  apl::Result<std::vector<std::string>> command(const std::string& line);
  apl::Result<std::vector<std::string>> answer();
  // Variables for the arguments, made from a file; their names.
  apl::Result<std::string> restore(const std::string& entry, const std::vector<apl::HostValue>& inputs);

  pid_t process_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
  std::string files_, errors_;  // how the names of files begin, and the one of standard error
  std::size_t said_ = 0;        // so much of it is old
};

}  // namespace aplc
