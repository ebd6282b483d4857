// tile-contraction: block and register tiling of tensor contractions of any rank (T sections 3.4, 4.2-4.4).
//
// A SegMap at thread level that streams one redomap over affine elements of arrays,
//
//   let {C : [a][b]f32} =
//     segmap(thread) (i < a, j < b) {
//       let {xs : [q]f32} = X[i]
//       let {ys : [q]f32} = Yt[j]
//       let {r : f32} = redomap(k < q, {xs, ys}, \ {x, y} -> ... mul(x, y) ..., {\ ... add ..., {0.0f32}})
//       return {returns r}
//     }
//
// becomes one at block level. Every free dim d gets T_d threads and R_d registers a thread, every reduction dim a
// depth; the numbers are symbols (`get_size "ENTRY.T_a"`):
//
//   segmap(block) (b_a < ceil_div(a, T_a*R_a), b_b < ceil_div(b, T_b*R_b)) {
//     X_s = shared(...), Y_s = shared(...)
//     acc = segmap(inblock) (t_a < T_a, t_b < T_b) { replicate([R_a][R_b], 0.0f32) }          private
//     loop tile_q < floor_div(q, T_q) { copy_tile X_s, copy_tile Y_s; acc = tile_contract(...) }  no guard on q
//     if remainder_q > 0 { the same once more, guarded and only remainder_q deep }
//     return {regtile((a, T_a, R_a), (b, T_b, R_b)) acc}
//   }
//
// Phases: fission (contractions in branches, beside others, before code that a tiled kernel cannot do), match
// (passes/analysis/contractions), plan (names and default numbers), kernel.
// Batch dims (all operands vary) and invariant dims stay on the grid with one thread and one register.
// M and N dims (every operand varies along one of two sets of free dims): each set is one flattened axis of the
// space, and tiles are [depth][M] and [depth][N], so that the code is the same for every rank. Otherwise every dim is
// an axis, and tiles in shared memory keep the order of the array in memory, so that copies coalesce, padded behind the
// axis of the fastest thread index (eqs 19-23). Refuses, with a remark each: what the firing conditions name
// (PassInfo::remark_codes), `#[no_tiling]`. With `variants` the kernels are alternatives of a `choose`: tiled, split
// into parts (split.cpp), and untouched.
//
// Deliberately not here: which numbers are best for given sizes, and other mainloops.
#include "passes/tile_contraction/tile.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <range/v3/view/zip.hpp>

#include "ir/attributes.h"
#include "ir/schedule.h"
#include "ir/walk.h"
#include "passes/analysis/contraction_facts.h"
#include "passes/pass.h"
#include "passes/tile_contraction/fission.h"
#include "passes/tile_contraction/windows.h"

namespace apl {
namespace {

constexpr const char* kName = "tile-contraction";
constexpr std::int64_t kSomeParts = 8;  // where nobody chooses

// One function's rewrite; appends new statements in place of the matched ones.
class Tiler {
 public:
  Tiler(const Module& module, const Function& function, const PassContext& context)
      : module_(module), function_(function), context_(context), result_(function) {}

  std::optional<Function> run() {
    result_.body = isolated(function_.body);
    const Layouts layouts(result_);
    BodyPtr tiled = body(result_.body, layouts);
    if (tiled_ == 0) return std::nullopt;
    result_.body = std::move(tiled);
    return std::move(result_);
  }

 private:
  // A body of the host in which contractions stand alone (tile_contraction/fission).
  BodyPtr isolated(const BodyPtr& old) {
    std::vector<Stm> stms;
    bool changed = false;
    for (const Stm& stm : old->stms) {
      if (auto apart = tile::isolate_contractions(stm, result_.values)) {
        changed = true;
        for (const std::string& step : apart->steps)
          context_.remark({RemarkKind::applied, kName, "isolated", stm.location, function_.name, step, {}, {}});
        for (Stm& made : apart->stms) stms.push_back(std::move(made));
        continue;
      }
      stms.push_back(stm);
      if (!std::holds_alternative<Loop>(stm.op) && !is_branch(stm.op)) continue;
      stms.back().op = map_bodies(stm.op, [&](const BodyPtr& inner) {
        BodyPtr made = isolated(inner);
        changed = changed || made != inner;
        return made;
      });
    }
    return changed ? make_body(std::move(stms), old->results) : old;
  }

  // A body of the host, with the loops and branches in it.
  BodyPtr body(const BodyPtr& old, const Layouts& layouts) {
    std::vector<Stm> stms;
    const int before = tiled_;
    for (const Stm& stm : old->stms) {
      if (tile(stm, layouts, stms)) continue;
      stms.push_back(stm);
      if (std::holds_alternative<Loop>(stm.op) || is_branch(stm.op))
        stms.back().op = map_bodies(stm.op, [&](const BodyPtr& inner) { return body(inner, layouts); });
    }
    return tiled_ == before ? old : make_body(std::move(stms), old->results);
  }

  static bool asks_for_tf32(const std::vector<Attribute>& attributes) {
    return has_attribute(attributes, attribute::tf32) || has_attribute(attributes, attribute::f32_3xtf32);
  }

  // With what the function asks of all of its contractions, unless the statement asks for itself.
  Stm with_precision(Stm stm) const {
    if (asks_for_tf32(stm.attributes)) return stm;
    for (const Attribute& attribute : function_.attributes)
      if (asks_for_tf32({attribute})) stm.attributes.push_back(attribute);
    return stm;
  }

  void say_computed(const Contraction& contraction) {
    for (const ContractionOperand& operand : contraction.operands) {
      if (!operand.map || !context_.remarks) continue;
      std::vector<std::string> names{"`" + result_.values.name(operand.base) + "`"};
      for (const ContractionRead& read : operand.also)
        if (read.base) names.push_back("`" + result_.values.name(*read.base) + "`");
      context_.remark({RemarkKind::applied,
                       kName,
                       "computed-factor",
                       contraction.location,
                       function_.name,
                       fmt::format("a factor is computed from {} while its tile is copied", fmt::join(names, " and ")),
                       {{"tile", std::string(to_text(result_.values.type(operand.element).element))}},
                       {}});
    }
  }

  // Products of f32 that stay such although others are allowed.
  void say_kept(const Contraction& contraction, const Stm& stm, const tile::Tiling& plan) {
    const auto is_f32 = [&](Value v) { return result_.values.type(v).element == ScalarType::f32; };
    if (!asks_for_tf32(stm.attributes) || plan.schedule.unit == Schedule::Unit::matrix ||
        !std::ranges::all_of(contraction.map.params, is_f32))
      return;
    const char* attribute = has_attribute(stm.attributes, attribute::f32_3xtf32) ? "f32_3xtf32" : "tf32";
    const char* why = plan.schedule.unit == Schedule::Unit::packed
                          ? "a CPU has no matrix units"
                          : "it is not a sum of products of two operands, one with M dims and one with N dims";
    missed("tf32-ignored", contraction.location, fmt::format("#[{}] changes nothing: {}", attribute, why), {});
  }

  bool tile(const Stm& original, const Layouts& layouts, std::vector<Stm>& out) {
    const Stm stm = with_precision(original);
    if (has_attribute(stm.attributes, attribute::untiled)) return false;
    auto match = match_contraction(stm, layouts, result_.values);
    if (!match) return false;
    if (const Refusal* refusal = std::get_if<Refusal>(&*match)) {
      refused(stm, *refusal);
      return false;
    }
    const auto& matched = std::get<Contraction>(*match);
    if (has_attribute(stm.attributes, attribute::no_tiling)) {
      not_asked(matched.location);
      return false;
    }
    if (context_.flag("packed") && is_small(matched)) {
      missed("small", matched.location, "its products are so few that packing their operands takes longer", {});
      return false;
    }
    Builder host(result_.values, &module_);
    host.set_location(stm.location);
    std::string entry = function_.entry ? function_.entry->name : function_.name;
    ++tiled_;
    const std::string prefix = tiled_ == 1 ? entry + "." : fmt::format("{}.k{}.", entry, tiled_);
    const Contraction contraction = prepared(matched, prefix, stm.attributes);
    make_indices(contraction, host);
    const bool open = context_.flag("variants") && !any_given(prefix);
    std::vector<std::string> variants;
    const tile::Tiling plan = open ? all_variants(contraction, matched, prefix, stm, host, variants)
                                   : one_variant(contraction, prefix, stm, host);
    for (Stm& made : host.stms()) out.push_back(std::move(made));
    say_kept(contraction, stm, plan);
    if (plan.schedule.unit == Schedule::Unit::simt && !any_given(prefix))
      if (auto missing = tile::why_no_matrix_units(contraction, stm.attributes, result_.values))
        missed("cores-multiply", contraction.location, "matrix units are not used: " + missing->reason,
               missing->suggestion);
    say_computed(contraction);
    applied(matched, plan, number(prefix + "splits"), variants);
    return true;
  }

  // Whether each batch is a product of a few elements whose number is known, which the C compiler holds in registers.
  static bool is_small(const Contraction& contraction) {
    constexpr std::int64_t kProducts = 512;
    Poly products = 1;
    for (const ContractionDim& dim : contraction.dims)
      if (dim.dim_class != DimClass::batch) products *= dim.size;
    const std::optional<std::int64_t> number = products.constant();
    return number && *number <= kProducts;
  }

  // With its reduction dims in the order that tiles want.
  Contraction prepared(const Contraction& matched, const std::string& prefix,
                       const std::vector<Attribute>& attributes) {
    Contraction contraction = tile::order_reductions(tile::merge_reductions(
        matched, [&](const std::string& dim) { return depth_given(prefix, dim); }, result_.values));
    if (auto scaled = tile::scale_sums(contraction, result_.values)) contraction = std::move(*scaled);
    // A CPU's panels are made of any code.
    if (!context_.flag("packed"))
      if (auto computed = tile::compute_factors(contraction, attributes, result_.values))
        contraction = std::move(*computed);
    if (auto widened = tile::widen_sums(contraction, result_.values)) contraction = std::move(*widened);
    return contraction;
  }

  std::int64_t number(const std::string& name) const {
    const auto given = context_.parameters.find(name);
    return given == context_.parameters.end() ? 1 : given->second;
  }

  // Whether the user gave a number of the contraction's tiles or of its mainloop.
  bool any_given(const std::string& prefix) const {
    for (const auto& [name, value] : context_.parameters) {
      if (!name.starts_with(prefix) || name == prefix + "variant") continue;
      // "mm.k2.T_a" is another contraction's.
      if (name.find('.', prefix.size()) == std::string::npos) return true;
    }
    return false;
  }

  // Whether the user gave the depth of a reduction dim, of one plan or of all.
  bool depth_given(const std::string& prefix, const std::string& dim) const {
    return std::ranges::any_of(context_.parameters, [&](const auto& given) {
      return given.first.starts_with(prefix) && given.first.ends_with(".T_" + dim);
    });
  }

  // Tiled, or split into as many parts as are given.
  tile::Tiling one_variant(const Contraction& contraction, const std::string& prefix, const Stm& stm, Builder& host) {
    std::optional<Poly> splits;
    if (const std::int64_t parts = number(prefix + "splits"); parts > 1)
      splits = Poly(host.let("splits", GetSize{prefix + "splits", SizeClass::grid_size, parts}));
    return tiled_kernels(contraction, splits, prefix, stm, host);
  }

  // All of them, of which one runs:
  //   splits = get_size "mm.splits"
  //   C = choose model "mm.variant" { tiled { .. } split { the parts, and what joins them } untiled { as it was }
  //                                   transposed { copies of operands in another order, and the tiled kernel of them }
  //                                   aligned { copies of all in rows along the depth, and the tiled kernel of them } }
  tile::Tiling all_variants(const Contraction& contraction, const Contraction& matched, const std::string& prefix,
                            const Stm& stm, Builder& host, std::vector<std::string>& variants) {
    tile::Tiling plan;
    Choose choose{.by = Choose::By::model, .parameter = prefix + "variant", .alternatives = {}};
    // An alternative's results have names of their own.
    const auto alternative = [&](const char* name, auto&& fill) {
      choose.alternatives.push_back({.name = name, .body = host.body([&](Builder& body) {
                                       body.set_location(stm.location);
                                       Stm inner = stm;
                                       for (Value& v : inner.pattern)
                                         v = result_.values.add(result_.values.type(v), result_.values.name(v));
                                       fill(inner, body);
                                       return std::vector<Operand>(inner.pattern.begin(), inner.pattern.end());
                                     })});
    };
    const bool splits_help = tile::may_split(contraction);
    const Value splits =
        splits_help ? host.let("splits", GetSize{prefix + "splits", SizeClass::grid_size, kSomeParts}) : Value{};
    alternative("tiled", [&](const Stm& inner, Builder& body) {
      plan = tiled_kernels(contraction, std::nullopt, prefix, inner, body);
    });
    // Caches make copies of packed panels anyway.
    const std::vector<std::size_t> which = plan.schedule.unit == Schedule::Unit::general || context_.flag("packed")
                                               ? std::vector<std::size_t>{}
                                               : tile::operands_to_transpose(matched, plan.schedule);
    const auto with_transposed = [&](const std::string& names, Builder& body) {
      Contraction transposed =
          prepared(tile::transpose_operands(matched, which, plan.schedule, body), names, stm.attributes);
      // Indices as arrays are there already.
      for (auto&& [operand, original] : ranges::views::zip(transposed.operands, contraction.operands))
        if (operand.index) operand.base = original.base;
      return transposed;
    };
    if (splits_help)
      alternative("split", [&](const Stm& inner, Builder& body) {
        const bool is_scattered = !which.empty() && tile::reads_scattered(matched);
        tiled_kernels(is_scattered ? with_transposed(prefix, body) : contraction, Poly(splits), prefix, inner, body);
      });
    alternative("untiled", [](Stm inner, Builder& body) {
      inner.attributes.push_back(make_attribute(attribute::untiled));
      body.append(std::move(inner));
    });
    if (!which.empty())
      alternative("transposed", [&](const Stm& inner, Builder& body) {
        const RemarkFacts of_tiled = windows_;
        const std::string own = prefix + "transposed.";
        tiled_kernels(with_transposed(own, body), std::nullopt, own, inner, body);
        windows_ = of_tiled;
      });
    // Of zeros behind the end of the reduction factors would be computed that are not zero.
    const bool is_computed = std::ranges::any_of(
        contraction.operands, [](const ContractionOperand& operand) { return operand.map.has_value(); });
    if (!context_.flag("packed") && !is_computed && tile::may_align(matched, plan.schedule))
      alternative("aligned", [&](const Stm& inner, Builder& body) {
        const RemarkFacts of_tiled = windows_;
        const std::string own = prefix + "aligned.";
        tiled_kernels(prepared(tile::align_operands(matched, body), own, stm.attributes), std::nullopt, own, inner,
                      body);
        windows_ = of_tiled;
      });
    for (const Choose::Alternative& one : choose.alternatives) variants.push_back(one.name);
    host.append({.pattern = stm.pattern, .op = std::move(choose), .location = stm.location});
    return plan;
  }

  // The kernels that give the statement's results.
  tile::Tiling tiled_kernels(const Contraction& contraction, const std::optional<Poly>& splits,
                             const std::string& prefix, const Stm& stm, Builder& host) {
    const Contraction tiled = splits ? tile::split_part(contraction, *splits, result_.values) : contraction;
    tile::Tiling plan = tile::make_tiling(tiled, prefix, context_.parameters, stm.attributes, host);
    if (has_attribute(stm.attributes, attribute::no_remainder) || number(prefix + "remainder") == 2)
      plan.padding = padding_of(tiled);
    if (!plan.padding.empty()) plan.schedule.remainder = Schedule::Remainder::padded;
    if (splits) plan.schedule.splits = *splits;
    if (context_.flag("packed") && plan.schedule.unit != Schedule::Unit::general && !any_given(prefix) &&
        plan.padding.empty() && tile::may_pack(plan.schedule) && is_scalar_code(tiled.map, result_.values) &&
        is_scalar_code(tiled.reduce.op, result_.values))
      plan.schedule.unit = Schedule::Unit::packed;
    Stm replaced = stm;
    replaced.op = tile::tile_kernel(tiled, plan, host);
    for (Value check : contraction.certificates)
      if (std::find(replaced.certificates.begin(), replaced.certificates.end(), check) == replaced.certificates.end())
        replaced.certificates.push_back(check);
    if (context_.remarks) windows_ = tile::window_facts(std::get<SegOp>(replaced.op), result_);
    if (splits) {
      join(contraction, tiled, *splits, stm, std::move(replaced), host);
    } else {
      host.append(std::move(replaced));
    }
    return plan;
  }

  // The parts get arrays of their own; the kernel's results are made of them.
  void join(const Contraction& contraction, const Contraction& part, const Poly& splits, const Stm& stm, Stm parts,
            Builder& host) {
    std::vector<Poly> shape;
    for (std::size_t d = 0; d < part.space_rank; ++d) shape.push_back(part.dims[d].size);
    parts.pattern.clear();
    for (Value reduced : contraction.reduce.op.params) {
      if (parts.pattern.size() == contraction.reduce.neutral.size()) break;
      const Type type = result_.values.type(reduced).array_of(shape);
      parts.pattern.push_back(result_.values.add(type, result_.values.name(stm.pattern.front()) + "_parts"));
    }
    const std::vector<Value> partial = parts.pattern;
    host.append(std::move(parts));
    Stm whole = stm;
    whole.op = tile::join_parts(contraction, splits, partial, host);
    host.append(std::move(whole));
  }

  // Attributes never change what a program means: without proof the remainder stays.
  std::vector<Scalar> padding_of(const Contraction& contraction) {
    tile::Padding padding = tile::neutral_padding(contraction, result_.values);
    Remark remark{.pass = kName, .location = contraction.location, .function = function_.name};
    if (padding.elements.empty()) {
      remark.kind = RemarkKind::missed;
      remark.code = "remainder-kept";
      remark.message = fmt::format("the remainder is kept: {}", padding.reason);
    } else {
      std::vector<std::string> elements;
      for (const Scalar& s : padding.elements) elements.push_back(s.to_text());
      remark.code = "no-remainder";
      remark.message =
          "there is no remainder step: the map function gives the neutral element for what the last tile is filled up "
          "with";
      remark.facts.emplace_back("padding", fmt::format("{}", fmt::join(elements, ", ")));
    }
    context_.remark(remark);
    return std::move(padding.elements);
  }

  // Indices that the map function uses are elements of arrays, too.
  void make_indices(const Contraction& contraction, Builder& host) {
    for (const ContractionOperand& operand : contraction.operands) {
      if (!operand.index) continue;
      const ContractionDim& dim = contraction.dims[static_cast<std::size_t>(operand.axes.front())];
      const Value i = result_.values.add(Type::scalar(ScalarType::i64), "i");
      SegOp iota{.level = SegLevel::thread,
                 .space = {{i, dim.size}},
                 .body = make_body({}, {Operand(i)}),
                 .results = {{KernelResult::Kind::returns, {}}}};
      host.append({.pattern = {operand.base}, .op = std::move(iota), .location = contraction.location});
    }
  }

  void not_asked(Location location) {
    missed("no-tiling-attribute", location, "the program asks for no tiling", "remove #[no_tiling]");
  }

  // Where other code is in the way, the reductions alone have a verdict each.
  void refused(const Stm& stm, const Refusal& refusal) {
    if (!context_.remarks) return;
    std::vector<std::pair<Refusal, RemarkFacts>> all;
    for (const char* code : {"several-redomaps", "reduction-in-branch", "code-after"}) {
      if (refusal.code != code) continue;
      if (has_attribute(stm.attributes, attribute::no_tiling)) return not_asked(refusal.location);
      all = tile::refuse_parts(stm, result_);
    }
    if (all.empty()) all.emplace_back(refusal, refusal_facts(refusal, result_));
    for (auto& [one, facts] : all) missed(one.code, one.location, one.message, one.suggestion, std::move(facts));
  }

  void missed(const std::string& code, Location location, const std::string& message, const std::string& suggestion,
              RemarkFacts facts = {}) {
    context_.remark({RemarkKind::missed, kName, code, location, function_.name, message, std::move(facts), suggestion});
  }

  void applied(const Contraction& contraction, const tile::Tiling& plan, std::int64_t splits,
               const std::vector<std::string>& variants) {
    if (!context_.remarks) return;
    RemarkFacts all = contraction_facts(contraction, result_);
    for (auto& fact : firing_facts(contraction, result_.values)) all.push_back(std::move(fact));
    all.insert(all.end(), windows_.begin(), windows_.end());
    if (splits > 1) all.emplace_back("splits", fmt::format("{} (given)", splits));
    if (!variants.empty()) all.emplace_back("variants", fmt::format("{}", fmt::join(variants, ", ")));
    for (const tile::Parameter& parameter : plan.parameters)
      all.emplace_back(parameter.name, fmt::format("{}{}", parameter.default_value, parameter.given ? " (given)" : ""));
    context_.remark({RemarkKind::applied,
                     kName,
                     "tiled",
                     contraction.location,
                     function_.name,
                     fmt::format("tiled the contraction {}", contraction.einsum(result_)),
                     std::move(all),
                     {}});
  }

  const Module& module_;
  const Function& function_;
  const PassContext& context_;
  Function result_;
  int tiled_ = 0;
  RemarkFacts windows_;  // of the kernel that was tiled last
};

Result<Change> run(Module& module, PassContext& context) {
  for (const auto& [name, value] : context.parameters)
    if (value < 1)
      return make_error(Code::command_bad_parameter, {},
                        fmt::format("{}={}: a tile number must be at least 1", name, value));
  Change change = Change::no;
  for (FunctionPtr& function : module.functions) {
    auto tiled = Tiler(module, *function, context).run();
    if (!tiled) continue;
    function = std::make_shared<const Function>(std::move(*tiled));
    change = Change::yes;
  }
  return change;
}

}  // namespace

PassInfo tile_contraction_pass() {
  PassInfo pass;
  pass.name = kName;
  pass.summary = "block and register tiling of tensor contractions";
  pass.takes = stage_bit(Stage::kernel);
  pass.options = {{"variants", false,
                   "leave open whether it is tiled, split, as it was, or has operands transposed or aligned before: "
                   "chosen when sizes are known"},
                  {"packed", false, "panels are packed for a micro-kernel of a CPU, where no tile numbers are given"}};
  pass.remark_codes = {
      {"tiled", "the contraction was tiled; the facts give einsum, dims, layouts and parameters"},
      {"isolated", "a kernel was split or rewritten, so that a contraction stands alone"},
      {"several-redomaps", "the reduction needs another one, which is no contraction"},
      {"reduction-in-branch", "the reduction is in a branch, and may fail elsewhere"},
      {"reduction-in-loop", "the reduction is in a loop of the kernel"},
      {"loop-kept", "a loop of the kernel goes through elements of arrays, and is no reduction"},
      {"maps-out", "the redomap also gives mapped values"},
      {"array-accumulator", "the reduction operator works on arrays"},
      {"irregular-reduction", "the reduction's width differs from index to index"},
      {"code-before", "the code before the reduction makes an array"},
      {"checked-read", "an index in the kernel needs a check"},
      {"operand-row", "the redomap streams rows that it uses whole"},
      {"layout-unknown", "the layout of an operand is not known"},
      {"operand-not-affine", "an operand's index is not affine in a dim"},
      {"operand-indirect", "an operand's index depends on a value read in the kernel"},
      {"operator-uses-index", "the reduction operator, or its neutral element, differs from index to index"},
      {"map-reads-array", "the map function reads an array in a branch or loop of its own"},
      {"no-free-dim", "T 4.6 condition 1: no parallel dim is missed by an operand"},
      {"operand-variant-to-all", "T 4.6 condition 2: an operand varies along every free dim"},
      {"reduction-dim-unused", "T 4.6 condition 3: no operand varies along a reduction dim"},
      {"map-can-fail", "the map function can fail"},
      {"operator-can-fail", "the reduction operator can fail"},
      {"no-tiling-attribute", "the program asks for no tiling"},
      {"tf32-ignored", "products of tf32 were allowed, but these are none that matrix units know"},
      {"computed-factor", "a factor of a product for matrix units is computed while its tile is copied"},
      {"cores-multiply", "sums of products of types that matrix units know are none that they do"},
      {"small", "on a CPU: each product is of a few elements, which a thread holds in registers"},
      {"no-remainder", "the last tile is filled up with elements that are proved neutral"},
      {"remainder-kept", "no remainder step was asked for, but nothing is proved neutral"},
  };
  pass.run = run;
  return pass;
}

}  // namespace apl
