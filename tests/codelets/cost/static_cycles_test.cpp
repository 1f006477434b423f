#include "tessera/codelets/cost/static_cycles.hpp"

#include <gtest/gtest.h>

#include "tessera/base/error.hpp"

namespace tessera::codelets {
namespace {

StaticKernel kernel(std::int64_t side, DataType type) { return {{side, side}, type}; }

constexpr DataType kHalf = DataType::Half, kFloat = DataType::Float;

// One worker with 3 rows of 5 non-zeros each, from PopLibs' formulas with k = 5.
TEST(StaticCycles, OfElementsMatchThePublishedFormulas) {
  const auto cycles = [](DataType type, std::int64_t z) {
    return static_worker_cycles(kernel(1, type), z)(3, 15);
  };
  EXPECT_EQ(cycles(kHalf, 4), Cycles(31 + 3 * (7 + 2 * 4)));
  EXPECT_EQ(cycles(kHalf, 8), Cycles(31 + 3 * (8 + 3 * 4)));
  EXPECT_EQ(cycles(kHalf, 28), Cycles(33 + 3 * (11 + 3 * (14 + 3 * 4) + (9 + 2 * 4))));
  EXPECT_EQ(cycles(kFloat, 2), Cycles(29 + 3 * (5 + 2 * 4)));
  EXPECT_EQ(cycles(kFloat, 4), Cycles(30 + 3 * (6 + 3 * 4)));
  EXPECT_EQ(cycles(kFloat, 10), Cycles(31 + 3 * (12 + 2 * (10 + 3 * 4) + (10 + 2 * 4))));
}

TEST(StaticCycles, OfBlocksMatchThePublishedFormulas) {
  const auto worker = [](std::int64_t side, DataType type, std::int64_t z) {
    return static_worker_cycles(kernel(side, type), z);
  };
  EXPECT_EQ(worker(4, kHalf, 2), (LinearCycles{17, 1, 9}));
  EXPECT_EQ(worker(4, kHalf, 3), (LinearCycles{17, 1, 16}));
  EXPECT_EQ(worker(4, kFloat, 3), (LinearCycles{13, 1, 20}));
  EXPECT_EQ(worker(8, kHalf, 3), (LinearCycles{13, 1, 18}));
  EXPECT_EQ(worker(8, kFloat, 3), (LinearCycles{13, 4, 35}));
  EXPECT_EQ(worker(16, kHalf, 3), (LinearCycles{13, 1, 27}));
  EXPECT_EQ(worker(16, kFloat, 1), (LinearCycles{16, 4, 58}));
  EXPECT_EQ(worker(16, kFloat, 3), (LinearCycles{16, 4, 106}));
  EXPECT_EQ(static_supervisor_cycles(kernel(16, kHalf)), (LinearCycles{30, 17, 16 + 64}));
  EXPECT_EQ(static_supervisor_cycles(kernel(8, kFloat)), (LinearCycles{30, 17, 16 + 32}));
  EXPECT_EQ(static_supervisor_cycles(kernel(1, kHalf)), LinearCycles{});
}

TEST(StaticCycles, ClearOnlySumsThatTheKernelDoesNot) {
  EXPECT_EQ(static_zero_cycles(kernel(16, kFloat), 800, 6), Cycles((12 + 17) * 6));
  for (const std::int64_t side : {1, 4, 8, 16})
    EXPECT_EQ(static_zero_cycles(kernel(side, kHalf), 800, 6), Cycles(0));
  EXPECT_EQ(static_zero_cycles(kernel(4, kFloat), 800, 6), Cycles(0));
}

TEST(StaticCycles, OfAReductionAreNoneForOneOperand) {
  EXPECT_EQ(strided_reduce_cycles(1000, 1, kHalf, 6), Cycles(0));
  // 167 halves of a worker are 21 vectors, 84 floats of a worker are 21.
  EXPECT_EQ(strided_reduce_cycles(1000, 5, kHalf, 6), Cycles((16 + 21 * 18) * 6));
  EXPECT_EQ(strided_reduce_cycles(500, 5, kFloat, 6), Cycles((16 + 21 * 15) * 6));
}

TEST(StaticCycles, RefuseBlocksWithoutAKernel) {
  EXPECT_FALSE(has_static_kernel({4, 8}));
  EXPECT_FALSE(has_static_kernel({5, 5}));
  EXPECT_THROW(static_worker_cycles({{4, 8}, kHalf}, 4), Error);
  EXPECT_THROW(static_supervisor_cycles({{5, 5}, kHalf}), Error);
  EXPECT_THROW(static_worker_cycles(kernel(4, kHalf), -1), Error);
}

}  // namespace
}  // namespace tessera::codelets
