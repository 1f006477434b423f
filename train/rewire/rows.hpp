#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/train/rewire/grow.hpp"

namespace tessera::train {

// Patterns with a constant fan-in: each row of blocks has as many blocks as the others, or one more
// in the first rows if the number of blocks is no multiple of that of rows. `per_row` has a number
// for each row of blocks. All functions return places in row-major order, and the same ones for any
// number of threads. They throw Error{InvalidArgument} for lists of another length and for numbers
// that a row does not have.

// Returns how many of `blocks` blocks each row has.
std::vector<std::int64_t> even_rows(std::int64_t blocks, std::int64_t block_rows);

// Returns a pattern with even_rows(blocks) and values of 0, drawn at random. Throws
// Error{InvalidArgument} for a number of blocks that the matrix cannot have. O(blocks + rows).
sparse::Csr<float> random_even_rows(std::int64_t rows, std::int64_t cols, BlockShape block,
                                    std::int64_t blocks, std::uint64_t seed);

// Returns the smallest blocks of each row, as smallest_blocks does for all of them (drop.hpp).
std::vector<sparse::BlockAt> smallest_of_rows(const sparse::Csr<float>& weights,
                                              std::span<const std::int64_t> per_row,
                                              std::string_view name = "weights");

// Returns the free places of largest gradient of each row, as exact_gradients does for all of
// them (grow.hpp). Memory is, for each thread, a panel with all columns, 1 MiB or a row of blocks.
std::vector<sparse::BlockAt> largest_of_rows(const sparse::Csr<float>& taken,
                                             std::span<const GradientBatch> batches,
                                             std::span<const std::int64_t> per_row, BlockScore pool,
                                             Executor& executor, std::string_view name = "weights");

// Returns random free places of each row, as random_places does for all of them (grow.hpp).
std::vector<sparse::BlockAt> random_of_rows(const sparse::Csr<float>& taken,
                                            std::span<const std::int64_t> per_row,
                                            std::uint64_t seed, std::string_view name = "weights");

}  // namespace tessera::train
