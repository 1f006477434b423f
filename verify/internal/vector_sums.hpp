#pragma once

#include <cstdint>

namespace tessera::verify::internal {

// Rows of numbers with a weight each, and one sum for every column. T is float, Half or BFloat16.
template <class T>
struct WeightedRows {
  const T* first = nullptr;  // element (r, c) is first[r * stride + c]
  std::int64_t rows = 0, cols = 0, stride = 0;
  const double* weights = nullptr;        // [rows]
  const float* square_weights = nullptr;  // [rows], of the squares
};

// Adds to sums[c] the sum over rows of weight * value, in double, and to squares[c] the sum of
// square weight * value^2, in float. Vector instructions multiply and add with one rounding, so the
// last bit depends on the instruction set; sums of whole numbers below 2^53 are exact on all.
template <class T>
void add_columns(const WeightedRows<T>& rows, double* sums, float* squares);

// The sum of the products of two rows, and the sum of their squares.
struct RowProduct {
  double sum = 0, squares = 0;
};

// Multiplies two rows of `count` numbers. Products are added up in float, in several partial sums,
// so sums of whole numbers below 2^24 are exact.
template <class T>
RowProduct multiply_rows(const T* a, const T* b, std::int64_t count);

// Returns the sum of the products of two rows, added up in double.
double dot(const double* a, const double* b, std::int64_t count);

}  // namespace tessera::verify::internal
