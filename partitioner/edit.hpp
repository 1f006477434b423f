#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/partitioner/buckets.hpp"

namespace tessera::partitioner {

namespace internal {
template <class Word, class T>
class CellEditor;
}  // namespace internal

// A block that a change removes from a matrix or adds to it.
struct BlockEdit {
  std::int32_t row = 0, col = 0;  // in blocks
  std::int32_t number = -1;       // of an added block after the change; -1: the block is removed

  friend bool operator==(const BlockEdit&, const BlockEdit&) = default;
};

// The order in which the source map of buckets numbers blocks. The buckets of a transpose may name
// the blocks by their numbers in the matrix that was transposed, which are column by column.
enum class Numbering { RowByRow, ColumnByColumn };

// The blocks and rows of a bucket's own record, and its words without the end marker.
struct RecordCounts {
  std::int64_t rows = 0, blocks = 0, words = 0;

  friend bool operator==(const RecordCounts&, const RecordCounts&) = default;
};

// Returns the counts of a bucket that holds one record at most. O(1).
RecordCounts count_record(const Buckets& buckets, std::int64_t bucket);

// Sets named[row] for each block row of the cell that the bucket's record names, counted from the
// first one of the cell, and clears the others. The list has one entry for each row of the cell.
void find_named_rows(const Buckets& buckets, std::int64_t bucket, std::span<char> named);

// A change of buckets in place, for layers whose pattern changes often: only the cells that change
// are written, and the others get new block numbers at most. The buckets have one worker, one z
// partition, no tables for GradW, no separate GradA buckets and no spilled blocks.
//
// The constructor does all that may fail, and apply() cannot fail: several layouts change together
// or not at all. Afterwards each bucket has the words, sources and values that encode_into() and
// refill() write for the changed matrix. One thread uses an object.
class CellEdits {
 public:
  // `edits` ascend by row, then column; removed blocks are stored and added ones are not. shift[i]
  // is the number of added less removed blocks before line i of the numbering, which is a block row
  // or a block column. `value_bytes` is the size of a value that apply() moves, 0 without values.
  // O(edits + buckets + shift).
  CellEdits(const Buckets& buckets, std::span<const BlockEdit> edits,
            std::vector<std::int32_t> shift, Numbering numbering, std::int64_t value_bytes,
            const Executor& executor);

  // Returns false if a bucket may be too small for its blocks or words; apply() must then not be
  // called.
  bool fit() const { return fit_; }

  // Returns the most rows that all records can have together after the change.
  std::int64_t most_rows() const { return most_rows_; }

  // Changes the buckets that the object was made for, and values in their order: those of added
  // blocks and of padding become 0. Call it once. T has `value_bytes`. O(blocks of the cells that
  // change + renumbered blocks) on all threads; allocates nothing.
  template <class T>
  void apply(Buckets& buckets, std::span<T> values, Executor& executor) noexcept;

  // Does the same without values.
  void apply(Buckets& buckets, Executor& executor) noexcept;

 private:
  // A row of a record before and after the change. Positions are in words and blocks.
  struct Row {
    std::int32_t word = 0, first = 0, count = 0;
    std::int32_t new_word = 0, new_first = 0, new_count = 0;
  };
  struct Scratch {  // of one thread
    std::vector<std::uint32_t> words;
    std::vector<std::int32_t> source;
    AlignedVector<std::byte> values;
    std::vector<Row> rows;                 // of the cell
    std::vector<std::uint32_t> row_words;  // one row and one element more
    std::vector<std::int32_t> row_source;
    AlignedVector<std::byte> row_values;
    std::vector<std::int32_t> bin_rows, bin_firsts;  // of each length of a row
  };
  template <class Word, class T>
  friend class internal::CellEditor;

  void sort_by_bucket(std::span<const BlockEdit> edits);
  void check_capacity(const Buckets& buckets);
  void grow_scratch(std::int64_t value_bytes, int threads);
  std::int64_t lines() const;  // of cells that share no numbers
  template <class Word, class T>
  void apply_words(Buckets& buckets, std::span<T> values, Executor& executor) noexcept;

  TileGrid grid_;
  Numbering numbering_;
  bool fit_ = true;
  std::int64_t most_rows_ = 0;
  std::vector<std::int32_t> shift_;
  std::vector<BlockEdit> edits_;          // bucket after bucket
  std::vector<std::int64_t> edit_begin_;  // [buckets + 1]
  std::vector<Scratch> scratch_;          // [threads]
};

}  // namespace tessera::partitioner
