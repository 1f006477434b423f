#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "tessera/base/matrix.hpp"
#include "tessera/host/internal/strided.hpp"

namespace tessera::host::internal {

// The work of one group on the complete results of a product (pass_options.hpp). T is the type of
// the results; they are still floats here.
template <class T>
struct Epilogue {
  std::span<const float> bias = {};  // of each row, or empty
  bool relu = false;
  MatrixView<const T> where_positive = {};  // without data: everywhere

  bool empty() const { return bias.empty() && !relu && where_positive.data == nullptr; }

  // Changes rows of contiguous sums that are these rows and columns of the results.
  void apply(float* sums, std::int64_t stride, Range rows, Range cols) const {
    for (std::int64_t r = rows.begin; r < rows.end && !bias.empty(); ++r)
      add_bias(sums + (r - rows.begin) * stride, cols.size(), bias[std::size_t(r)]);
    for (std::int64_t r = 0; r < rows.size() && relu; ++r)
      for (float *v = sums + r * stride, *end = v + cols.size(); v < end; ++v)
        *v = float(T(*v)) < 0 ? 0 : *v;  // a separate loop would find -0 for tiny negative sums
    if (where_positive.data != nullptr) keep_where_positive(sums, stride, rows, cols);
  }

 private:
  // A separate loop would find sums that were rounded to T.
  static void add_bias(float* sums, std::int64_t count, float bias) {
    for (std::int64_t i = 0; i < count; ++i) sums[i] = float(T(sums[i])) + bias;
  }

  // The matrix is read in parts, because with the batch first its rows are not contiguous.
  void keep_where_positive(float* sums, std::int64_t stride, Range rows, Range cols) const {
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
