#include "tessera/runtime/internal/joined_runs.hpp"

#include <algorithm>
#include <iterator>

namespace tessera::runtime::internal {

RunOptions options_before(const RunOptions& options, std::int64_t steps, std::int64_t& begun,
                          device::TileLedger& tiles) {
  RunOptions own{.stop = options.stop, .self_check = options.self_check};
  begun = 0;
  if (options.progress)
    own.progress = [&begun, &options](const Progress& at) {
      begun = at.begun + 1;
      options.progress(at);
    };
  if (options.tiles != nullptr) own.tiles = &tiles;
  if (options.fault && options.fault->step < steps) {
    own.fault = options.fault;
    own.struck = options.struck;
  }
  return own;
}

RunOptions options_after(const RunOptions& options, std::int64_t steps, std::int64_t begun) {
  RunOptions rest = options;
  if (options.progress)
    rest.progress = [&options, begun](const Progress& at) {
      options.progress({at.step, at.begun + begun});
    };
  if (!options.fault) return rest;
  if (options.fault->step >= steps) {
    rest.fault->step -= steps;
  } else {
    rest.fault.reset();
    rest.struck = nullptr;
  }
  return rest;
}

void join_steps(const device::Ledger& first, const device::Ledger& second, device::Ledger& all) {
  all.steps.resize(first.steps.size() + second.steps.size());
  std::copy(second.steps.begin(), second.steps.end(),
            std::copy(first.steps.begin(), first.steps.end(), all.steps.begin()));
}

void join_tiles(const device::TileLedger& first, const RunOptions& options) {
  if (options.tiles == nullptr) return;
  auto& [steps, stages] = *options.tiles;
  steps.insert(steps.begin(), first.steps.begin(), first.steps.end());
  stages.insert(stages.begin(), first.steps.size(), -1);
}

RunSeries::RunSeries(const RunOptions& options, device::Ledger& ledger)
    : options_(options), ledger_(ledger) {
  ledger_.steps.clear();
  if (options_.tiles != nullptr) *options_.tiles = {};
}

void RunSeries::begin() {
  begun_before_ = begun_;
  own_ = options_;
  if (options_.progress)
    own_.progress = [this](const Progress& at) {
      begun_ = begun_before_ + at.begun + 1;
      options_.progress({at.step, begun_before_ + at.begun});
    };
  if (options_.tiles != nullptr) own_.tiles = &own_tiles_;
  if (!options_.fault) return;
  own_.fault->step -= std::ssize(ledger_.steps);
  if (own_.fault->step >= 0) return;
  own_.fault.reset();
  own_.struck = nullptr;
}

void RunSeries::end() {
  ledger_.steps.insert(ledger_.steps.end(), own_ledger_.steps.begin(), own_ledger_.steps.end());
  if (options_.tiles == nullptr) return;
  auto& [steps, stages] = *options_.tiles;
  steps.insert(steps.end(), own_tiles_.steps.begin(), own_tiles_.steps.end());
  stages.insert(stages.end(), own_tiles_.stages.begin(), own_tiles_.stages.end());
}

}  // namespace tessera::runtime::internal
