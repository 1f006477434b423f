#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::sparse {

// Returns, for each value of `pattern`, the position of the same element in matrix.values, or -1 if
// `matrix` does not store it or ends before it. The two may have different sizes and blocks. Both
// are checked by the rules of check.hpp (Error{BadInput}).
// With a `run` above 1 the result has one position for each run of so many values of the pattern,
// which are neighbours in one row of a block, that of the first value; the others follow it in
// both. Throws Error{InvalidArgument} unless the run divides the columns of both blocks. O(values
// of the pattern / run + blocks of the matrix). Example: the elements of a pattern in a matrix of
// dense 16 x 16 blocks that covers it.
template <class T>
std::vector<std::int64_t> positions_on(const CheckedCsr<T>& matrix, const CheckedCsr<T>& pattern,
                                       std::int64_t run = 1);

// Returns the stored elements in the first `rows` rows and the first `cols` columns. Throws
// Error{InvalidArgument} unless `elements` is an element matrix of at least that size. O(elements).
template <class T>
Csr<T> cropped(const Csr<T>& elements, std::int64_t rows, std::int64_t cols);
template <class T>
CheckedCsr<T> cropped(const CheckedCsr<T>& elements, std::int64_t rows, std::int64_t cols);

// Returns a matrix of elements in blocks. Sides that are not a multiple of the block are padded.
template <class T>
Csr<T> in_whole_blocks(const Csr<T>& elements, BlockShape block) {
  return with_block(with_shape(elements, round_up(elements.rows, block.rows),
                               round_up(elements.cols, block.cols)),
                    block);
}

template <class T>
CheckedCsr<T> in_whole_blocks(const CheckedCsr<T>& elements, BlockShape block) {
  return with_block(with_shape(elements, round_up(elements->rows, block.rows),
                               round_up(elements->cols, block.cols)),
                    block);
}

// Returns a matrix without the padding of its last blocks: itself if it has so many rows and
// columns, else its elements in them.
CheckedCsr<float> inside(const CheckedCsr<float>& matrix, std::int64_t rows, std::int64_t cols);
Csr<float> inside(Csr<float> matrix, std::int64_t rows, std::int64_t cols);

}  // namespace tessera::sparse
