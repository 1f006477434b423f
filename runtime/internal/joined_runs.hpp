#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tessera/device/ledger.hpp"
#include "tessera/runtime/tile_options.hpp"

namespace tessera::runtime::internal {

// Several runs of programs for one call, whose caller sees the options, the ledger and the figures
// of tiles of one run.
class RunSeries {
 public:
  // `ledger` and the figures of tiles are emptied. All must live as long as the series. `scratch`
  // is for the ledger of a run; a caller that keeps it saves its allocation.
  RunSeries(const PassOptions& options, device::Ledger& ledger, device::Ledger scratch = {});

  // Calls run(options of this run, ledger of this run), which returns whether it finished, and adds
  // what it left there.
  template <class Run>
  bool run(Run&& body) {
    begin();
    const bool finished = body(std::as_const(own_.pass), own_ledger_);
    end();
    return finished;
  }

  // Says that the steps so far are not in the program of the pass, so they have no stage there.
  void forget_stages() {
    if (tiles_ != nullptr) std::ranges::fill(tiles_->stages, -1);
  }

  // Returns the ledger of the last run.
  device::Ledger& scratch() { return own_ledger_; }

 private:
  void begin();
  void end();

  const PassOptions& options_;
  device::Ledger& ledger_;
  device::TileLedger* tiles_;  // of the caller; null: none
  TilePass own_;
  device::Ledger own_ledger_;
  device::TileLedger own_tiles_;
  std::int64_t begun_ = 0, begun_before_ = 0;  // steps of all runs, and before this one
};

}  // namespace tessera::runtime::internal
