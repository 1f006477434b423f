#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tessera/tessera.hpp"

// A whole network: 30 layers of MIT's GraphChallenge for sparse networks (1024 neurons, 1200 images
// of 0 and 1), each Y = min(32, max(0, Y * W - 0.3)), on one machine whose plan serves all layers.
// Images with any value above 0 behind the last layer are alive; which they are is published.
namespace {

using namespace tessera;

constexpr std::int64_t kNeurons = 1024, kLayers = 30;
constexpr double kWeightsPerNeuron = 32;
constexpr float kBias = -0.3f, kCap = 32;

struct Arguments {
  std::string folder;
  std::string machine = "gc200";
  DataType type = DataType::Float;
};

// What the layers cost together.
struct Run {
  std::int64_t connections = 0;
  Cycles cycles;
  std::chrono::duration<double> host{};  // forward passes alone
};

sparse::Csr<float> layer_weights(const Arguments& a, std::int64_t layer) {
  const std::string path = fmt::format("{}/n{}-l{}.mtx", a.folder, kNeurons, layer);
  // Rows of a file are inputs: Y * W is transpose(W) * transpose(Y).
  return sparse::transpose(sparse::cast<float>(sparse::read_matrix(path).matrix));
}

// transpose(Y): one image a column.
template <class T>
Matrix<T> read_images(const Arguments& a) {
  const std::string path = fmt::format("{}/sparse-images-{}_subset.mtx", a.folder, kNeurons);
  const Matrix<double> images = sparse::to_dense(sparse::read_matrix(path).matrix);
  Matrix<T> s(images.cols(), images.rows());
  for (std::int64_t y = 0; y < s.rows(); ++y)
    for (std::int64_t z = 0; z < s.cols(); ++z) s(y, z) = T(float(images(z, y)));
  return s;
}

// Images, counted from 1, that the published answer calls alive.
std::vector<std::int64_t> published(const Arguments& a) {
  const std::string path =
      fmt::format("{}/neuron{}-l120-categories_subset.mtx", a.folder, kNeurons);
  const sparse::Csr<double> answer = sparse::read_matrix(path).matrix;
  std::vector<std::int64_t> alive;
  for (std::int64_t image = 0; image < answer.rows; ++image)
    if (answer.row_begin[std::size_t(image)] < answer.row_begin[std::size_t(image) + 1])
      alive.push_back(image + 1);
  return alive;
}

template <class T>
std::vector<std::int64_t> alive_in(const Matrix<T>& y) {
  std::vector<std::int64_t> alive;
  for (std::int64_t image = 0; image < y.cols(); ++image) {
    bool any = false;
    for (std::int64_t neuron = 0; neuron < y.rows(); ++neuron)
      any = any || float(y(neuron, image)) > 0;
    if (any) alive.push_back(image + 1);
  }
  return alive;
}

// In place; gives the number of values above 0.
template <class T>
std::int64_t activate(Matrix<T>& y) {
  std::int64_t above = 0;
  for (T& value : y.elements()) {
    value = T(std::clamp(float(value) + kBias, 0.0f, kCap));
    above += float(value) > 0;
  }
  return above;
}

// A plan for every layer, for all images at once or for as few equal parts as the machine takes.
std::pair<planner::Problem, planner::Plan> plan_layers(const Arguments& a,
                                                       const device::Machine& machine,
                                                       std::int64_t images) {
  planner::Problem problem{.size = {1, kNeurons, kNeurons, images},
                           .density = kWeightsPerNeuron / kNeurons,
                           .data_type = a.type};
  planner::PlanResult result = planner::plan(problem, machine);
  for (std::int64_t parts = 2; !result.has_plan && parts <= images; ++parts) {
    if (images % parts != 0) continue;
    problem.size.z = images / parts;
    result = planner::plan(problem, machine);
  }
  if (!result.has_plan) throw Error(ErrorCode::NoSolution, result.reason);
  return {problem, result.plan};
}

// One layer for all images, in parts of `width`.
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
Run run_layers(const Arguments& a, runtime::FullyConnected& layer, Matrix<T>& y,
               std::int64_t width) {
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

    fmt::print("{:5}  {:14}  {:9}  {:7}\n", l, activate(y), cycles.value,
               layer.spill().moved_blocks);
    run.connections += weights.blocks();

    run.cycles += cycles;
  }
  return run;
}

template <class T>
bool run_network(const Arguments& a) {
  Matrix<T> y = read_images<T>(a);
  const device::Machine machine = device::load_machine(a.machine);
  const auto [problem, plan] = plan_layers(a, machine, y.cols());
  const auto executor = make_executor();
  runtime::FullyConnected layer(problem, plan, machine, device::ExchangeMode::Share, *executor);
  const Run run = run_layers(a, layer, y, problem.size.z);

  const double edges = double(run.connections) * double(y.cols());
  const double seconds = double(run.cycles.value) / machine.clock_hz;
  fmt::print("{}, {}, {} images at once: {} cycles, {:.1f} us, {:.3g} edges/s (modelled)\n",
             machine.name, to_string(a.type), problem.size.z, run.cycles.value, seconds * 1e6,
             edges / seconds);
  fmt::print("this computer: {:.0f} ms, {:.3g} edges/s (measured, {} threads)\n",
             run.host.count() * 1e3, edges / run.host.count(), executor->threads());
  const std::vector<std::int64_t> alive = alive_in(y);
  fmt::print("alive: {}\n", fmt::join(alive, " "));
  const bool right = alive == published(a);
  fmt::print("{}\n", right ? "PASS: the published images" : "FAIL: not the published images");
  return right;
}

int run_main(int argc, char** argv) {
  Arguments a;
  CLI::App app("Runs GraphChallenge's 30 layers of 1024 neurons and compares with its answer");
  app.add_option("folder", a.folder, "the unpacked network: n1024-l*.mtx, images, answer")
      ->required();
  app.add_option("--machine", a.machine, "gc200, bow, mk1 or FILE.json")->capture_default_str();
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
