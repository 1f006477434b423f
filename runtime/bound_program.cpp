#include "tessera/runtime/internal/bound_program.hpp"

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"

namespace tessera::runtime::internal {
namespace {

using device::Access;

Node* find(std::vector<Node>& nodes, int number) {
  for (Node& node : nodes) {
    if (node.number == number) return &node;
    if (Node* inside = find(node.body, number)) return inside;
  }
  return nullptr;
}

void note_access(const std::vector<Node>& nodes, std::vector<std::vector<Access>>& access) {
  const auto add = [](Access& has, Access more) {
    has = Access(static_cast<int>(has) | static_cast<int>(more));
  };
  for (const Node& node : nodes) {
    auto& of_node = access[std::size_t(node.number)];
    for (const BufferId id : node.reads) add(of_node[std::size_t(id.value)], Access::Read);
    for (const BufferId id : node.writes) add(of_node[std::size_t(id.value)], Access::Write);
    note_access(node.body, access);
  }
}

}  // namespace

struct BoundProgram::Walk {
  device::Engine& engine;
  const PassOptions& options;
  int stage = -1;
  std::int64_t begun = 0;
};

BufferId BoundProgram::add_buffer(std::string name, bool resident) {
  TESSERA_ASSERT(access_.empty());
  if (!program_.scopes.empty()) name = program_.scopes.back() + ": " + name;
  program_.buffers.push_back({std::move(name), resident, Bytes()});
  return BufferId(std::ssize(program_.buffers) - 1);
}

int BoundProgram::begin_scope(std::string name) {
  program_.scopes.push_back(std::move(name));
  return static_cast<int>(program_.scopes.size()) - 1;
}

Node& BoundProgram::add(Node node, Action action, Question question) {
  TESSERA_ASSERT(access_.empty());
  node.number = static_cast<int>(actions_.size());
  node.scope = static_cast<int>(program_.scopes.size()) - 1;
  control_tiles_.emplace_back();
  scope_of_.push_back(node.scope);
  actions_.push_back(std::move(action));
  questions_.push_back(std::move(question));
  open_->push_back(std::move(node));
  return open_->back();
}

int BoundProgram::step(NodeKind kind, std::optional<Phase> phase, Uses uses, Action action,
                       std::int64_t tiles) {
  TESSERA_ASSERT(phase.has_value() == (kind == NodeKind::Exchange || kind == NodeKind::Compute));
  Node node{.kind = kind, .phase = phase};
  node.tiles = tiles;
  node.reads = std::move(uses.reads);
  node.writes = std::move(uses.writes);
  return add(std::move(node), std::move(action), {}).number;
}

void BoundProgram::nest(Node node, Question question, const std::function<void()>& body) {
  std::vector<Node> inside;
  Node& outer = add(std::move(node), {}, std::move(question));
  // Nodes are added to `inside` while the body is open, so the reference to `outer` stays valid.
  std::vector<Node>* const before = std::exchange(open_, &inside);
  body();
  open_ = before;
  outer.body = std::move(inside);
}

void BoundProgram::repeat(std::string text, Question question, const std::function<void()>& body) {
  nest({.kind = NodeKind::Repeat, .question = std::move(text)}, std::move(question), body);
}

void BoundProgram::when(std::string text, Question question, const std::function<void()>& body) {
  nest({.kind = NodeKind::If, .question = std::move(text)}, std::move(question), body);
}

void BoundProgram::controlled_repeat(std::string text, Controlled by, Question question,
                                     const std::function<void()>& body) {
  Node node{.kind = NodeKind::Repeat, .question = std::move(text)};
  node.reads = std::move(by.reads);
  node.controlled = true;
  const std::size_t number = control_tiles_.size();
  nest(std::move(node), std::move(question), body);
  control_tiles_[number] = by.tile;
}

void BoundProgram::finish() {
  live_ = liveness(program_);
  access_.assign(actions_.size(), std::vector<Access>(program_.buffers.size(), Access::None));
  note_access(program_.nodes, access_);
}

void BoundProgram::check_steps(const StepOrder& order) const {
  TESSERA_ASSERT(step_order(program_) == order);
}

device::SlotSpec BoundProgram::slot(BufferId buffer, TileId tile, std::int64_t rows,
                                    std::int64_t row_bytes, device::SlotKind kind,
                                    std::int64_t count) {
  TESSERA_ASSERT(!access_.empty());
  Buffer& entry = program_.buffers[std::size_t(buffer.value)];
  entry.largest = std::max(entry.largest, Bytes(rows * row_bytes));
  const Liveness::Life life = live_.lives[std::size_t(buffer.value)];
  return {tile, entry.name, count * rows, row_bytes, kind, life.first, life.last, buffer.value};
}

Node& BoundProgram::node(int number) {
  Node* const found = find(program_.nodes, number);
  TESSERA_ASSERT(found != nullptr);
  return *found;
}

void BoundProgram::set_moves(int number, Bytes moves) { node(number).moves = moves; }
void BoundProgram::set_tiles(int number, std::int64_t tiles) { node(number).tiles = tiles; }

void BoundProgram::enter(const Node& node, Walk& state) const {
  const int stage = live_.stage_of[std::size_t(node.number)];
  if (stage != state.stage) state.engine.begin_stage(stage);
  state.stage = stage;
  state.engine.allow(node.label(), access_[std::size_t(node.number)]);
}

void BoundProgram::note_ran(const Node& node, const device::Engine& engine) {
  ran_.resize(engine.ledger().steps.size(), node.number);
}

bool BoundProgram::walk(const std::vector<Node>& nodes, Walk& state) {
  for (const Node& node : nodes) {
    const auto ask = [&] {
      enter(node, state);
      if (node.controlled)
        state.engine.control(Phase::Control, control_tiles_[std::size_t(node.number)]);
      note_ran(node, state.engine);
      return questions_[std::size_t(node.number)]();
    };
    if (node.kind == NodeKind::Repeat) {
      while (ask())
        if (!walk(node.body, state)) return false;
    } else if (node.kind == NodeKind::If) {
      if (ask() && !walk(node.body, state)) return false;
    } else {
      if (state.options.stop.stop_requested()) return false;
      if (state.options.progress) state.options.progress({node.label(), state.begun});
      ++state.begun;
      enter(node, state);
      actions_[std::size_t(node.number)]();
      note_ran(node, state.engine);
    }
  }
  return true;
}

bool BoundProgram::run(device::Engine& engine, const PassOptions& options) {
  damage_ = {};
  ran_.clear();
  refuse_layer_options(program_.name, options);
  const TileOptions own = tile_options(options);
  if (own.struck != nullptr) own.struck->reset();
  if (own.fault) engine.inject(*own.fault, own.struck);
  engine.begin_program();
  if (options.self_check != nullptr) {
    *options.self_check = {};
    engine.watch_memory();
  }
  engine.keep_tiles(own.tiles);
  Walk state{engine, options};
  if (!walk(program_.nodes, state)) return false;
  damage_ = engine.end_watch();
  return true;
}

}  // namespace tessera::runtime::internal
