#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <boost/graph/topological_sort.hpp>
#include <iterator>
#include <set>

#include "tessera/base/error.hpp"
#include "tessera/runtime/program.hpp"

namespace tessera::runtime {
namespace {

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

// Appends the nodes in the order of their numbers.
void flatten(const std::vector<Node>& nodes, std::vector<const Node*>& flat) {
  for (const Node& node : nodes) {
    flat.push_back(&node);
    flatten(node.body, flat);
  }
}

// Adds edges from every node to the nodes that may run directly after it. `before` are the nodes
// that may run directly before `nodes`. Returns those that may run last.
std::vector<int> add_edges(const std::vector<Node>& nodes, std::vector<int> before, Graph& graph) {
  for (const Node& node : nodes) {
    for (const int from : before) add_edge(std::size_t(from), std::size_t(node.number), graph);
    before = {node.number};
    if (node.is_step()) continue;
    const std::vector<int> after = add_edges(node.body, before, graph);
    if (node.kind == NodeKind::Repeat) {
      for (const int from : after) add_edge(std::size_t(from), std::size_t(node.number), graph);
    } else {
      before.insert(before.end(), after.begin(), after.end());
    }
  }
  return before;
}

// Returns the position of each node: the strong components of the flow, numbered in topological
// order. A loop is one component.
std::vector<int> stages_of(const Program& program, std::size_t count) {
  Graph flow(count);
  add_edges(program.nodes, {}, flow);
  std::vector<int> component(count);
  const int components = boost::strong_components(
      flow, boost::make_iterator_property_map(component.begin(), get(boost::vertex_index, flow)));
  std::set<std::pair<int, int>> edges;
  for (const auto edge : boost::make_iterator_range(boost::edges(flow))) {
    const int from = component[source(edge, flow)], to = component[target(edge, flow)];
    if (from != to) edges.emplace(from, to);
  }
  const Graph condensed(edges.begin(), edges.end(), std::size_t(components));
  std::vector<std::size_t> last_to_first;
  boost::topological_sort(condensed, std::back_inserter(last_to_first));
  std::vector<int> place(last_to_first.size());
  for (std::size_t i = 0; i < last_to_first.size(); ++i)
    place[last_to_first[i]] = components - 1 - int(i);
  for (int& stage : component) stage = place[std::size_t(stage)];
  return component;
}

std::string kind_and_label(const Node& node) {
  const std::string kind(to_string(node.kind)), label(node.label());
  return label.empty() ? kind : kind + " " + label;
}

// A loop is named after its first step. A step of a network names its scope.
std::string stage_name(const Program& program, const Node& node,
                       const std::vector<const Node*>& flat) {
  const std::string scope = node.scope < 0 ? "" : program.scopes[std::size_t(node.scope)] + ": ";
  if (node.kind != NodeKind::Repeat) return scope + kind_and_label(node);
  for (std::size_t i = std::size_t(node.number); i < flat.size(); ++i)
    if (flat[i]->is_step()) return scope + "loop " + std::string(flat[i]->label());
  return scope + "loop";
}

}  // namespace

Liveness liveness(const Program& program) {
  std::vector<const Node*> flat;
  flatten(program.nodes, flat);
  Liveness result;
  result.stage_of = stages_of(program, flat.size());
  const int count =
      flat.empty() ? 0 : 1 + *std::max_element(result.stage_of.begin(), result.stage_of.end());
  result.stages.resize(std::size_t(count));
  std::vector<Liveness::Life> lives(program.buffers.size(), {count, -1});
  for (std::size_t i = 0; i < flat.size(); ++i) {
    const int stage = result.stage_of[i];
    std::string& name = result.stages[std::size_t(stage)];
    if (name.empty()) name = stage_name(program, *flat[i], flat);
    for (const auto* ids : {&flat[i]->reads, &flat[i]->writes})
      for (const BufferId id : *ids) {
        Liveness::Life& life = lives[std::size_t(id.value)];
        life = {std::min(life.first, stage), std::max(life.last, stage)};
      }
  }
  for (std::size_t b = 0; b < lives.size(); ++b) {
    if (program.buffers[b].resident) lives[b] = {0, std::max(0, count - 1)};
    TESSERA_ASSERT(lives[b].first <= lives[b].last);
  }
  result.lives = std::move(lives);
  return result;
}

}  // namespace tessera::runtime
