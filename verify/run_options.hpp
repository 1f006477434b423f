#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string_view>

#include "tessera/verify/self_check.hpp"

namespace tessera::verify {

// The position of a pass just before one of its steps begins.
struct Progress {
  std::string_view step;   // valid during the call
  std::int64_t begun = 0;  // steps of this pass that have begun before this one
};

// Options of one pass that every layer takes, whatever computes it. They change no result.
struct RunOptions {
  // Is asked before every step. A pass that is stopped returns false; its results and its cost are
  // then what the steps that ran have left there, and the layer itself is unchanged.
  std::stop_token stop = {};

  // Is called on the calling thread before every step. An exception it throws ends the pass as
  // `stop` does and reaches the caller.
  std::function<void(const Progress&)> progress = {};

  // If it is not null, the results of all groups are checked as self_check.hpp says, and the
  // outcome is left there. A result beyond its bound is Error{CheckFailed} naming pass, group, row
  // and column; results are kept as computed. The check uses the caller's weights and operands, so
  // a change in the layer's own copies is seen.
  Checksums* self_check = nullptr;

  // If it is true and the self-check fails, the pass is run once more (repair.hpp). Calls of
  // `progress` then start again from the first step.
  bool repair = false;
};

}  // namespace tessera::verify
