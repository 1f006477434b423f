#include "tessera/bench/partitioner/workload.hpp"

#include <algorithm>
#include <stdexcept>

#include "tessera/bench/timing.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {
namespace {

void set_capacities(partitioner::TileGrid& grid, std::int64_t blocks) {
  constexpr double kSlack = 1.3;
  const std::int64_t per_bucket = ceil_div(blocks, grid.buckets());
  const std::int64_t cell_rows = grid.x_range(0).size() / grid.block.rows;
  const std::int64_t rows = std::min(per_bucket, ceil_div(cell_rows, grid.splits.z) + 1);
  const auto grown = [](std::int64_t n) {
    return static_cast<std::int64_t>(kSlack * static_cast<double>(n)) + 1;
  };
  const codelets::RecordShape shape{grid.block.is_element(), grid.grad_w, grid.workers};
  grid.meta_words = grown(codelets::record_words(shape, rows, per_bucket));
  grid.blocks = grown(per_bucket);
  if (!grid.separate_grad_a) return;
  const std::int64_t columns = std::min(per_bucket, grid.y_range(0).size());
  const codelets::RecordShape grad_a{true, false, grid.workers};
  grid.grad_a_words = grown(codelets::record_words(grad_a, columns, 2 * per_bucket));
}

}  // namespace

void Workload::encode(Executor& executor) {
  if (partitioner::encode_into(buckets, matrix, grid, executor))
    throw std::runtime_error("the pattern does not fit");
}

void Workload::refill(Executor& executor) {
  partitioner::refill<float, float>(buckets, matrix.values, bucket_values, executor);
}

Workload make_workload(const Layer& layer) {
  Workload w;
  w.matrix = sparse::random_pattern(layer.side, layer.side, {layer.block, layer.block},
                                    layer.density, kPatternSeed);
  constexpr std::int64_t kBatchOfTile = 4;
  w.grid.size = {1, layer.side, layer.side, kBatchOfTile * layer.splits.z};
  w.grid.block = w.matrix.block;
  w.grid.splits = layer.splits;
  w.grid.word_bits = layer.word_bits;
  w.grid.grad_w = w.grid.separate_grad_a = layer.all_passes;
  set_capacities(w.grid, w.matrix.blocks());
  return w;
}

Workload make_encoded(const Layer& layer) {
  Workload w = make_workload(layer);
  const auto executor = sequential();
  w.encode(*executor);
  w.bucket_values.resize(
      static_cast<std::size_t>(w.grid.buckets() * w.buckets.values_per_bucket()));
  w.refill(*executor);
  if (partitioner::decode(w.buckets, std::span<const float>(w.bucket_values)) != w.matrix)
    throw std::runtime_error("decoding gives another matrix");
  return w;
}

}  // namespace tessera::bench
