#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/sparse/formats.hpp"

// Masks of attention, and the softmax over the rows of a matrix in blocks. A mask is a Csr whose
// values are 1 where an element is kept and 0 elsewhere, so a block on a diagonal may keep a
// triangle. A mask stores no block without a kept element. The scores at a mask are values in its
// order: those that GradW of a layer with this pattern writes, dQ * transpose(S) at the mask.
namespace tessera::sparse {

// Returns the mask of a matrix [rows][cols] that keeps the elements for which keep(row, column) is
// true. Throws Error{InvalidArgument} unless the sizes are 1 or more and multiples of the block.
// Calls keep rows * cols times.
Csr<float> block_mask(std::int64_t rows, std::int64_t cols, BlockShape block,
                      const std::function<bool(std::int64_t, std::int64_t)>& keep);

// Returns the mask of a square matrix that keeps columns up to the row.
Csr<float> causal_mask(std::int64_t size, BlockShape block);

// Returns the mask that keeps the first `global` rows and columns, and columns that are at most
// `window` from the row.
Csr<float> window_mask(std::int64_t size, BlockShape block, std::int64_t global,
                       std::int64_t window);

// Returns a mask of whole random blocks, as random_pattern() places them.
Csr<float> random_mask(std::int64_t rows, std::int64_t cols, BlockShape block, double density,
                       std::uint64_t seed);

// The triangle of a mask that is kept.
enum class Triangle { Lower, Upper };

// Returns the mask with the other triangle left out; the diagonal stays.
Csr<float> keep_triangle(const Csr<float>& mask, Triangle triangle);

// Writes the softmax of every row over its kept elements: exp(score - largest of the row) divided
// by their sum. Elements that are not kept become 0, as do rows whose kept scores are all minus
// infinity, and elements whose score is 87 below the largest. `scores` and `out` have the mask's
// values and may be the same. Throws Error{InvalidArgument} for another number of values.
// O(values). The rows are spread over the executor, if there is one; the bits do not depend on it.
void softmax_rows(const Csr<float>& mask, std::span<const float> scores, std::span<float> out,
                  Executor* executor = nullptr);

// Writes the gradient of the scores from the softmax p and its gradient g: p * (g - sum over the
// row of p * g). `out` may be either of them. Errors and cost are those of softmax_rows.
void softmax_rows_gradient(const Csr<float>& mask, std::span<const float> softmax,
                           std::span<const float> gradient, std::span<float> out,
                           Executor* executor = nullptr);

}  // namespace tessera::sparse
