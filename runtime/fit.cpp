#include "tessera/runtime/fit.hpp"

#include <cmath>

#include "tessera/base/error.hpp"
#include "tessera/base/least_fitting.hpp"
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
  const auto given =
      static_cast<std::int64_t>(std::floor(options.meta_info_bucket_oversize_proportion * 100));
  const auto least = least_fitting(given, kLargestHundredths, [&](std::int64_t hundredths) {
    return fits(problem, machine, options, hundredths, weights);
  });
  return least ? std::optional(double(*least) / 100) : std::nullopt;
}

}  // namespace tessera::runtime
