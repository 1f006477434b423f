#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/partitioner/internal/pieces.hpp"
#include "tessera/partitioner/tile_grid.hpp"

namespace tessera::partitioner::internal {

// Room that something takes or that is free. End markers are not counted.
struct Room {
  std::int64_t words = 0, blocks = 0, grad_a_words = 0;

  Room& operator+=(const Room& o) {
    words += o.words, blocks += o.blocks, grad_a_words += o.grad_a_words;
    return *this;
  }
  friend Room operator-(const Room& a, const Room& b) {
    return {a.words - b.words, a.blocks - b.blocks, a.grad_a_words - b.grad_a_words};
  }
  bool fits_in(const Room& o) const {
    return words <= o.words && blocks <= o.blocks && grad_a_words <= o.grad_a_words;
  }
};

// Part of a cell that lies in some bucket.
struct Guest {
  std::int32_t cell = 0;
  Run run;
};

// What every bucket would hold. Invariants:
//   1. a bucket's used room is exactly what its records take when all workers are counted; a bucket
//      has at most one record of a cell, and a record at most one entry of a row
//   2. add() is only called with a run that fits, so that used never exceeds the capacity, except
//      for pieces that are still whole at home
//   3. the marks describe the record that open() named last
// Not for use by several threads; refers to `pieces`, which must outlive it.
class Holdings {
 public:
  // Every piece whole at home, whether it fits or not.
  Holdings(const Pieces& pieces, const TileGrid& grid);

  const TileGrid& grid() const { return grid_; }
  const Pieces& pieces() const { return *pieces_; }
  std::int64_t cells() const { return grid_.splits.x * grid_.splits.y; }
  std::int32_t cell_of(std::int64_t bucket) const {
    return static_cast<std::int32_t>(bucket / grid_.splits.z);
  }
  Room used(std::int64_t bucket) const { return used_[static_cast<std::size_t>(bucket)]; }
  Room free(std::int64_t bucket) const { return capacity_ - used(bucket); }
  Room capacity() const { return capacity_; }
  Room header() const { return header_; }  // of one record without rows
  bool overfull(std::int64_t bucket) const { return !used(bucket).fits_in(capacity_); }
  bool whole_home(std::int64_t bucket) const { return whole_[static_cast<std::size_t>(bucket)]; }
  const std::vector<Guest>& guests(std::int64_t bucket) const {
    return guests_[static_cast<std::size_t>(bucket)];
  }
  const std::vector<std::int32_t>& guest_cells(std::int64_t bucket) const {
    return guest_cells_[static_cast<std::size_t>(bucket)];
  }

  // The same pieces and marks at home again, for other capacities.
  void set_capacity(const TileGrid& grid);
  // Takes the piece that is whole at home out of its bucket.
  void evict(std::int64_t bucket);

  // Is there room for a single block of the cell, at the best? O(records of the bucket).
  bool may_take(std::int64_t bucket, std::int32_t cell) const;
  // Names the record that the next four are about. O(what the bucket holds of the cell).
  void open(std::int64_t bucket, std::int32_t cell);
  bool fits(const Run& run) const { return extra(run).fits_in(free(open_bucket_)); }
  // Most blocks of the run's front (back) that fit.
  std::int32_t fitting_front(const Run& run) const;
  std::int32_t fitting_back(const Run& run) const;
  void add(const Run& run);

  // Room of a record that holds just these runs, which are of different rows.
  // Words and blocks only.
  Room alone(const std::vector<Run>& runs) const;
  // The separate GradA words of such a record, 0 where there are no such buckets. Closes the open
  // record. O(blocks).
  std::int64_t grad_a_words_alone(std::span<const Run> runs);
  // Fewer buckets of this capacity cannot hold these cells, however the blocks are spread: each
  // pays a header, each row of a cell an entry. 0: no number of them can. Not always enough.
  std::int64_t least_buckets() const;

 private:
  Room home_room(std::int64_t bucket);
  bool holds(std::int64_t bucket, std::int32_t cell) const;
  Room extra(const Run& run) const;
  std::int64_t new_columns(const Run& run) const;
  void mark(const Run& run);
  template <class ColumnAt>
  std::int32_t fitting(const Run& run, ColumnAt&& column_at) const;

  const Pieces* pieces_;
  TileGrid grid_;
  Room capacity_;
  Room header_;
  std::vector<Room> home_, used_;
  std::vector<bool> whole_;
  std::vector<std::vector<Guest>> guests_;
  std::vector<std::vector<std::int32_t>> guest_cells_;  // distinct, in order of arrival

  std::int64_t open_bucket_ = 0;
  std::int32_t open_cell_ = 0;
  bool new_record_ = false;
  // A row of the cell (column of the matrix) is in the open record when its mark is the current
  // one.
  std::int64_t mark_ = 0;
  std::vector<std::int64_t> row_mark_, col_mark_;
};

// Does every piece have room at home, all workers counted? Separate GradA buckets are not looked
// at.
bool fits_at_home(const Pieces& pieces, const TileGrid& grid);

}  // namespace tessera::partitioner::internal
