#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <regex>
#include <tuple>

#include "aplc/observe.h"
#include "aplc/reduce/edits.h"
#include "aplc/reduce/reduce.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"

namespace aplc::reduce {
namespace {

using namespace apl;

// Numbers of text that are worth less than others: shorter, then smaller.
using Measure = std::tuple<std::size_t, std::size_t, std::string>;

class IrReducer {
 public:
  IrReducer(const Module& module, const Oracle& oracle) : module_(module), oracle_(oracle) {
    text_ = print(module_);
    measure_ = measure(module_, text_);
  }

  Module run() {
    for (;;) {
      const Measure before = measure_;
      functions();
      for (std::size_t f = 0; f < module_.functions.size(); ++f) {
        truncate(f);
        results(f);
        focus(f);
        for (const Cut how : {Cut::parameter, Cut::consumed, Cut::forward, Cut::last, Cut::constant}) cuts(f, how);
        unwrap(f);
        offer(f, pruned(*module_.functions[f]), "unused results");
        params(f);
      }
      texts();
      if (measure_ == before || oracle_.stopped()) return std::move(module_);
    }
  }

 private:
  static Measure measure(const Module& module, const std::string& text) {
    return {count_statements(module), text.size(), text};
  }

  // Takes the candidate if it is smaller, well-formed and interesting.
  bool offer(Module candidate, const std::string& what) {
    if (oracle_.stopped()) return false;
    for (FunctionPtr& function : candidate.functions) {
      Function clean = *function;
      clean.body = without_dead_code(function->body, function->values);
      function = std::make_shared<const Function>(std::move(clean));
    }
    if (!verify(candidate).empty()) return false;
    std::string text = print(candidate);
    Measure size = measure(candidate, text);
    if (size >= measure_) return false;
    oracle_.progress(fmt::format("{} statements, {}", std::get<0>(measure_), what));
    if (!oracle_.interesting(text)) return false;
    module_ = std::move(candidate);
    text_ = std::move(text);
    measure_ = std::move(size);
    return true;
  }

  bool offer(std::size_t f, std::optional<Function> function, const std::string& what) {
    if (!function) return false;
    Module candidate = module_;
    candidate.functions[f] = std::make_shared<const Function>(std::move(*function));
    return offer(std::move(candidate), what);
  }

  const Function& function(std::size_t f) const { return *module_.functions[f]; }

  // Chunks of `count()` things, from half of them to single ones and from the end; `drop(begin, end)` says whether it
  // did.
  static void chunks(const std::function<std::size_t()>& count,
                     const std::function<bool(std::size_t, std::size_t)>& drop) {
    for (std::size_t size = std::max<std::size_t>(1, count() / 2);; size /= 2) {
      for (std::size_t end = count(); end > 0;) {
        const std::size_t begin = end > size ? end - size : 0;
        drop(begin, end);
        end = std::min(begin, count());
      }
      if (size == 1) return;
    }
  }

  void functions() {
    chunks([&] { return module_.functions.size(); },
           [&](std::size_t begin, std::size_t end) {
             Module candidate = module_;
             candidate.functions.erase(candidate.functions.begin() + static_cast<std::ptrdiff_t>(begin),
                                       candidate.functions.begin() + static_cast<std::ptrdiff_t>(end));
             return !candidate.functions.empty() && offer(std::move(candidate), "functions");
           });
  }

  // The shortest beginning of the body that is interesting.
  void truncate(std::size_t f) {
    std::size_t low = 0, high = function(f).body->stms.size();
    while (low + 1 < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (offer(f, truncated(function(f), middle), "the end of a body"))
        high = std::min(middle, function(f).body->stms.size());
      else
        low = middle;
      low = std::min(low, high);
    }
  }

  void results(std::size_t f) {
    chunks([&] { return function(f).results.size(); },
           [&](std::size_t begin, std::size_t end) {
             std::vector<std::size_t> kept;
             for (std::size_t k = 0; k < function(f).results.size(); ++k)
               if (k < begin || k >= end) kept.push_back(k);
             return offer(f, with_results(function(f), kept), "results");
           });
  }

  void focus(std::size_t f) {
    for (std::size_t k = count_bodies(function(f)); k-- > 0;)
      if (offer(f, focused(function(f), k), "a nested body alone")) {
        results(f);
        k = std::min(k, count_bodies(function(f)));
      }
  }

  void cuts(std::size_t f, Cut how) {
    static constexpr const char* kWhat[] = {"statements as their first operands", "statements as their last operands",
                                            "statements as parameters", "statements as consumed parameters",
                                            "statements as constants"};
    std::vector<Value> all = statements(function(f));
    chunks([&] { return all.size(); },
           [&](std::size_t begin, std::size_t end) {
             const std::set<Value> removed(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                           all.begin() + static_cast<std::ptrdiff_t>(end));
             if (!offer(f, cut(function(f), removed, how), kWhat[static_cast<std::size_t>(how)])) return false;
             all = statements(function(f));
             return true;
           });
  }

  void unwrap(std::size_t f) {
    std::vector<Value> all = statements(function(f));
    for (std::size_t k = 0; k < all.size(); ++k)
      for (Function& candidate : unwrapped(function(f), all[k]))
        if (offer(f, std::move(candidate), "branches and loops")) {
          all = statements(function(f));
          break;
        }
  }

  void params(std::size_t f) {
    offer(f, without_unused_params(function(f)), "parameters");
    // One parameter in place of two of a type.
    for (std::size_t k = function(f).params.size(); k-- > 1;)
      for (std::size_t j = 0; j < k; ++j) {
        const Value from = function(f).params[k], to = function(f).params[j];
        if (function(f).type(from).same(function(f).type(to)) &&
            offer(f, replaced(function(f), from, to), "parameters"))
          break;
      }
    for (std::size_t k = function(f).sizes.size(); k-- > 0;) {
      const Value size = function(f).sizes[k];
      bool done = false;
      for (std::size_t j = 0; j < k && !done; ++j)
        done = offer(f, replaced(function(f), size, function(f).sizes[j]), "sizes");
      for (const std::int64_t number : {1, 2, 3})
        if (!done) done = offer(f, replaced(function(f), size, Scalar::integer(ScalarType::i64, number)), "sizes");
    }
  }

  // ---- what is simpler to say of the text ------------------------------------------------------------

  bool offer_text(const std::string& text, const std::string& what) {
    if (text == text_) return false;
    auto parsed = parse_module(text, module_.file);
    return parsed && offer(std::move(*parsed), what);
  }

  void texts() {
    // Attributes and certificates, all or one by one.
    static const std::regex kExtras(R"(#\[[^\]]*\]\s*|#\{[^}]*\}\s*|\bchecked )");
    replace_all(
        kExtras, [](const std::string&) { return std::vector<std::string>{""}; }, "attributes");
    static const std::regex kNumbers(R"(-?\b\d+(\.\d+)?(e[-+]?\d+)?(i8|i16|i32|i64|u8|u16|u32|u64|f16|f32|f64)\b)");
    replace_all(
        kNumbers,
        [](const std::string& number) {
          const std::size_t suffix = number.find_first_of("iuf");
          const std::string zero = number[suffix] == 'f' ? "0.0" : "0", one = number[suffix] == 'f' ? "1.0" : "1";
          return std::vector<std::string>{zero + number.substr(suffix), one + number.substr(suffix)};
        },
        "constants");
    static const std::regex kSizes(R"(\b\d\d*\b(?![.\w]))");
    replace_all(
        kSizes,
        [](const std::string& number) {
          return number == "1" || number == "0" ? std::vector<std::string>{} : std::vector<std::string>{"1", "2", "3"};
        },
        "sizes");
  }

  // Every match everywhere by its first replacement, then each match alone by each of its replacements.
  void replace_all(const std::regex& form, const std::function<std::vector<std::string>(const std::string&)>& by,
                   const std::string& what) {
    std::string all;
    std::string::const_iterator from = text_.begin();
    for (std::sregex_iterator match(text_.begin(), text_.end(), form), last; match != last; ++match) {
      all.append(from, (*match)[0].first);
      const std::vector<std::string> texts = by(match->str());
      all += texts.empty() ? match->str() : texts.front();
      from = (*match)[0].second;
    }
    all.append(from, text_.cend());
    if (offer_text(all, what)) return;
    for (std::size_t k = 0;; ++k) {
      const std::string text = text_;
      std::sregex_iterator match(text.begin(), text.end(), form), last;
      for (std::size_t skipped = 0; match != last && skipped < k; ++skipped) ++match;
      if (match == last) return;
      for (const std::string& replacement : by(match->str())) {
        if (replacement == match->str()) break;
        std::string candidate = text;
        candidate.replace(static_cast<std::size_t>(match->position()), static_cast<std::size_t>(match->length()),
                          replacement);
        if (offer_text(candidate, what)) break;
      }
    }
  }

  Module module_;
  const Oracle& oracle_;
  std::string text_;
  Measure measure_;
};

}  // namespace

Module reduce_ir(const Module& module, const Oracle& oracle) { return IrReducer(module, oracle).run(); }

}  // namespace aplc::reduce
