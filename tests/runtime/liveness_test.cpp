#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/runtime/internal/tile_program.hpp"
#include "tessera/tests/runtime/layer_case.hpp"

namespace tessera::runtime {
namespace {

using device::ExchangeMode;
using internal::TileProgram;

void nothing() {}

// A program on a machine of two tiles.
struct TwoTiles {
  static device::Machine machine() {
    device::Machine machine = device::machine_preset("gc200");
    machine.tiles = 2;
    return machine;
  }
  std::unique_ptr<Executor> executor = make_executor(1);
  TileProgram p{"test", machine(), ExchangeMode::Share, *executor};
};

Liveness::Life life(int first, int last) { return {first, last}; }

TEST(Liveness, GoesFromTheFirstStepThatNamesABufferToTheLast) {
  TwoTiles made;
  TileProgram& p = made.p;
  const BufferId a = p.add_buffer("a"), b = p.add_buffer("b"), kept = p.add_buffer("kept", true);
  p.step(NodeKind::Load, {}, {{}, {a}}, nothing);
  p.step(NodeKind::Compute, Phase::Distribute, {{a}, {b}}, nothing);
  p.step(NodeKind::Compute, Phase::Reduce, {{}, {}}, nothing);
  p.step(NodeKind::Collect, {}, {{b}, {}}, nothing);
  static_cast<void>(kept);
  p.close();
  const Liveness live = liveness(p.program());
  EXPECT_EQ(live.stages,
            (std::vector<std::string>{"load", "compute multiply", "compute reduce", "collect"}));
  EXPECT_EQ(live.lives, (std::vector<Liveness::Life>{life(0, 1), life(1, 3), life(0, 3)}));
}

// The memory of buffers that a loop keeps from turn to turn must not be reused between its steps.
TEST(Liveness, TakesALoopWithAllThatIsInItForOnePhase) {
  TwoTiles made;
  TileProgram& p = made.p;
  const BufferId a = p.add_buffer("a"), b = p.add_buffer("b"), c = p.add_buffer("c");
  const auto no = [] { return false; };
  p.step(NodeKind::Load, {}, {{}, {a}}, nothing);
  p.repeat("more", no, [&] {
    p.step(NodeKind::Exchange, Phase::Propagate, {{a}, {b}}, nothing);
    p.repeat("inner", no,
             [&] { p.step(NodeKind::Compute, Phase::Propagate, {{b}, {a}}, nothing); });
    p.when("odd", no, [&] { p.step(NodeKind::Compute, Phase::Cast, {{a}, {c}}, nothing); });
  });
  p.step(NodeKind::Collect, {}, {{a}, {}}, nothing);
  p.close();
  const Liveness live = liveness(p.program());
  EXPECT_EQ(live.stages, (std::vector<std::string>{"load", "loop propagate", "collect"}));
  EXPECT_EQ(live.stage_of, (std::vector<int>{0, 1, 1, 1, 1, 1, 1, 2}));
  EXPECT_EQ(live.lives, (std::vector<Liveness::Life>{life(0, 2), life(1, 1), life(1, 1)}));
}

TEST(Liveness, TakesTheStepsOfAConditionOneByOne) {
  TwoTiles made;
  TileProgram& p = made.p;
  const BufferId a = p.add_buffer("a"), b = p.add_buffer("b");
  p.when(
      "some", [] { return true; },
      [&] {
        p.step(NodeKind::Compute, Phase::Distribute, {{}, {a}}, nothing);
        p.step(NodeKind::Compute, Phase::Reduce, {{a}, {b}}, nothing);
      });
  p.step(NodeKind::Collect, {}, {{b}, {}}, nothing);
  p.close();
  EXPECT_EQ(liveness(p.program()).lives, (std::vector<Liveness::Life>{life(1, 2), life(2, 3)}));
}

TEST(Liveness, RefusesABufferNobodyNames) {
  TwoTiles made;
  TileProgram& p = made.p;
  p.add_buffer("a");
  p.step(NodeKind::Compute, Phase::Distribute, {{}, {}}, nothing);
  EXPECT_THROW(p.close(), Error);
}

// A program of one step that does something to the slot of "theirs" while it names "ours" alone.
std::string refusal(device::Access wanted) {
  TwoTiles made;
  TileProgram& p = made.p;
  const BufferId ours = p.add_buffer("ours"), theirs = p.add_buffer("theirs", true);
  const device::SlotId mine = p.add_slot(ours, TileId(0), 1, 1),
                       other = p.add_slot(theirs, TileId(1), 1, 1);
  const device::Exchange* const exchange = p.exchange_of({{{{other, {0, 1}}}, {mine}}});
  std::byte byte{};
  p.step(NodeKind::Compute, Phase::Distribute, {{ours}, {ours}}, [&] {
    if (wanted == device::Access::Write) p.engine().load(other, {&byte, 1, 1, 1});
    if (wanted == device::Access::Read) p.engine().exchange(Phase::Distribute, *exchange);
    if (wanted == device::Access::ReadWrite) p.engine().view(other);
  });
  p.seal();
  device::Ledger ledger;
  try {
    p.run({}, ledger);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Internal);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(TileProgram, RefusesWhatAStepDoesNotName) {
  const std::string end = " in step \"multiply\", which does not say so";
  const std::string slot = "tile 1: slot \"theirs\" was ";
  EXPECT_EQ(refusal(device::Access::Write), slot + "written" + end);
  EXPECT_EQ(refusal(device::Access::Read), slot + "read" + end);
  EXPECT_EQ(refusal(device::Access::ReadWrite), slot + "touched" + end);
  EXPECT_EQ(refusal(device::Access::None), "nothing was thrown");
}

LayerCase big_case() {
  LayerCase c;
  c.weights = random_weights(64, 64, {1, 1}, 0.3, 2);
  c.batch = 32;
  c.partition = {1, 2, 2, 2};
  return c;
}

TEST(MemoryUse, AddsUpToWhatThePeakSaysOnEveryTile) {
  const LayerCase c = big_case();
  const auto executor = make_executor(1);
  const FullyConnected layer(c.problem(), c.plan(), c.machine(), ExchangeMode::Share, *executor);
  Bytes most;
  for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW}) {
    const device::MemoryUse use = layer.memory(pass);
    ASSERT_EQ(std::ssize(use.tiles), c.machine().tiles);
    Bytes sum;
    for (const device::HeldBuffer& buffer : use.at_peak) sum += buffer.bytes;
    EXPECT_EQ(sum, use.high_water());
    EXPECT_EQ(*std::max_element(use.by_stage.begin(), use.by_stage.end()), use.high_water());
    EXPECT_EQ(use.by_stage.size(), use.stages.size());
    for (const device::TilePeak& tile : use.tiles) EXPECT_LE(tile.bytes, use.high_water());
    most = std::max(most, use.high_water());
  }
  EXPECT_EQ(layer.high_water(), most);
}

TEST(MemoryUse, IsInTheErrorOfAPlanThatDoesNotFit) {
  const LayerCase c = big_case();
  device::Machine machine = c.machine();
  Problem problem = c.problem();
  problem.grad_a = problem.grad_w = false;
  const auto executor = make_executor(1);
  const device::MemoryUse use =
      FullyConnected(problem, c.plan(), machine, ExchangeMode::Share, *executor).memory(Pass::Fwd);
  machine.tile_memory = use.high_water() - Bytes(1);
  EXPECT_FALSE(use.fits(machine.tile_memory));
  try {
    const FullyConnected layer(problem, c.plan(), machine, ExchangeMode::Share, *executor);
    ADD_FAILURE() << "one byte short and nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::LimitExceeded);
    const std::string text = error.what();
    const device::TilePeak& peak = use.tiles[std::size_t(use.fullest.value)];
    for (const std::string& part :
         {"tile " + std::to_string(use.fullest.value) + " needs " +
              std::to_string(use.high_water().value) + " bytes",
          "(" + use.stage_name(peak.stage) + ")", use.at_peak[0].name, use.at_peak[1].name})
      EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
  const std::string report = to_string(use);
  EXPECT_NE(report.find("peak"), std::string::npos);
  for (const device::HeldBuffer& buffer : use.at_peak)
    EXPECT_NE(report.find(buffer.name), std::string::npos) << buffer.name;
}

}  // namespace
}  // namespace tessera::runtime
