#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"
#include "tessera/codelets/check_words.hpp"
#include "tessera/codelets/kernel.hpp"

// The words of a tile with a static pattern. They are constants of the program: nothing searches
// them, and nothing sends them between tiles. Rows and columns are numbers in the tile's own lists
// of block rows and block columns, z is the tile's batch columns.
//
//   elements  for each worker: rows; first word of its rows, counted from the first word of all;
//             first value; batch columns; first batch column; first row
//             for each row: columns (float) or columns - 1 (half), then for each column its number
//             times z, in bytes of the operand
//   blocks    for each worker: first batch column; batch columns
//             rows - 1
//             for each row: its number times z / z_grain; blocks - 1; then for each block the
//             number of its column times z / z_grain
//
// Workers of elements take different rows; where three rows or fewer would leave workers idle, two
// groups of workers take half of the batch columns each. Workers of blocks take all rows and
// different batch columns.
namespace tessera::codelets {

// Everything but the pattern that decides the words of a tile.
struct StaticForm {
  BlockShape block;
  DataType type = DataType::Half;  // of values, operands and results
  std::int64_t z = 1;              // batch columns of the tile, whole vectors
  std::int64_t z_grain = 4;        // of a vector
  std::int64_t workers = 6;
  std::int64_t word_bits = 16;

  std::int64_t word_bytes() const { return word_bits / 8; }
};

// The blocks of a tile, row by row.
struct StaticBlocks {
  std::span<const std::int64_t> row_begin;  // [rows + 1] position of each row's first block
  std::span<const std::int32_t> column;     // [blocks] number of the block's column, ascending

  std::int64_t rows() const { return std::ssize(row_begin) - 1; }
  std::int64_t blocks() const { return std::ssize(column); }
};

// Returns the number of words of a tile; 0 without rows. O(1).
std::int64_t static_word_count(const StaticForm& form, std::int64_t rows, std::int64_t blocks);

// Writes static_word_count() words. Throws Error{LimitExceeded}, which names the word and its
// value, if one does not fit in form.word_bits bits. O(words); thread-safe.
void write_static_words(const StaticForm& form, const StaticBlocks& blocks, std::byte* words);

// Checks words that may have been damaged, as check_words() does for buckets: if it finds no fault,
// run_static() and static_cycles() stay within `capacity`, the operands and the result. Returns
// nothing if there is no fault. O(words); allocates nothing; thread-safe.
std::optional<WordsFault> check_static_words(const StaticForm& form, Operation operation,
                                             const KernelArgs& args,
                                             const BucketCapacity& capacity);

}  // namespace tessera::codelets
