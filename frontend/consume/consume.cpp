#include "frontend/consume/consume.h"

#include "frontend/consume/checker.h"

namespace apl::frontend {

bool check_consumption(const Checked& program, const DiagnosticSink& sink) { return Consumption(program, sink).run(); }

bool Consumption::run() {
  for (const Global& global : program_.globals) {
    // What an abstract type hides is nobody's matter: the body was checked where nothing is known of it.
    silent_ = global.applied;
    globals_.push_back(definition(*global.definition, global));
    env_.clear();
    observed_.clear();
    consumed_.clear();
    consumed_log_.clear();
    results_.clear();
  }
  return !failed_;
}

}  // namespace apl::frontend
