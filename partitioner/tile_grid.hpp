#pragma once

#include <cstdint>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"
#include "tessera/base/dims.hpp"

namespace tessera::partitioner {

// A TileGrid holds everything that the partitioner knows of a plan and of a machine. It is a plain
// value.
//
// R [size.x][size.y] is cut into splits.x * splits.y cells with share_of(). The non-zeros of a cell
// are stored on splits.z tiles. Each tile has one bucket, whose number is
// (x * splits.y + y) * splits.z + z.
struct TileGrid {
  // x and y in elements, multiples of the block. z is the batch, padded to the grain.
  Dims size;

  // The block of R, which is also the grain of the cuts along x and y.
  BlockShape block;

  // The fewest elements of z that one worker takes; divides size.z / splits.z.
  std::int64_t z_grain = 1;

  // Number of partitions along each dimension. No share may be empty.
  Dims splits;

  DataType data_type = DataType::Float;
  std::int64_t workers = 6;
  std::int64_t word_bits = 16;  // 16 or 32

  // Encode the tables of GradW workers.
  bool grad_w = false;

  // Encode separate GradA buckets (element format only).
  bool separate_grad_a = false;

  // Capacity of a forward bucket in words, end marker included.
  std::int64_t meta_words = 0;

  // Capacity of a separate GradA bucket in words, end marker included; 0 without such buckets.
  std::int64_t grad_a_words = 0;

  // Capacity of a bucket in non-zero blocks.
  std::int64_t blocks = 0;

  friend bool operator==(const TileGrid&, const TileGrid&) = default;

  // Number of buckets of the whole grid.
  std::int64_t buckets() const { return splits.x * splits.y * splits.z; }

  std::int64_t bucket_index(std::int64_t x, std::int64_t y, std::int64_t z) const {
    return (x * splits.y + y) * splits.z + z;
  }
  std::int64_t z_per_tile() const { return size.z / splits.z; }

  // Elements of x (of y) that partition `i` covers.
  Range x_range(std::int64_t i) const { return share_of(size.x, block.rows, splits.x, i); }
  Range y_range(std::int64_t i) const { return share_of(size.y, block.cols, splits.y, i); }
};

// Throws Error{InvalidArgument}, which names field, value and legal range, if the grid is
// impossible: a size that is no multiple of the block, an empty share, a z that does not divide, a
// word width other than 16 or 32, more cells (splits.x * splits.y) than a word can count, separate
// GradA buckets for blocks, or a capacity below the end marker.
void check(const TileGrid& grid);

// Returns the grid with all its capacities multiplied by `factor` and rounded up; a capacity of 0
// counts as 1. Misfit::capacity_factor is measured with this function. Example: 90 words and 7
// blocks by 1.5 give 135 words and 11 blocks.
TileGrid with_capacity(const TileGrid& grid, double factor);

}  // namespace tessera::partitioner
