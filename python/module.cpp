// The Python module apl._apl: compiler, modules, programs and arrays. What is friendly about apl in Python is written
// in Python (python/apl); errors become its exceptions there.
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

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// What went wrong, on the way to a Python exception.
struct Failed {
  std::vector<apl::Diagnostic> diagnostics;
  std::string file, source;
};

int fault_number(apl::Fault fault) {
  switch (fault) {
    case apl::Fault::program: return 2;
    case apl::Fault::limitation: return 3;
    case apl::Fault::command_line: return 64;
    case apl::Fault::bug: return 70;
    case apl::Fault::machine: return 71;
  }
  return 70;
}

nb::object place_of(const std::string& file, const apl::Location& at) {
  if (!at) return nb::none();
  return nb::make_tuple(file, at.line, at.column, at.end_line, at.end_column);
}

void raise(const Failed& failed) {
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
void check(const apl::Status& status, const std::string& file = {}, const std::string& source = {}) {
  if (!status) throw Failed{{status.error()}, file, source};
}

// What an option of a Python pass is.
apl::OptionValue option_value(nb::handle value) {
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::int_>(value)) return nb::cast<std::int64_t>(value);
  return nb::cast<std::string>(value);
}

nb::object option_object(const apl::OptionValue& value) {
  return std::visit([](const auto& v) { return nb::cast(v); }, value);
}

nb::dict remark_dict(const apl::Remark& r) {
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

Module parse(Compiler& compiler, const std::string& name, const std::string& text, bool is_ir) {
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

nb::list entry_list(const std::vector<apl::EntryType>& entries) {
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

// -- Arrays

apl::Diagnostic bad(std::string message) { return apl::make_error(apl::Code::run_argument, {}, std::move(message)); }

std::optional<apl::ScalarType> scalar_type(nb::dlpack::dtype type) {
  using Code = nb::dlpack::dtype_code;
  if (type.lanes != 1) return std::nullopt;
  const auto at = [&](std::uint8_t code, std::uint8_t bits) { return type.code == code && type.bits == bits; };
  for (const apl::ScalarType known :
       {apl::ScalarType::i8, apl::ScalarType::i16, apl::ScalarType::i32, apl::ScalarType::i64})
    if (at(static_cast<std::uint8_t>(Code::Int), static_cast<std::uint8_t>(8 * apl::byte_size(known)))) return known;
  for (const apl::ScalarType known :
       {apl::ScalarType::u8, apl::ScalarType::u16, apl::ScalarType::u32, apl::ScalarType::u64})
    if (at(static_cast<std::uint8_t>(Code::UInt), static_cast<std::uint8_t>(8 * apl::byte_size(known)))) return known;
  for (const apl::ScalarType known : {apl::ScalarType::f16, apl::ScalarType::f32, apl::ScalarType::f64})
    if (at(static_cast<std::uint8_t>(Code::Float), static_cast<std::uint8_t>(8 * apl::byte_size(known)))) return known;
  if (at(static_cast<std::uint8_t>(Code::Bfloat), 16)) return apl::ScalarType::bf16;
  if (at(static_cast<std::uint8_t>(Code::Bool), 8)) return apl::ScalarType::boolean;
  return std::nullopt;
}

nb::dlpack::dtype dtype_of(apl::ScalarType type) {
  using Code = nb::dlpack::dtype_code;
  const Code code = type == apl::ScalarType::boolean ? Code::Bool
                    : type == apl::ScalarType::bf16  ? Code::Bfloat
                    : apl::is_float(type)            ? Code::Float
                    : apl::is_signed(type)           ? Code::Int
                                                     : Code::UInt;
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * apl::byte_size(type)), 1};
}

using AnyArray = nb::ndarray<nb::ro>;

bool is_contiguous(const AnyArray& array) {
  if (array.size() == 0) return true;
  std::int64_t step = 1;
  for (std::size_t k = array.ndim(); k-- > 0;) {
    if (array.shape(k) != 1 && array.stride(k) != step) return false;
    step *= static_cast<std::int64_t>(array.shape(k));
  }
  return true;
}

// One argument, and what keeps its memory there.
struct Given {
  apl::BorrowedValue value;
  apl::HostValue scalar;
  AnyArray array;
  nb::object keep;
};

// Objects that have __cuda_array_interface__ and no DLPack.
bool from_cuda_interface(nb::handle object, Given& given) {
  if (!nb::hasattr(object, "__cuda_array_interface__") || nb::hasattr(object, "__dlpack__")) return false;
  const auto interface = nb::cast<nb::dict>(object.attr("__cuda_array_interface__"));
  const auto kind = nb::cast<std::string>(interface["typestr"]);
  const char* const known[] = {"<i1", "<i2", "<i4", "<i8", "<u1", "<u2", "<u4", "<u8", "<f2", "", "<f4", "<f8"};
  bool found = false;
  for (std::size_t k = 0; k < std::size(known); ++k)
    if (kind.substr(1) == std::string_view(known[k]).substr(known[k][0] != '\0' ? 1 : 0) && known[k][0] != '\0') {
      given.value.type = static_cast<apl::ScalarType>(k);
      found = true;
    }
  if (kind.ends_with("b1")) given.value.type = apl::ScalarType::boolean, found = true;
  if (!found) throw Failed{{bad("an array of elements " + kind)}, {}, {}};
  if (interface.contains("strides") && !interface["strides"].is_none())
    throw Failed{{bad("an array of a device that is not contiguous")}, {}, {}};
  for (const nb::handle size : interface["shape"]) given.value.shape.push_back(nb::cast<std::int64_t>(size));
  const auto data = nb::cast<nb::tuple>(interface["data"]);
  given.value.data = reinterpret_cast<const void*>(nb::cast<std::uintptr_t>(data[0]));
  given.value.on_device = true;
  given.keep = nb::borrow(object);
  return true;
}

void take(nb::handle object, const apl::ValueType& wanted, Given& given) {
  if (wanted.rank == 0) {
    const apl::ScalarType type = wanted.element;
    apl::Scalar scalar;
    nb::object plain = nb::borrow(object);
    if (nb::hasattr(plain, "item")) plain = plain.attr("item")();
    if (type == apl::ScalarType::boolean) {
      scalar = apl::Scalar::boolean(nb::cast<bool>(plain));
    } else if (apl::is_float(type)) {
      scalar = apl::Scalar::floating(type, nb::cast<double>(nb::float_(plain)));
    } else if (nb::isinstance<nb::int_>(plain)) {
      const nb::int_ number(plain);
      const auto bits = 8 * apl::byte_size(type);
      const nb::int_ low(apl::is_signed(type) ? -(nb::int_(1) << nb::int_(bits - 1)) : nb::object(nb::int_(0)));
      const nb::int_ high(nb::int_(1) << nb::int_(apl::is_signed(type) ? bits - 1 : bits));
      if (number < low || !(number < high))
        throw Failed{{bad("a number that " + std::string(apl::to_text(type)) + " cannot hold")}, {}, {}};
      scalar = apl::is_signed(type) ? apl::Scalar::integer(type, nb::cast<std::int64_t>(number))
                                    : apl::Scalar::from_bits(type, nb::cast<std::uint64_t>(number));
    } else {
      throw Failed{{bad("a number of type " + std::string(apl::to_text(type)) + " is wanted")}, {}, {}};
    }
    given.scalar = apl::HostValue::scalar(scalar);
    given.value.type = type;
    given.value.data = given.scalar.data.data();
    return;
  }
  if (from_cuda_interface(object, given)) return;
  if (!nb::try_cast(object, given.array, false))
    throw Failed{{bad(std::string("no array: an object of type ") + Py_TYPE(object.ptr())->tp_name)}, {}, {}};
  if (!is_contiguous(given.array)) {
    const nb::object dense = nb::hasattr(object, "contiguous")
                                 ? object.attr("contiguous")()
                                 : nb::module_::import_("numpy").attr("ascontiguousarray")(object);
    if (!nb::try_cast(dense, given.array, false) || !is_contiguous(given.array))
      throw Failed{{bad("an array that is not contiguous")}, {}, {}};
  }
  const auto type = scalar_type(given.array.dtype());
  if (!type) throw Failed{{bad("an array of elements that apl does not have")}, {}, {}};
  given.value.type = *type;
  for (std::size_t k = 0; k < given.array.ndim(); ++k)
    given.value.shape.push_back(static_cast<std::int64_t>(given.array.shape(k)));
  given.value.data = given.array.data();
  given.value.on_device = given.array.device_type() == nb::device::cuda::value;
}

struct Matrix {
  apl::ProgramMatrix matrix;
};

// How results are handed over.
enum class Like { numpy, torch, jax, dlpack };

template <class... Framework>
nb::object as_array(const apl::OwnedValue& value, int number) {
  std::vector<std::size_t> shape(value.shape().begin(), value.shape().end());
  auto owner = std::make_unique<apl::OwnedValue>(value);
  void* data = owner->data();
  nb::capsule keep(owner.get(), [](void* held) noexcept {
    // Waits for its turn with the program, which another thread may hold that wants the interpreter's lock.
    const nb::gil_scoped_release release;
    delete static_cast<apl::OwnedValue*>(held);
  });
  static_cast<void>(owner.release());
  const int device = value.on_device() ? nb::device::cuda::value : nb::device::cpu::value;
  return nb::cast(nb::ndarray<Framework...>(data, shape.size(), shape.data(), keep, nullptr, dtype_of(value.type()),
                                            device, value.on_device() ? number : 0));
}

nb::object as_scalar(const apl::OwnedValue& value) {
  apl::HostValue host = apl::HostValue::zeros(value.type(), {});
  if (!host.data.empty()) std::memcpy(host.data.data(), value.data(), host.data.size());
  const apl::Scalar scalar = host.at(0);
  if (value.type() == apl::ScalarType::unit) return nb::make_tuple();
  if (value.type() == apl::ScalarType::boolean) return nb::cast(host.data[0] != std::byte{0});
  if (apl::is_float(value.type())) return nb::cast(scalar.as_float());
  if (!apl::is_signed(value.type())) return nb::cast(static_cast<std::uint64_t>(scalar.as_int()));
  return nb::cast(scalar.as_int());
}

nb::object as_object(const apl::OwnedValue& value, Like like, int number) {
  if (value.shape().empty()) return as_scalar(value);
  if (like == Like::torch) return as_array<nb::pytorch>(value, number);
  if (like == Like::jax) return as_array<nb::jax>(value, number);
  if (like == Like::dlpack || value.on_device() || value.type() == apl::ScalarType::bf16)
    return as_array<nb::array_api>(value, number);
  return as_array<nb::numpy>(value, number);
}

class Program {
 public:
  Program(apl::Program program, int device) : program_(std::move(program)), device_(device) {}

  nb::list call(const std::string& entry, nb::list arguments, Like like, bool wait) {
    const auto& entries = program_.entries();
    const auto type = std::ranges::find(entries, entry, &apl::EntryType::name);
    if (type == entries.end())
      throw Failed{
          {apl::make_error(apl::Code::command_bad_argument, {}, "the program has no entry `" + entry + "`")}, {}, {}};
    if (arguments.size() != type->inputs.size())
      throw Failed{{bad("entry `" + entry + "` takes " + std::to_string(type->inputs.size()) + " values, " +
                        std::to_string(arguments.size()) + " are given")},
                   {},
                   {}};
    std::vector<Given> given(arguments.size());
    std::vector<apl::BorrowedValue> values;
    values.reserve(given.size());
    for (std::size_t k = 0; k < given.size(); ++k) {
      const nb::handle object = arguments[k];
      if (nb::isinstance<Matrix>(object)) {
        given[k].value.matrix = nb::cast<Matrix&>(object).matrix;
      } else {
        take(object, type->inputs[k], given[k]);
      }
      values.push_back(given[k].value);
    }
    auto results = [&] {
      const nb::gil_scoped_release release;
      return program_.call_in_place(entry, values, wait);
    }();
    nb::list all;
    for (const apl::OwnedValue& result : need(std::move(results))) all.append(as_object(result, like, device_));
    return all;
  }

  // Addresses that a call of these arguments would read; 0 where it would copy.
  nb::list addresses(const std::string& entry, nb::list arguments) {
    const auto type = std::ranges::find(program_.entries(), entry, &apl::EntryType::name);
    nb::list all;
    for (std::size_t k = 0; type != program_.entries().end() && k < arguments.size(); ++k) {
      Given given;
      take(arguments[k], type->inputs[k], given);
      const bool read = program_.reads_in_place(given.value);
      all.append(read ? reinterpret_cast<std::uintptr_t>(given.value.data) : 0);
    }
    return all;
  }

  Matrix matrix(const std::string& entry, const std::string& operand, std::int64_t rows, std::int64_t columns,
                nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> row_start,
                nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> column,
                nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu> values) {
    const auto type = scalar_type(values.dtype());
    if (!type) throw Failed{{bad("values of a type that apl does not have")}, {}, {}};
    apl::HostCsr csr{rows,
                     columns,
                     {row_start.data(), row_start.data() + row_start.size()},
                     {column.data(), column.data() + column.size()},
                     {}};
    csr.values = apl::HostValue::zeros(*type, {static_cast<std::int64_t>(values.size())});
    if (!csr.values.data.empty()) std::memcpy(csr.values.data.data(), values.data(), csr.values.data.size());
    auto made = [&] {
      const nb::gil_scoped_release release;
      return program_.make_matrix(entry, operand, std::move(csr));
    }();
    return {need(std::move(made))};
  }

  void set_plans(const std::vector<std::tuple<std::string, std::string>>& plans) {
    std::vector<apl::SparsePlan> given;
    for (const auto& [operand, text] : plans) given.push_back({operand, "of `" + operand + "`", text});
    check(program_.set_sparse_plans(given));
  }

  apl::Program& program() { return program_; }

 private:
  apl::Program program_;
  int device_;  // of backend cuda
};

// -- JAX. The handler that XLA calls (python/apl/_jax_ffi.c) is compiled against its headers when it is first needed,
// and hands over what it is given in this form.
struct FfiArray {
  std::int32_t type;
  std::int64_t rank;
  const std::int64_t* shape;
  void* data;
};

// What one FFI call calls: loaded for a device when it is first called on it. They stay until the process ends:
// compiled programs of XLA have their addresses.
struct FfiTarget {
  apl::capi::Compiler compiler;
  apl::Module module;
  std::string backend, entry;
  std::mutex mutex;
  std::map<int, apl::Program> programs;  // by the number of the device

  apl::Result<apl::Program> program(int device) {
    const std::lock_guard turn(mutex);
    if (const auto found = programs.find(device); found != programs.end()) return found->second;
    if (auto set = compiler.set("cuda-device", std::to_string(device)); !set) return set.error();
    auto loaded = compiler.load(module, backend);
    if (loaded) programs.emplace(device, *loaded);
    return loaded;
  }
};

int fail(const apl::Diagnostic& diagnostic, char* message, std::size_t capacity) {
  const std::string text = diagnostic.message + " [" + std::string(apl::code_text(diagnostic.code)) + "]";
  const std::size_t size = std::min(text.size(), capacity - 1);
  std::memcpy(message, text.data(), size);
  message[size] = '\0';
  return 1;
}

// Called by XLA's threads, without the interpreter's lock. Numbers are arrays of rank 0, on the host even for a device.
int ffi_call(std::int64_t address, int device, const FfiArray* arguments, std::int64_t argument_count,
             const FfiArray* results, std::int64_t result_count, void* stream, char* message, std::size_t capacity) {
  auto& target = *reinterpret_cast<FfiTarget*>(address);
  try {
    auto program = target.program(device);
    if (!program) return fail(program.error(), message, capacity);
    const bool on_device = target.backend == "cuda";
    if (on_device)
      if (auto set = program->set_stream(stream); !set) return fail(set.error(), message, capacity);
    std::vector<apl::BorrowedValue> values;
    for (std::int64_t k = 0; k < argument_count; ++k) {
      apl::BorrowedValue value;
      value.type = static_cast<apl::ScalarType>(arguments[k].type);
      value.shape.assign(arguments[k].shape, arguments[k].shape + arguments[k].rank);
      value.data = arguments[k].data;
      value.on_device = on_device;
      values.push_back(std::move(value));
    }
    auto made = program->call_in_place(target.entry, values, !on_device);
    if (!made) return fail(made.error(), message, capacity);
    if (std::ssize(*made) != result_count) return fail(bad("another number of results"), message, capacity);
    for (std::int64_t k = 0; k < result_count; ++k) {
      const apl::OwnedValue& value = (*made)[static_cast<std::size_t>(k)];
      if (value.type() != static_cast<apl::ScalarType>(results[k].type) ||
          !std::ranges::equal(value.shape(), std::span(results[k].shape, static_cast<std::size_t>(results[k].rank))))
        return fail(bad("a result of another type or shape than was declared"), message, capacity);
      if (auto copied = program->copy_to(value, results[k].data); !copied)
        return fail(copied.error(), message, capacity);
    }
    return 0;
  } catch (const std::exception& exception) {
    return fail(apl::make_error(apl::Code::bug_internal, {}, exception.what()), message, capacity);
  }
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

  nb::class_<Compiler>(m, "Compiler")
      .def(nb::init<>())
      .def("set", [](Compiler& self, const std::string& name,
                     const std::string& value) { check(self.compiler.set(name, value)); })
      .def("set_parameters",
           [](Compiler& self, std::map<std::string, std::int64_t> all) { self.compiler.parameters = std::move(all); })
      .def("set_sizes",
           [](Compiler& self, std::map<std::string, std::int64_t> all) { self.compiler.sizes = std::move(all); })
      .def("passes",
           [](const Compiler& self) {
             std::vector<std::tuple<std::string, std::string>> all;
             for (const apl::PassInfo& pass : self.compiler.registry.passes())
               all.emplace_back(pass.name, pass.summary);
             return all;
           })
      .def("add_pass", &Compiler::add_pass, "name"_a, "run"_a, "summary"_a, "stages"_a, "options"_a)
      .def("insert",
           [](Compiler& self, const std::string& text) { check(apl::insert_pipeline(text, self.compiler.registry)); })
      .def("load_plugin",
           [](Compiler& self, const std::string& path) { check(apl::load_plugin(path, self.compiler.registry)); })
      .def("standard_pipeline",
           [](const Compiler& self, const std::string& backend, const std::string& stage) {
             return need(self.compiler.standard_pipeline(backend, stage));
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
      .def("interpret", [](Compiler& self, const Module& module, const std::string& entry, nb::list arguments) {
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
      });

  m.def(
      "ffi_target",
      [](const Compiler& compiler, const Module& module, const std::string& backend, const std::string& entry) {
        auto* target = new FfiTarget{compiler.compiler, module.module, backend, entry, {}, {}};
        target->compiler.remarks = nullptr;
        return reinterpret_cast<std::int64_t>(target);
      },
      "compiler"_a, "module"_a, "backend"_a, "entry"_a);
  m.def("ffi_function", [] { return reinterpret_cast<std::uintptr_t>(&ffi_call); });
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
