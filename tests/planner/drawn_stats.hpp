#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tessera/base/pattern_stats.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/base/random.hpp"
#include "tessera/sparse/block_stats.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::planner {

// Skewed rows: the first eighth has half of the places.
inline PatternStats draw_stats(const Problem& p, Random& random) {
  const Dims padded = p.size_in_blocks();
  const std::int64_t rows = padded.x / p.block.rows, cols = padded.y / p.block.cols;
  sparse::Csr<float> m;
  m.rows = padded.x;
  m.cols = padded.y;
  m.block = p.block;
  for (std::int64_t r = 0; r < rows; ++r) {
    const double density = 8 * r < rows ? std::min(1.0, 4 * p.density) : 0.6 * p.density;
    for (std::int64_t c = 0; c < cols; ++c)
      if (random.unit() < density) m.col.push_back(std::int32_t(c));
    m.row_begin.push_back(m.blocks());
  }
  m.values.assign(std::size_t(m.blocks() * p.block.area()), 1.0f);
  const sparse::CheckedCsr<float> checked = sparse::checked(std::move(m));
  return sparse::stats_of_groups(std::vector(std::size_t(p.size.g), checked));
}

}  // namespace tessera::planner
