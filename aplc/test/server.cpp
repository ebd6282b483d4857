#include "aplc/test/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

#include "suite/values.h"

namespace aplc {
namespace {

apl::Diagnostic stopped(std::string message) { return apl::make_error(apl::Code::run_stopped, {}, std::move(message)); }

std::string text_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A word of a command.
std::string as_word(const std::string& word) { return '"' + word + '"'; }

}  // namespace

apl::Result<Server> Server::start(const std::string& program, const ServerOptions& options, const std::string& folder) {
  static int count = 0;
  Server server;
  // Several processes may have one folder.
  server.files_ = fmt::format("{}/server-{}-{}", folder, getpid(), ++count);
  server.errors_ = server.files_ + ".err";
  if (access(program.c_str(), X_OK) != 0)
    return apl::make_error(apl::Code::command_no_such_file, {}, fmt::format("there is no program {}", program));
  int in[2] = {-1, -1}, out[2] = {-1, -1};
  const int errors = open(server.errors_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool piped = errors >= 0 && pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0;
  if (piped) {
    // A server that ends is an answer that does not come, no signal.
    std::signal(SIGPIPE, SIG_IGN);
    const std::string path = program.find('/') == std::string::npos ? "./" + program : program;
    std::vector<std::string> words{path};
    if (!options.runner.empty()) words.insert(words.begin(), options.runner);
    words.insert(words.end(), options.options.begin(), options.options.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    server.process_ = fork();
    if (server.process_ == 0) {
      std::signal(SIGPIPE, SIG_DFL);
      if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0 || dup2(errors, 2) < 0) _exit(127);
      execvp(arguments[0], arguments.data());  // the runner may be a command
      _exit(127);
    }
  }
  for (const int end : {in[0], out[1], errors})
    if (end >= 0) close(end);
  if (in[1] >= 0) server.to_ = fdopen(in[1], "w");
  if (out[0] >= 0) server.from_ = fdopen(out[0], "r");
  if (server.process_ < 0 || !server.to_ || !server.from_)
    return apl::make_error(apl::Code::command_no_such_file, {}, fmt::format("{} cannot be started", program));
  if (auto ready = server.answer(); !ready) {
    apl::Diagnostic error = std::move(ready).error();
    error.code = apl::Code::command_bad_argument;
    return error;
  }
  return server;
}

Server::Server(Server&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      to_(std::exchange(other.to_, nullptr)),
      from_(std::exchange(other.from_, nullptr)),
      files_(other.files_),
      errors_(other.errors_),
      said_(other.said_) {}

Server::~Server() {
  // It ends when there are no more commands.
  if (to_) std::fclose(to_);
  if (from_) std::fclose(from_);
  if (process_ > 0) waitpid(process_, nullptr, 0);
}

apl::Result<std::vector<std::string>> Server::answer() {
  std::vector<std::string> lines;
  bool failed = false;
  char* text = nullptr;
  std::size_t capacity = 0;
  for (;;) {
    const ssize_t length = getline(&text, &capacity, from_);
    if (length < 0) break;
    std::string line(text, static_cast<std::size_t>(length));
    if (line.ends_with('\n')) line.pop_back();
    if (line == "%%% OK") {
      std::free(text);
      if (!failed) return lines;
      std::string message;
      for (const std::string& one : lines) message += (message.empty() ? "" : "\n") + one;
      if (message.starts_with("Error: ")) message.erase(0, 7);
      return stopped(message);
    }
    if (line == "%%% FAILURE") {
      failed = true;
      lines.clear();
    } else {
      lines.push_back(std::move(line));
    }
  }
  std::free(text);
  return stopped("the server has ended: " + text_of(errors_));
}

apl::Result<std::vector<std::string>> Server::command(const std::string& line) {
  if (std::fputs((line + "\n").c_str(), to_) < 0 || std::fflush(to_) != 0)
    return stopped("the server has ended: " + text_of(errors_));
  return answer();
}

apl::Result<std::string> Server::restore(const std::string& entry, const std::vector<apl::HostValue>& inputs) {
  const auto types = command("inputs " + entry);
  if (!types) return types.error();
  const std::string file = files_ + ".in";
  std::ofstream out(file, std::ios::binary);
  for (const apl::HostValue& value : inputs) out << value.to_binary();
  out.close();
  if (!out) return apl::make_error(apl::Code::command_no_such_file, {}, "cannot write " + file);
  std::string line = "restore " + as_word(file), names;
  for (std::size_t k = 0; k < types->size(); ++k) {
    std::string type = (*types)[k];
    if (type.starts_with('*')) type.erase(0, 1);  // it is consumed
    line += fmt::format(" in{} {}", k, as_word(type));
    names += fmt::format(" in{}", k);
  }
  if (types->empty()) return names;
  if (auto restored = command(line); !restored) return std::move(restored).error();
  return names;
}

apl::Result<std::vector<apl::HostValue>> Server::call(const std::string& entry,
                                                      const std::vector<apl::HostValue>& inputs) {
  const auto names = restore(entry, inputs);
  if (!names) return names.error();
  auto called = command(fmt::format("call {} out{}", entry, *names));
  if (!names->empty())
    if (auto freed = command("free" + *names); !freed && called) called = freed.error();
  if (!called) return std::move(called).error();
  const std::string file = files_ + ".out";
  if (auto stored = command(fmt::format("store {} out", as_word(file))); !stored) return std::move(stored).error();
  if (auto freed = command("free out"); !freed) return std::move(freed).error();
  return apl::suite::read_values(file);
}

apl::Result<std::vector<double>> Server::benchmark(const std::string& entry, const std::vector<apl::HostValue>& inputs,
                                                   int runs, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto names = restore(entry, inputs);
  if (!names) return names.error();
  std::vector<double> times;
  const auto begin = Clock::now();
  for (int k = 0; k < runs && (k == 0 || std::chrono::duration<double>(Clock::now() - begin).count() <= seconds); ++k) {
    const auto lines = command(fmt::format("call {} out{}", entry, *names));
    if (!lines) return lines.error();
    for (const std::string& line : *lines)
      if (line.starts_with("runtime: ")) times.push_back(std::strtod(line.c_str() + 9, nullptr));
    if (auto freed = command("free out"); !freed) return std::move(freed).error();
  }
  if (!names->empty())
    if (auto freed = command("free" + *names); !freed) return std::move(freed).error();
  return times;
}

apl::Status Server::clear() {
  if (auto done = command("clear"); !done) return std::move(done).error();
  said_ = text_of(errors_).size();
  return apl::Unit{};
}

apl::Result<std::string> Server::report() {
  const auto lines = command("report");
  if (!lines) return lines.error();
  std::string text;
  for (const std::string& line : *lines) text += line + "\n";
  return text;
}

std::string Server::said() const {
  const std::string text = text_of(errors_);
  return text.substr(std::min(said_, text.size()));
}

}  // namespace aplc
