#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tessera/base/half.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/host/sddmm.hpp"
#include "tessera/host/spmm.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::host {
namespace {

// Claims four threads, runs all bodies on the calling one, and counts loops of several bodies.
class CountingExecutor final : public Executor {
 public:
  int threads() const override { return 4; }
  int loops = 0;

 protected:
  void run(std::int64_t count, Task task) override {
    loops += count > 1;
    for (std::int64_t i = 0; i < count; ++i) task.call(task.object, i);
  }
};

// The loops of each pass of a layer.
struct Loops {
  int forward = 0, grad_a = 0, grad_w = 0;
};

Loops loops_of(std::int64_t side, double density, std::int64_t z, BlockShape block) {
  CountingExecutor executor;
  HostLayer layer({.size = {1, side, side, z},
                   .block = block,
                   .density = density,
                   .data_type = DataType::Float,
                   .grad_a = true,
                   .grad_w = true},
                  read_host_cpu(), executor);
  layer.set_weights(sparse::random_pattern(side, side, block, density, 3));
  const Matrix<float> s = random_matrix<float>(side, z, 1);
  Matrix<float> q(side, z);
  std::vector<float> gradients(std::size_t(layer.values()));
  const auto count = [&](auto&& pass) {
    executor.loops = 0;
    pass();
    return executor.loops;
  };
  return {count([&] { layer.forward<float>(s.view(), q.view()); }),
          count([&] { layer.grad_a<float>(s.view(), q.view()); }),
          count([&] { layer.grad_w<float>(s.view(), s.view(), gradients); })};
}

TEST(ShareWork, LeavesSmallPassesToTheCallingThread) {
  for (const BlockShape block : {BlockShape{1, 1}, {16, 16}}) {
    const Loops small = loops_of(256, 0.1, 8, block);
    EXPECT_EQ(small.forward, 0);
    EXPECT_EQ(small.grad_a, 0);
    EXPECT_EQ(small.grad_w, 0);
    const Loops large = loops_of(1024, 0.1, 64, block);
    EXPECT_GT(large.forward, 0);
    EXPECT_GT(large.grad_a, 0);
    EXPECT_GT(large.grad_w, 0);
  }
  const HostProblem copied{{1, 64, 64, 128}, {1, 1}, 64 * 64 / 5, DataType::Float};
  ASSERT_TRUE(product_cells(copied, read_host_cpu(), 4).pack);
  const Loops copying = loops_of(64, 0.2, 128, {1, 1});  // two panels of S are copied
  EXPECT_EQ(copying.forward, 0);
  EXPECT_EQ(copying.grad_a, 0);
}

TEST(ShareWork, OfPackedRowsDependsOnAllColumns) {
  HostCpu cpu = read_host_cpu();
  cpu.vector = Bytes(64);
  cpu.l2 = Bytes(1 << 10);  // smaller than the weights, so that they are packed
  cpu.cores = 1;
  CountingExecutor executor;
  HostLayer layer({.size = {1, 600, 1200, 4}, .density = 0.5, .data_type = DataType::Half}, cpu,
                  executor);
  layer.set_weights(sparse::random_pattern(600, 1200, {1, 1}, 0.5, 3));
  ASSERT_TRUE(layer.is_packed(Pass::Fwd));
  for (const std::int64_t columns : {1, 4}) {
    const Matrix<Half> s = random_matrix<Half>(1200, columns, 1);
    Matrix<Half> q(600, columns);
    executor.loops = 0;
    const HostTimes times = layer.forward<Half>(s.view(), q.view());
    EXPECT_EQ(executor.loops > 0, columns == 4);
    EXPECT_GT(times.kernel_seconds, 0);
  }
}

TEST(ShareWork, LeavesSmallCallsToTheCallingThread) {
  CountingExecutor executor;
  const auto m = sparse::random_pattern(256, 256, {1, 1}, 0.1, 3);
  const CompressedRows<float, std::int32_t, std::int64_t> a{256,         256,   {1, 1},
                                                            m.row_begin, m.col, m.values};
  const Matrix<float> b = random_matrix<float>(256, 8, 1);
  Matrix<float> c(256, 8);
  std::vector<float> values(m.values.size());
  spmm<float>(a, b.view(), c.view(), executor);
  sddmm<float>(a, b.view(), b.view().transposed(), std::span(values), executor);
  EXPECT_EQ(executor.loops, 0);
}

}  // namespace
}  // namespace tessera::host
