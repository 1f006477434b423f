#include "tessera/partitioner/saved_weights.hpp"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/partitioner/internal/record_list.hpp"

namespace tessera::partitioner {
std::string to_text(const TileGrid& g) {
  return fmt::format(
      "{} groups, {} outputs, {} inputs, a batch of {} in grains of {}; {} x {} x {} x {} parts; "
      "{}, blocks of {} x {}; {} workers; words of {} bits{}{}; buckets of {} words, {} GradA "
      "words and {} blocks",
      g.size.g, g.size.x, g.size.y, g.size.z, g.z_grain, g.splits.g, g.splits.x, g.splits.y,
      g.splits.z, to_string(g.data_type), g.block.rows, g.block.cols, g.workers, g.word_bits,
      g.grad_w ? ", tables of GradW" : "", g.separate_grad_a ? ", GradA buckets" : "", g.meta_words,
      g.grad_a_words, g.blocks);
}

SavedBuckets saved(const Buckets& buckets) {
  return {.meta = buckets.meta, .grad_a_meta = buckets.grad_a_meta, .stats = buckets.stats};
}

Buckets restored(const TileGrid& grid, const SavedBuckets& saved, const sparse::Csr<float>& pattern,
                 Executor& executor) {
  Buckets buckets{.grid = grid,
                  .meta = saved.meta,
                  .grad_a_meta = saved.grad_a_meta,
                  .source = {},
                  .travel = {},
                  .stats = saved.stats};
  const std::int64_t area = grid.block.area(), slots = grid.buckets() * grid.blocks;
  // Every value is the number of its slot, so the decoded matrix says where its blocks are.
  std::vector<double> numbers(std::size_t(slots * area));
  std::iota(numbers.begin(), numbers.end(), 0.0);
  const sparse::Csr<double> matrix = decode(buckets, std::span<const double>(numbers), executor);
  if (matrix.rows != pattern.rows || matrix.cols != pattern.cols || matrix.block != pattern.block ||
      matrix.row_begin != pattern.row_begin || matrix.col != pattern.col)
    throw Error(ErrorCode::BadInput,
                "the words of the buckets hold another pattern than the file names; encode the "
                "weights again");
  buckets.source.assign(std::size_t(slots), -1);
  for (std::int64_t b = 0; b < matrix.blocks(); ++b)
    buckets.source[std::size_t(std::int64_t(matrix.values[std::size_t(b * area)]) / area)] =
        std::int32_t(b);
  buckets.travel =
      std::visit([&](const auto& words) { return internal::travel_of(grid, words); }, buckets.meta);
  const SpillStats& stats = buckets.stats;
  if (stats.blocks != matrix.blocks() || stats.moved_blocks > stats.blocks ||
      (stats.moved_blocks == 0) != buckets.travel.stays_home())
    throw Error(ErrorCode::BadInput,
                fmt::format("the statistics say that {} of {} blocks moved, but the words have {} "
                            "blocks, {}",
                            stats.moved_blocks, stats.blocks, matrix.blocks(),
                            buckets.travel.stays_home() ? "all at home" : "not all at home"));
  return buckets;
}

}  // namespace tessera::partitioner
