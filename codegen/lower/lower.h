// Lowering of kernels from memory-stage IR to the kernel language.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "codegen/lower/kernel.h"

namespace apl::lower {

// Before which statements of a block's body a barrier is needed (codegen/lower/barriers.cpp); nullptr: before its
// results.
std::set<const Stm*> find_barriers(const SegOp& op, const ValueTable& values);

// Rounds of a loop over a chunk that are unrolled on GPUs: so many loads are on their way.
constexpr std::int64_t kRoundsAtOnce = 8;
// Of a load or store.
constexpr std::int64_t kBytesOfAccess = 16;
inline kernel::ExprPtr number_of(std::int64_t n) { return kernel::literal(n); }
inline kernel::Stmt scope_of(kernel::Block body) {
  kernel::Stmt scope;
  scope.kind = kernel::Stmt::Kind::scope;
  scope.body = std::move(body);
  return scope;
}
inline kernel::Stmt do_call(std::string function, std::vector<kernel::ExprPtr> arguments) {
  kernel::Stmt made;
  made.kind = kernel::Stmt::Kind::call;
  made.value = kernel::call(std::move(function), std::move(arguments));
  return made;
}
inline kernel::Stmt barrier() {
  kernel::Stmt made;
  made.kind = kernel::Stmt::Kind::barrier;
  return made;
}
inline kernel::Stmt fence() { return do_call("apl_fence", {}); }
// Whether the statement makes a scalar of scalars, reads an element or is a view.
bool is_scalar_code(const Stm& stm, const ValueTable& values);
// Whether a body has loops, reductions or maps.
bool has_loops(const Body& body);

// The whole entry: host function text, and what stands before it; kernels are appended.
struct HostText {
  std::string declarations, text;
  std::vector<kernel::Function> kernels;
  std::vector<kernel::Function> lazy_kernels;  // CUDA: kernels that are compiled when they are chosen
  std::vector<KernelInfo> infos;
  std::vector<ProgramParameter> parameters;
  bool has_plans = false;
};
// A function that entries call has the signature of an entry (runtime/backends/context.h), but that sizes come before
// its arguments.
// What the function is called that makes a constant: an entry's, but without arguments.
std::string constant_function(const apl::Function& function);
HostText lower_host(Unit& unit, const CodegenOptions& options);
// A function of scalars that kernels call.
kernel::Function lower_called(Unit& unit);

// generate(), with `edit` called for each kernel before it is printed: for tests that break kernels on purpose.
using KernelEdit = std::function<void(kernel::Function&)>;
Result<ProgramText> generate_edited(const Module& module, Target target, const CodegenOptions& options,
                                    const KernelEdit& edit);

}  // namespace apl::lower
