// The ledger of single tiles.

#include <gtest/gtest.h>

#include <vector>

#include "tessera/device/engine.hpp"

namespace tessera::device {
namespace {

TEST(KeptTiles, HaveTheStepsFromTheCallThatAsksForThemToTheOneThatEndsIt) {
  Machine machine = machine_preset("gc200");
  machine.tiles = 4;
  const auto executor = make_executor(2);
  Engine engine(machine, ExchangeMode::Share, *executor);
  engine.seal();
  const std::vector<TileId> tiles{TileId(1), TileId(3)};
  const auto run = [&] {
    engine.compute(Phase::Distribute, tiles,
                   [](const Tile& tile) { return Cycles(tile.id().value); });
  };
  TileLedger kept{.steps = {{}, {}, {}}, .stages = {1, 2, 3}};  // of an earlier run
  run();
  engine.keep_tiles(&kept);
  EXPECT_EQ(kept, TileLedger{});
  run();
  engine.keep_tiles(nullptr);
  run();
  ASSERT_EQ(kept.steps.size(), 1u);
  TileLedger second;
  engine.keep_tiles(&second);
  engine.begin_program();  // ends it, too
  run();
  EXPECT_EQ(second, TileLedger{});
  ASSERT_EQ(kept.steps[0].size(), 4u);
  EXPECT_EQ(kept.steps[0][3].cycles, Cycles(3));
  EXPECT_EQ(kept.steps[0][2].cycles, Cycles());
}

// One tile sends its decision to all others, in a word of four bytes.
TEST(KeptTiles, OfAStepOfControlOneDecidesAndAllOthersAreTold) {
  Machine machine = machine_preset("gc200");
  machine.tiles = 5;
  machine.exchange_bytes_per_cycle = 1;
  const auto executor = make_executor(1);
  Engine engine(machine, ExchangeMode::Share, *executor);
  engine.seal();
  TileLedger kept;
  engine.keep_tiles(&kept);
  engine.control(Phase::Control, TileId(2));
  const Cycles cycles = machine.control + Cycles(4);
  ASSERT_EQ(engine.ledger().steps.size(), 1u);
  EXPECT_EQ(engine.ledger().steps[0],
            (StepRecord{Phase::Control, StepKind::Control, cycles, machine.sync + machine.launch,
                        TileId(2), cycles, Bytes(16), 1}));
  ASSERT_EQ(kept.steps.size(), 1u);
  for (int tile = 0; tile < 5; ++tile) {
    const TileFigures told{Cycles(), Bytes(), Bytes(4)}, decides{cycles, Bytes(4), Bytes()};
    EXPECT_EQ(kept.steps[0][std::size_t(tile)], tile == 2 ? decides : told) << tile;
  }
}

}  // namespace
}  // namespace tessera::device
