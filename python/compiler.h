// Modules, pipelines and passes for Python, and how errors become exceptions.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "capi/compiler.h"
#include "capi/walk.h"
#include "codegen/emit/load.h"
#include "ir/op.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/plugin.h"

namespace apl::python {

namespace nb = nanobind;
using namespace nb::literals;

// What went wrong, on the way to a Python exception.
struct Failed {
  std::vector<apl::Diagnostic> diagnostics;
  std::string file, source;
};

inline int fault_number(apl::Fault fault) {
  switch (fault) {
    case apl::Fault::program: return 2;
    case apl::Fault::limitation: return 3;
    case apl::Fault::command_line: return 64;
    case apl::Fault::bug: return 70;
    case apl::Fault::machine: return 71;
  }
  return 70;
}

inline nb::object place_of(const std::string& file, const apl::Location& at) {
  if (!at) return nb::none();
  return nb::make_tuple(file, at.line, at.column, at.end_line, at.end_column);
}

inline void raise(const Failed& failed) {
  nb::list all;
  for (const apl::Diagnostic& d : failed.diagnostics) {
    const bool elsewhere = !d.file.empty();
    const std::string& file = elsewhere ? d.file : failed.file;
    nb::list notes;
    for (const apl::Note& note : d.notes) notes.append(nb::make_tuple(note.message, place_of(file, note.location)));
    const std::string code(apl::code_text(d.code));
    const std::string text = apl::render(d, file, elsewhere ? std::string_view() : std::string_view(failed.source));
    all.append(nb::make_tuple(static_cast<int>(d.severity), fault_number(apl::code_fault(d.code)), code, d.message,
                              place_of(file, d.location), notes, d.hint, text));
  }
  const nb::object error = nb::module_::import_("apl._errors").attr("make")(all);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
}

template <class T>
T need(apl::Result<T> result, const std::string& file = {}, const std::string& source = {}) {
  if (!result) throw Failed{{std::move(result).error()}, file, source};
  return *std::move(result);
}
inline void check(const apl::Status& status, const std::string& file = {}, const std::string& source = {}) {
  if (!status) throw Failed{{status.error()}, file, source};
}

// What an option of a Python pass is.
inline apl::OptionValue option_value(nb::handle value) {
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::int_>(value)) return nb::cast<std::int64_t>(value);
  return nb::cast<std::string>(value);
}

inline nb::object option_object(const apl::OptionValue& value) {
  return std::visit([](const auto& v) { return nb::cast(v); }, value);
}

inline nb::dict remark_dict(const apl::Remark& r) {
  static constexpr const char* kKinds[] = {"applied", "missed", "analysis"};
  nb::list facts;
  for (const auto& [name, value] : r.facts) facts.append(nb::make_tuple(name, value));
  nb::dict remark;
  remark["kind"] = kKinds[static_cast<int>(r.kind)];
  remark["pass_name"] = r.pass;
  remark["code"] = r.code;
  remark["function"] = r.function;
  remark["message"] = r.message;
  remark["line"] = r.location.line;
  remark["column"] = r.location.column;
  remark["end_line"] = r.location.end_line;
  remark["end_column"] = r.location.end_column;
  remark["facts"] = facts;
  remark["suggestion"] = r.suggestion;
  return remark;
}

struct Module {
  apl::Module module;
};

// The compiler, and the exception that a Python pass threw while a pipeline ran.
class Compiler {
 public:
  apl::capi::Compiler compiler;

  // Runs `work` without the lock of the interpreter; remarks are collected.
  template <class Work>
  auto collect(const apl::Module& module, Work work) {
    const std::string file = module.file, source = module.source;
    remarks_.clear();
    thrown_.reset();
    compiler.remarks = [this](const apl::Remark& remark) { remarks_.push_back(remark); };
    auto result = [&] {
      const nb::gil_scoped_release release;
      return work();
    }();
    if (thrown_) {
      const auto thrown = std::exchange(thrown_, nullptr);
      throw nb::python_error(*thrown);
    }
    return need(std::move(result), file, source);
  }

  nb::list remarks() const {
    nb::list all;
    for (const apl::Remark& remark : remarks_) all.append(remark_dict(remark));
    return all;
  }

  void add_pass(const std::string& name, nb::callable run, const std::string& summary,
                const std::vector<std::string>& stages, nb::dict options) {
    if (compiler.registry.find(name))
      throw Failed{{apl::make_error(apl::Code::command_bad_argument, {}, "there is a pass `" + name + "`")}, {}, {}};
    apl::PassInfo info;
    info.name = name;
    info.summary = summary;
    if (!stages.empty()) info.takes = 0;
    for (const std::string& stage : stages)
      for (const apl::Stage known : {apl::Stage::soac, apl::Stage::kernel, apl::Stage::memory})
        if (stage == apl::to_text(known)) info.takes |= apl::stage_bit(known);
    for (const auto& [key, value] : options)
      info.options.push_back({nb::cast<std::string>(key), option_value(value), ""});
    // Kept by whoever keeps the registry; let go under the interpreter's lock.
    const std::shared_ptr<nb::callable> function(new nb::callable(std::move(run)), [](nb::callable* callable) {
      const nb::gil_scoped_acquire acquire;
      delete callable;
    });
    info.run = [this, function, name](apl::Module& module, apl::PassContext& context) -> apl::Result<apl::Change> {
      const nb::gil_scoped_acquire acquire;
      try {
        const std::string before = apl::print(module, {.locations = true});
        nb::dict given;
        for (const auto& [key, value] : context.options) given[key.c_str()] = option_object(value);
        nb::object theirs = nb::cast(Module{module});
        const auto remark = [&](const std::string& kind, const std::string& code, const std::string& message,
                                std::uint32_t line, std::uint32_t column) {
          apl::Remark made;
          made.kind = kind == "applied"  ? apl::RemarkKind::applied
                      : kind == "missed" ? apl::RemarkKind::missed
                                         : apl::RemarkKind::analysis;
          made.code = code;
          made.message = message;
          made.location = {line, column, line, column};
          remarks_.push_back(std::move(made));
        };
        const std::size_t first = remarks_.size();
        (*function)(theirs, given, nb::cpp_function(remark));
        for (std::size_t k = first; k < remarks_.size(); ++k) remarks_[k].pass = name;
        module = nb::cast<Module&>(theirs).module;
        return apl::print(module, {.locations = true}) == before ? apl::Change::no : apl::Change::yes;
      } catch (nb::python_error& error) {
        thrown_ = std::make_shared<nb::python_error>(error);
        return apl::make_error(apl::Code::command_bad_argument, {}, error.what());
      }
    };
    compiler.registry.add(std::move(info));
  }

 private:
  std::vector<apl::Remark> remarks_;
  std::shared_ptr<nb::python_error> thrown_;
};

inline Module parse(Compiler& compiler, const std::string& name, const std::string& text, bool is_ir) {
  Failed failed{{}, name, text};
  std::optional<apl::Module> module;
  {
    const nb::gil_scoped_release release;
    const auto sink = [&](const apl::Diagnostic& d) { failed.diagnostics.push_back(d); };
    module = is_ir ? compiler.compiler.parse_ir(name, text, sink) : compiler.compiler.parse_source(name, text, sink);
  }
  if (!module) throw std::move(failed);
  return {*std::move(module)};
}

inline nb::list entry_list(const std::vector<apl::EntryType>& entries) {
  nb::list all;
  for (const apl::EntryType& entry : entries) {
    nb::list params, inputs, outputs;
    for (const apl::EntryType::Param& param : entry.params)
      params.append(nb::make_tuple(param.name, param.type, param.values));
    const auto value = [](const apl::ValueType& v) {
      return nb::make_tuple(std::string(apl::to_text(v.element)), v.rank, v.sparse, v.pattern, v.name, v.shape);
    };
    for (const apl::ValueType& input : entry.inputs) inputs.append(value(input));
    for (const apl::ValueType& output : entry.outputs) outputs.append(value(output));
    all.append(nb::make_tuple(entry.name, params, inputs, outputs, entry.result_types));
  }
  return all;
}

}  // namespace apl::python
