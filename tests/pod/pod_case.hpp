#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/pod/internal/grids.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::pod {

// A machine of a few tiles, whose plans take no time.
inline device::Machine small_machine(std::int64_t tiles, std::int64_t tile_memory = 638976) {
  device::Machine machine = device::machine_preset("bow");
  machine.name = "small";
  machine.tiles = tiles;
  machine.tile_memory = Bytes(tile_memory);
  return machine;
}

// Pairs on a full level, and rings of pairs.
inline device::Pod small_pod(const device::Machine& machine, std::int64_t inner,
                             std::int64_t outer) {
  return {"small",
          machine,
          {{device::LevelKind::Full, inner, 58.4e9, 2.4e-6, 3e-8},
           {device::LevelKind::Ring, outer, 29.2e9, 2.4e-6, 6e-8}}};
}

inline Problem make_problem(Dims size, BlockShape block, double density, DataType type,
                            bool backward = true) {
  Problem problem;
  problem.size = size;
  problem.block = block;
  problem.density = density;
  problem.data_type = type;
  problem.grad_a = problem.grad_w = backward;
  return problem;
}

// Returns the plan of a given grid, whatever it costs. Its devices must have plans.
inline PodPlan plan_of_grid(const Problem& problem, const device::Pod& pod, const PodGrid& grid,
                            std::int64_t serial_parts = 1) {
  PodPlan plan{problem, pod, {}, grid, serial_parts, {}, {}, {}};
  plan.options.constraints.use_dense = false;
  plan.shapes = internal::shapes_of(problem, grid.parts(), serial_parts);
  for (DeviceShape& shape : plan.shapes)
    shape.plan = planner::plan_or_throw(device_problem(problem, shape.size), pod.machine,
                                        device_options(plan.options, grid.parts()));
  internal::LevelPrices prices(plan.pod);
  internal::add_costs(prices, plan);
  return plan;
}

// Returns the weights of all groups, of +1 and -1 if `signs`.
inline std::vector<sparse::CheckedCsr<float>> make_weights(const Problem& problem, bool signs,
                                                           std::uint64_t seed) {
  std::vector<sparse::CheckedCsr<float>> weights;
  const Dims size = problem.size_in_blocks();
  for (std::int64_t g = 0; g < size.g; ++g) {
    sparse::Csr<float> matrix =
        sparse::random_pattern(size.x, size.y, problem.block, problem.density, seed + g);
    if (signs) sparse::fill_signs(matrix, seed + 100 + g);
    weights.push_back(sparse::checked(std::move(matrix)));
  }
  return weights;
}

template <class T>
Matrix<T> make_operand(std::int64_t rows, std::int64_t cols, bool signs, std::uint64_t seed) {
  if (!signs) return random_matrix<T>(rows, cols, seed);
  Random random(seed);
  Matrix<T> matrix(rows, cols);
  for (T& value : matrix.elements()) value = T(random.sign());
  return matrix;
}

}  // namespace tessera::pod
