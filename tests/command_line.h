// The command line of programs for tests and benchmarks. CLI11 reads it, in command_line.cpp alone: its headers take
// the compiler longer than what most of these programs add.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace apl {

class CommandLine {
 public:
  explicit CommandLine(std::string what);  // what the program does, for --help
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  // `value` becomes what is given: text, a number, or a list with commas between. Without it `value` stays as it is.
  template <class T>
  void option(const std::string& name, T& value, const std::string& help = "");
  void required(const std::string& name, std::string& value, const std::string& help = "");
  // One of `choices`, each of a list.
  void choice(const std::string& name, std::string& value, const std::vector<std::string>& choices,
              const std::string& help = "");
  void choices(const std::string& name, std::vector<std::string>& values, const std::vector<std::string>& choices,
               const std::string& help = "");
  void flag(const std::string& name, bool& value, const std::string& help = "");
  // What stands without a name, any number.
  void arguments(const std::string& name, std::vector<std::string>& values, const std::string& help = "");
  // The same, at least one, and all of them files that exist.
  void files(const std::string& name, std::vector<std::string>& values, const std::string& help = "");

  // Nothing, or the exit code: help was asked for, or the command line is wrong, and that was said.
  std::optional<int> parse(int argc, char** argv);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace apl
