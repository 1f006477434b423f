#include "tessera/partitioner/sparsity_data.hpp"

#include <span>
#include <utility>

#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::partitioner {

sparse::Csr<float> create_with_nz_ratio(const TileGrid& grid, double nz_ratio, std::uint64_t seed) {
  check(grid);
  return sparse::random_pattern(grid.size.x, grid.size.y, grid.block, nz_ratio, seed);
}

template <class T>
SparsityDataResult<T> create_sparsity_data(const sparse::Csr<T>& matrix, const TileGrid& grid,
                                           const EncodeOptions& options) {
  check(grid);
  if (matrix.block != grid.block) {
    auto result = create_sparsity_data(sparse::with_block(matrix, grid.block), grid, options);
    if (result.data) result.data->block = matrix.block;
    return result;
  }
  EncodeResult encoded = encode(matrix, grid, options);
  if (encoded.misfit) return {std::nullopt, std::move(encoded.misfit)};
  auto values = to_bucket_order<T, T>(*encoded.buckets, matrix.values);
  return {SparsityData<T>{std::move(*encoded.buckets), std::move(values), matrix.block}, {}};
}

template <class T>
SparsityDataResult<T> create_sparsity_data(const sparse::Csc<T>& matrix, const TileGrid& grid,
                                           const EncodeOptions& options) {
  return create_sparsity_data(sparse::to_csr(matrix), grid, options);
}

template <class T>
SparsityDataResult<T> create_sparsity_data(const sparse::Coo<T>& matrix, const TileGrid& grid,
                                           const EncodeOptions& options) {
  return create_sparsity_data(sparse::to_csr(matrix), grid, options);
}

template <class T>
sparse::Csr<T> to_csr(const SparsityData<T>& data) {
  auto matrix = decode(data.buckets, std::span<const T>(data.values));
  return data.block == matrix.block ? matrix : sparse::with_block(matrix, data.block);
}

template <class T>
sparse::Csc<T> to_csc(const SparsityData<T>& data) {
  return sparse::to_csc(to_csr(data));
}

template <class T>
sparse::Coo<T> to_coo(const SparsityData<T>& data) {
  return sparse::to_coo(to_csr(data));
}

#define TESSERA_FORMAT(T, Format)                                                                \
  template SparsityDataResult<T> create_sparsity_data(const sparse::Format<T>&, const TileGrid&, \
                                                      const EncodeOptions&);
#define TESSERA_TYPE(T)                                   \
  TESSERA_FORMAT(T, Csr)                                  \
  TESSERA_FORMAT(T, Csc)                                  \
  TESSERA_FORMAT(T, Coo)                                  \
  template sparse::Csr<T> to_csr(const SparsityData<T>&); \
  template sparse::Csc<T> to_csc(const SparsityData<T>&); \
  template sparse::Coo<T> to_coo(const SparsityData<T>&);
TESSERA_TYPE(float)
TESSERA_TYPE(double)
#undef TESSERA_TYPE
#undef TESSERA_FORMAT

}  // namespace tessera::partitioner
