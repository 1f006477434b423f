#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tessera/examples/graph_challenge_host.hpp"
#include "tessera/examples/graph_challenge_resident.hpp"

// A whole network: the 30 layers of MIT's GraphChallenge for sparse networks (1024 neurons, 1200
// images of 0 and 1). Each layer computes Y = min(32, max(0, Y * W - 0.3)), and one plan serves all
// layers. An image with any value above 0 after the last layer is alive; the list of those images
// is published. With --machine host the layers run on this computer and are timed. With --resident
// they also run as one program, in which all of them stay in the memory of the modelled machine.
namespace {

using namespace tessera;
using namespace tessera::examples;

// The cost of all layers together.
struct Run {
  std::int64_t connections = 0;
  Cycles cycles;
  std::chrono::duration<double> host{};  // of the forward passes alone
};

// One plan for every layer: for all images at once, or for the fewest equal parts that fit the
// machine.
std::pair<Problem, planner::Plan> plan_layers(const Arguments& a, const device::Machine& machine,
                                              std::int64_t images) {
  Problem problem{.size = {1, kNeurons, kNeurons, images},
                  .density = kWeightsPerNeuron / kNeurons,
                  .data_type = a.type};
  planner::PlanResult result = planner::plan(problem, machine, planner::sparse_options());
  for (std::int64_t parts = 2; !result.has_plan && parts <= images; ++parts) {
    if (images % parts != 0) continue;
    problem.size.z = images / parts;
    result = planner::plan(problem, machine, planner::sparse_options());
  }
  if (!result.has_plan) throw Error(ErrorCode::NoSolution, result.reason);
  return {problem, result.plan};
}

// Runs one layer for all images, `width` images at a time.
template <class T>
Cycles forward(runtime::FullyConnected& layer, const Matrix<T>& in, Matrix<T>& out,
               std::int64_t width) {
  const Range neurons{0, kNeurons};
  Cycles cycles;
  for (std::int64_t z = 0; z < in.cols(); z += width)
    cycles += layer
                  .forward<T>(in.view().sub(neurons, {z, z + width}),
                              out.view().sub(neurons, {z, z + width}))
                  .total();
  return cycles;
}

template <class T>
std::int64_t activate_all(Matrix<T>& y, Executor& executor) {
  std::vector<std::int64_t> above(std::size_t(y.rows()));
  executor.for_each(y.rows(), [&](std::int64_t row) {
    T* const values = y.view().row(row);
    above[std::size_t(row)] = activate<T>(values, y.cols(), values);
  });
  return std::accumulate(above.begin(), above.end(), std::int64_t{0});
}

template <class T>
Run run_layers(const Arguments& a, runtime::FullyConnected& layer, Matrix<T>& y, std::int64_t width,
               Executor& executor) {
  Run run;
  fmt::print("layer  values above 0     cycles  spilled\n");
  for (std::int64_t l = 1; l <= kLayers; ++l) {
    const sparse::Csr<float> weights = layer_weights(a, l);
    if (const auto misfit = layer.set_weights(weights))
      throw Error(ErrorCode::NoSolution, fmt::format("layer {}: {}", l, misfit->message));
    Matrix<T> next(y.rows(), y.cols());
    const auto start = std::chrono::steady_clock::now();
    const Cycles cycles = forward(layer, y, next, width);
    run.host += std::chrono::steady_clock::now() - start;
    y = std::move(next);

    fmt::print("{:5}  {:14}  {:9}  {:7}\n", l, activate_all(y, executor), cycles.value,
               layer.spill().moved_blocks);
    run.connections += weights.blocks();

    run.cycles += cycles;
  }
  return run;
}

template <class T>
bool run_network(const Arguments& a) {
  if (a.machine == device::kHostMachine) {
    if (a.resident)
      throw Error(ErrorCode::InvalidArgument, "--resident needs a modelled machine, not host");
    return run_on_host(a);
  }
  Matrix<T> y = read_images<T>(a);
  const device::Machine machine = device::load_machine(a.machine);
  const auto [problem, plan] = plan_layers(a, machine, y.cols());
  const auto executor = make_executor(a.threads);
  runtime::FullyConnected layer(problem, plan, machine, device::ExchangeMode::Share, *executor);
  const Run run = run_layers(a, layer, y, problem.size.z, *executor);

  const double edges = double(run.connections) * double(y.cols());
  const double seconds = double(run.cycles.value) / machine.clock_hz;
  fmt::print("{}, {}, {} images at once: {} cycles, {:.1f} us, {:.3g} edges/s (modelled)\n",
             machine.name, to_string(a.type), problem.size.z, run.cycles.value, seconds * 1e6,
             edges / seconds);
  fmt::print("this computer: {:.0f} ms, {:.3g} edges/s (measured, {} threads)\n",
             run.host.count() * 1e3, edges / run.host.count(), executor->threads());
  const bool right = is_published(a, alive_in(y));
  return a.resident ? run_resident(a, run.cycles) && right : right;
}

int run_main(int argc, char** argv) {
  Arguments a;
  CLI::App app("Runs GraphChallenge's 30 layers of 1024 neurons and compares with its answer");
  app.add_option("folder", a.folder, "the unpacked network: n1024-l*.mtx, images, answer")
      ->required();
  app.add_option("--machine", a.machine, "gc200, bow, mk1, FILE.json or host: this computer")
      ->capture_default_str();
  app.add_option("--threads", a.threads, "of this computer; 0: all")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_flag("--resident", a.resident,
               "on a modelled machine, also run all layers as one program that stays in memory");
  const std::map<std::string, DataType> types{{"float", DataType::Float}, {"half", DataType::Half}};
  app.add_option("--data-type", a.type, "of weights, images and results; sums are float")
      ->transform(CLI::CheckedTransformer(types));
  CLI11_PARSE(app, argc, argv);
  const bool right = a.type == DataType::Half ? run_network<Half>(a) : run_network<float>(a);
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_main(argc, argv);
  } catch (const tessera::Error& error) {
    fmt::print(stderr, "graph_challenge: {}\n", error.what());
    return error.code() == tessera::ErrorCode::BadInput ? 3 : 4;
  }
}
