// Reverse Cuthill-McKee by Boost.Graph.
#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/cuthill_mckee_ordering.hpp>
#include <boost/graph/properties.hpp>
#include <utility>

#include "passes/sparse/order.h"

namespace apl::sparse {

std::vector<std::int32_t> order_by_bandwidth(const Csr& matrix) {
  using Graph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                                   boost::no_property, std::uint32_t, std::size_t>;
  const bool square = matrix.rows == matrix.columns;
  const auto rows = static_cast<std::uint32_t>(matrix.rows);
  const std::uint32_t vertices = square ? rows : rows + static_cast<std::uint32_t>(matrix.columns);
  if (vertices == 0) return {};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  edges.reserve(2 * matrix.column.size());
  for (std::uint32_t row = 0; row < rows; ++row)
    for (const std::int32_t column : matrix.row(row)) {
      const std::uint32_t other = static_cast<std::uint32_t>(column) + (square ? 0 : rows);
      if (other == row) continue;
      edges.emplace_back(row, other);
      edges.emplace_back(other, row);
    }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  const Graph graph(boost::edges_are_sorted, edges.begin(), edges.end(), vertices);
  std::vector<std::uint32_t> place(vertices);
  std::vector<boost::default_color_type> colour(vertices);
  const auto index = boost::get(boost::vertex_index, graph);
  boost::cuthill_mckee_ordering(graph, place.rbegin(), boost::make_iterator_property_map(colour.begin(), index),
                                boost::make_out_degree_map(graph));
  std::vector<std::int32_t> order;
  for (const std::uint32_t vertex : place)
    if (vertex < rows) order.push_back(static_cast<std::int32_t>(vertex));
  return order;
}

}  // namespace apl::sparse
