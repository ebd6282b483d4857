// Attention: a weighted sum whose weights are made of scores that no array needs to hold.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/module.h"
#include "passes/analysis/contractions.h"
#include "passes/extract_kernels/interchange.h"
#include "passes/extract_kernels/segment_order.h"

namespace apl {

// What a map over queries computes for query i, as code of scalars (attention_match.cpp):
//
//   s_j = score(r_ij, ...)       r_ij: a contraction of the query with key j
//   m   = max over j of s_j      if the weights have a maximum
//   w_j = exp(s_j - m)           or any other code of s_j, without a maximum
//   t   = sum over j of w_j      any number of times
//   o_c = sum over j of w_j * v_jc
//   result_c = after(o_c, t, m, ...)
struct Attention {
  Location location;
  std::vector<Value> indices;  // of the map; the query is the last
  std::vector<Poly> widths;
  Poly keys, columns;
  Value key, column;  // j and c in the code below
  // Statements of the map's lambda that are done once a query: views and scalars, without reductions over keys.
  std::vector<Stm> around;
  Stm contraction;          // r: a redomap, which reads key j
  std::vector<Stm> before;  // what it needs of key j
  bool branched = false;    // it stood in a branch, and is made whatever that decides
  std::vector<Stm> score;   // from r to s
  Operand scored;           // s
  Value most;               // m; none: there is no maximum
  std::vector<Stm> weight;  // from s to w, where there is no maximum
  Operand weighted;         // w there
  std::vector<Stm> value;   // v
  Operand valued;
  std::vector<Value> sums;  // t
  std::vector<Stm> after;   // from o, as `summed`, to the result
  Value summed;
  Operand result;
  ScalarType element{};  // of weights and sums
};

// Of a map without inputs (flatten). nullopt: it is no sum of products with weights that are made of a contraction and
// put in proportion to each other.
using AttentionMatch = std::variant<Attention, Refusal>;
std::optional<AttentionMatch> match_attention(const Stm& flat, const Replicated& replicated, ValueTable& values);
// Whether that is worth asking.
bool may_be_attention(const Stm& map, const ValueTable& values);

// Maps over the queries that yield rows of scores and weights as one map, wherever that is an attention. The
// refusals are of those that are none after all.
BodyPtr group_attention(const BodyPtr& body, const Replicated& replicated, ValueTable& values,
                        std::vector<Refusal>& refused);

// The kernel, and when it may run.
struct StreamedAttention {
  struct Version {
    std::string name;
    Value fits;
    std::vector<Stm> kernel;
    std::vector<Value> results;
  };
  std::vector<Stm> before;  // of the host
  std::vector<Version> versions;
};
std::variant<StreamedAttention, Refusal> stream_attention(const Stm& flat, const Attention& attention,
                                                          const HostViews& views, const std::string& prefix,
                                                          ValueTable& values);

}  // namespace apl
