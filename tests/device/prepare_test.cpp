#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/device/engine.hpp"

// An engine checks exchanges and reports memory before a program runs.
namespace tessera::device {
namespace {

class Prepared : public testing::Test {
 protected:
  static Machine machine() {
    Machine machine = machine_preset("gc200");
    machine.tiles = 4;
    return machine;
  }
  SlotId add(int tile, std::int64_t rows, std::int64_t row_bytes) {
    return engine_.add_slot({TileId(tile), "slot", rows, row_bytes, SlotKind::Landing});
  }

  std::unique_ptr<Executor> executor_ = make_executor(1);
  Engine engine_{machine(), ExchangeMode::Share, *executor_};
};

TEST_F(Prepared, ADestinationOfTwoGathersIsRefusedWhateverIsBetweenThem) {
  const SlotId from = add(0, 1, 4), twice = add(1, 1, 4), once = add(2, 1, 4);
  engine_.seal();
  const Piece piece{from, {0, 1}};
  EXPECT_THROW(engine_.prepare({{{piece}, {twice}}, {{piece}, {once}}, {{piece}, {twice}}}), Error);
}

TEST_F(Prepared, AnExchangeIsCheckedWithoutTheOneBeforeIt) {
  const SlotId a = add(0, 1, 4), b = add(1, 1, 4);
  engine_.seal();
  engine_.prepare({{{{a, {0, 1}}}, {b}}});
  EXPECT_EQ(engine_.prepare({{{{b, {0, 1}}}, {a}}}).moved, Bytes(4));
}

TEST_F(Prepared, MemoryAsTextHasALineForEachStageAndNoMore) {
  engine_.add_slot({TileId(3), "early", 1, 1000, SlotKind::Owned, 0, 0});
  engine_.add_slot({TileId(3), "late", 1, 1024, SlotKind::Landing, 1, 2});
  const std::vector<std::string> stages{"load", "work", "collect"};
  EXPECT_EQ(to_string(engine_.memory(stages)),
            "fullest tile 3: 1024 bytes in stage 1 work\n"
            "  late                                 1024 bytes\n"
            "bytes on that tile by stage\n"
            "   0 load                              1000\n"
            "   1 work                              1024  peak\n"
            "   2 collect                           1024\n");
}

TEST_F(Prepared, ASlotThatNothingHasReachedHasNoRows) {
  const SlotId landing = engine_.add_slot({TileId(0), "landing", 3, 8, SlotKind::Landing});
  engine_.seal();
  engine_.begin_program();
  EXPECT_EQ(engine_.view(landing).rows, 0);
  EXPECT_EQ(engine_.view(landing).row_bytes, 8);
}

}  // namespace
}  // namespace tessera::device
