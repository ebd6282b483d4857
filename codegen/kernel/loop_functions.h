// Parallel loops of generated C as functions of their own, which threads call for a part of the rounds each.
//
//   static void f(const float *restrict A, float *restrict B, int64_t n) {
//     for (int64_t i = 0; i < n; ++i) B[i] = A[i];  // in parallel
//   }
// =>
//   struct apl_names_of_f {
//     const float *A;
//     float *B;
//   };
//   static void apl_loop_of_f(int64_t apl_begin, int64_t apl_end, const float *restrict A, float *restrict B) {
//     for (int64_t i = apl_begin; i < apl_end; ++i) B[i] = A[i];
//   }
//   static void apl_part_of_f(const void *names, int64_t begin, int64_t end) {
//     const struct apl_names_of_f *const all = names;
//     apl_loop_of_f(begin, end, all->A, all->B);
//   }
//   static void f(const float *restrict A, float *restrict B, int64_t n) {
//     apl_loop(apl_part_of_f, &(const struct apl_names_of_f){A, B}, n, apl_units_of(n));
//   }
//
// The loop's function takes buffers as `restrict` parameters and does not read them from the struct: C compilers use
// `restrict` of parameters only, and vectorise the loop without checks for overlaps. Constants whose value is a literal
// are declared again in the loop's function, so that the compiler knows their values there.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernel/writer.h"

namespace apl::kernel {

// A name that a loop may read from the function around it.
struct LoopName {
  std::string name;
  std::string type;          // "const float *", "int64_t"
  bool is_alone = false;     // a pointer that no other overlaps
  std::string literal = {};  // its value, where that is in the text
};

// The names in scope while a function is printed, and the text of its loops' functions.
class LoopFunctions {
 public:
  explicit LoopFunctions(std::string function) : function_(std::move(function)), scopes_(1) {}

  void begin_block() { scopes_.emplace_back(); }
  void end_block() { scopes_.pop_back(); }
  // For statements from here to the end of the block.
  void declare(LoopName name) { scopes_.back().push_back(std::move(name)); }

  // Adds the function of a loop: `body` does the rounds from `apl_begin` up to `apl_end`, indented by one level.
  // Returns the statement that does all `rounds`, cut into `most` parts at most; both are texts of expressions.
  std::string add(std::string_view body, std::string_view rounds, std::string_view most);

  // The text of the loops' functions, which comes before the function around the loops.
  std::string take() { return out_.take(); }

  // `text`, the statements of the function around the loops, without declarations of literals that only loops read.
  std::string without_unread(const std::string& text) const;

 private:
  std::vector<const LoopName*> read_by(std::string_view body) const;
  void write_names(const std::string& of, const std::vector<const LoopName*>& names);
  void write_loop(const std::string& of, const std::vector<const LoopName*>& names, std::string_view body);
  void write_part(const std::string& of, const std::vector<const LoopName*>& names);

  std::string function_;
  std::vector<std::vector<LoopName>> scopes_;
  std::set<std::string> literals_;  // that loops read
  Writer out_;
  int count_ = 0;
};

}  // namespace apl::kernel
