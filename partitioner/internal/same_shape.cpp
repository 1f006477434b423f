#include "tessera/partitioner/internal/same_shape.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"

namespace tessera::partitioner::internal {

template <class T>
void check_same_shape(const sparse::Csr<T>& matrix, const TileGrid& grid) {
  if (matrix.rows == grid.size.x && matrix.cols == grid.size.y && matrix.block == grid.block)
    return;
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format("encode: the matrix is {} x {} in blocks of {} x {}, the grid is for {} x "
                  "{} in blocks of {} x {}; re-block the matrix or plan for it",
                  matrix.rows, matrix.cols, matrix.block.rows, matrix.block.cols, grid.size.x,
                  grid.size.y, grid.block.rows, grid.block.cols));
}

template void check_same_shape(const sparse::Csr<float>&, const TileGrid&);
template void check_same_shape(const sparse::Csr<double>&, const TileGrid&);

}  // namespace tessera::partitioner::internal
