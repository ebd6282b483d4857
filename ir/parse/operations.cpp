// Operations without nested bodies, and the choice among all.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "ir/fields.h"
#include "ir/parse/parser.h"

namespace apl {

namespace {

enum class Syntax : std::uint8_t { call, own };  // of ir/ops.def

}  // namespace

Op Parser::operation() {
  if (is("[")) return array_literal();
  if (!is(Token::Kind::name)) return Use{operand()};
  if (is("if")) return branch();
  if (is("loop")) return loop();
  if (is("apply")) return call();
  if (is("choose")) return choose();
  if (is("segmap")) return segmap();
  if (is("copy_tile")) return copy_tile();
  if (is("tile_contract")) return tile_contract();
  if (peek(1).is("(")) {
    const Token name = take();
    return named_operation(name);
  }
  if (is("checked") || peek(1).is("[") || peek(1).is("with")) return array_access();
  return Use{operand()};
}

Op Parser::named_operation(const Token& name) {
  if (name.is("map") || name.is("reduce") || name.is("redomap") || name.is("scan") || name.is("screma"))
    return screma();
  if (name.is("scatter") || name.is("hist")) return scatter(name.is("hist"));
  if (name.is("jvp") || name.is("vjp")) return derivative(name.is("vjp"));
  if (name.is("assert")) return assertion();
  const auto finish = [&](Op op) {
    expect(")");
    return op;
  };
  const auto comma = [&] { expect(","); };
  if (name.is("convert") || name.is("bitcast")) {
    expect("(");
    Operand x = operand();
    comma();
    return finish(Convert{scalar_type(), x, name.is("bitcast")});
  }
  if (name.is("scratch")) {
    expect("(");
    const Token start = peek();
    Type wanted = type();
    if (wanted.is_memory() || wanted.unique || wanted.memory)
      fail(start, "scratch takes a plain type, such as `[n]f32`");
    return finish(Scratch{wanted.element, std::move(wanted.shape)});
  }
  if (std::optional<Op> op = call_operation(name)) return std::move(*op);
  return scalar_operation(name);
}

std::optional<Op> Parser::call_operation(const Token& name) {
  std::optional<Op> result;
#define APL_NODE(Struct, text, syntax, ...)     \
  if constexpr (Syntax::syntax == Syntax::call) \
    if (name.is(text)) result = call_of<Struct>();
#include "ir/ops.def"
  return result;
}

// The fields in order, between parentheses.
template <class Operation>
Operation Parser::call_of() {
  Operation result;
  const char* separator = "(";
  for_each_field(result, [&](auto& field) {
    expect(std::exchange(separator, ","));
    parse_field(field);
  });
  expect(")");
  return result;
}

Op Parser::scalar_operation(const Token& name) {
  const auto unary = unary_op_from_text(name.text);
  const auto binary = binary_op_from_text(name.text);
  const auto compare = compare_op_from_text(name.text);
  if (!unary && !binary && !compare) fail(name, fmt::format("there is no operation `{}`", name.text.substr(0, 40)));
  const std::vector<Operand> arguments = operands("(", ")");
  const std::size_t wanted = unary ? 1 : 2;
  if (arguments.size() != wanted)
    fail(name, fmt::format("`{}` takes {} operands, not {}", name.text, wanted, arguments.size()));
  if (unary) return Unary{*unary, arguments[0]};
  if (binary) return Binary{*binary, arguments[0], arguments[1]};
  return Compare{*compare, arguments[0], arguments[1]};
}

Op Parser::array_access() {
  const bool checked = accept("checked");
  const Value array = use();
  if (!accept("with")) return Index{array, dims(), checked};
  Update update{array, dims(), {}, checked};
  expect("=");
  update.value = operand();
  return update;
}

Op Parser::array_literal() {
  ArrayLit literal;
  literal.elements = operands("[", "]");
  expect("of");
  literal.element = type();
  return literal;
}

Op Parser::assertion() {
  expect("(");
  Assert result{operand(), {}};
  while (accept(",")) {
    if (is(Token::Kind::string))
      result.message.emplace_back(take().value);
    else
      result.message.emplace_back(operand());
  }
  expect(")");
  return result;
}

void Parser::parse_field(SizeClass& size_class) {
  constexpr auto kClasses =
      std::to_array<std::pair<std::string_view, SizeClass>>({{"tile_size", SizeClass::tile_size},
                                                             {"reg_tile_size", SizeClass::reg_tile_size},
                                                             {"thread_block_size", SizeClass::thread_block_size},
                                                             {"grid_size", SizeClass::grid_size},
                                                             {"threshold", SizeClass::threshold},
                                                             {"thread_count", SizeClass::thread_count}});
  const auto* found =
      std::find_if(kClasses.begin(), kClasses.end(), [&](const auto& entry) { return is(entry.first); });
  if (found == kClasses.end())
    fail_expected("tile_size, reg_tile_size, thread_block_size, grid_size, threshold or thread_count");
  take();
  size_class = found->second;
}

void Parser::parse_field(std::string& text) {
  if (!is(Token::Kind::string)) fail_expected("the parameter's name as a string");
  text = take().value;
}

Op Parser::call() {
  expect("apply");
  std::string function = name_or_string("the name of a function");
  return Apply{std::move(function), operands("(", ")")};
}

Op Parser::copy_tile() {
  expect("copy_tile");
  CopyTile result;
  result.target = use();
  expect("<-");
  result.source = use();
  expect("[");
  result.window = lmad(nullptr);
  expect("]");
  expect("guard");
  list("(", ")", [&] {
    TileGuard guard{poly(), {}, {}};
    if (accept("<")) guard.bound = poly();
    if (accept("over"))
      list("[", "]", [&] {
        TileGuard::Part part{poly(), {}};
        expect(":");
        part.stride = poly();
        guard.split.push_back(std::move(part));
      });
    result.guards.push_back(std::move(guard));
  });
  const auto affine = [&] {
    TileAffine at{poly(), {}};
    expect("by");
    list("(", ")", [&] { at.strides.push_back(polys("[", "]")); });
    return at;
  };
  if (accept("where"))
    list("(", ")", [&] {
      TileCondition& condition = result.where.emplace_back(TileCondition{affine(), {}});
      if (accept("<")) condition.bound = poly();
    });
  if (accept("gather"))
    list("(", ")", [&] {
      TileGather& gather = result.gathers.emplace_back();
      gather.positions = use();
      expect("[");
      gather.at = affine();
      expect("]");
      expect("*");
      gather.stride = poly();
    });
  if (accept("also"))
    list("(", ")", [&] {
      TileRead& read = result.also.emplace_back();
      if (!accept("[")) {
        read.array = use();
        expect("[");
      }
      read.at = affine();
      expect("]");
    });
  expect("pad");
  result.pad = operand();
  if (accept("map")) result.map = lambda();
  return result;
}

}  // namespace apl
