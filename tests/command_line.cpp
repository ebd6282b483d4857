#include "tests/command_line.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace apl {

namespace {

template <class T>
CLI::Option* add(CLI::App& app, const std::string& name, T& value, const std::string& help) {
  CLI::Option* option = app.add_option(name, value, help);
  if constexpr (std::is_same_v<T, std::string> || std::is_arithmetic_v<T>) return option->capture_default_str();
  return option->delimiter(',')->allow_extra_args(false);
}

}  // namespace

struct CommandLine::State {
  CLI::App app;
};

CommandLine::CommandLine(std::string what) : state_(new State{CLI::App(std::move(what))}) {}
CommandLine::~CommandLine() = default;

template <class T>
void CommandLine::option(const std::string& name, T& value, const std::string& help) {
  add(state_->app, name, value, help);
}
template void CommandLine::option(const std::string&, std::string&, const std::string&);
template void CommandLine::option(const std::string&, int&, const std::string&);
template void CommandLine::option(const std::string&, std::int64_t&, const std::string&);
template void CommandLine::option(const std::string&, std::uint64_t&, const std::string&);
template void CommandLine::option(const std::string&, double&, const std::string&);
template void CommandLine::option(const std::string&, std::vector<std::string>&, const std::string&);
template void CommandLine::option(const std::string&, std::vector<std::int64_t>&, const std::string&);

void CommandLine::required(const std::string& name, std::string& value, const std::string& help) {
  add(state_->app, name, value, help)->required();
}
void CommandLine::choice(const std::string& name, std::string& value, const std::vector<std::string>& choices,
                         const std::string& help) {
  add(state_->app, name, value, help)->check(CLI::IsMember(choices));
}
void CommandLine::choices(const std::string& name, std::vector<std::string>& values,
                          const std::vector<std::string>& choices, const std::string& help) {
  add(state_->app, name, values, help)->check(CLI::IsMember(choices));
}
void CommandLine::flag(const std::string& name, bool& value, const std::string& help) {
  state_->app.add_flag(name, value, help);
}
void CommandLine::arguments(const std::string& name, std::vector<std::string>& values, const std::string& help) {
  state_->app.add_option(name, values, help);
}
void CommandLine::files(const std::string& name, std::vector<std::string>& values, const std::string& help) {
  state_->app.add_option(name, values, help)->required()->check(CLI::ExistingFile);
}

std::optional<int> CommandLine::parse(int argc, char** argv) {
  try {
    state_->app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return state_->app.exit(error);
  }
  return std::nullopt;
}

}  // namespace apl
