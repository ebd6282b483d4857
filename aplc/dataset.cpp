// aplc dataset: random values, and values from one format to the other.
#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <optional>

#include "aplc/driver.h"
#include "suite/values.h"

namespace aplc {
namespace {

enum class Format : std::uint8_t { text, binary, type };

// Options act from left to right, so they are read here and not by CLI11, which does not keep their order.
class Dataset {
 public:
  int run(const std::vector<std::string>& words) {
    for (std::size_t k = 0; k < words.size(); ++k) {
      std::string name = words[k];
      std::optional<std::string> value;
      if (const std::size_t equals = name.find('='); name.starts_with("--") && equals != std::string::npos) {
        value = name.substr(equals + 1);
        name.resize(equals);
      } else if (name.size() > 2 && (name.starts_with("-g") || name.starts_with("-s"))) {
        value = name.substr(2);
        name.resize(2);
      }
      const bool takes_value =
          name == "-g" || name == "--generate" || name == "-s" || name == "--seed" || name.ends_with("-bounds");
      if (takes_value && !value) {
        if (++k == words.size()) return wrong(fmt::format("{} wants a value", name));
        value = words[k];
      } else if (!takes_value && value) {
        return wrong(fmt::format("{} takes no value", name));
      }
      if (!option(name, value.value_or(""))) return exit_;
    }
    if (!generated_) convert();
    return exit_;
  }

 private:
  int wrong(const std::string& message) {
    print_error("aplc: error: {} [command.bad-argument]\n", message);
    return exit_ = kCommandLine;
  }

  bool option(const std::string& name, const std::string& value) {
    if (name == "-b" || name == "--binary") {
      format_ = Format::binary;
    } else if (name == "--text") {
      format_ = Format::text;
    } else if (name == "-t" || name == "--type") {
      format_ = Format::type;
    } else if (name == "-s" || name == "--seed") {
      const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), seed_);
      if (problem != std::errc() || end != value.data() + value.size()) wrong(fmt::format("`{}` is no seed", value));
    } else if (name == "-g" || name == "--generate") {
      generate(value);
    } else if (name.ends_with("-bounds")) {
      bounds(name.substr(2, name.size() - 9), value);
    } else {
      wrong(fmt::format("no option {}", name));
    }
    return exit_ == kFine;
  }

  void generate(const std::string& text) {
    auto value = apl::suite::generate_value(text, seed_++, bounds_);
    if (!value) {
      if (exit_code(value.error()) == kMachine) exit_ = report(value.error());
      if (exit_ == kFine) wrong(value.error().message);
      return;
    }
    generated_ = true;
    print(*value);
  }

  void bounds(const std::string& type_text, const std::string& text) {
    const auto type = apl::scalar_type_from_text(type_text);
    const std::size_t colon = text.find(':');
    if (!type || *type == apl::ScalarType::unit || colon == std::string::npos) {
      wrong(fmt::format("expected --T-bounds=MIN:MAX with a type T, found --{}-bounds={}", type_text, text));
      return;
    }
    auto low = limit(text.substr(0, colon), *type), high = limit(text.substr(colon + 1), *type);
    if (!low || !high || apl::evaluate(apl::CompareOp::lt, *high, *low).value_or(apl::Scalar()).as_bool()) {
      wrong(fmt::format("`{}` is no range of {}", text, type_text));
      return;
    }
    bounds_[*type] = {*low, *high};
  }

  // A number without suffix, of the type.
  static std::optional<apl::Scalar> limit(const std::string& text, apl::ScalarType type) {
    const std::string suffix = type == apl::ScalarType::boolean ? "" : std::string(apl::to_text(type));
    auto values = apl::parse_values(text + (text.ends_with(suffix) ? "" : suffix));
    if (!values || values->size() != 1 || !(*values)[0].shape.empty() || (*values)[0].type != type) return std::nullopt;
    return (*values)[0].at(0);
  }

  void convert() {
    const auto text = read_unpacked_file("-");
    if (!text) {
      exit_ = report(text.error());
      return;
    }
    auto values = apl::parse_values(*text);
    if (!values) {
      const apl::Diagnostic& error = values.error();
      print_error("{}", apl::render(error, "standard input", *text));
      exit_ = kProgram;
      return;
    }
    for (const apl::HostValue& value : *values) print(value);
  }

  void print(const apl::HostValue& value) const {
    if (format_ == Format::binary) {
      write_out(value.to_binary());
    } else if (format_ == Format::text) {
      write_out(value.to_text() + "\n");
    } else {
      std::string sizes;
      for (std::int64_t size : value.shape) sizes += fmt::format("[{}]", size);
      print_out("{}{}\n", sizes, apl::to_text(value.type));
    }
  }

  Format format_ = Format::text;
  std::uint64_t seed_ = 1;
  apl::suite::AllBounds bounds_;
  bool generated_ = false;
  int exit_ = kFine;
};

}  // namespace

void add_dataset(CLI::App& app, int& exit) {
  CLI::App* command = app.add_subcommand("dataset", "generate random values, or convert values");
  command->allow_extras();
  command->footer(
      "Options act from left to right; without -g the values of standard input are converted:\n"
      "  -g, --generate TYPE|VALUE  a random value of a type such as [10][20]f32 or i32, or the value itself\n"
      "  -s, --seed SEED            of the next value (default 1); each further one adds 1\n"
      "  --T-bounds=MIN:MAX         random numbers of type T are in this range, ends included\n"
      "  -b, --binary               write the binary format\n"
      "  --text                     write text (default)\n"
      "  -t, --type                 write only types");
  command->callback([command, &exit] { exit = Dataset().run(command->remaining()); });
}

}  // namespace aplc
