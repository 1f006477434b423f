#include "tessera/device/engine.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"

namespace tessera::device {
namespace {

Machine small_machine(std::int64_t tiles = 4) {
  Machine machine = machine_preset("gc200");
  machine.tiles = tiles;
  machine.tile_memory = Bytes(1024);
  return machine;
}

// Rows of bytes in the test's own memory.
struct HostRows {
  std::vector<std::byte> bytes;
  ByteRows rows;
  HostRows(std::int64_t n, std::int64_t row_bytes, int first) : bytes(std::size_t(n * row_bytes)) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(first + int(i));
    rows = {bytes.data(), n, row_bytes, row_bytes};
  }
};

std::vector<int> contents(ByteRows rows) {
  std::vector<int> result;
  for (std::int64_t r = 0; r < rows.rows; ++r)
    for (std::int64_t b = 0; b < rows.row_bytes; ++b)
      result.push_back(int(rows.data[r * rows.stride + b]));
  return result;
}

ErrorCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::NoSolution;
}

class BothModes : public testing::TestWithParam<ExchangeMode> {
 protected:
  std::unique_ptr<Executor> executor_ = make_executor(2);
  Engine engine_{small_machine(), GetParam(), *executor_};

  SlotId add(int tile, std::int64_t rows, std::int64_t row_bytes,
             SlotKind kind = SlotKind::Landing) {
    return engine_.add_slot({TileId(tile), "test", rows, row_bytes, kind, 0, 0});
  }
};

TEST_P(BothModes, AGatherPutsPiecesBelowEachOtherAtEveryDestination) {
  const SlotId a = add(0, 2, 4), b = add(1, 1, 4), to0 = add(0, 3, 4), to2 = add(2, 3, 4);
  engine_.seal();
  HostRows host(3, 4, 10);
  engine_.load(a, host.rows.sub({0, 2}));
  engine_.load(b, host.rows.sub({2, 3}));

  engine_.exchange("x", engine_.prepare({{{{a, {0, 2}}, {b, {0, 1}}}, {to0, to2}}}));

  EXPECT_EQ(contents(engine_.view(to0)), contents(host.rows));
  EXPECT_EQ(contents(engine_.view(to2)), contents(host.rows));
}

TEST_P(BothModes, ARingShiftReadsEverySourceBeforeAnyIsReplaced) {
  std::vector<SlotId> now, next;
  for (int t = 0; t < 4; ++t) now.push_back(add(t, 1, 1)), next.push_back(add(t, 1, 1));
  engine_.seal();
  HostRows host(4, 1, 0);
  for (int t = 0; t < 4; ++t) engine_.load(now[std::size_t(t)], host.rows.sub({t, t + 1}));
  std::vector<Gather> gathers;
  for (std::size_t t = 0; t < 4; ++t) gathers.push_back({{{now[(t + 3) % 4], {0, 1}}}, {next[t]}});

  engine_.exchange("shift", engine_.prepare(gathers));

  for (int t = 0; t < 4; ++t)
    EXPECT_EQ(contents(engine_.view(next[std::size_t(t)])), std::vector<int>{(t + 3) % 4});
}

TEST_P(BothModes, AVertexWritesItsOwnedSlotAndIsChargedTheSlowestTile) {
  const SlotId s1 = add(1, 1, 1, SlotKind::Owned), s3 = add(3, 1, 1, SlotKind::Owned);
  engine_.seal();
  const std::vector<TileId> tiles{TileId(1), TileId(3)};

  engine_.compute("work", tiles, [&](const Tile& tile) {
    tile.view(tile.id() == TileId(1) ? s1 : s3).data[0] = std::byte(tile.id().value);
    return Cycles(10 * tile.id().value);
  });

  EXPECT_EQ(contents(engine_.view(s1)), std::vector<int>{1});
  EXPECT_EQ(contents(engine_.view(s3)), std::vector<int>{3});
  ASSERT_EQ(engine_.ledger().steps.size(), 1u);
  const StepRecord& step = engine_.ledger().steps[0];
  EXPECT_EQ(step.cycles, Cycles(30));
  EXPECT_EQ(step.critical_tile, TileId(3));
  EXPECT_EQ(step.tile_sum, Cycles(40));
  EXPECT_EQ(step.overhead, small_machine().launch);
}

TEST_P(BothModes, AnotherTilesSlotIsOutOfReach) {
  const SlotId other = add(2, 1, 1, SlotKind::Owned);
  engine_.seal();
  const std::vector<TileId> tiles{TileId(1)};

  const ErrorCode code = code_of([&] {
    engine_.compute("peek", tiles, [&](const Tile& tile) {
      (void)tile.view(other);
      return Cycles(1);
    });
  });

  EXPECT_EQ(code, ErrorCode::Internal);
}

TEST_P(BothModes, WritingBehindASlotIsFound) {
  const SlotId slot = add(0, 1, 16, SlotKind::Owned);
  engine_.seal();
  const std::vector<TileId> tiles{TileId(0)};

  const ErrorCode code = code_of([&] {
    engine_.compute("overrun", tiles, [&](const Tile& tile) {
      tile.view(slot).data[16] = std::byte{0};
      return Cycles(1);
    });
  });

  EXPECT_EQ(code, ErrorCode::Internal);
}

TEST_P(BothModes, MemoryThatWasNeverWrittenIsNotANumber) {
  const SlotId slot = add(0, 1, 4, SlotKind::Owned);
  engine_.seal();
  float value = 0;
  std::memcpy(&value, engine_.view(slot).data, 4);
  EXPECT_TRUE(value != value);
}

TEST_P(BothModes, ExchangeCyclesFollowTheBytesATileReceives) {
  // 4 bytes a cycle; tiles 0 and 1 share a bus. Tile 2 receives 64 bytes alone: 16 cycles.
  const SlotId from = add(0, 1, 64), to = add(2, 1, 64);
  engine_.seal();
  const Exchange exchange = engine_.prepare({{{{from, {0, 1}}}, {to}}});
  EXPECT_EQ(exchange.cycles, Cycles(16));
  EXPECT_EQ(exchange.moved, Bytes(64));
}

TEST_P(BothModes, NeighboursThatTakeTheSameShareTheirBus) {
  const SlotId from = add(0, 1, 64), to2 = add(2, 1, 64), to3 = add(3, 1, 64);
  engine_.seal();
  const Exchange exchange = engine_.prepare({{{{from, {0, 1}}}, {to2, to3}}});
  // Received at 8 bytes a cycle, but sent once at 4: the sender decides.
  EXPECT_EQ(exchange.cycles, Cycles(16));
  EXPECT_EQ(exchange.critical_tile, TileId(0));
  EXPECT_EQ(exchange.tile_sum, Cycles(16 + 8 + 8));
  EXPECT_EQ(exchange.moved, Bytes(128));
}

TEST_P(BothModes, WhatATileHasAlreadyIsNotMoved) {
  const SlotId own = add(1, 1, 8), far = add(2, 1, 8), to = add(1, 2, 8);
  engine_.seal();
  const Exchange exchange = engine_.prepare({{{{own, {0, 1}}, {far, {0, 1}}}, {to}}});
  EXPECT_EQ(exchange.moved, Bytes(8));
}

TEST_P(BothModes, ASlotThatIsSourceAndDestinationIsRefused) {
  const SlotId a = add(0, 1, 4), b = add(1, 1, 4);
  engine_.seal();
  EXPECT_EQ(code_of([&] {
              engine_.prepare({{{{a, {0, 1}}}, {b}}, {{{b, {0, 1}}}, {a}}});
            }),
            ErrorCode::Internal);
}

TEST_P(BothModes, ATileThatIsTooFullIsNamedWithItsLargestSlots) {
  engine_.add_slot({TileId(3), "big one", 1, 1000, SlotKind::Owned, 0, 1});
  engine_.add_slot({TileId(3), "small one", 1, 25, SlotKind::Landing, 1, 1});
  try {
    engine_.seal();
    FAIL() << "1025 bytes fitted into 1024";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::LimitExceeded);
    EXPECT_NE(std::string(error.what()).find("tile 3 needs 1025 bytes in phase 1"),
              std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("big one 1000 bytes"), std::string::npos)
        << error.what();
  }
}

TEST_P(BothModes, SlotsOfDifferentPhasesDoNotAddUp) {
  engine_.add_slot({TileId(3), "early", 1, 1000, SlotKind::Owned, 0, 0});
  engine_.add_slot({TileId(3), "late", 1, 1024, SlotKind::Landing, 1, 2});
  engine_.seal();
  EXPECT_EQ(engine_.high_water(), Bytes(1024));
}

TEST_P(BothModes, ATileTheMachineHasNotIsRefused) {
  EXPECT_EQ(code_of([&] { add(4, 1, 1); }), ErrorCode::InvalidArgument);
  EXPECT_EQ(code_of([&] { add(-1, 1, 1); }), ErrorCode::InvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Exchange, BothModes,
                         testing::Values(ExchangeMode::Share, ExchangeMode::Isolate),
                         [](const auto& p) {
                           return p.param == ExchangeMode::Share ? "Share" : "Isolate";
                         });

TEST(ShareMode, PiecesThatDoNotLieSideBySideAreRefused) {
  const auto executor = make_executor(1);
  Engine engine(small_machine(), ExchangeMode::Share, *executor);
  const SlotId a = engine.add_slot({TileId(0), "a", 1, 4, SlotKind::Landing, 0, 0});
  const SlotId b = engine.add_slot({TileId(1), "b", 1, 4, SlotKind::Landing, 0, 0});
  const SlotId to = engine.add_slot({TileId(2), "to", 2, 4, SlotKind::Landing, 0, 0});
  engine.seal();
  HostRows host(3, 4, 0);
  engine.load(a, host.rows.sub({0, 1}));
  engine.load(b, host.rows.sub({2, 3}));
  EXPECT_EQ(code_of([&] {
              engine.exchange("x", engine.prepare({{{{a, {0, 1}}, {b, {0, 1}}}, {to}}}));
            }),
            ErrorCode::Internal);
}

TEST(ShareMode, MovesViewsAndNoBytes) {
  const auto executor = make_executor(1);
  Engine engine(small_machine(), ExchangeMode::Share, *executor);
  const SlotId a = engine.add_slot({TileId(0), "a", 1, 4, SlotKind::Landing, 0, 0});
  const SlotId b = engine.add_slot({TileId(1), "b", 1, 4, SlotKind::Landing, 0, 0});
  engine.seal();
  HostRows host(1, 4, 0);
  engine.load(a, host.rows);
  engine.exchange("x", engine.prepare({{{{a, {0, 1}}}, {b}}}));
  EXPECT_EQ(engine.view(b).data, host.bytes.data());
}

TEST(IsolateMode, LaterChangesAtTheSourceAreNotSeen) {
  const auto executor = make_executor(1);
  Engine engine(small_machine(), ExchangeMode::Isolate, *executor);
  const SlotId a = engine.add_slot({TileId(0), "a", 1, 4, SlotKind::Landing, 0, 0});
  const SlotId b = engine.add_slot({TileId(1), "b", 1, 4, SlotKind::Landing, 0, 0});
  engine.seal();
  HostRows host(1, 4, 1);
  engine.load(a, host.rows);
  engine.exchange("x", engine.prepare({{{{a, {0, 1}}}, {b}}}));
  host.bytes[0] = std::byte{99};
  EXPECT_EQ(contents(engine.view(b)), (std::vector<int>{1, 2, 3, 4}));
}

TEST(Ledger, AddsUpPhasesInTheOrderTheyFirstRan) {
  Ledger ledger;
  ledger.steps.push_back(
      {"move", StepKind::Exchange, Cycles(5), Cycles(100), TileId(0), Cycles(5), Bytes(8)});
  ledger.steps.push_back(
      {"work", StepKind::Compute, Cycles(7), Cycles(11), TileId(1), Cycles(12), Bytes()});
  ledger.steps.push_back(
      {"move", StepKind::Exchange, Cycles(6), Cycles(100), TileId(0), Cycles(6), Bytes(4)});

  const auto phases = ledger.phases();

  ASSERT_EQ(phases.size(), 2u);
  EXPECT_EQ(phases[0].phase, "move");
  EXPECT_EQ(phases[0].steps, 2);
  EXPECT_EQ(phases[0].exchange, Cycles(11));
  EXPECT_EQ(phases[0].moved, Bytes(12));
  EXPECT_EQ(phases[1].tile_sum, Cycles(12));
  EXPECT_EQ(ledger.total(), Cycles(5 + 7 + 6 + 100 + 11 + 100));
  EXPECT_EQ(ledger.total(), phases[0].total() + phases[1].total());
}

}  // namespace
}  // namespace tessera::device
