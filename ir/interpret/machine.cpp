#include "ir/interpret/machine.h"

#include <fmt/format.h>

#include <map>
#include <new>

#include "ir/call_table.h"
#include "ir/differentiate.h"
#include "ir/sparse_arguments.h"
#include "ir/verify.h"

namespace apl::interpreter {
namespace {

// Bodies inside bodies, calls included, cost stack. Futhark has no recursion, so this many are a cycle.
constexpr int kDeepest = 1000;

}  // namespace

Machine::Machine(const Module& module, const InterpretOptions& options)
    : module_(module),
      options_(options),
      random_(options.seed),
      memory_(module.stage == Stage::memory),
      counting_(options.work) {}

Machine::Frame Machine::make_frame(const Function& function) {
  auto found = lifetimes_.find(function.name);
  if (found == lifetimes_.end()) found = lifetimes_.emplace(function.name, find_lifetimes(function)).first;
  Frame frame{&function, &found->second, {}, {}};
  frame.scalars.resize(function.values.size());
  frame.arrays.resize(function.values.size());
  return frame;
}

std::vector<Datum> Machine::call(const Function& function, const std::vector<Datum>& sizes, std::vector<Datum> params) {
  Frame frame = make_frame(function);
  Frame* caller = frame_;
  frame_ = &frame;
  for (std::size_t k = 0; k < function.sizes.size(); ++k) bind(function.sizes[k], sizes[k]);
  // Scalars and blocks first: the shapes and bindings of arrays mention them.
  for (bool arrays : {false, true}) {
    for (std::size_t k = 0; k < function.params.size(); ++k) {
      Value param = function.params[k];
      if (type(param).is_array() != arrays) continue;
      // A block that nothing else defines is the memory that the argument lies in.
      if (arrays && type(param).memory && !frame.arrays[type(param).memory->block.id].storage)
        frame.arrays[type(param).memory->block.id].storage = params[k].array.storage;
      bind(param, std::move(params[k]));
    }
  }
  const BodyLifetimes& lifetimes = lifetimes_of(*function.body);
  run(*function.body, lifetimes);
  std::vector<Datum> results;
  for (std::size_t k = 0; k < function.body->results.size(); ++k)
    results.push_back(take_result(*function.body, lifetimes, k));
  frame_ = caller;
  return results;
}

void Machine::check_kept(Value written, Value kept) {
  const Array& a = frame_->arrays[written.id];
  const Array& b = frame_->arrays[kept.id];
  if (!a.storage || a.storage != b.storage || !share_elements(a, b)) return;
  fail(Code::bug_internal,
       fmt::format("`{}` is written over `{}`, which is read again later.", name(written), name(kept)));
}

void Machine::note_terms(const std::vector<Operand>& accumulators, std::int64_t terms) const {
  if (!options_.reduced) return;
  for (const Operand& x : accumulators) {
    const Type type = frame_->function->values.type(x);
    if (type.kind == Type::Kind::data && is_float(type.element)) options_.reduced(type.element, terms);
  }
}

void Machine::tick(std::int64_t steps) {
  constexpr std::uint64_t kBetween = 65536;
  const std::uint64_t before = ticks_ / kBetween;
  ticks_ += static_cast<std::uint64_t>(steps);
  for (std::uint64_t asked = before; options_.stop && asked < ticks_ / kBetween; ++asked)
    if (options_.stop()) fail(Code::run_stopped, "the run was stopped.");
}

void Machine::run(const Body& body, const BodyLifetimes& lifetimes) {
  for (Value v : lifetimes.dead_at_start) assign(v, {});
  Work* const outer = work_;
  const std::size_t count = body.stms.size();
  std::size_t k = 0;
  if (++depth_ > kDeepest)
    fail(Code::unsupported_construct, "bodies and calls are nested too deeply: recursion is not supported.");
  tick();
  try {
    for (; k < count; ++k) {
      const Stm& stm = body.stms[k];
      const StmLifetimes& stm_lifetimes = lifetimes.stms[k];
      stm_lifetimes_ = &stm_lifetimes;
      tick();
      if (counting_ != nullptr) {
        work_ = &counting_->of(stm);
        work_->operations += scalar_operations(stm.op);
      }
      std::visit([&](const auto& op) { exec(stm, op); }, stm.op);
      for (const auto& [written, kept] : stm_lifetimes.kept) check_kept(written, kept);
      for (Value v : stm_lifetimes.dead_after) assign(v, {});
    }
  } catch (RunError& error) {
    if (!error.diagnostic.location) {
      error.diagnostic.location = body.stms[k].location;
      note_calls(error.diagnostic, module_.calls);
    }
    throw;
  }
  work_ = outer;
  --depth_;
}

// Runs functions on values of the constants that they read, each of which is computed once. What constants cost is no
// cost of the function.
class Constants {
 public:
  Constants(const Module& module, const InterpretOptions& options) : module_(module), options_(options) {}

  std::vector<HostValue> run(const Function& function, const std::vector<HostValue>& arguments) {
    return run(function, arguments, options_);
  }

 private:
  std::vector<HostValue> run(const Function& function, std::vector<HostValue> arguments,
                             const InterpretOptions& options) {
    for (const EntryInfo::Constant& use : function.entry->constants) {
      const std::vector<HostValue>& values = made(use.function);
      arguments.insert(arguments.end(), values.begin(), values.end());
    }
    return Machine(module_, options).run_entry(function, arguments);
  }

  const std::vector<HostValue>& made(const std::string& name) {
    if (const auto found = made_.find(name); found != made_.end()) return found->second;
    InterpretOptions options = options_;
    options.work = nullptr;
    return made_.emplace(name, run(*module_.find(name), {}, options)).first->second;
  }

  const Module& module_;
  const InterpretOptions& options_;
  std::map<std::string, std::vector<HostValue>> made_;
};

}  // namespace apl::interpreter

namespace apl {

Result<std::vector<HostValue>> interpret(const Module& module, std::string_view entry,
                                         const std::vector<HostValue>& arguments, const InterpretOptions& options) {
  // The machine relies on what the verifier checks, and on nothing else.
  if (std::vector<Diagnostic> broken = verify(module); !broken.empty()) return std::move(broken.front());
  if (holds_derivatives(module)) {
    if (options.work != nullptr)
      return make_error(Code::bug_internal, {}, "what derivatives cost is counted after `differentiate`.");
    const Result<Module> computed = differentiate(module);
    return computed ? interpret(*computed, entry, arguments, options) : computed.error();
  }
  const Function* function = module.find_entry(entry);
  if (!function) return make_error(Code::run_argument, {}, "there is no entry `" + std::string(entry) + "`.");
  try {
    interpreter::Constants constants(module, options);
    const SoaInterface sparse = soa_interface(*function);
    if (sparse.empty()) return constants.run(*function, arguments);
    const auto packed = pack_arguments(sparse, arguments, options.tiles);
    if (!packed) return packed.error();
    std::vector<HostValue> results = constants.run(*function, packed->values);
    unpack_results(sparse, *packed, results);
    return results;
  } catch (interpreter::RunError& error) {
    return std::move(error.diagnostic);
  } catch (const std::bad_alloc&) {
    return make_error(Code::run_out_of_memory, function->location, "the interpreter has no memory left.");
  } catch (const std::exception& error) {
    return make_error(Code::bug_internal, function->location, std::string("the interpreter failed: ") + error.what());
  }
}

}  // namespace apl
