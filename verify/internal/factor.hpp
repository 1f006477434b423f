#pragma once

#include <cstdint>

#include "tessera/sparse/row_values.hpp"
#include "tessera/verify/product_sums.hpp"

namespace tessera::verify::internal {

// Calls visit(row, values) for the rows of a matrix; values(visit_one) calls visit_one(column,
// value) for the stored elements of that row.
template <class Visit>
void for_each_row(const sparse::Csr<float>& matrix, Visit&& visit) {
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    visit(row, [&, row](auto&& visit_one) {
      sparse::for_each_in_row(matrix, row, [&](std::size_t value, std::int64_t col) {
        visit_one(col, matrix.values[value]);
      });
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
