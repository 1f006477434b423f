#pragma once

#include <functional>
#include <optional>
#include <stop_token>

#include "tessera/device/engine.hpp"
#include "tessera/device/ledger.hpp"
#include "tessera/layer/pass_options.hpp"
#include "tessera/verify/progress.hpp"
#include "tessera/verify/self_check.hpp"

namespace tessera::runtime {

using verify::Progress;

// Options of one pass on a modelled machine: the first four of layer::PassOptions, and those that
// need a machine made of tiles. Only a fault may change a result.
struct RunOptions {
  // `stop`, `progress`, `self_check` and `repair` are those of layer::PassOptions.
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

// The options of layer::PassOptions that only a machine made of tiles takes.
struct TileOptions : layer::TargetOptions {
  TileOptions() = default;
  explicit TileOptions(device::TileLedger* kept) : tiles(kept) {}

  // As the fields of RunOptions with these names. A second run of a repair has no fault.
  device::TileLedger* tiles = nullptr;
  std::optional<device::Fault> fault = {};
  std::optional<device::Struck>* struck = nullptr;
};

// The options of a part of a longer run as those of a pass of a layer. The target must outlive the
// use.
inline layer::PassOptions as_pass(const RunOptions& options, TileOptions&& target = {}) {
  target.tiles = options.tiles;
  target.fault = options.fault;
  target.struck = options.struck;
  layer::PassOptions pass;
  pass.stop = options.stop;
  pass.progress = options.progress;
  pass.self_check = options.self_check;
  pass.repair = options.repair;
  pass.target = &target;
  return pass;
}

// Returns the options of a pass on tiles; options.target must be of TileOptions, or null.
inline RunOptions on_tiles(const layer::PassOptions& options) {
  RunOptions own{.stop = options.stop,
                 .progress = options.progress,
                 .self_check = options.self_check,
                 .repair = options.repair};
  if (options.target == nullptr) return own;
  const auto& target = static_cast<const TileOptions&>(*options.target);
  own.tiles = target.tiles;
  if (options.is_repeated) return own;
  own.fault = target.fault;
  own.struck = target.struck;
  return own;
}

}  // namespace tessera::runtime
