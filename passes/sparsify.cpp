// sparsify: matrices that an entry calls sparse are gone through by their non-zeros (STile; docs/sparse.md).
//
//   #[sparse(A)]
//   entry f (A : "[n][m]f32", B : "[m][b]f32") : {"[n][b]f32"}
//   fun f [n, m, b] (A : [n][m]f32, B : [m][b]f32) : {[n][b]f32} = {
//     let {C : [n][b]f32} = segmap(thread) (i < n, j < b) { ... redomap(k < m, {A[i], B[.., j]}, mul, add) ... }
//     in {C}
//   }
// =>
//   entry f (A : "sparse [n][m]f32: shape values row_start column" as 4, B : "[m][b]f32") : {"[n][b]f32"}
//   fun f [n, m, b, A_nonzeros] (A_shape : [0][n][m]f32, A_values : [A_nonzeros]f32, A_row_start : [n + 1]i64,
//                                A_column : [A_nonzeros]i32, B : [m][b]f32) : {[n][b]f32} = {
//     let {C : [n][b]f32} = segmap(thread) (i < n, j < b) { ... redomap over the non-zeros of row i ... }
//     in {C}
//   }
//
// Phases: the arrays of each sparse operand (ir/sparse_soa.h); every kernel that reads it, in order: one that reads
// A[i, j] where it writes [i, j] becomes one over the non-zeros (sparsify/sddmm), and what it gives may be sparse
// again; a contraction (passes/analysis/contractions) becomes sums over the non-zeros of a row (sparsify/contract), for
// two sparse matrices over those of both; other reductions along a row, and single elements, are seen to where they are
// in the kernel (sparsify/threads).
// Each says what it is in its schedule (ir/sparse_schedule.h), by which code generation asks the runtime for a kernel.
// With `tiles` both go over the tiles of a plan in place of rows (sparsify/tile_sums, sparsify/tile_sddmm). What
// nobody reads is then left out. Both need a proof that absent elements change nothing, by the algebra of known
// operators on finite numbers (sparsify/zero_propagation). What is refused gets a dense copy of A, and a remark: never
// a wrong result. Deliberately not here: patterns that a program computes, so that the product of two sparse matrices
// is a dense one.
#include <fmt/format.h>

#include <utility>

#include "ir/attributes.h"
#include "ir/print.h"
#include "ir/sparse_schedule.h"
#include "ir/walk.h"
#include "passes/pass.h"
#include "passes/sparsify/sections.h"
#include "passes/sparsify/sparsify.h"
#include "passes/sparsify/threads.h"

namespace apl {
namespace {

using sparsify::Pattern;
using sparsify::SparseArray;

constexpr const char* kSparsify = "sparsify";

class Sparsifier {
 public:
  Sparsifier(const Function& function, const PassContext& context, const std::vector<KnownMatrix>& known,
             std::vector<SparseRequest> requests)
      : function_(function),
        context_(context),
        known_(known),
        options_{context.flag("few-threads"), context.flag("tiles"), !context.flag("unfused"),
                 context.flag("deterministic")},
        requests_(std::move(requests)),
        result_(function),
        layouts_(function),
        accesses_(sparse_, result_.values) {}

  Function run() {
    patterns_.reserve(requests_.size());
    for (const SparseRequest& request : requests_) add_pattern(request);
    BodyPtr body = rewrite(function_.body);
    for (const Dense& read : dense_reads_) missed(read);
    std::vector<Operand> results = body->results;
    for (std::size_t k = 0; k < requests_.size(); ++k)
      if (requests_[k].result) sparse_result(patterns_[k], results);
    body = without_unread(make_body(body->stms, results));
    add_dense_operands(body);
    result_.body = body;
    bind_fields();
    erase_attribute(result_.attributes, attribute::sparse);
    result_.body = scheduled(body, Layouts(result_));
    return std::move(result_);
  }

 private:
  // A statement reads all of an array that could be sparse.
  struct Dense {
    Location location;
    Value base;
    sparsify::Reason reason;
  };

  void add_pattern(const SparseRequest& request) {
    ValueTable& values = result_.values;
    Pattern pattern;
    pattern.name = function_.entry->params[request.param].name;
    pattern.dense = function_.params[request.value];
    const Type type = values.type(pattern.dense);
    pattern.element = type.element;
    pattern.rows = type.shape[0];
    pattern.columns = type.shape[1];
    pattern.sizes = {pattern.rows, pattern.columns, {}};
    for (const SoaExtent extent : counted_extents())
      pattern.sizes.counts.emplace(extent,
                                   Poly(values.add(Type::scalar(ScalarType::i64), count_name(pattern.name, extent))));
    pattern.nonzeros = pattern.sizes.counts.at(SoaExtent::nonzeros);
    for (std::size_t f = 0; f < kSoaFields; ++f) {
      const auto field = static_cast<SoaField>(f);
      pattern.fields[f] =
          values.add(Type::array(element_of(field, type.element), *soa_shape(extent_of(field), pattern.sizes)),
                     fmt::format("{}_{}", pattern.name, to_text(field)));
    }
    patterns_.push_back(pattern);
    sparse_.emplace(pattern.dense, SparseArray{&patterns_.back(), pattern.field(SoaField::values)});
  }

  // A body of the host, with the loops and branches in it.
  BodyPtr rewrite(const BodyPtr& old) {
    std::vector<Stm> stms;
    for (const Stm& stm : old->stms) {
      std::vector<Stm> made;
      if (kernel(stm, made)) {
        for (Stm& one : made) stms.push_back(std::move(one));
        continue;
      }
      accesses_.enter(stm);
      stms.push_back(stm);
      if (const Choose* choose = get_if<Choose>(stm))
        stms.back().op = sparse_alternatives(*choose);
      else if (std::holds_alternative<Loop>(stm.op) || is_branch(stm.op))
        stms.back().op = map_bodies(stm.op, [&](const BodyPtr& inner) { return rewrite(inner); });
    }
    return make_body(std::move(stms), old->results);
  }

  // Without alternatives that read a sparse array in full, if the last one, which may always run, does not: the dense
  // copy would be made for all.
  Choose sparse_alternatives(const Choose& old) {
    Choose made = old;
    std::vector<std::vector<Dense>> reads;
    for (Choose::Alternative& alternative : made.alternatives) {
      std::vector<Dense> before = std::exchange(dense_reads_, {});
      alternative.body = rewrite(alternative.body);
      reads.push_back(std::exchange(dense_reads_, std::move(before)));
    }
    const bool drops = reads.back().empty();
    for (std::size_t k = made.alternatives.size(); k-- > 0;) {
      if (drops && !reads[k].empty())
        made.alternatives.erase(made.alternatives.begin() + static_cast<std::ptrdiff_t>(k));
      else
        dense_reads_.insert(dense_reads_.end(), reads[k].begin(), reads[k].end());
    }
    return made;
  }

  // The sparse arrays that the statement reads, through views or as they are.
  std::vector<Value> read_by(const Stm& stm) const {
    std::vector<Value> bases;
    for (const Value v : free_values(stm.op, result_.values)) {
      const sparsify::SparseArrays::const_iterator found =
          layouts_.find(v) != nullptr ? sparse_.find(layouts_.find(v)->base) : sparse_.end();
      if (found != sparse_.end() && std::ranges::find(bases, found->first) == bases.end())
        bases.push_back(found->first);
    }
    return bases;
  }

  bool kernel(const Stm& stm, std::vector<Stm>& out) {
    const SegOp* op = get_if<SegOp>(stm);
    if (std::holds_alternative<Loop>(stm.op) || is_branch(stm.op)) return false;
    const std::vector<Value> bases = read_by(stm);
    if (bases.empty()) return false;
    if (get_if<Index>(stm) && result_.values.type(stm.pattern.front()).is_scalar()) {
      out.push_back(in_threads(in_kernel(stm), {}));
      return true;
    }
    if (get_if<Index>(stm) || get_if<Rearrange>(stm) || get_if<Reshape>(stm) || get_if<Use>(stm)) {
      dense_.emplace(stm.pattern.front(), stm.pattern.front());
      return false;
    }
    std::map<Value, sparsify::Reason> reasons;
    for (const Value base : bases) {
      sparsify::Reason reason{"no-contraction", "it is read by what is no kernel of one thread an element", {}};
      if (op != nullptr && op->level == SegLevel::thread) {
        sparsify::Reason as_sum;
        if (as_sddmm(stm, base, reason, out) || contract(stm, base, as_sum, out)) {
          for (Stm& made : out) made = in_threads(made, {});
          return true;
        }
        if (reason.code == "not-sddmm" || as_sum.code != "no-contraction") reason = std::move(as_sum);
      }
      reasons.emplace(base, std::move(reason));
    }
    Stm made = in_threads(stm, reasons);
    out.push_back(std::move(made));
    return true;
  }

  // With reductions and elements in its threads that go by non-zeros; why the others do not.
  Stm in_threads(const Stm& stm, const std::map<Value, sparsify::Reason>& reasons) {
    if (read_by(stm).empty()) return stm;
    sparsify::ThreadReads made = sparsify::read_in_threads(stm, sparse_, accesses_, result_.values);
    std::set<const Pattern*> said;
    for (const sparsify::SparseArray* array : made.reductions)
      if (said.insert(array->pattern).second)
        applied(stm, "row-sum", *array->pattern,
                fmt::format("a reduction goes over the non-zeros of a row or column of `{}`", array->pattern->name));
    said.clear();
    const auto product = find_attribute(stm.attributes, attribute::sparse_product);
    const bool is_sum = product && std::get<1>(*product) == attribute::SparseProduct::spmm;
    for (const sparsify::SparseArray* array : made.look_ups)
      if (said.insert(array->pattern).second)
        applied(stm, "look-up", *array->pattern,
                fmt::format("elements of `{}` are looked up among the non-zeros of their rows", array->pattern->name),
                is_sum ? dense_product(stm) : "");
    for (const Value base : read_by(made.stm)) {
      // Why a sum's terms are not neutral says most, that there is no sum least.
      const auto own = made.refused.find(base);
      const auto other = reasons.find(base);
      const bool is_own =
          own != made.refused.end() && (other == reasons.end() || own->second.code == "zero-not-neutral" ||
                                        other->second.code == "no-contraction" || other->second.code == "not-sddmm");
      const sparsify::Reason unknown{"no-contraction", "the kernel that reads it is no contraction", {}};
      dense_reads_.push_back({stm.location, base,
                              is_own                   ? own->second
                              : other != reasons.end() ? other->second
                                                       : unknown});
    }
    return std::move(made.stm);
  }

  // A statement of the host as a kernel of one thread.
  Stm in_kernel(const Stm& stm) {
    Stm inner = stm;
    const Value result = stm.pattern.front();
    inner.pattern = {result_.values.add(result_.values.type(result), result_.values.name(result))};
    SegOp once{.level = SegLevel::thread, .space = {}, .body = {}, .results = {{KernelResult::Kind::returns, {}}}};
    once.body = make_body({inner}, {Operand(inner.pattern.front())});
    return {.pattern = stm.pattern, .op = std::move(once), .location = stm.location};
  }

  bool as_sddmm(const Stm& stm, Value base, sparsify::Reason& reason, std::vector<Stm>& out) {
    Builder host(result_.values);
    host.set_location(stm.location);
    auto made = sparsify::match_sddmm(stm, sparse_, base, layouts_, host);
    if (const auto* refused = std::get_if<sparsify::Reason>(&made)) {
      reason = *refused;
      return false;
    }
    const Pattern& pattern = *sparse_.at(base).pattern;
    auto& sddmm = std::get<sparsify::Sddmm>(made);
    const std::vector<SegDim>& space = std::get<SegOp>(stm.op).space;
    for (const Value result : stm.pattern) sddmm.names.push_back(result_.values.name(result) + "_values");
    sddmm.kernel.attributes.push_back(
        make_attribute(attribute::sparse_product, pattern.name, attribute::SparseProduct::sddmm));
    const std::vector<Value> nonzeros = options_.tiles
                                            ? sparsify::sddmm_tiles(sddmm, space, pattern, options_.fused, host)
                                            : sparsify::sddmm_nonzeros(sddmm, host);
    for (std::size_t k = 0; k < nonzeros.size(); ++k) {
      const bool zero = sparsify::same_number(sddmm.elsewhere[k], Scalar::zero(sddmm.elsewhere[k].type()));
      if (zero && sddmm.row_dim + 2 == space.size() && sddmm.column_dim + 1 == space.size()) {
        SparseArray array{&pattern, nonzeros[k]};
        for (std::size_t d = 0; d < sddmm.row_dim; ++d) array.batches.push_back(space[d].bound);
        sparse_.insert_or_assign(stm.pattern[k], array);
      }
      const std::size_t first = host.stms().size();
      sparsify::make_dense(stm.pattern[k], nonzeros[k], pattern, space, sddmm.row_dim, sddmm.column_dim,
                           sddmm.elsewhere[k], host);
      for (std::size_t s = first; s < host.stms().size(); ++s)
        dense_.emplace(host.stms()[s].pattern.front(), stm.pattern[k]);
      copies_.push_back(stm.pattern[k]);
    }
    for (Stm& made_stm : host.stms()) out.push_back(std::move(made_stm));
    applied(stm, "sddmm", pattern,
            fmt::format("`{}` is computed at the non-zeros of `{}`", result_.values.name(stm.pattern.front()),
                        pattern.name));
    return true;
  }

  bool contract(const Stm& stm, Value base, sparsify::Reason& reason, std::vector<Stm>& out) {
    const auto match = match_contraction(stm, layouts_, result_.values);
    reason = {"no-contraction", "the kernel that reads it is no contraction", {}};
    if (!match) return false;
    const Contraction* contraction = std::get_if<Contraction>(&*match);
    if (const Refusal* refusal = std::get_if<Refusal>(&*match)) {
      reason = {"no-contraction", refusal->message, refusal->suggestion};
      contraction = refusal->match.get();  // a condition of tiling
    }
    if (contraction == nullptr) return false;
    Builder host(result_.values);
    host.set_location(stm.location);
    auto made = sparsify::contract(stm, *contraction, sparse_, base, options_, host);
    if (const auto* refused = std::get_if<sparsify::Reason>(&made)) {
      reason = *refused;
      return false;
    }
    const Pattern& pattern = *sparse_.at(base).pattern;
    const auto& contracted = std::get<sparsify::Contracted>(made);
    for (Stm& made_stm : host.stms()) out.push_back(std::move(made_stm));
    const char* along = contracted.by_columns ? "column" : "row";
    applied(
        stm, "spmm", pattern,
        fmt::format("the sum {} goes over the {} of `{}`", contraction->einsum(result_),
                    contracted.by_tiles ? "tiles" : "non-zeros", pattern.name) +
            (contracted.by_tiles ? "" : fmt::format(", {} by {}", along, along)) +
            (contracted.second != nullptr ? fmt::format(", and over those of `{}`", contracted.second->pattern->name)
                                          : ""),
        contracted.second != nullptr ? dense_product(stm) : "");
    if (const auto& why = contracted.why_not)
      report(RemarkKind::missed, stm.location, why->code,
             fmt::format("the sum over `{}` goes {} by {}, not by tiles: {}", pattern.name, along, along, why->message),
             why->suggestion);
    return true;
  }

  // With the schedules of the kernels that were made.
  BodyPtr scheduled(const BodyPtr& old, const Layouts& layouts) const {
    std::vector<Stm> stms = old->stms;
    for (Stm& stm : stms) {
      const auto product = find_attribute(stm.attributes, attribute::sparse_product);
      SegOp* kernel = std::get_if<SegOp>(&stm.op);
      if (product && kernel != nullptr) {
        kernel->sparse = sparse_schedule_of(stm, std::get<0>(*product), result_, layouts);
        add_sections(stm, *kernel);
      } else if (std::holds_alternative<Loop>(stm.op) || is_branch(stm.op)) {
        stm.op = map_bodies(stm.op, [&](const BodyPtr& inner) { return scheduled(inner, layouts); });
      }
    }
    return make_body(std::move(stms), old->results);
  }

  // Code of its own, if the operand's values are known.
  void add_sections(const Stm& stm, SegOp& kernel) const {
    const std::string& operand = kernel.sparse->matrix;
    const auto constant = find_attribute(function_.attributes, attribute::constant);
    if (!constant || std::ranges::find(std::get<0>(*constant), operand) == std::get<0>(*constant).end()) return;
    const auto found = std::ranges::find_if(known_, [&](const KnownMatrix& known) {
      return known.entry == function_.entry->name && known.operand == operand;
    });
    const sparsify::SectionPlan plan = sparsify::plan_sections(
        kernel, result_, found == known_.end() ? nullptr : &*found, options_.whole_rows, context_.parameters);
    kernel.sparse->sections = plan.sections;
    report(plan.kind, stm.location, plan.code, plan.message, plan.suggestion);
  }

  // The entry's result is the non-zeros alone.
  void sparse_result(const Pattern& pattern, std::vector<Operand>& results) {
    const auto found = results[0].is_value() ? sparse_.find(results[0].value()) : sparse_.end();
    if (found == sparse_.end() || found->second.pattern != &pattern || !found->second.batches.empty()) {
      report(RemarkKind::missed, function_.location, "result-is-dense",
             fmt::format("the result is not known to have the pattern of `{}`: it stays dense", pattern.name),
             fmt::format("multiply by the elements of `{}` last", pattern.name));
      return;
    }
    results[0] = found->second.values;
    result_.results[0] = result_.values.type(found->second.values);
    const auto param = std::ranges::find(result_.entry->params, pattern.name, &EntryInfo::Param::name);
    result_.entry->results[0].pattern = static_cast<std::size_t>(param - result_.entry->params.begin());
  }

  // Without dense copies, and views of sparse arrays, that nobody reads.
  BodyPtr without_unread(const BodyPtr& body) {
    const std::set<Value> read = sparsify::values_read(*body, dense_, result_.values);
    for (const Value copy : copies_)
      if (read.contains(copy)) made_dense(copy);
    return sparsify::without_unread(body, dense_, read);
  }

  // Sparse operands that somebody still reads as they were.
  void add_dense_operands(BodyPtr& body) {
    const std::set<Value> read = free_values(*body, result_.values);
    Builder host(result_.values);
    host.set_location(function_.location);
    for (const Pattern& pattern : patterns_) {
      if (!read.contains(pattern.dense)) continue;
      if (!why_dense_.contains(pattern.dense))
        missed(
            {function_.location,
             pattern.dense,
             {"no-kernel",
              fmt::format("`{}` is a result, is carried by a loop, or is read where there is no kernel", pattern.name),
              "let kernels alone read it"}});
      made_dense(pattern.dense);
      Type type = result_.values.type(pattern.dense);
      type.unique = false;
      result_.values.set_type(pattern.dense, type);
      const std::vector<SegDim> space = {{result_.values.add(Type::scalar(ScalarType::i64), "i"), pattern.rows},
                                         {result_.values.add(Type::scalar(ScalarType::i64), "j"), pattern.columns}};
      sparsify::make_dense(pattern.dense, pattern.field(SoaField::values), pattern, space, 0, 1,
                           Scalar::zero(pattern.element), host);
    }
    if (host.stms().empty()) return;
    host.append_all(body->stms);
    body = host.finish(body->results);
  }

  // Parameters for the arrays that the body reads.
  void bind_fields() {
    const std::set<Value> read = free_values(*result_.body, result_.values);
    for (std::size_t k = 0; k < requests_.size(); ++k) {
      const Pattern& pattern = patterns_[k];
      std::vector<SoaField> fields;
      std::vector<Value> params;
      for (std::size_t f = 0; f < kSoaFields; ++f) {
        const auto field = static_cast<SoaField>(f);
        const bool always = field == SoaField::shape || field == SoaField::values;
        if (!always && !read.contains(pattern.fields[f])) continue;
        fields.push_back(field);
        params.push_back(pattern.fields[f]);
      }
      const auto at = std::ranges::find(result_.params, pattern.dense);
      const auto next = result_.params.erase(at);
      result_.params.insert(next, params.begin(), params.end());
      for (const auto& [extent, count] : pattern.sizes.counts)
        if (std::ranges::any_of(fields, [&](SoaField field) { return extent_of(field) == extent; }))
          result_.sizes.push_back(*count.symbol());
      EntryInfo& entry = *result_.entry;
      entry.param_values[requests_[k].param] = fields.size();
      entry.params[requests_[k].param].fields = std::move(fields);
    }
  }

  // What the statement makes, if it multiplies two sparse matrices.
  std::string dense_product(const Stm& stm) const {
    return fmt::format("dense {}", print(result_.values.type(stm.pattern.front()), result_));
  }

  void applied(const Stm& stm, std::string code, const Pattern& pattern, std::string message,
               std::string result = {}) const {
    std::vector<std::pair<std::string, std::string>> facts{{"operand", pattern.name}};
    if (!result.empty()) facts.emplace_back("result", std::move(result));
    context_.remark({.kind = RemarkKind::applied,
                     .pass = kSparsify,
                     .code = std::move(code),
                     .location = stm.location,
                     .function = function_.name,
                     .message = std::move(message),
                     .facts = std::move(facts),
                     .suggestion = {}});
  }

  // Said where it is, with what is stored.
  void missed(const Dense& read) {
    const auto found = sparse_.find(read.base);
    const bool is_operand = found == sparse_.end() || found->second.pattern->dense == read.base;
    const std::string name = fmt::format("`{}`", function_.values.name(read.base));
    context_.remark({.kind = RemarkKind::missed,
                     .pass = kSparsify,
                     .code = read.reason.code == "not-sddmm" ? "no-contraction" : read.reason.code,
                     .location = read.location,
                     .function = function_.name,
                     .message = fmt::format("{} is read as a dense matrix: {}", name, read.reason.message),
                     .facts = {{"array", is_operand ? name
                                                    : fmt::format("{}, which has the non-zeros of `{}`,", name,
                                                                  found->second.pattern->name)},
                               {"stores", print(result_.values.type(read.base), result_)},
                               {"bytes", bytes_of(result_.values.type(read.base))},
                               {"reason", read.reason.message}},
                     .suggestion = read.reason.suggestion});
    why_dense_.emplace(read.base, read.reason.message);
  }

  std::string bytes_of(const Type& type) const { return print(product(type.shape) * byte_size(type.element), result_); }

  void made_dense(Value dense) {
    const auto why = why_dense_.find(dense);
    report(RemarkKind::analysis, function_.location, "dense-copy",
           fmt::format("`{}` is made dense, too, {}{}", function_.values.name(dense),
                       print(result_.values.type(dense), result_), why == why_dense_.end() ? "" : ": " + why->second),
           {});
  }

  void report(RemarkKind kind, const Location& location, std::string code, std::string message,
              std::string suggestion) const {
    context_.remark({.kind = kind,
                     .pass = kSparsify,
                     .code = std::move(code),
                     .location = location,
                     .function = function_.name,
                     .message = std::move(message),
                     .facts = {},
                     .suggestion = std::move(suggestion)});
  }

  const Function& function_;
  const PassContext& context_;
  const std::vector<KnownMatrix>& known_;
  const sparsify::LoweringOptions options_;
  const std::vector<SparseRequest> requests_;
  Function result_;
  const Layouts layouts_;
  std::vector<Pattern> patterns_;
  sparsify::SparseArrays sparse_;
  sparsify::Accesses accesses_;
  sparsify::DenseCopies dense_;
  std::vector<Value> copies_;  // dense copies of what kernels made
  std::vector<Dense> dense_reads_;
  std::map<Value, std::string> why_dense_;
};

Result<Change> run_sparsify(Module& module, PassContext& context) {
  Change change = Change::no;
  for (FunctionPtr& pointer : module.functions) {
    auto requests = sparse_requests(*pointer);
    if (!requests) return std::move(requests).error();
    if (requests->empty()) continue;
    pointer = std::make_shared<const Function>(Sparsifier(*pointer, context, module.known, std::move(*requests)).run());
    change = Change::yes;
  }
  return change;
}

}  // namespace

PassInfo sparsify_pass() {
  return {
      .name = kSparsify,
      .summary = "go through matrices that an entry calls sparse by their non-zeros",
      .takes = stage_bit(Stage::kernel),
      .options =
          {{.name = "few-threads",
            .default_value = false,
            .help = "for a CPU: a thread has a whole row of sums, so that it reads what lies side by side"},
           {.name = "tiles",
            .default_value = false,
            .help = "over the tiles of a plan, which are arguments: blocks, ELL rows and nnz segments in one kernel"},
           {.name = "unfused", .default_value = false, .help = "with tiles: a kernel for each kind of them"},
           {.name = "deterministic",
            .default_value = false,
            .help = "with tiles: not where the order of additions shows in the result"}},
      .remark_codes = {{"spmm", "a sum over a sparse matrix goes over its non-zeros"},
                       {"sddmm", "a kernel that gives nothing elsewhere runs for the non-zeros alone"},
                       {"dense-copy", "a sparse matrix is also made dense, because something reads it so"},
                       {"result-is-dense", "the result is not known to have the pattern that the attribute says"},
                       {"no-contraction", "what reads a sparse matrix is no contraction"},
                       {"row-sum", "a reduction in a kernel goes over the non-zeros of a row or column"},
                       {"look-up", "elements of a sparse matrix are looked up in their rows"},
                       {"all-elements", "a kernel reads all elements of a sparse matrix, the zeros, too"},
                       {"gives-rows", "a kernel over the elements of a sparse matrix gives rows"},
                       {"zero-not-neutral", "it is not known that absent elements change nothing"},
                       {"operand-not-whole", "a contraction reads a part of a sparse matrix"},
                       {"rows-not-tiles", "tiles were asked for, and the sum must go row (column) by row"},
                       {"constant", "the code of a product has the structure and values of a known matrix"},
                       {"constant-not-given", "a constant matrix is not known to the compiler"},
                       {"constant-not-wanted", "a tuning parameter asks for the kernels of the runtime"},
                       {"constant-general", "a kernel that reads a constant matrix is no product of the known kind"},
                       {"constant-computed", "the elements of a constant matrix are computed with before the product"},
                       {"constant-not-finite", "a constant matrix has elements that are no finite numbers"},
                       {"constant-too-large", "a constant matrix has too many non-zeros for code"},
                       {"no-kernel", "a sparse matrix is a result, or is read where there is no kernel"}},
      .run = run_sparsify};
}

}  // namespace apl
