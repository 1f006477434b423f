#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/tests/device/slot_bytes.hpp"

namespace tessera::device {
namespace {

Machine machine_of_four() {
  Machine machine = machine_preset("gc200");
  machine.tiles = 4;
  return machine;
}

class Moves : public testing::TestWithParam<ExchangeMode> {
 protected:
  std::unique_ptr<Executor> executor_ = make_executor(2);
  Engine engine_{machine_of_four(), GetParam(), *executor_};
  std::vector<std::byte> host_ = std::vector<std::byte>(8);

  SlotId add(int tile, std::int64_t rows, std::int64_t row_bytes) {
    return engine_.add_slot({TileId(tile), "test", rows, row_bytes, SlotKind::Owned, 0, 0});
  }
  void load(SlotId slot, int first) {
    for (std::size_t i = 0; i < host_.size(); ++i) host_[i] = std::byte(first + int(i));
    engine_.load(slot, {host_.data(), 1, 8, 8});
  }
  std::vector<int> bytes(SlotId slot) { return contents(engine_.view(slot)); }
};

TEST_P(Moves, PutASlotTogetherFromRunsOfSeveralTiles) {
  const SlotId a = add(0, 1, 8), b = add(1, 1, 8), to = add(2, 1, 8), other = add(3, 1, 8);
  engine_.seal();
  load(a, 10);
  load(b, 20);
  load(to, 90);
  load(other, 80);
  const Exchange exchange =
      engine_.prepare_moves({{b, other, 0, 0, 8}, {b, to, 0, 4, 2}, {a, to, 2, 1, 3}});
  engine_.exchange(Phase::HandOver, exchange);
  EXPECT_EQ(bytes(to), (std::vector{90, 12, 13, 14, 20, 21, 96, 97}));
  EXPECT_EQ(bytes(other), (std::vector{20, 21, 22, 23, 24, 25, 26, 27}));
  EXPECT_EQ(exchange.moved, Bytes(13));
  // Tile 1 sends 10 bytes at 4 a cycle; no tile receives more.
  EXPECT_EQ(engine_.ledger().steps.at(0).cycles, Cycles(3));
  EXPECT_EQ(engine_.ledger().steps.at(0).overhead, Cycles(400));
}

// Tiles 2 and 3 share a bus. Eight bytes that both take arrive at twice the width; those that tile
// 3 takes alone do not.
TEST_P(Moves, OfOneRunToSeveralTilesAreSentOnceAndReceivedTogether) {
  const SlotId a = add(0, 1, 8), to2 = add(2, 1, 8), to3 = add(3, 1, 8), near = add(1, 1, 8);
  engine_.seal();
  load(a, 10);
  const Exchange both = engine_.prepare_moves({{a, to2, 0, 0, 8}, {a, to3, 0, 0, 8}});
  EXPECT_EQ(both.cycles, Cycles(2));  // tile 0 sends 8 bytes at 4 a cycle
  EXPECT_EQ(both.moved, Bytes(16));
  EXPECT_EQ(both.tile_sum, Cycles(2 + 1 + 1));
  engine_.exchange(Phase::HandOver, both);
  EXPECT_EQ(bytes(to2), bytes(a));
  EXPECT_EQ(bytes(to3), bytes(a));
  // Other runs are other multicasts.
  const Exchange apart = engine_.prepare_moves({{a, to2, 0, 0, 4}, {a, to3, 4, 0, 4}});
  EXPECT_EQ(apart.tile_sum, Cycles(2 + 1 + 1));
  EXPECT_EQ(engine_.prepare_moves({{a, near, 0, 0, 8}, {a, to3, 0, 0, 8}}).tile_sum,
            Cycles(2 + 2 + 2));
}

TEST_P(Moves, CostTheSameWithoutAList) {
  const SlotId a = add(0, 1, 8), b = add(1, 1, 8), to = add(2, 1, 8), other = add(3, 1, 8);
  engine_.seal();
  load(to, 90);
  const std::vector<Move> moves{{b, other, 0, 0, 8}, {b, to, 0, 4, 2}, {a, to, 2, 1, 3}};
  const Exchange listed = engine_.prepare_moves(moves);
  const Exchange charged = engine_.charge_moves([&moves](const auto& visit) {
    for (const Move& move : moves) visit(move);
  });
  EXPECT_EQ(charged.cycles, listed.cycles);
  EXPECT_EQ(charged.tile_sum, listed.tile_sum);
  EXPECT_EQ(charged.critical_tile, listed.critical_tile);
  EXPECT_EQ(charged.moved, listed.moved);
  EXPECT_EQ(charged.tiles, listed.tiles);
  TileLedger tiles;
  engine_.keep_tiles(&tiles);
  engine_.exchange(Phase::HandOver, charged);
  EXPECT_EQ(bytes(to), (std::vector{90, 91, 92, 93, 94, 95, 96, 97}));  // nothing was copied
  engine_.exchange(Phase::HandOver, listed);
  ASSERT_EQ(tiles.steps.size(), 2u);
  EXPECT_EQ(tiles.steps[0], tiles.steps[1]);
  EXPECT_THROW(engine_.charge_moves([&](const auto& visit) { visit({a, to, 6, 0, 4}); }), Error);
}

TEST_P(Moves, GathersWithoutAListCostTheSameInOneSlotOfATile) {
  const SlotId a = add(0, 2, 4), b = add(1, 2, 4), to2 = add(2, 2, 4), again = add(2, 2, 4),
               to3 = add(3, 2, 4), both = add(2, 4, 4);
  engine_.seal();
  const Exchange listed = engine_.prepare({{{{a, {0, 1}}}, {to2, to3}}, {{{b, {0, 2}}}, {again}}});
  const std::vector<Gather> of_one_slot{{{{a, {0, 1}}}, {both, to3}}, {{{b, {0, 2}}}, {both}}};
  const Exchange charged = engine_.charge_gathers(of_one_slot);
  TileLedger tiles;
  engine_.keep_tiles(&tiles);
  engine_.exchange(Phase::HandOver, listed);
  engine_.exchange(Phase::HandOver, charged);
  EXPECT_EQ(engine_.ledger().steps[0], engine_.ledger().steps[1]);
  EXPECT_EQ(tiles.steps[0], tiles.steps[1]);
  const std::vector<Gather> too_long{{{{a, {0, 2}}, {b, {0, 1}}}, {to2}}};
  EXPECT_THROW(engine_.charge_gathers(too_long), Error);
}

TEST_P(Moves, ShareAnExchangeWithGathers) {
  const SlotId a = add(0, 1, 8), b = add(1, 1, 8), moved = add(2, 1, 8), gathered = add(3, 1, 8);
  engine_.seal();
  load(a, 10);
  load(b, 20);
  const Exchange exchange = engine_.prepare({{{{a, {0, 1}}}, {gathered}}}, {{b, moved, 0, 0, 8}});
  engine_.exchange(Phase::PreArrange, exchange);
  EXPECT_EQ(bytes(gathered), bytes(a));
  EXPECT_EQ(bytes(moved), bytes(b));
  EXPECT_EQ(exchange.moved, Bytes(16));
  const auto prepare = [&](SlotId from, SlotId to) {
    static_cast<void>(engine_.prepare({{{{a, {0, 1}}}, {gathered}}}, {{from, to, 0, 0, 8}}));
  };
  EXPECT_THROW(prepare(b, gathered), Error);  // written twice
  EXPECT_THROW(prepare(b, a), Error);         // a source of the gather
  EXPECT_THROW(prepare(gathered, moved), Error);
}

// In Isolate mode a landing slot has no contents until something is written to it.
TEST_P(Moves, FillASlotThatHadNoContents) {
  if (GetParam() == ExchangeMode::Share) return;
  const SlotId a = add(0, 1, 8);
  const SlotId landing = engine_.add_slot({TileId(2), "test", 1, 8, SlotKind::Landing, 0, 0});
  engine_.seal();
  load(a, 10);
  engine_.exchange(Phase::HandOver, engine_.prepare_moves({{a, landing, 0, 0, 8}}));
  EXPECT_EQ(bytes(landing), bytes(a));
}

TEST_P(Moves, InsideATileCostNothing) {
  const SlotId a = add(0, 1, 8), to = add(0, 1, 8);
  engine_.seal();
  load(a, 10);
  engine_.exchange(Phase::HandOver, engine_.prepare_moves({{a, to, 0, 0, 8}}));
  EXPECT_EQ(bytes(to), bytes(a));
  EXPECT_EQ(engine_.ledger().total(), Cycles(0));
}

// An exchange that is prepared again keeps nothing of its former cost.
TEST_P(Moves, ThatArePreparedAgainInsideATileCostNothing) {
  const SlotId far = add(1, 1, 8), near = add(3, 1, 8);
  const SlotId to = engine_.add_slot({TileId(3), "landing", 1, 8, SlotKind::Landing, 0, 0});
  engine_.seal();
  load(far, 10);
  load(near, 20);
  Exchange exchange = engine_.prepare({{{{far, {0, 1}}}, {to}}});
  EXPECT_GT(exchange.cycles, Cycles());
  EXPECT_EQ(exchange.critical_tile, TileId(1)) << "the sender, the first of two equal tiles";
  EXPECT_EQ(exchange.tiles, 2);
  exchange.gathers[0].pieces[0].slot = near;
  engine_.prepare_again(exchange);
  EXPECT_EQ(exchange.cycles, Cycles());
  EXPECT_EQ(exchange.critical_tile, TileId());
  EXPECT_EQ(exchange.tile_sum, Cycles());
  EXPECT_EQ(exchange.moved, Bytes());
  EXPECT_EQ(exchange.tiles, 0);
}

TEST_P(Moves, ThatDoNotFitTheirSlotsAreRefused) {
  const SlotId a = add(0, 1, 8), to = add(1, 1, 8);
  const SlotId landing = engine_.add_slot({TileId(2), "test", 1, 8, SlotKind::Landing, 0, 0});
  engine_.seal();
  for (const Move& bad : {Move{a, to, 4, 0, 5}, Move{a, to, 0, 4, 5}, Move{a, to, 0, 0, 0},
                          Move{a, to, -1, 0, 2}, Move{a, a, 0, 0, 8}})
    EXPECT_THROW(static_cast<void>(engine_.prepare_moves({bad})), Error);
  if (GetParam() == ExchangeMode::Isolate) return;
  EXPECT_THROW(static_cast<void>(engine_.prepare_moves({{a, landing, 0, 0, 8}})), Error);
}

TEST_P(Moves, NoticeMemoryThatChangedBeforeTheyWrite) {
  const SlotId a = add(0, 1, 8), to = add(1, 1, 8);
  engine_.seal();
  engine_.begin_program();
  engine_.watch_memory();
  load(a, 10);
  const Exchange exchange = engine_.prepare_moves({{a, to, 0, 0, 4}});
  engine_.exchange(Phase::HandOver, exchange);
  *engine_.view(to).data = std::byte(77);
  engine_.exchange(Phase::HandOver, exchange);
  EXPECT_EQ(engine_.end_watch().slots, 1);
}

INSTANTIATE_TEST_SUITE_P(Exchange, Moves,
                         testing::Values(ExchangeMode::Share, ExchangeMode::Isolate),
                         [](const auto& p) {
                           return p.param == ExchangeMode::Share ? "Share" : "Isolate";
                         });

// Two slots of two tiles that are placed in one matrix of two rows: a gather takes them in place.
TEST(PlacedSlots, AreAdjacentForAGatherInShareMode) {
  for (const ExchangeMode mode : {ExchangeMode::Share, ExchangeMode::Isolate}) {
    const auto executor = make_executor(1);
    Engine engine(machine_of_four(), mode, *executor);
    std::vector<std::byte> matrix(2 * 8);
    std::vector<SlotId> rows;
    for (int tile = 0; tile < 2; ++tile)
      rows.push_back(engine.add_slot({.tile = TileId(tile),
                                      .name = "share",
                                      .rows = 1,
                                      .row_bytes = 4,
                                      .kind = SlotKind::Owned,
                                      .placed = {matrix.data() + tile * 8, 1, 4, 8}}));
    const SlotId source = engine.add_slot({TileId(2), "source", 1, 8, SlotKind::Owned});
    const SlotId whole = engine.add_slot({TileId(3), "whole", 2, 4, SlotKind::Landing});
    engine.seal();
    std::vector<std::byte> host;
    for (int i = 1; i <= 8; ++i) host.push_back(std::byte(i));
    engine.load(source, {host.data(), 1, 8, 8});
    engine.exchange(Phase::HandOver,
                    engine.prepare_moves({{source, rows[0], 0, 0, 4}, {source, rows[1], 4, 0, 4}}));
    engine.exchange(Phase::PreArrange,
                    engine.prepare({{{{rows[0], {0, 1}}, {rows[1], {0, 1}}}, {whole}}}));
    const ByteRows got = engine.view(whole);
    for (std::int64_t r = 0; r < 2; ++r)
      EXPECT_EQ(std::memcmp(got.data + r * got.stride, host.data() + 4 * r, 4), 0);
    EXPECT_EQ(got.data == matrix.data(), mode == ExchangeMode::Share);
  }
}

}  // namespace
}  // namespace tessera::device
