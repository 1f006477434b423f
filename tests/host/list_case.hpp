#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

#include "tessera/base/half.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/random.hpp"
#include "tessera/host/sparse_views.hpp"

// Random matrices as lists of places, with every view of them, for tests of the calls on views.
namespace tessera::test {

template <class T>
constexpr double kRounding = std::is_same_v<T, float>  ? 0x1p-24
                             : std::is_same_v<T, Half> ? 0x1p-11
                                                       : 0x1p-8;

template <class T>
Matrix<T> turned(const Matrix<T>& m) {
  Matrix<T> result(m.cols(), m.rows());
  for (std::int64_t r = 0; r < m.rows(); ++r)
    for (std::int64_t c = 0; c < m.cols(); ++c) result(c, r) = m(r, c);
  return result;
}

// Places in random order. Some of them are twice in the list.
template <class T, class Index>
struct ListCase {
  std::int64_t rows, cols;
  std::vector<Index> row, col;
  std::vector<T> values;

  ListCase(std::int64_t x, std::int64_t y, std::int64_t places, std::int64_t seed = 3)
      : rows(x), cols(y) {
    Random random{std::uint64_t(seed)};
    for (std::int64_t i = 0; i < places; ++i) {
      row.push_back(Index(random.below(x)));
      col.push_back(Index(random.below(y)));
      values.push_back(T(float(2 * random.unit() - 1)));
    }
  }

  // Returns the list sorted by one of its numbers; equal ones stay in their order.
  ListCase sorted_by(std::vector<Index> ListCase::* number) const {
    std::vector<std::size_t> order(row.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto& key = this->*number;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return key[a] < key[b]; });
    ListCase result = *this;
    for (std::size_t i = 0; i < order.size(); ++i) {
      result.row[i] = row[order[i]];
      result.col[i] = col[order[i]];
      result.values[i] = values[order[i]];
    }
    return result;
  }
  ListCase by_row() const { return sorted_by(&ListCase::row); }
  ListCase by_column() const { return sorted_by(&ListCase::col); }

  static std::vector<Index> positions(const std::vector<Index>& sorted, std::int64_t count) {
    std::vector<Index> begin(std::size_t(count) + 1);
    for (const Index n : sorted) ++begin[std::size_t(n) + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    return begin;
  }
  host::Coordinates<T, Index> coordinates() const { return {rows, cols, row, col, values}; }
};

}  // namespace tessera::test
