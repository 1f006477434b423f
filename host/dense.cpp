#include "tessera/host/internal/dense.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "tessera/base/int_math.hpp"
#include "tessera/base/stopwatch.hpp"
#include "tessera/host/internal/dense_library.hpp"
#include "tessera/host/internal/strided.hpp"

namespace tessera::host::internal {
namespace {

constexpr std::int64_t kSide = 16;    // side of the blocks that our own kernel is fastest with
constexpr std::int64_t kSlice = 256;  // rows: enough to make up for the library's own packing

constexpr std::int64_t kCopiedRows = 64;  // rows that a thread copies at once

// Sets contiguous rows of floats to the rows of `from`.
template <class T>
void copy_as_float(MatrixView<const T> from, float* to) {
  if constexpr (std::is_same_v<T, float>) {
    copy_to_rows(from, to, from.cols);
  } else {
    for (std::int64_t r = 0; r < from.rows; ++r)
      for (std::int64_t c = 0; c < from.cols; ++c) *to++ = float(from(r, c));
  }
}

// True: the library can read the operand in place, because each row is contiguous and rows do not
// overlap.
template <class T>
bool is_plain(MatrixView<T> view) {
  return view.rows_are_contiguous() && view.row_stride >= std::max<std::int64_t>(view.cols, 1);
}

}  // namespace

template <class T>
HostDense<T>::HostDense(Use use, std::int64_t z, const host::HostCpu& cpu, Executor& executor,
                        bool own_kernel)
    : use_(use),
      executor_(&executor),
      own_kernel_(own_kernel || dense_library() == nullptr),
      own_product_(z, cpu, executor),
      own_gradient_(z, cpu, executor) {}

template <class T>
std::int64_t HostDense<T>::place(std::int64_t row, std::int64_t col) const {
  if (!own_kernel_) return row * cols_ + col;
  const std::int64_t block = row / kSide * (cols_ / kSide) + col / kSide;
  return block * kSide * kSide + row % kSide * kSide + col % kSide;
}

template <class T>
void HostDense<T>::find_places(const sparse::Csr<float>& m) {
  at_.clear();
  at_.reserve(m.values.size());
  for (std::int64_t r = 0; r < m.block_rows(); ++r)
    for (auto i = m.row_begin[std::size_t(r)]; i < m.row_begin[std::size_t(r) + 1]; ++i)
      for (std::int64_t a = 0; a < m.block.rows; ++a)
        for (std::int64_t b = 0; b < m.block.cols; ++b)
          at_.push_back(place(r * m.block.rows + a, m.col[std::size_t(i)] * m.block.cols + b));
}

template <class T>
sparse::Csr<float> HostDense<T>::all_blocks() const {
  sparse::Csr<float> all{rows_, cols_, {kSide, kSide}, {0}, {}, {}};
  for (std::int64_t r = 0; r < rows_ / kSide; ++r) {
    for (std::int32_t c = 0; c < cols_ / kSide; ++c) all.col.push_back(c);
    all.row_begin.push_back(std::ssize(all.col));
  }
  all.values.resize(all.col.size() * kSide * kSide);
  return all;
}

template <class T>
void HostDense<T>::set_pattern(const sparse::Csr<float>& matrix) {
  rows_ = round_up(matrix.rows, kSide);
  cols_ = round_up(matrix.cols, kSide);
  find_places(matrix);
  dense_.assign(std::size_t(checked_mul(rows_, cols_, "elements of a dense layer")), 0.0f);
  if (!own_kernel_) return;
  if (use_ == Use::Product) return own_product_.set_pattern(all_blocks());
  all_blocks_ = all_blocks();
  all_blocks_.values = {};
}

template <class T>
void HostDense<T>::set_pattern(const TransposedPattern& transpose) {
  set_pattern(transpose.matrix);
  const BlockShape block = transpose.matrix.block;
  std::vector<std::int64_t> at(at_.size());
  std::size_t next = 0;
  for (const std::int32_t given : transpose.block_of)
    for (std::int64_t r = 0; r < block.rows; ++r)
      for (std::int64_t c = 0; c < block.cols; ++c)
        at[std::size_t(given * block.area() + c * block.rows + r)] = at_[next++];
  at_ = std::move(at);
}

template <class T>
void HostDense<T>::set_values(std::span<const float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) dense_[std::size_t(at_[i])] = float(T(values[i]));
  if (own_kernel_) own_product_.set_values(dense_);
}

template <class T>
MatrixView<const float> HostDense<T>::as_float(MatrixView<const T> from,
                                               AlignedVector<float>& copy) {
  if constexpr (std::is_same_v<T, float>)
    if (is_plain(from)) return from;
  grow(copy, std::size_t(from.rows * from.cols));
  executor_->for_each(ceil_div(from.rows, kCopiedRows), [&](std::int64_t i) {
    const Range rows{i * kCopiedRows, std::min((i + 1) * kCopiedRows, from.rows)};
    copy_as_float(from.sub(rows, {0, from.cols}), copy.data() + rows.begin * from.cols);
  });
  return {copy.data(), from.rows, from.cols, from.cols, 1};
}

template <class T>
void HostDense<T>::multiply_slices(MatrixView<const float> in, MatrixView<float> out,
                                   const Epilogue<T>& after) {
  executor_->for_each(ceil_div(out.rows, kSlice), [&](std::int64_t slice) {
    const std::int64_t first = slice * kSlice;
    multiply({.m = std::min(kSlice, out.rows - first),
              .n = in.cols,
              .k = in.rows,
              .a = dense_.data() + first * cols_,
              .lda = cols_,
              .b = in.data,
              .ldb = in.row_stride,
              .b_is_transposed = false,
              .c = out.row(first),
              .ldc = out.row_stride});
    const Range rows{first, std::min(first + kSlice, out.rows)};
    if (!after.empty()) after.apply(out.row(first), out.row_stride, rows, {0, out.cols});
  });
}

template <class T>
void HostDense<T>::library_product(MatrixView<const T> in, MatrixView<T> out,
                                   const Epilogue<T>& after, HostTimes& times) {
  const Stopwatch copies;
  const MatrixView<const float> in_float = as_float(in, in_);
  times.copy_seconds += copies.seconds();
  const Stopwatch kernels;
  bool in_place = false;
  if constexpr (std::is_same_v<T, float>)
    if (in_place = is_plain(out); in_place) multiply_slices(in_float, out, after);
  if (!in_place) {
    grow(out_, std::size_t(out.rows * out.cols));
    multiply_slices(in_float, {out_.data(), out.rows, out.cols, out.cols, 1}, after);
  }
  times.kernel_seconds += kernels.seconds() * executor_->threads();
  if (!in_place)
    executor_->for_each(ceil_div(out.rows, kCopiedRows), [&](std::int64_t i) {
      const Range rows{i * kCopiedRows, std::min((i + 1) * kCopiedRows, out.rows)};
      copy_from_rows<T>(out_.data() + rows.begin * out.cols, out.cols,
                        out.sub(rows, {0, out.cols}));
    });
}

template <class T>
bool HostDense<T>::product(MatrixView<const T> in, MatrixView<T> out, const Epilogue<T>& after,
                           PassControl& control, HostTimes& times) {
  if (own_kernel_) return own_product_.product(in, out, after, control, times);
  if (!control.begin("dense product")) return false;
  const Stopwatch all;
  if (in.cols > 0) library_product(in, out, after, times);
  times.seconds += all.seconds();
  return true;
}

template <class T>
void HostDense<T>::multiply_gradient(MatrixView<const float> q_grad, MatrixView<const float> s) {
  executor_->for_each(ceil_div(q_grad.rows, kSlice), [&](std::int64_t slice) {
    const std::int64_t first = slice * kSlice;
    multiply({.m = std::min(kSlice, q_grad.rows - first),
              .n = s.rows,
              .k = q_grad.cols,
              .a = q_grad.row(first),
              .lda = q_grad.row_stride,
              .b = s.data,
              .ldb = s.row_stride,
              .b_is_transposed = true,
              .c = dense_.data() + first * cols_,
              .ldc = cols_});
  });
}

template <class T>
bool HostDense<T>::gradient(MatrixView<const T> q_grad, MatrixView<const T> s,
                            std::span<float> gradients, Accumulate accumulate, PassControl& control,
                            HostTimes& times) {
  const Stopwatch all;
  if (own_kernel_) {
    HostTimes inside;  // its `seconds` are part of those that this function measures
    if (!own_gradient_.gradient(all_blocks_, {q_grad, s}, dense_, Accumulate::No, control, inside))
      return false;
    times.copy_seconds += inside.copy_seconds;
    times.kernel_seconds += inside.kernel_seconds;
  } else {
    if (!control.begin("dense product")) return false;
    if (s.cols > 0) {
      const MatrixView<const float> q = as_float(q_grad, in_), in_s = as_float(s, in_s_);
      times.copy_seconds += all.seconds();
      const Stopwatch kernels;
      multiply_gradient(q, in_s);
      times.kernel_seconds += kernels.seconds() * executor_->threads();
    } else {  // the operands may have no memory
      std::fill(dense_.begin(), dense_.end(), 0.0f);
    }
  }
  // Rows and columns beyond the operands keep their initial zeros.
  const bool adds = accumulate == Accumulate::Yes;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    gradients[i] = (adds ? gradients[i] : 0.0f) + dense_[std::size_t(at_[i])];
  times.seconds += all.seconds();
  return true;
}

template class HostDense<float>;
template class HostDense<Half>;
template class HostDense<BFloat16>;

}  // namespace tessera::host::internal
