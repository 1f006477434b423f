// EncodeOptions::even_load with the cost that a layer states, counted on the modelled machine.

#include <gtest/gtest.h>

#include <stdexcept>

#include "tessera/tests/runtime/layer_case.hpp"

namespace tessera::runtime {
namespace {

// Cells of 20 x 20 elements that differ in density, in buckets that hold little more than the mean.
LayerCase uneven_case(Dims partition, std::uint64_t seed) {
  Random random(seed);
  LayerCase c;
  sparse::Coo<float> places{.rows = 20 * partition.x, .cols = 20 * partition.y};
  for (std::int64_t x = 0; x < partition.x; ++x)
    for (std::int64_t y = 0; y < partition.y; ++y) {
      const double density = 0.3 * (0.75 + 0.5 * random.unit());
      for (std::int64_t i = 0; i < 400; ++i)
        if (random.unit() < density) {
          places.row.push_back(std::int32_t(20 * x + i / 20));
          places.col.push_back(std::int32_t(20 * y + i % 20));
          places.values.push_back(1);
        }
    }
  c.weights = sparse::to_csr(places);
  c.partition = partition;
  const double mean = double(c.weights.values.size()) / double(partition.product());
  c.room = 1;
  const std::int64_t most = home_need(c, c.plan().grain).second;
  c.room = (mean + 4) / double(most);
  return c;
}

// The counted cycles of a forward pass, and the estimated ones of its visits.
struct Load {
  Cycles counted, estimated, uneven;
};

Load load_of(const LayerCase& c, bool even) {
  const auto executor = make_executor(1);
  planner::Plan plan = c.plan();
  plan.fwd_meta_words += plan.fwd_meta_words;  // room for the headers of spilled records
  FullyConnected layer(c.problem(), plan, c.machine(), device::ExchangeMode::Share, *executor);
  partitioner::EncodeOptions options;
  if (even) options.even_load = layer.load_cost();
  if (layer.set_weights(c.weights, options)) throw std::runtime_error("does not fit");
  const Operands<float> in(c);
  Matrix<float> q(c.weights.rows, c.batch);
  const device::Ledger ledger = layer.forward<float>(in.s.view(), q.view());
  return {ledger.total(), layer.spill().load, layer.spill().uneven_load};
}

TEST(EvenLoad, SavesCountedCyclesWhereItsEstimateSavesSome) {
  int saved = 0, lost = 0;
  Cycles plain_sum, even_sum;
  for (const Dims partition : {Dims{1, 4, 5, 1}, {1, 1, 9, 1}, {1, 3, 3, 2}})
    for (std::uint64_t seed = 1; seed < 6; ++seed) {
      LayerCase c = uneven_case(partition, seed);
      c.batch = 256;
      const Load plain = load_of(c, false), even = load_of(c, true);
      EXPECT_EQ(plain.estimated, Cycles()) << "nothing was to be evened";
      EXPECT_LE(even.estimated, even.uneven);
      if (even.estimated == even.uneven) {
        EXPECT_EQ(even.counted, plain.counted) << c.name();
      }
      saved += even.counted < plain.counted;
      lost += even.counted > plain.counted;
      plain_sum += plain.counted;
      even_sum += even.counted;
    }
  EXPECT_GE(saved, 5);
  EXPECT_EQ(lost, 0);
  EXPECT_LT(even_sum, plain_sum);
}

// A step of propagation moves a whole bucket, so its cost is that of the machine's exchange.
TEST(EvenLoad, CountsAStepOfPropagationByTheBucketThatMoves) {
  LayerCase c = uneven_case({1, 3, 3, 1}, 1);
  const auto executor = make_executor(1);
  device::Machine machine = c.machine();
  const auto shift = [&] {
    const FullyConnected layer(c.problem(), c.plan(), machine, device::ExchangeMode::Share,
                               *executor);
    return layer.load_cost().shift;
  };
  const Cycles before = shift();
  machine.sync += Cycles(100);
  EXPECT_EQ(shift(), before + Cycles(200));  // of the exchange, and of the question before it
  machine.sync -= Cycles(100);
  machine.exchange_bytes_per_cycle = 1;
  const Cycles slow = shift();
  machine.exchange_bytes_per_cycle = 1 << 20;  // a bucket moves in one cycle
  const partitioner::TileGrid grid = tile_grid(c.problem(), c.plan(), c.machine());
  const std::int64_t bytes = grid.meta_words * c.machine().word_bits / 8 +
                             grid.blocks * grid.block.area() * bytes_of(c.type);
  EXPECT_EQ(slow - shift(), Cycles(bytes - 1));
}

}  // namespace
}  // namespace tessera::runtime
