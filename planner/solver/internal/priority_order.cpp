#include "tessera/planner/solver/internal/priority_order.hpp"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <boost/graph/topological_sort.hpp>
#include <iterator>

namespace tessera::planner::solver::internal {

namespace {

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

// Returns the strong component with the lowest group among those that contain a cycle.
std::vector<GroupId> find_circle(const Graph& graph,
                                 const std::vector<std::pair<GroupId, GroupId>>& priorities) {
  const std::size_t groups = boost::num_vertices(graph);
  std::vector<std::int32_t> component(groups);
  boost::strong_components(graph, boost::make_iterator_property_map(
                                      component.begin(), boost::get(boost::vertex_index, graph)));
  for (std::size_t g = 0; g < groups; ++g) {
    std::vector<GroupId> members;
    for (std::size_t h = g; h < groups; ++h)
      if (component[h] == component[g]) members.push_back({static_cast<std::int32_t>(h)});
    if (members.size() > 1) return members;
    for (const auto& [first, later] : priorities)
      if (first == later && first == members[0]) return members;
  }
  return {};
}

}  // namespace

PriorityOrder order_groups(std::size_t groups,
                           const std::vector<std::pair<GroupId, GroupId>>& priorities) {
  // An edge points to the group that must come first, because Boost lists a vertex after all
  // vertices it points to.
  Graph graph(groups);
  for (const auto& [first, later] : priorities)
    boost::add_edge(static_cast<std::size_t>(later.value), static_cast<std::size_t>(first.value),
                    graph);
  std::vector<std::size_t> order;
  try {
    boost::topological_sort(graph, std::back_inserter(order));
  } catch (const boost::not_a_dag&) {
    return {{}, find_circle(graph, priorities)};
  }
  PriorityOrder result{std::vector<std::int32_t>(groups), {}};
  for (std::size_t i = 0; i < groups; ++i) result.rank[order[i]] = static_cast<std::int32_t>(i);
  return result;
}

}  // namespace tessera::planner::solver::internal
