#pragma once

#include <optional>
#include <string_view>

#include "tessera/device/engine.hpp"
#include "tessera/device/ledger.hpp"
#include "tessera/layer/pass_options.hpp"
#include "tessera/verify/progress.hpp"

namespace tessera::runtime {

using layer::PassOptions;
using verify::Progress;

// The options of a pass that only a machine made of tiles takes (PassOptions::target). Only a fault
// may change a result.
struct TileOptions : layer::TargetOptions {
  // If it is not null, it is overwritten with the figures of every tile in every step of the pass.
  // Costs memory and time.
  device::TileLedger* tiles = nullptr;

  // Flips this bit of tile memory in this run, to test self_check; the second run of a repair has
  // no fault. Throws Error{InvalidArgument} unless the layer was made in Isolate mode. Steps are
  // counted as in the ledger; if GradA has a separate layout, the first steps are those that bring
  // the values there. A changed word of a bucket or of a re-home table that would lead a tile out
  // of bounds is Error{CheckFailed}, with or without self_check.
  std::optional<device::Fault> fault = {};

  // If it is not null, it is set to the place that the fault struck, and to nothing if the program
  // has no such step or the tile did not use that much memory in it.
  std::optional<device::Struck>* struck = nullptr;
};

// Returns the options of a pass for tiles: those of options.target without what a second run of a
// repair leaves out. Throws Error{InvalidArgument} if they are for another kind of target.
TileOptions tile_options(const PassOptions& options);

// Throws Error{InvalidArgument}, which begins with the name of the call, for options that only a
// pass of a layer has: bias, activation, derivative and sum.
void refuse_layer_options(std::string_view call, const PassOptions& options);

// Returns the cost of a call run(cost) that nothing can stop.
template <class Cost = device::Ledger, class Run>
Cost cost_of_whole(Run&& run) {
  Cost cost;
  static_cast<void>(run(cost));
  return cost;
}

// Options of a pass together with those for tiles, to which a copy's `pass` points as well.
struct TilePass {
  TilePass() { pass.target = &tiles; }
  explicit TilePass(const PassOptions& options) : pass(options), tiles(tile_options(options)) {
    pass.target = &tiles;
  }
  TilePass(const TilePass& other) : TilePass(other.pass) {}
  TilePass& operator=(const TilePass& other) {
    pass = other.pass;
    tiles = other.tiles;
    pass.target = &tiles;
    return *this;
  }
  ~TilePass() = default;
  operator const PassOptions&() const { return pass; }

  PassOptions pass;
  TileOptions tiles;
};

}  // namespace tessera::runtime
