#include "tessera/runtime/internal/joined_runs.hpp"

#include <algorithm>
#include <iterator>

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

TilePass options_before(const PassOptions& options, std::int64_t steps, std::int64_t& begun,
                        device::TileLedger& tiles) {
  const TileOptions given = tile_options(options);
  TilePass own;
  own.pass.stop = options.stop;
  own.pass.self_check = options.self_check;
  begun = 0;
  if (options.progress)
    own.pass.progress = [&begun, &options](const Progress& at) {
      begun = at.begun + 1;
      options.progress(at);
    };
  if (given.tiles != nullptr) own.tiles.tiles = &tiles;
  if (given.fault && given.fault->step < steps) {
    own.tiles.fault = given.fault;
    own.tiles.struck = given.struck;
  }
  return own;
}

TilePass options_after(const PassOptions& options, std::int64_t steps, std::int64_t begun) {
  TilePass rest(options);
  if (options.progress)
    rest.pass.progress = [&options, begun](const Progress& at) {
      options.progress({at.step, at.begun + begun});
    };
  pass_steps(rest.tiles, steps);
  return rest;
}

void empty_tiles(const PassOptions& options) {
  if (device::TileLedger* const tiles = tile_options(options).tiles) *tiles = {};
}

void join_steps(const device::Ledger& first, const device::Ledger& second, device::Ledger& all) {
  all.steps.resize(first.steps.size() + second.steps.size());
  std::copy(second.steps.begin(), second.steps.end(),
            std::copy(first.steps.begin(), first.steps.end(), all.steps.begin()));
}

void join_tiles(const device::TileLedger& first, const PassOptions& options) {
  device::TileLedger* const all = tile_options(options).tiles;
  if (all == nullptr) return;
  auto& [steps, stages] = *all;
  steps.insert(steps.begin(), first.steps.begin(), first.steps.end());
  stages.insert(stages.begin(), first.steps.size(), -1);
}

RunSeries::RunSeries(const PassOptions& options, device::Ledger& ledger)
    : options_(options), ledger_(ledger), tiles_(tile_options(options).tiles) {
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
