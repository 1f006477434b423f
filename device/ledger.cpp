#include "tessera/device/ledger.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"

namespace tessera::device {

namespace {

Cycles& cycles_of(PhaseTotal& total, StepKind kind) {
  switch (kind) {
    case StepKind::Compute:
      return total.compute;
    case StepKind::Exchange:
      return total.exchange;
    case StepKind::Control:
      return total.control;
  }
  assertion_failed("every kind of step has its column", __FILE__, __LINE__);
}

}  // namespace

std::string to_string(Origin origin) {
  switch (origin) {
    case Origin::Counted:
      return "counted";
    case Origin::Modelled:
      return "modelled";
    case Origin::Measured:
      return "measured";
  }
  assertion_failed("every origin has a name", __FILE__, __LINE__);
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
