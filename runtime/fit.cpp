#include "tessera/runtime/fit.hpp"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.hpp"
#include "tessera/planner/layouts.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/internal/layer_weights.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::runtime {
namespace {

constexpr std::int64_t kLargestHundredths = 100'000;

bool layout_fits(const Problem& problem, const planner::Plan& layout,
                 const device::Machine& machine, const sparse::CheckedCsr<float>& weights,
                 const partitioner::EncodeOptions& options) {
  const partitioner::TileGrid grid = tile_grid(problem, layout, machine);
  try {
    return !partitioner::encode(internal::in_grid(weights, grid), grid, options).misfit;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::LimitExceeded)
      return false;  // a word is too wide for the machine
    throw;
  }
}

bool fits(const Problem& problem, const device::Machine& machine, planner::Options options,
          std::int64_t hundredths, const sparse::CheckedCsr<float>& weights) {
  options.meta_info_bucket_oversize_proportion = double(hundredths) / 100;
  options.bucket_confidence = 0;  // as for a caller who gives the proportion
  const PatternStats stats = sparse::pattern_stats(weights);
  const planner::PlanResult planned = planner::plan(problem, machine, options, &stats);
  if (planned.status != planner::PlanStatus::Found) return false;
  const planner::Plan& plan = planned.plan;
  if (plan.dense) return true;  // it has no buckets
  const partitioner::EncodeOptions encode{.force_spills = options.partitioner_force_bucket_spills};
  if (plan.backward.empty()) return layout_fits(problem, plan, machine, weights, encode);
  const auto [forward_problem, transposed_problem] =
      planner::two_problems(problem, plan.runs_transposed(Pass::GradW));
  return layout_fits(forward_problem, plan, machine, weights, encode) &&
         layout_fits(transposed_problem, plan.backward.front(), machine, sparse::transpose(weights),
                     encode);
}

}  // namespace

std::optional<double> oversize_that_fits(const Problem& problem, const device::Machine& machine,
                                         const planner::Options& options,
                                         const sparse::CheckedCsr<float>& weights) {
  const auto try_one = [&](std::int64_t hundredths) {
    return fits(problem, machine, options, hundredths, weights);
  };
  auto low =
      static_cast<std::int64_t>(std::floor(options.meta_info_bucket_oversize_proportion * 100));
  if (low >= kLargestHundredths) return std::nullopt;
  std::int64_t high = low + 1;
  for (std::int64_t step = 1; !try_one(high); step *= 2) {
    if (high == kLargestHundredths) return std::nullopt;
    low = high;
    high = std::min(high + 2 * step, kLargestHundredths);
  }
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (try_one(middle) ? high : low) = middle;
  }
  return double(high) / 100;
}

}  // namespace tessera::runtime
