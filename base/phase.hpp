#pragma once

#include <iosfwd>
#include <string_view>

namespace tessera {

// A row of the cost ledger: the purpose of a step of the machine. A plan's cost and a run's ledger
// meet in these, never in their names.
enum class Phase {
  RehomeValues,      // R's values go from the buckets of one layout to those of another
  TransposeOperand,  // a dense operand that is stored transposed is put in the order of passes
  Arrange,           // dense data spread over all tiles are put in the order of the plan's slices
  Transpose,         // the blocks of every bucket are transposed in place
  PreArrange,        // slices of the operands, and buckets, go to the tiles that need them
  Rearrange,         // the operands are brought into block order
  Distribute,        // every tile multiplies what belongs to its own cell
  Propagate,         // what has spilled meets its cell; GradW's buckets go round along z
  Control,           // one tile decides whether a loop goes on and tells all others
  Reduce,            // partial sums are added up and cast
  Cast,              // finished sums are cast
  HandOver,          // a result goes from the tiles that computed it to those that use it next
  Activate,          // bias and activation, forward, or the derivative of the activation, backward
  Loss,              // the loss of a batch and its derivative
  Update,            // the optimiser changes weights and biases
  Overhead           // barriers and launches of all steps
};

// "exchange operands", "multiply"; the text is valid as long as the program.
std::string_view to_string(Phase phase);
std::ostream& operator<<(std::ostream& out, Phase phase);

// Compute: every tile works on its own memory, after a launch. Exchange: tiles receive from each
// other, after a barrier. Control: one tile decides how the program goes on and tells all others.
enum class StepKind { Compute, Exchange, Control };

// "compute", "exchange", "control"; the text is valid as long as the program.
std::string_view to_string(StepKind kind);
std::ostream& operator<<(std::ostream& out, StepKind kind);

}  // namespace tessera
