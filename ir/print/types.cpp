// Types, layouts, operands and the other small pieces.
#include <fmt/format.h>

#include <iterator>

#include "ir/print/printer.h"
#include "ir/print/words.h"

namespace apl {

std::string_view to_text(Space space) {
  switch (space) {
    case Space::global: return "global";
    case Space::shared: return "shared";
    case Space::thread: return "thread";
  }
  return "?";
}

std::string_view to_text(Choose::By by) { return by == Choose::By::model ? "model" : "first"; }

std::string_view to_text(SegLevel level) {
  switch (level) {
    case SegLevel::thread: return "thread";
    case SegLevel::block: return "block";
    case SegLevel::inblock: return "inblock";
  }
  return "?";
}

std::string_view to_text(SizeClass size_class) {
  switch (size_class) {
    case SizeClass::tile_size: return "tile_size";
    case SizeClass::reg_tile_size: return "reg_tile_size";
    case SizeClass::thread_block_size: return "thread_block_size";
    case SizeClass::grid_size: return "grid_size";
    case SizeClass::threshold: return "threshold";
    case SizeClass::thread_count: return "thread_count";
  }
  return "?";
}

void Printer::put(const Operand& operand) {
  if (operand.is_value())
    put(operand.value());
  else
    out_ += operand.constant().to_text();
}

void Printer::put(const Type& type) {
  if (type.unique) out_ += '*';
  if (type.is_memory()) {
    out_ += "mem@";
    out_ += to_text(type.space);
  } else {
    put_shape(type.shape);
    out_ += to_text(type.element);
  }
  if (type.memory) {
    out_ += " @ ";
    put(type.memory->block);
    out_ += " -> ";
    put(type.memory->layout, type.memory->layout.shape() != type.shape);
  }
}

void Printer::put(const Lmad& lmad, bool with_shape) {
  out_ += "{offset: ";
  put(lmad.offset());
  if (with_shape) list("; shape: [", lmad.shape(), "]");
  list("; strides: [", lmad.strides(), "]");
  out_ += '}';
}

void Printer::put_shape(const std::vector<Poly>& shape) {
  for (const Poly& size : shape) {
    out_ += '[';
    put(size);
    out_ += ']';
  }
}

void Printer::put_binder(Value value) {
  put(value);
  out_ += " : ";
  if (value.id < function_.values.size())
    put(function_.values.type(value));
  else
    out_ += "unit";
}

void Printer::put(const DimIndex& dim) {
  put(dim.start);
  if (!dim.count) return;
  out_ += " :+ ";
  put(*dim.count);
  if (dim.stride.is_one()) return;
  out_ += " by ";
  put(dim.stride);
}

void Printer::put_field(ScalarType type) { put(to_text(type)); }
void Printer::put_field(Space space) { put(to_text(space)); }
void Printer::put_field(SizeClass size_class) { put(to_text(size_class)); }
void Printer::put_field(std::int64_t number) { fmt::format_to(std::back_inserter(out_), "{}", number); }
void Printer::put_field(const std::string& text) { put(quote(text)); }

void Printer::put_field(const std::vector<int>& permutation) {
  list("(", permutation, ")", [&](int k) { fmt::format_to(std::back_inserter(out_), "{}", k); });
}

void Printer::put(const Attribute& attribute) {
  out_ += "#[" + name_or_quote(attribute.name);
  if (!attribute.arguments.empty())
    list("(", attribute.arguments, ")", [&](const std::string& text) { out_ += argument_text(text); });
  out_ += ']';
}

void Printer::put(const Location& location) {
  if (!options_.locations || !location) return;
  const auto put_range = [&](std::string_view before, const Location& range) {
    fmt::format_to(std::back_inserter(out_), " {}{}:{}-{}:{}", before, range.line, range.column, range.end_line,
                   range.end_column);
  };
  put_range("@", location);
  if (calls_ == nullptr) return;
  for (std::uint32_t call = location.call; call != 0 && call <= calls_->size();) {
    const Location& from = (*calls_)[call - 1];
    put_range("from ", from);
    call = from.call < call ? from.call : 0;
  }
}

void Printer::new_line() {
  out_ += '\n';
  out_.append(static_cast<std::size_t>(indent_) * 2, ' ');
}

}  // namespace apl
