#pragma once

#include <cstdint>

#include "tessera/sparse/formats.hpp"
#include "tessera/verify/product_sums.hpp"

namespace tessera::verify::internal {

// Calls visit(row, values) for the rows of a matrix; values(visit_one) calls visit_one(column,
// value) for the stored elements of that row.
template <class Visit>
void for_each_row(const sparse::Csr<float>& matrix, Visit&& visit) {
  const BlockShape block = matrix.block;
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    visit(row, [&, row](auto&& visit_one) {
      const std::int64_t block_row = row / block.rows;
      const std::int64_t first = row % block.rows * block.cols;  // within a block
      for (std::int64_t b = matrix.row_begin[std::size_t(block_row)];
           b < matrix.row_begin[std::size_t(block_row) + 1]; ++b)
        for (std::int64_t j = 0; j < block.cols; ++j)
          visit_one(matrix.col[std::size_t(b)] * block.cols + j,
                    matrix.values[std::size_t(b * block.area() + first + j)]);
    });
}

// Calls visit(row, column, value) for the stored elements of a factor.
template <class Visit>
void for_each_value(const sparse::Csr<float>& matrix, Factor factor, Visit&& visit) {
  for_each_row(matrix, [&](std::int64_t row, auto&& values) {
    values([&](std::int64_t col, float value) {
      if (factor == Factor::Matrix)
        visit(row, col, value);
      else
        visit(col, row, value);
    });
  });
}

}  // namespace tessera::verify::internal
