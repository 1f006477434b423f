#include "tessera/report/trace.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/tests/runtime/layer_case.hpp"

namespace tessera::report {
namespace {

using Json = nlohmann::json;

// A forward run that spills, on `tiles` tiles.
struct TracedCase {
  explicit TracedCase(Dims partition) {
    runtime::LayerCase c;
    c.weights = runtime::random_weights(64, 64, {1, 1}, 0.3, 5);
    c.batch = 8;
    c.partition = partition;
    c.force_spills = true;
    machine = c.machine();
    const auto executor = make_executor(1);
    runtime::FullyConnected layer(c.problem(), c.plan(), machine, device::ExchangeMode::Share,
                                  *executor);
    EXPECT_FALSE(layer.set_weights(c.weights, {.force_spills = true}));
    const runtime::Operands<float> in(c);
    Matrix<float> q(64, 8);
    EXPECT_TRUE(layer.forward<float>(in.s.view(), q.view(), runtime::keeping(tiles), ledger));
    memory = layer.memory(Pass::Fwd);
  }
  Json trace(const TraceLimits& limits = {}) const { return Json::parse(text(limits)); }
  std::string text(const TraceLimits& limits = {}) const {
    return to_trace({"Fwd", machine, ledger, tiles, memory}, limits);
  }

  device::Machine machine;
  device::Ledger ledger;
  device::TileLedger tiles;
  device::MemoryUse memory;
};

TEST(Trace, HasEventsInTheOrderOfTimeAndLengthsThatAddUpToTheLedger) {
  const TracedCase run({1, 4, 4, 1});
  const Json trace = run.trace();
  double before = 0, microseconds = 0;
  std::int64_t cycles = 0;
  std::map<std::string, int> kinds;
  for (const Json& event : trace["traceEvents"]) {
    EXPECT_GE(event["ts"].get<double>(), before);
    before = event["ts"].get<double>();
    ++kinds[event["ph"].get<std::string>()];
    if (event["ph"] != "X" || event["tid"] != 0) continue;
    cycles += event["args"]["cycles"].get<std::int64_t>();
    microseconds += event["dur"].get<double>();
    EXPECT_EQ(event["args"]["origin"], "modelled");
  }
  EXPECT_EQ(cycles, run.ledger.total().value);
  EXPECT_NEAR(microseconds, double(cycles) / run.machine.clock_hz * 1e6, 1e-9 * double(cycles));
  EXPECT_GT(kinds["C"], 0);
  EXPECT_EQ(kinds["M"], 2 + 16);
  EXPECT_EQ(trace["otherData"]["steps_left_out"], 0);
}

TEST(Trace, GivesEveryTileItsOwnCyclesUpTo64Tiles) {
  const TracedCase run({1, 8, 8, 1});
  ASSERT_EQ(run.machine.tiles, 64);
  std::vector<std::int64_t> of_tile(64), want(64);
  const Json trace = run.trace();
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["tid"] != 0)
      of_tile[event["tid"].get<std::size_t>() - 1] += event["args"]["cycles"].get<std::int64_t>();
  for (const auto& step : run.tiles.steps)
    for (std::size_t t = 0; t < 64; ++t) want[t] += step[t].cycles.value;
  EXPECT_EQ(of_tile, want);
}

TEST(Trace, GroupsMoreTilesThanTracksAndShowsTheSlowest) {
  const TracedCase run({1, 10, 8, 1});
  ASSERT_EQ(run.machine.tiles, 80);
  const Json trace = run.trace();
  EXPECT_EQ(trace["otherData"]["tiles_of_a_track"], 2);
  std::int64_t cycles = 0, want = 0;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["tid"] == 7)
      cycles += event["args"]["cycles"].get<std::int64_t>();
  for (const auto& step : run.tiles.steps) want += std::max(step[12].cycles, step[13].cycles).value;
  EXPECT_EQ(cycles, want);
}

TEST(Trace, StaysInsideItsBounds) {
  const TracedCase run({1, 8, 8, 1});
  const auto steps = std::ssize(run.ledger.steps);
  ASSERT_GT(3 * steps, 100) << "too short a run to cut anything";
  for (const std::int64_t most : {100L, 300L, 1000L, 100000L})
    for (const std::int64_t tracks : {0L, 1L, 64L}) {
      const std::string text = run.text({.tracks = tracks, .events = most});
      const Json trace = Json::parse(text);
      const auto events = std::ssize(trace["traceEvents"]);
      EXPECT_LE(events, most);
      EXPECT_LE(std::ssize(text), 1000 + most * kBytesOfAnEvent);
      for (const Json& event : trace["traceEvents"])
        EXPECT_LE(std::ssize(event.dump()), kBytesOfAnEvent) << event;
      EXPECT_EQ(trace["otherData"]["steps_left_out"].get<std::int64_t>() > 0, 3 * steps + 2 > most);
    }
}

TEST(Trace, RefusesLimitsThatCannotBe) {
  const TracedCase run({1, 1, 2, 1});
  EXPECT_THROW(run.text({.tracks = -1}), Error);
  EXPECT_THROW(run.text({.events = 99}), Error);
  EXPECT_NO_THROW(run.text({.events = 100}));
}

TEST(Trace, OfARunWithoutFiguresOfTilesShowsTheMachineAlone) {
  TracedCase run({1, 2, 2, 1});
  run.tiles = {};
  const Json trace = run.trace();
  EXPECT_GT(std::ssize(trace["traceEvents"]), 5);
  for (const Json& event : trace["traceEvents"]) EXPECT_EQ(event["tid"], 0);
}

TEST(JoinTraces, PutsRunsOneAfterTheOtherAsProcessesOfTheirOwn) {
  const std::string first = R"({"otherData": {"name": "a"}, "traceEvents": [
      {"name": "long", "ts": 1.0, "dur": 4.0}, {"name": "mark", "ts": 2.0}]})";
  const std::string second = R"({"otherData": {"name": "b"}, "traceEvents": [
      {"name": "next", "ts": 0.5, "dur": 1.0}]})";
  const Json all = Json::parse(join_traces({first, second}));
  EXPECT_EQ(all["otherData"], Json::parse(R"([{"name": "a"}, {"name": "b"}])"));
  const Json& events = all["traceEvents"];
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["ts"], 1.0);
  EXPECT_EQ(events[1]["pid"], 0);
  EXPECT_EQ(events[2]["ts"], 5.5);  // after the end of the first run, which is 1 + 4
  EXPECT_EQ(events[2]["pid"], 1);
  EXPECT_TRUE(Json::parse(join_traces({}))["traceEvents"].empty());
}

TEST(JoinTraces, RefusesATextThatIsNoTrace) {
  for (const char* text : {"", "{", "{}", R"({"otherData": {}, "traceEvents": [{"dur": 1}]})"})
    EXPECT_THROW(join_traces({text}), Error) << text;
}

}  // namespace
}  // namespace tessera::report
