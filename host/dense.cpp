#include "tessera/host/internal/dense.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <type_traits>
#include <utility>

#include "tessera/base/int_math.hpp"
#include "tessera/base/stopwatch.hpp"
#include "tessera/codelets/cast.hpp"
#include "tessera/codelets/transpose.hpp"
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

// Calls body(number of the value, place(its row, its column)) for the values of some block rows.
template <class Place, class Body>
void for_each_value_in_rows(const sparse::Csr<float>& m, Range rows, Place&& place, Body&& body) {
  const BlockShape block = m.block;
  const std::int32_t* const col = m.col.data();
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    const std::int64_t first = m.row_begin[std::size_t(r)], end = m.row_begin[std::size_t(r) + 1];
    if (block.is_element()) {
      for (std::int64_t i = first; i < end; ++i) body(i, place(r, col[i]));
      continue;
    }
    std::int64_t value = first * block.area();
    for (std::int64_t i = first; i < end; ++i)
      for (std::int64_t a = 0; a < block.rows; ++a)
        for (std::int64_t b = 0; b < block.cols; ++b)
          body(value++, place(r * block.rows + a, col[i] * block.cols + b));
  }
}

// Rounds numbers to T, on all threads.
template <class T>
void round_to(std::span<float> numbers, Executor& executor) {
  constexpr std::int64_t kPiece = 1024;
  if constexpr (!std::is_same_v<T, float>)
    executor.for_each(ceil_div(std::ssize(numbers), kPiece), [&](std::int64_t piece) {
      float* const first = numbers.data() + piece * kPiece;
      const std::int64_t count = std::min(kPiece, std::ssize(numbers) - piece * kPiece);
      std::array<T, kPiece> rounded;
      codelets::cast_floats(first, count, rounded.data());
      codelets::widen(rounded.data(), count, first);
    });
}

// True: the values are those of the dense matrix, row by row.
bool has_all_elements(const sparse::Csr<float>& weights) {
  return weights.block.is_element() && weights.blocks() == weights.rows * weights.cols;
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
template <class Body>
void HostDense<T>::for_each_value(const sparse::Csr<float>& m, Body&& body) const {
  constexpr std::int64_t kRows = 64;  // block rows of a piece of work
  const auto run = [&](auto&& place) {
    executor_->for_each(ceil_div(m.block_rows(), kRows), [&](std::int64_t piece) {
      const std::int64_t end = std::min((piece + 1) * kRows, m.block_rows());
      for_each_value_in_rows(m, {piece * kRows, end}, place, body);
    });
  };
  const bool is_transposed = use_ == Use::TransposedProduct;
  if (!own_kernel_ && is_transposed)
    return run([&](std::int64_t row, std::int64_t col) { return col * cols_ + row; });
  if (!own_kernel_)
    return run([&](std::int64_t row, std::int64_t col) { return row * cols_ + col; });
  run([&](std::int64_t row, std::int64_t col) {
    if (is_transposed) std::swap(row, col);
    const std::int64_t square = row / kSide * (cols_ / kSide) + col / kSide;
    return square * kSide * kSide + row % kSide * kSide + col % kSide;
  });
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
void HostDense<T>::set_pattern(const sparse::Csr<float>& weights) {
  const std::int64_t side = own_kernel_ ? kSide : 1;
  rows_ = round_up(weights.rows, side);
  cols_ = round_up(weights.cols, side);
  if (use_ == Use::TransposedProduct) std::swap(rows_, cols_);
  dense_.assign(std::size_t(checked_mul(rows_, cols_, "elements of a dense layer")), 0.0f);
  if (!own_kernel_) return;
  if (use_ != Use::Gradient) return own_product_.set_pattern(all_blocks());
  all_blocks_ = all_blocks();
  all_blocks_.values = {};
}

template <class T>
void HostDense<T>::set_values(const sparse::Csr<float>& weights) {
  const float* const values = weights.values.data();
  float* const dense = dense_.data();
  const auto set = [&](std::int64_t i, std::int64_t at) { dense[at] = values[i]; };
  if (own_kernel_) {  // which rounds
    for_each_value(weights, set);
    return own_product_.set_values(dense_);
  }
  if (!has_all_elements(weights))
    return for_each_value(
        weights, [&](std::int64_t i, std::int64_t at) { dense[at] = float(T(values[i])); });
  if (use_ == Use::Product)
    std::copy_n(values, weights.values.size(), dense);
  else
    codelets::transpose(values, weights.cols, weights.rows, weights.cols, dense, cols_);
  round_to<T>(dense_, *executor_);
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
void HostDense<T>::multiply_gradient(const DotOperands<float>& batch, float* to) {
  const auto& [q_grad, s] = batch;
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
              .c = to + first * cols_,
              .ldc = cols_});
  });
}

template <class T>
bool HostDense<T>::gradient(const sparse::Csr<float>& weights, const DotOperands<T>& batch,
                            std::span<float> gradients, Accumulate accumulate, PassControl& control,
                            HostTimes& times) {
  const Stopwatch all;
  const bool adds = accumulate == Accumulate::Yes;
  // Rows and columns beyond the operands have no gradients of the product, but zeros.
  const bool in_place = !own_kernel_ && !adds && has_all_elements(weights) &&
                        batch.q_grad.rows == weights.rows && batch.s.rows == weights.cols;
  if (own_kernel_) {
    HostTimes inside;  // its `seconds` are part of those that this function measures
    if (!own_gradient_.gradient(all_blocks_, batch, dense_, Accumulate::No, control, inside))
      return false;
    times.copy_seconds += inside.copy_seconds;
    times.kernel_seconds += inside.kernel_seconds;
  } else {
    if (!control.begin("dense product")) return false;
    if (batch.s.cols > 0) {
      const DotOperands<float> floats{as_float(batch.q_grad, in_), as_float(batch.s, in_s_)};
      times.copy_seconds += all.seconds();
      const Stopwatch kernels;
      multiply_gradient(floats, in_place ? gradients.data() : dense_.data());
      times.kernel_seconds += kernels.seconds() * executor_->threads();
    } else {  // the operands may have no memory
      std::fill(dense_.begin(), dense_.end(), 0.0f);
      if (in_place) std::ranges::fill(gradients, 0.0f);
    }
  }
  if (!in_place)
    for_each_value(weights, [&, dense = dense_.data(), to = gradients.data()](auto i, auto at) {
      to[i] = (adds ? to[i] : 0.0f) + dense[at];
    });
  times.seconds += all.seconds();
  return true;
}

template class HostDense<float>;
template class HostDense<Half>;
template class HostDense<BFloat16>;

}  // namespace tessera::host::internal
