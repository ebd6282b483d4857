#include "tests/work/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "frontend/frontend.h"
#include "ir/lmad.h"
#include "ir/walk.h"
#include "tests/work/law.h"

namespace apl::work_tests {

namespace {

// Replaces the statements of the body and of all bodies inside.
BodyPtr rewritten(const BodyPtr& body, const std::function<void(std::vector<Stm>&)>& rewrite) {
  std::vector<Stm> stms = body->stms;
  rewrite(stms);
  for (Stm& stm : stms) stm.op = map_bodies(stm.op, [&](const BodyPtr& inner) { return rewritten(inner, rewrite); });
  return make_body(std::move(stms), body->results);
}

// Maps with a reduction in their lambda, by the array that they make.
std::map<Value, const Screma*> expensive_maps(const Function& function) {
  std::map<Value, const Screma*> found;
  for (const Stm& stm : function.body->stms) {
    const Screma* map = get_if<Screma>(stm);
    if (map == nullptr || !map->reduces.empty() || map->widths.size() != 1 || stm.pattern.size() != 1) continue;
    for (const Stm& inner : map->map.body->stms)
      if (get_if<Screma>(inner) != nullptr) found.emplace(stm.pattern.front(), map);
  }
  return found;
}

// An element of such a map is computed wherever it is read.
void recompute_producers(Function& function) {
  const std::map<Value, const Screma*> producers = expensive_maps(function);
  const BodyPtr before = function.body;  // which has them
  function.body = rewritten(function.body, [&](std::vector<Stm>& stms) {
    std::vector<Stm> all;
    for (const Stm& stm : stms) {
      const Index* read = get_if<Index>(stm);
      const auto found = read == nullptr ? producers.end() : producers.find(read->array);
      if (found == producers.end()) {
        all.push_back(stm);
        continue;
      }
      const Screma& map = *found->second;
      Substitution known;
      for (const Value index : map.indices) {
        const Value at = function.values.add(function.type(index), "at");
        all.push_back({{at}, SizeExpr{read->dims.front().start}, stm.location, {}, {}});
        known.emplace(index, at);
      }
      for (std::size_t k = 0; k < map.inputs.size(); ++k) {
        const Value row = function.values.add(function.type(map.map.params[k]), "row");
        all.push_back({{row}, Index{map.inputs[k], read->dims, read->checked}, stm.location, {}, {}});
        known.emplace(map.map.params[k], row);
      }
      const BodyPtr element = copy_fresh(map.map.body, known, function.values, function.values);
      all.insert(all.end(), element->stms.begin(), element->stms.end());
      all.push_back({stm.pattern, Use{element->results.front()}, stm.location, {}, {}});
    }
    stms = std::move(all);
  });
}

// What is overwritten in place is copied to memory of its own first.
void copy_before_updates(Function& function) {
  function.body = rewritten(function.body, [&](std::vector<Stm>& stms) {
    std::vector<Stm> all;
    for (Stm& stm : stms) {
      Update* update = std::get_if<Update>(&stm.op);
      if (update != nullptr && function.type(stm.pattern[0]).memory) {
        Type type = function.type(stm.pattern[0]);
        const Space space = function.type(type.memory->block).space;
        Poly bytes = byte_size(type.element);
        for (const Poly& size : type.shape) bytes = bytes * size;
        const Value block = function.values.add(Type::block(space), "copied_mem");
        type.memory = std::make_shared<const MemoryBinding>(MemoryBinding{block, Lmad::row_major(type.shape)});
        const Value copy = function.values.add(type, "copied");
        all.push_back({{block}, Alloc{bytes, space}, stm.location, {}, {}});
        all.push_back({{copy}, Copy{update->array}, stm.location, {}, {}});
        update->array = copy;
        function.values.set_type(stm.pattern[0], type);
      }
      all.push_back(std::move(stm));
    }
    stms = std::move(all);
  });
}

PassRegistry with_fault(const Planted& fault) {
  PassRegistry registry;
  const PassRegistry builtin = PassRegistry::builtin();
  for (PassInfo pass : builtin.passes()) {
    if (pass.name == fault.pass)
      pass.run = [run = pass.run, &fault](Module& module, PassContext& context) -> Result<Change> {
        if (auto ran = run(module, context); !ran) return ran;
        for (FunctionPtr& function : module.functions) {
          Function copy = *function;
          fault.plant(copy);
          function = std::make_shared<const Function>(std::move(copy));
        }
        return Change::yes;
      };
    registry.add(std::move(pass));
  }
  return registry;
}

}  // namespace

const std::vector<Planted>& faults() {
  static const std::vector<Planted> all = {
      {"a producer computed by each element that reads it", "fuse", recompute_producers,
       "entry main [n][m] (xss: [n][m]f32) : [n][n]f32 =\n"
       "  let ys = map f32.product xss in map (\\i -> map (\\j -> ys[(i * j) % n]) (iota n)) (iota n)\n",
       "let {r"},
      {"an array copied before each update", "place-memory", copy_before_updates,
       "entry main [n] (xs: *[n]f32) (k: i64) : [n]f32 =\n"
       "  loop xs for i < k do xs with [i % n] = xs[(i * i) % n] + 1\n",
       "let {r"},
  };
  return all;
}

std::string unnoticed(const Planted& fault) {
  std::string error;
  const auto module =
      compile({.name = "fault.fut", .text = fault.source}, [&](const Diagnostic& d) { error += d.message; });
  if (!module) return error;
  for (const bool planted : {false, true}) {
    const auto versions = make_versions(*module, planted ? with_fault(fault) : PassRegistry::builtin());
    if (!versions) return versions.error().message;
    const Outcome outcome = check_entry(*versions, "main");
    if (outcome.compared == 0) return "nothing was compared";
    if (!planted && !outcome.violations.empty()) return "without the fault: " + outcome.violations.front().text;
    if (!planted) continue;
    const bool named = std::ranges::any_of(outcome.violations, [&](const Violation& violation) {
      return violation.text.find("the statement that grew: " + fault.grown) != std::string::npos;
    });
    if (outcome.violations.empty()) return "the law does not notice it";
    if (!named) return "another statement is named: " + outcome.violations.front().text;
  }
  return {};
}

}  // namespace apl::work_tests
