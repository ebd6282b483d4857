// Walks one function from kernel to memory stage: binds every array to a block through an index function.
#pragma once

#include <optional>
#include <vector>

#include "ir/builder.h"

namespace apl::memory {

// Throws nothing: what cannot be placed ends in `error()`.
class Placer {
 public:
  Placer(const Function& function, std::string file);
  Result<Function> run();

 private:
  enum class Level { host, thread, block, inblock };

  BodyPtr body(const Body& source, Level level);
  void statement(const Stm& stm, Level level, std::vector<Stm>& out);
  void kernel(const SegOp& op, Stm stm, Level level, std::vector<Stm>& out);
  void loop(const Loop& op, Stm stm, Level level, std::vector<Stm>& out);
  void branch(const If& op, Stm stm, Level level, std::vector<Stm>& out);
  void view(const Stm& stm, Value source, const Lmad::Outcome& outcome, std::vector<Stm>& out);
  void fresh(const Stm& stm, Level level, std::vector<Stm>& out);
  void results(std::vector<Stm>& stms, std::vector<Operand>& results);

  Value allocate(Space space, Poly bytes, const std::string& hint, std::vector<Stm>& out);
  void bind(Value array, Value block, Lmad layout);
  void bind_like(Value array, Value other);  // the same block and layout: in place
  const MemoryBinding* binding(Value array) const;
  Poly bytes_of(const Type& type, const Poly& elements) const;
  // A row-major copy of `array` in a block of its own, made by a SegMap at host level.
  Value copied(Value array, std::vector<Stm>& out);
  void fail(const Stm& stm, const std::string& what);

  const Function& source_;
  std::string file_;
  Function result_;
  std::optional<Diagnostic> error_;
};

}  // namespace apl::memory
