#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/random.hpp"
#include "tessera/tests/codelets/kernel_case.hpp"

// Draws random kernel cases: the same seed gives the same case on every computer.
namespace tessera::test {

inline BlockShape shape_for(const KernelKey& key, BlockShape block) {
  return key.format == Format::Element ? BlockShape{} : block;
}

// Draws some rows and columns of a cell of `rows` x `cols` blocks: about half of them, and at least
// one.
inline DrawnRecord random_record(Random& random, std::int64_t sub_group, std::int64_t rows,
                                 std::int64_t cols, BlockShape block) {
  DrawnRecord record;
  record.sub_group = sub_group;
  for (std::int64_t x = rows - 1; x >= 0; --x) {
    DrawnRow row{x * block.rows, {}};
    for (std::int64_t y = 0; y < cols; ++y)
      if (random.below(2) == 0) row.columns.push_back(y * block.cols);
    if (!row.columns.empty()) record.rows.push_back(row);
  }
  if (record.rows.empty()) record.rows.push_back({0, {0}});
  return record;
}

struct Draw {
  BlockShape block = {};
  std::int64_t z = 4, gap = 0;
  std::uint64_t seed = 7;
  std::int64_t rows = 5, cols = 6;  // blocks of a record
  bool once = false;                // does the own cell have one record only?
};

// The bucket holds records of its own cell twice (or once), and other cells before, between and
// after them.
inline KernelCase random_case(const KernelKey& key, const Draw& draw) {
  Random random(draw.seed);
  const BlockShape block = shape_for(key, draw.block);
  std::vector<DrawnRecord> records;
  for (const std::int64_t cell : {3, 2, 9, draw.once ? 4 : 2, 1})
    records.push_back(random_record(random, cell, draw.rows, draw.cols, block));
  KernelCase c(key, block, {draw.rows * block.rows, draw.cols * block.cols, draw.z, draw.gap},
               records);
  c.sub_group = 2;
  c.fill([&random] { return 2 * random.unit() - 1; });
  return c;
}

}  // namespace tessera::test
