#pragma once

#include <cstdint>
#include <utility>

#include "tessera/device/ledger.hpp"
#include "tessera/runtime/tile_options.hpp"

// A pass of two programs: one that moves data, and the pass itself. The caller sees the options,
// the ledger and the figures of tiles of one run.
namespace tessera::runtime::internal {

// Returns the options of the first program, which has `steps` steps in a full run. Its calls of
// options.progress are counted in `begun`, and its figures of tiles go to `tiles` if they are
// requested; both must live as long as the run. A fault in a later step is left to the pass.
TilePass options_before(const PassOptions& options, std::int64_t steps, std::int64_t& begun,
                        device::TileLedger& tiles);

// Returns the options of the pass. Its first `steps` steps of the ledger have run already, and
// `begun` calls of options.progress were made.
TilePass options_after(const PassOptions& options, std::int64_t steps, std::int64_t begun);

// Empties the figures of tiles, if options ask for any.
void empty_tiles(const PassOptions& options);

// Writes the steps of both to `all`. Steps are assigned to those of the previous call, so the
// storage of their names is reused. `all` is neither of the two.
void join_steps(const device::Ledger& first, const device::Ledger& second, device::Ledger& all);

// Puts the figures of the first program before those of the pass, if options ask for any. Its steps
// are not in the program of the pass, so they have no stage there.
void join_tiles(const device::TileLedger& first, const PassOptions& options);

// Several runs of programs for one call, whose caller sees the options, the ledger and the figures
// of tiles of one run.
class RunSeries {
 public:
  // `ledger` and the figures of tiles are emptied. All must live as long as the series.
  RunSeries(const PassOptions& options, device::Ledger& ledger);

  // Calls run(options of this run, ledger of this run), which returns whether it finished, and adds
  // what it left there.
  template <class Run>
  bool run(Run&& body) {
    begin();
    const bool finished = body(std::as_const(own_.pass), own_ledger_);
    end();
    return finished;
  }

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
