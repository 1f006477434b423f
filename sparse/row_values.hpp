#pragma once

#include <cstddef>
#include <cstdint>

#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// Calls visit(index of the value, column) for the stored elements of a row.
template <class T, class Visit>
void for_each_in_row(const Csr<T>& matrix, std::int64_t row, Visit&& visit) {
  const BlockShape block = matrix.block;
  const auto block_row = std::size_t(row / block.rows);
  for (std::int64_t b = matrix.row_begin[block_row]; b < matrix.row_begin[block_row + 1]; ++b)
    for (std::int64_t j = 0; j < block.cols; ++j)
      visit(std::size_t(b * block.area() + row % block.rows * block.cols + j),
            matrix.col[std::size_t(b)] * block.cols + j);
}

}  // namespace tessera::sparse
