#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string_view>

#include "tessera/device/engine.hpp"
#include "tessera/device/ledger.hpp"
#include "tessera/verify/self_check.hpp"

namespace tessera::runtime {

// Where a pass stands, just before a step begins.
struct Progress {
  std::string_view step;   // valid during the call
  std::int64_t begun = 0;  // steps of this pass that have begun before this one
};

// How one pass is run; nothing of this changes a result, but for a fault, which may.
struct RunOptions {
  // Asked before every step. A pass that is stopped returns false; its results and its ledger are
  // then what the steps that ran have left there, the layer itself is as before.
  std::stop_token stop = {};
  // Called on the calling thread before every step; what it throws ends the pass like stop does.
  std::function<void(const Progress&)> progress = {};
  // Overwritten with what every tile did in every step of the pass; costs memory and time. Steps
  // that are only charged (values on their way to another layout) have no tiles.
  device::TileLedger* tiles = nullptr;
  // Where it is not null, results are compared with checksums (self_check.hpp), of all groups
  // together, which are left there. Results that do not add up are Error{CheckFailed} naming pass,
  // group, row and column, the results themselves as they came. Of weights and operands it takes
  // the caller's: what changes in the machine shows.
  verify::Checksums* self_check = nullptr;
  // For trying that out: this bit flips in this run. Only in Isolate mode, else
  // Error{InvalidArgument}. Steps are those of the pass's program: a layout of GradA's own has some
  // before it that only bring values there. Words of a bucket that lead a tile astray are
  // Error{CheckFailed}, with or without self_check.
  std::optional<device::Fault> fault = {};
  // Where it is not null: where the fault struck; none where the program has no such step, or the
  // tile not that much memory in use then.
  std::optional<device::Struck>* struck = nullptr;
};

}  // namespace tessera::runtime
