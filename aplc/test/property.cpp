#include "aplc/test/property.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <optional>

#include "aplc/driver.h"
#include "aplc/test/show_value.h"
#include "codegen/emit/library/api_types.h"
#include "ir/attributes.h"
#include "suite/values.h"

namespace aplc {
namespace {

using apl::library::ApiEntry;
using apl::library::ApiType;

// Of arrays that are made here, with all dims of one size.
constexpr double kMostElements = 1 << 20;

struct Property {
  std::string entry, generator, shrinker;
  std::int64_t size = 0;
};

// NAME(VALUE), or nullopt.
std::optional<std::string> value_of(const std::string& argument, const std::string& name) {
  if (!argument.starts_with(name + "(") || !argument.ends_with(")")) return std::nullopt;
  return argument.substr(name.size() + 1, argument.size() - name.size() - 2);
}

std::string type_text(const ApiType& type) { return type.structure.empty() ? type.name : type.structure; }

std::string signature(const ApiEntry& entry) {
  std::string text;
  for (const ApiEntry::Input& input : entry.inputs) text += type_text(*input.type) + " -> ";
  return text + type_text(*entry.output);
}

// What became of a call of the property: true, false, or an error of the program.
struct Answer {
  enum class Kind : std::uint8_t { holds, fails, error };
  Kind kind = Kind::holds;
  std::string error;
};

class PropertyTest {
 public:
  PropertyTest(const apl::Module& front, Executable& executable, const PropertyOptions& options)
      : front_(front), executable_(executable), options_(options) {}

  PropertyVerdict run(const std::string& name) {
    if (!read(name)) return std::move(verdict_);
    const apl::HostValue seeds = apl::suite::random_value(apl::ScalarType::u64, {options_.tests}, options_.seed);
    for (int k = 0; k < options_.tests; ++k) {
      const std::uint64_t seed = seeds.at(k).bits();
      if (!generate(property_.size, seed, argument_)) return std::move(verdict_);
      const std::optional<Answer> answer = ask(argument_);
      if (!answer) return std::move(verdict_);
      if (answer->kind == Answer::Kind::holds) continue;
      failure_ = *answer;
      size_ = property_.size;
      shrink(seed);
      return {failure_.kind == Answer::Kind::fails ? TestKind::false_property : TestKind::run_time_error,
              fmt::format("{} for {} (size {}, seed {}, argument {} of {}){}",
                          failure_.kind == Answer::Kind::fails ? "false" : one_line(failure_.error),
                          show_value(*entry_->inputs[0].type, argument_), size_, options_.seed, k + 1, options_.tests,
                          note_)};
    }
    return {};
  }

 private:
  bool bad(std::string message, TestKind kind = TestKind::bad_test) {
    verdict_ = {kind, std::move(message)};
    return false;
  }

  static std::string one_line(std::string text) {
    while (text.ends_with('\n')) text.pop_back();
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  }

  const ApiEntry* entry_named(const std::string& name) {
    const apl::Function* function = front_.find_entry(name);
    return function == nullptr ? nullptr : &entries_.emplace_back(apl::library::api_entry(*function, types_));
  }

  // The attribute, and whether the entries that it names are of the types that they must be of.
  bool read(const std::string& name) {
    property_.entry = name;
    property_.size = options_.size;
    const apl::Function* function = front_.find_entry(name);
    if (function == nullptr) return bad(fmt::format("the property `{}` is no entry", name));
    entry_ = entry_named(name);
    if (!read_attribute(*function)) return false;
    if (entry_->inputs.size() != 1)
      return bad(fmt::format("the property `{}` has {} parameters; one is wanted", name, entry_->inputs.size()));
    if (type_text(*entry_->output) != "bool")
      return bad(fmt::format("the property `{}` must give a bool, not {}", name, type_text(*entry_->output)));
    const std::string type = type_text(*entry_->inputs[0].type);
    if (!check("generator", property_.generator, fmt::format("i64 -> u64 -> {}", type)) ||
        !check("shrinker", property_.shrinker, fmt::format("{} -> u64 -> {}", type, type)))
      return false;
    return !property_.generator.empty() || can_generate(*function, *entry_->inputs[0].type);
  }

  bool read_attribute(const apl::Function& function) {
    std::vector<const apl::Attribute*> found;
    for (const apl::Attribute& attribute : function.attributes)
      if (attribute.name == apl::attribute::prop.name) found.push_back(&attribute);
    if (found.size() != 1)
      return bad(
          fmt::format("the property `{}` has {} attributes #[prop]; one is wanted", property_.entry, found.size()));
    for (const std::string& argument : found[0]->arguments) {
      if (const auto generator = value_of(argument, "gen")) {
        property_.generator = *generator;
      } else if (const auto shrinker = value_of(argument, "shrink")) {
        property_.shrinker = *shrinker;
      } else if (const auto size = value_of(argument, "size")) {
        const char* end = size->data() + size->size();
        const auto [stopped, problem] = std::from_chars(size->data(), end, property_.size);
        if (problem != std::errc() || stopped != end || property_.size < 0)
          return bad(fmt::format("#[prop] of `{}`: `{}` is no size", property_.entry, *size));
      } else {
        return bad(fmt::format("#[prop] of `{}` takes gen(ENTRY), shrink(ENTRY) and size(NUMBER), not `{}`",
                               property_.entry, argument));
      }
    }
    return true;
  }

  bool check(std::string_view role, const std::string& name, const std::string& wanted) {
    if (name.empty()) return true;
    const ApiEntry* entry = entry_named(name);
    if (entry == nullptr) return bad(fmt::format("the {} `{}` of `{}` is no entry", role, name, property_.entry));
    if (signature(*entry) == wanted) return true;
    return bad(fmt::format("the {} `{}` of `{}` must be of type {}, and is of type {}", role, name, property_.entry,
                           wanted, signature(*entry)));
  }

  bool can_generate(const apl::Function& function, const ApiType& type) {
    const auto has_variants = [](const auto& self, const ApiType& of) -> bool {
      return !of.variants.empty() || (of.item != nullptr && self(self, *of.item)) ||
             std::ranges::any_of(of.fields, [&](const ApiType::Field& field) { return self(self, *field.type); });
    };
    if (has_variants(has_variants, type) || !type.soa.empty())
      return bad(fmt::format("no random values are made of type {}: `{}` needs a generator, #[prop(gen(ENTRY))]",
                             type_text(type), property_.entry));
    std::size_t most_rank = 1;
    for (const apl::Value param : function.given_params()) {
      const apl::Type& each = function.type(param);
      params_.push_back(each);
      most_rank = std::max(most_rank, each.rank());
      for (const apl::Poly& dim : each.shape)
        if (!dim.constant() && !dim.symbol())
          return bad(
              fmt::format("`{}` needs a generator, #[prop(gen(ENTRY))]: one size of its argument depends on "
                          "another",
                          property_.entry));
    }
    const double most = std::floor(std::pow(kMostElements, 1.0 / static_cast<double>(most_rank)));
    property_.size = std::min(property_.size, static_cast<std::int64_t>(most));
    return true;
  }

  // False if that is no error of the property's: then there is a verdict.
  bool generate(std::int64_t size, std::uint64_t seed, Values& argument) {
    if (!property_.generator.empty()) {
      const auto made = executable_.call(property_.generator,
                                         {apl::HostValue::scalar(apl::Scalar::integer(apl::ScalarType::i64, size)),
                                          apl::HostValue::scalar(apl::Scalar::from_bits(apl::ScalarType::u64, seed))});
      if (made) argument = *made;
      return made || bad(fmt::format("the generator `{}` fails with size {} and seed {}: {}", property_.generator, size,
                                     seed, one_line(error_text(made.error()))),
                         kind_of(made.error()));
    }
    apl::suite::AllBounds bounds;
    for (const apl::ScalarType type : {apl::ScalarType::f16, apl::ScalarType::f32, apl::ScalarType::f64})
      bounds[type] = {apl::Scalar::floating(type, -1), apl::Scalar::floating(type, 1)};
    argument.clear();
    for (const apl::Type& param : params_) {
      std::vector<std::int64_t> shape;
      for (const apl::Poly& dim : param.shape) shape.push_back(dim.constant().value_or(size));
      argument.push_back(apl::suite::random_value(param.element, std::move(shape), seed + argument.size(), bounds));
    }
    return true;
  }

  static TestKind kind_of(const apl::Diagnostic& error) {
    switch (exit_code(error)) {
      case kProgram: return TestKind::run_time_error;
      case kLimitation: return TestKind::unsupported;
      case kMachine: return TestKind::machine;
      default: return TestKind::bug;
    }
  }

  // Nullopt if the call failed for another reason than an error of the program: then there is a verdict.
  std::optional<Answer> ask(const Values& argument) {
    const auto got = executable_.call(property_.entry, argument);
    if (got) {
      const bool holds = got->size() == 1 && (*got)[0].at(0).as_bool();
      return Answer{holds ? Answer::Kind::holds : Answer::Kind::fails, {}};
    }
    if (kind_of(got.error()) == TestKind::run_time_error) return Answer{Answer::Kind::error, error_text(got.error())};
    bad(apl::render(got.error(), "", ""), kind_of(got.error()));
    return std::nullopt;
  }

  // Whether the property fails for the candidate in the same way: then it is the argument.
  bool take(Values candidate) {
    const std::optional<Answer> answer = ask(candidate);
    if (!answer || answer->kind != failure_.kind) return false;
    failure_ = *answer;
    argument_ = std::move(candidate);
    return true;
  }

  bool has_time() const { return std::chrono::steady_clock::now() < shrink_end_; }

  void shrink(std::uint64_t seed) {
    shrink_end_ = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                         std::chrono::duration<double>(options_.shrink_seconds));
    if (!property_.shrinker.empty() && shrink_by_entry()) return;
    const bool has_arrays = !property_.generator.empty() || std::ranges::any_of(params_, [](const apl::Type& type) {
      return std::ranges::any_of(type.shape, [](const apl::Poly& dim) { return !dim.constant(); });
    });
    for (std::int64_t size = property_.size - 1; size > 0 && has_arrays && has_time(); --size) {
      Values candidate;
      if (!generate(size, seed, candidate)) break;
      if (take(std::move(candidate))) size_ = size;
    }
    if (property_.generator.empty()) shrink_elements();
  }

  // False if the shrinker fails.
  bool shrink_by_entry() {
    constexpr std::int64_t kMost = 10'000;
    const apl::HostValue numbers = apl::suite::random_value(apl::ScalarType::u64, {kMost}, options_.seed + 1);
    int tries = 0;
    for (std::int64_t k = 0; k < kMost && tries < options_.tries && has_time(); ++k) {
      Values inputs = argument_;
      inputs.push_back(apl::HostValue::scalar(numbers.at(k)));
      auto candidate = executable_.call(property_.shrinker, inputs);
      if (!candidate) {
        note_ = fmt::format("; the shrinker `{}` fails with random number {}: {}", property_.shrinker,
                            numbers.at(k).bits(), one_line(error_text(candidate.error())));
        return false;
      }
      const bool is_smaller = *candidate != argument_ && take(*std::move(candidate));
      tries = is_smaller ? 0 : tries + 1;
    }
    return true;
  }

  // Every element as near to 0 as it goes, by halves and then by ones.
  void shrink_elements() {
    for (std::size_t k = 0; k < argument_.size(); ++k)
      for (std::int64_t flat = 0; flat < argument_[k].element_count() && has_time(); ++flat)
        for (bool smaller = true; smaller && has_time();) {
          smaller = false;
          for (const apl::Scalar& nearer : nearer_to_zero(argument_[k].at(flat))) {
            if (nearer == argument_[k].at(flat)) continue;
            Values candidate = argument_;
            candidate[k].set(flat, nearer);
            smaller = take(std::move(candidate));
            if (smaller) break;
          }
        }
  }

  static std::vector<apl::Scalar> nearer_to_zero(const apl::Scalar& element) {
    using apl::Scalar;
    const apl::ScalarType type = element.type();
    if (element == Scalar::zero(type)) return {};
    if (type == apl::ScalarType::boolean) return {Scalar::boolean(false)};
    if (apl::is_float(type)) {
      const double value = element.as_float(), whole = std::trunc(value);
      std::vector<Scalar> all = {Scalar::zero(type)};
      if (whole != value) {
        all.push_back(Scalar::floating(type, whole));  // a fraction stays only if it must
      } else {
        all.push_back(Scalar::floating(type, std::trunc(value / 2)));
        all.push_back(Scalar::floating(type, value - std::copysign(1.0, value)));
      }
      return all;
    }
    if (!apl::is_integer(type)) return {};
    if (!apl::is_signed(type))
      return {Scalar::zero(type), Scalar::from_bits(type, element.bits() / 2),
              Scalar::from_bits(type, element.bits() - 1)};
    const std::int64_t value = element.as_int();
    return {Scalar::zero(type), Scalar::integer(type, value / 2), Scalar::integer(type, value - (value > 0 ? 1 : -1))};
  }

  const apl::Module& front_;
  Executable& executable_;
  const PropertyOptions& options_;
  apl::library::ApiTypes types_;
  std::deque<ApiEntry> entries_;
  const ApiEntry* entry_ = nullptr;
  Property property_;
  std::vector<apl::Type> params_;  // of the property, where it has no generator
  Values argument_;                // for which it fails
  Answer failure_;
  std::int64_t size_ = 0;  // of the argument
  std::string note_;
  std::chrono::steady_clock::time_point shrink_end_;
  PropertyVerdict verdict_;
};

}  // namespace

PropertyVerdict test_property(const apl::Module& front, Executable& executable, const std::string& name,
                              const PropertyOptions& options) {
  return PropertyTest(front, executable, options).run(name);
}

std::vector<std::string> untested_properties(const apl::Module& front, const std::vector<std::string>& properties) {
  std::vector<std::string> untested;
  for (const auto& function : front.functions)
    if (function->entry && apl::has_attribute(function->attributes, apl::attribute::prop) &&
        std::ranges::find(properties, function->entry->name) == properties.end())
      untested.push_back(function->entry->name);
  return untested;
}

}  // namespace aplc
