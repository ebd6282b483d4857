// A compiled program as an object of Python.
#pragma once

#include "python/arrays.h"

namespace apl::python {

namespace nb = nanobind;
using namespace nb::literals;

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
    if (!results) {
      apl::Diagnostic error = std::move(results).error();
      if (error.code == apl::Code::run_argument && error.hint.empty()) error.hint = hint(*type, given, arguments);
      throw Failed{{std::move(error)}, {}, {}};
    }
    nb::list all;
    for (const apl::OwnedValue& result : *results) all.append(as_object(result, like, device_));
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
  // For the first array that has another element type than its parameter, and no other fault.
  static std::string hint(const apl::EntryType& type, const std::vector<Given>& given, const nb::list& arguments) {
    std::size_t k = 0;
    for (const apl::EntryType::Param& param : type.params)
      for (std::size_t v = 0; v < param.values; ++v, ++k) {
        const apl::ValueType& wanted = type.inputs[k];
        const apl::BorrowedValue& value = given[k].value;
        if (value.matrix || value.type == wanted.element) continue;
        return value.shape.size() == wanted.rank ? conversion(arguments[k], param.name, wanted.element) : std::string();
      }
    return {};
  }

  apl::Program program_;
  int device_;  // of backend cuda
};

}  // namespace apl::python
