#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/base/error.hpp"  // what the constructors throw

namespace tessera {

// A strided look at somebody else's matrix: element (r, c) is data[r * row_stride + c *
// col_stride]. Strides are in elements and may be any number, so a transpose is a view too. Cheap
// to copy; owns nothing; as thread-safe as the memory it looks at. Indices are not checked.
template <class T>
struct MatrixView {
  T* data = nullptr;
  std::int64_t rows = 0, cols = 0;
  std::int64_t row_stride = 0, col_stride = 1;

  T& operator()(std::int64_t r, std::int64_t c) const {
    return data[r * row_stride + c * col_stride];
  }
  T* row(std::int64_t r) const { return data + r * row_stride; }
  bool rows_are_contiguous() const { return col_stride == 1 || cols <= 1; }
  MatrixView transposed() const { return {data, cols, rows, col_stride, row_stride}; }
  // Rows and columns must lie inside the view.
  MatrixView sub(Range r, Range c) const {
    return {data + r.begin * row_stride + c.begin * col_stride, r.size(), c.size(), row_stride,
            col_stride};
  }
  operator MatrixView<const T>() const requires(!std::is_const_v<T>) {
    return {data, rows, cols, row_stride, col_stride};
  }
};

namespace internal {
// rows * cols, with the errors of Matrix.
std::size_t matrix_elements(std::int64_t rows, std::int64_t cols);
}  // namespace internal

// A matrix that owns its elements: row-major, no gaps, zero at first, beginning on a cache line:
// where rows are whole lines, vector loads never straddle two (HostLayer at z 1024: twice the
// rate). Error{InvalidArgument} when
// a size is negative, Error{LimitExceeded} when rows * cols leaves 64 bits.
template <class T>
class Matrix {
 public:
  Matrix() = default;
  Matrix(std::int64_t rows, std::int64_t cols)
      : rows_(rows), cols_(cols), elements_(internal::matrix_elements(rows, cols)) {}

  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  T& operator()(std::int64_t r, std::int64_t c) { return elements_[std::size_t(r * cols_ + c)]; }
  const T& operator()(std::int64_t r, std::int64_t c) const {
    return elements_[std::size_t(r * cols_ + c)];
  }
  AlignedVector<T>& elements() { return elements_; }
  const AlignedVector<T>& elements() const { return elements_; }
  MatrixView<T> view() { return {elements_.data(), rows_, cols_, cols_, 1}; }
  MatrixView<const T> view() const { return {elements_.data(), rows_, cols_, cols_, 1}; }
  friend bool operator==(const Matrix&, const Matrix&) = default;

 private:
  std::int64_t rows_ = 0, cols_ = 0;
  AlignedVector<T> elements_;
};

}  // namespace tessera
