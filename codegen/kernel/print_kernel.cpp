// The printer of the kernel language: C11 over threads.h, or C++ over device.h, which knows the dialects of GPUs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "codegen/kernel/functor.h"
#include "codegen/kernel/kernel_language.h"
#include "codegen/kernel/loop_functions.h"
#include "codegen/kernel/masked_reads.h"
#include "codegen/kernel/words.h"
#include "codegen/kernel/writer.h"
#include "runtime/names.h"

namespace apl::kernel {

std::string c_type(CType type) {
  if (type.small) return "int";
  return std::string(facts(type.scalar).kernel_type);
}

namespace {

// C's precedences, tighter is larger.
int precedence(const Expr& e) {
  switch (e.kind) {
    case Expr::Kind::select: return 3;
    case Expr::Kind::infix: break;
    case Expr::Kind::prefix:
    case Expr::Kind::cast: return 14;
    case Expr::Kind::literal: return e.text[0] == '-' || e.text[0] == '(' ? 14 : 16;
    default: return 16;
  }
  if (e.text == "*" || e.text == "/" || e.text == "%") return 13;
  if (e.text == "+" || e.text == "-") return 12;
  if (e.text == "<<" || e.text == ">>") return 11;
  if (e.text[0] == '<' || e.text[0] == '>') return 10;
  if (e.text == "==" || e.text == "!=") return 9;
  if (e.text == "&") return 8;
  if (e.text == "^") return 7;
  if (e.text == "|") return 6;
  if (e.text == "&&") return 5;
  return 4;
}

class Printer {
 public:
  // `function`: the name of the function whose statements are printed.
  Printer(const Dialect& dialect, std::set<std::string> device_arrays, std::string function = {},
          std::string status = {})
      : dialect_(dialect),
        device_arrays_(std::move(device_arrays)),
        status_(std::move(status)),
        loops_(std::move(function)) {}

  std::string text(const ExprPtr& e, int at_least = 0) const {
    int mine = precedence(*e);
    std::string result = bare(*e, mine);
    return mine < at_least ? "(" + result + ")" : result;
  }

  void block(const Block& block, Writer& out) {
    loops_.begin_block();
    for (const Stmt& s : block) statement(s, out);
    loops_.end_block();
  }

  void declare_device_array(const std::string& name) { device_arrays_.insert(name); }

  // The names in scope, to which the caller adds the function's parameters, and the functions of the parallel loops
  // that were printed.
  LoopFunctions& loops() { return loops_; }

 private:
  std::string bare(const Expr& e, int mine) const {
    switch (e.kind) {
      case Expr::Kind::literal:
      case Expr::Kind::variable: return e.text;
      case Expr::Kind::prefix: return e.text + text(e.args[0], 15);
      // C warns about && inside ||, and people misread shifts and masks: parentheses there.
      case Expr::Kind::infix: {
        int inner = mine <= 9 ? mine + 1 : mine == 11 ? 13 : mine;
        if (e.text == "||") inner = 6;
        return fmt::format("{} {} {}", text(e.args[0], inner), e.text, text(e.args[1], std::max(inner, mine + 1)));
      }
      case Expr::Kind::call: {
        std::vector<std::string> args;
        for (const ExprPtr& a : e.args) args.push_back(text(a));
        return fmt::format("{}({})", e.text, fmt::join(args, ", "));
      }
      case Expr::Kind::element:
        return device_arrays_.count(e.text) ? fmt::format("{}({})", e.text, text(e.args[0]))
                                            : fmt::format("{}[{}]", e.text, text(e.args[0]));
      case Expr::Kind::cast: return fmt::format("({}){}", c_type(e.type), text(e.args[0], 14));
      case Expr::Kind::select:
        return fmt::format("{} ? {} : {}", text(e.args[0], 4), text(e.args[1], 3), text(e.args[2], 3));
    }
    return "?";
  }

  void statement(const Stmt& s, Writer& out) {
    switch (s.kind) {
      case Stmt::Kind::declare:
        if (const auto value = number(s.value); value && s.constant) numbers_[s.name] = *value;
        out.line("{}{} {} = {};", s.constant ? "const " : "", c_type(s.type), s.name, text(s.value));
        loops_.declare({.name = s.name,
                        .type = c_type(s.type),
                        .literal = s.constant && s.value->kind == Expr::Kind::literal ? s.value->text : ""});
        break;
      case Stmt::Kind::array:
        out.line("{} {}[{}];", c_type(s.type), s.name, s.count);
        loops_.declare({.name = s.name, .type = c_type(s.type) + " *", .is_alone = true});
        break;
      case Stmt::Kind::shared:
        if (dialect_.on_device) {
          declare_device_array(s.name);
          out.line("const apl_shared<{0}> {1} = apl_shared_at<{0}>({2}, {3});", c_type(s.type), s.name, s.offset,
                   s.count);
        } else {
          out.line("{} {}[{}] __attribute__((aligned(64)));", c_type(s.type), s.name, s.count);
        }
        break;
      case Stmt::Kind::assign: out.line("{} = {};", text(s.target), text(s.value)); break;
      case Stmt::Kind::call: out.line("{};", text(s.value)); break;
      case Stmt::Kind::for_loop:
        if (s.parallel && !dialect_.on_device) {
          parallel_loop(s, out);
        } else {
          loop(s, text(s.from), text(s.value, 11), out);
        }
        break;
      case Stmt::Kind::while_loop:
        out.open("while ({}) {{", text(s.value));
        keep_scalar(s, out);
        block(s.body, out);
        out.close("}}");
        break;
      case Stmt::Kind::branch:
        out.open("if ({}) {{", text(s.value));
        block(s.body, out);
        if (!s.else_body.empty()) {
          out.close("}} else {{");
          out.indent();
          block(s.else_body, out);
        }
        out.close("}}");
        break;
      case Stmt::Kind::barrier:
        if (dialect_.on_device) out.line("apl_barrier();");
        break;
      case Stmt::Kind::comment: out.line("// {}", comment_text(s.name)); break;
      case Stmt::Kind::text: out.line("{}", s.name); break;
      case Stmt::Kind::fail:
        out.line("{}apl_fail(failure, {}, {}{});", status_.empty() ? "" : status_ + " = ", s.code, s.check, numbers(s));
        if (!s.name.empty()) out.line("apl_mark_failed({});", s.name);
        break;
      case Stmt::Kind::heap:
        if (dialect_.on_device) {
          out.line("apl_heap<{}> {};", c_type(s.type), s.name);
        } else {
          out.line("{0} *{1} = NULL;", c_type(s.type), s.name);
          out.line("int64_t {}_capacity = 0;", s.name);
        }
        break;
      case Stmt::Kind::grow:
        if (dialect_.on_device) {
          out.open("if (!{}.grow({})) {{", s.name, text(s.value));
        } else {
          out.open("if (!apl_grow((void **)&{0}, &{0}_capacity, {1}, sizeof *{0})) {{", s.name, text(s.value));
        }
        block(s.body, out);
        out.close("}}");
        break;
      case Stmt::Kind::release:
        if (!dialect_.on_device) out.line("free({});", s.name);
        break;
      case Stmt::Kind::update:
        out.open("apl_update({}, {}, [&]({} {}) -> {} {{", s.target->text, text(s.target->args[0]), c_type(s.type),
                 s.name, c_type(s.type));
        block(s.body, out);
        out.line("return {};", text(s.value));
        out.close("}});");
        break;
      case Stmt::Kind::atomic:
        out.line("apl_atomic_{}({}, {}, {}{});", s.name, s.target->text, text(s.target->args[0]),
                 text(cast(s.type, s.value)),
                 s.numbers.empty() ? "" : fmt::format(", apl_at({}{})", s.check, numbers(s)));
        break;
      case Stmt::Kind::lock:
        out.open("for (unsigned tries = 1; tries != 0;) {{");
        out.open("if (!apl_lock{}) {{", lock_of(s));
        out.line("apl_back_off(tries);");
        out.line("continue;");
        out.close("}}");
        block(s.body, out);
        out.line("apl_unlock{};", lock_of(s));
        out.line("tries = 0;");
        out.close("}}");
        break;
      case Stmt::Kind::scope:
        out.open("[&] {{");
        block(s.body, out);
        out.close("}}();");
        break;
      case Stmt::Kind::leave:
        if (!status_.empty()) {
          out.line("return {};", status_);
        } else if (dialect_.on_device) {
          out.line("return;");
        } else {
          out.line("goto {};", s.name);
        }
        break;
      case Stmt::Kind::label:
        if (!dialect_.on_device) out.line("{}:;", s.name);
        break;
    }
  }

  std::string lock_of(const Stmt& s) const {
    return s.name.empty() ? fmt::format("({})", text(s.value))
                          : fmt::format("_in<{}>({}, {})", s.count, s.name, text(s.value));
  }

  std::string numbers(const Stmt& s) const {
    std::string list;
    for (const ExprPtr& number : s.numbers) list += ", " + text(number);
    return list;
  }

  // The number of rounds of a loop, and of a nest of loops together.
  static ExprPtr rounds(const Stmt& s) {
    return number(s.from) == 0 && number(s.step) == 1 ? s.value : call("apl_rounds", {s.from, s.value, s.step});
  }
  static ExprPtr rounds(const std::vector<const Stmt*>& nest) {
    ExprPtr all = literal(std::int64_t{1});
    for (const Stmt* s : nest) all = mul(all, rounds(*s));
    return all;
  }

  // Prints a call that runs the loop by threads, and adds the loop's function. The rounds of `s.collapse` nested loops
  // are counted as one.
  void parallel_loop(const Stmt& s, Writer& out) {
    std::vector<const Stmt*> nest{&s};
    while (std::ssize(nest) < s.collapse && nest.back()->body.size() == 1 &&
           nest.back()->body.front().kind == Stmt::Kind::for_loop)
      nest.push_back(&nest.back()->body.front());
    Writer body;
    body.indent();
    some_rounds(nest, body);
    out.line("{}", loops_.add(body.take(), text(rounds(nest)),
                              s.elements ? fmt::format("apl_units_of({})", text(s.elements)) : "INT64_MAX"));
  }

  // Prints the rounds from `apl_begin` up to `apl_end`. A nest has one loop over its rounds, which counts its indices
  // up.
  void some_rounds(const std::vector<const Stmt*>& nest, Writer& out) {
    const ExprPtr begin = variable("apl_begin"), end = variable("apl_end");
    const Stmt& inner = *nest.back();
    const auto index = [](const Stmt& s, const ExprPtr& round) { return add(s.from, mul(s.step, round)); };
    if (nest.size() == 1) return loop(inner, text(index(inner, begin)), text(index(inner, end), 11), out);
    loops_.begin_block();
    ExprPtr within = rounds(nest);
    for (std::size_t k = 0; k < nest.size(); ++k) {
      const Stmt& s = *nest[k];
      ExprPtr round = k == 0 ? begin : infix("%", begin, within);
      within = rounds(std::vector(nest.begin() + static_cast<std::ptrdiff_t>(k) + 1, nest.end()));
      if (k + 1 < nest.size()) round = infix("/", round, within);
      out.line("{} {} = {};", c_type(s.type), s.name, text(index(s, round)));
      loops_.declare({.name = s.name, .type = c_type(s.type)});
    }
    out.open("for (int64_t apl_round = apl_begin; apl_round < apl_end; ++apl_round) {{");
    body_of(inner, out);
    for (std::size_t k = nest.size(); k-- > 0;) {
      const Stmt& s = *nest[k];
      if (k == 0) {
        out.line("{};", step_of(s));
      } else {
        out.line("if ({} < {}) continue;", number(s.step) == 1 ? step_of(s) : "(" + step_of(s) + ")",
                 text(s.value, 11));
        out.line("{} = {};", s.name, text(s.from));
      }
    }
    out.close("}}");
    loops_.end_block();
  }

  std::string step_of(const Stmt& loop) const {
    return number(loop.step) == 1 ? "++" + loop.name : fmt::format("{} += {}", loop.name, text(loop.step));
  }

  void loop(const Stmt& s, const std::string& from, const std::string& end, Writer& out) {
    if (s.unroll && dialect_.on_device)
      out.line("{}", s.unroll_by == 0 ? std::string("APL_UNROLL") : fmt::format("APL_UNROLL_BY({})", s.unroll_by));
    if (s.unroll && s.unroll_by > 1 && !dialect_.on_device) out.line("#pragma GCC unroll {}", s.unroll_by);
    if (!s.pragma.empty() && !dialect_.on_device) out.line("#pragma {}", s.pragma);
    loops_.begin_block();
    loops_.declare({.name = s.name, .type = c_type(s.type)});
    out.open("for ({} {} = {}; {} < {}; {}) {{", c_type(s.type), s.name, from, s.name, end, step_of(s));
    body_of(s, out);
    out.close("}}");
    loops_.end_block();
  }

  void body_of(const Stmt& s, Writer& out) {
    if (s.scan.empty()) {
      keep_scalar(s, out);
      block(s.body, out);
    } else {
      out.open("{{");
      keep_scalar(s, out);
      block(s.body, out);
      out.close("}}");
      out.line("#pragma {}", s.scan);
      out.open("{{");
      block(s.else_body, out);
      out.close("}}");
    }
  }

  // gcc does not convert the branches of a loop in which assembler text stands, be it empty.
  void keep_scalar(const Stmt& loop, Writer& out) const {
    if (!dialect_.on_device && reads_rows_in_branches(loop, numbers_))
      out.line("__asm__ volatile(\"\");  // rows that branches read: gcc would make wrong vectors of them");
  }

  const Dialect& dialect_;
  std::set<std::string> device_arrays_;
  Numbers numbers_;
  std::string status_;  // of a function that kernels call
  LoopFunctions loops_;
};

// How often each word stands in the text.
std::map<std::string, int, std::less<>> word_counts(std::string_view text) {
  std::map<std::string, int, std::less<>> counts;
  for_each_word(text, [&](std::string_view word) { ++counts[std::string(word)]; });
  return counts;
}

bool has_call(const Expr& e) {
  return e.kind == Expr::Kind::call || std::ranges::any_of(e.args, [](const ExprPtr& arg) { return has_call(*arg); });
}

// What a call does besides is not known.
bool drop_named_once(Block& block, const std::map<std::string, int, std::less<>>& counts) {
  const std::size_t before = block.size();
  std::erase_if(block, [&](const Stmt& s) {
    const auto found =
        s.kind == Stmt::Kind::declare && s.constant && !has_call(*s.value) ? counts.find(s.name) : counts.end();
    return found != counts.end() && found->second == 1;
  });
  bool dropped = block.size() != before;
  for (Stmt& s : block) {
    dropped = drop_named_once(s.body, counts) || dropped;
    dropped = drop_named_once(s.else_body, counts) || dropped;
  }
  return dropped;
}

}  // namespace

void drop_unread(Function& function, const Dialect& dialect) {
  while (drop_named_once(function.body, word_counts(print(function, dialect)))) {
  }
}

std::string parameter(const Param& param, const Dialect& dialect) {
  if (!param.buffer) return fmt::format("{} {}{}", c_type(param.type), param.is_result ? "*" : "", param.name);
  bool in = *param.buffer == BufferKind::global_in;
  if (dialect.on_device) return fmt::format("{}<{}> {}", in ? "apl_in" : "apl_out", c_type(param.type), param.name);
  return fmt::format("{}{} *restrict {}", in ? "const " : "", c_type(param.type), param.name);
}

std::string print(const ExprPtr& expr, const Dialect& dialect) { return Printer(dialect, {}).text(expr); }

namespace {

// A function's parameter, as its parallel loops read it.
LoopName loop_name(const Param& param) {
  if (!param.buffer) return {.name = param.name, .type = c_type(param.type) + (param.is_result ? " *" : "")};
  const bool in = *param.buffer == BufferKind::global_in;
  return {.name = param.name, .type = (in ? "const " : "") + c_type(param.type) + " *", .is_alone = true};
}

}  // namespace

std::string print(const Function& function, const Dialect& dialect) {
  Writer out;
  for (const std::string& text : function.comments) out.line("// {}", comment_text(text));
  std::vector<std::string> params;
  std::set<std::string> device_arrays;
  for (const Param& param : function.params) {
    params.push_back(parameter(param, dialect));
    if (param.buffer && dialect.on_device) device_arrays.insert(param.name);
  }
  if (function.can_fail)
    params.emplace_back(dialect.on_device ? "apl_failure *failure" : "struct apl_failure *failure");
  if (function.sees_failed) params.emplace_back("int32_t *failed");
  std::string list = fmt::format("{}", fmt::join(params, ", "));
  if (function.is_called) {
    out.open("{} {} {}({}) {{", dialect.on_device ? "APL_FUNCTION" : "static", function.can_fail ? "int" : "void",
             function.name, list.empty() && !dialect.on_device ? "void" : list);
  } else if (dialect.on_device) {
    const std::string resident = function.resident > 0 ? fmt::format(", {}", function.resident) : "";
    out.open("APL_KERNEL({}{}) void {}({}) {{", function.threads, resident, function.name, list);
  } else if (!function.signature.empty()) {
    out.open("{} {{", function.signature);
  } else {
    out.open("static void {}({}) {{", function.name, list.empty() ? "void" : list);
  }
  if (!function.status.empty()) out.line("int {} = 0;", function.status);
  Printer printer(dialect, std::move(device_arrays), function.name, function.status);
  for (const Param& param : function.params) printer.loops().declare(loop_name(param));
  if (function.can_fail) printer.loops().declare({.name = "failure", .type = "struct apl_failure *"});
  if (function.sees_failed) printer.loops().declare({.name = "failed", .type = "int32_t *"});
  Writer body;
  body.indent();
  printer.block(function.body, body);
  out.raw(printer.loops().without_unread(body.take()));
  if (!function.status.empty()) out.line("return 0;");
  out.close("}}");
  if (dialect.on_device && !function.is_called) out.line("APL_EXPORT({})", function.name);
  std::string before = function.declarations;
  for (const Function& part : function.before) before += print(part, dialect) + "\n";
  return before + printer.loops().take() + out.take();
}

std::string print(const Functor& functor, const Function& code, const Dialect& dialect) {
  Writer out;
  std::set<std::string> device_arrays;
  out.open("struct {} {{", functor.name);
  for (const Param& member : functor.members) {
    out.line("{};", parameter(member, dialect));
    if (member.buffer) device_arrays.insert(member.name);
  }
  if (functor.members.empty()) out.line("int32_t unused;");
  Printer printer(dialect, std::move(device_arrays));
  out.line("template <class Sum>");
  out.open("APL_DEVICE Sum operator()(Sum whole, int64_t {}, int64_t {}{}) const {{", functor.row, functor.column,
           functor.counts_nonzeros ? ", int64_t " + functor.nonzero : "");
  out.line("const {} {} = {}(whole);", c_type(functor.sum_type), functor.sum, c_type(functor.sum_type));
  printer.block(code.body, out);
  out.line("return Sum({});", printer.text(functor.result));
  out.close("}}");
  out.close("}};");
  return out.take();
}

}  // namespace apl::kernel
