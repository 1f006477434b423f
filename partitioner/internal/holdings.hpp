#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/partitioner/internal/pieces.hpp"
#include "tessera/partitioner/tile_grid.hpp"

namespace tessera::partitioner::internal {

// The words in a bucket of a row that has blocks there, without those of its blocks.
inline constexpr std::int64_t kRowWords = codelets::kWords<codelets::OutputEntry>;

// Capacity is an amount of space in a bucket, used or free. End markers are not counted.
struct Capacity {
  std::int64_t words = 0, blocks = 0, grad_a_words = 0;

  Capacity& operator+=(const Capacity& o) {
    words += o.words, blocks += o.blocks, grad_a_words += o.grad_a_words;
    return *this;
  }
  friend Capacity operator-(const Capacity& a, const Capacity& b) {
    return {a.words - b.words, a.blocks - b.blocks, a.grad_a_words - b.grad_a_words};
  }
  bool fits_in(const Capacity& o) const {
    return words <= o.words && blocks <= o.blocks && grad_a_words <= o.grad_a_words;
  }
};

// A run of another cell, or of an own piece that is no longer whole, that a bucket holds.
struct Guest {
  std::int32_t cell = 0;
  Run run;
};

// Holdings records what every bucket would hold. Only this class computes how much capacity that
// needs. Invariants:
//   1. The used capacity of a bucket is exactly what its records need when all workers are counted;
//      a bucket has at most one record of a cell, and a record at most one entry of a row.
//   2. add() is only called with a run that fits, so `used` never exceeds the capacity, except for
//      pieces that are still whole at home.
//   3. The marks describe the record that open() named last.
// An object must not be used by several threads. It refers to `pieces`, which must outlive it.
class Holdings {
 public:
  // Starts with every piece whole at home, whether it fits or not.
  Holdings(const Pieces& pieces, const TileGrid& grid);

  const TileGrid& grid() const { return grid_; }
  const Pieces& pieces() const { return *pieces_; }
  std::int64_t cells() const { return grid_.splits.x * grid_.splits.y; }
  std::int32_t cell_of(std::int64_t bucket) const {
    return static_cast<std::int32_t>(bucket / grid_.splits.z);
  }
  Capacity used(std::int64_t bucket) const { return used_[static_cast<std::size_t>(bucket)]; }
  Capacity free(std::int64_t bucket) const { return capacity_ - used(bucket); }
  Capacity capacity() const { return capacity_; }
  Capacity header() const { return header_; }  // needed by one record without rows
  bool overfull(std::int64_t bucket) const { return !used(bucket).fits_in(capacity_); }
  bool whole_home(std::int64_t bucket) const { return whole_[static_cast<std::size_t>(bucket)]; }
  const std::vector<Guest>& guests(std::int64_t bucket) const {
    return guests_[static_cast<std::size_t>(bucket)];
  }
  const std::vector<std::int32_t>& guest_cells(std::int64_t bucket) const {
    return guest_cells_[static_cast<std::size_t>(bucket)];
  }

  // Puts the same pieces at home again, with other capacities.
  void set_capacity(const TileGrid& grid);

  // Removes the piece that is whole at home from its bucket.
  void evict(std::int64_t bucket);

  // True if the bucket may have free capacity for at least one block of the cell. O(records of the
  // bucket).
  bool may_take(std::int64_t bucket, std::int32_t cell) const;

  // Selects the record that the next functions refer to: what `bucket` holds of `cell`. O(what the
  // bucket holds of the cell).
  void open(std::int64_t bucket, std::int32_t cell);
  bool fits(const Run& run) const { return extra(run).fits_in(free(open_bucket_)); }

  // The largest number of blocks from the front (back) of the run that fit.
  std::int32_t fitting_front(const Run& run) const;
  std::int32_t fitting_back(const Run& run) const;
  void add(const Run& run);

  // Capacity that a record with exactly these runs needs; the runs must be of different rows. Words
  // and blocks only.
  Capacity alone(const std::vector<Run>& runs) const;

  // Separate GradA words that such a record needs, 0 without such buckets. Closes the open record.
  // O(blocks).
  std::int64_t grad_a_words_alone(std::span<const Run> runs);

  // Returns a lower bound: fewer buckets of this capacity cannot hold these cells, however the
  // blocks are spread, because each bucket pays a header and each row of a cell an entry. 0: no
  // number of buckets can. That many buckets are not always enough.
  std::int64_t least_buckets() const;

 private:
  Capacity home_room(std::int64_t bucket);
  bool holds(std::int64_t bucket, std::int32_t cell) const;
  Capacity extra(const Run& run) const;
  std::int64_t new_columns(const Run& run) const;
  void mark(const Run& run);
  template <class ColumnAt>
  std::int32_t fitting(const Run& run, ColumnAt&& column_at) const;

  const Pieces* pieces_;
  TileGrid grid_;
  Capacity capacity_;
  Capacity header_;
  std::vector<Capacity> home_, used_;
  std::vector<bool> whole_;
  std::vector<std::vector<Guest>> guests_;
  std::vector<std::vector<std::int32_t>> guest_cells_;  // distinct, by arrival

  std::int64_t open_bucket_ = 0;
  std::int32_t open_cell_ = 0;
  bool new_record_ = false;

  // A row of the cell (a column of the matrix) is in the open record if its mark equals mark_.
  std::int64_t mark_ = 0;
  std::vector<std::int64_t> row_mark_, col_mark_;
};

// True if every piece fits at home, all workers counted.
bool fits_at_home(const Pieces& pieces, const TileGrid& grid);

}  // namespace tessera::partitioner::internal
