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

inline Failed refused(std::string message) {
  return {{apl::make_error(apl::Code::command_bad_argument, {}, std::move(message))}, {}, {}};
}

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
  if (std::int64_t number = 0; nb::isinstance<nb::int_>(value) && nb::try_cast(value, number)) return number;
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  throw refused(std::string("an option is True or False, a number of 64 bits or a text, not ") +
                Py_TYPE(value.ptr())->tp_name);
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

// The compiler, and what passes say while a pipeline runs. Threads may share it: they take turns.
class Compiler {
 public:
  // What one run of a pipeline gives.
  struct Collected {
    std::vector<apl::Remark> remarks;
    std::optional<nb::python_error> thrown;  // by a pass in Python
  };
  // Of whoever has the turn. Passes in Python know it: a registry can outlive the compiler.
  struct Turn {
    std::recursive_mutex mutex;  // a pass may run others
    std::shared_ptr<Collected> collected = std::make_shared<Collected>();
  };

  apl::capi::Compiler compiler;

  // Does `work` without the lock of the interpreter, in the thread's turn.
  template <class Work>
  auto in_turn(Work work) const {
    const nb::gil_scoped_release release;
    const std::lock_guard lock(turn_->mutex);
    return work();
  }

  // The same; remarks are collected.
  template <class Work>
  auto collect(const apl::Module& module, Work work) {
    const std::string file = module.file, source = module.source;
    const auto collected = std::make_shared<Collected>();
    auto result = in_turn([&] {
      const auto before = std::exchange(turn_->collected, collected);
      compiler.remarks = [collected](const apl::Remark& remark) { collected->remarks.push_back(remark); };
      auto done = work();
      turn_->collected = before;
      compiler.remarks = [before](const apl::Remark& remark) { before->remarks.push_back(remark); };
      return done;
    });
    last_ = collected;
    if (collected->thrown) throw nb::python_error(*std::exchange(collected->thrown, std::nullopt));
    return need(std::move(result), file, source);
  }

  nb::list remarks() const {
    nb::list all;
    for (const apl::Remark& remark : last_->remarks) all.append(remark_dict(remark));
    return all;
  }

  void add_pass(const std::string& name, nb::callable run, const std::string& summary,
                const std::vector<std::string>& stages, nb::dict options) {
    if (in_turn([&] { return compiler.registry.find(name) != nullptr; }))
      throw refused("there is a pass `" + name + "`");
    apl::PassInfo info;
    info.name = name;
    info.summary = summary;
    if (!stages.empty()) info.takes = 0;
    for (const std::string& stage : stages) {
      bool is_stage = false;
      for (const apl::Stage known : {apl::Stage::soac, apl::Stage::kernel, apl::Stage::memory})
        if (stage == apl::to_text(known)) info.takes |= apl::stage_bit(known), is_stage = true;
      if (!is_stage) throw refused("no stage `" + stage + "`");
    }
    for (const auto& [key, value] : options)
      info.options.push_back({nb::cast<std::string>(key), option_value(value), ""});
    // Kept by whoever keeps the registry; let go under the interpreter's lock.
    const std::shared_ptr<nb::callable> function(new nb::callable(std::move(run)), [](nb::callable* callable) {
      const nb::gil_scoped_acquire acquire;
      delete callable;
    });
    info.run = [turn = turn_, function, name](apl::Module& module,
                                              apl::PassContext& context) -> apl::Result<apl::Change> {
      const std::lock_guard lock(turn->mutex);  // not yet held by a copy of the compiler
      const nb::gil_scoped_acquire acquire;
      const std::shared_ptr<Collected> collected = turn->collected;
      try {
        const std::string before = apl::print(module, {.locations = true});
        nb::dict given;
        for (const auto& [key, value] : context.options) given[key.c_str()] = option_object(value);
        nb::object theirs = nb::cast(Module{module});
        const auto remark = [collected, name](const std::string& kind, const std::string& code,
                                              const std::string& message, std::uint32_t line, std::uint32_t column) {
          apl::Remark made;
          made.kind = kind == "applied"  ? apl::RemarkKind::applied
                      : kind == "missed" ? apl::RemarkKind::missed
                                         : apl::RemarkKind::analysis;
          made.code = code;
          made.message = message;
          made.location = {line, column, line, column};
          made.pass = name;
          collected->remarks.push_back(std::move(made));
        };
        (*function)(theirs, given, nb::cpp_function(remark));
        module = nb::cast<Module&>(theirs).module;
        return apl::print(module, {.locations = true}) == before ? apl::Change::no : apl::Change::yes;
      } catch (nb::python_error& error) {
        collected->thrown.emplace(error);
        return apl::make_error(apl::Code::command_bad_argument, {}, error.what());
      }
    };
    in_turn([&] { compiler.registry.add(std::move(info)); });
  }

 private:
  std::shared_ptr<Turn> turn_ = std::make_shared<Turn>();
  std::shared_ptr<Collected> last_ = std::make_shared<Collected>();
};

inline Module parse(Compiler& compiler, const std::string& name, const std::string& text, bool is_ir) {
  Failed failed{{}, name, text};
  const auto sink = [&](const apl::Diagnostic& d) { failed.diagnostics.push_back(d); };
  std::optional<apl::Module> module = compiler.in_turn([&] {
    return is_ir ? compiler.compiler.parse_ir(name, text, sink) : compiler.compiler.parse_source(name, text, sink);
  });
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
