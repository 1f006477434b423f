// The program that ./dev demo runs. It compares a sparse layer with the best dense product, on this
// computer and on a simulated machine, and ends with a case in which sparse loses.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include "tessera/planner/layouts.hpp"
#include "tessera/tessera.hpp"

namespace {

using namespace tessera;

constexpr int kWrongResults = 1;

// Returns a matrix of numbers in (-1, 1) that differ from element to element.
template <class T>
Matrix<T> operand(std::int64_t rows, std::int64_t cols) {
  Matrix<T> matrix(rows, cols);
  double angle = 0;
  for (T& element : matrix.elements()) element = T(static_cast<float>(std::sin(angle += 0.7)));
  return matrix;
}

// Returns the median time of a forward pass, in microseconds.
double microseconds(host::HostLayer& layer, const Matrix<float>& s, Matrix<float>& q) {
  constexpr int kRuns = 201;
  std::vector<double> seconds(kRuns);
  for (double& second : seconds) second = layer.forward<float>(s.view(), q.view()).seconds;
  std::ranges::nth_element(seconds, seconds.begin() + kRuns / 2);
  return 1e6 * seconds[kRuns / 2];
}

// Prints a comparison with double precision; returns true if all results are right.
bool print_verdict(const verify::Verdict& verdict) {
  std::printf("   every result was compared with double precision: %s\n\n",
              to_string(verdict).c_str());
  return verdict.ok();
}

// The fastest dense product of this build.
struct BestDense {
  double time = std::numeric_limits<double>::infinity();  // microseconds
  std::string name;
};

BestDense best_dense(const Problem& problem, const sparse::Csr<float>& weights,
                     const Matrix<float>& s, Executor& executor) {
  BestDense best;
  for (const bool own : {false, true}) {
    host::HostLayer layer(problem, host::read_host_cpu(), executor,
                          {.dense = host::DenseChoice::Always, .own_dense_kernel = own});
    layer.set_weights(weights);
    Matrix<float> q(problem.size.x, problem.size.z);
    const double time = microseconds(layer, s, q);
    if (time < best.time) best = {time, own ? "our own kernel" : host::dense_kernel_name()};
  }
  return best;
}

// Multiplies the layer on one thread of this computer, with and without its zeros.
bool run_on_this_computer(const Problem& problem, const sparse::Csr<float>& weights) {
  const Dims size = problem.size;
  const auto executor = make_executor(1);
  const Matrix<float> s = operand<float>(size.y, size.z);
  const BestDense dense = best_dense(problem, weights, s, *executor);
  host::HostLayer layer(problem, host::read_host_cpu(), *executor);
  layer.set_weights(weights);
  Matrix<float> q(size.x, size.z);
  const double time = microseconds(layer, s, q);

  std::printf("1. This computer (%s), one thread\n", host::host_cpu_model().c_str());
  std::printf("   A pruned layer of a face detector: %ld outputs, %ld inputs, %.0f %% of the\n",
              size.x, size.y, 100 * problem.density);
  std::printf("   weights are stored; batch %ld, float.\n", size.z);
  std::printf("   dense    %8.1f us   (%s)\n", dense.time, dense.name.c_str());
  std::printf("   Tessera  %8.1f us   %.1f times as fast\n", time, dense.time / time);
  return print_verdict(verify::verify_product<float>(weights, s.view(), q.view(), {}));
}

// Runs a layer of large blocks on a simulated machine of 1472 tiles.
bool run_on_a_machine(const device::Machine& machine) {
  const Problem problem{.size = {1, 4096, 4096, 256}, .block = {16, 16}, .density = 1.0 / 16};
  const auto weights = sparse::random_pattern(4096, 4096, problem.block, problem.density, 1);
  const auto executor = make_executor();
  const std::int64_t dense = planner::plan_dense_or_throw(problem, machine).cost.cycles.value;
  const planner::Plan plan = planner::plan_or_throw(problem, machine);
  runtime::FullyConnected layer(problem, plan, machine, device::ExchangeMode::Share, *executor);
  if (const auto misfit = layer.set_weights(weights))
    throw Error(ErrorCode::NoSolution, misfit->message);
  const Matrix<Half> s = operand<Half>(4096, 256);
  Matrix<Half> q(4096, 256);
  const std::int64_t ran = layer.forward<Half>(s.view(), q.view()).total().value;

  std::printf("2. A simulated machine (gc200, %ld tiles)\n", machine.tiles);
  std::printf(
      "   4096 outputs, 4096 inputs, one block of 16 x 16 in 16 is stored; batch 256, half.\n");
  std::printf("   dense    %8ld cycles   (planned)\n", dense);
  std::printf("   Tessera  %8ld cycles   %.1f times as fast; the plan said %ld\n", ran,
              double(dense) / double(ran), plan.cost.cycles.value);
  const verify::Rounding rounding{problem.data_type, problem.partials_type,
                                  planner::partial_sums(plan, Pass::Fwd)};
  return print_verdict(verify::verify_product<Half>(weights, s.view(), q.view(), rounding));
}

// Prints a case in which multiplying the zeros is faster.
void print_what_loses(const Problem& pruned, const device::Machine& machine) {
  const auto sparse =
      planner::plan_or_throw(pruned, machine, {.constraints = {.use_dense = false}});
  const auto dense = planner::plan_dense_or_throw(pruned, machine);
  std::printf("3. What loses\n");
  std::printf(
      "   The layer of 1 on the machine of 2: %ld cycles sparse, %ld dense. The units of\n"
      "   that machine multiply whole blocks, and single weights leave them idle.\n",
      sparse.cost.cycles.value, dense.cost.cycles.value);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) throw Error(ErrorCode::InvalidArgument, "usage: demo data/face_conv2d_24.mtx");
  const auto weights = sparse::cast<float>(io::read_matrix(argv[1]).matrix);
  Problem pruned{.size = {1, weights.rows, weights.cols, 64}, .data_type = DataType::Float};
  pruned.density = double(weights.values.size()) / double(weights.rows * weights.cols);
  const device::Machine machine = device::machine_preset("gc200");
  const bool is_right = run_on_this_computer(pruned, weights) && run_on_a_machine(machine);
  print_what_loses(pruned, machine);
  return is_right ? 0 : kWrongResults;
} catch (const std::exception& error) {
  std::fprintf(stderr, "demo: %s\n", error.what());
  return 2;
}
