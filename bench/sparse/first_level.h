// What a search of depth 1 finds, as STile means it (section 5.4): every tile is made of the matrix as it is, so that
// ELL rows hold whole rows, with what blocks took already. Such plans would add non-zeros twice, and cannot be made;
// their cost by the model says what the second level is worth.
#pragma once

#include "passes/sparse/search.h"

namespace apl::bench {

// Nanoseconds of the cheapest plan of depth 1 for this order of the rows, plans of one format included.
double first_level_cost(const sparse::Csr& matrix, const sparse::Profile& profile, const sparse::SearchOptions& how,
                        const std::vector<std::int32_t>& order);

}  // namespace apl::bench
