#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/pass_steps.hpp"
#include "tessera/base/units.hpp"

namespace tessera::runtime {

// A buffer of a program, in the order they were declared.
using BufferId = Id<struct BufferKind>;

// The slots of one name that a program has on its tiles.
struct Buffer {
  std::string name;
  bool resident = false;  // on its tile before and after the program too: it lives in every step
  Bytes largest;          // of its slots

  friend bool operator==(const Buffer&, const Buffer&) = default;
};

//   Load      host to tiles, before the first step of the machine; not charged
//   Exchange  tiles to tiles, behind a barrier
//   Compute   every tile on its own slots
//   Collect   tiles to host, after the last step; not charged
//   Repeat    asks, and runs its body as long as the answer is yes
//   If        asks, and runs its body when the answer is yes
enum class NodeKind { Load, Exchange, Compute, Collect, Repeat, If };
// "load", "repeat while"; the text is valid as long as the program.
std::string_view to_string(NodeKind kind);

// Steps are leaves; Repeat and If have a body.
struct Node {
  NodeKind kind = NodeKind::Compute;
  std::optional<Phase> phase;  // of an exchange or compute step: the row its cost is booked under
  std::string question;        // that Repeat or If asks
  std::vector<BufferId> reads, writes;
  Bytes moves;              // of an exchange: what all tiles receive together, at most
  std::int64_t tiles = 0;   // that take part in a step
  bool controlled = false;  // asked of words in tile memory: costs a step of control each time
  int number = 0;           // of the node, in the order written
  std::vector<Node> body;

  friend bool operator==(const Node&, const Node&) = default;
  bool is_step() const { return kind != NodeKind::Repeat && kind != NodeKind::If; }
  // The name of the phase, else the question; empty for Load and Collect.
  std::string_view label() const { return phase ? to_string(*phase) : question; }
};

// What a pass does, as a value: the tree that is walked when the pass runs. While a node runs the
// engine refuses every slot whose buffer the node does not name, so the tree cannot say less than
// what happens.
struct Program {
  std::string name;
  std::vector<Buffer> buffers;
  std::vector<Node> nodes;

  friend bool operator==(const Program&, const Program&) = default;
};

// When buffers live. A phase is a node, or a loop with all that is in it: what is carried from one
// turn to the next must not be given away. Phases stand in an order in which they can run.
struct Liveness {
  // From the first phase that needs a buffer to the last one, both included.
  struct Life {
    int first = 0, last = 0;  // phases
    friend bool operator==(const Life&, const Life&) = default;
  };
  std::vector<int> phase_of;        // by Node::number
  std::vector<std::string> phases;  // names
  std::vector<Life> lives;          // by BufferId

  friend bool operator==(const Liveness&, const Liveness&) = default;
};

// From the first phase that reads or writes a buffer to the last; resident buffers live in all. A
// buffer that no node names is Error{Internal}. O(nodes + accesses).
Liveness liveness(const Program& program);

// The steps of the program as they are written, a loop that costs control as a step of its own.
StepOrder step_order(const Program& program);

// The tree, a node a line, at most 100 columns wide: phase of liveness, kind and name, what is read
// and written and what moves; then the buffers with their lives.
std::string to_string(const Program& program);

}  // namespace tessera::runtime
