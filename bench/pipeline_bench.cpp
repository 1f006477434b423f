// Measures the wall time of the stages of a layer on this computer: planning, encoding, and a
// simulated forward pass. The shapes are read from bench/shapes/pipeline.txt. A pass whose result
// is wrong is not timed.

#include <benchmark/benchmark.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tessera/tessera.hpp"

namespace {

using namespace tessera;

struct Shape {
  std::int64_t x = 0, y = 0, z = 0, block = 1;
  double density = 0;

  Problem problem() const {
    return {.size = {1, x, y, z},
            .block = {block, block},
            .density = density,
            .data_type = DataType::Float};
  }
  sparse::Csr<float> weights() const {
    return sparse::random_pattern(x, y, {block, block}, density, /*seed=*/7);
  }
  std::string name() const {
    std::ostringstream text;
    text << x << "x" << y << "x" << z << "/block:" << block << "/density:" << density;
    return text.str();
  }
};

std::vector<Shape> read_shapes(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<Shape> shapes;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    Shape shape;
    std::istringstream(line) >> shape.x >> shape.y >> shape.z >> shape.block >> shape.density;
    shapes.push_back(shape);
  }
  return shapes;
}

benchmark::Counter per_second(std::int64_t n) {
  return benchmark::Counter(double(n), benchmark::Counter::kIsIterationInvariantRate);
}

void plan(benchmark::State& state, const Shape& shape) {
  const device::Machine machine = device::machine_preset("gc200");
  std::int64_t evaluations = 0;
  for (auto _ : state) {
    const planner::PlanResult result = planner::plan(shape.problem(), machine);
    if (result.status != planner::PlanStatus::Found) return state.SkipWithError("no plan");
    evaluations = result.evaluations;
  }
  state.counters["evaluations"] = double(evaluations);
}

void encode(benchmark::State& state, const Shape& shape) {
  const device::Machine machine = device::machine_preset("gc200");
  const Problem problem = shape.problem();
  const auto grid = runtime::tile_grid(
      problem, planner::plan_or_throw(problem, machine, planner::sparse_options()), machine);
  const auto weights = sparse::with_block(shape.weights(), grid.block);
  for (auto _ : state) {
    auto result = partitioner::encode(weights, grid);
    if (!result.buckets) return state.SkipWithError("does not fit");
    benchmark::DoNotOptimize(result);
  }
  state.counters["blocks"] = per_second(weights.blocks());
}

// `flops` counts the useful operations, `dense_flops` those of a dense layer of the same size.
void forward(benchmark::State& state, const Shape& shape, device::ExchangeMode mode) {
  const device::Machine machine = device::machine_preset("gc200");
  const Problem problem = shape.problem();
  const auto executor = make_executor();
  runtime::FullyConnected layer(problem,
                                planner::plan_or_throw(problem, machine, planner::sparse_options()),
                                machine, mode, *executor);
  const auto weights = shape.weights();
  if (layer.set_weights(weights)) return state.SkipWithError("does not fit");
  Matrix<float> s(shape.y, shape.z), q(shape.x, shape.z);
  for (std::size_t i = 0; i < s.elements().size(); ++i) s.elements()[i] = float(i % 17) - 8;
  const auto s_view = std::as_const(s).view();
  layer.forward<float>(s_view, q.view());
  if (!verify::verify_product<float>(weights, s_view, std::as_const(q).view(),
                                     {.partials = machine.tiles})
           .ok())
    return state.SkipWithError("wrong result");
  for (auto _ : state) layer.forward<float>(s_view, q.view());
  state.counters["flops"] = per_second(2 * weights.blocks() * shape.block * shape.block * shape.z);
  state.counters["dense_flops"] = per_second(2 * shape.x * shape.y * shape.z);
}

}  // namespace

int main(int argc, char** argv) {
  for (const Shape& shape : read_shapes(TESSERA_SOURCE_DIR "/bench/shapes/pipeline.txt")) {
    const auto add = [&](const std::string& stage, auto&& body) {
      benchmark::RegisterBenchmark((stage + "/" + shape.name()).c_str(), body)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    };
    add("plan", [shape](auto& state) { plan(state, shape); });
    add("encode", [shape](auto& state) { encode(state, shape); });
    add("forward_share",
        [shape](auto& state) { forward(state, shape, device::ExchangeMode::Share); });
    add("forward_isolate",
        [shape](auto& state) { forward(state, shape, device::ExchangeMode::Isolate); });
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
