#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/codelets/kernel.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/internal/matrix.hpp"
#include "tessera/host/internal/product_call.hpp"
#include "tessera/host/internal/transpose.hpp"

namespace tessera::host::internal {

// Computes out = R * in on this computer. A unit of work is a block row of cells and a panel of
// columns. One thread adds up a unit's part of the output, cell after cell, so the bits do not
// depend on the number of threads. A step of the pass is one panel; threads take its units, the
// heaviest first. T is float, Half or BFloat16; sums are float.
//
// If a product of 16-bit numbers takes longer than one of floats (widens() in cells.hpp), this
// class also keeps its values as floats, and widens each panel of the operand as it copies it. The
// bits of results stay: every 16-bit number is a float, and neither the cells nor the order of sums
// depends on it.
template <class T>
class HostProduct {
 public:
  // `blocks_in_row` is that of HostProblem.
  HostProduct(std::int64_t z, const host::HostCpu& cpu, Executor& executor,
              std::optional<double> blocks_in_row = {})
      : z_(z), cpu_(cpu), executor_(&executor), blocks_in_row_(blocks_in_row) {}

  void set_pattern(const sparse::Csr<float>& matrix);

  // The same for the transpose of a matrix whose values set_values will be given.
  void set_pattern(const TransposedPattern& transpose);

  // Returns the prepared change to a pattern of so many blocks, or nothing if it needs other cells.
  // `edits` are those of the matrix or of the transpose, as this object has it.
  std::optional<partitioner::CellEdits> prepare(std::span<const partitioner::BlockEdit> edits,
                                                std::vector<std::int32_t> shift,
                                                partitioner::Numbering numbering,
                                                std::int64_t blocks);

  // Makes that change. Blocks that stay keep their values, and added ones are 0; widened values are
  // all written again. Allocates nothing.
  void apply(partitioner::CellEdits& edits) noexcept {
    matrix_.apply(edits, std::span<T>(values_), *executor_);
    if (is_wide())
      executor_->for_each(matrix_.grid().buckets(),
                          [this](std::int64_t bucket) { widen_bucket(bucket); });
  }

  // Sets the values of the pattern, in its order. O(values) on all threads; neither allocates nor
  // throws.
  void set_values(std::span<const float> values);

  // Sets on this thread the values of the cells in these rows of R (set_pattern of a matrix), or
  // those of the cells in these columns of the transpose. `values` are all of the pattern's.
  void set_values_of_row(std::int64_t x, std::span<const float> values);
  void set_values_of_column(std::int64_t y, std::span<const float> values);
  std::int64_t cell_rows() const { return matrix_.grid().splits.x; }
  std::int64_t cell_columns() const { return matrix_.grid().splits.y; }
  Range rows_of(std::int64_t x) const { return matrix_.x_range(x); }
  Range columns_of(std::int64_t y) const { return matrix_.y_range(y); }

  // Computes `out`, of any number of columns, and applies `after` to it. Adds its times to `times`.
  // Returns false if the caller stopped the pass. Allocates if no call since the last change of
  // pattern had as many columns, the same strides and alignment.
  [[nodiscard]] bool product(MatrixView<const T> in, MatrixView<T> out, const Epilogue<T>& after,
                             PassControl& control, HostTimes& times) {
    return product({in, out, after, control, times, scratch_, *executor_});
  }

  // Does the same with other scratch memory and another executor. Thread-safe if both differ.
  [[nodiscard]] bool product(const ProductCall<T>& call) const;

  const partitioner::Buckets& buckets() const { return matrix_.buckets(); }
  std::int64_t bytes() const {  // no scratch
    return matrix_.bytes() + list_bytes(values_) + list_bytes(wide_values_);
  }

 private:
  void fill_bucket(std::int64_t bucket, std::span<const float> values);
  void widen_bucket(std::int64_t bucket) noexcept;
  bool is_wide() const { return !wide_values_.empty(); }
  const void* values_of(std::int64_t bucket, bool wide) const;
  // Panels is HostPanels<T> or HostPanels<float, T>.
  template <class Panels>
  bool run_panels(Panels& panels, const ProductCall<T>& call) const;
  template <class Panels>
  void run_units(const Panels& panels, std::int64_t panel, const ProductCall<T>& call) const;
  template <class Panels>
  void run_unit(const Panels& panels, std::int64_t x, std::int64_t panel,
                const ProductCall<T>& call, std::int64_t thread) const;
  template <class Panels>
  void add_cells(std::int64_t x, std::int64_t panel, const Panels& in, codelets::Result result,
                 bool streams) const;

  // Returns true if results that are written where they belong need not stay in caches.
  bool streams_results(MatrixView<const T> in, MatrixView<T> out) const;

  std::int64_t z_;
  host::HostCpu cpu_;
  Executor* executor_;
  std::optional<double> blocks_in_row_;
  HostProblem problem_;
  HostCells cells_;
  HostMatrix matrix_;
  codelets::Kernel kernel_ = nullptr;
  codelets::Kernel narrow_kernel_ = nullptr;  // of blocks that are wide, for calls of many columns
  AlignedVector<T> values_;                   // [buckets][values_per_bucket]
  AlignedVector<float> wide_values_;          // the same, or empty
  bool is_transposed_ = false;  // true: blocks of `values` are those of the transpose's transpose
  ProductScratch<T> scratch_;
};

}  // namespace tessera::host::internal
