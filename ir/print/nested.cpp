// Bodies, lambdas, and the operations that hold them.
#include <algorithm>

#include "ir/print/printer.h"
#include "ir/print/words.h"
#include "ir/schedule.h"
#include "ir/sparse_schedule.h"
#include "ir/walk.h"

namespace apl {

namespace {

bool fits_one_line(const Body& body) {
  return body.stms.empty() ||
         (body.stms.size() == 1 && !has_bodies(body.stms[0].op) && body.stms[0].attributes.empty());
}

}  // namespace

std::string_view keyword(const Screma& op) {
  if (op.reduces.empty()) return "map";
  const bool maps_nothing = is_identity(op.map) && op.map.params.size() == op.reduced_count();
  if (op.scans()) {
    const bool all = std::all_of(op.reduces.begin(), op.reduces.end(), [](const ReduceOp& r) { return r.scan; });
    return maps_nothing && all ? "scan" : "screma";
  }
  return maps_nothing ? "reduce" : "redomap";
}

void Printer::put_head(const Stm& stm) {
  for (const Attribute& attribute : stm.attributes) {
    put(attribute);
    new_line();
  }
  list("let {", stm.pattern, "} =", [&](Value value) { put_binder(value); });
}

void Printer::put(const Stm& stm) {
  put_head(stm);
  const bool nested = has_bodies(stm.op);
  if (nested) {
    ++indent_;
    new_line();
  } else {
    out_ += ' ';
  }
  if (!stm.certificates.empty()) list("#{", stm.certificates, "} ");
  std::visit([&](const auto& op) { put(op); }, stm.op);
  if (nested) --indent_;
  put(stm.location);
}

void Printer::put_block(const BodyPtr& body) {
  out_ += '{';
  ++indent_;
  if (body) {
    for (const Stm& stm : body->stms) {
      new_line();
      put(stm);
    }
    new_line();
    list("in {", body->results, "}");
  }
  --indent_;
  new_line();
  out_ += '}';
}

void Printer::put(const Lambda& lambda) {
  list("\\{", lambda.params, "} -> ", [&](Value value) { put_binder(value); });
  if (!lambda.body || !fits_one_line(*lambda.body)) {
    put_block(lambda.body);
    return;
  }
  out_ += "{ ";
  for (const Stm& stm : lambda.body->stms) {
    put(stm);
    out_ += ' ';
  }
  list("in {", lambda.body->results, "} }");
}

void Printer::put(const ReduceOp& reduce) {
  out_ += '{';
  if (reduce.scan) out_ += "scan ";
  if (reduce.commutative) out_ += "commutative ";
  put(reduce.op);
  list(", {", reduce.neutral, "}}");
}

// Each on a line of its own, after the line of what comes before.
void Printer::put_reduces(const std::vector<ReduceOp>& reduces) {
  for (const ReduceOp& reduce : reduces) {
    out_ += ',';
    new_line();
    put(reduce);
  }
}

void Printer::put(const If& op) {
  out_ += "if ";
  put(op.condition);
  out_ += ' ';
  put_block(op.then_body);
  out_ += " else ";
  put_block(op.else_body);
}

void Printer::put(const Choose& op) {
  fmt::format_to(std::back_inserter(out_), "choose {} {} {{", to_text(op.by), quote(op.parameter));
  ++indent_;
  for (const Choose::Alternative& alternative : op.alternatives) {
    new_line();
    out_ +=
        is_name_shaped(alternative.name) && !is_reserved(alternative.name) ? alternative.name : quote(alternative.name);
    if (alternative.condition != Operand(Scalar::boolean(true))) {
      out_ += " when ";
      put(alternative.condition);
    }
    out_ += ' ';
    put_block(alternative.body);
  }
  --indent_;
  new_line();
  out_ += '}';
}

void Printer::put(const Loop& op) {
  out_ += "loop {";
  for (std::size_t k = 0; k < std::max(op.params.size(), op.initial.size()); ++k) {
    if (k > 0) out_ += ", ";
    put_binder(k < op.params.size() ? op.params[k] : Value());
    out_ += " = ";
    if (k < op.initial.size()) put(op.initial[k]);
  }
  if (op.index) {
    out_ += "} for ";
    put(SegDim{op.index, op.bound});
  } else {
    out_ += "} while ";
    put(op.params.empty() ? Value() : op.params[0]);
  }
  out_ += ' ';
  put_block(op.body);
}

// Widths, inputs and lambda of a Screma or Scatter; what comes after stands deeper.
template <class Streaming>
void Printer::put_streams(const Streaming& op) {
  for (std::size_t k = 0; k < op.widths.size(); ++k) {
    put(SegDim{k < op.indices.size() ? op.indices[k] : Value(), op.widths[k]});
    out_ += ", ";
  }
  list("{", op.inputs, "},");
  ++indent_;
  new_line();
  put(op.map);
}

void Printer::put(const Screma& op) {
  out_ += keyword(op);
  out_ += '(';
  put_streams(op);
  put_reduces(op.reduces);
  --indent_;
  out_ += ')';
}

void Printer::put(const Scatter& op) {
  out_ += op.op ? "hist(" : "scatter(";
  put_streams(op);
  out_ += ',';
  new_line();
  list("{", op.targets, "} at ");
  out_ += std::to_string(op.rank);
  if (op.op) put_reduces({*op.op});
  --indent_;
  out_ += ')';
}

void Printer::put(const Derivative& op) {
  out_ += op.mode == Derivative::Mode::forward ? "jvp(" : "vjp(";
  list("{", op.arguments, "}, ");
  list("{", op.seeds, "},");
  ++indent_;
  new_line();
  put(op.function);
  --indent_;
  out_ += ')';
}

void Printer::put(const SegDim& dim) {
  put(dim.index);
  out_ += " < ";
  put(dim.bound);
}

void Printer::put(const SegOp& op) {
  out_ += "segmap(";
  out_ += to_text(op.level);
  list(") (", op.space, ")");
  if (op.schedule) put(*op.schedule);
  if (op.sparse) put(*op.sparse);
  if (op.team) {
    out_ += " team(";
    put(*op.team);
    out_ += op.rows ? ") rows" : ")";
    if (op.blocks) {
      out_ += " blocks(";
      put(*op.blocks);
      out_ += ')';
    }
  }
  out_ += ' ';
  put_kernel_block(op);
}

void Printer::put(const Schedule& schedule) {
  ++indent_;
  new_line();
  fmt::format_to(std::back_inserter(out_), "schedule({} {}, {}, stages {}, tiles_per_block {}, splits ",
                 to_text(schedule.unit), quote(schedule.parameters), to_text(schedule.remainder), schedule.stages,
                 schedule.tiles_per_block);
  put(schedule.splits);
  out_ += ',';
  ++indent_;
  new_line();
  list("dims (", schedule.dims, "),", [&](const Schedule::Dim& dim) {
    put(to_text(dim.role));
    for (const Poly* number : {&dim.size, &dim.tile, &dim.reg}) {
      out_ += number == &dim.size ? " " : " / ";
      put(*number);
    }
  });
  new_line();
  list("operands (", schedule.operands, "))", [&](const Schedule::Operand& operand) {
    put_field(operand.name);
    out_ += ' ';
    put_field(operand.element);
    list(" [", operand.strides, "] ");
    const auto each = [&](const std::vector<Poly>& strides) { list("[", strides, "]"); };
    if (!operand.conditions.empty()) list("where (", operand.conditions, ") ", each);
    if (!operand.gathers.empty()) list("gather (", operand.gathers, ") ", each);
    fmt::format_to(std::back_inserter(out_), "copy {}{}", operand.copy_bytes, operand.swizzled ? " swizzled" : "");
  });
  indent_ -= 2;
}

void Printer::put(const SparseSchedule& schedule) {
  ++indent_;
  new_line();
  fmt::format_to(std::back_inserter(out_), "sparse({} {}", to_text(schedule.family), quote(schedule.matrix));
  if (schedule.family == SparseSchedule::Family::general) {
    fmt::format_to(std::back_inserter(out_), ", {})", quote(schedule.why));
    --indent_;
    return;
  }
  if (schedule.sections)
    fmt::format_to(std::back_inserter(out_), ", sections {} rows {} columns {} pieces {}",
                   quote(schedule.sections->key), schedule.sections->rows, schedule.sections->columns,
                   schedule.sections->pieces);
  out_ += ',';
  ++indent_;
  new_line();
  list("dims (", schedule.dims, "),", [&](const SparseSchedule::Dim& dim) {
    put(to_text(dim.role));
    out_ += ' ';
    put(dim.size);
  });
  new_line();
  list("operands (", schedule.operands, "))", [&](const SparseSchedule::Operand& operand) {
    put(operand.array);
    out_ += " at ";
    put(operand.offset);
    list(" [", operand.strides, "]");
  });
  indent_ -= 2;
}

void Printer::put_kernel_block(const SegOp& op) {
  out_ += '{';
  ++indent_;
  if (op.body) {
    for (const Stm& stm : op.body->stms) {
      new_line();
      put(stm);
    }
    new_line();
    out_ += "return {";
    for (std::size_t k = 0; k < op.body->results.size(); ++k) {
      if (k > 0) out_ += ", ";
      put(k < op.results.size() ? op.results[k] : KernelResult{}, op.body->results[k]);
    }
    out_ += '}';
  }
  --indent_;
  new_line();
  out_ += '}';
}

void Printer::put(const KernelResult& result, const Operand& value) {
  switch (result.kind) {
    case KernelResult::Kind::returns: out_ += "returns "; break;
    case KernelResult::Kind::private_: out_ += "private "; break;
    case KernelResult::Kind::regtile:
      list("regtile(", result.extents, ") ", [&](const TileExtent& extent) {
        put(extent.bound);
        if (!extent.split.empty())
          list(" over [", extent.split, "]", [&](const TileExtent::Part& part) {
            fmt::format_to(std::back_inserter(out_), "{} : ", part.axis);
            put(part.bound);
          });
        out_ += " / ";
        put(extent.tile);
        out_ += " / ";
        put(extent.reg);
      });
      break;
  }
  put(value);
}

void Printer::put(const TileContract& op) {
  list("tile_contract(space (", op.space, "), depth ", [&](const TileDim& dim) {
    put(dim.tile);
    out_ += " / ";
    put(dim.reg);
  });
  list("(", op.depth, "), ");
  list("{", op.accumulators, "}, ");
  list("{", op.operands, "},", [&](const TileOperand& operand) {
    put(operand.tile);
    out_ += " at ";
    put_field(operand.axes);
  });
  ++indent_;
  new_line();
  put(op.map);
  put_reduces({op.reduce});
  --indent_;
  out_ += ')';
}

}  // namespace apl
