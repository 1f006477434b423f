// Functions that make a value from other values, while each of their allocations fails in turn:
// they throw std::bad_alloc, leak nothing (AddressSanitizer looks), and give the same value
// afterwards. tests/layers does the same for layers, which have a state to keep.

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "tessera/io/array.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/io/read.hpp"
#include "tessera/io/write.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/failing_allocations.hpp"

namespace tessera::test {
namespace {

sparse::Csr<float> weights() { return sparse::random_pattern(12, 16, {1, 1}, 0.4, 3); }

template <class Make>
void expect_same_value_after_failures(const Make& make) {
  const auto expected = make();
  std::optional<std::decay_t<decltype(expected)>> made;
  const long failures = fail_each_allocation([&] { made = make(); }, [] {});
  EXPECT_GT(failures, 0);
  ASSERT_TRUE(made);
  EXPECT_EQ(*made, expected);
}

TEST(WithoutMemory, TextsAreReadAgain) {
  const std::string mtx = io::write_mtx(weights()), smtx = io::write_smtx(weights());
  expect_same_value_after_failures([&] { return io::read_mtx(mtx, "mtx"); });
  expect_same_value_after_failures([&] { return io::read_smtx(smtx, "smtx"); });
  expect_same_value_after_failures([] { return io::read_mask("2 3 1 0 1 0 1 0", "mask"); });
}

TEST(WithoutMemory, ArraysAreReadAgain) {
  const Matrix<float> dense = sparse::to_dense(weights());
  const std::string npy = io::write_npy(dense.view());
  expect_same_value_after_failures([&] { return io::to_csr(io::read_npy(npy, "npy"), "npy"); });
}

TEST(WithoutMemory, ArchivesAreReadAgain) {
  if (!io::can_read_npz()) GTEST_SKIP() << "this build has no libzip";
  const std::string npz = io::write_npz(weights());
  expect_same_value_after_failures([&] { return io::read_npz(npz, "npz"); });
}

TEST(WithoutMemory, MatricesAreConvertedAgain) {
  const sparse::Csr<float> matrix = weights();
  expect_same_value_after_failures([&] { return sparse::transpose(matrix); });
  expect_same_value_after_failures([&] { return sparse::to_csr(sparse::to_coo(matrix)); });
  expect_same_value_after_failures([&] { return sparse::with_block(matrix, {2, 4}); });
}

TEST(WithoutMemory, PatternsAreEncodedAndDecodedAgain) {
  const sparse::Csr<float> matrix = weights();
  partitioner::TileGrid grid;
  grid.size = {1, 12, 16, 4};
  grid.block = {1, 1};
  grid.splits = {1, 2, 2, 2};
  grid.grad_w = true;
  grid.meta_words = 300;
  grid.blocks = 16;
  expect_same_value_after_failures([&] {
    const partitioner::Buckets buckets = *partitioner::encode(matrix, grid).buckets;
    const auto values = partitioner::to_bucket_order<float, float>(buckets, matrix.values);
    return partitioner::decode<float>(buckets, values);
  });
}

TEST(WithoutMemory, LayersArePlannedAgain) {
  const Problem problem{.size = {1, 12, 16, 4}, .density = 0.4, .grad_a = true, .grad_w = true};
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 2;
  expect_same_value_after_failures([&] { return planner::plan_or_throw(problem, machine); });
}

}  // namespace
}  // namespace tessera::test
