#pragma once

#include <cstdint>

#include "tessera/base/dims.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/codelets/place_sums.hpp"
#include "tessera/host/internal/product_call.hpp"
#include "tessera/host/sparse_views.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::host::internal {

inline constexpr std::int64_t kProductRows = 64;  // that a thread takes at once

// Sets sums[r] for the rows of some block rows of a matrix by a column without gaps.
template <class T, class Index, class Position>
void column_sums(const CompressedRows<T, Index, Position>& a, Range block_rows, const T* in,
                 float* sums) {
  codelets::place_sums(codelets::PlaceSums<T, Index, Position>{
      .block = a.block,
      .row_begin =
          a.row_begin.subspan(std::size_t(block_rows.begin), std::size_t(block_rows.size()) + 1),
      .col = a.col.data(),
      .values = a.values.data(),
      .in = in,
      .in_stride = 1,
      .out = sums,
      .out_stride = 1,
      .z = 1});
}

// Computes a product column by column from the rows of the matrix as it was given. A row is whole
// there, where cells that are cut for many columns have short pieces of it, and the columns of a
// block are lanes.
class RowProduct {
 public:
  // True: blocks are added up in lanes, and are no higher than what a thread takes at once.
  static bool takes(BlockShape block);

  // True: with the batch first, the products of each sample take less time than a copy of the
  // inputs that is transposed, because that costs as much as three values an input. Every sample
  // reads and writes all rows, too. Zen 5, 10 x 1024 at 0.01, 16, 100 and 512 samples: 0.46, 0.45
  // and 0.60 of the time.
  static bool takes_samples(const sparse::Csr<float>& matrix, MatrixView<const float> in,
                            MatrixView<const float> out);

  // The matrix must outlive this object.
  explicit RowProduct(const sparse::Csr<float>& matrix) : matrix_(matrix) {}

  // As HostProduct::product(), for operands of one column or with the batch first.
  [[nodiscard]] bool product(const ProductCall<float>& call) const;

 private:
  // Computes some block rows of a column of the result from one of the operand, which has no gaps.
  void add_rows(Range block_rows, const float* in, std::int64_t column,
                const ProductCall<float>& call) const;

  // Computes some columns. Each column of the operand begins at `first_column` + its
  // number * in.col_stride.
  void run_columns(Range columns, const float* first_column, const ProductCall<float>& call) const;

  // Returns the operand's first column without gaps; samples have none.
  const float* first_column(const ProductCall<float>& call) const;

  const sparse::Csr<float>& matrix_;
};

}  // namespace tessera::host::internal
