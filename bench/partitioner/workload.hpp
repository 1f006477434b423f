#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

constexpr std::uint64_t kPatternSeed = 7;

// A pattern, where it goes, and storage that is used again and again, as a training loop would.
struct Workload {
  sparse::Csr<float> matrix;
  partitioner::TileGrid grid;
  partitioner::Buckets buckets;
  std::vector<float> bucket_values;

  double blocks() const { return static_cast<double>(matrix.blocks()); }
  // Both throw when the pattern does not fit.
  void encode(Executor& executor);
  void refill(Executor& executor);
};

struct Layer {
  std::int64_t side = 4096;
  double density = 0.1;
  std::int64_t block = 1;
  Dims splits{1, 46, 4, 8};  // 1472 tiles
  std::int64_t word_bits = 16;
};

// A random matrix and its grid, with room for the mean of all buckets and 30 % more.
Workload make_workload(const Layer& layer);
// The same encoded, with values; throws when decoding gives another matrix.
Workload make_encoded(const Layer& layer);

}  // namespace tessera::bench
