// The cells, panels and copies that a layer on this computer is cut into.

#include "tessera/host/cells.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "tessera/base/int_math.hpp"

namespace tessera::host {
namespace {

const HostCpu kUsual{
    .cores = 2, .l1_data = Bytes(32 << 10), .l2 = Bytes(1 << 20), .l3 = Bytes(32 << 20)};

TEST(HostCells, AreWholeBlocksInsideTheLayerAndKeepTheirSliceInACache) {
  for (const BlockShape block : {BlockShape{1, 1}, {4, 4}, {16, 16}, {3, 50}})
    for (const std::int64_t side : {1, 48, 1000, 4096})
      for (const std::int64_t z : {1, 16, 100, 256, 1025})
        for (const double density : {0.001, 0.1, 1.0}) {
          SCOPED_TRACE(testing::Message() << block.rows << "x" << block.cols << " side " << side
                                          << " z " << z << " density " << density);
          const HostProblem problem{
              {1, round_up(side, block.rows), round_up(side, block.cols), z},
              block,
              std::int64_t(density * double(side * side) / double(block.area())),
              DataType::Float};
          for (const HostCells& cells :
               {product_cells(problem, kUsual, 2), gradient_cells(problem, kUsual)}) {
            EXPECT_EQ(cells.x % block.rows, 0);
            EXPECT_EQ(cells.y % block.cols, 0);
            EXPECT_TRUE(0 < cells.x && cells.x <= problem.size.x) << cells.x;
            EXPECT_TRUE(0 < cells.y && cells.y <= problem.size.y) << cells.y;
            EXPECT_TRUE(0 < cells.z && cells.z <= whole_vectors(z, 16)) << cells.z;
            const std::int64_t bytes = cells.y * cells.z * 4, l2 = kUsual.l2.value;
            const bool has_few = double(cells.y) * density <= 16;  // in a row of the slice
            const bool fits = bytes <= (has_few ? 2 * l2 : l2 / 2);
            const bool elements = block.is_element();
            EXPECT_TRUE(fits || !cells.pack || !elements || cells.y == 1) << cells.y;
          }
        }
}

TEST(HostCells, HaveWiderPanelsWhereRowsInL1KeepEnoughNonZeros) {
  HostCpu large = kUsual, small = kUsual;
  large.l1_data = Bytes(48 << 10);  // 96 rows of 96 columns in three quarters
  small.l1_data = Bytes(32 << 10);  // 64 rows
  HostProblem problem{{1, 4096, 4096, 1024}, {1, 1}, 4096 * 4096 / 4, DataType::Float};
  const HostCells wide = product_cells(problem, large, 2);
  EXPECT_EQ(wide.z, 96);
  EXPECT_EQ(wide.y, 96);
  EXPECT_EQ(product_cells(problem, small, 2).z, 64);
  problem.blocks = 4096 * 4096 / 10;
  EXPECT_EQ(product_cells(problem, large, 2).z, 64);
}

TEST(HostCells, CopyRowsOfElementsThatAreReadOftenAndNoOthers) {
  HostProblem problem{{1, 512, 1024, 256}, {1, 1}, 8 * 1024, DataType::Float};
  EXPECT_TRUE(product_cells(problem, kUsual, 2).pack);
  EXPECT_TRUE(product_columns(product_cells(problem, kUsual, 2), problem, 512, kUsual).pack);
  --problem.blocks;
  EXPECT_FALSE(product_cells(problem, kUsual, 2).pack);
  EXPECT_FALSE(product_columns(product_cells(problem, kUsual, 2), problem, 512, kUsual).pack);
}

TEST(HostCells, OfElementsHaveWholeVectorsWhereRowsAreReadOften) {
  HostProblem problem{{1, 768, 3072, 50}, {1, 1}, 768 * 3072 / 10, DataType::Float};
  HostCpu cpu = kUsual;
  constexpr std::int64_t kColumns[] = {1, 2, 4, 5, 10, 17, 64};
  constexpr std::int64_t kOf8[] = {1, 4, 4, 8, 16, 24, 64}, kOf16[] = {1, 4, 4, 8, 16, 32, 64};
  for (std::size_t i = 0; i < std::size(kColumns); ++i)
    for (const bool is_narrow : {false, true}) {
      const std::int64_t z = problem.size.z = kColumns[i];
      cpu.vector = Bytes(is_narrow ? 32 : 64);
      const HostCells cells = product_cells(problem, cpu, 1);
      const HostColumns columns = product_columns(cells, problem, z, cpu);
      EXPECT_EQ(columns.computed(z), is_narrow ? kOf8[i] : kOf16[i]) << z;
      EXPECT_EQ(columns.pack, columns.computed(z) > z) << z;
      EXPECT_EQ(columns.stride, cells.z) << z;  // words are distances
    }
  // Results would cost more than is gained.
  problem = {{1, 7680, 768, 50}, {1, 1}, 7680 * 7, DataType::Float};
  const HostCells cells = product_cells(problem, cpu, 1);
  EXPECT_EQ(product_columns(cells, problem, 50, cpu).computed(50), 50);
}

// Words count the bytes of a slice.
TEST(HostCells, OfMillionsOfInputsHaveSlicesThatWordsCanCount) {
  for (const std::int64_t z : {64, 512})
    for (const int threads : {1, 4}) {
      const HostProblem wide{{1, 4096, 3'000'000, z}, {1, 1}, 4096, DataType::Float};
      const HostCells cells = product_cells(wide, kUsual, threads);
      EXPECT_LE(cells.y * cells.z * 4, std::int64_t{1} << 30);
      EXPECT_LE(cells.x * cells.z * 4, std::int64_t{1} << 30);
    }
}

TEST(HostCells, OfThreadsAreManyInEveryPanel) {
  const HostProblem problem{{1, 4096, 1024, 4096}, {1, 1}, 4096 * 16, DataType::Float};
  for (const int threads : {2, 16})
    EXPECT_GE(4096 / product_cells(problem, kUsual, threads).x, 2 * threads);
}

TEST(HostCells, OfOneThreadAreNotCutAlongOutputs) {
  const HostProblem problem{{1, 512, 1024, 64}, {1, 1}, 20 * 1024, DataType::Float};
  HostCells one = product_cells(problem, kUsual, 1);
  const HostCells shared = product_cells(problem, kUsual, 2);
  EXPECT_EQ(one.x, 512);
  EXPECT_LT(shared.x, 512);
  EXPECT_EQ(product_cells(problem, kUsual, 4), shared);
  one.x = shared.x;
  EXPECT_EQ(one, shared);  // the slices of S, and with them the order of sums, are the same
}

TEST(HostCells, OfBlocksOfOneThreadHaveAsManyValuesAsWordsOf16BitsCount) {
  HostProblem problem{{1, 512, 1024, 64}, {16, 16}, 100, DataType::Float};
  HostCells one = product_cells(problem, kUsual, 1);
  const HostCells shared = product_cells(problem, kUsual, 2);
  EXPECT_EQ(one.x, 512);
  EXPECT_EQ(shared.x, 32);
  one.x = shared.x;
  EXPECT_EQ(one, shared);
  problem.blocks = 32 * 16;  // 4,096 values in each block row
  EXPECT_EQ(product_cells(problem, kUsual, 1).x, 12 * 16);
  problem = {{1, 8192, 8192, 16}, {16, 16}, 512 * 512 / 8, DataType::Float};
  EXPECT_EQ(product_cells(problem, kUsual, 1), product_cells(problem, kUsual, 2))
      << "one thread has no more cells than several";
}

TEST(HostCells, CopyWhatBlocksReadOftenOnlyWhereTheSecondLevelCacheIsLarge) {
  HostCpu large = kUsual, small = kUsual;
  large.l2 = Bytes(2 << 20);
  small.l2 = Bytes(1 << 20);
  HostProblem problem{{1, 4096, 4096, 256}, {4, 4}, 100'000, DataType::Float};
  const HostCells often = product_cells(problem, large, 2);
  EXPECT_TRUE(often.pack);
  EXPECT_EQ(often.z, 64);  // 1 MiB of 4096 rows
  EXPECT_FALSE(product_cells(problem, small, 2).pack);
  problem.blocks = 10'000;
  EXPECT_FALSE(product_cells(problem, large, 2).pack);
}

TEST(HostCells, CopyUnalignedRowsThatAreReadOften) {
  HostProblem problem{{1, 256, 512, 64}, {1, 1}, 16 * 512, DataType::Float};
  HostCpu cpu = kUsual;
  cpu.vector = Bytes(64);
  EXPECT_TRUE(copies_unaligned(problem, cpu));
  cpu.vector = Bytes(32);
  EXPECT_FALSE(copies_unaligned(problem, cpu));
  problem.blocks *= 4;
  EXPECT_TRUE(copies_unaligned(problem, cpu));
}

// Whatever the vectors, because the order of sums follows from the panels.
TEST(GradientCells, HaveNarrowPanelsWhereASliceWouldFillTheSecondCache) {
  const auto columns = [](std::int64_t places, std::int64_t z, std::int64_t l2,
                          std::int64_t bytes) {
    HostCpu cpu = kUsual;
    cpu.l2 = Bytes(l2);
    cpu.vector = Bytes(bytes);
    return gradient_cells({{1, 1024, 1024, z}, {1, 1}, places, DataType::Float}, cpu).z;
  };
  constexpr std::int64_t kMiB = 1 << 20, kAt64th = 1024 * 1024 / 64;
  for (const std::int64_t vector : {32, 64}) {
    EXPECT_EQ(columns(kAt64th, 4096, kMiB, vector), 128);
    EXPECT_EQ(columns(kAt64th, 256, kMiB, vector), 256) << "one panel";
    EXPECT_EQ(columns(kAt64th - 1, 4096, kMiB, vector), 256) << "read 16 times or less";
    EXPECT_EQ(columns(4 * kAt64th, 4096, kMiB, vector), 256) << "the slice fits";
    EXPECT_EQ(columns(kAt64th, 4096, kMiB / 2, vector), 256) << "not measured";
  }
}

}  // namespace
}  // namespace tessera::host
