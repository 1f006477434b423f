#pragma once

#include <cstdint>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"
#include "tessera/base/dims.hpp"

namespace tessera::partitioner {

// All the partitioner needs to know of a plan and a machine. A plain value.
//
// R [size.x][size.y] is cut into splits.x * splits.y cells with share_of(); the non-zeros of a cell
// lie on splits.z tiles. One bucket per tile, number (x * splits.y + y) * splits.z + z.
struct TileGrid {
  Dims size;         // x, y elements, multiples of the block; z = batch, padded to the grain
  BlockShape block;  // the grain of x and y
  std::int64_t z_grain = 1;  // elements of z a worker takes at least; divides size.z / splits.z
  Dims splits;               // partition counts; no share may be empty
  DataType data_type = DataType::Float;
  std::int64_t workers = 6;
  std::int64_t word_bits = 16;   // 16 or 32
  bool grad_w = false;           // encode the tables of GradW workers
  bool separate_grad_a = false;  // encode own GradA buckets (element format only)
  std::int64_t meta_words = 0;   // capacity of a forward bucket, end marker included
  std::int64_t grad_a_words =
      0;                    // capacity of a separate GradA bucket, end marker included; else 0
  std::int64_t blocks = 0;  // capacity of a bucket in non-zero blocks

  friend bool operator==(const TileGrid&, const TileGrid&) = default;
  std::int64_t buckets() const { return splits.x * splits.y * splits.z; }
  std::int64_t bucket_index(std::int64_t x, std::int64_t y, std::int64_t z) const {
    return (x * splits.y + y) * splits.z + z;
  }
  std::int64_t z_per_tile() const { return size.z / splits.z; }
  Range x_range(std::int64_t i) const { return share_of(size.x, block.rows, splits.x, i); }
  Range y_range(std::int64_t i) const { return share_of(size.y, block.cols, splits.y, i); }
};

// Throws Error{InvalidArgument} naming field, value and legal range when a grid cannot be: sizes no
// multiple of the block, empty shares, z not divisible, word width, splits.x * splits.y beyond the
// word, separate GradA buckets for blocks, capacities below the end marker.
void check(const TileGrid& grid);

// The grid with all its capacities times `factor`, rounded up; a capacity of 0 counts as 1. What
// Misfit::capacity_factor is measured in. Example: 90 words and 7 blocks by 1.5: 135 and 11.
TileGrid with_capacity(const TileGrid& grid, double factor);

}  // namespace tessera::partitioner
