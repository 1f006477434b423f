#include "tessera/partitioner/internal/even_load.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "tessera/partitioner/internal/gather.hpp"
#include "tessera/partitioner/internal/place_within.hpp"
#include "tessera/partitioner/internal/transport_model.hpp"

namespace tessera::partitioner::internal {
namespace {

using codelets::Method;

// Steps that are tried beyond what the spilled placement has.
constexpr std::int64_t kMoreSteps[] = {0, 1, 2, 4};
// An estimate that falls by less than this part says nothing: rows are not spread quite evenly over
// workers, and a record's place in its bucket is not known yet.
constexpr std::int64_t kLeastGain = 50;
// Cells times displacements of the largest flow that is worth its time.
constexpr std::int64_t kLargestLoadFlow = 20'000;

struct Counts {
  std::int64_t rows = 0, blocks = 0;
};

Cycles record_cycles(const codelets::MatMulKernel& kernel, std::int64_t z, Counts counts) {
  const Method method = kernel.method;
  const bool by_z = method == Method::BlockFwd || method == Method::BlockTranspose;
  const std::int64_t parts = by_z || method == Method::BlockGradWAmp ? 1 : kernel.workers;
  const Cycles slowest = codelets::worker_cycles(kernel, by_z ? ceil_div(z, kernel.workers) : z)(
      ceil_div(counts.rows, parts), ceil_div(counts.blocks, parts));
  return codelets::supervisor_load_cycles(kernel, z)(counts.rows, counts.blocks) +
         kernel.workers * slowest;
}

// The blocks of each cell that a bucket holds.
std::map<std::int32_t, Counts> records_of(const Holdings& holdings, std::int64_t bucket) {
  std::map<std::int32_t, Counts> records;
  const auto add = [&records](std::int32_t cell, const Run& run) {
    Counts& counts = records[cell];
    ++counts.rows;
    counts.blocks += run.count;
  };
  if (holdings.whole_home(bucket))
    for (const Run& run : holdings.pieces().runs_of(bucket)) add(holdings.cell_of(bucket), run);
  for (const Guest& guest : holdings.guests(bucket)) add(guest.cell, guest.run);
  return records;
}

std::int64_t most_away(const Holdings& holdings) {
  std::int64_t most = 0;
  for (std::int64_t b = 0; b < holdings.grid().buckets(); ++b)
    for (const auto& [cell, counts] : records_of(holdings, b))
      if (cell != holdings.cell_of(b)) most = std::max(most, counts.blocks);
  return most * holdings.grid().splits.z;
}

class Evening {
 public:
  Evening(const Holdings& whole, const Holdings& spilled, const LoadCost& cost)
      : whole_(whole),
        cost_(cost),
        model_(likely_model(whole, optimistic_model(whole))),
        most_(most_away(spilled)),
        least_(visits_cycles(spilled, cost)) {
    least_ -= Cycles(least_.value / kLeastGain);
  }

  // With the smallest limit that can be routed, and with some larger ones: what is routed in a
  // model may not find room.
  void attempt(const Travel& travel) {
    if (model_.cells() * (travel.steps() + 1) > kLargestLoadFlow) return;
    std::int64_t too_small = 0, enough = most_;
    while (enough - too_small > 1) {
      model_.most_away = (too_small + enough) / 2;
      const bool can = any_routing(model_, travel).unplaced == 0;
      (can ? enough : too_small) = model_.most_away;
    }
    for (const std::int64_t limit : {enough, enough + enough / 4 + 1, 2 * enough}) {
      model_.most_away = limit;
      auto holdings = place_within(whole_, model_, travel);
      if (!holdings) continue;
      const Cycles cycles = visits_cycles(*holdings, cost_);
      if (cycles >= least_) continue;
      least_ = cycles;
      best_ = std::move(holdings);
    }
  }

  std::optional<Holdings> take() { return std::move(best_); }

 private:
  const Holdings& whole_;
  const LoadCost& cost_;
  Transport model_;
  std::int64_t most_;
  Cycles least_;
  std::optional<Holdings> best_;
};

}  // namespace

Cycles visits_cycles(const Holdings& holdings, const LoadCost& cost) {
  const TileGrid& grid = holdings.grid();
  std::vector<Cycles> home(static_cast<std::size_t>(holdings.cells()));
  std::map<std::pair<std::int64_t, std::int64_t>, Cycles> away;  // by displacement
  for (std::int64_t b = 0; b < grid.buckets(); ++b) {
    const std::int64_t held = holdings.cell_of(b), y = grid.splits.y;
    const auto records = records_of(holdings, b);
    const Cycles scan = codelets::scan_cycles(cost.kernel.method)(
        {.matches = 1, .match_positions = static_cast<std::int64_t>(records.size())});
    for (const auto& [cell, counts] : records) {
      const Cycles cycles = scan + record_cycles(cost.kernel, grid.z_per_tile(), counts);
      if (cell == held) {
        home[static_cast<std::size_t>(cell)] += cycles;
        continue;
      }
      const std::int64_t dx = (cell / y - held / y + grid.splits.x) % grid.splits.x;
      Cycles& slowest = away[{dx, (cell % y - held % y + y) % y}];
      slowest = std::max(slowest, cycles);
    }
  }
  Cycles sum = *std::max_element(home.begin(), home.end());
  for (const auto& [displacement, cycles] : away) sum += cycles * grid.splits.z;
  return sum + cost.shift * (grid.splits.z * travel_of(holdings).steps());
}

std::optional<Holdings> even_load(const Holdings& whole, const Holdings& spilled,
                                  const LoadCost& cost) {
  const Travel travel = travel_of(spilled);
  // Blocks are computed at home wherever they lie: without steps there is nothing to gain.
  if (travel.steps() == 0) return std::nullopt;
  Evening evening(whole, spilled, cost);
  evening.attempt(travel);
  const Dims splits = whole.grid().splits;
  for (const std::int64_t more : kMoreSteps)
    for (const Axis first : {Axis::Y, Axis::X})
      if (travel.steps() + more < splits.x * splits.y)
        evening.attempt(first_displacements(splits, travel.steps() + more, first));
  return evening.take();
}

}  // namespace tessera::partitioner::internal
