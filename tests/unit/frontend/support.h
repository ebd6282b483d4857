// What the frontend's tests share: compiling text and looking at what it said.
#pragma once

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "ir/diagnostic.h"
#include "ir/verify.h"

namespace apl::frontend::test {

struct Outcome {
  std::vector<Diagnostic> diagnostics;
  std::optional<Module> module;
  bool accepted = false;

  // `code@line:column`, one a diagnostic.
  std::vector<std::string> places() const {
    std::vector<std::string> result;
    for (const Diagnostic& d : diagnostics)
      result.push_back(std::string(code_text(d.code)) + "@" + std::to_string(d.location.line) + ":" +
                       std::to_string(d.location.column));
    return result;
  }
  std::string messages() const {
    std::string result;
    for (const Diagnostic& d : diagnostics) {
      result += d.message + "\n";
      for (const Note& note : d.notes) result += "note: " + note.message + "\n";
    }
    return result;
  }
};

inline Outcome check_text(const std::string& text) {
  Outcome outcome;
  outcome.accepted = check({"test.fut", text}, [&](const Diagnostic& d) { outcome.diagnostics.push_back(d); });
  return outcome;
}

inline Outcome compile_text(const std::string& text) {
  Outcome outcome;
  outcome.module = compile({"test.fut", text}, [&](const Diagnostic& d) { outcome.diagnostics.push_back(d); });
  outcome.accepted = outcome.module.has_value();
  return outcome;
}

// The module of a program that must compile; its faults are failures.
inline Module lowered(const std::string& text) {
  Outcome outcome = compile_text(text);
  CAPTURE(outcome.messages());
  REQUIRE(outcome.module.has_value());
  for (const Diagnostic& d : verify(*outcome.module)) FAIL_CHECK(d.message);
  return *outcome.module;
}

}  // namespace apl::frontend::test
