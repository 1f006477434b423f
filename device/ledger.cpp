#include "tessera/device/ledger.hpp"

#include <algorithm>

namespace tessera::device {

namespace {

Cycles& cycles_of(PhaseTotal& total, StepKind kind) {
  if (kind == StepKind::Compute) return total.compute;
  return kind == StepKind::Exchange ? total.exchange : total.control;
}

}  // namespace

std::string to_string(Origin origin) {
  if (origin == Origin::Counted) return "counted";
  return origin == Origin::Modelled ? "modelled" : "measured";
}

double StepRecord::imbalance() const {
  if (tile_sum == Cycles()) return 1;
  return double(cycles.value) * double(tiles) / double(tile_sum.value);
}

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
    cycles_of(*it, step.kind) += step.cycles;
    if (step.kind == StepKind::Compute) it->tile_sum += step.tile_sum;
    it->overhead += step.overhead;
    it->moved += step.moved;
  }
  return totals;
}

}  // namespace tessera::device
