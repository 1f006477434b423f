#include "tessera/runtime/internal/joined_runs.hpp"

#include <iterator>
#include <utility>

namespace tessera::runtime::internal {
namespace {

// Counts the step of a fault from `steps` steps later on; there is none if it was in one of them.
void pass_steps(TileOptions& options, std::int64_t steps) {
  if (!options.fault) return;
  options.fault->step -= steps;
  if (options.fault->step >= 0) return;
  options.fault.reset();
  options.struck = nullptr;
}

}  // namespace

RunSeries::RunSeries(const PassOptions& options, device::Ledger& ledger, device::Ledger scratch)
    : options_(options),
      ledger_(ledger),
      tiles_(tile_options(options).tiles),
      own_ledger_(std::move(scratch)) {
  ledger_.steps.clear();
  if (tiles_ != nullptr) *tiles_ = {};
}

void RunSeries::begin() {
  begun_before_ = begun_;
  own_ = TilePass(options_);
  if (options_.progress)
    own_.pass.progress = [this](const Progress& at) {
      begun_ = begun_before_ + at.begun + 1;
      options_.progress({at.step, begun_before_ + at.begun});
    };
  if (tiles_ != nullptr) own_.tiles.tiles = &own_tiles_;
  pass_steps(own_.tiles, std::ssize(ledger_.steps));
}

void RunSeries::end() {
  ledger_.steps.insert(ledger_.steps.end(), own_ledger_.steps.begin(), own_ledger_.steps.end());
  if (tiles_ == nullptr) return;
  auto& [steps, stages] = *tiles_;
  steps.insert(steps.end(), own_tiles_.steps.begin(), own_tiles_.steps.end());
  stages.insert(stages.end(), own_tiles_.stages.begin(), own_tiles_.stages.end());
}

}  // namespace tessera::runtime::internal
