#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/device/engine.hpp"

namespace tessera::runtime::internal {

// Copies a matrix to one of the same size.
template <class From, class To>
void copy_rows(MatrixView<From> from, MatrixView<To> to) {
  const bool contiguous = from.rows_are_contiguous() && to.rows_are_contiguous();
  for (std::int64_t r = 0; r < from.rows; ++r) {
    if (contiguous)
      std::copy_n(from.row(r), from.cols, to.row(r));
    else
      for (std::int64_t c = 0; c < from.cols; ++c) to(r, c) = from(r, c);
  }
}

// An operand of all groups, [groups * rows][cols], in the size that programs read. It is the
// caller's memory if that has this size and contiguous rows, else a copy in which every group is
// padded with zeros.
// T is const for operands that are only read.
template <class T>
class Padded {
 public:
  // A copy is stored in `storage`, which must outlive this object.
  Padded(MatrixView<T> view, std::int64_t groups, std::int64_t rows, std::int64_t cols,
         std::vector<std::byte>& storage)
      : view_(view), groups_(groups) {
    const bool fits = view.rows == groups * rows && view.cols == cols;
    if (fits && view.rows_are_contiguous() && view.row_stride >= cols) return;
    storage.resize(std::size_t(groups * rows * cols) * sizeof(T));
    copy_ = {reinterpret_cast<Plain*>(storage.data()), groups * rows, cols, cols, 1};
  }

  // Fills the copy, if there is one.
  void read() {
    if (!copy_) return;
    for (std::int64_t g = 0; g < groups_; ++g) copy_rows(given(g), copied(g));
    const std::int64_t rows = copy_->rows / groups_, filled = view_.rows / groups_;
    for (std::int64_t r = 0; r < copy_->rows; ++r) {
      const std::int64_t cols = r % rows < filled ? view_.cols : 0;
      std::fill_n(copy_->row(r) + cols, copy_->cols - cols, Plain());
    }
  }

  // Copies the results that a program has written to the copy, if there is one, to the caller.
  void write_back() {
    if (copy_)
      for (std::int64_t g = 0; g < groups_; ++g) copy_rows(copied(g), given(g));
  }

  device::ByteRows bytes() { return copy_ ? bytes_of(*copy_) : bytes_of(view_); }

 private:
  using Plain = std::remove_const_t<T>;

  MatrixView<T> given(std::int64_t g) const {
    const std::int64_t rows = view_.rows / groups_;
    return view_.sub({g * rows, (g + 1) * rows}, {0, view_.cols});
  }
  // The part of a group's copy that is not padding.
  MatrixView<Plain> copied(std::int64_t g) {
    const std::int64_t begin = g * (copy_->rows / groups_);
    return copy_->sub({begin, begin + view_.rows / groups_}, {0, view_.cols});
  }
  template <class U>
  static device::ByteRows bytes_of(MatrixView<U> view) {
    // Casting const away is safe: programs only read the operands that are const here.
    return {reinterpret_cast<std::byte*>(const_cast<Plain*>(view.data)), view.rows,
            view.cols * std::int64_t(sizeof(U)), view.row_stride * std::int64_t(sizeof(U))};
  }

  MatrixView<T> view_;
  std::int64_t groups_;
  std::optional<MatrixView<Plain>> copy_;
};

// Returns an operand that is only read with contiguous rows: in place, or copied to `storage`.
template <class T>
device::ByteRows contiguous(MatrixView<const T> view, std::vector<std::byte>& storage) {
  Padded<const T> rows(view, 1, view.rows, view.cols, storage);
  rows.read();
  return rows.bytes();
}

}  // namespace tessera::runtime::internal
