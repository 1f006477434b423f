#include "tessera/device/ledger.hpp"

#include <algorithm>

namespace tessera::device {

Cycles Ledger::total() const {
  Cycles sum;
  for (const StepRecord& step : steps) sum += step.cycles + step.overhead;
  return sum;
}

Bytes Ledger::moved() const {
  Bytes sum;
  for (const StepRecord& step : steps) sum += step.moved;
  return sum;
}

std::vector<PhaseTotal> Ledger::phases() const {
  std::vector<PhaseTotal> totals;
  for (const StepRecord& step : steps) {
    auto it = std::find_if(totals.begin(), totals.end(),
                           [&](const PhaseTotal& t) { return t.phase == step.phase; });
    if (it == totals.end()) it = totals.insert(totals.end(), PhaseTotal{.phase = step.phase});
    ++it->steps;
    (step.kind == StepKind::Compute ? it->compute : it->exchange) += step.cycles;
    if (step.kind == StepKind::Compute) it->tile_sum += step.tile_sum;
    it->overhead += step.overhead;
    it->moved += step.moved;
  }
  return totals;
}

}  // namespace tessera::device
