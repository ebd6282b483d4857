// The C API from C++, with handles that free themselves, and apl::Program beside it.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "capi/apl.h"
#include "tests/capi/want.h"

namespace {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Compiler = std::unique_ptr<apl_compiler, Freed<apl_compiler_free>>;
using Module = std::unique_ptr<apl_module, Freed<apl_module_free>>;
using Program = std::unique_ptr<apl_program, Freed<apl_program_free>>;
using Array = std::unique_ptr<apl_array, Freed<apl_array_free>>;

}  // namespace

int main() {
  const Compiler compiler(apl_compiler_new());
  const std::string text =
      "entry sum (xs: []f64) : f64 = f64.sum xs\nentry twice [n] (xs: [n]f64) : [n]f64 = map (* 2) xs\n";
  apl_module* parsed = nullptr;
  WANT(apl_parse_source(compiler.get(), "sum.fut", text.data(), text.size(), &parsed) == APL_FINE);
  const Module module(parsed);
  std::vector<std::string> remarks;
  apl_compiler_on_remark(
      compiler.get(),
      [](void* user, const apl_remark* remark) {
        static_cast<std::vector<std::string>*>(user)->emplace_back(remark->message);
      },
      &remarks);
  apl_program* loaded = nullptr;
  WANT(apl_program_load(compiler.get(), module.get(), "c", &loaded) == APL_FINE);
  const Program program(loaded);
  WANT(!remarks.empty());
  const std::vector<double> xs{1, 2, 3.5};
  const std::int64_t n = 3;
  apl_input input{sizeof input, APL_TYPE_F64, 1, &n, xs.data(), 0, nullptr};
  apl_array* result = nullptr;
  std::size_t count = 0;
  WANT(apl_program_call(program.get(), "sum", &input, 1, 1, &result, 1, &count) == APL_FINE);
  const Array sum(result);
  WANT(*static_cast<const double*>(apl_array_data(sum.get())) == 6.5);
  WANT(apl_program_call(program.get(), "twice", &input, 1, 1, &result, 1, &count) == APL_FINE);
  const Array twice(result);
  WANT(static_cast<const double*>(apl_array_data(twice.get()))[2] == 7);

  // An exception of a callback stays inside, as an error.
  apl_pass pass{
      sizeof pass, "throws",
      "",          nullptr,
      0,           nullptr,
      nullptr,     [](void*, apl_module*, apl_pass_context*) -> apl_fault { throw std::runtime_error("from a pass"); },
      nullptr};
  WANT(apl_compiler_add_pass(compiler.get(), &pass) == APL_FINE);
  WANT(apl_run_pipeline(compiler.get(), module.get(), "throws") == APL_FAULT_BUG);
  WANT(std::string(apl_compiler_error(compiler.get(), 0)->message).find("from a pass") != std::string::npos);
  std::puts("the C API from C++: fine");
}
