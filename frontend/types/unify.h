// Makes two types equal by binding their variables, or says why they cannot be.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "frontend/types/types.h"

namespace apl::frontend {

// The innermost pair that differs.
struct Clash {
  enum class Kind : std::uint8_t {
    types,       // a and b are different types
    sizes,       // s and t are different sizes
    occurs,      // a would contain itself
    scope,       // `escaped` is a size that what it would be bound to cannot see; without it, the type `b` is
    functional,  // b is a function where `reason` forbids it
    equality,    // b cannot be compared with ==
    scalar,      // b is none of the scalar types that a may be
  };
  Kind kind = Kind::types;
  Ty a, b;
  Size s, t;
  BinderId escaped = kNoId;
  const char* reason = "";
  bool existential = false;  // scope: a function binds the size itself
  std::string fields;        // `a.b`: where in records
};

class Unifier {
 public:
  // `lets`: what names are bound to that stand for a size; they are equal to it.
  using Lets = std::unordered_map<BinderId, Size>;
  Unifier(TypeStore& store, const Lets& lets) : store_(store), lets_(lets) {}

  // `expected` and `actual` only matter for messages.
  std::optional<Clash> unify(Ty expected, Ty actual);
  std::optional<Clash> unify(Size expected, Size actual);
  // Sizes that nothing says yet become those of the other type where they can; the types may differ in others. Names
  // from `inner` on are not to be had.
  void link(Ty expected, Ty actual, BinderId inner);
  // The type of what may be of either: `differ` gives a size for two that are not known to be equal. No size variable
  // is bound: that a value may have a size says nothing about the size.
  using Differ = std::function<Size(Size expected, Size actual)>;
  std::optional<Clash> join(Ty expected, Ty actual, const Differ& differ, Ty& joined);
  // As `unify`; these variables may become types with sizes that functions bind. Markers stand for such sizes then, and
  // are added to `markers`.
  std::optional<Clash> unify_open(Ty expected, Ty actual, const std::vector<Ty>& variables,
                                  std::vector<BinderId>& markers);
  // The variable is the type of a value that nothing looks at: it may become one whose sizes a function binds.
  void may_hide_sizes(Ty variable) { hiding_.push_back(variable); }
  // Whose sizes `link` leaves open where the types of parameters leave them open.
  enum class KeepOpen : std::uint8_t { none, of_functions, of_functions_and_loops };
  void keep_open(KeepOpen keep);  // forgets the parameters of before
  void add_parameter(Ty type) { add_open_sizes(type, KeepOpen::of_functions); }
  void add_loop_parameter(Ty type) { add_open_sizes(type, KeepOpen::of_functions_and_loops); }
  // Whether `link` could have bound a size of a parameter of a function, or of a loop.
  bool met_open_size() const { return met_open_size_; }
  // Whether `link` bound a size of a loop's parameter while parameters of functions were open: the size that it starts
  // with may be that size from then on.
  bool linked_loop() const { return linked_loop_; }
  // How many sizes of parameters of functions are open and different.
  std::size_t open_parameters() const;
  // Whether a type satisfies a constraint; variables inside take it over.
  std::optional<Clash> require(Ty type, const Constraint& constraint);
  // Whether two sizes are the same for sure, without binding anything.
  bool same(Size a, Size b) const;
  // Whether they are even written the same.
  bool alike(Size a, Size b) const { return identical(a, b, kMaxUnifiedSizeDepth); }

 private:
  static constexpr int kMaxUnifiedSizeDepth = 12;  // of sizes that are compared part by part
  // Types this deep are no program's: they come from chains that double with each step.
  static constexpr int kMaxTypeDepth = 300;
  std::optional<Clash> unify_variable(Ty variable, Ty type, bool swapped);
  std::optional<Clash> unify_size_variable(Size variable, Size size);
  std::optional<Clash> unify_records(Ty expected, Ty actual);
  std::optional<Clash> unify_arrows(Ty expected, Ty actual);
  std::optional<Clash> unify_sums(Ty expected, Ty actual);
  std::optional<Clash> unify_abstract(Ty expected, Ty actual);
  std::optional<Clash> join_sums(Ty expected, Ty actual, const Differ& differ, Ty& joined);
  std::optional<Clash> join_abstract(Ty expected, Ty actual, const Differ& differ, Ty& joined);
  std::optional<Clash> join_parts(Ty expected, Ty actual, const Differ& differ, Ty& joined);
  void link(Size expected, Size actual, BinderId inner, int depth);
  bool link_variable(Size variable, Size size, BinderId inner);
  void add_open_sizes(Ty type, KeepOpen kept);
  bool identical(Size a, Size b, int depth) const;
  std::optional<Size> definition(Size size) const;
  std::optional<Clash> check_scope(Size size, std::uint32_t level) const;

  TypeStore& store_;
  const Lets& lets_;
  int depth_ = 0;
  int size_depth_ = 0;
  std::unordered_set<std::uint64_t> equal_;
  std::unordered_map<std::uint64_t, Ty> joined_;
  std::vector<Ty> existential_, hiding_;
  struct OpenSize {
    Size size;
    KeepOpen kept;  // by this, or what keeps more
  };
  std::vector<OpenSize> open_sizes_;
  KeepOpen keep_open_ = KeepOpen::none;
  bool met_open_size_ = false, linked_loop_ = false;
  std::vector<BinderId> markers_;
};

}  // namespace apl::frontend
