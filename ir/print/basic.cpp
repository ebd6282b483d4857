// Operations without nested bodies.
#include <fmt/format.h>

#include <iterator>

#include "ir/print/printer.h"
#include "ir/print/words.h"

namespace apl {

void Printer::put(const Use& op) { put(op.x); }

void Printer::put(const Unary& op) {
  put(to_text(op.op));
  list("(", std::vector{op.x}, ")");
}

void Printer::put(const Binary& op) {
  put(to_text(op.op));
  list("(", std::vector{op.x, op.y}, ")");
}

void Printer::put(const Compare& op) {
  put(to_text(op.op));
  list("(", std::vector{op.x, op.y}, ")");
}

void Printer::put(const Convert& op) {
  put(op.same_bits ? "bitcast(" : "convert(");
  put(op.x);
  put(", ");
  put(to_text(op.to));
  put(")");
}

void Printer::put(const Index& op) {
  if (op.checked) put("checked ");
  put(op.array);
  list("[", op.dims, "]");
}

void Printer::put(const Update& op) {
  if (op.checked) put("checked ");
  put(op.array);
  list(" with [", op.dims, "] = ");
  put(op.value);
}

void Printer::put(const Scratch& op) {
  put("scratch(");
  put_shape(op.shape);
  put(to_text(op.element));
  put(")");
}

void Printer::put(const ArrayLit& op) {
  list("[", op.elements, "] of ");
  put(op.element);
}

void Printer::put(const Assert& op) {
  put("assert(");
  put(op.condition);
  for (const auto& piece : op.message) {
    put(", ");
    if (const auto* text = std::get_if<std::string>(&piece))
      put(quote(*text));
    else
      put(std::get<Operand>(piece));
  }
  put(")");
}

void Printer::put(const Apply& op) {
  put("apply ");
  put(name_or_quote(op.function));
  list("(", op.arguments, ")");
}

void Printer::put(const CopyTile& op) {
  put("copy_tile ");
  put(op.target);
  put(" <- ");
  put(op.source);
  put("[");
  put(op.window);
  list("] guard (", op.guards, ")", [&](const TileGuard& guard) {
    put(guard.start);
    if (guard.bound) {
      put(" < ");
      put(*guard.bound);
    }
    if (guard.split.empty()) return;
    list(" over [", guard.split, "]", [&](const TileGuard::Part& part) {
      put(part.bound);
      put(" : ");
      put(part.stride);
    });
  });
  const auto affine = [&](const TileAffine& at) {
    put(at.start);
    list(" by (", at.strides, ")", [&](const std::vector<Poly>& strides) { list("[", strides, "]"); });
  };
  if (!op.where.empty())
    list(" where (", op.where, ")", [&](const TileCondition& condition) {
      affine(condition.at);
      if (!condition.bound) return;
      put(" < ");
      put(*condition.bound);
    });
  if (!op.gathers.empty())
    list(" gather (", op.gathers, ")", [&](const TileGather& gather) {
      put(gather.positions);
      put("[");
      affine(gather.at);
      put("] * ");
      put(gather.stride);
    });
  if (!op.also.empty())
    list(" also (", op.also, ")", [&](const TileRead& read) {
      if (read.array) put(*read.array);
      put("[");
      affine(read.at);
      put("]");
    });
  put(" pad ");
  put(op.pad);
  if (!op.map) return;
  put(" map");
  ++indent_;
  new_line();
  put(*op.map);
  --indent_;
}

}  // namespace apl
