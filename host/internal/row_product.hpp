#pragma once

#include <cstdint>

#include "tessera/base/dims.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/codelets/place_sums.hpp"
#include "tessera/host/internal/epilogue.hpp"
#include "tessera/host/internal/pass_control.hpp"
#include "tessera/host/internal/product.hpp"
#include "tessera/host/sparse_views.hpp"
#include "tessera/host/times.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::host::internal {

inline constexpr std::int64_t kProductRows = 64;  // that a thread takes at once

// Sets sums[r] for some rows of a matrix of elements by a column without gaps.
template <class T, class Index, class Position>
void column_sums(const CompressedRows<T, Index, Position>& a, Range rows, const T* in,
                 float* sums) {
  codelets::place_sums(codelets::PlaceSums<T, Index, Position>{
      .block = {1, 1},
      .row_begin = a.row_begin.subspan(std::size_t(rows.begin), std::size_t(rows.size()) + 1),
      .col = a.col.data(),
      .values = a.values.data(),
      .in = in,
      .in_stride = 1,
      .out = sums,
      .out_stride = 1,
      .z = 1});
}

// Computes one column of a product of elements from the rows of the matrix as it was given. A row
// is whole there, where cells that are cut for many columns have short pieces of it.
class RowProduct {
 public:
  // The matrix must outlive this object.
  explicit RowProduct(const sparse::Csr<float>& matrix) : matrix_(matrix) {}

  // As HostProduct::product(), for operands of one column.
  [[nodiscard]] bool product(MatrixView<const float> in, MatrixView<float> out,
                             const Epilogue<float>& after, PassControl& control, HostTimes& times,
                             ProductScratch<float>& scratch, Executor& executor) const;

 private:
  // Computes some rows of `out` from an operand without gaps.
  void add_rows(Range rows, const float* in, MatrixView<float> out,
                const Epilogue<float>& after) const;

  const sparse::Csr<float>& matrix_;
};

}  // namespace tessera::host::internal
