#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/device/engine.hpp"

// A flipped bit: its place, its time, and that none flips by accident.
namespace tessera::device {
namespace {

Machine two_tiles() {
  Machine machine = machine_preset("gc200");
  machine.tiles = 2;
  return machine;
}

class Faulty : public testing::Test {
 protected:
  Faulty() { engine_.seal(); }

  // Runs three steps and returns the bytes of both slots of tile 1 after each.
  std::vector<int> run() {
    std::vector<int> seen;
    engine_.begin_program();
    for (const SlotId slot : {first_, second_})
      *engine_.view(slot).data = *(engine_.view(slot).data + 1) = std::byte{0};
    const TileId tile(1);
    for (int step = 0; step < 3; ++step) {
      engine_.compute(Phase::Distribute, {&tile, 1}, [](const Tile&) { return Cycles(1); });
      for (const SlotId slot : {first_, second_})
        for (const int byte : {0, 1}) seen.push_back(int(engine_.view(slot).data[byte]));
    }
    return seen;
  }

  std::unique_ptr<Executor> executor_ = make_executor(1);
  Engine engine_{two_tiles(), ExchangeMode::Isolate, *executor_};
  SlotId other_ = engine_.add_slot({TileId(0), "other tile", 1, 2});
  SlotId first_ = engine_.add_slot({TileId(1), "first", 1, 2});
  SlotId second_ = engine_.add_slot({TileId(1), "second", 1, 2});
};

TEST(AFault, IsOfTheFirstBitBeforeTheFirstStepUnlessSaid) {
  EXPECT_EQ(Fault{TileId(1)}, (Fault{.tile = TileId(1), .step = 0, .bit = 0}));
}

TEST_F(Faulty, ABitFlipsInItsByteBeforeItsStepAndStaysFlipped) {
  std::optional<Struck> struck;
  engine_.inject({TileId(1), 1, 8 * 3 + 2}, &struck);
  EXPECT_EQ(run(), (std::vector<int>{0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 4}));
  ASSERT_TRUE(struck);
  EXPECT_EQ(struck->slot, "second");
  EXPECT_EQ(struck->byte, 1);
}

TEST_F(Faulty, TheProgramAfterIsWithoutIt) {
  engine_.inject({TileId(1), 0, 0});
  EXPECT_EQ(run()[0], 1);
  EXPECT_TRUE(engine_.is_faulty());
  EXPECT_EQ(run(), std::vector<int>(12, 0));
  EXPECT_FALSE(engine_.is_faulty());
}

// A control step begins once, like every other step; a second flip would restore the bit.
TEST_F(Faulty, ABitStaysFlippedAfterAStepOfControl) {
  std::optional<Struck> struck;
  engine_.inject({TileId(1), 1, 0}, &struck);
  engine_.begin_program();
  std::byte& first = *engine_.view(first_).data;
  first = std::byte{0};
  engine_.control(Phase::Control, TileId(0));
  EXPECT_EQ(int(first), 0);
  EXPECT_FALSE(struck);
  engine_.control(Phase::Control, TileId(0));
  EXPECT_EQ(int(first), 1);
  ASSERT_TRUE(struck);
  EXPECT_EQ(struck->slot, "first");
  EXPECT_EQ(std::ssize(engine_.ledger().steps), 2);
}

// A flip counts once, whichever step it comes before; a slot that nothing has written has no seal.
TEST_F(Faulty, AWatchedProgramNoticesTheSlotThatChanged) {
  const auto watched = [this](ExchangeMode mode, int flip_before) {
    Engine engine(two_tiles(), mode, *executor_);
    const SlotId loaded = engine.add_slot({TileId(0), "loaded", 3, 5, SlotKind::Landing});
    const SlotId sums = engine.add_slot({TileId(1), "sums", 1, 4});
    engine.seal();
    std::vector<std::byte> host(15, std::byte{7});
    engine.begin_program();
    engine.watch_memory();
    engine.load(loaded, {host.data(), 3, 5, 5});
    const TileId tile(1);
    for (int step = 0; step < 2; ++step)
      engine.compute(Phase::Distribute, {&tile, 1}, [&](const Tile& at) {
        if (step == flip_before) engine.view(loaded).data[14] ^= std::byte{64};
        at.view(sums).data[step] = std::byte(step);
        return Cycles(1);
      });
    if (flip_before == 2) engine.view(sums).data[3] ^= std::byte{1};
    return engine.end_watch();
  };
  for (const ExchangeMode mode : {ExchangeMode::Share, ExchangeMode::Isolate}) {
    EXPECT_EQ(watched(mode, -1).slots, 0);
    for (const int step : {0, 1, 2}) {
      const Damage damage = watched(mode, step);
      EXPECT_EQ(damage.slots, 1) << step;
      EXPECT_EQ(damage.slot, step == 2 ? "sums" : "loaded");
      EXPECT_EQ(damage.tile, TileId(step == 2 ? 1 : 0));
    }
  }
}

TEST_F(Faulty, WritingThroughASharedViewIsNoDamage) {
  Engine engine(two_tiles(), ExchangeMode::Share, *executor_);
  const SlotId sums = engine.add_slot({TileId(0), "sums", 1, 8});
  const SlotId arrived = engine.add_slot({TileId(1), "arrived", 1, 8, SlotKind::Landing});
  engine.seal();
  const Exchange move = engine.prepare({{{{sums, {0, 1}}}, {arrived}}});
  engine.begin_program();
  engine.watch_memory();
  const auto write = [&](TileId tile, SlotId slot) {
    engine.compute(Phase::Distribute, {&tile, 1}, [&](const Tile& at) {
      at.view(slot).data[0] ^= std::byte{1};
      return Cycles(1);
    });
  };
  write(TileId(0), sums);
  engine.exchange(Phase::Propagate, move);
  write(TileId(1), arrived);
  EXPECT_EQ(engine.end_watch().slots, 0);
}

// An exchange that is prepared inside a program may share a slot that is sealed already.
TEST_F(Faulty, ASlotThatIsSharedLaterIsComparedOnceAndThenLeftOut) {
  for (const bool flips : {false, true}) {
    Engine engine(two_tiles(), ExchangeMode::Share, *executor_);
    const SlotId sums = engine.add_slot({TileId(0), "sums", 1, 8});
    const SlotId arrived = engine.add_slot({TileId(1), "arrived", 1, 8, SlotKind::Landing});
    engine.seal();
    engine.begin_program();
    engine.watch_memory();
    const TileId first(0), second(1);
    const auto write = [&](const TileId& tile, SlotId slot) {
      engine.compute(Phase::Distribute, {&tile, 1}, [&](const Tile& at) {
        at.view(slot).data[0] = std::byte{1};
        return Cycles(1);
      });
    };
    write(first, sums);
    if (flips) engine.view(sums).data[7] ^= std::byte{1};
    engine.exchange(Phase::Propagate, engine.prepare({{{{sums, {0, 1}}}, {arrived}}}));
    write(second, arrived);
    EXPECT_EQ(engine.end_watch().slots, flips ? 1 : 0);
  }
}

TEST_F(Faulty, TheWatchOfAProgramThatWasLeftEndsWithTheNextOne) {
  Engine engine(two_tiles(), ExchangeMode::Isolate, *executor_);
  const SlotId sums = engine.add_slot({TileId(0), "sums", 1, 8});
  engine.seal();
  engine.begin_program();
  engine.watch_memory();
  const TileId tile(0);
  engine.compute(Phase::Distribute, {&tile, 1}, [&](const Tile& at) {
    at.view(sums).data[0] = std::byte{1};
    return Cycles(1);
  });
  engine.begin_program();
  engine.view(sums).data[0] = std::byte{2};
  EXPECT_EQ(engine.end_watch().slots, 0);
}

TEST_F(Faulty, NoMemoryIsWatchedUnlessAskedFor) {
  engine_.inject({TileId(1), 1, 3});
  run();
  EXPECT_EQ(engine_.end_watch().slots, 0);
}

TEST_F(Faulty, NothingIsStruckBehindTheLastByteOrTheLastStep) {
  for (const Fault& fault : {Fault{TileId(1), 0, 32}, Fault{TileId(1), 3, 0}}) {
    std::optional<Struck> struck;
    engine_.inject(fault, &struck);
    EXPECT_EQ(run(), std::vector<int>(12, 0));
    EXPECT_FALSE(struck);
  }
  std::optional<Struck> last;
  engine_.inject({TileId(1), 2, 31}, &last);
  EXPECT_EQ(run().back(), 128);
  EXPECT_TRUE(last);
}

TEST_F(Faulty, WhatCannotBeIsRefused) {
  for (const Fault& fault : {Fault{TileId(2), 0, 0}, Fault{TileId(-1), 0, 0},
                             Fault{TileId(0), -1, 0}, Fault{TileId(0), 0, -1}})
    EXPECT_THROW(engine_.inject(fault), Error);
  Engine shared(two_tiles(), ExchangeMode::Share, *executor_);
  EXPECT_THROW(shared.inject({}), Error);
}

}  // namespace
}  // namespace tessera::device
