#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/base/error.hpp"  // the constructors throw Error

namespace tessera {

// A strided view of a matrix that someone else owns: element (r, c) is
// data[r * row_stride + c * col_stride]. Strides are in elements and may be any number, so the
// transpose of a view is a view too. A view is cheap to copy and as thread-safe as the memory it
// refers to. Indices are not checked.
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

  // Returns the view of rows r and columns c, which must be inside this view.
  MatrixView sub(Range r, Range c) const {
    return {data + r.begin * row_stride + c.begin * col_stride, r.size(), c.size(), row_stride,
            col_stride};
  }
  operator MatrixView<const T>() const
    requires(!std::is_const_v<T>)
  {
    return {data, rows, cols, row_stride, col_stride};
  }
};

namespace internal {
// Returns rows * cols. Throws the errors of the constructor of Matrix.
std::size_t matrix_elements(std::int64_t rows, std::int64_t cols);
}  // namespace internal

// A matrix that owns its elements: row-major, without gaps, zero at first. The elements begin on a
// cache line: if rows are whole lines, a vector load never crosses a line boundary (HostLayer at
// z 1024: twice the rate). The constructor throws Error{InvalidArgument} if a size is negative and
// Error{LimitExceeded} if rows * cols does not fit in 64 bits.
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
