#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "tessera/base/random.hpp"
#include "tessera/planner/static_plan.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::planner {

// Returns a view of a matrix' pattern. The matrix must outlive it.
template <class T>
BlockPattern view_of(const sparse::Csr<T>& matrix) {
  return {matrix.block, matrix.block_rows(), matrix.block_cols(), matrix.row_begin, matrix.col};
}

// A matrix in which every place has a block with this probability.
inline sparse::Csr<float> random_matrix(Random& random, std::int64_t rows, std::int64_t cols,
                                        std::int64_t block, double density) {
  sparse::Csr<float> m;
  m.rows = rows * block;
  m.cols = cols * block;
  m.block = {block, block};
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c)
      if (random.unit() < density) m.col.push_back(std::int32_t(c));
    m.row_begin.push_back(m.blocks());
  }
  return m;
}

inline Problem problem_of(const sparse::Csr<float>& m, std::int64_t batch) {
  return {.size = {1, m.rows, m.cols, batch}, .block = m.block};
}

inline device::Machine small_machine(std::int64_t tiles) {
  device::Machine machine = device::machine_preset("bow");
  machine.tiles = tiles;
  return machine;
}

inline StaticPlan plan_or_fail(const sparse::Csr<float>& m, std::int64_t batch,
                               std::int64_t tiles) {
  const auto result =
      plan_static_as_poplibs(problem_of(m, batch), view_of(m), small_machine(tiles));
  EXPECT_TRUE(result.plan) << result.reason;
  return result.plan.value();
}

}  // namespace tessera::planner
