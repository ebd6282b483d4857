// The printer of one function. Every piece of the grammar in docs/ir.md is one overload of `put`.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/fields.h"
#include "ir/print.h"
#include "ir/print/names.h"

namespace apl {

class Printer {
 public:
  // `calls`: those of the module, if it is known.
  Printer(const Function& function, const PrintOptions& options, const std::vector<Location>* calls = nullptr)
      : function_(function), names_(function), options_(options), calls_(calls) {}

  std::string take() { return std::move(out_); }

  void put_function();
  void put(const Stm& stm);
  void put(const Type& type);
  void put(const Poly& poly) { out_ += names_.of(poly); }
  void put(const Operand& operand);
  void put(Value value) { out_ += names_.of(value); }

 private:
  void put(std::string_view text) { out_ += text; }
  void put(const char* text) { out_ += text; }
  void put(const std::string& text) { out_ += text; }
  void put(const Lmad& lmad, bool with_shape = true);
  void put(const DimIndex& dim);
  void put(const SegDim& dim);
  void put(const KernelResult& result, const Operand& value);
  void put(const Schedule& schedule);
  void put(const SparseSchedule& schedule);
  void put(const Attribute& attribute);
  void put(const Location& location);  // with a space before it; nothing for no location
  void put_binder(Value value);        // `x : [n]f32`
  void put_shape(const std::vector<Poly>& shape);
  void put_entry(const EntryInfo& entry);
  void put_head(const Stm& stm);  // `let {x : f32} =`
  void new_line();

  // Nested bodies. A lambda with no or one simple statement stands on one line.
  void put(const Lambda& lambda);
  void put(const ReduceOp& reduce);
  void put_block(const BodyPtr& body);
  void put_kernel_block(const SegOp& op);
  void put_reduces(const std::vector<ReduceOp>& reduces);

  void put(const Use& op);
  void put(const Unary& op);
  void put(const Binary& op);
  void put(const Compare& op);
  void put(const Convert& op);
  void put(const Index& op);
  void put(const Update& op);
  void put(const Scratch& op);
  void put(const ArrayLit& op);
  void put(const Assert& op);
  void put(const If& op);
  void put(const Choose& op);
  void put(const Loop& op);
  void put(const Apply& op);
  template <class Streaming>
  void put_streams(const Streaming& op);
  void put(const Screma& op);
  void put(const Scatter& op);
  void put(const Derivative& op);
  void put(const SegOp& op);
  void put(const CopyTile& op);
  void put(const TileContract& op);
  void put(std::monostate) { out_ += "nothing"; }
  // Operations of the syntax `call`.
  template <class Operation>
  requires is_record<Operation>
  void put(const Operation& op) {
    const char* separator = "(";
    put(op_name(op));
    for_each_field(op, [&](const auto& field) {
      out_ += std::exchange(separator, ", ");
      put_field(field);
    });
    out_ += ')';
  }
  void put_field(const auto& field) { put(field); }
  void put_field(ScalarType type);
  void put_field(Space space);
  void put_field(SizeClass size_class);
  void put_field(std::int64_t number);
  void put_field(const std::string& text);
  void put_field(const std::vector<Poly>& sizes) { list("[", sizes, "]"); }
  void put_field(const std::vector<int>& permutation);

  // Items with commas between, in the given brackets.
  template <class List, class Put>
  void list(const char* open, const List& items, const char* close, Put put_item) {
    out_ += open;
    bool first = true;
    for (const auto& item : items) {
      if (!first) out_ += ", ";
      first = false;
      put_item(item);
    }
    out_ += close;
  }
  template <class List>
  void list(const char* open, const List& items, const char* close) {
    list(open, items, close, [&](const auto& item) { put(item); });
  }

  const Function& function_;
  Names names_;
  PrintOptions options_;
  const std::vector<Location>* calls_;
  int indent_ = 0;
  std::string out_;
};

std::string_view to_text(SizeClass size_class);
std::string_view to_text(SegLevel level);
std::string_view to_text(Choose::By by);
std::string_view to_text(Space space);
// `map`, `reduce` or `redomap`, as the contents are.
std::string_view keyword(const Screma& op);

}  // namespace apl
