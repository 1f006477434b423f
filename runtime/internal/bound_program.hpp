#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/device/engine.hpp"
#include "tessera/runtime/program.hpp"
#include "tessera/runtime/run_options.hpp"

namespace tessera::runtime::internal {

// What a step or a question touches.
struct Uses {
  std::vector<BufferId> reads, writes;
};

// A program and what its nodes do. Made in this order: buffers and nodes; finish(), which works out
// when buffers live; slots; seal(); run() as often as wanted.
// Invariants:
//   1. actions_[n] and questions_[n] belong to the node of number n; one of them is empty.
//   2. After finish() neither buffers nor nodes are added, so names stay where slots look at them;
//      for the same reason a program stays where it is.
class BoundProgram {
 public:
  using Action = std::function<void()>;
  using Question = std::function<bool()>;

  explicit BoundProgram(std::string name) { program_.name = std::move(name); }
  BoundProgram(const BoundProgram&) = delete;
  BoundProgram& operator=(const BoundProgram&) = delete;

  BufferId add_buffer(std::string name, bool resident = false);
  // Returns the number of the node. Load and Collect have no phase. `tiles` take part.
  int step(NodeKind kind, std::optional<Phase> phase, Uses uses, Action action,
           std::int64_t tiles = 0);
  // body() adds the nodes inside.
  void repeat(std::string text, Question question, const std::function<void()>& body);
  void when(std::string text, Question question, const std::function<void()>& body);
  // The tile that answers controlled questions.
  void set_control_tile(TileId tile) { control_tile_ = tile; }
  // A loop whose question reads words in tile memory: each time a step of control.
  void controlled_repeat(std::string text, std::vector<BufferId> reads, Question question,
                         const std::function<void()>& body);

  void finish();
  // Error{Internal} unless the nodes are the steps of the table, in its order.
  void check_steps(const PassForm& form) const;
  device::SlotSpec slot(BufferId buffer, TileId tile, std::int64_t rows, std::int64_t row_bytes,
                        device::SlotKind kind = device::SlotKind::Landing);
  void seal(device::Engine& engine) const { engine.seal(live_.phases); }
  device::MemoryUse memory(const device::Engine& engine) const {
    return engine.memory(live_.phases);
  }
  // Once all bodies are closed.
  void set_moves(int node, Bytes moves);
  void set_tiles(int node, std::int64_t tiles);

  const Program& program() const { return program_; }

  // Walks the tree on `engine`; false when options.stop said so. Allocates nothing itself.
  bool run(device::Engine& engine, const RunOptions& options) const;

 private:
  struct Walk;
  Node& add(Node node, Action action, Question question);
  void nest(Node node, Question question, const std::function<void()>& body);
  Node& node(int number);
  bool walk(const std::vector<Node>& nodes, Walk& state) const;
  void enter(const Node& node, Walk& state) const;

  Program program_;
  TileId control_tile_;
  Liveness live_;
  std::vector<Node>* open_ = &program_.nodes;  // where the next node goes
  std::vector<Action> actions_;
  std::vector<Question> questions_;
  std::vector<std::vector<device::Access>> access_;  // [node][buffer]
};

}  // namespace tessera::runtime::internal
