#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "tessera/base/matrix.hpp"
#include "tessera/codelets/row_ends.hpp"
#include "tessera/host/internal/strided.hpp"
#include "tessera/host/pass_options.hpp"

namespace tessera::host::internal {

// The work of one group on the complete results of a product (pass_options.hpp, spmm.hpp). T is the
// type of the results; they are still floats here.
template <class T>
struct Epilogue {
  float alpha = 1, beta = 0;         // alpha * sum + beta * before
  MatrixView<const T> before = {};   // the results before the call; read unless beta is 0
  std::span<const float> bias = {};  // of each row, or empty
  Activation activation = Activation::None;
  MatrixView<const T> where_positive = {};  // without data: everywhere

  bool empty() const {
    return !scales() && bias.empty() && activation == Activation::None &&
           where_positive.data == nullptr;
  }
  bool scales() const { return alpha != 1 || beta != 0; }

  // Changes rows of contiguous sums that are these rows and columns of the results.
  void apply(float* sums, std::int64_t stride, Range rows, Range cols) const {
    if (scales()) scale(sums, stride, rows, cols);
    if constexpr (std::is_same_v<T, float>)
      codelets::add_bias_and_clip({sums, stride, rows.size(), cols.size()},
                                  bias.empty() ? nullptr : bias.data() + rows.begin,
                                  activation == Activation::Relu);
    else
      round_and_add_bias(sums, stride, rows, cols.size());
    if (!std::is_same_v<T, float> || activation == Activation::Gelu)
      for (std::int64_t r = 0; r < rows.size(); ++r) activate(sums + r * stride, cols.size());
    if (where_positive.data != nullptr) keep_where_positive(sums, stride, rows, cols);
  }

 private:
  // A separate loop would find sums that were rounded to T.
  void round_and_add_bias(float* sums, std::int64_t stride, Range rows, std::int64_t count) const {
    for (std::int64_t r = rows.begin; r < rows.end && !bias.empty(); ++r, sums += stride)
      for (std::int64_t i = 0; i < count; ++i) sums[i] = float(T(sums[i])) + bias[std::size_t(r)];
  }

  void scale(float* sums, std::int64_t stride, Range rows, Range cols) const {
    for (std::int64_t r = rows.begin; r < rows.end; ++r, sums += stride) {
      for (std::int64_t i = 0; i < cols.size(); ++i) sums[i] *= alpha;
      for (std::int64_t i = 0; i < cols.size() && beta != 0; ++i)
        sums[i] += beta * float(before(r, cols.begin + i));
    }
  }

  // Activations follow the rounding, too.
  void activate(float* sums, std::int64_t count) const {
    if (activation == Activation::None) return;
    for (std::int64_t i = 0; !std::is_same_v<T, float> && i < count; ++i)
      sums[i] = float(T(sums[i]));
    host::activate(activation, {sums, std::size_t(count)});
  }

  // With the batch first the rows of the matrix are not contiguous, and it is copied in parts.
  void keep_where_positive(float* sums, std::int64_t stride, Range rows, Range cols) const {
    if constexpr (std::is_same_v<T, float>)
      if (where_positive.rows_are_contiguous())
        return codelets::keep_where_positive({sums, stride, rows.size(), cols.size()},
                                             where_positive.row(rows.begin) + cols.begin,
                                             where_positive.row_stride);
    constexpr std::int64_t kRows = 32, kColumns = 64;
    std::array<T, kRows * kColumns> part;
    for (std::int64_t first = 0; first < rows.size(); first += kRows)
      for (std::int64_t c = 0; c < cols.size(); c += kColumns) {
        const std::int64_t height = std::min(kRows, rows.size() - first);
        const std::int64_t width = std::min(kColumns, cols.size() - c);
        const Range r{rows.begin + first, rows.begin + first + height};
        copy_to_rows<T>(where_positive.sub(r, {cols.begin + c, cols.begin + c + width}),
                        part.data(), kColumns);
        for (std::int64_t i = 0; i < height; ++i)
          keep_where_positive(part.data() + i * kColumns, width, sums + (first + i) * stride + c);
      }
  }

  // Half of the numbers behind a ReLU are 0, which no branch predicts: without one, on vectors, a
  // training step of 784-1024-10 takes half the time.
  static void keep_where_positive(const T* output, std::int64_t count, float* sums) {
    for (std::int64_t i = 0; i < count; ++i) sums[i] = float(output[i]) > 0 ? sums[i] : 0.0f;
  }
};

}  // namespace tessera::host::internal
