#include "capi/messages.h"

#include <fmt/format.h>

#include <charconv>

namespace apl::capi {

namespace {

apl_place place_of(const char* file, const Location& at) {
  return {file, at.line, at.column, at.end_line, at.end_column};
}

// For when there is none for anything else.
const apl_diagnostic kNoMemory{APL_SEVERITY_ERROR,
                               APL_FAULT_MACHINE,
                               "machine.resources",
                               "out of memory",
                               {"", 0, 0, 0, 0},
                               "",
                               0,
                               nullptr,
                               nullptr};

// An error that is told apart from those that a sink got.
constexpr std::string_view kReported = "\x01reported";

}  // namespace

apl_fault fault_of(const Diagnostic& diagnostic) {
  switch (code_fault(diagnostic.code)) {
    case Fault::program: return APL_FAULT_PROGRAM;
    case Fault::command_line: return APL_FAULT_COMMAND_LINE;
    case Fault::limitation: return APL_FAULT_LIMITATION;
    case Fault::machine: return APL_FAULT_MACHINE;
    case Fault::bug: return APL_FAULT_BUG;
  }
  return APL_FAULT_BUG;
}

const apl_diagnostic* Errors::at(std::size_t k) const {
  if (k < views_.size()) return &views_[k].view;
  return k < size() ? &kNoMemory : nullptr;
}

const char* Errors::text() const { return no_memory_ ? "error: out of memory [machine.resources]\n" : text_.c_str(); }

DiagnosticSink Errors::sink() {
  return [this](const Diagnostic& diagnostic) { add(diagnostic); };
}

Status Errors::failed() { return make_error(Code::bug_internal, {}, std::string(kReported)); }

void Errors::begin(std::string_view file, std::string_view source) {
  no_memory_ = false;
  views_.clear();
  text_.clear();
  file_ = file;
  source_ = source;
}

apl_fault Errors::end(const Diagnostic* error) {
  if (error == nullptr) return APL_FINE;
  if (error->message != kReported) add(*error);
  for (const View& view : views_)
    if (view.diagnostic.severity == Severity::error) return view.view.fault;
  add(make_error(Code::bug_internal, {}, "it failed, and nothing says why"));
  return APL_FAULT_BUG;
}

apl_fault Errors::caught() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    no_memory_ = true;
    return APL_FAULT_MACHINE;
  } catch (const std::exception& exception) {
    try {
      add(make_error(Code::bug_internal, {}, fmt::format("internal error: {}", exception.what())));
    } catch (...) {
      no_memory_ = true;
    }
    return APL_FAULT_BUG;
  } catch (...) {
    try {
      add(make_error(Code::bug_internal, {}, "internal error: an exception of an unknown type"));
    } catch (...) {
      no_memory_ = true;
    }
    return APL_FAULT_BUG;
  }
}

void Errors::add(const Diagnostic& diagnostic) {
  const bool elsewhere = !diagnostic.file.empty();
  text_ += render(diagnostic, elsewhere ? diagnostic.file : file_, elsewhere ? std::string_view() : source_);
  View& view = views_.emplace_back();
  view.diagnostic = diagnostic;
  view.file = elsewhere ? diagnostic.file : file_;
  view.code = code_text(diagnostic.code);
  for (const Note& note : view.diagnostic.notes) {
    view.notes.push_back(note.message.c_str());
    view.note_places.push_back(place_of(view.file.c_str(), note.location));
  }
  view.view = {static_cast<apl_severity>(diagnostic.severity),
               fault_of(diagnostic),
               view.code.c_str(),
               view.diagnostic.message.c_str(),
               place_of(view.file.c_str(), diagnostic.location),
               view.diagnostic.hint.c_str(),
               view.notes.size(),
               view.notes.data(),
               view.note_places.data()};
}

RemarkView::RemarkView(const Remark& from) {
  for (const auto& [name, value] : from.facts) {
    names.push_back(name.c_str());
    values.push_back(value.c_str());
  }
  remark = {static_cast<apl_remark_kind>(from.kind),
            from.pass.c_str(),
            from.code.c_str(),
            from.function.c_str(),
            from.message.c_str(),
            place_of("", from.location),
            names.size(),
            names.data(),
            values.data(),
            from.suggestion.c_str()};
}

Remark remark_of(const apl_remark& remark) {
  const auto text = [](const char* given) { return std::string(given ? given : ""); };
  Remark made;
  made.kind = remark.kind >= APL_REMARK_APPLIED && remark.kind <= APL_REMARK_ANALYSIS
                  ? static_cast<RemarkKind>(remark.kind)
                  : RemarkKind::analysis;
  made.code = text(remark.code);
  made.function = text(remark.function);
  made.message = text(remark.message);
  made.location = {remark.place.line, remark.place.column, remark.place.end_line, remark.place.end_column};
  const bool has_facts = remark.fact_names != nullptr && remark.fact_values != nullptr;
  for (std::size_t k = 0; has_facts && k < remark.fact_count; ++k)
    made.facts.emplace_back(text(remark.fact_names[k]), text(remark.fact_values[k]));
  made.suggestion = text(remark.suggestion);
  return made;
}

Entries::Entries(const std::vector<EntryType>& types) {
  for (const EntryType& type : types) {
    Entry& entry = entries_.emplace_back();
    entry.type = type;
    for (const EntryType::Param& param : entry.type.params)
      entry.params.push_back({param.name.c_str(), param.type.c_str(), param.values});
    const auto value = [](const ValueType& v) {
      return apl_value_type{static_cast<apl_scalar_type>(v.element), v.rank, v.sparse ? 1 : 0};
    };
    for (const ValueType& input : entry.type.inputs) entry.inputs.push_back(value(input));
    for (const ValueType& output : entry.type.outputs) entry.outputs.push_back(value(output));
    for (const std::string& result : entry.type.result_types) entry.results.push_back(result.c_str());
    entry.info = {entry.type.name.c_str(), entry.params.size(),  entry.params.data(),
                  entry.inputs.size(),     entry.outputs.size(), entry.inputs.data(),
                  entry.outputs.data(),    entry.results.size(), entry.results.data()};
  }
}

Result<PassInfo> pass_info(const apl_pass& pass) {
  PassInfo info;
  info.name = pass.name;
  info.summary = pass.summary ? pass.summary : "";
  if (pass.stages) {
    info.takes = 0;
    std::string_view rest = pass.stages;
    while (!rest.empty()) {
      const std::string_view word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      if (word.empty()) continue;
      bool known = false;
      for (const Stage stage : {Stage::soac, Stage::kernel, Stage::memory})
        if (word == to_text(stage)) info.takes |= stage_bit(stage), known = true;
      if (!known) return make_error(Code::command_bad_argument, {}, fmt::format("no stage `{}`", word));
    }
  }
  for (std::size_t k = 0; k < pass.option_count; ++k) {
    if (!pass.option_names || !pass.option_defaults || !pass.option_names[k] || !pass.option_defaults[k])
      return make_error(Code::command_bad_argument, {}, "an option has a name and a default");
    const std::string text = pass.option_defaults[k];
    OptionValue value = text;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text == "true" || text == "false") {
      value = text == "true";
    } else if (!text.empty() && error == std::errc() && end == text.data() + text.size()) {
      value = number;
    }
    info.options.push_back({pass.option_names[k], value, ""});
  }
  return info;
}

std::string option_text(const OptionValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const std::int64_t* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  return std::get<std::string>(value);
}

}  // namespace apl::capi
