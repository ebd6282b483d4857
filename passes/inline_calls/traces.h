// Traces (`#[trace]`) that kernels would run are dropped: kernels print nothing, and a trace would keep code from being
// fused or tiled.
#pragma once

#include <memory>
#include <string>

#include "ir/attributes.h"
#include "ir/walk.h"
#include "passes/functions.h"

namespace apl::inlining {

// `told` is called for each that is dropped. The same body, if none is.
template <class Told>
BodyPtr without_traces(const BodyPtr& body, bool in_kernel, const Told& told) {
  bool changed = false;
  std::vector<Stm> stms;
  for (const Stm& stm : body->stms) {
    if (in_kernel && has_attribute(stm.attributes, attribute::trace)) {
      changed = true;
      told(stm);
      continue;
    }
    const bool inside = in_kernel || get_if<Screma>(stm) || get_if<Scatter>(stm) || get_if<Derivative>(stm);
    stms.push_back(stm);
    if (!has_bodies(stm.op)) continue;
    bool inner_changed = false;
    Op op = map_bodies(stm.op, [&](const BodyPtr& inner) {
      BodyPtr made = without_traces(inner, inside, told);
      inner_changed = inner_changed || made != inner;
      return made;
    });
    if (inner_changed) stms.back().op = std::move(op);
    changed = changed || inner_changed;
  }
  return changed ? make_body(std::move(stms), body->results) : body;
}

inline Change drop_traces(Module& module, const PassContext& context) {
  return change_functions(module, [&](Function& function) {
    const BodyPtr before = function.body;
    function.body = without_traces(before, false, [&](const Stm& stm) {
      context.remark({.kind = RemarkKind::missed,
                      .pass = "inline",
                      .code = "trace-dropped",
                      .location = stm.location,
                      .function = function.name,
                      .message = "nothing is traced in kernels"});
    });
    return function.body != before;
  });
}

}  // namespace apl::inlining
