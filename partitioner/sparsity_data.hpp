#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/partitioner/buckets.hpp"

namespace tessera::partitioner {

// SparsityData is a matrix of any format as the machine takes it: PopSparse's pair of
// meta-information and values. It is a plain value. T is float or double.
template <class T>
struct SparsityData {
  Buckets buckets;
  std::vector<T> values;  // [buckets][values_per_bucket], in bucket order
  BlockShape block;       // block of the given matrix, which the inverse returns
};

// The result of create_sparsity_data(): either data or a misfit.
template <class T>
struct SparsityDataResult {
  std::optional<SparsityData<T>> data;
  std::optional<Misfit> misfit;
};

// Returns a random matrix of the grid's size and block, of which `nz_ratio` (0 .. 1) of all blocks
// are stored: an input for create_sparsity_data() if only PopSparse's ratio is known. Values are +1
// or -1. The same arguments give the same matrix on every computer. Example: for 1024 x 1024 in
// blocks of 4 x 4 and 0.1 it has 6554 of 65536 blocks.
//
// Throws Error{InvalidArgument} for an impossible grid or a ratio outside 0 .. 1. Costs as much as
// sparse::random_pattern, which it calls. Thread-safe.
sparse::Csr<float> create_with_nz_ratio(const TileGrid& grid, double nz_ratio, std::uint64_t seed);

// Encodes a matrix with its values. Its blocks are cut or merged to those of the grid as
// sparse::with_block does it; places that are missing in a merged block are filled with zeros. The
// blocks of a Coo may come in any order. Throws the errors of sparse::with_block, of the conversion
// to Csr, and of encode(). Costs O(blocks * area) more than encode(). Thread-safe.
template <class T>
SparsityDataResult<T> create_sparsity_data(const sparse::Csr<T>& matrix, const TileGrid& grid,
                                           const EncodeOptions& options = {});
template <class T>
SparsityDataResult<T> create_sparsity_data(const sparse::Csc<T>& matrix, const TileGrid& grid,
                                           const EncodeOptions& options = {});
template <class T>
SparsityDataResult<T> create_sparsity_data(const sparse::Coo<T>& matrix, const TileGrid& grid,
                                           const EncodeOptions& options = {});

// Returns the matrix in the blocks in which it was given, from words and values as decode() reads
// them. A Coo is sorted by row, then column. The result equals the encoded matrix, except that
// zeros filled in where blocks were merged come back as stored zeros. Throws the errors of
// decode().
template <class T>
sparse::Csr<T> to_csr(const SparsityData<T>& data);
template <class T>
sparse::Csc<T> to_csc(const SparsityData<T>& data);
template <class T>
sparse::Coo<T> to_coo(const SparsityData<T>& data);

}  // namespace tessera::partitioner
