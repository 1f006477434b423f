#pragma once

#include <functional>
#include <optional>
#include <stop_token>

#include "tessera/device/engine.hpp"
#include "tessera/device/ledger.hpp"
#include "tessera/verify/run_options.hpp"

namespace tessera::runtime {

using verify::Progress;

// Options of one pass on a modelled machine: those of verify::RunOptions, and those that need a
// machine made of tiles. Only a fault may change a result.
struct RunOptions {
  // `stop`, `progress`, `self_check` and `repair` are those of verify::RunOptions.
  std::stop_token stop = {};
  std::function<void(const Progress&)> progress = {};

  // If it is not null, it is overwritten with the figures of every tile in every step of the pass.
  // Costs memory and time.
  device::TileLedger* tiles = nullptr;

  verify::Checksums* self_check = nullptr;
  bool repair = false;  // the second run has no fault

  // Flips this bit of tile memory in this run, to test self_check. Throws Error{InvalidArgument}
  // unless the layer was made in Isolate mode. Steps are counted as in the ledger; if GradA has a
  // separate layout, the first steps are those that bring the values there. A changed word of a
  // bucket or of a re-home table that would lead a tile out of bounds is Error{CheckFailed}, with
  // or without self_check.
  std::optional<device::Fault> fault = {};

  // If it is not null, it is set to the place that the fault struck, and to nothing if the program
  // has no such step or the tile did not use that much memory in it.
  std::optional<device::Struck>* struck = nullptr;
};

}  // namespace tessera::runtime
