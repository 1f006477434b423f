#pragma once

#include <iosfwd>
#include <string_view>

#include "tessera/base/pass.hpp"

namespace tessera {

// The tiles that hold the dense operands before a pass, and its dense result after it.
//   EvenSpread  Each operand is spread in equal runs over all tiles of the machine, independently
//               of the plan, as a caller's tensors are. Every tile arranges its run before the
//               slices of the plan leave it, and once more when the result has come back.
//   AsLeft      GradW finds S and dQ in the slices in which Fwd and GradA of the same training
//               step have left them. Fwd and GradA are as under EvenSpread.
//   AtHome      Each of the tiles that need a slice holds an equal share of its rows, and results
//               stay where they are computed. Nothing is arranged.
enum class Placement { EvenSpread, AsLeft, AtHome };

// Returns "even-spread", "as-left" or "at-home"; the text is valid as long as the program.
std::string_view to_string(Placement placement);
std::ostream& operator<<(std::ostream& out, Placement placement);

// Returns true if the operands of the pass are spread over all tiles before it.
constexpr bool spreads_operands(Placement placement, Pass pass) {
  return placement == Placement::EvenSpread ||
         (placement == Placement::AsLeft && pass != Pass::GradW);
}

// Returns true if the dense result of the pass is spread over all tiles after it. GradW has none,
// because the gradients of the values stay beside the values.
constexpr bool spreads_result(Placement placement, Pass pass) {
  return placement != Placement::AtHome && pass != Pass::GradW;
}

}  // namespace tessera
