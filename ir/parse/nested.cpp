// Statements, bodies, lambdas, and the operations that hold them.
#include <fmt/format.h>

#include "ir/parse/parser.h"
#include "ir/schedule.h"
#include "ir/sparse_schedule.h"

namespace apl {

Stm Parser::stm() {
  Stm result;
  result.attributes = attributes();
  expect("let", "or the end of the statements (`in`, in a kernel `return`)");
  const std::size_t outside = bound_.size();
  result.pattern = binders("{", "}");
  // The operation does not see what it binds.
  const std::vector<std::string> names(bound_.begin() + static_cast<std::ptrdiff_t>(outside), bound_.end());
  forget(outside);
  expect("=");
  if (is("#{")) list("#{", "}", [&] { result.certificates.push_back(use()); });
  result.op = operation();
  result.location = location();
  for (std::size_t k = 0; k < names.size(); ++k) {
    visible_.emplace(names[k], result.pattern[k]);
    bound_.push_back(names[k]);
  }
  return result;
}

std::vector<Stm> Parser::stms() {
  std::vector<Stm> result;
  while (!is("in") && !is("return")) result.push_back(stm());
  return result;
}

BodyPtr Parser::block() {
  const Nesting nesting(*this);
  const Scope scope(*this);
  expect("{");
  std::vector<Stm> statements = stms();
  expect("in", "and the results: only a segmap ends with `return`");
  std::vector<Operand> results = operands("{", "}");
  expect("}");
  return make_body(std::move(statements), std::move(results));
}

Lambda Parser::lambda() {
  const Scope scope(*this);
  expect("\\", "for a function, such as `\\{x : f32} -> { in {x} }`");
  Lambda result;
  result.params = binders("{", "}");
  expect("->");
  result.body = block();
  return result;
}

ReduceOp Parser::reduce_op() {
  ReduceOp result;
  expect("{");
  result.scan = accept("scan");
  result.commutative = accept("commutative");
  result.op = lambda();
  expect(",");
  result.neutral = operands("{", "}");
  expect("}");
  return result;
}

std::vector<ReduceOp> Parser::reduce_ops() {
  std::vector<ReduceOp> result;
  while (accept(",")) result.push_back(reduce_op());
  return result;
}

void Parser::index_bound(Value& index, Poly& bound) {
  const Token name = take();
  expect("<");
  // Bound after its bound is read: `i < i` has no meaning.
  bound = poly();
  index = bind(name, Type::scalar(ScalarType::i64));
}

Op Parser::branch() {
  expect("if");
  If result;
  result.condition = operand();
  result.then_body = block();
  expect("else");
  result.else_body = block();
  return result;
}

Op Parser::loop() {
  const Scope scope(*this);
  expect("loop");
  Loop result;
  declare_binders();
  list("{", "}", [&] {
    result.params.push_back(binder());
    expect("=", "and the initial value");
    result.initial.push_back(operand());
  });
  if (accept("for")) {
    index_bound(result.index, result.bound);
  } else {
    expect("while", "or `for`");
    const Token condition = peek();
    const Value value = use();
    if (result.params.empty() || value != result.params[0])
      fail(condition, "a while loop runs as long as its first parameter is true, so that one stands here");
  }
  result.body = block();
  return result;
}

void Parser::index_widths(std::vector<Value>& indices, std::vector<Poly>& widths) {
  while (!is("{")) {
    Value index;
    Poly width;
    index_bound(index, width);
    indices.push_back(index);
    widths.push_back(std::move(width));
    expect(",");
  }
}

Op Parser::screma() {
  const Scope scope(*this);
  expect("(");
  Screma result;
  index_widths(result.indices, result.widths);
  list("{", "}", [&] { result.inputs.push_back(use()); });
  expect(",");
  result.map = lambda();
  result.reduces = reduce_ops();
  expect(")");
  return result;
}

Op Parser::scatter(bool folds) {
  const Scope scope(*this);
  expect("(");
  Scatter result;
  index_widths(result.indices, result.widths);
  list("{", "}", [&] { result.inputs.push_back(use()); });
  expect(",");
  result.map = lambda();
  expect(",", "and the arrays that are written");
  list("{", "}", [&] { result.targets.push_back(use()); });
  expect("at", "and how many indices name a row");
  const Token rank = peek();
  const std::optional<std::int64_t> count = poly().constant();
  if (!count || *count < 1 || *count > 16) fail(rank, "a row is named by 1 to 16 indices");
  result.rank = static_cast<std::size_t>(*count);
  if (folds) {
    expect(",", "and the operator");
    result.op = reduce_op();
  }
  expect(")");
  return result;
}

Op Parser::derivative(bool reverse) {
  const Nesting nesting(*this);
  Derivative result;
  result.mode = reverse ? Derivative::Mode::reverse : Derivative::Mode::forward;
  expect("(");
  result.arguments = operands("{", "}");
  expect(",");
  result.seeds = operands("{", "}");
  expect(",");
  result.function = lambda();
  expect(")");
  return result;
}

Op Parser::choose() {
  const Nesting nesting(*this);
  expect("choose");
  Choose result;
  if (accept("first"))
    result.by = Choose::By::first;
  else
    expect("model", "or `first`");
  parse_field(result.parameter);
  expect("{");
  do {
    Choose::Alternative& made = result.alternatives.emplace_back();
    made.name = name_or_string("an alternative's name");
    if (accept("when")) made.condition = operand();
    made.body = block();
  } while (!accept("}"));
  return result;
}

Op Parser::segmap() {
  const Nesting nesting(*this);
  const Scope scope(*this);
  expect("segmap");
  expect("(");
  SegOp result;
  if (accept("block"))
    result.level = SegLevel::block;
  else if (accept("inblock"))
    result.level = SegLevel::inblock;
  else
    expect("thread", ", `block` or `inblock`");
  expect(")");
  list("(", ")", [&] {
    SegDim dim;
    index_bound(dim.index, dim.bound);
    result.space.push_back(std::move(dim));
  });
  if (accept("schedule")) result.schedule = schedule();
  if (accept("sparse")) result.sparse = sparse_schedule();
  if (accept("team")) {
    expect("(");
    result.team = poly();
    expect(")");
    result.rows = accept("rows");
    if (accept("blocks")) {
      expect("(");
      result.blocks = poly();
      expect(")");
    }
  }
  expect("{");
  std::vector<Stm> statements = stms();
  expect("return", "and the results of the kernel");
  std::vector<Operand> results;
  list("{", "}", [&] {
    result.results.push_back(kernel_result());
    results.push_back(operand());
  });
  expect("}");
  result.body = make_body(std::move(statements), std::move(results));
  return result;
}

template <class Choice, std::size_t N>
Choice Parser::choice(const std::array<Choice, N>& choices, std::string_view what) {
  for (const Choice one : choices)
    if (accept(to_text(one))) return one;
  fail_expected(what);
}

Schedule Parser::schedule() {
  Schedule result;
  const auto count = [&](std::string_view word) {
    expect(word);
    const Token number = peek();
    const std::int64_t n = integer();
    if (n < 0) fail(number, "a number of a schedule is not below 0");
    return n;
  };
  expect("(");
  result.unit = choice(kScheduleUnits, "`general`, `simt` or `packed`");
  parse_field(result.parameters);
  expect(",");
  result.remainder = choice(kScheduleRemainders, "`peeled` or `padded`");
  expect(",");
  result.stages = count("stages");
  expect(",");
  result.tiles_per_block = count("tiles_per_block");
  expect(",");
  expect("splits");
  result.splits = poly();
  expect(",");
  expect("dims");
  list("(", ")", [&] {
    Schedule::Dim& dim = result.dims.emplace_back();
    dim.role = choice(kScheduleRoles, "`batch`, `invariant`, `free`, `m`, `n` or `depth`");
    dim.size = poly();
    expect("/");
    dim.tile = poly();
    expect("/");
    dim.reg = poly();
  });
  expect(",");
  expect("operands");
  list("(", ")", [&] {
    Schedule::Operand& operand = result.operands.emplace_back();
    parse_field(operand.name);
    operand.element = scalar_type();
    operand.strides = polys("[", "]");
    if (accept("where")) list("(", ")", [&] { operand.conditions.push_back(polys("[", "]")); });
    if (accept("gather")) list("(", ")", [&] { operand.gathers.push_back(polys("[", "]")); });
    operand.copy_bytes = count("copy");
    operand.swizzled = accept("swizzled");
  });
  expect(")");
  return result;
}

SparseSchedule Parser::sparse_schedule() {
  SparseSchedule result;
  expect("(");
  result.family = choice(kSparseFamilies, "`general`, `product`, `rows` or `sddmm`");
  parse_field(result.matrix);
  expect(",");
  if (result.family == SparseSchedule::Family::general) {
    parse_field(result.why);
    expect(")");
    return result;
  }
  if (accept("sections")) {
    SparseSchedule::Sections& sections = result.sections.emplace();
    parse_field(sections.key);
    for (const auto& [word, number] :
         {std::pair{"rows", &sections.rows}, {"columns", &sections.columns}, {"pieces", &sections.pieces}}) {
      expect(word);
      *number = integer();
    }
    expect(",");
  }
  expect("dims");
  list("(", ")", [&] {
    SparseSchedule::Dim& dim = result.dims.emplace_back();
    dim.role = choice(kSparseRoles, "`batch`, `row`, `n`, `nonzero`, `column` or `depth`");
    dim.size = poly();
  });
  expect(",");
  expect("operands");
  list("(", ")", [&] {
    SparseSchedule::Operand& operand = result.operands.emplace_back();
    operand.array = use();
    expect("at");
    operand.offset = poly();
    operand.strides = polys("[", "]");
  });
  expect(")");
  return result;
}

KernelResult Parser::kernel_result() {
  if (accept("returns")) return {};
  if (accept("private")) return {KernelResult::Kind::private_, {}};
  if (!accept("regtile")) fail_expected("`returns`, `private` or `regtile(...)`");
  KernelResult result{KernelResult::Kind::regtile, {}};
  list("(", ")", [&] {
    TileExtent extent;
    extent.bound = poly();
    if (accept("over"))
      list("[", "]", [&] {
        TileExtent::Part part;
        part.axis = static_cast<int>(integer());
        expect(":");
        part.bound = poly();
        extent.split.push_back(std::move(part));
      });
    expect("/");
    extent.tile = poly();
    expect("/");
    extent.reg = poly();
    result.extents.push_back(std::move(extent));
  });
  return result;
}

Op Parser::tile_contract() {
  expect("tile_contract");
  expect("(");
  TileContract result;
  expect("space");
  list("(", ")", [&] {
    TileDim dim;
    dim.tile = poly();
    expect("/");
    dim.reg = poly();
    result.space.push_back(std::move(dim));
  });
  expect(",");
  expect("depth");
  result.depth = polys("(", ")");
  expect(",");
  list("{", "}", [&] { result.accumulators.push_back(use()); });
  expect(",");
  list("{", "}", [&] {
    const Value tile = use();
    expect("at");
    result.operands.push_back({tile, permutation()});
  });
  expect(",");
  result.map = lambda();
  expect(",", "and the reduce operator");
  result.reduce = reduce_op();
  expect(")");
  return result;
}

}  // namespace apl
