#pragma once

#include "tessera/partitioner/tile_grid.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::partitioner::internal {

// Throws Error{InvalidArgument} if the matrix has another size or block than the grid. T is float
// or double.
template <class T>
void check_same_shape(const sparse::Csr<T>& matrix, const TileGrid& grid);

}  // namespace tessera::partitioner::internal
