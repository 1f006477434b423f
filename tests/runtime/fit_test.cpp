#include "tessera/runtime/fit.hpp"

#include <gtest/gtest.h>

#include "tessera/planner/planner.hpp"
#include "tessera/tests/runtime/layer_case.hpp"

namespace tessera::runtime {
namespace {

// Whether the planner's buckets hold the weights at this proportion.
bool holds(const Problem& problem, const device::Machine& machine, double proportion,
           const sparse::Csr<float>& weights) {
  planner::Options options;
  options.bucket_confidence = 0;
  options.meta_info_bucket_oversize_proportion = proportion;
  const PatternStats stats = sparse::pattern_stats(weights);
  const planner::Plan plan = planner::plan_or_throw(problem, machine, options, &stats);
  return !partitioner::encode(weights, tile_grid(problem, plan, machine)).misfit;
}

TEST(Fit, NamesTheLeastHundredthThatHolds) {
  const auto weights = random_weights(270, 256, {1, 1}, 0.1, 1);
  const Problem problem{.size = {1, 270, 256, 4}, .density = 0.1};
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 24;
  planner::Options options;
  options.meta_info_bucket_oversize_proportion = 0;
  ASSERT_FALSE(holds(problem, machine, 0, weights)) << "the case is there not to fit";

  const auto enough = oversize_that_fits(problem, machine, options, sparse::checked(weights));

  ASSERT_TRUE(enough);
  EXPECT_TRUE(holds(problem, machine, *enough, weights));
  EXPECT_FALSE(holds(problem, machine, *enough - 0.01, weights));
}

TEST(Fit, TakesBlocksThatAreNoPartOfTheMachines) {
  const auto weights = random_weights(50, 51, {5, 3}, 0.5, 1);
  const Problem problem{.size = {1, 49, 50, 4}, .block = {5, 3}, .density = 0.5};
  planner::Options options;
  options.constraints.use_dense = true;
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 8;
  EXPECT_TRUE(oversize_that_fits(problem, machine, options, sparse::checked(weights)));
}

TEST(Fit, FindsNoneBeyondTheLegalRange) {
  const auto weights = random_weights(8, 8, {1, 1}, 0.5, 1);
  planner::Options options;
  options.meta_info_bucket_oversize_proportion = 1000;
  EXPECT_FALSE(oversize_that_fits({.size = {1, 8, 8, 4}, .density = 0.5},
                                  device::machine_preset("gc200"), options,
                                  sparse::checked(weights)));
}

}  // namespace
}  // namespace tessera::runtime
