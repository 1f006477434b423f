#include "tessera/partitioner/internal/transport.hpp"

// g++ 12 mistakes the single row start of the graph's default constructor for an overrun.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Warray-bounds"
#endif

#include <algorithm>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/successive_shortest_path_nonnegative_weights.hpp>
#include <numeric>
#include <optional>
#include <utility>

namespace tessera::partitioner::internal {
namespace {

// The edges are in three flat lists: a graph of linked edges takes four times as long to build as
// to use.
using Graph = boost::compressed_sparse_row_graph<boost::directedS>;
using Edge = boost::graph_traits<Graph>::edge_descriptor;

// The network is source -> cell as home -> cell as holder -> sink. The flow starts with everything
// that can stay at home, and the graph holds the remaining capacity of each edge, forwards and
// backwards. Staying costs nothing, so no weight is negative and the flow that shortest paths add
// is the cheapest in all.
class Network {
  template <class T>
  auto of_vertices(std::vector<T>& list) {
    return boost::make_iterator_property_map(list.begin(),
                                             boost::get(boost::vertex_index, *graph_));
  }
  template <class T>
  auto of_edges(std::vector<T>& list) {
    return boost::make_iterator_property_map(list.begin(), boost::get(boost::edge_index, *graph_));
  }

 public:
  Network(const Transport& transport, const Travel& travel) : transport_(transport) {
    const std::int64_t per_step = weight_per_step();
    for (std::int64_t cell = 0; cell < transport.cells(); ++cell) add_cell(cell);
    for (std::int64_t dx = 0; dx < travel.x_end(); ++dx)
      for (std::int64_t dy = dx == 0; dy < travel.y_end[static_cast<std::size_t>(dx)]; ++dy)
        add_displacement(dx, dy, (dx + dy) * per_step + 1);
    build();
  }

  Routing any() {
    std::vector<Edge> predecessor(vertices());
    std::vector<boost::default_color_type> color(vertices());
    std::vector<std::int64_t> distance(vertices());
    boost::boykov_kolmogorov_max_flow(*graph_, of_edges(capacity_), of_edges(residual_),
                                      of_edges(reverse_), of_vertices(predecessor),
                                      of_vertices(color), of_vertices(distance),
                                      boost::get(boost::vertex_index, *graph_), source(), sink());
    return routing();
  }

  Routing cheapest() {
    std::vector<Edge> predecessor(vertices());
    std::vector<double> distance(vertices()), distance_before(vertices());
    boost::successive_shortest_path_nonnegative_weights(
        *graph_, source(), sink(), of_edges(capacity_), of_edges(residual_), of_edges(weight_),
        of_edges(reverse_), boost::get(boost::vertex_index, *graph_), of_vertices(predecessor),
        of_vertices(distance), of_vertices(distance_before));
    return routing();
  }

 private:
  // Edge number 2 i is pair i forwards, edge 2 i + 1 is pair i backwards.
  struct Pair {
    std::size_t from = 0, to = 0;
    std::int64_t forwards = 0, backwards = 0;  // capacities
    std::int64_t weight = 0;
  };
  struct Lane {
    Shipment shipment;
    std::size_t pair = 0;
  };

  std::size_t source() const { return static_cast<std::size_t>(2 * transport_.cells()); }
  std::size_t sink() const { return source() + 1; }
  std::size_t vertices() const { return sink() + 1; }
  static std::size_t home(std::int64_t cell) { return static_cast<std::size_t>(cell); }
  std::size_t holder(std::int64_t cell) const {
    return static_cast<std::size_t>(transport_.cells() + cell);
  }
  // The weight of one step. It is more than all moved blocks together, so that travel is compared
  // first, unless a path could then cost more than a double holds exactly.
  std::int64_t weight_per_step() const {
    const std::int64_t all =
        std::accumulate(transport_.blocks.begin(), transport_.blocks.end(), std::int64_t{0});
    const Dims& splits = transport_.splits;
    const std::int64_t longest = 2 * transport_.cells() * (splits.x + splits.y);
    return std::max<std::int64_t>(1, std::min(all + 1, (std::int64_t{1} << 52) / longest));
  }
  // Remaining capacity of the forward edge of a pair.
  std::int64_t left(std::size_t pair) const { return residual_[place_[2 * pair]]; }

  void add_cell(std::int64_t cell) {
    const auto at = static_cast<std::size_t>(cell);
    const std::int64_t blocks = transport_.blocks[at], capacity = transport_.capacity[at];
    const std::int64_t stay = std::min({blocks, transport_.most_in_one[at], capacity});
    if (blocks > stay) {
      supplies_.push_back(pairs_.size());
      pairs_.push_back({source(), home(cell), blocks - stay, 0, 0});
    }
    if (transport_.most_in_one[at] > 0)
      pairs_.push_back({home(cell), holder(cell), transport_.most_in_one[at] - stay, stay, 0});
    if (capacity > stay) pairs_.push_back({holder(cell), sink(), capacity - stay, 0, 0});
  }

  void add_displacement(std::int64_t dx, std::int64_t dy, std::int64_t weight) {
    for (std::int64_t cell = 0; cell < transport_.cells(); ++cell) {
      const std::int64_t most =
          std::min(transport_.most_away, transport_.most_in_one[static_cast<std::size_t>(cell)]);
      const std::int64_t to = transport_.holder(cell, dx, dy);
      if (most == 0 || transport_.capacity[static_cast<std::size_t>(to)] == 0) continue;
      lanes_.push_back({{cell, dx, dy, most}, pairs_.size()});
      pairs_.push_back({home(cell), holder(to), most, 0, weight});
    }
  }

  // Sorts the edges by their begin vertex, as the graph requires.
  void build() {
    const auto begin_of = [&](std::size_t edge) {
      return edge % 2 == 0 ? pairs_[edge / 2].from : pairs_[edge / 2].to;
    };
    std::vector<std::size_t> next(vertices() + 1);
    place_.resize(2 * pairs_.size());
    for (std::size_t edge = 0; edge < place_.size(); ++edge) ++next[begin_of(edge) + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (std::size_t edge = 0; edge < place_.size(); ++edge) place_[edge] = next[begin_of(edge)]++;
    std::vector<std::pair<std::size_t, std::size_t>> ends(place_.size());
    capacity_.resize(place_.size());
    weight_.resize(place_.size());
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      const Pair& pair = pairs_[i];
      const std::size_t there = place_[2 * i], back = place_[2 * i + 1];
      ends[there] = {pair.from, pair.to}, ends[back] = {pair.to, pair.from};
      capacity_[there] = pair.forwards, capacity_[back] = pair.backwards;
      weight_[there] = static_cast<double>(pair.weight), weight_[back] = -weight_[there];
    }
    graph_.emplace(boost::edges_are_sorted, ends.begin(), ends.end(), vertices());
    residual_ = capacity_;
    reverse_.resize(place_.size());
    const auto [first, last] = boost::edges(*graph_);
    const std::vector<Edge> edges(first, last);
    for (std::size_t i = 0; i < place_.size(); ++i) reverse_[place_[i]] = edges[place_[i ^ 1]];
  }

  Routing routing() const {
    Routing result;
    for (const std::size_t pair : supplies_) result.unplaced += left(pair);
    for (const Lane& lane : lanes_) {
      Shipment shipment = lane.shipment;
      shipment.blocks -= left(lane.pair);
      if (shipment.blocks == 0) continue;
      result.shipments.push_back(shipment);
      result.moved += shipment.blocks;
      result.travel += shipment.blocks * (shipment.dx + shipment.dy);
    }
    // Lanes are in order of distance, so a stable sort keeps that order inside each cell.
    std::stable_sort(result.shipments.begin(), result.shipments.end(),
                     [](const Shipment& a, const Shipment& b) { return a.from < b.from; });
    return result;
  }

  const Transport& transport_;
  std::vector<Pair> pairs_;
  std::vector<std::size_t> supplies_;  // the pairs that begin at the source
  std::vector<Lane> lanes_;
  std::vector<std::size_t> place_;  // index in the lists below, for each edge number
  std::optional<Graph> graph_;      // empty until all pairs are known
  std::vector<std::int64_t> capacity_, residual_;
  // Whole numbers, held as double because the algorithm adds its infinity to itself.
  std::vector<double> weight_;
  std::vector<Edge> reverse_;
};

}  // namespace

Routing any_routing(const Transport& transport, const Travel& travel) {
  return Network(transport, travel).any();
}

Routing cheapest_routing(const Transport& transport, const Travel& travel) {
  return Network(transport, travel).cheapest();
}

}  // namespace tessera::partitioner::internal
