#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tessera/planner/dense_plan.hpp"

namespace tessera::planner {
namespace {

constexpr DataType kHalf = DataType::Half, kFloat = DataType::Float;

// A dense product R [side][side] times S [side][batch] that was measured on one Bow IPU.
struct DensePoint {
  DataType type;
  std::int64_t side, batch;
  double teraflops;
};

// Read off published plots (arXiv 2303.16999) with an accuracy of about 1.5 %.
const std::vector<DensePoint> kPoints = {
    {kHalf, 1024, 4, 6.1},      {kHalf, 1024, 16, 20.5},    {kHalf, 1024, 64, 46.1},
    {kHalf, 1024, 256, 89.2},   {kHalf, 1024, 1024, 119.9}, {kHalf, 1024, 4096, 179.6},
    {kHalf, 2048, 4, 13.0},     {kHalf, 2048, 16, 44.9},    {kHalf, 2048, 64, 83.4},
    {kHalf, 2048, 256, 135.4},  {kHalf, 2048, 1024, 165.7}, {kHalf, 2048, 4096, 215.4},
    {kHalf, 4096, 4, 18.2},     {kHalf, 4096, 16, 62.0},    {kHalf, 4096, 64, 131.8},
    {kHalf, 4096, 256, 174.8},  {kHalf, 8192, 4, 21.7},     {kHalf, 8192, 16, 72.9},
    {kHalf, 8192, 64, 159.1},   {kHalf, 8192, 256, 225.8},  {kFloat, 4096, 4, 7.2},
    {kFloat, 4096, 16, 22.6},   {kFloat, 4096, 64, 41.9},   {kFloat, 4096, 256, 53.3},
    {kFloat, 4096, 1024, 56.2}, {kFloat, 4096, 4096, 59.3},
};

double error_of(const DensePoint& point) {
  const device::Machine machine = device::machine_preset("bow");
  const Problem problem{.size = {1, point.side, point.side, point.batch}, .data_type = point.type};
  const DensePlan plan = plan_dense_or_throw(problem, machine);
  const double seconds = double(plan.cost.cycles.value) / machine.clock_hz;
  const double flops = 2 * double(point.side) * double(point.side) * double(point.batch);
  return flops / seconds / 1e12 / point.teraflops - 1;
}

TEST(DensePublished, ErrorsHaveAMedianOfTenPercentAndReachTwentyAtMost) {
  std::vector<double> errors;
  for (const DensePoint& point : kPoints) {
    const double error = error_of(point);
    EXPECT_LE(std::abs(error), 0.20)
        << to_string(point.type) << " " << point.side << " " << point.batch;
    errors.push_back(std::abs(error));
  }
  std::ranges::sort(errors);
  EXPECT_LE(errors[errors.size() / 2], 0.10);
}

}  // namespace
}  // namespace tessera::planner
