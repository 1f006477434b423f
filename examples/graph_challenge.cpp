#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tessera/tessera.hpp"

// A whole network: 30 layers of MIT's GraphChallenge for sparse networks (1024 neurons, 1200 images
// of 0 and 1), each Y = min(32, max(0, Y * W - 0.3)), on one machine whose plan serves all layers.
// Images with any value above 0 behind the last layer are alive; which they are is published.
// With --machine host the layers run on this computer as fast as it can, and are timed.
namespace {

using namespace tessera;

constexpr std::int64_t kNeurons = 1024, kLayers = 30;
constexpr double kWeightsPerNeuron = 32;
constexpr float kBias = -0.3f, kCap = 32;

struct Arguments {
  std::string folder;
  std::string machine = "gc200";
  DataType type = DataType::Float;
  int threads = 0;  // of this computer; 0: all
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

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
std::int64_t activate(Matrix<T>& y, Executor& executor) {
  std::vector<std::int64_t> above(std::size_t(y.rows()));
  executor.for_each(y.rows(), [&](std::int64_t row) {
    std::int64_t own = 0;
    T* const values = y.view().row(row);
    for (std::int64_t z = 0; z < y.cols(); ++z) {
      values[z] = T(std::clamp(float(values[z]) + kBias, 0.0f, kCap));
      own += float(values[z]) > 0;
    }
    above[std::size_t(row)] = own;
  });
  return std::accumulate(above.begin(), above.end(), std::int64_t{0});
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

    fmt::print("{:5}  {:14}  {:9}  {:7}\n", l, activate(y, executor), cycles.value,
               layer.spill().moved_blocks);
    run.connections += weights.blocks();

    run.cycles += cycles;
  }
  return run;
}

template <class T>
bool is_published(const Arguments& a, const Matrix<T>& y) {
  const std::vector<std::int64_t> alive = alive_in(y);
  fmt::print("alive: {}\n", fmt::join(alive, " "));
  const bool right = alive == published(a);
  fmt::print("{}\n", right ? "PASS: the published images" : "FAIL: not the published images");
  return right;
}

// Seconds of the parts of a run on this computer.
struct HostSeconds {
  double encode = 0, forward = 0, activate = 0;

  double all() const { return encode + forward + activate; }
};

// Weights are read before the clock starts: files are no part of the network.
template <class T>
bool run_on_host(const Arguments& a) {
  Matrix<T> y = read_images<T>(a), next(y.rows(), y.cols());
  const planner::Problem problem{.size = {1, kNeurons, kNeurons, y.cols()},
                                 .density = kWeightsPerNeuron / kNeurons,
                                 .data_type = a.type};
  const auto executor = make_executor(a.threads);
  runtime::HostLayer layer(problem, device::read_host_cpu(), *executor);
  HostSeconds seconds;
  double flops = 0;
  fmt::print("layer  values above 0  encode, ms  forward, ms\n");
  for (std::int64_t l = 1; l <= kLayers; ++l) {
    const sparse::Csr<float> weights = layer_weights(a, l);
    const auto encode = std::chrono::steady_clock::now();
    layer.set_weights(weights);
    const double encoded = seconds_since(encode);
    const auto forward = std::chrono::steady_clock::now();
    layer.forward<T>(std::as_const(y).view(), next.view());
    const double multiplied = seconds_since(forward);
    std::swap(y, next);
    const auto activation = std::chrono::steady_clock::now();
    const std::int64_t above = activate(y, *executor);
    seconds.activate += seconds_since(activation);
    seconds.encode += encoded;
    seconds.forward += multiplied;
    flops += 2 * double(weights.blocks()) * double(y.cols());
    fmt::print("{:5}  {:14}  {:10.3f}  {:11.3f}\n", l, above, encoded * 1e3, multiplied * 1e3);
  }
  fmt::print(
      "host, {}, {} threads: encoding {:.1f} ms, layers {:.1f} ms, bias, ReLU and cap {:.1f} ms\n",
      to_string(a.type), executor->threads(), seconds.encode * 1e3, seconds.forward * 1e3,
      seconds.activate * 1e3);
  fmt::print("end to end: {:.1f} ms, {:.2f} useful GFLOP/s, {:.3g} edges/s (measured)\n",
             seconds.all() * 1e3, flops / seconds.all() * 1e-9, flops / 2 / seconds.all());
  return is_published(a, y);
}

template <class T>
bool run_network(const Arguments& a) {
  if (a.machine == device::kHostMachine) return run_on_host<T>(a);
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
  return is_published(a, y);
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
