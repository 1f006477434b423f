#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/runtime/program.hpp"

namespace tessera::runtime {
namespace {

// Appends the nodes in the order of their numbers.
void flatten(const std::vector<Node>& nodes, std::vector<const Node*>& flat) {
  for (const Node& node : nodes) {
    flat.push_back(&node);
    flatten(node.body, flat);
  }
}

// Numbers the positions of nodes, from `next` on. Nodes run in the order in which they are
// declared, but for those of a loop, which may run again before others of it.
void number_positions(const std::vector<Node>& nodes, bool in_loop, int& next,
                      std::vector<int>& stage_of) {
  for (const Node& node : nodes) {
    stage_of[std::size_t(node.number)] = in_loop ? next - 1 : next++;
    number_positions(node.body, in_loop || node.kind == NodeKind::Repeat, next, stage_of);
  }
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
  result.stage_of.resize(flat.size());
  int count = 0;
  number_positions(program.nodes, /*in_loop=*/false, count, result.stage_of);
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
