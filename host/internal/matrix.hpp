#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/edit.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::host::internal {

// Returns the bytes of the elements of a list.
template <class T, class Allocator>
std::int64_t list_bytes(const std::vector<T, Allocator>& list) {
  return std::ssize(list) * std::int64_t{sizeof(T)};
}

// A pattern in buckets for the host: one bucket for each cell, with the capacity that the fullest
// one needs and a little more for changes, one worker, and no spilled blocks. Words have 16 bits if
// all fit, which halves the bytes that kernels read, else 32.
class HostMatrix {
 public:
  // Encodes a checked matrix (sparse::check). Storage is reused. Throws as partitioner::encode
  // does.
  void set(const sparse::Csr<float>& matrix, const HostCells& cells, DataType type,
           Executor& executor);

  // Returns the prepared change of the buckets to a pattern with these edits, or nothing if they
  // may be too small. `edits`, `shift`, `numbering` and `value_bytes` are those of
  // partitioner::CellEdits.
  std::optional<partitioner::CellEdits> prepare(std::span<const partitioner::BlockEdit> edits,
                                                std::vector<std::int32_t> shift,
                                                partitioner::Numbering numbering,
                                                std::int64_t value_bytes, Executor& executor);

  // Changes the buckets, and values in their order. Allocates nothing.
  template <class T>
  void apply(partitioner::CellEdits& edits, std::span<T> values, Executor& executor) noexcept {
    edits.apply(buckets_, values, executor);
    count_again();
  }

  // Replaces the number of each block in Buckets::source by number[of it]: the buckets of a
  // transpose then name the blocks of the matrix that was transposed.
  void rename_source(std::span<const std::int32_t> number);

  const partitioner::Buckets& buckets() const { return buckets_; }
  const partitioner::TileGrid& grid() const { return buckets_.grid; }
  Range x_range(std::int64_t x) const { return grid().x_range(x); }
  Range y_range(std::int64_t y) const { return grid().y_range(y); }

  // Returns the block rows of cells, the one with the most non-zeros first. Threads that take them
  // in this order finish at about the same time.
  const std::vector<std::int64_t>& heaviest_first() const { return order_; }

  // Returns the bytes of the buckets and of what is known about them.
  std::int64_t bytes() const;

  // Returns true if the cell has no non-zeros.
  bool is_empty(std::int64_t bucket) const { return blocks_[std::size_t(bucket)] == 0; }

  // Returns the runs of rows in cell row `x` whose block rows its first cell does not name, counted
  // from the first row of `x`.
  std::span<const Range> unnamed_rows(std::int64_t x) const {
    const auto begin = std::size_t(unnamed_begin_[std::size_t(x)]);
    return {unnamed_.data() + begin, std::size_t(unnamed_begin_[std::size_t(x) + 1]) - begin};
  }

 private:
  void count(const sparse::Csr<float>& matrix, partitioner::TileGrid& grid);
  void count_again() noexcept;
  void find_unnamed_rows();
  void order_rows();

  partitioner::Buckets buckets_;
  std::vector<std::int64_t> blocks_, rows_;   // of each bucket
  std::vector<std::int64_t> order_, weight_;  // of cell rows; weight_: blocks
  std::vector<char> named_;                   // block rows of a cell
  std::vector<Range> unnamed_;                // runs of rows
  std::vector<std::int64_t> unnamed_begin_;   // where those of a cell row begin
};

}  // namespace tessera::host::internal
