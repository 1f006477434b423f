#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::partitioner::test {

// A canonical matrix of block_rows x block_cols blocks with those blocks in it that `holds` names.
// All values differ: 1, 2, 3, ...
inline sparse::Csr<float> make_matrix(
    std::int64_t block_rows, std::int64_t block_cols, BlockShape block,
    const std::function<bool(std::int64_t, std::int64_t)>& holds) {
  sparse::Csr<float> m{block_rows * block.rows, block_cols * block.cols, block, {0}, {}, {}};
  for (std::int64_t r = 0; r < block_rows; ++r) {
    for (std::int64_t c = 0; c < block_cols; ++c)
      if (holds(r, c)) m.col.push_back(static_cast<std::int32_t>(c));
    m.row_begin.push_back(m.blocks());
  }
  for (std::int64_t i = 0; i < m.blocks() * block.area(); ++i)
    m.values.push_back(static_cast<float>(i + 1));
  return m;
}

// A drawing, one character per block: '.' is empty.
inline sparse::Csr<float> draw(const std::vector<std::string>& rows, BlockShape block = {}) {
  return make_matrix(static_cast<std::int64_t>(rows.size()),
                     static_cast<std::int64_t>(rows[0].size()), block,
                     [&](std::int64_t r, std::int64_t c) {
                       return rows[static_cast<std::size_t>(r)][static_cast<std::size_t>(c)] != '.';
                     });
}

struct Shape {
  std::int64_t rows, cols;  // blocks
};

struct PatternKind {
  std::string name;
  std::function<sparse::Csr<float>(Shape, BlockShape)> make;
};

inline std::vector<PatternKind> pattern_kinds(std::uint64_t seed) {
  const auto with_rule = [](std::string name, auto rule) {
    return PatternKind{std::move(name), [rule](Shape s, BlockShape block) {
                         return make_matrix(
                             s.rows, s.cols, block,
                             [&](std::int64_t r, std::int64_t c) { return rule(s, r, c); });
                       }};
  };
  const auto with_chance = [seed](std::string name, auto chance) {
    return PatternKind{std::move(name), [seed, chance](Shape s, BlockShape block) {
                         Random random(seed);
                         return make_matrix(s.rows, s.cols, block,
                                            [&](std::int64_t r, std::int64_t c) {
                                              return random.unit() < chance(s, r, c);
                                            });
                       }};
  };
  using I = std::int64_t;
  return {
      with_chance("uniform", [](Shape, I, I) { return 0.2; }),
      with_chance("power law",
                  [](Shape, I r, I) { return 1.5 / std::pow(static_cast<double>(r) + 1.5, 1.1); }),
      with_chance("empty rows", [](Shape, I r, I) { return r % 3 == 1 ? 0.5 : 0.0; }),
      with_rule("banded",
                [](Shape s, I r, I c) { return std::abs(c * s.rows - r * s.cols) <= s.cols; }),
      with_rule("saw-tooth", [](Shape s, I r, I c) { return c < s.cols * (r % 4) / 4; }),
      with_rule("one full row", [](Shape s, I r, I) { return r == s.rows / 2; }),
      with_rule("one full column", [](Shape s, I, I c) { return c == s.cols - 1; }),
      with_rule("full row and column", [](Shape, I r, I c) { return r == 0 || c == 0; }),
      with_rule("one corner", [](Shape s, I r, I c) { return r < s.rows / 4 && c < s.cols / 4; }),
      with_rule("single", [](Shape s, I r, I c) { return r == s.rows - 1 && c == 0; }),
      with_rule("empty", [](Shape, I, I) { return false; }),
      with_rule("full", [](Shape, I, I) { return true; }),
  };
}

// Returns a change of the pattern: blocks of the first `rows` block rows leave and others come,
// each with this probability.
inline sparse::PatternChange random_change(
    const sparse::Csr<float>& m, double share, Random& random,
    std::int64_t rows = std::numeric_limits<std::int64_t>::max()) {
  sparse::PatternChange change;
  for (std::int32_t row = 0; row < std::min(rows, m.block_rows()); ++row) {
    std::int64_t k = m.row_begin[std::size_t(row)];
    for (std::int32_t col = 0; col < m.block_cols(); ++col) {
      const bool stored = k < m.row_begin[std::size_t(row) + 1] && m.col[std::size_t(k)] == col;
      k += stored;
      if (random.unit() < share) (stored ? change.removed : change.added).push_back({row, col});
    }
  }
  return change;
}

}  // namespace tessera::partitioner::test
