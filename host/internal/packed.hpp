#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/codelets/packed_rows.hpp"
#include "tessera/host/internal/epilogue.hpp"
#include "tessera/host/internal/pass_control.hpp"
#include "tessera/host/internal/product.hpp"
#include "tessera/host/times.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::host::internal {

// Computes out = R * in for few columns and weights that no near cache holds, whose time is that of
// reading R: values of 16 bits with packed positions (codelets/packed_rows.hpp), 2.25 to 3 bytes a
// non-zero where cells have 4. A unit of work is some rows; one thread computes it, so the bits do
// not depend on their number. T is Half or BFloat16; R consists of elements.
template <class T>
class HostPacked {
 public:
  // The executor must outlive this object.
  explicit HostPacked(Executor& executor) : executor_(&executor) {}

  // Takes the pattern of a checked matrix. Storage is reused.
  void set_pattern(const sparse::Csr<float>& matrix);

  // Sets the values of the pattern, which are stored in its order. O(values) on all threads;
  // neither allocates nor throws.
  void set_values(std::span<const float> values);

  // Computes `out`, of any number of columns, and applies `after` to it. Adds its times to `times`.
  // Returns false if the caller stopped the pass. Allocates if no call had as many columns.
  [[nodiscard]] bool product(MatrixView<const T> in, MatrixView<T> out, const Epilogue<T>& after,
                             PassControl& control, HostTimes& times) {
    return product({in, out, after, control, times, scratch_, *executor_});
  }

  // Does the same with other scratch memory and another executor. Thread-safe if both differ.
  [[nodiscard]] bool product(const ProductCall<T>& call) const;

  std::int64_t bytes() const;  // no scratch

 private:
  using Scratch = ProductScratch<T>;
  void set_masks(const sparse::Csr<float>& matrix);
  void set_offsets(const sparse::Csr<float>& matrix);
  void read_panel(MatrixView<const T> in, Scratch& scratch) const;
  void run_panel(Range cols, const ProductCall<T>& call) const;
  void run_unit(Range rows, bool is_finite, Scratch& scratch, std::int64_t width,
                float* sums) const;

  Executor* executor_;
  codelets::PackedPositions positions_ = codelets::PackedPositions::Bits;
  std::int64_t rows_ = 0, cols_ = 0, stride_ = 0;  // stride_: cols_ in whole segments
  std::vector<std::int64_t> row_begin_;
  AlignedVector<T> values_;                       // in the pattern's order, and padding
  AlignedVector<std::uint32_t> masks_;            // for Bits
  AlignedVector<std::uint8_t> counts_, offsets_;  // for Bytes
  Scratch scratch_;
};

}  // namespace tessera::host::internal
