#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/tests/runtime/layer_case.hpp"

// A step never sees what another tile wrote in the same step: whatever the order in which a step
// takes its tiles, results are the same bits, also where tiles look at each other's memory (Share).
namespace tessera::runtime {
namespace {

enum class Order { Rising, Falling, Mixed };

// One thread that takes the indices of a loop in a chosen order.
class OrderedExecutor final : public Executor {
 public:
  explicit OrderedExecutor(Order order) : order_(order) {}
  int threads() const override { return 1; }

 protected:
  void run(std::int64_t count, Task task) override {
    std::vector<std::int64_t> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    if (order_ == Order::Falling) std::reverse(all.begin(), all.end());
    if (order_ == Order::Mixed)
      for (std::size_t i = all.size(); i > 1; --i)
        std::swap(all[i - 1], all[std::size_t(random_.below(std::int64_t(i)))]);
    for (const std::int64_t i : all) task.call(task.object, i);
  }

 private:
  Order order_;
  Random random_{3};
};

// Returns the results of all three passes, one after the other.
std::vector<float> results(const LayerCase& c, Order order, device::ExchangeMode mode) {
  OrderedExecutor executor(order);
  FullyConnected layer(c.problem(), c.plan(), c.machine(), mode, executor);
  EXPECT_FALSE(layer.set_weights(c.weights, {.force_spills = c.force_spills}));
  const Operands<float> in(c);
  Matrix<float> q(c.weights.rows, c.batch), s_grad(c.weights.cols, c.batch);
  std::vector<float> gradient(c.weights.values.size());
  layer.forward<float>(in.s.view(), q.view());
  layer.grad_a<float>(in.q_grad.view(), s_grad.view());
  layer.grad_w<float>(in.q_grad.view(), in.s.view(), gradient);
  std::vector<float> all(q.elements().begin(), q.elements().end());
  all.insert(all.end(), s_grad.elements().begin(), s_grad.elements().end());
  all.insert(all.end(), gradient.begin(), gradient.end());
  return all;
}

TEST(StepOrder, ChangesNoBitOfAnyProgram) {
  for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 4}})
    for (const bool travelling : {false, true})
      for (const bool separate : {false, true}) {
        if (separate && !block.is_element()) continue;
        LayerCase c;
        c.weights = random_weights(12 * block.rows, 10 * block.cols, block, 0.4, 7);
        c.partition = {1, 3, 2, 2};
        c.room = 2;
        c.travelling_buckets = travelling;
        c.separate_grad_a = separate;
        c.force_spills = true;
        SCOPED_TRACE(c.name());
        const auto expected = results(c, Order::Rising, device::ExchangeMode::Isolate);
        for (const Order order : {Order::Rising, Order::Falling, Order::Mixed})
          EXPECT_EQ(results(c, order, device::ExchangeMode::Share), expected);
      }
}

// The check can fail: a program that lets tile 1 look at what tile 0 writes in the same step.
TEST(StepOrder, ShowsInAProgramThatBreaksTheRule) {
  const auto seen = [](Order order) {
    OrderedExecutor executor(order);
    device::Machine machine = device::machine_preset("gc200");
    machine.tiles = 2;
    device::Engine engine(machine, device::ExchangeMode::Share, executor);
    const auto written = engine.add_slot({TileId(0), "written", 1, 1, device::SlotKind::Owned});
    const auto view = engine.add_slot({TileId(1), "view", 1, 1, device::SlotKind::Landing});
    engine.seal();
    engine.begin_program();
    *engine.view(written).data = std::byte{1};
    engine.exchange(Phase::PreArrange, engine.prepare({{{{written, {0, 1}}}, {view}}}));
    int result = 0;
    const TileId tiles[] = {TileId(0), TileId(1)};
    engine.compute(Phase::Distribute, tiles, [&](const device::Tile& tile) {
      if (tile.id() == TileId(0)) *tile.view(written).data = std::byte{2};
      if (tile.id() == TileId(1)) result = int(*tile.view(view).data);
      return Cycles(1);
    });
    return result;
  };
  EXPECT_NE(seen(Order::Rising), seen(Order::Falling));
}

}  // namespace
}  // namespace tessera::runtime
