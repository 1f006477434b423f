#pragma once

#include <functional>
#include <span>
#include <stop_token>

#include "tessera/codelets/activation.hpp"
#include "tessera/layer/view.hpp"
#include "tessera/verify/progress.hpp"
#include "tessera/verify/self_check.hpp"

namespace tessera::layer {

// Says if GradW replaces the gradients that the caller passes or adds to them.
enum class Accumulate {
  No,  // replaces them
  Yes  // adds to them, with the bits of a loop that adds the gradients of this pass
};

// Options that one kind of target alone takes: runtime::TileOptions, pod::DeviceOptions. A layer
// refuses those of another kind.
struct TargetOptions {
  virtual ~TargetOptions() = default;
};

// Options of one pass of any layer. Those down to `repair` change no result.
struct PassOptions {
  // Is asked before every step. A pass that is stopped returns false; its results and its cost are
  // then what the steps that ran have left there, and the layer itself is unchanged.
  std::stop_token stop = {};

  // Is called on the calling thread before every step. An exception it throws ends the pass as
  // `stop` does and reaches the caller.
  std::function<void(const verify::Progress&)> progress = {};

  // If it is not null, the results of all groups are checked as verify/self_check.hpp says, and the
  // outcome is left there. A result beyond its bound is Error{CheckFailed} naming pass, group, row
  // and column; results are kept as computed. The check uses the caller's weights and operands, so
  // a change in the layer's own copies is seen.
  verify::Checksums* self_check = nullptr;

  // If it is true and the self-check fails, the pass is run once more (verify/repair.hpp). Calls of
  // `progress` then start again from the first step.
  bool repair = false;

  // Fwd: [g * x] the number that is added to each row of Q, rounded to the layer's type after the
  // addition. Empty: none. Then the activation of Q with its bias. Q has the bits of a loop over
  // all of it after the pass.
  std::span<const float> bias = {};
  codelets::Activation activation = codelets::Activation::None;

  // GradA: [g * y][z] Elements of dS become 0 where this matrix is not above 0 (or is NaN), which
  // is the derivative of a ReLU in front of the layer. Without data all elements remain.
  ConstView where_positive = {};

  // GradW: whether gradients are added to those of the caller.
  Accumulate accumulate = Accumulate::No;

  // Points to the options that the layer's kind of target alone takes, or is null.
  const TargetOptions* target = nullptr;

  // Is set by the layer in the second run of a repair, in which no fault is injected.
  bool is_repeated = false;
};

}  // namespace tessera::layer
