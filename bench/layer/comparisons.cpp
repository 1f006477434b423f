#include "tessera/bench/layer/comparisons.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/layer/grid_cases.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {
namespace {

constexpr std::uint64_t kSeed = 7;

sparse::Csr<float> uniform(const LayerCase& c) {
  return sparse::random_pattern(c.x, c.y, c.shape(), c.density, kSeed);
}

double simulated_seconds(const LayerCase& c) {
  const device::Machine machine = device::machine_preset("gc200");
  const Problem problem{.size = {1, c.x, c.y, c.z},
                        .block = c.shape(),
                        .density = c.density,
                        .data_type = DataType::Float};
  const auto executor = make_executor(1);
  runtime::FullyConnected layer(problem,
                                planner::plan_or_throw(problem, machine, planner::sparse_options()),
                                machine, device::ExchangeMode::Share, *executor);
  if (const auto misfit = layer.set_weights(uniform(c))) throw std::runtime_error(misfit->message);
  const auto s = random_matrix<float>(c.y, c.z, 1);
  Matrix<float> q(c.x, c.z);
  return time_of(1, 9, [&] { layer.forward<float>(s.view(), q.view()); }).median;
}

}  // namespace

double simulated_over_host(const LayerCase& c) { return simulated_seconds(c) / measure(c).seconds; }

Ratios real_over_uniform(const std::filesystem::path& shared) {
  Ratios ratios;
  for (const auto& file : matrix_files(shared / "data" / "dlmc")) {
    const sparse::Csr<float> matrix = read_weights(file);
    if (matrix.blocks() < 5000) continue;
    LayerCase c{.x = matrix.rows, .y = matrix.cols, .z = 256};
    c.density = double(matrix.blocks()) / (double(c.x) * double(c.y));
    ratios.add(measure(c, matrix).rate() / measure(c).rate());
  }
  return ratios;
}

double dense_seconds(const LayerCase& c) {
  LayerCase dense = c;
  dense.dense = host::DenseChoice::Always;
  dense.density = 0.01;  // zeros are multiplied as well
  const double own = measure(dense).seconds;
  return std::min(own, open_blas_seconds(c).value_or(own));
}

double crossover(const LayerCase& c) {
  const double dense = dense_seconds(c);
  LayerCase tried = c;
  double low = 0, high = 1;
  const auto wins = [&](double density) {
    tried.density = density;
    return measure(tried).seconds <= dense;
  };
  if (wins(high)) return high;
  while (high - low > 0.02) {
    const double middle = (low + high) / 2;
    (wins(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace tessera::bench
