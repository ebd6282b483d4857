// One statement out of two.
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <unordered_map>

#include "ir/builder.h"
#include "ir/walk.h"
#include "passes/fuse/fuse.h"

namespace apl {

namespace {

void add_unique(std::vector<Attribute>& to, const std::vector<Attribute>& from) {
  for (const Attribute& attribute : from) {
    const bool there = std::ranges::any_of(to, [&](const Attribute& other) {
      return other.name == attribute.name && other.arguments == attribute.arguments;
    });
    if (!there) to.push_back(attribute);
  }
}

// The parts of a fused Screma, in the order that Screma wants them.
struct Assembly {
  std::vector<Operand> reduced, mapped;              // results of the lambda
  std::vector<Value> reduced_values, mapped_values;  // what they are bound to
  std::vector<ReduceOp> reduces;

  void add(const Screma& screma, const std::vector<Operand>& results, const std::vector<Value>& pattern,
           const std::vector<bool>* kept) {
    const std::size_t count = screma.reduced_count();
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (k < count) {
        reduced.push_back(results[k]);
        reduced_values.push_back(pattern[k]);
      } else if (kept == nullptr || (*kept)[k]) {
        mapped.push_back(results[k]);
        mapped_values.push_back(pattern[k]);
      }
    }
    reduces.insert(reduces.end(), screma.reduces.begin(), screma.reduces.end());
  }

  Stm finish(Screma screma, std::vector<Stm> stms, const Stm& at) && {
    reduced.insert(reduced.end(), mapped.begin(), mapped.end());
    reduced_values.insert(reduced_values.end(), mapped_values.begin(), mapped_values.end());
    screma.reduces = std::move(reduces);
    screma.map.body = make_body(std::move(stms), std::move(reduced));
    Stm stm = at;
    stm.pattern = std::move(reduced_values);
    stm.op = std::move(screma);
    return stm;
  }
};

// The inputs of a fused Screma: each once.
class Inputs {
 public:
  explicit Inputs(Screma& screma) : screma_(screma) {
    for (const auto& [input, param] : ranges::views::zip(screma.inputs, screma.map.params)) rows_.emplace(input, param);
  }

  // Adds one unless it is there, and says what its row is called.
  void add(Value input, Value param, Substitution& renaming) {
    const auto [row, is_new] = rows_.emplace(input, param);
    if (!is_new) {
      renaming.insert_or_assign(param, Operand(row->second));
      return;
    }
    screma_.inputs.push_back(input);
    screma_.map.params.push_back(param);
  }

 private:
  Screma& screma_;
  std::unordered_map<Value, Value> rows_;
};

}  // namespace

Stm fuse_vertically(const Stm& producer, const Stm& consumer, const std::vector<Link>& links,
                    const std::vector<bool>& kept, ValueTable& values) {
  const Screma& p = std::get<Screma>(producer.op);
  const Screma& c = std::get<Screma>(consumer.op);
  Screma fused{.widths = p.widths, .indices = p.indices, .inputs = p.inputs, .map = {.params = p.map.params}};
  std::vector<Stm> stms = p.map.body->stms;
  Substitution renaming;
  for (const auto& [own, index] : ranges::views::zip(c.indices, p.indices))
    renaming.insert_or_assign(own, Operand(index));
  std::vector<bool> linked(c.inputs.size(), false);
  for (const Link& link : links) {
    linked[link.input] = true;
    Operand row = p.map.body->results[link.result];
    if (!link.rows.empty()) {
      const Value view = values.add(values.type(c.map.params[link.input]), values.name(c.map.params[link.input]));
      stms.push_back({.pattern = {view}, .op = Rearrange{row.value(), link.rows}, .location = consumer.location});
      row = view;
    }
    renaming.insert_or_assign(c.map.params[link.input], row);
  }
  Inputs inputs(fused);
  for (const auto& [input, param, is_linked] : ranges::views::zip(c.inputs, c.map.params, linked))
    if (!is_linked) inputs.add(input, param, renaming);
  const BodyPtr body = substitute(c.map.body, renaming, values);
  stms.insert(stms.end(), body->stms.begin(), body->stms.end());
  std::vector<Operand> results;
  for (const Operand& result : body->results) results.push_back(substitute(result, renaming));

  Assembly assembly;
  assembly.add(p, p.map.body->results, producer.pattern, &kept);
  assembly.add(c, results, consumer.pattern, nullptr);
  Stm stm = std::move(assembly).finish(std::move(fused), std::move(stms), consumer);
  add_unique(stm.attributes, producer.attributes);
  stm.certificates.insert(stm.certificates.end(), producer.certificates.begin(), producer.certificates.end());
  return stm;
}

Stm fuse_horizontally(const std::vector<Stm>& parts, ValueTable& values) {
  const Screma& first = std::get<Screma>(parts.front().op);
  Screma fused{.widths = first.widths, .indices = first.indices};
  Inputs inputs(fused);
  std::vector<Stm> stms;
  Assembly assembly;
  for (const Stm& part : parts) {
    const Screma& screma = std::get<Screma>(part.op);
    Substitution renaming;
    for (const auto& [own, index] : ranges::views::zip(screma.indices, first.indices))
      if (own != index) renaming.emplace(own, Operand(index));
    for (const auto& [input, param] : ranges::views::zip(screma.inputs, screma.map.params))
      inputs.add(input, param, renaming);
    const BodyPtr body = substitute(screma.map.body, renaming, values);
    stms.insert(stms.end(), body->stms.begin(), body->stms.end());
    std::vector<Operand> results;
    for (const Operand& result : body->results) results.push_back(substitute(result, renaming));
    assembly.add(screma, results, part.pattern, nullptr);
  }
  Stm stm = std::move(assembly).finish(std::move(fused), std::move(stms), parts.back());
  for (std::size_t k = parts.size() - 1; k-- > 0;) {
    add_unique(stm.attributes, parts[k].attributes);
    stm.certificates.insert(stm.certificates.end(), parts[k].certificates.begin(), parts[k].certificates.end());
  }
  return stm;
}

}  // namespace apl
