#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tessera/arrays/row_sparse/cast_storage.hpp"
#include "tessera/base/random.hpp"

namespace tessera::test {

using Dimensions = std::vector<std::int64_t>;
using Rows = std::vector<std::int64_t>;

template <class T = float>
arrays::DenseArray<T> dense(Dimensions shape, std::vector<T> values) {
  return {std::move(shape), std::move(values)};
}
template <class T = float>
arrays::RowSparse<T> row_sparse(Dimensions shape, Rows rows, std::vector<T> values) {
  return {std::move(shape), std::move(rows), std::move(values)};
}
template <class T = float>
arrays::DenseArray<T> ones(std::int64_t rows, std::int64_t cols) {
  return {{rows, cols}, std::vector<T>(std::size_t(rows * cols), T(1))};
}

// About `density` of the rows hold quarters in [-4, 4), zeros among them.
template <class T>
arrays::DenseArray<T> random_rows(Dimensions shape, double density, Random& random) {
  std::int64_t size = 1;
  for (std::size_t d = 1; d < shape.size(); ++d) size *= shape[d];
  arrays::DenseArray<T> result{shape, {}};
  for (std::int64_t r = 0; r < shape[0]; ++r) {
    const bool is_stored = random.unit() < density;
    for (std::int64_t i = 0; i < size; ++i)
      result.values.push_back(is_stored ? T(random.below(32) - 16) / T(4) : T(0));
  }
  return result;
}

}  // namespace tessera::test
