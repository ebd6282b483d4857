#include "aplc/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include <fmt/ranges.h>

#include "aplc/driver.h"
#include "suite/values.h"

namespace aplc {
namespace {

using Values = std::vector<apl::HostValue>;

// The names of an entry's flat parameters: a source parameter that became several has numbered ones.
std::vector<std::string> parameter_names(const apl::Function& entry) {
  std::vector<std::string> names;
  const apl::EntryInfo& info = *entry.entry;
  for (std::size_t k = 0; k < info.params.size(); ++k) {
    std::size_t count = k < info.param_values.size() ? info.param_values[k] : 1;
    for (std::size_t part = 0; part < count; ++part)
      names.push_back(count == 1 ? info.params[k].name : fmt::format("{}.{}", info.params[k].name, part));
  }
  while (names.size() < entry.given_params().size()) names.push_back(entry.values.name(entry.params[names.size()]));
  return names;
}

apl::Diagnostic bad(std::string message) { return apl::make_error(apl::Code::run_argument, {}, std::move(message)); }

apl::Diagnostic error_of(const std::string& what, apl::Diagnostic error) {
  error.message = fmt::format("{}: {}", what, error.message);
  return error;
}

// `types`: of the parameters that the values are for, as far as they are known.
apl::Result<Values> parse(const std::string& text, const std::vector<apl::ScalarType>& types) {
  return apl::parse_values(text, apl::OutOfRange::refuse, types);
}

apl::Result<Values> parse_argument(const std::string& text, const std::string& what,
                                   const std::vector<apl::ScalarType>& types) {
  if (text.starts_with('@')) {
    const std::string name = text.substr(1);
    const auto file = read_unpacked_file(name);
    if (!file) return name == "-" ? file.error() : error_of(what, file.error());
    auto values = parse(*file, types);
    if (values) return values;
    // The place of an error is one of the file, not of the program.
    apl::Diagnostic error = std::move(values).error();
    error.file = name == "-" ? "standard input" : name;
    return error;
  }
  auto parsed = parse(text, types);
  if (parsed) return parsed;
  apl::Diagnostic error = error_of(what, std::move(parsed).error());
  error.location = {};
  return error;
}

// The matrix that `@FILE` holds, if the parameter is a sparse operand and the file is one.
apl::Result<std::optional<apl::HostCsr>> matrix_file(const apl::Function& entry, std::size_t slot,
                                                     const std::string& text, const std::string& what) {
  std::optional<apl::HostCsr> none;
  const auto requests = apl::sparse_requests(entry);
  if (!text.starts_with('@') || !requests ||
      std::ranges::find(*requests, slot, &apl::SparseRequest::value) == requests->end())
    return none;
  const std::string file = text.substr(1);
  const auto plain = read_unpacked_file(file);
  if (!plain) return error_of(what, plain.error());
  if (!sparse::is_matrix_file(file, *plain)) return none;
  auto matrix = sparse::read_operand(*plain, entry.type(entry.params[slot]).element);
  if (matrix) return std::optional(std::move(*matrix));
  apl::Diagnostic error = std::move(matrix).error();
  error.file = file;
  if (error.code == apl::Code::run_argument) error.message = fmt::format("{}: {}", what, error.message);
  return error;
}

// Random arrays in the open slots.
apl::Status fill_open(const apl::Function& entry, const std::vector<std::string>& names, const GivenMatrices& matrices,
                      const RandomArguments& random, std::vector<std::optional<apl::HostValue>>& slots) {
  std::map<std::string, std::int64_t> sizes = random.sizes;
  const auto add = [&](const apl::Poly& dim, std::int64_t size) {
    if (const auto symbol = dim.symbol()) sizes.emplace(entry.values.name(*symbol), size);
  };
  for (std::size_t k = 0; k < slots.size(); ++k) {
    const apl::Type& type = entry.type(entry.params[k]);
    if (const auto matrix = matrices.find(k); matrix != matrices.end() && type.rank() == 2) {
      add(type.shape[0], matrix->second.rows);
      add(type.shape[1], matrix->second.columns);
    } else if (slots[k] && slots[k]->shape.size() == type.rank()) {
      for (std::size_t d = 0; d < type.rank(); ++d) add(type.shape[d], slots[k]->shape[d]);
    }
  }
  for (std::size_t k = 0; k < slots.size(); ++k) {
    const apl::Type& type = entry.type(entry.params[k]);
    if (slots[k] || type.rank() == 0) continue;
    std::string text;
    for (const apl::Poly& dim : type.shape) {
      const auto symbol = dim.symbol();
      const auto size = symbol ? sizes.find(entry.values.name(*symbol)) : sizes.end();
      const auto number = dim.constant();
      if (!number && size == sizes.end())
        return bad(fmt::format("no value for parameter `{}`, and no size for {}: --size says one", names[k],
                               symbol ? "`" + entry.values.name(*symbol) + "`" : "it"));
      text += fmt::format("[{}]", number ? *number : size->second);
    }
    auto value = apl::suite::generate_value(text + std::string(apl::to_text(type.element)), random.seed);
    if (!value) return std::move(value).error();
    slots[k] = std::move(*value);
  }
  return apl::Unit{};
}

std::string describe(apl::ScalarType element, std::size_t rank) {
  std::string text;
  for (std::size_t k = 0; k < rank; ++k) text += "[]";
  return text + std::string(apl::to_text(element));
}

}  // namespace

void round_stored(apl::HostValue& value, apl::ScalarType param) {
  if (value.type != apl::ScalarType::f32 || !apl::is_storage(param)) return;
  apl::HostValue rounded = apl::HostValue::zeros(param, value.shape);
  for (std::int64_t k = 0; k < value.element_count(); ++k) rounded.set(k, apl::convert(value.at(k), param));
  value = std::move(rounded);
}

apl::Result<Values> read_arguments(const apl::Function& entry, const std::vector<std::string>& texts,
                                   GivenMatrices& matrices, const RandomArguments* random) {
  std::vector<std::string> names = parameter_names(entry);
  std::vector<std::optional<apl::HostValue>> slots(entry.given_params().size());
  Values unnamed;
  const auto slot_of = [&](const std::string& text) {
    const std::size_t equals = text.find('=');
    std::size_t slot = names.size();
    for (std::size_t k = 0; k < names.size() && equals != std::string::npos; ++k)
      if (text.compare(0, equals, names[k]) == 0 && names[k].size() == equals) slot = k;
    return slot;
  };
  // Values without a name are for the parameters that no other argument names.
  std::vector<apl::ScalarType> open;
  for (std::size_t k = 0; k < names.size(); ++k)
    if (std::ranges::none_of(texts, [&](const std::string& text) { return slot_of(text) == k; }))
      open.push_back(entry.type(entry.params[k]).element);
  const auto types_of = [&](std::size_t slot) {
    if (slot < names.size()) return std::vector{entry.type(entry.params[slot]).element};
    const auto given = static_cast<std::ptrdiff_t>(std::min(unnamed.size(), open.size()));
    return std::vector(open.begin() + given, open.end());
  };
  if (texts.empty() && !slots.empty() && random == nullptr) {
    auto parsed = parse_argument("@-", "standard input", open);
    if (!parsed) return parsed;
    unnamed = std::move(*parsed);
  }
  for (const std::string& text : texts) {
    std::size_t equals = text.find('=');
    const std::size_t slot = slot_of(text);
    if (equals != std::string::npos && slot == names.size())
      return bad(fmt::format("no parameter `{}`; the entry has: {}", text.substr(0, equals), fmt::join(names, ", ")));
    std::string what = slot < names.size() ? fmt::format("argument `{}`", names[slot])
                                           : fmt::format("argument {}", text.substr(0, 40));
    if (slot < names.size() && !slots[slot]) {
      auto matrix = matrix_file(entry, slot, text.substr(equals + 1), what);
      if (!matrix) return std::move(matrix).error();
      if (*matrix) {
        slots[slot] = apl::HostValue::zeros((*matrix)->values.type, {0, 0});
        matrices.emplace(slot, std::move(**matrix));
        continue;
      }
    }
    auto parsed = parse_argument(slot < names.size() ? text.substr(equals + 1) : text, what, types_of(slot));
    if (!parsed) return parsed;
    if (slot == names.size()) {
      unnamed.insert(unnamed.end(), parsed->begin(), parsed->end());
    } else if (slots[slot] || parsed->size() != 1) {
      return bad(slots[slot] ? fmt::format("parameter `{}` is given twice", names[slot])
                             : fmt::format("{}: one value is wanted, there are {}", what, parsed->size()));
    } else {
      slots[slot] = std::move((*parsed)[0]);
    }
  }
  std::size_t next = 0;
  for (auto& slot : slots)
    if (!slot && next < unnamed.size()) slot = std::move(unnamed[next++]);
  if (next < unnamed.size())
    return bad(fmt::format("{} values too many: the entry `{}` takes {}", unnamed.size() - next, entry.entry->name,
                           slots.size()));
  if (random != nullptr)
    if (auto filled = fill_open(entry, names, matrices, *random, slots); !filled) return std::move(filled).error();
  Values values;
  for (std::size_t k = 0; k < slots.size(); ++k) {
    const apl::Type& type = entry.type(entry.params[k]);
    if (!slots[k])
      return bad(fmt::format("no value for parameter `{}` : {}", names[k], describe(type.element, type.rank())));
    round_stored(*slots[k], type.element);
    if (slots[k]->type != type.element || slots[k]->shape.size() != type.rank())
      return bad(fmt::format("parameter `{}` is a {}, the value given is a {}", names[k],
                             describe(type.element, type.rank()), describe(slots[k]->type, slots[k]->shape.size())));
    values.push_back(std::move(*slots[k]));
  }
  return values;
}

}  // namespace aplc
