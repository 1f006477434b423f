#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/device/engine.hpp"
#include "tessera/runtime/program.hpp"
#include "tessera/runtime/tile_options.hpp"

namespace tessera::runtime::internal {

// The buffers that a step or a condition reads and writes.
struct Uses {
  std::vector<BufferId> reads, writes;
};

// A program together with the code of its nodes. It is built in this order: buffers and nodes;
// finish(), which computes the intervals of the buffers; slots; seal(). After that, run() may be
// called any number of times.
// Invariants:
//   1. actions_[n], questions_[n], control_tiles_[n] and scope_of_[n] belong to the node of
//      number n; one of the first two is empty.
//   2. Slots refer to the names in this object, so neither buffers nor nodes are added after
//      finish(), and the object is neither copied nor moved.
class BoundProgram {
 public:
  using Action = std::function<void()>;
  using Question = std::function<bool()>;

  explicit BoundProgram(std::string name) { program_.name = std::move(name); }
  BoundProgram(const BoundProgram&) = delete;
  BoundProgram& operator=(const BoundProgram&) = delete;

  BufferId add_buffer(std::string name, bool resident = false);

  // Adds a step in which `tiles` tiles take part; Load and Collect have no phase. Returns the
  // number of its node.
  int step(NodeKind kind, std::optional<Phase> phase, Uses uses, Action action,
           std::int64_t tiles = 0);

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

  void finish();
  // Error{Internal} unless the nodes are the steps of the table, in its order.
  void check_steps(const PassForm& form) const { check_steps(step_order(form)); }
  void check_steps(const StepOrder& order) const;
  // Describes a slot, or one that stands for the memory of `count` equal slots of the tile.
  device::SlotSpec slot(BufferId buffer, TileId tile, std::int64_t rows, std::int64_t row_bytes,
                        device::SlotKind kind = device::SlotKind::Landing, std::int64_t count = 1);
  void seal(device::Engine& engine) const { engine.seal(live_.stages); }
  device::MemoryUse memory(const device::Engine& engine) const {
    return engine.memory(live_.stages);
  }

  // Set figures of a node. Allowed after the outermost body has been closed.
  void set_moves(int node, Bytes moves);
  void set_tiles(int node, std::int64_t tiles);

  const Program& program() const { return program_; }

  // Returns the scope of a node; -1: none.
  int scope_of(int node) const { return scope_of_[std::size_t(node)]; }

  // Walks the tree on `engine`. Returns false if options.stop ended the run. Allocates nothing
  // itself.
  bool run(device::Engine& engine, const PassOptions& options);

  // Returns the node of each step in the ledger of the last run.
  const std::vector<int>& ran() const { return ran_; }

  // Returns the memory that changed during the last run, if it had a self_check and finished.
  const device::Damage& damage() const { return damage_; }

 private:
  struct Walk;
  Node& add(Node node, Action action, Question question);
  void nest(Node node, Question question, const std::function<void()>& body);
  Node& node(int number);
  bool walk(const std::vector<Node>& nodes, Walk& state);
  void enter(const Node& node, Walk& state) const;
  void note_ran(const Node& node, const device::Engine& engine);

  Program program_;
  Liveness live_;
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
