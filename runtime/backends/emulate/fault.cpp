#include "runtime/backends/emulate/fault.h"

#include <fmt/format.h>

namespace apl::emulate {

namespace {

std::string_view line_of(std::string_view text, int line) {
  for (int n = 1; n < line && !text.empty(); ++n) {
    const std::size_t end = text.find('\n');
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

std::string name_of(const Actor& actor) { return fmt::format("thread {} of block {}", actor.thread, actor.block); }

Code code_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::undefined:
    case FaultKind::copy_pending: return Code::run_undefined_read;
    case FaultKind::out_of_bounds:
    case FaultKind::no_array:
    case FaultKind::misaligned: return Code::run_index_out_of_bounds;
    case FaultKind::no_memory: return Code::run_out_of_memory;
    default: return Code::run_race;
  }
}

std::string message_of(const Fault& f) {
  const std::string who = name_of(f.actor);
  const std::string_view does = f.is_write ? "writes" : "reads";
  switch (f.kind) {
    case FaultKind::race:
      return fmt::format(
          "race on element {} of {}: {} {} it in line {}, {} {} it in line {}, and nothing orders the two", f.index,
          f.array, name_of(f.other), f.other_writes ? "writes" : "reads", f.other.line, who, does, f.actor.line);
    case FaultKind::undefined:
      return fmt::format("{} reads element {} of {}, which nothing has written, in line {}", who, f.index, f.array,
                         f.actor.line);
    case FaultKind::copy_pending:
      return fmt::format("{} reads element {} of {} in line {}, before the copy started in line {} is waited for", who,
                         f.index, f.array, f.actor.line, f.other.line);
    case FaultKind::out_of_bounds:
      return fmt::format("{} {} element {} of {}, which has {}, in line {}", who, does, f.index, f.array, f.count,
                         f.actor.line);
    case FaultKind::no_array:
      return fmt::format("{} {} an array in line {} that is no allocation", who, does, f.actor.line);
    case FaultKind::misaligned:
      return fmt::format("{} {} {} in line {} at byte {}, which is not aligned for that", who, does, f.array,
                         f.actor.line, f.index);
    case FaultKind::no_memory: return fmt::format("out of memory: to watch the {} elements of {}", f.count, f.array);
    case FaultKind::deadlock:
      return fmt::format(
          "{} waits in line {} for what another block is to publish, and so do all others of the {} blocks that have "
          "started: other blocks may start only when one of them has ended",
          who, f.actor.line, f.count);
    case FaultKind::divergence:
      return f.other.line == 0
                 ? fmt::format("{} waits at the barrier in line {}, which thread {} never reaches: it has ended", who,
                               f.actor.line, f.other.thread)
                 : fmt::format("{} waits at the barrier in line {}, thread {} at the one in line {}", who, f.actor.line,
                               f.other.thread, f.other.line);
  }
  return who;
}

}  // namespace

Diagnostic describe(const Fault& fault, std::string_view kernel, std::string_view kernel_text) {
  std::string message = fmt::format("kernel {}: {}", kernel, message_of(fault));
  auto show = [&](int line) { message += fmt::format("\n{:>6} | {}", line, line_of(kernel_text, line)); };
  if (fault.other.line != 0 && fault.other.line != fault.actor.line) show(fault.other.line);
  show(fault.actor.line);
  return make_error(code_of(fault.kind), {}, std::move(message));
}

}  // namespace apl::emulate
