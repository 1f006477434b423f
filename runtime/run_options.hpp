#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string_view>

#include "tessera/device/ledger.hpp"

namespace tessera::runtime {

// Where a pass stands, just before a step begins.
struct Progress {
  std::string_view step;   // valid during the call
  std::int64_t begun = 0;  // steps of this pass that have begun before this one
};

// How one pass is run; nothing of this changes a result.
struct RunOptions {
  // Asked before every step. A pass that is stopped returns false; its results and its ledger are
  // then what the steps that ran have left there, the layer itself is as before.
  std::stop_token stop = {};
  // Called on the calling thread before every step; what it throws ends the pass like stop does.
  std::function<void(const Progress&)> progress = {};
  // Overwritten with what every tile did in every step of the pass; costs memory and time. Steps
  // that are only charged (values on their way to another layout) have no tiles.
  device::TileLedger* tiles = nullptr;
};

}  // namespace tessera::runtime
