#include "tessera/codelets/cost/matmul_cycles.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::codelets {
namespace {

constexpr DataType kHalf = DataType::Half, kFloat = DataType::Float;
constexpr std::int64_t kWorkers = 6;

struct Work {
  std::int64_t rows, nonzeros, z;
};

// Makes one step in which every worker takes `worker` cycles and the whole tile `tile` cycles.
Cycles step(const MatMulKernel& kernel, Work work) {
  std::int64_t dealt = work.nonzeros;
  if (kernel.method == Method::ElementTranspose)
    dealt = work.rows * ceil_div(work.nonzeros / work.rows, kWorkers);
  return expected_scan_cycles(kernel.method, 1, 1, 1) +
         supervisor_load_cycles(kernel, work.z)(work.rows, work.nonzeros) +
         kWorkers * worker_cycles(kernel, work.z)(work.rows, dealt);
}

using Golden = std::vector<std::pair<std::int64_t, std::int64_t>>;  // z, cycles

void expect_golden(const MatMulKernel& kernel, std::int64_t rows, std::int64_t nonzeros,
                   const Golden& golden) {
  for (const auto& [z, cycles] : golden)
    EXPECT_EQ(step(kernel, {rows, nonzeros, z}), Cycles(cycles))
        << to_string(kernel.method) << " " << to_string(kernel.data_type) << " to "
        << to_string(kernel.partials_type) << " side " << kernel.block.rows << " z " << z;
}

MatMulKernel element(Method method, DataType type) {
  MatMulKernel kernel;
  kernel.method = method;
  kernel.data_type = type;
  kernel.poplibs_estimate = true;
  return kernel;
}

MatMulKernel block(Method method, std::int64_t side, DataType in, DataType partials,
                   std::int64_t conv_units = 8) {
  return {method, in, partials, {side, side}, kWorkers, conv_units};
}

TEST(ElementCycles, MatchThePublishedEstimates) {
  expect_golden(element(Method::ElementFwd, kHalf), 10, 200,
                {{4, 3363}, {8, 4791}, {12, 8781}, {64, 30801}});
  expect_golden(element(Method::ElementFwd, kFloat), 10, 200,
                {{2, 3345}, {4, 4653}, {6, 13263}, {64, 59463}});
  expect_golden(element(Method::ElementGradA, kHalf), 10, 200,
                {{4, 3350}, {8, 4778}, {12, 8594}, {64, 30614}});
  expect_golden(element(Method::ElementGradA, kFloat), 10, 200,
                {{2, 3332}, {4, 4640}, {6, 13160}, {64, 59360}});
  expect_golden(element(Method::ElementTranspose, kHalf), 10, 200,
                {{4, 3202}, {8, 3742}, {12, 6178}, {64, 21778}});
  expect_golden(element(Method::ElementTranspose, kFloat), 10, 200,
                {{2, 3400}, {4, 4120}, {6, 4840}, {64, 25720}});
}

TEST(ElementCycles, ChargeALeftOverPairOnceUnlessAskedNotTo) {
  MatMulKernel kernel = element(Method::ElementFwd, kFloat);
  kernel.poplibs_estimate = false;
  EXPECT_EQ(worker_cycles(kernel, 6).per_nonzero, 3 + 2);
  kernel.poplibs_estimate = true;
  EXPECT_EQ(worker_cycles(kernel, 6).per_nonzero, 3 + 6);
}

// Forward, cycles of a row of n non-zeros: 13 + (12 + 3 n) * (z / 4) in float, and
// 13 + (17 + 3 n) * (z / 8) in half. GradA: 11 + (11 + 3 n) * (z / 4) and 11 + (13 + 3 n) * (z /
// 8).
TEST(ElementCycles, ChargeTheFixedPartForEveryGroupOfColumns) {
  struct Row {
    Method method;
    DataType type;
    std::int64_t group, row, fixed;
  };
  const Row rows[] = {{Method::ElementFwd, kFloat, 4, 13, 12},
                      {Method::ElementFwd, kHalf, 8, 13, 17},
                      {Method::ElementGradA, kFloat, 4, 11, 11},
                      {Method::ElementGradA, kHalf, 8, 11, 13}};
  for (const Row& r : rows) {
    MatMulKernel kernel = element(r.method, r.type);
    const LinearCycles estimate = worker_cycles(kernel, 6 * r.group);
    kernel.poplibs_estimate = false;
    for (const std::int64_t groups : {2, 6, 40}) {
      const LinearCycles cycles = worker_cycles(kernel, groups * r.group);
      EXPECT_EQ(cycles.per_row, r.row + r.fixed * groups) << to_string(r.method);
      EXPECT_EQ(cycles.per_nonzero, 3 * groups) << to_string(r.method);
    }
    EXPECT_LT(estimate.per_row, worker_cycles(kernel, 6 * r.group).per_row);
  }
}

TEST(ElementCycles, ChargeTheFixedPartForEveryColumnLeftOverInHalf) {
  MatMulKernel kernel = element(Method::ElementFwd, kHalf);
  kernel.poplibs_estimate = false;
  const auto per_row = [&](std::int64_t z) { return worker_cycles(kernel, z).per_row; };
  EXPECT_EQ(per_row(19) - per_row(18), 10);
  EXPECT_EQ(per_row(17) - per_row(16), 11);
}

// The published figures multiply the number of rows by the sum over all rows: 3 rows of 20 cost
// 180.
TEST(ElementGradWCycles, MatchThePublishedEstimates) {
  expect_golden(element(Method::ElementGradW, kHalf), 3, 180,
                {{4, 4793}, {8, 5879}, {12, 15575}, {64, 29615}});
  expect_golden(element(Method::ElementGradW, kFloat), 3, 180,
                {{2, 4739}, {4, 5843}, {6, 13427}, {64, 44747}});
}

struct BlockGolden {
  std::int64_t side;
  DataType in, partials;
  std::int64_t conv_units;
  Golden fwd, transposed;
};

TEST(BlockCycles, MatchThePublishedEstimates) {
  const BlockGolden golden[] = {{4,
                                 kHalf,
                                 kFloat,
                                 8,
                                 {{1, 23310}, {2, 26910}, {16, 61710}},
                                 {{1, 26900}, {2, 30500}, {16, 65300}}},
                                {4,
                                 kHalf,
                                 kHalf,
                                 16,
                                 {{1, 20910}, {2, 24510}, {16, 59310}},
                                 {{1, 24500}, {2, 28100}, {16, 62900}}},
                                {4,
                                 kFloat,
                                 kFloat,
                                 8,
                                 {{1, 22910}, {2, 27710}, {16, 94910}},
                                 {{1, 26500}, {2, 31300}, {16, 98500}}},
                                {8,
                                 kHalf,
                                 kFloat,
                                 8,
                                 {{1, 34074}, {2, 40074}, {16, 107274}},
                                 {{1, 37664}, {2, 43664}, {16, 110864}}},
                                {8,
                                 kHalf,
                                 kHalf,
                                 16,
                                 {{1, 30492}, {2, 36492}, {16, 103692}},
                                 {{1, 34082}, {2, 40082}, {16, 107282}}},
                                {8,
                                 kFloat,
                                 kFloat,
                                 8,
                                 {{1, 42092}, {2, 51692}, {16, 187292}},
                                 {{1, 45682}, {2, 55282}, {16, 190882}}},
                                {16,
                                 kHalf,
                                 kFloat,
                                 8,
                                 {{1, 78492}, {2, 90492}, {16, 222492}},
                                 {{1, 85682}, {2, 97682}, {16, 229682}}},
                                {16,
                                 kHalf,
                                 kHalf,
                                 16,
                                 {{1, 43686}, {2, 49686}, {16, 115686}},
                                 {{1, 47276}, {2, 53276}, {16, 119276}}}};
  for (const BlockGolden& g : golden) {
    expect_golden(block(Method::BlockFwd, g.side, g.in, g.partials, g.conv_units), 10, 200, g.fwd);
    expect_golden(block(Method::BlockTranspose, g.side, g.in, g.partials, g.conv_units), 10, 200,
                  g.transposed);
  }
}

TEST(BlockGradWCycles, MatchThePublishedEstimates) {
  const Method method = Method::BlockGradW;
  expect_golden(block(method, 4, kHalf, kFloat), 1, 20, {{1, 4991}, {16, 15791}, {64, 50351}});
  expect_golden(block(method, 4, kHalf, kHalf), 1, 20, {{1, 4511}, {16, 15311}, {64, 49871}});
  expect_golden(block(method, 4, kFloat, kFloat), 1, 20, {{1, 7157}, {16, 28757}, {64, 97877}});
  expect_golden(block(method, 8, kHalf, kFloat), 1, 20, {{1, 16751}, {16, 59951}, {64, 198191}});
  expect_golden(block(method, 8, kFloat, kFloat), 1, 20, {{1, 31007}, {16, 117407}, {64, 393887}});
  expect_golden(block(method, 16, kHalf, kFloat), 1, 20, {{1, 72437}, {16, 245237}, {64, 798197}});
  expect_golden(block(method, 16, kHalf, kHalf), 1, 20, {{1, 64757}, {16, 237557}, {64, 790517}});
}

TEST(BlockGradWAmpCycles, MatchThePublishedEstimates) {
  const Method method = Method::BlockGradWAmp;
  expect_golden(block(method, 4, kHalf, kFloat), 4, 80, {{16, 11706}, {64, 38106}});
  expect_golden(block(method, 4, kHalf, kHalf), 4, 80, {{16, 10746}, {64, 35706}});
  expect_golden(block(method, 4, kFloat, kFloat), 4, 80, {{16, 23866}, {64, 88186}});
  expect_golden(block(method, 8, kHalf, kFloat), 4, 80, {{16, 17146}, {64, 56986}});
  expect_golden(block(method, 8, kFloat, kFloat), 4, 80, {{16, 37146}, {64, 139866}});
  expect_golden(block(method, 16, kHalf, kFloat), 4, 80, {{16, 20826}, {64, 71706}});
}

TEST(ScanCycles, MatchThePublishedEstimateWithSeveralRecordsPerBucket) {
  const MatMulKernel kernel = element(Method::ElementFwd, kHalf);
  EXPECT_EQ(expected_scan_cycles(Method::ElementFwd, 4, 1, 2) +
                kWorkers * worker_cycles(kernel, 8)(10, 200),
            Cycles(5006));
}

TEST(ScanCycles, OfRealCountsEqualTheExpectedOnesWhenTheMatchIsInTheMiddle) {
  for (const Method method : {Method::ElementFwd, Method::ElementGradA, Method::ElementTranspose,
                              Method::ElementGradW, Method::BlockFwd, Method::BlockGradWAmp})
    EXPECT_EQ(scan_cycles(method)({.records_passed = 6, .matches = 3, .match_positions = 6}),
              expected_scan_cycles(method, 5, 3, 3))
        << to_string(method);
}

TEST(BlockCycles, PriceAnyBlockAsTheSquaresThatCoverIt) {
  for (const Method method :
       {Method::BlockFwd, Method::BlockTranspose, Method::BlockGradW, Method::BlockGradWAmp}) {
    MatMulKernel odd = block(method, 1, kHalf, kFloat), square = block(method, 8, kHalf, kFloat);
    odd.block = {5, 30};
    EXPECT_EQ(worker_cycles(odd, 16).per_nonzero, 4 * worker_cycles(square, 16).per_nonzero);
    EXPECT_EQ(worker_cycles(odd, 16).start, worker_cycles(square, 16).start);
    EXPECT_EQ(supervisor_load_cycles(odd, 16).per_nonzero,
              4 * supervisor_load_cycles(square, 16).per_nonzero);
  }
}

TEST(BlockCycles, AreNeverFreeForABlockWithWork) {
  for (const Method method :
       {Method::BlockFwd, Method::BlockTranspose, Method::BlockGradW, Method::BlockGradWAmp})
    for (const DataType type : {kHalf, kFloat})
      for (const BlockShape shape : {BlockShape{1, 2}, {3, 3}, {4, 16}, {17, 5}, {32, 32}}) {
        MatMulKernel kernel = block(method, 4, type, kFloat);
        kernel.block = shape;
        for (const std::int64_t z : {1, 2, 3, 16, 17})
          EXPECT_GT(worker_cycles(kernel, z).per_nonzero, 0)
              << to_string(method) << " " << shape.rows << "x" << shape.cols << " z " << z;
      }
}

TEST(WorkerCycles, RefuseElementMethodsOnBlocksAndNegativeBatches) {
  EXPECT_THROW(worker_cycles(block(Method::ElementFwd, 4, kHalf, kFloat), 1), Error);
  EXPECT_THROW(worker_cycles(element(Method::ElementFwd, kHalf), -1), Error);
}

}  // namespace
}  // namespace tessera::codelets
