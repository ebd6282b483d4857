// aplc completion SHELL, aplc manual [COMMAND]: completion for shells and manual pages, from the data that --help is
// made of.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aplc/driver.h"

namespace aplc {
namespace {

struct Flag {
  std::string name;    // "--entry"
  std::string letter;  // "-e", or nothing
  std::string value;   // what it takes, or nothing
  std::string help;
  std::vector<std::string> choices;
};

struct Command {
  std::string name;  // "sparse search"; "" for aplc itself
  std::string help;
  std::vector<Flag> flags;
  std::vector<Flag> positionals;
  std::string footer;
};

std::string one_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// What an option's check says that it takes, as CLI11 writes it: `{c,interp}`.
std::vector<std::string> choices_of(const std::string& type) {
  const std::size_t open = type.find('{'), close = type.find('}');
  std::vector<std::string> choices;
  if (open == std::string::npos || close == std::string::npos) return choices;
  for (std::size_t at = open + 1; at < close;) {
    const std::size_t end = std::min(type.find(',', at), close);
    choices.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return choices;
}

Command command_data(const CLI::App& app, std::string name) {
  Command command{std::move(name), app.get_description(), {}, {}, app.get_footer()};
  const auto add = [&](const CLI::App& from) {
    for (const CLI::Option* option : from.get_options()) {
      Flag flag;
      const bool takes = option->get_items_expected_max() > 0;
      flag.help = option->get_description();
      flag.value = takes ? option->get_type_name() : "";
      flag.choices = choices_of(flag.value);
      if (option->get_positional()) {
        flag.name = option->get_name(true);
        command.positionals.push_back(flag);
        continue;
      }
      if (!option->get_snames().empty()) flag.letter = "-" + option->get_snames()[0];
      if (option->get_lnames().empty()) {
        flag.name = std::exchange(flag.letter, "");
        command.flags.push_back(flag);
      }
      for (const std::string& long_name : option->get_lnames()) {
        flag.name = "--" + long_name;
        command.flags.push_back(flag);
        flag.letter.clear();
      }
    }
  };
  add(app);
  // Groups of options are apps without a name.
  for (const CLI::App* group : app.get_subcommands([](const CLI::App*) { return true; }))
    if (group->get_name().empty()) add(*group);
  return command;
}

// aplc itself, then its commands in their order, each before those inside of it.
std::vector<Command> all_commands(const CLI::App& app) {
  std::vector<Command> all{command_data(app, "")};
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name().empty()) continue;
    all.push_back(command_data(*sub, sub->get_name()));
    for (const CLI::App* inner : sub->get_subcommands([](const CLI::App*) { return true; }))
      if (!inner->get_name().empty()) all.push_back(command_data(*inner, sub->get_name() + " " + inner->get_name()));
  }
  return all;
}

// Names that may follow a command.
std::vector<std::string> inner_names(const std::vector<Command>& all, const std::string& command) {
  std::vector<std::string> names;
  const std::string prefix = command.empty() ? "" : command + " ";
  for (const Command& other : all) {
    if (other.name.size() <= prefix.size() || !other.name.starts_with(prefix)) continue;
    const std::string rest = other.name.substr(prefix.size());
    if (rest.find(' ') == std::string::npos) names.push_back(rest);
  }
  return names;
}

std::string words_of(const Command& command, const std::vector<Command>& all) {
  std::string words;
  for (const std::string& name : inner_names(all, command.name)) words += (words.empty() ? "" : " ") + name;
  for (const Flag& flag : command.flags) words += (words.empty() ? "" : " ") + flag.name;
  return words;
}

std::string bash_completion(const std::vector<Command>& all) {
  std::string text =
      "# bash completion for aplc, made by `aplc completion bash`.\n"
      "_aplc() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]-} command=${COMP_WORDS[1]-} words=\n"
      "  ((COMP_CWORD > 1)) || command=\n"
      "  case \"$command ${COMP_WORDS[2]-}\" in\n";
  for (const Command& command : all)
    if (command.name.find(' ') != std::string::npos)
      text += fmt::format("    '{}') ((COMP_CWORD < 3)) || command='{}' ;;\n", command.name, command.name);
  text += "  esac\n  case \"$command $before\" in\n";
  for (const Command& command : all)
    for (const Flag& flag : command.flags) {
      if (flag.choices.empty()) continue;
      std::string choices;
      for (const std::string& choice : flag.choices) choices += (choices.empty() ? "" : " ") + choice;
      text += fmt::format("    '{} {}') COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n", command.name,
                          flag.name, choices);
    }
  text += "  esac\n  case $command in\n";
  for (const Command& command : all)
    text += fmt::format("    '{}') words='{}' ;;\n", command.name, words_of(command, all));
  text +=
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
      "  [[ $word == -* || -z $command ]] || COMPREPLY+=($(compgen -f -- \"$word\"))\n"
      "}\n"
      "complete -o filenames -F _aplc aplc\n";
  return text;
}

// In single quotes of a shell.
std::string shell_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string zsh_text(const std::string& text) {
  std::string result;
  for (const char c : one_line(text)) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_completion(const std::vector<Command>& all) {
  std::string text = "#compdef aplc\n# zsh completion for aplc, made by `aplc completion zsh`.\n_aplc() {\n";
  text += "  local command=${words[2]}\n  ((CURRENT > 2)) || command=\n  case \"$command ${words[3]}\" in\n";
  for (const Command& command : all)
    if (command.name.find(' ') != std::string::npos)
      text += fmt::format("    '{0}') ((CURRENT < 4)) || command='{0}' ;;\n", command.name);
  text += "  esac\n  local -a names options\n  case $command in\n";
  for (const Command& command : all) {
    text += fmt::format("    '{}')\n", command.name);
    text += "      names=(";
    for (const std::string& name : inner_names(all, command.name)) {
      const auto full = command.name.empty() ? name : command.name + " " + name;
      const auto found = std::ranges::find(all, full, &Command::name);
      text += shell_quoted(name + ":" + zsh_text(found->help)) + " ";
    }
    text += ")\n      options=(";
    for (const Flag& flag : command.flags) {
      std::string choices;
      for (const std::string& choice : flag.choices) choices += (choices.empty() ? "" : " ") + choice;
      const std::string value = flag.value.empty() ? ""
                                : choices.empty()  ? "=:value:_files"
                                                   : "=:value:(" + choices + ")";
      const std::size_t equals = value.empty() ? 0 : 1;
      text +=
          shell_quoted(flag.name + value.substr(0, equals) + "[" + zsh_text(flag.help) + "]" + value.substr(equals)) +
          " ";
    }
    text += ") ;;\n";
  }
  text +=
      "  esac\n"
      "  ((${#names})) && [[ $words[CURRENT] != -* ]] && _describe command names\n"
      "  _arguments -S $options '*:file:_files'\n"
      "}\n"
      "_aplc \"$@\"\n";
  return text;
}

std::string fish_completion(const std::vector<Command>& all) {
  std::string text = "# fish completion for aplc, made by `aplc completion fish`.\n";
  for (const Command& command : all) {
    std::string when = "__fish_use_subcommand";
    const std::size_t blank = command.name.find(' ');
    if (!command.name.empty()) when = "__fish_seen_subcommand_from " + command.name.substr(0, blank);
    if (blank != std::string::npos) when += "; and __fish_seen_subcommand_from " + command.name.substr(blank + 1);
    for (const std::string& name : inner_names(all, command.name)) {
      const auto full = command.name.empty() ? name : command.name + " " + name;
      const auto found = std::ranges::find(all, full, &Command::name);
      text += fmt::format("complete -c aplc -n {} -f -a {} -d {}\n", shell_quoted(when), name,
                          shell_quoted(one_line(found->help)));
    }
    for (const Flag& flag : command.flags) {
      std::string choices;
      for (const std::string& choice : flag.choices) choices += (choices.empty() ? "" : " ") + choice;
      const bool is_long = flag.name.starts_with("--");
      text += fmt::format("complete -c aplc -n {} {} {}{}{}{} -d {}\n", shell_quoted(when), is_long ? "-l" : "-s",
                          flag.name.substr(is_long ? 2 : 1), flag.letter.empty() ? "" : " -s " + flag.letter.substr(1),
                          flag.value.empty() ? "" : " -r", choices.empty() ? "" : " -f -a " + shell_quoted(choices),
                          shell_quoted(one_line(flag.help)));
    }
  }
  return text;
}

// As text of a manual page, which begins no line with a command of its language.
std::string roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (result.empty() || result.back() == '\n')
      if (c == '.' || c == '\'') result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

std::string options_text(const Command& command) {
  std::string text;
  if (!command.positionals.empty() || !command.flags.empty()) text += ".SH OPTIONS\n";
  const auto add = [&](const std::string& term, const std::string& help) {
    text += fmt::format(".TP\n.B {}\n{}\n", term, roff(help));
  };
  for (const Flag& positional : command.positionals) add(roff(positional.name), positional.help);
  for (const Flag& flag : command.flags) {
    std::string term = flag.letter.empty() ? roff(flag.name) : roff(flag.letter) + ", " + roff(flag.name);
    if (!flag.value.empty()) term += " \\fI" + roff(flag.value) + "\\fR";
    add(term, flag.help);
  }
  return text;
}

std::string manual_page(const std::vector<Command>& all, const Command& command) {
  std::string dashed = command.name.empty() ? "aplc" : "aplc-" + command.name;
  std::ranges::replace(dashed, ' ', '-');
  std::string upper;
  for (const char c : dashed) upper += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  const std::string summary =
      command.name.empty() ? "a compiler for data-parallel array programs" : one_line(command.help);
  std::string text =
      fmt::format(".TH {} 1 \"\" \"apl {}\" \"apl\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B aplc{}\n", upper,
                  APL_VERSION, roff(dashed), roff(summary), command.name.empty() ? "" : " " + roff(command.name));
  const std::vector<std::string> inner = inner_names(all, command.name);
  if (!inner.empty()) text += "\\fICOMMAND\\fR\n";
  if (!command.flags.empty()) text += "[\\fIOPTION\\fR]...\n";
  for (const Flag& positional : command.positionals) text += "\\fI" + roff(positional.name) + "\\fR\n";
  text += ".SH DESCRIPTION\n" + roff(command.help) + "\n";
  if (!inner.empty()) text += ".SH COMMANDS\n";
  for (const std::string& name : inner) {
    const auto full = command.name.empty() ? name : command.name + " " + name;
    const auto found = std::ranges::find(all, full, &Command::name);
    std::string page = "aplc-" + full;
    std::ranges::replace(page, ' ', '-');
    text += fmt::format(".TP\n.B {}\n{}: see \\fB{}\\fR(1)\n", roff(name), roff(found->help), roff(page));
  }
  text += options_text(command);
  if (!command.footer.empty()) text += ".SH NOTES\n" + roff(command.footer) + "\n";
  if (!command.name.empty()) text += ".SH SEE ALSO\n\\fBaplc\\fR(1)\n";
  return text;
}

}  // namespace

void add_manual(CLI::App& app, int& exit) {
  auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand("completion", "print what a shell needs to complete aplc's command lines");
  completion->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->callback([shell, &app, &exit] {
    const std::vector<Command> all = all_commands(app);
    write_out(*shell == "bash" ? bash_completion(all) : *shell == "zsh" ? zsh_completion(all) : fish_completion(all));
    exit = kFine;
  });
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* manual = app.add_subcommand("manual", "print a manual page, for man -l -");
  manual->add_option("COMMAND", *words, "the command, as sparse search (default: aplc itself)");
  auto list = std::make_shared<bool>(false);
  manual->add_flag("--list", *list, "the commands that have one, a line each");
  manual->callback([words, list, &app, &exit] {
    const std::vector<Command> all = all_commands(app);
    exit = kFine;
    if (*list) {
      for (const Command& command : all) print_out("{}\n", command.name);
      return;
    }
    const std::string name = fmt::format("{}", fmt::join(*words, " "));
    const auto found = std::ranges::find(all, name, &Command::name);
    if (found == all.end()) {
      exit =
          report(apl::make_error(apl::Code::command_bad_argument, {}, fmt::format("there is no command '{}'", name)));
      return;
    }
    write_out(manual_page(all, *found));
  });
}

}  // namespace aplc
