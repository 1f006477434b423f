#include "tessera/runtime/internal/tile_program.hpp"

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

struct TileProgram::Walk {
  const PassOptions& options;
  int stage = -1;
  std::int64_t begun = 0;
};

BufferId TileProgram::add_buffer(std::string name, bool resident) {
  TESSERA_ASSERT(access_.empty());
  if (!program_.scopes.empty()) name = program_.scopes.back() + ": " + name;
  program_.buffers.push_back({std::move(name), resident, Bytes()});
  return BufferId(std::ssize(program_.buffers) - 1);
}

int TileProgram::begin_scope(std::string name) {
  program_.scopes.push_back(std::move(name));
  return static_cast<int>(program_.scopes.size()) - 1;
}

Node& TileProgram::add(Node node, Action action, Question question) {
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

int TileProgram::step(NodeKind kind, std::optional<Phase> phase, Uses uses, Action action,
                      std::int64_t tiles) {
  TESSERA_ASSERT(phase.has_value() == (kind == NodeKind::Exchange || kind == NodeKind::Compute));
  Node node{.kind = kind, .phase = phase};
  node.tiles = tiles;
  node.reads = std::move(uses.reads);
  node.writes = std::move(uses.writes);
  return add(std::move(node), std::move(action), {}).number;
}

void TileProgram::nest(Node node, Question question, const std::function<void()>& body) {
  std::vector<Node> inside;
  Node& outer = add(std::move(node), {}, std::move(question));
  // Nodes are added to `inside` while the body is open, so the reference to `outer` stays valid.
  std::vector<Node>* const before = std::exchange(open_, &inside);
  body();
  open_ = before;
  outer.body = std::move(inside);
}

void TileProgram::repeat(std::string text, Question question, const std::function<void()>& body) {
  nest({.kind = NodeKind::Repeat, .question = std::move(text)}, std::move(question), body);
}

void TileProgram::when(std::string text, Question question, const std::function<void()>& body) {
  nest({.kind = NodeKind::If, .question = std::move(text)}, std::move(question), body);
}

void TileProgram::controlled_repeat(std::string text, Controlled by, Question question,
                                    const std::function<void()>& body) {
  Node node{.kind = NodeKind::Repeat, .question = std::move(text)};
  node.reads = std::move(by.reads);
  node.controlled = true;
  const std::size_t number = control_tiles_.size();
  nest(std::move(node), std::move(question), body);
  control_tiles_[number] = by.tile;
}

int TileProgram::exchange(Phase phase, Uses uses, std::vector<device::Gather> gathers,
                          std::vector<device::Move> moves, Exchanged exchanged) {
  return exchange(phase, std::move(uses),
                  exchange_of(std::move(gathers), std::move(moves), exchanged));
}

int TileProgram::exchange(Phase phase, Uses uses, const device::Exchange* made) {
  return exchange(phase, std::move(uses), made,
                  [this, phase, made] { engine_.exchange(phase, *made); });
}

int TileProgram::exchange_in_place(Phase phase, Uses uses, ForEachMove for_each_move) {
  const device::Exchange* const made = exchange_of({});
  exchanges_.back().for_each_move = std::move(for_each_move);
  return exchange(phase, std::move(uses), made);
}

int TileProgram::exchange(Phase phase, Uses uses, const device::Exchange* usual, Action action) {
  const int node = step(NodeKind::Exchange, phase, std::move(uses), std::move(action));
  moved_by_.emplace_back(node, usual);
  return node;
}

const device::Exchange* TileProgram::exchange_of(std::vector<device::Gather> gathers,
                                                 std::vector<device::Move> moves,
                                                 Exchanged exchanged) {
  Prepared& made = exchanges_.emplace_back();
  made.exchanged = exchanged;
  made.exchange.gathers = std::move(gathers);
  made.exchange.moves = std::move(moves);
  return &made.exchange;
}

void TileProgram::close() {
  TESSERA_ASSERT(access_.empty());
  live_ = liveness(program_);
  access_.assign(actions_.size(), std::vector<Access>(program_.buffers.size(), Access::None));
  note_access(program_.nodes, access_);
  for (Slot& slot : slots_) {
    const auto id = std::size_t(slot.buffer.value);
    slot.spec.name = program_.buffers[id].name;
    slot.spec.first_stage = live_.lives[id].first;
    slot.spec.last_stage = live_.lives[id].last;
    engine_.add_slot(slot.spec);
  }
}

void TileProgram::prepare(Prepared& prepared) {
  device::Exchange& made = prepared.exchange;
  if (prepared.for_each_move && engine_.mode() == device::ExchangeMode::Share) {
    made = engine_.charge_moves(prepared.for_each_move);
    return;
  }
  if (prepared.for_each_move)
    prepared.for_each_move([&made](const device::Move& move) { made.moves.push_back(move); });
  made = prepared.exchanged == Exchanged::CostAlone
             ? engine_.charge_gathers(made.gathers)
             : engine_.prepare(std::move(made.gathers), std::move(made.moves));
}

void TileProgram::seal() {
  close();
  engine_.seal(live_.stages);
  for (Prepared& prepared : exchanges_) prepare(prepared);
  for (const auto& [number, made] : moved_by_) node(number).moves = made->moved;
}

void TileProgram::check_steps(const StepOrder& order) const {
  TESSERA_ASSERT(step_order(program_) == order);
}

device::SlotId TileProgram::add_slot(BufferId buffer, TileId tile, std::int64_t rows,
                                     std::int64_t row_bytes, device::SlotKind kind,
                                     std::int64_t count, device::ByteRows placed) {
  TESSERA_ASSERT(access_.empty());
  Bytes& largest = program_.buffers[std::size_t(buffer.value)].largest;
  largest = std::max(largest, Bytes(rows * row_bytes));
  slots_.push_back({buffer,
                    {.tile = tile,
                     .name = {},
                     .rows = count * rows,
                     .row_bytes = row_bytes,
                     .kind = kind,
                     .buffer = static_cast<int>(buffer.value),
                     .placed = placed}});
  return device::SlotId(std::ssize(slots_) - 1);
}

Node& TileProgram::node(int number) {
  Node* const found = find(program_.nodes, number);
  TESSERA_ASSERT(found != nullptr);
  return *found;
}

void TileProgram::enter(const Node& node, Walk& state) {
  const int stage = live_.stage_of[std::size_t(node.number)];
  if (stage != state.stage) engine_.begin_stage(stage);
  state.stage = stage;
  engine_.allow(node.label(), access_[std::size_t(node.number)]);
}

void TileProgram::note_ran(const Node& node) {
  ran_.resize(engine_.ledger().steps.size(), node.number);
}

bool TileProgram::walk(const std::vector<Node>& nodes, Walk& state) {
  for (const Node& node : nodes) {
    const auto ask = [&] {
      enter(node, state);
      if (node.controlled)
        engine_.control(Phase::Control, control_tiles_[std::size_t(node.number)]);
      note_ran(node);
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
      note_ran(node);
    }
  }
  return true;
}

bool TileProgram::run(const PassOptions& options, device::Ledger& ledger) {
  damage_ = {};
  ran_.clear();
  refuse_layer_options(program_.name, options);
  const TileOptions own = tile_options(options);
  if (own.struck != nullptr) own.struck->reset();
  if (own.fault) engine_.inject(*own.fault, own.struck);
  engine_.begin_program();
  if (options.self_check != nullptr) {
    *options.self_check = {};
    engine_.watch_memory();
  }
  engine_.keep_tiles(own.tiles);
  Walk state{options};
  const bool finished = walk(program_.nodes, state);
  if (finished) damage_ = engine_.end_watch();
  ledger = engine_.ledger();
  return finished;
}

}  // namespace tessera::runtime::internal
