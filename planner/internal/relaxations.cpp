#include "tessera/planner/internal/relaxations.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/planner/internal/bound_search.hpp"
#include "tessera/planner/internal/dense_layer.hpp"
#include "tessera/planner/internal/planner_search.hpp"

namespace tessera::planner::internal {
namespace {

// Rounds a density down to four significant digits, so that it is written as it is planned.
double rounded_down(double density) {
  const double scale = std::pow(10.0, 3 - std::floor(std::log10(density)));
  return std::floor(density * scale) / scale;
}

}  // namespace

bool Relaxer::fits(const Asked& asked) {
  ++plans_made_;
  Asked limited = asked;
  limited.options.search_limit = std::min(limited.options.search_limit, kTrySearch);
  try {
    // If useDense is open, a change is looked for that lets R have its buckets.
    if (wants_no_buckets(limited.options) && plan_without_buckets(limited).has_plan) return true;
    const CaseSet set = make_cases(limited);
    return !rank_plans(set.cases, rank_by_bounds, {.any = true}).cheapest.empty();
  } catch (const Error& error) {
    // A pinned count may not suit another batch or block, which then does not help.
    if (error.code() != ErrorCode::InvalidArgument) throw;
    return false;
  }
}

std::optional<Relaxation> Relaxer::planned(RelaxationKind kind, const Asked& asked) {
  ++plans_made_;
  const PlanResult result = plan(asked.problem, asked.machine, asked.options, asked.stats);
  if (!result.has_plan) return {};
  Relaxation r;
  r.kind = kind;
  r.tiles = asked.machine.tiles;
  r.batch = asked.problem.size.z;
  r.runs = ceil_div(asked_.problem.size.z, r.batch);
  r.memory_proportion = asked.options.available_memory_proportion;
  r.block = asked.problem.block;
  r.density = asked.problem.density;
  r.cycles = result.plan.cost.cycles;
  r.total_cycles = r.runs * r.cycles;
  return r;
}

// Returns the finest batch grain of any combination of methods.
std::int64_t Relaxer::z_grain() const {
  std::int64_t finest = asked_.problem.size.z;
  for (const Candidate& c : candidates(asked_.problem, asked_.machine, asked_.options))
    finest = std::min(finest, c.grain.z);
  return finest;
}

Asked Relaxer::with_batch_of(std::int64_t grains) const {
  Asked asked = asked_;
  asked.problem.size.z = std::min(grains * z_grain(), asked.problem.size.z);
  return asked;
}

std::int64_t Relaxer::most_tiles() const {
  constexpr std::int64_t kMostTiles = 1'048'576;  // the most that device::Machine allows
  const std::vector<std::string> presets = device::machine_names();
  if (std::ranges::find(presets, asked_.machine.name) == presets.end()) return kMostTiles;
  return std::max(asked_.machine.tiles, device::machine_preset(asked_.machine.name).tiles);
}

std::optional<Relaxation> Relaxer::more_tiles() {
  Asked asked = asked_;
  const auto least = least_fitting(asked_.machine.tiles, most_tiles(), [&](std::int64_t tiles) {
    asked.machine.tiles = tiles;
    return fits(asked);
  });
  if (!least) return {};
  asked.machine.tiles = *least;
  return planned(RelaxationKind::MoreTiles, asked);
}

std::optional<Relaxation> Relaxer::smaller_batch() {
  const std::int64_t all = batch_grains();
  const auto fits_of = [&](std::int64_t grains) { return fits(with_batch_of(grains)); };
  // Finds the largest multiple of every power of two that fits. Only batches above the largest so
  // far are tried.
  std::int64_t largest = 0;
  for (std::int64_t step = 1; step < all; step *= 2) {
    const std::int64_t most = (all - 1) / step;
    const auto left_out = least_fitting(-1, most - 1 - largest / step,
                                        [&](std::int64_t n) { return fits_of((most - n) * step); });
    if (left_out) largest = (most - *left_out) * step;
  }
  std::int64_t more = std::min(all - 1 - largest, kScan);
  while (more > 0 && !fits_of(largest + more)) --more;
  largest += more;
  if (largest == 0) return {};
  return planned(RelaxationKind::SmallerBatch, with_batch_of(largest));
}

std::optional<Relaxation> Relaxer::more_memory(Bytes least_temp_in_tile) {
  constexpr double kSteps = 10'000;  // four decimals
  const auto tile = static_cast<double>(asked_.machine.tile_memory.value);
  const auto least = static_cast<double>(least_temp_in_tile.value);
  if (least > tile) return {};
  // Starts below the quotient, which may be rounded either way, and tests as plan() does.
  double steps = std::max(1.0, std::floor(least / tile * kSteps) - 1);
  while (steps < kSteps && std::floor(tile * (steps / kSteps)) < least) ++steps;
  Asked asked = asked_;
  asked.options.available_memory_proportion = steps / kSteps;
  if (asked.options.available_memory_proportion <= asked_.options.available_memory_proportion)
    return {};
  return planned(RelaxationKind::MoreMemory, asked);
}

std::optional<Relaxation> Relaxer::other_block(std::int64_t side) {
  const BlockShape block{side, side};
  const Problem& p = asked_.problem;
  const bool same = block == (p.is_element_wise() ? p.block : block_to_use(p.block, p.data_type));
  if (same || p.size.x % side != 0 || p.size.y % side != 0) return {};
  if (side > 1 && block_to_use(block, p.data_type) != block) return {};
  const bool needs_float_sums = side == 1 && asked_.options.poplibs_parity;
  if (needs_float_sums && p.partials_type != DataType::Float) return {};
  Asked asked = asked_;
  asked.problem.block = block;
  asked.stats = nullptr;
  if (!fits(asked)) return {};
  return planned(RelaxationKind::OtherBlock, asked);
}

std::optional<Relaxation> Relaxer::lower_density() {
  constexpr std::int64_t kSteps = 1000;
  Asked asked = asked_;
  asked.stats = nullptr;
  if (asked_.problem.density == 0) return {};
  const auto lower_by = [&](std::int64_t steps) {
    asked.problem.density = rounded_down(asked_.problem.density * double(kSteps - steps) / kSteps);
    return fits(asked);
  };
  const auto least = least_fitting(0, kSteps - 1, lower_by);
  if (!least) return {};
  asked.problem.density = rounded_down(asked_.problem.density * double(kSteps - *least) / kSteps);
  return planned(RelaxationKind::LowerDensity, asked);
}

std::optional<std::int64_t> Relaxer::fewest_parts(const Options& options) {
  const std::int64_t all = batch_grains();
  const auto fits_in = [&](std::int64_t parts) {
    Asked asked = with_batch_of(ceil_div(all, parts));
    asked.options = options;
    return fits(asked);
  };
  const std::int64_t scanned = std::min(all, kScan);
  for (std::int64_t parts = 2; parts <= scanned; ++parts)
    if (is_share_count(all, parts) && fits_in(parts)) return parts;
  return least_fitting(scanned, all, fits_in);
}

std::optional<Relaxation> Relaxer::in_parts(RelaxationKind kind, const Options& options) {
  const auto parts = fewest_parts(options);
  if (!parts) return {};
  Asked asked = with_batch_of(ceil_div(batch_grains(), *parts));
  asked.options = options;
  return planned(kind, asked);
}

std::optional<Relaxation> Relaxer::batch_in_parts() {
  return in_parts(RelaxationKind::BatchInParts, asked_.options);
}

std::optional<Relaxation> Relaxer::memory_and_parts() {
  Options options = asked_.options;
  options.available_memory_proportion = 1;
  return in_parts(RelaxationKind::MemoryAndParts, options);
}

Asked Relaxer::dense() const {
  Asked asked = asked_;
  asked.options.constraints = {};
  asked.options.constraints.use_dense = true;
  return asked;
}

bool Relaxer::may_run_dense() const {
  return !may_have_no_buckets(asked_.options) && wants_no_buckets(dense().options);
}

std::optional<Relaxation> Relaxer::run_dense() {
  return planned(RelaxationKind::RunDense, dense());
}

std::optional<Relaxation> Relaxer::no_pins() {
  Asked asked = asked_;
  asked.options.constraints = {};
  return planned(RelaxationKind::NoPins, asked);
}

}  // namespace tessera::planner::internal
