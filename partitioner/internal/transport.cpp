#include "tessera/partitioner/internal/transport.hpp"

// g++ 12 takes the empty boost::optional of an edge iterator's end for uninitialised memory.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <boost/graph/successive_shortest_path_nonnegative_weights.hpp>
#include <numeric>
#include <tuple>

namespace tessera::partitioner::internal {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using Edge = Traits::edge_descriptor;
using VertexFields =
    boost::property<boost::vertex_predecessor_t, Edge,
                    boost::property<boost::vertex_color_t, boost::default_color_type,
                                    boost::property<boost::vertex_distance_t, std::int64_t>>>;
using EdgeFields = boost::property<
    boost::edge_capacity_t, std::int64_t,
    boost::property<boost::edge_residual_capacity_t, std::int64_t,
                    boost::property<boost::edge_reverse_t, Edge,
                                    boost::property<boost::edge_weight_t, std::int64_t>>>>;
using Graph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, VertexFields, EdgeFields>;

// source -> cell as home -> cell as holder -> sink. Flow starts with all that can stay at home: the
// graph holds what that leaves of each edge, forwards and backwards. Staying costs nothing, so no
// weight is negative and what is added by shortest paths is cheapest in all.
class Network {
 public:
  Network(const Transport& transport, const Travel& travel)
      : transport_(transport), graph_(static_cast<std::size_t>(2 * transport.cells() + 2)) {
    const std::int64_t all =
        std::accumulate(transport.blocks.begin(), transport.blocks.end(), std::int64_t{0});
    for (std::int64_t cell = 0; cell < transport.cells(); ++cell) add_cell(cell);
    for (std::int64_t dx = 0; dx < travel.x_end(); ++dx)
      for (std::int64_t dy = dx == 0; dy < travel.y_end[static_cast<std::size_t>(dx)]; ++dy)
        add_displacement(dx, dy, (dx + dy) * (all + 1) + 1);
  }

  Routing any() {
    boost::boykov_kolmogorov_max_flow(graph_, source(), sink());
    return routing();
  }

  Routing cheapest() {
    boost::successive_shortest_path_nonnegative_weights(graph_, source(), sink());
    return routing();
  }

 private:
  struct Lane {
    Shipment shipment;
    Edge edge;
  };

  std::size_t source() const { return static_cast<std::size_t>(2 * transport_.cells()); }
  std::size_t sink() const { return source() + 1; }
  static std::size_t home(std::int64_t cell) { return static_cast<std::size_t>(cell); }
  std::size_t holder(std::int64_t cell) const {
    return static_cast<std::size_t>(transport_.cells() + cell);
  }
  std::int64_t left(const Edge& edge) const {
    return boost::get(boost::edge_residual_capacity, graph_, edge);
  }

  Edge add_edge(std::size_t from, std::size_t to, std::int64_t forwards, std::int64_t backwards,
                std::int64_t weight) {
    const Edge edge = boost::add_edge(from, to, graph_).first;
    const Edge reverse = boost::add_edge(to, from, graph_).first;
    for (const auto& [e, other, capacity, cost] : {std::tuple(edge, reverse, forwards, weight),
                                                   std::tuple(reverse, edge, backwards, -weight)}) {
      boost::put(boost::edge_capacity, graph_, e, capacity);
      boost::put(boost::edge_reverse, graph_, e, other);
      boost::put(boost::edge_weight, graph_, e, cost);
    }
    return edge;
  }

  void add_cell(std::int64_t cell) {
    const auto at = static_cast<std::size_t>(cell);
    const std::int64_t blocks = transport_.blocks[at], capacity = transport_.capacity[at];
    const std::int64_t stay = std::min({blocks, transport_.most_in_one[at], capacity});
    if (blocks > stay) supplies_.push_back(add_edge(source(), home(cell), blocks - stay, 0, 0));
    if (transport_.most_in_one[at] > 0)
      add_edge(home(cell), holder(cell), transport_.most_in_one[at] - stay, stay, 0);
    if (capacity > stay) add_edge(holder(cell), sink(), capacity - stay, 0, 0);
  }

  void add_displacement(std::int64_t dx, std::int64_t dy, std::int64_t weight) {
    for (std::int64_t cell = 0; cell < transport_.cells(); ++cell) {
      const std::int64_t most = transport_.most_in_one[static_cast<std::size_t>(cell)];
      const std::int64_t to = transport_.holder(cell, dx, dy);
      if (most == 0 || transport_.capacity[static_cast<std::size_t>(to)] == 0) continue;
      lanes_.push_back({{cell, dx, dy, most}, add_edge(home(cell), holder(to), most, 0, weight)});
    }
  }

  Routing routing() const {
    Routing result;
    for (const Edge& edge : supplies_) result.unplaced += left(edge);
    for (const Lane& lane : lanes_) {
      Shipment shipment = lane.shipment;
      shipment.blocks -= left(lane.edge);
      if (shipment.blocks == 0) continue;
      result.shipments.push_back(shipment);
      result.moved += shipment.blocks;
      result.travel += shipment.blocks * (shipment.dx + shipment.dy);
    }
    // Lanes lie by distance.
    std::stable_sort(result.shipments.begin(), result.shipments.end(),
                     [](const Shipment& a, const Shipment& b) { return a.from < b.from; });
    return result;
  }

  const Transport& transport_;
  Graph graph_;
  std::vector<Edge> supplies_;
  std::vector<Lane> lanes_;
};

}  // namespace

Routing any_routing(const Transport& transport, const Travel& travel) {
  return Network(transport, travel).any();
}

Routing cheapest_routing(const Transport& transport, const Travel& travel) {
  return Network(transport, travel).cheapest();
}

}  // namespace tessera::partitioner::internal
