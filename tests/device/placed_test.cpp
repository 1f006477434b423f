// Slots in the caller's memory, whose rows may have gaps between them.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/tests/device/slot_bytes.hpp"

namespace tessera::device {
namespace {

class Placed : public testing::TestWithParam<ExchangeMode> {
 protected:
  static Machine four_tiles() {
    Machine machine = machine_preset("gc200");
    machine.tiles = 4;
    return machine;
  }

  SlotId add(int tile) {
    return engine_.add_slot({TileId(tile), "plain", 2, 4, SlotKind::Owned, 0, 0});
  }
  SlotId add_placed(SlotKind kind, std::int64_t rows, std::int64_t row_bytes) {
    return engine_.add_slot({.tile = TileId(1),
                             .name = "placed",
                             .rows = 2,
                             .row_bytes = 4,
                             .kind = kind,
                             .placed = {memory_.data(), rows, row_bytes, 8}});
  }
  std::vector<int> bytes(SlotId slot) { return contents(engine_.view(slot)); }
  bool gaps_are_untouched() const {
    return std::count(memory_.begin() + 4, memory_.begin() + 8, std::byte(99)) == 4 &&
           std::count(memory_.begin() + 12, memory_.end(), std::byte(99)) == 4;
  }

  std::unique_ptr<Executor> executor_ = make_executor(2);
  Engine engine_{four_tiles(), GetParam(), *executor_};
  std::vector<std::byte> memory_ = std::vector<std::byte>(16, std::byte(99));
};

TEST_P(Placed, KeepTheirGapsInLoadsAndMoves) {
  std::vector<std::byte> host;
  for (int i = 10; i < 18; ++i) host.push_back(std::byte(i));
  const std::vector loaded{10, 11, 12, 13, 14, 15, 16, 17};
  const SlotId plain = add(0), to = add(2), placed = add_placed(SlotKind::Owned, 2, 4);
  engine_.seal();
  engine_.load(plain, {host.data(), 2, 4, 4});
  engine_.load(placed, {host.data(), 2, 4, 4});
  EXPECT_EQ(bytes(placed), loaded);
  EXPECT_TRUE(gaps_are_untouched());
  engine_.exchange(Phase::HandOver,
                   engine_.prepare_moves({{placed, to, 0, 0, 4}, {placed, to, 4, 4, 4}}));
  EXPECT_EQ(bytes(to), loaded);
  engine_.exchange(Phase::HandOver, engine_.prepare_moves({{plain, placed, 4, 0, 4}}));
  EXPECT_EQ(bytes(placed), (std::vector{14, 15, 16, 17, 14, 15, 16, 17}));
  EXPECT_TRUE(gaps_are_untouched());
}

TEST_P(Placed, SingleRowsBetweenEachOtherAreGatheredLikeNeighbours) {
  const auto add_lines = [&](int tile, std::int64_t first) {
    return engine_.add_slot({.tile = TileId(tile),
                             .name = "lines",
                             .rows = 2,
                             .row_bytes = 4,
                             .placed = {memory_.data() + first, 2, 4, 8}});
  };
  const SlotId a = add_lines(0, 0), b = add_lines(1, 4);
  const SlotId to = engine_.add_slot({TileId(2), "both", 2, 4, SlotKind::Landing, 0, 0});
  engine_.seal();
  std::vector<std::byte> host;
  for (int i = 10; i < 26; ++i) host.push_back(std::byte(i));
  engine_.load(a, {host.data(), 2, 4, 4});
  engine_.load(b, {host.data() + 8, 2, 4, 4});
  engine_.exchange(Phase::HandOver, engine_.prepare({{{{a, {1, 2}}, {b, {1, 2}}}, {to}}}));
  EXPECT_EQ(bytes(to), (std::vector{14, 15, 16, 17, 22, 23, 24, 25}));
}

TEST_P(Placed, MustBeOwnedAndHaveTheShapeOfTheirMemory) {
  add_placed(SlotKind::Owned, 2, 4);
  EXPECT_THROW(add_placed(SlotKind::Landing, 2, 4), Error);
  EXPECT_THROW(add_placed(SlotKind::Owned, 1, 4), Error);
  EXPECT_THROW(add_placed(SlotKind::Owned, 2, 3), Error);
}

// In Share mode the destination views all rows, in Isolate mode it has those of the pieces.
TEST_P(Placed, RowsInPlaceAreViewedWhereTheyAre) {
  const auto add_landing = [&](int tile) {
    return engine_.add_slot({TileId(tile), "rows", 2, 4, SlotKind::Landing, 0, 0});
  };
  const SlotId a = add_landing(0), b = add_landing(1), to = add_landing(2), owned = add(3);
  engine_.seal();
  std::vector<std::byte> host, other(8);
  for (int i = 10; i < 26; ++i) host.push_back(std::byte(i));
  engine_.load(a, {host.data(), 2, 4, 4});
  engine_.load(b, {host.data() + 8, 2, 4, 4});
  const std::vector<Piece> pieces{{a, {1, 2}}, {b, {1, 2}}};
  const auto gather = [&](SlotId destination) {
    engine_.exchange(Phase::PreArrange, engine_.prepare({{.pieces = pieces,
                                                          .destinations = {destination},
                                                          .rows_in_place = 4,
                                                          .first_in_place = a}}));
  };
  gather(to);
  const bool share = GetParam() == ExchangeMode::Share;
  EXPECT_EQ(engine_.view(to).rows, share ? 4 : 2);
  EXPECT_EQ(engine_.view(to).data == host.data(), share);
  if (!share) {
    EXPECT_EQ(bytes(to), (std::vector{14, 15, 16, 17, 22, 23, 24, 25}));
    return;
  }
  EXPECT_THROW(gather(owned), Error);
  engine_.load(b, {other.data(), 2, 4, 4});  // not among the rows from `a` on
  EXPECT_THROW(gather(to), Error);
}

INSTANTIATE_TEST_SUITE_P(Exchange, Placed,
                         testing::Values(ExchangeMode::Share, ExchangeMode::Isolate));

}  // namespace
}  // namespace tessera::device
