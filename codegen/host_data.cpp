// Host code: what it says to the backend about memory, and its own checks.
#include "codegen/host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/c_string.h"
#include "ir/layouts.h"

namespace apl::lower {

using namespace kernel;

// ---- what a backend does; a derived class may say it in another way ----

void Host::check_status() { out_.line("if (status != APL_SUCCESS) goto done;"); }
std::string Host::upload_call(const std::string& to, const std::string& from, const std::string& bytes) {
  return fmt::format("ctx->backend->upload(ctx, {}, {}, {})", to, from, bytes);
}
std::string Host::download_call(const std::string& to, const std::string& from, const std::string& bytes) {
  return fmt::format("ctx->backend->download(ctx, {}, {}, {})", to, from, bytes);
}
std::string Host::copy_call(const std::string& to, const std::string& from, const std::string& bytes) {
  return fmt::format("ctx->backend->copy(ctx, {}, {}, {})", to, from, bytes);
}
std::string Host::synchronise_call() { return "ctx->backend->synchronise(ctx)"; }

void Host::run_call(const std::string& call) {
  out_.line("status = {};", call);
  check_status();
}

void Host::allocate(Value block, const std::string& bytes) {
  const std::string name = unit_.name(block);
  run_call(has_rooms_
               ? fmt::format("apl_room(ctx, {}, {}, &{}, &{})", bytes, c_string(table_.name(block)), name, room(block))
               : fmt::format("ctx->backend->allocate(ctx, {}, {}, &{})", bytes, c_string(table_.name(block)), name));
}

const std::string& Host::room(Value block) {
  std::string& name = rooms_[block];
  if (name.empty()) name = unit_.fresh(unit_.name(block) + "_room");
  return name;
}

std::string Host::make_room(const std::string& hint, const std::string& bytes) {
  const std::string name = unit_.fresh(hint + "_of_threads", {"_room"});
  scratch_.push_back(name);
  run_call(fmt::format("apl_room(ctx, {}, \"{}\", &{}, &{}_room)", bytes, hint, name, name));
  return name;
}

// Nobody reads it any more. The next call gets it anew.
void Host::release(const std::string& block) {
  out_.line("if ({0}) ctx->backend->release(ctx, {0});", block);
  out_.line("{} = NULL;", block);
}

void Host::refuse_if(const ExprPtr& condition, apl_failure_code code, Location location, const std::string& message,
                     const std::vector<ExprPtr>& numbers) {
  out_.open("if ({}) {{", text(condition));
  std::string arguments;
  for (const ExprPtr& x : numbers) arguments += ", (long long)(" + text(x) + ")";
  out_.line("snprintf(ctx->error, sizeof ctx->error, {}{});", c_string(message), arguments);
  out_.line("ctx->error_code = {};", static_cast<int>(code));
  out_.line("ctx->error_line = {};", location.line);
  out_.line("ctx->error_column = {};", location.column);
  out_.line("status = APL_PROGRAM_ERROR;");
  out_.line("goto done;");
  out_.close("}}");
}

// ---- the rest is the same for all ----

// An array of scalars that the host knows.
void Host::upload(const ArrayLit& op, Value array) {
  const std::string type = c_type({op.element.element, false});
  if (op.elements.empty() || op.element.element == ScalarType::unit) return;
  std::vector<std::string> elements;
  for (const Operand& x : op.elements) elements.push_back(text(values_.operand(x)));
  out_.open("{{");
  out_.line("const {} elements[] = {{{}}};", type, fmt::join(elements, ", "));
  run_call(upload_call(block(table_.type(array).memory->block), "elements", "sizeof elements"));
  out_.close("}}");
}

void Host::upload(const Update& op, const Stm& stm) {
  const Type& type = table_.type(op.array);
  if (op.checked) check_dims(op.array, op.dims, stm.location);
  if (type.element == ScalarType::unit) return;
  const std::string name = c_type({type.element, false});
  const Lmad here = index_layout(type.memory->layout, op.dims);
  out_.open("{{");
  out_.line("const {} element = {};", name, text(values_.operand(op.value)));
  run_call(upload_call(fmt::format("({} *){} + ({})", name, block(type.memory->block), text(here.offset())), "&element",
                       "sizeof element"));
  out_.close("}}");
}

void Host::download(const Index& op, const Stm& stm) {
  const Type& source = table_.type(op.array);
  Lmad here = index_layout(source.memory->layout, op.dims);
  Value v = stm.pattern.front();
  if (!is_variable(v)) return;
  std::string type = c_type({table_.type(v).element, false});
  out_.line("{} {};", type, unit_.name(v));
  // A check that failed in a kernel ends the entry before the host acts on what is missing.
  run_call(synchronise_call());
  run_call(download_call("&" + unit_.name(v),
                         fmt::format("(const {} *){} + ({})", type, block(source.memory->block), text(here.offset())),
                         "sizeof " + unit_.name(v)));
}

// A block as the host has it: an allocation, or the data of a parameter.
std::string Host::block(Value b) {
  for (std::size_t k = 0; k < unit_.function.params.size(); ++k) {
    const Type& type = table_.type(unit_.function.params[k]);
    if (type.memory && type.memory->block == b) return fmt::format("inputs[{}].data", k);
  }
  return unit_.name(b);
}

void Host::check_dims(Value array, const std::vector<DimIndex>& dims, Location location) {
  for (const BoundsCheck& bound : bounds_checks(values_, table_.type(array), dims))
    refuse_if(bound.outside, APL_INDEX, location, bound.message, bound.numbers);
}

}  // namespace apl::lower
