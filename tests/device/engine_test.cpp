#include "tessera/device/engine.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/tests/device/slot_bytes.hpp"

namespace tessera::device {
namespace {

constexpr Phase kMove = Phase::PreArrange, kWork = Phase::Distribute;

Machine small_machine(std::int64_t tiles = 4) {
  Machine machine = machine_preset("gc200");
  machine.tiles = tiles;
  machine.tile_memory = Bytes(1024), machine.receive_start = Cycles(0);
  return machine;
}

Executor& one_thread() {
  static const std::unique_ptr<Executor> executor = make_executor(1);
  return *executor;
}

// Returns rows of bytes in the test's own memory.
struct HostRows {
  std::vector<std::byte> bytes;
  ByteRows rows;
  HostRows(std::int64_t n, std::int64_t row_bytes, int first) : bytes(std::size_t(n * row_bytes)) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(first + int(i));
    rows = {bytes.data(), n, row_bytes, row_bytes};
  }
};

Error error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorCode::NoSolution, "");
}

ErrorCode code_of(const std::function<void()>& action) { return error_of(action).code(); }

class BothModes : public testing::TestWithParam<ExchangeMode> {
 protected:
  std::unique_ptr<Executor> executor_ = make_executor(2);
  Engine engine_{small_machine(), GetParam(), *executor_};

  SlotId add(int tile, std::int64_t rows, std::int64_t row_bytes,
             SlotKind kind = SlotKind::Landing) {
    return engine_.add_slot({TileId(tile), "test", rows, row_bytes, kind, 0, 0});
  }
  // One row of four bytes.
  SlotId add_between(int tile, int first_stage, int last_stage, SlotKind kind = SlotKind::Landing) {
    return engine_.add_slot({TileId(tile), "test", 1, 4, kind, first_stage, last_stage});
  }
};

TEST_P(BothModes, AGatherPutsPiecesBelowEachOtherAtEveryDestination) {
  const SlotId a = add(0, 2, 4), b = add(1, 1, 4), to0 = add(0, 3, 4), to2 = add(2, 3, 4);
  engine_.seal();
  HostRows host(3, 4, 10);
  engine_.load(a, host.rows.sub({0, 2}));
  engine_.load(b, host.rows.sub({2, 3}));

  engine_.exchange(kMove, engine_.prepare({{{{a, {0, 2}}, {b, {0, 1}}}, {to0, to2}}}));

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

  engine_.exchange(kMove, engine_.prepare(gathers));

  for (int t = 0; t < 4; ++t)
    EXPECT_EQ(contents(engine_.view(next[std::size_t(t)])), std::vector<int>{(t + 3) % 4});
}

TEST_P(BothModes, AVertexWritesItsOwnedSlotAndIsChargedTheSlowestTile) {
  const SlotId s1 = add(1, 1, 1, SlotKind::Owned), s3 = add(3, 1, 1, SlotKind::Owned);
  engine_.seal();
  const std::vector<TileId> tiles{TileId(1), TileId(3)};

  engine_.compute(kWork, tiles, [&](const Tile& tile) {
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

TEST_P(BothModes, OfEquallySlowTilesTheLowestIsNamedInWhateverOrderTheyWereGiven) {
  engine_.seal();
  const std::vector<TileId> tiles{TileId(3), TileId(1), TileId(0), TileId(2)};
  engine_.compute(kWork, tiles, [](const Tile& tile) { return Cycles(tile.id().value ? 7 : 6); });
  EXPECT_EQ(engine_.ledger().steps[0].critical_tile, TileId(1));
}

TEST_P(BothModes, ATileTwiceInAStepIsRefusedAndInTwoStepsIsNot) {
  engine_.seal();
  const auto run = [&](std::vector<TileId> tiles) {
    engine_.compute(kWork, tiles, [](const Tile&) { return Cycles(); });
  };
  run({TileId(2), TileId(1)});
  run({TileId(1), TileId(2)});
  EXPECT_EQ(code_of([&] { run({TileId(1), TileId(2), TileId(1)}); }), ErrorCode::Internal);
  EXPECT_EQ(code_of([&] { run({TileId(4)}); }), ErrorCode::Internal);
}

TEST_P(BothModes, NoSlotIsAddedAfterSealingAndNoStepRunsBefore) {
  const SlotId slot = add(0, 1, 4);
  HostRows host(1, 4, 0);
  EXPECT_EQ(code_of([&] { engine_.load(slot, host.rows); }), ErrorCode::Internal);
  engine_.seal();
  EXPECT_EQ(code_of([&] { add(0, 1, 1); }), ErrorCode::Internal);
  EXPECT_EQ(code_of([&] { engine_.seal(); }), ErrorCode::Internal);
}

TEST_P(BothModes, AnotherTilesSlotIsOutOfReach) {
  const SlotId other = add(2, 1, 1, SlotKind::Owned);
  engine_.seal();
  const std::vector<TileId> tiles{TileId(1)};

  const ErrorCode code = code_of([&] {
    engine_.compute(kWork, tiles, [&](const Tile& tile) {
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
    engine_.compute(kWork, tiles, [&](const Tile& tile) {
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
  // Links carry 4 bytes a cycle; tiles 0 and 1 share a bus. Tile 2 receives 64 bytes in 16 cycles.
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
  // The data is received at 8 bytes a cycle but sent once at 4, so the sender determines the time.
  EXPECT_EQ(exchange.cycles, Cycles(16));
  EXPECT_EQ(exchange.critical_tile, TileId(0));
  EXPECT_EQ(exchange.tile_sum, Cycles(16 + 8 + 8));
  EXPECT_EQ(exchange.moved, Bytes(128));
}

// Every tile of a bus holds a quarter of the data that all four receive: 16 cycles for the
// neighbour's 64 bytes at 4 a cycle, and 16 for the other 128 bytes at 8.
TEST_P(BothModes, ANeighboursOwnPieceIsNotShared) {
  Gather all_to_all;
  for (int t = 0; t < 4; ++t) {
    all_to_all.pieces.push_back({add(t, 1, 64), {0, 1}});
    all_to_all.destinations.push_back(add(t, 4, 64));
  }
  engine_.seal();
  const Exchange exchange = engine_.prepare({all_to_all});
  EXPECT_EQ(exchange.cycles, Cycles(16 + 16));
  EXPECT_EQ(exchange.tile_sum, Cycles(4 * 32));
  EXPECT_EQ(exchange.moved, Bytes(4 * 3 * 64));
}

TEST_P(BothModes, OnABusOfFourOnlyWhatComesFromOutsideIsShared) {
  Machine machine = small_machine(8);
  machine.tiles_per_exchange_bus = 4;
  Engine engine(machine, GetParam(), *executor_);
  const auto add_here = [&](int tile, std::int64_t rows) {
    return engine.add_slot({TileId(tile), "test", rows, 64, SlotKind::Landing, 0, 0});
  };
  Gather gather{{{add_here(0, 1), {0, 1}}, {add_here(5, 1), {0, 1}}}, {}};
  for (int t = 0; t < 4; ++t) gather.destinations.push_back(add_here(t, 2));
  engine.seal();
  // Tiles 1 to 3 take 64 / 4 cycles from tile 0, 64 / 16 from tile 5. Both send for 16 cycles.
  const Exchange exchange = engine.prepare({gather});
  EXPECT_EQ(exchange.cycles, Cycles(16 + 4));
  EXPECT_EQ(exchange.critical_tile, TileId(1));
  EXPECT_EQ(exchange.tile_sum, Cycles(3 * 20 + 16 + 16));
}

TEST_P(BothModes, TwoDestinationsOfAGatherOnOneTileAreRefused) {
  const SlotId from = add(0, 1, 4), to = add(2, 1, 4), again = add(2, 1, 4);
  engine_.seal();
  EXPECT_EQ(code_of([&] { engine_.prepare({{{{from, {0, 1}}}, {to, again}}}); }),
            ErrorCode::Internal);
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
  EXPECT_EQ(code_of([&] { engine_.prepare({{{{a, {0, 1}}}, {b}}, {{{b, {0, 1}}}, {a}}}); }),
            ErrorCode::Internal);
}

TEST_P(BothModes, ATileThatIsTooFullIsNamedWithItsLargestSlots) {
  engine_.add_slot({TileId(3), "big one", 1, 1000, SlotKind::Owned, 0, 1});
  engine_.add_slot({TileId(3), "small one", 1, 25, SlotKind::Landing, 1, 1});
  const Error error = error_of([&] { engine_.seal(); });
  EXPECT_EQ(error.code(), ErrorCode::LimitExceeded);
  const std::string text = error.what();
  EXPECT_NE(text.find("tile 3 needs 1025 bytes in stage 1"), std::string::npos) << text;
  EXPECT_NE(text.find("big one 1000 bytes"), std::string::npos) << text;
}

TEST_P(BothModes, SlotsOfDifferentPhasesDoNotAddUp) {
  engine_.add_slot({TileId(3), "early", 1, 1000, SlotKind::Owned, 0, 0});
  engine_.add_slot({TileId(3), "late", 1, 1024, SlotKind::Landing, 1, 2});
  engine_.seal();
  EXPECT_EQ(engine_.high_water(), Bytes(1024));
}

TEST_P(BothModes, ATileTheMachineHasNotIsRefused) {
  const Error error = error_of([&] { engine_.add_slot({TileId(4), "far", 1, 1}); });
  EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
  EXPECT_STREQ(error.what(), "slot \"far\": tile 4 does not exist; the machine has tiles 0..3");
  EXPECT_EQ(code_of([&] { add(-1, 1, 1); }), ErrorCode::InvalidArgument);
}

// Makes a program in which every stage uses, in every way, a slot that lives in stages 2 and 3.
TEST_P(BothModes, ASlotIsRefusedOnePhaseEarlyAndOnePhaseLate) {
  const SlotId slot = add_between(1, 2, 3), always = add_between(0, 0, 9);
  engine_.seal();
  HostRows host(1, 4, 0);
  const std::vector<TileId> tiles{TileId(1)};
  auto peek = [&](const Tile& tile) { return Cycles(tile.view(slot).row_bytes); };
  const Exchange out = engine_.prepare({{{{slot, {0, 1}}}, {always}}});
  const Exchange in = engine_.prepare({{{{always, {0, 1}}}, {slot}}});
  const std::vector<std::function<void()>> touches{
      [&] { engine_.load(slot, host.rows); }, [&] { engine_.exchange(kMove, out); },
      [&] { engine_.exchange(kMove, in); }, [&] { engine_.compute(kWork, tiles, peek); },
      [&] { (void)engine_.view(slot); }};

  engine_.begin_program();
  for (int phase = 0; phase <= 4; ++phase) {
    engine_.begin_stage(phase);
    engine_.load(always, host.rows);
    for (std::size_t i = 0; i < touches.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "phase " << phase << ", way " << i);
      if (phase == 2 || phase == 3)
        EXPECT_NO_THROW(touches[i]());
      else
        EXPECT_EQ(code_of(touches[i]), ErrorCode::Internal);
    }
  }
  EXPECT_STREQ(error_of(touches[0]).what(),
               "tile 1: slot \"test\" was touched in stage 4 but lives in stages 2..3");
}

TEST_P(BothModes, AProgramThatBeginsNoPhaseIsNotChecked) {
  const SlotId early = add_between(0, 0, 0), late = add_between(0, 5, 7);
  engine_.seal();
  HostRows host(2, 4, 1);
  engine_.begin_program();
  engine_.load(early, host.rows.sub({0, 1}));
  engine_.load(late, host.rows.sub({1, 2}));
  EXPECT_EQ(contents(engine_.view(early)), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(contents(engine_.view(late)), (std::vector<int>{5, 6, 7, 8}));
}

TEST_P(BothModes, PhasesRiseAndTheFirstComesBeforeTheLoads) {
  const SlotId slot = add_between(0, 0, 9);
  EXPECT_EQ(code_of([&] { engine_.begin_stage(0); }), ErrorCode::Internal) << "before seal()";
  engine_.seal();
  HostRows host(1, 4, 0);
  EXPECT_EQ(code_of([&] { engine_.begin_stage(-1); }), ErrorCode::Internal);
  engine_.load(slot, host.rows);
  EXPECT_EQ(code_of([&] { engine_.begin_stage(0); }), ErrorCode::Internal) << "after a load";

  engine_.begin_program();
  engine_.begin_stage(3);
  EXPECT_EQ(code_of([&] { engine_.begin_stage(3); }), ErrorCode::Internal);
  EXPECT_EQ(code_of([&] { engine_.begin_stage(2); }), ErrorCode::Internal);
  engine_.begin_program();
  EXPECT_EQ(code_of([&] { engine_.load(slot, host.rows); }), ErrorCode::Internal) << "no phase";
}

// A second run must not see data of the first: memory is NaN again, and landing slots are empty in
// Share mode. Phase 1 is left out.
TEST_P(BothModes, LandingSlotsHoldNothingOfAnEarlierRun) {
  const SlotId slot = add_between(0, 1, 2);
  engine_.seal();
  HostRows host(1, 4, 0);
  for (int run = 0; run < 2; ++run) {
    engine_.begin_program();
    engine_.begin_stage(0);
    engine_.begin_stage(2);
    const std::vector<int> nothing(GetParam() == ExchangeMode::Share ? 0 : 4, 255);
    EXPECT_EQ(contents(engine_.view(slot)), nothing) << "run " << run;
    engine_.load(slot, host.rows);
  }
}

TEST_P(BothModes, AProgramBeginsWithAnEmptyLedgerEvenAfterOneThatFailed) {
  engine_.seal();
  const std::vector<TileId> tiles{TileId(0)};
  auto works = [](const Tile&) { return Cycles(4); };
  auto fails = [](const Tile&) -> Cycles { throw Error(ErrorCode::BadInput, "no"); };
  engine_.compute(kWork, tiles, works);
  EXPECT_EQ(code_of([&] { engine_.compute(kWork, tiles, fails); }), ErrorCode::BadInput);
  ASSERT_EQ(engine_.ledger().steps.size(), 1u);
  engine_.begin_program();
  EXPECT_TRUE(engine_.ledger().steps.empty());
}

INSTANTIATE_TEST_SUITE_P(Exchange, BothModes,
                         testing::Values(ExchangeMode::Share, ExchangeMode::Isolate),
                         [](const auto& p) {
                           return p.param == ExchangeMode::Share ? "Share" : "Isolate";
                         });

TEST(ShareMode, PiecesThatDoNotLieSideBySideAreRefused) {
  Engine engine(small_machine(), ExchangeMode::Share, one_thread());
  const SlotId a = engine.add_slot({TileId(0), "a", 1, 4, SlotKind::Landing, 0, 0});
  const SlotId b = engine.add_slot({TileId(1), "b", 1, 4, SlotKind::Landing, 0, 0});
  const SlotId to = engine.add_slot({TileId(2), "to", 2, 4, SlotKind::Landing, 0, 0});
  engine.seal();
  HostRows host(3, 4, 0);
  engine.load(a, host.rows.sub({0, 1}));
  engine.load(b, host.rows.sub({2, 3}));
  const auto both = [&] { return engine.prepare({{{{a, {0, 1}}, {b, {0, 1}}}, {to}}}); };
  EXPECT_EQ(code_of([&] { engine.exchange(kMove, both()); }), ErrorCode::Internal);
}

TEST(ShareMode, MovesViewsAndNoBytes) {
  Engine engine(small_machine(), ExchangeMode::Share, one_thread());
  const SlotId a = engine.add_slot({TileId(0), "a", 1, 4, SlotKind::Landing, 0, 0});
  const SlotId b = engine.add_slot({TileId(1), "b", 1, 4, SlotKind::Landing, 0, 0});
  engine.seal();
  HostRows host(1, 4, 0);
  engine.load(a, host.rows);
  engine.exchange(kMove, engine.prepare({{{{a, {0, 1}}}, {b}}}));
  EXPECT_EQ(engine.view(b).data, host.bytes.data());
}

TEST(IsolateMode, LaterChangesAtTheSourceAreNotSeen) {
  Engine engine(small_machine(), ExchangeMode::Isolate, one_thread());
  const SlotId a = engine.add_slot({TileId(0), "a", 1, 4, SlotKind::Landing, 0, 0});
  const SlotId b = engine.add_slot({TileId(1), "b", 1, 4, SlotKind::Landing, 0, 0});
  engine.seal();
  HostRows host(1, 4, 1);
  engine.load(a, host.rows);
  engine.exchange(kMove, engine.prepare({{{{a, {0, 1}}}, {b}}}));
  host.bytes[0] = std::byte{99};
  EXPECT_EQ(contents(engine.view(b)), (std::vector<int>{1, 2, 3, 4}));
}

// For each slot: its bytes, its first and its last phase.
struct Life {
  std::int64_t bytes;
  int first_stage, last_stage;
};

std::vector<SlotId> add_lives(Engine& engine, const std::vector<Life>& lives) {
  std::vector<SlotId> slots;
  for (const Life& life : lives)
    slots.push_back(engine.add_slot(
        {TileId(0), "life", 1, life.bytes, SlotKind::Owned, life.first_stage, life.last_stage}));
  engine.seal();
  return slots;
}

TEST(IsolateMode, MemoryOfEndedSlotsIsPoisonedUsedAgainAndGuarded) {
  Engine engine(small_machine(), ExchangeMode::Isolate, one_thread());
  const auto slots = add_lives(engine, {{500, 0, 0}, {100, 0, 1}, {400, 1, 1}});
  engine.begin_stage(0);
  const ByteRows ended = engine.view(slots[0]);
  std::memset(ended.data, 1, 500);
  engine.begin_stage(1);
  const ByteRows begun = engine.view(slots[2]);
  EXPECT_EQ(begun.data, ended.data);
  EXPECT_EQ(contents(begun), std::vector<int>(400, 255));

  const auto write = [&](std::size_t bytes) {
    const std::vector<TileId> tiles{TileId(0)};
    engine.compute(kWork, tiles, [&](const Tile& tile) {
      std::memset(tile.view(slots[2]).data, 1, bytes);
      return Cycles(1);
    });
  };
  write(400);
  EXPECT_EQ(code_of([&] { write(401); }), ErrorCode::Internal);
}

// Draws random lives on one tile. Each slot is NaN when it begins, and keeps its own bytes while it
// lives.
TEST(IsolateMode, LivingSlotsNeverOverlap) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::vector<Life> lives;
    for (int i = 0; i < 25; ++i) {
      const int first = int(random.below(6)), last = first + int(random.below(7 - first));
      lives.push_back({random.below(40), first, last});  // 0 bytes to several guards
    }
    Engine engine(small_machine(), ExchangeMode::Isolate, one_thread());
    const auto slots = add_lives(engine, lives);
    for (int phase = 0; phase <= 6; ++phase) {
      engine.begin_stage(phase);
      for (std::size_t i = 0; i < lives.size(); ++i) {
        const auto [bytes, first, last] = lives[i];
        if (phase < first || phase > last) continue;
        const ByteRows view = engine.view(slots[i]);
        const int filled_with = phase == first ? 255 : int(i);
        ASSERT_EQ(contents(view), std::vector<int>(std::size_t(bytes), filled_with))
            << "slot " << i << " in phase " << phase;
        std::memset(view.data, int(i), std::size_t(bytes));
      }
    }
  }
}

TEST(Ledger, AddsUpPhasesInTheOrderTheyFirstRan) {
  const Ledger ledger{
      {{kMove, StepKind::Exchange, Cycles(5), Cycles(100), TileId(0), Cycles(5), Bytes(8)},
       {kWork, StepKind::Compute, Cycles(7), Cycles(11), TileId(1), Cycles(12), Bytes()},
       {kMove, StepKind::Exchange, Cycles(6), Cycles(100), TileId(0), Cycles(6), Bytes(4)}}};

  const auto phases = ledger.phases();

  ASSERT_EQ(phases.size(), 2u);
  EXPECT_EQ(phases[0].phase, kMove);
  EXPECT_EQ(phases[0].steps, 2);
  EXPECT_EQ(phases[0].exchange, Cycles(11));
  EXPECT_EQ(phases[0].moved, Bytes(12));
  EXPECT_EQ(phases[1].tile_sum, Cycles(12));
  EXPECT_EQ(ledger.total(), Cycles(5 + 7 + 6 + 100 + 11 + 100));
  EXPECT_EQ(ledger.total(), phases[0].total() + phases[1].total());
}

}  // namespace
}  // namespace tessera::device
