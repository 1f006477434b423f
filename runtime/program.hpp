#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/pass_steps.hpp"
#include "tessera/base/units.hpp"

namespace tessera::runtime {

// Names a buffer of a program. Ids count up in the order of declaration.
using BufferId = Id<struct BufferKind>;

// The slots of one name that a program has on its tiles.
struct Buffer {
  std::string name;
  bool resident = false;  // True: on its tile before and after the program too, and in every step
  Bytes largest;          // the size of its largest slot

  friend bool operator==(const Buffer&, const Buffer&) = default;
};

// The kinds of a node of a program.
//   Load      copies from the host to tiles, before the first step of the machine; not charged
//   Exchange  copies from tiles to tiles, after a barrier
//   Compute   runs code on every tile, on the tile's own slots
//   Collect   copies from tiles to the host, after the last step; not charged
//   Repeat    evaluates a condition and runs its body as long as it is true
//   If        evaluates a condition and runs its body when it is true
enum class NodeKind { Load, Exchange, Compute, Collect, Repeat, If };
// "load", "repeat while"; the text is valid as long as the program.
std::string_view to_string(NodeKind kind);

// A node of a program's tree. Steps are leaves; Repeat and If have a body.
struct Node {
  NodeKind kind = NodeKind::Compute;
  std::optional<Phase> phase;  // of a step: the row of the ledger that receives its cost
  std::string question;        // the condition of a Repeat or If
  int scope = -1;              // index in Program::scopes; -1: none
  std::vector<BufferId> reads, writes;
  Bytes moves;              // of an exchange: most bytes that all tiles receive together
  std::int64_t tiles = 0;   // tiles that take part in a step
  bool controlled = false;  // True: the condition reads tile memory, at a step of control each time
  int number = 0;           // position of the node in the order of declaration
  std::vector<Node> body;

  friend bool operator==(const Node&, const Node&) = default;
  bool is_step() const { return kind != NodeKind::Repeat && kind != NodeKind::If; }
  // The name of the phase, else the question; empty for Load and Collect.
  std::string_view label() const { return phase ? to_string(*phase) : question; }
};

// The steps, loops and conditions of one pass as a value. A pass runs by walking this tree. While a
// node runs, the engine refuses access to every slot whose buffer the node does not name, so the
// tree describes every access that happens.
struct Program {
  std::string name;
  std::vector<std::string> scopes;  // parts of a network's program: a layer and what it does
  std::vector<Buffer> buffers;
  std::vector<Node> nodes;

  friend bool operator==(const Program&, const Program&) = default;
};

// The intervals in which buffers need memory. Time is counted in positions: each position is one
// node, or a whole loop with all nodes in it, because data that one iteration hands to the next
// must keep their memory. Positions are in an order in which they can run. In the code they are
// called stages.
struct Liveness {
  // The interval of a buffer: the first and the last position that need it, both included.
  struct Life {
    int first = 0, last = 0;
    friend bool operator==(const Life&, const Life&) = default;
  };

  std::vector<int> stage_of;        // position of each node, by Node::number
  std::vector<std::string> stages;  // name of each position
  std::vector<Life> lives;          // by BufferId

  friend bool operator==(const Liveness&, const Liveness&) = default;
};

// Returns the intervals of a program's buffers. An interval begins at the first position that reads
// or writes the buffer and ends at the last one; that of a resident buffer covers the whole
// program. Throws Error{Internal} if no node names a buffer. O(nodes + accesses).
Liveness liveness(const Program& program);

// Returns the steps of the program in the order in which they are written. A loop that costs
// control is a step too.
StepOrder step_order(const Program& program);

// Prints the tree with one node per line, at most 100 columns wide: position (Liveness), kind and
// name, the buffers it reads and writes, and the bytes it moves. The buffers with their intervals
// follow.
std::string to_string(const Program& program);

}  // namespace tessera::runtime
