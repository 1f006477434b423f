#include <gtest/gtest.h>

#include "tessera/tests/runtime/layer_case.hpp"

// Layers that the machine sees larger than they are: dense plans, blocks that hang over the edge,
// batches that do not come out even.
namespace tessera::runtime {
namespace {

// Rows and columns are those of whole blocks; `missing` of them are not the layer's.
LayerCase make_case(std::int64_t rows, std::int64_t cols, BlockShape block, BlockShape missing) {
  LayerCase c;
  c.weights = random_weights(rows, cols, block, 0.4, 3);
  c.missing = missing;
  c.seed = 3;
  return c;
}

const BlockShape kBlocks[] = {{1, 1}, {4, 4}, {5, 3}};

TEST(DensePlan, IsRightInAllPassesForElementsAndBlocksOfAnyShape) {
  for (const BlockShape block : kBlocks)
    for (const DataType type : {DataType::Float, DataType::Half})
      for (const bool travelling : {false, true}) {
        LayerCase c = make_case(60, 72, block, {0, 0});
        c.type = type;
        c.batch = 6;
        c.partition = {1, 2, 3, 2};
        c.travelling_buckets = travelling;
        c.dense = true;
        expect_right(c);
      }
}

TEST(DensePlan, IsRightWhereNeitherSideIsAMultipleOfAnyBlock) {
  for (const BlockShape block : kBlocks)
    for (const DataType type : {DataType::Float, DataType::Half}) {
      const BlockShape missing{block.rows / 2, block.cols / 2};
      LayerCase c = make_case(35 * block.rows, 37 * block.cols, block, missing);
      c.type = type;
      c.batch = 5;
      c.partition = {1, 2, 2, 1};
      c.dense = true;
      expect_right(c);
    }
}

TEST(DensePlan, RunsInTheLargeBlocksOfTheTypeAndKeepsTheGivenPatternInTheGradient) {
  for (const DataType type : {DataType::Float, DataType::Half}) {
    LayerCase c = make_case(21, 19, {1, 1}, {0, 0});
    c.type = type;
    c.partition = {1, 2, 2, 1};
    c.dense = true;
    const std::int64_t side = type == DataType::Half ? 16 : 8;
    ASSERT_TRUE(c.plan().use_dense);
    EXPECT_EQ(c.plan().block, (BlockShape{side, side}));
    const auto results = run_case(c);
    ASSERT_TRUE(results);
    EXPECT_EQ(results->gradient.size(), c.weights.values.size());
    EXPECT_LT(results->gradient.size(), std::size_t(21 * 19));
  }
}

TEST(DensePlan, GivesTheBitsOfTheSameMatrixInTheSameBlocks) {
  // Filling a block with zeros adds zeros: nothing of a result may change.
  LayerCase elements = make_case(32, 48, {1, 1}, {0, 0}), blocks = elements;
  blocks.weights = sparse::with_block(elements.weights, {8, 8});
  for (LayerCase* c : {&elements, &blocks}) {
    c->partition = {1, 2, 3, 1};
    c->dense = true;
  }
  const auto a = run_case(elements), b = run_case(blocks);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->q, b->q);
  EXPECT_EQ(a->s_grad, b->s_grad);
}

TEST(DensePlan, SharingAndCopyingGiveTheSameBitsAndTheSameLedger) {
  for (const DataType type : {DataType::Float, DataType::Half}) {
    LayerCase c = make_case(45, 50, {5, 5}, {2, 1});
    c.type = type;
    c.batch = 7;
    c.partition = {1, 2, 2, 2};
    c.dense = true;
    const auto shared = run_case(c, {.mode = device::ExchangeMode::Share});
    const auto isolated = run_case(c, {.mode = device::ExchangeMode::Isolate, .threads = 1});
    ASSERT_TRUE(shared && isolated);
    EXPECT_TRUE(same(*shared, *isolated));
  }
}

TEST(Padding, LastBlocksMayHangOverTheEdgeOfTheLayer) {
  for (const BlockShape block : {BlockShape{4, 4}, {5, 3}, {2, 8}})
    for (const BlockShape missing : {BlockShape{1, 1}, {block.rows - 1, block.cols - 1}})
      for (const DataType type : {DataType::Float, DataType::Half})
        for (const bool travelling : {false, true}) {
          LayerCase c = make_case(6 * block.rows, 7 * block.cols, block, missing);
          c.type = type;
          c.batch = 3;
          c.partition = {1, 3, 2, 1};
          c.travelling_buckets = travelling;
          expect_right(c);
        }
}

TEST(Padding, BatchesNeedNotComeOutEvenOverTheirParts) {
  for (const BlockShape block : kBlocks)
    for (const std::int64_t batch : {1, 5, 7, 11})
      for (const std::int64_t parts : {2, 3})
        for (const bool dense : {false, true}) {
          LayerCase c = make_case(60, 24, block, {0, 0});
          c.batch = batch;
          c.partition = {1, 2, 1, parts};
          c.dense = dense && batch >= parts;  // the planner leaves no part of the batch empty
          expect_right(c);
        }
}

TEST(Padding, WhatLiesBeyondTheLayerIsNeverWritten) {
  LayerCase c = make_case(12, 12, {4, 4}, {1, 2});
  const auto executor = make_executor(1);
  FullyConnected layer(c.problem(), c.plan(), c.machine(), device::ExchangeMode::Share, *executor);
  ASSERT_FALSE(layer.set_weights(c.weights));
  const Operands<float> in(c);
  Matrix<float> q(12, 6);
  std::fill(q.elements().begin(), q.elements().end(), 7.0f);
  layer.forward<float>(in.s.view().sub({0, 10}, {0, 4}), q.view().sub({0, 11}, {1, 5}));
  for (std::int64_t x = 0; x < 12; ++x)
    for (std::int64_t z = 0; z < 6; ++z)
      EXPECT_EQ(q(x, z) == 7.0f, x == 11 || z == 0 || z == 5) << x << " " << z;
}

}  // namespace
}  // namespace tessera::runtime
