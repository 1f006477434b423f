#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/device/engine.hpp"
#include "tessera/runtime/program.hpp"
#include "tessera/runtime/tile_options.hpp"

namespace tessera::runtime::internal {

// The buffers that a step or a condition reads and writes.
struct Uses {
  std::vector<BufferId> reads, writes;

  void add(const Uses& more) {
    reads.insert(reads.end(), more.reads.begin(), more.reads.end());
    writes.insert(writes.end(), more.writes.begin(), more.writes.end());
  }
};

// Says whether an exchange moves the data, or only costs what it would cost: for Share mode, where
// vertices may read data where they are.
enum class Exchanged { Data, CostAlone };

// A program with the code of its nodes, and the machine that it runs on. Buffers, their slots and
// nodes are declared in one go, in the order in which the nodes run; what a step exchanges is named
// by slots that were added before. seal() then computes the intervals of the buffers, allocates the
// slots, checks the memory and prepares the exchanges. After that, run() may be called any number
// of times.
// Invariants:
//   1. actions_[n], questions_[n], control_tiles_[n] and scope_of_[n] belong to the node of
//      number n; one of the first two is empty.
//   2. Slots refer to the names in this object, so neither buffers nor nodes are added after
//      close(), and the object is neither copied nor moved.
//   3. slots_[i] is the slot with the id i of the engine, which has none before close().
class TileProgram {
 public:
  using Action = std::function<void()>;
  using Question = std::function<bool()>;

  // The executor must outlive the program.
  TileProgram(std::string name, const device::Machine& machine, device::ExchangeMode mode,
              Executor& executor)
      : engine_(machine, mode, executor) {
    program_.name = std::move(name);
  }
  TileProgram(const TileProgram&) = delete;
  TileProgram& operator=(const TileProgram&) = delete;

  BufferId add_buffer(std::string name, bool resident = false);

  // Adds a slot of a buffer, or one that stands for the memory of `count` equal slots of the tile.
  // `placed` is that of device::SlotSpec.
  device::SlotId add_slot(BufferId buffer, TileId tile, std::int64_t rows, std::int64_t row_bytes,
                          device::SlotKind kind = device::SlotKind::Landing, std::int64_t count = 1,
                          device::ByteRows placed = {});

  // Adds a step in which `tiles` tiles take part; Load and Collect have no phase. Returns the
  // number of its node.
  int step(NodeKind kind, std::optional<Phase> phase, Uses uses, Action action,
           std::int64_t tiles = 0);

  // Adds a step that runs body(tile) -> Cycles on each of `tiles`, which must outlive the program.
  template <class Body>
  int compute(Phase phase, Uses uses, std::span<const TileId> tiles, Body body) {
    return step(
        NodeKind::Compute, phase, std::move(uses),
        [this, phase, tiles, body]() mutable { engine_.compute(phase, tiles, body); },
        std::ssize(tiles));
  }

  // Adds a step on these tiles that is charged alone: the data are where later steps read them.
  int charge(Phase phase, Uses uses, std::span<const TileId> tiles, Cycles cycles) {
    return compute(phase, std::move(uses), tiles, [cycles](const device::Tile&) { return cycles; });
  }

  // Adds a step that exchanges these data.
  int exchange(Phase phase, Uses uses, std::vector<device::Gather> gathers,
               std::vector<device::Move> moves = {}, Exchanged exchanged = Exchanged::Data);

  // Adds a step that makes an exchange of exchange_of(); or one that exchanges what `action`
  // chooses, and is expected to move what `usual` moves.
  int exchange(Phase phase, Uses uses, const device::Exchange* made);
  int exchange(Phase phase, Uses uses, const device::Exchange* usual, Action action);

  // Adds a step that exchanges the moves for which for_each_move(visit) calls visit(move). In Share
  // mode, in which vertices must read them where they are, they cost as much and are not listed.
  using ForEachMove = std::function<void(const std::function<void(const device::Move&)>& visit)>;
  int exchange_in_place(Phase phase, Uses uses, ForEachMove for_each_move);

  // Returns an exchange which seal() prepares, for steps that choose among several. It is valid as
  // long as the program.
  const device::Exchange* exchange_of(std::vector<device::Gather> gathers,
                                      std::vector<device::Move> moves = {},
                                      Exchanged exchanged = Exchanged::Data);

  // Adds a buffer to those that a step of the outermost list writes.
  void also_writes(int node, BufferId buffer) { this->node(node).writes.push_back(buffer); }

  // Adds a loop or a condition; body() adds the nodes inside.
  void repeat(std::string text, Question question, const std::function<void()>& body);
  void when(std::string text, Question question, const std::function<void()>& body);

  // A question that a tile answers from words in its memory, which costs a step of control.
  struct Controlled {
    TileId tile;
    std::vector<BufferId> reads;
  };
  // Adds a loop with such a question, which is asked before each turn.
  void controlled_repeat(std::string text, Controlled by, Question question,
                         const std::function<void()>& body);

  // Begins a scope, to which the buffers and nodes belong that are added from now on: a part of the
  // program, for example a layer and its pass. Names of buffers begin with it. Returns its index.
  int begin_scope(std::string name);

  // Error{Internal} unless the nodes are the steps of the table, in its order.
  void check_steps(const PassForm& form) const { check_steps(step_order(form)); }
  void check_steps(const StepOrder& order) const;

  // Ends the declarations: the intervals and memory() are known. seal() does this and the rest.
  // Throws Error{LimitExceeded} if the memory of a tile is too small.
  void close();
  void seal();
  device::MemoryUse memory() const { return engine_.memory(live_.stages); }

  const Program& program() const { return program_; }
  device::Engine& engine() { return engine_; }
  const device::Engine& engine() const { return engine_; }

  // Returns the scope of a node; -1: none.
  int scope_of(int node) const { return scope_of_[std::size_t(node)]; }

  // Walks the tree. Returns false if options.stop ended the run. Overwrites `ledger` with the steps
  // that ran. Allocates nothing itself but for the ledger.
  bool run(const PassOptions& options, device::Ledger& ledger);

  // Returns the node of each step in the ledger of the last run.
  const std::vector<int>& ran() const { return ran_; }

  // Returns the memory that changed during the last run, if it had a self_check and finished.
  const device::Damage& damage() const { return damage_; }

 private:
  struct Slot {
    BufferId buffer;
    device::SlotSpec spec;
  };
  struct Prepared {
    Exchanged exchanged = Exchanged::Data;
    ForEachMove for_each_move;  // empty: the exchange has its lists
    device::Exchange exchange;
  };
  struct Walk;
  Node& add(Node node, Action action, Question question);
  void nest(Node node, Question question, const std::function<void()>& body);
  Node& node(int number);
  void prepare(Prepared& prepared);
  bool walk(const std::vector<Node>& nodes, Walk& state);
  void enter(const Node& node, Walk& state);
  void note_ran(const Node& node);

  device::Engine engine_;
  Program program_;
  Liveness live_;
  std::vector<Slot> slots_;
  std::deque<Prepared> exchanges_;
  std::vector<std::pair<int, const device::Exchange*>> moved_by_;  // nodes that show its bytes
  std::vector<Node>* open_ = &program_.nodes;  // the list that takes the next node
  std::vector<Action> actions_;
  std::vector<Question> questions_;
  std::vector<int> scope_of_;
  std::vector<TileId> control_tiles_;                // of controlled questions
  std::vector<std::vector<device::Access>> access_;  // [node][buffer]
  device::Damage damage_;
  std::vector<int> ran_;
};

}  // namespace tessera::runtime::internal
