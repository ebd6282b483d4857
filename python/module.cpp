// The Python module apl._apl: compiler, modules, programs and arrays. What is friendly about apl in Python is written
// in Python (python/apl); errors become its exceptions there.
#include "python/ffi.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace apl::python;

namespace {

void bind_module(nb::module_& m) {
  nb::class_<Module>(m, "Module")
      .def_prop_ro("stage", [](const Module& self) { return std::string(apl::to_text(self.module.stage)); })
      .def_prop_ro("file", [](const Module& self) { return self.module.file; })
      .def_prop_ro("source", [](const Module& self) { return self.module.source; })
      .def(
          "text", [](const Module& self, bool locations) { return apl::print(self.module, {.locations = locations}); },
          "locations"_a = false)
      .def(
          "replace",
          [](Module& self, const std::string& text) {
            auto parsed = need(apl::parse_module(text, self.module.file), self.module.file, text);
            Failed failed{apl::verify(parsed), self.module.file, text};
            if (!failed.diagnostics.empty()) throw std::move(failed);
            parsed.source = self.module.source;
            self.module = std::move(parsed);
          },
          "text"_a)
      .def("copy", [](const Module& self) { return self; })
      .def("statements",
           [](const Module& self) {
             nb::list all;
             apl::capi::walk(self.module, [&](const apl::Function& function, const apl::Stm& stm, unsigned depth) {
               all.append(nb::make_tuple(function.name, std::string(apl::op_name(stm.op)), apl::print(stm, function),
                                         depth, stm.location.line, stm.location.column));
               return true;
             });
             return all;
           })
      .def("entries", [](const Module& self) { return entry_list(apl::entry_types(self.module)); });
}

void bind_program(nb::module_& m) {
  nb::class_<Matrix>(m, "Matrix")
      .def_prop_ro(
          "shape",
          [](const Matrix& self) { return nb::make_tuple(self.matrix.matrix().rows, self.matrix.matrix().columns); })
      .def_prop_ro("nnz", [](const Matrix& self) { return self.matrix.matrix().nonzeros(); })
      .def_prop_ro("row_start", [](const Matrix& self) { return self.matrix.matrix().row_start; })
      .def_prop_ro("column", [](const Matrix& self) { return self.matrix.matrix().column; });

  nb::class_<Program>(m, "Program")
      .def("call", &Program::call, "entry"_a, "arguments"_a, "like"_a = Like::numpy, "wait"_a = true)
      .def("addresses", &Program::addresses, "entry"_a, "arguments"_a)
      .def("matrix", &Program::matrix, "entry"_a, "operand"_a, "rows"_a, "columns"_a, "row_start"_a, "column"_a,
           "values"_a)
      .def("set_plans", &Program::set_plans, "plans"_a)
      .def(
          "set_stream",
          [](Program& self, std::uintptr_t stream) {
            check(self.program().set_stream(reinterpret_cast<void*>(stream)));
          },
          "stream"_a)
      .def("wait", [](Program& self) { check(self.program().wait()); })
      .def_prop_ro("microseconds", [](Program& self) { return self.program().last_microseconds(); })
      .def("entries", [](Program& self) { return entry_list(self.program().entries()); });
}

// On values of the host; results are arrays of NumPy.
nb::list interpret(Compiler& self, const Module& module, const std::string& entry, nb::list arguments) {
  const std::vector<apl::EntryType> entries = apl::entry_types(module.module);
  const auto type = std::ranges::find(entries, entry, &apl::EntryType::name);
  if (type == entries.end() || type->inputs.size() != arguments.size())
    throw Failed{{bad("no entry `" + entry + "` that takes so many values")}, {}, {}};
  std::vector<apl::HostValue> values;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    Given given;
    take(arguments[k], type->inputs[k], given);
    if (given.value.on_device) throw Failed{{bad("the interpreter takes arrays of the host")}, {}, {}};
    apl::HostValue host = apl::HostValue::zeros(given.value.type, given.value.shape);
    if (!host.data.empty()) std::memcpy(host.data.data(), given.value.data, host.data.size());
    values.push_back(std::move(host));
  }
  const auto results =
      self.collect(module.module, [&] { return self.compiler.interpret(module.module, entry, values); });
  nb::list all;
  for (const apl::HostValue& result : results) {
    auto held = std::make_unique<apl::HostValue>(result);
    std::vector<std::size_t> shape(result.shape.begin(), result.shape.end());
    void* data = held->data.data();
    nb::capsule keep(held.release(), [](void* it) noexcept { delete static_cast<apl::HostValue*>(it); });
    all.append(
        nb::cast(nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), keep, nullptr, dtype_of(result.type))));
  }
  return all;
}

void bind_compiler(nb::module_& m) {
  nb::class_<Compiler>(m, "Compiler")
      .def(nb::init<>())
      .def("set", [](Compiler& self, const std::string& name,
                     const std::string& value) { check(self.in_turn([&] { return self.compiler.set(name, value); })); })
      .def("set_parameters",
           [](Compiler& self, std::map<std::string, std::int64_t> all) {
             self.in_turn([&] { self.compiler.parameters = std::move(all); });
           })
      .def("set_sizes",
           [](Compiler& self, std::map<std::string, std::int64_t> all) {
             self.in_turn([&] { self.compiler.sizes = std::move(all); });
           })
      .def("passes",
           [](const Compiler& self) {
             std::vector<std::tuple<std::string, std::string>> all;
             self.in_turn([&] {
               for (const apl::PassInfo& pass : self.compiler.registry.passes())
                 all.emplace_back(pass.name, pass.summary);
             });
             return all;
           })
      .def("add_pass", &Compiler::add_pass, "name"_a, "run"_a, "summary"_a, "stages"_a, "options"_a)
      .def("insert",
           [](Compiler& self, const std::string& text) {
             check(self.in_turn([&] { return apl::insert_pipeline(text, self.compiler.registry); }));
           })
      .def("load_plugin",
           [](Compiler& self, const std::string& path) {
             check(self.in_turn([&] { return apl::load_plugin(path, self.compiler.registry); }));
           })
      .def("standard_pipeline",
           [](const Compiler& self, const std::string& backend, const std::string& stage) {
             return need(self.in_turn([&] { return self.compiler.standard_pipeline(backend, stage); }));
           })
      .def("parse", &parse, "name"_a, "text"_a, "is_ir"_a)
      .def("remarks", &Compiler::remarks)
      .def("run",
           [](Compiler& self, Module& module, const std::string& pipeline) {
             self.collect(module.module, [&] { return self.compiler.run(module.module, pipeline); });
           })
      .def("emit_program",
           [](Compiler& self, const Module& module, const std::string& dialect) {
             return self.collect(module.module, [&] { return self.compiler.emit_program(module.module, dialect); });
           })
      .def("emit_kernel",
           [](Compiler& self, const Module& module, const std::string& dialect, const std::string& entry) {
             return self.collect(module.module,
                                 [&] { return self.compiler.emit_kernel(module.module, dialect, entry); });
           })
      .def("emit_library",
           [](Compiler& self, const Module& module, const std::string& dialect, const std::string& name) {
             const auto library =
                 self.collect(module.module, [&] { return self.compiler.emit_library(module.module, dialect, name); });
             return std::tuple(library.source, library.header, library.manifest);
           })
      .def("explain",
           [](Compiler& self, const Module& module) {
             return self.collect(module.module, [&] { return self.compiler.explain(module.module); });
           })
      .def("report",
           [](Compiler& self, const Module& module) {
             return self.collect(module.module, [&] { return self.compiler.report(module.module); });
           })
      .def("load",
           [](Compiler& self, const Module& module, const std::string& backend) {
             return Program(self.collect(module.module, [&] { return self.compiler.load(module.module, backend); }),
                            self.compiler.cuda_device());
           })
      .def("interpret", &interpret, "module"_a, "entry"_a, "arguments"_a);
}

void bind_ffi(nb::module_& m) {
  m.def(
      "ffi_target",
      [](const Compiler& compiler, const Module& module, const std::string& backend, const std::string& entry) {
        auto* target = new FfiTarget{compiler.compiler, module.module, backend, entry, {}, {}};
        target->compiler.remarks = nullptr;
        return reinterpret_cast<std::int64_t>(target);
      },
      "compiler"_a, "module"_a, "backend"_a, "entry"_a);
  m.def("ffi_function", [] { return reinterpret_cast<std::uintptr_t>(&ffi_call); });
}

void bind_search(nb::module_& m) {
  m.def(
      "search_plan",
      [](std::int64_t rows, std::int64_t columns,
         nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> row_start,
         nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> column,
         const std::string& operation, std::int64_t width, std::int64_t element_bytes, const std::string& device,
         double seconds) {
        const apl::CsrPattern pattern{rows,
                                      columns,
                                      {row_start.data(), row_start.data() + row_start.size()},
                                      {column.data(), column.data() + column.size()},
                                      {}};
        auto plan = [&] {
          const nb::gil_scoped_release release;
          return apl::capi::search_plan(pattern, operation, width, element_bytes, device, seconds);
        }();
        return need(std::move(plan));
      },
      "rows"_a, "columns"_a, "row_start"_a, "column"_a, "operation"_a, "width"_a, "element_bytes"_a, "device"_a,
      "seconds"_a);
}

}  // namespace

NB_MODULE(_apl, m) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Failed& failed) {
      raise(failed);
    }
  });
  m.attr("__version__") = APL_VERSION;
  // Operators and functions of JAX stay until the process ends.
  nb::set_leak_warnings(false);
  nb::enum_<Like>(m, "Like")
      .value("numpy", Like::numpy)
      .value("torch", Like::torch)
      .value("jax", Like::jax)
      .value("dlpack", Like::dlpack);
  bind_module(m);
  bind_program(m);
  bind_compiler(m);
  bind_ffi(m);
  bind_search(m);
}
