#include <gtest/gtest.h>

#include "tessera/device/engine.hpp"

// Tests of the cycles that it costs to begin receiving from one more tile.
namespace tessera::device {
namespace {

class ReceiveStart : public testing::Test {
 protected:
  static Machine machine() {
    Machine machine = machine_preset("gc200");
    machine.tiles = 8;
    machine.receive_start = Cycles(100);
    return machine;
  }
  SlotId add(int tile, std::int64_t rows) {
    return engine_.add_slot({TileId(tile), "test", rows, 4, SlotKind::Landing, 0, 0});
  }
  Cycles cycles(std::vector<Gather> gathers) { return engine_.prepare(std::move(gathers)).cycles; }

  std::unique_ptr<Executor> executor_ = make_executor(1);
  Engine engine_{machine(), ExchangeMode::Share, *executor_};
};

TEST_F(ReceiveStart, IsPaidOnceForEachSenderWhateverItSends) {
  const SlotId a = add(0, 1), b = add(0, 1), c = add(2, 1), to = add(4, 3), beside = add(4, 1);
  engine_.seal();
  EXPECT_EQ(cycles({{{{a, {0, 1}}, {b, {0, 1}}}, {to}}}), Cycles(100 + 2));
  EXPECT_EQ(cycles({{{{a, {0, 1}}, {b, {0, 1}}, {c, {0, 1}}}, {to}}}), Cycles(200 + 3));
  EXPECT_EQ(cycles({{{{a, {0, 1}}}, {to}}, {{{b, {0, 1}}}, {beside}}}), Cycles(100 + 2));
}

TEST_F(ReceiveStart, IsNotPaidForOwnAndEmptyPieces) {
  const SlotId own = add(4, 1), far = add(0, 1), to = add(4, 2);
  engine_.seal();
  EXPECT_EQ(cycles({{{{own, {0, 1}}}, {to}}}), Cycles(0));
  EXPECT_EQ(cycles({{{{own, {0, 1}}, {far, {0, 0}}}, {to}}}), Cycles(0));
}

TEST_F(ReceiveStart, FollowsTheSendersThatAGatherSaysItHas) {
  const SlotId own = add(4, 2), to = add(4, 2), pair4 = add(4, 2), pair5 = add(5, 2);
  engine_.seal();
  // The senders are 7 tiles elsewhere, so nothing comes from the receiver itself.
  EXPECT_EQ(cycles({{{{own, {0, 2}}}, {to}, 7}}), Cycles(700 + 2));
  const Exchange shared = engine_.prepare({{{{own, {0, 2}}}, {pair4, pair5}, 7}});
  EXPECT_EQ(shared.cycles, Cycles(700 + 1));  // neighbours share their bus
  EXPECT_EQ(shared.moved, Bytes(16));
}

}  // namespace
}  // namespace tessera::device
