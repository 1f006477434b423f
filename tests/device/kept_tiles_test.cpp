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

}  // namespace
}  // namespace tessera::device
