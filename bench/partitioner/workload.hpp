#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::bench {

constexpr std::uint64_t kPatternSeed = 7;

// A pattern, its grid, and storage that is used for every call, as in a training loop.
struct Workload {
  sparse::Csr<float> matrix;
  partitioner::TileGrid grid;
  partitioner::Buckets buckets;
  std::vector<float> bucket_values;

  double blocks() const { return static_cast<double>(matrix.blocks()); }
  // Both functions throw if the pattern does not fit.
  void encode(Executor& executor);
  void refill(Executor& executor);
};

struct Layer {
  std::int64_t side = 4096;
  double density = 0.1;
  std::int64_t block = 1;
  Dims splits{1, 46, 4, 8};  // 1472 tiles
  std::int64_t word_bits = 16;
  bool all_passes = false;  // with the tables of GradW and separate GradA buckets
};

// Returns a random matrix and its grid, with a capacity of the mean of all buckets and 30 % more.
Workload make_workload(const Layer& layer);
// Returns the same matrix encoded with its values. Throws if decoding gives another matrix.
Workload make_encoded(const Layer& layer);

}  // namespace tessera::bench
