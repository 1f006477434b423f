#include "tessera/runtime/program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/tests/runtime/layer_case.hpp"

namespace tessera::runtime {
namespace {

// 8 x 8 elements on tiles x 2 * y 2, or a z of 2 besides.
LayerCase small_case(bool travelling, std::int64_t z_parts = 1) {
  LayerCase c;
  c.weights = random_weights(8, 8, {1, 1}, 0.5, 1);
  c.batch = 8;
  c.partition = {1, 2, 2, z_parts};
  c.travelling_buckets = travelling;
  return c;
}

FullyConnected layer_of(const LayerCase& c, Executor& executor) {
  return FullyConnected(c.problem(), c.plan(), c.machine(), device::ExchangeMode::Share, executor);
}

// The programs of a small layer, as tests/data/programs.txt shows them.
std::string printed_programs() {
  const auto executor = make_executor(1);
  const FullyConnected layer = layer_of(small_case(false), *executor);
  std::string text;
  for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW})
    text += to_string(layer.program(pass)) + "\n";
  return text + to_string(layer_of(small_case(true), *executor).program(Pass::GradW));
}

TEST(Program, OfAllPassesAndBothWaysOfGradWPrintsAsTheFileShows) {
  std::ifstream file(std::string(TESSERA_SOURCE_DIR) + "/tests/data/programs.txt");
  const std::string shown{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(printed_programs(), shown);
}

TEST(Program, PrintsNoLineBeyondAHundredColumns) {
  std::istringstream lines(printed_programs());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 100u) << line;
  EXPECT_GT(count, 60);
}

void collect_nodes(const std::vector<Node>& nodes, std::vector<Node>& all) {
  for (const Node& node : nodes) {
    all.push_back(node);
    collect_nodes(node.body, all);
  }
}

// The ledger's steps must be nodes of the tree, and straight-line steps come in its order.
TEST(Program, IsWhatTheLedgerShowsRan) {
  const LayerCase c = small_case(false, 2);
  const auto executor = make_executor(1);
  FullyConnected layer = layer_of(c, *executor);
  ASSERT_FALSE(layer.set_weights(c.weights));
  const Operands<float> in(c);
  Matrix<float> q(8, 8);
  const device::Ledger ledger = layer.forward<float>(in.s.view(), q.view());
  std::vector<Phase> expected, ran;
  for (const Node& node : layer.program(Pass::Fwd).nodes)
    if (node.kind == NodeKind::Exchange || node.kind == NodeKind::Compute)
      expected.push_back(node.phase.value());
  for (const device::StepRecord& step : ledger.steps)
    if (step.kind != device::StepKind::Control) ran.push_back(step.phase);
  EXPECT_EQ(ran, expected);
}

TEST(Program, HasNothingToPropagateWhereThereIsOneCell) {
  LayerCase c = small_case(false);
  c.partition = {1, 1, 1, 2};
  const auto executor = make_executor(1);
  const FullyConnected layer = layer_of(c, *executor);
  std::vector<Node> nodes;
  collect_nodes(layer.program(Pass::Fwd).nodes, nodes);
  EXPECT_TRUE(std::none_of(nodes.begin(), nodes.end(),
                           [](const Node& node) { return node.kind == NodeKind::Repeat; }));
}

TEST(Program, IsBuiltOnceAndTheSameForEqualPlans) {
  const LayerCase c = small_case(true);
  const auto executor = make_executor(1);
  FullyConnected layer = layer_of(c, *executor);
  const Program before = layer.program(Pass::GradW);
  ASSERT_FALSE(layer.set_weights(c.weights));
  EXPECT_EQ(layer.program(Pass::GradW), before);
  EXPECT_EQ(layer_of(c, *executor).program(Pass::GradW), before);
  EXPECT_NE(layer_of(small_case(false), *executor).program(Pass::GradW), before);
}

TEST(Program, OfAPassTheLayerHasNotIsRefused) {
  const LayerCase c = small_case(false);
  Problem problem = c.problem();
  problem.grad_a = problem.grad_w = false;
  const auto executor = make_executor(1);
  const FullyConnected layer(problem, c.plan(), c.machine(), device::ExchangeMode::Share,
                             *executor);
  EXPECT_NO_THROW(layer.program(Pass::Fwd));
  for (const Pass pass : {Pass::GradA, Pass::GradW}) {
    EXPECT_THROW(layer.program(pass), Error);
    EXPECT_THROW(layer.memory(pass), Error);
  }
}

}  // namespace
}  // namespace tessera::runtime
