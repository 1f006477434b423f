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
namespace {

constexpr io::Archive::Bounds kLines{0, std::numeric_limits<std::int32_t>::max()},
    kSides{1, kLines.most}, kGroups{1, 1 << 20};

void describe(io::Archive& archive, sparse::Csr<float>& pattern) {
  archive.whole("rows", pattern.rows, kLines);
  archive.whole("cols", pattern.cols, kLines);
  archive.whole("block_rows", pattern.block.rows, kSides);
  archive.whole("block_cols", pattern.block.cols, kSides);
  archive.list("row_begin", pattern.row_begin, {pattern.block_rows() + 1});
  archive.list("col", pattern.col);
}

void describe(io::Archive& archive, SavedBuckets& buckets) {
  SpillStats& s = buckets.stats;
  std::vector<std::int64_t> statistics;
  std::int64_t* const of[] = {&s.blocks,
                              &s.moved_blocks,
                              &s.records,
                              &s.fullest_words,
                              &s.fullest_blocks,
                              &s.fullest_grad_a_words,
                              &s.steps,
                              &s.greedy_steps,
                              &s.lower_bound_steps,
                              &s.travel,
                              &s.cut_rows,
                              &s.load.value,
                              &s.uneven_load.value};
  for (const std::int64_t* const number : of) statistics.push_back(*number);
  archive.list("statistics", statistics, {std::ssize(of)});
  for (std::size_t i = 0; i < statistics.size(); ++i)
    if ((*of[i] = statistics[i]) < 0)
      archive.refuse(fmt::format("a statistic of the buckets is {}", statistics[i]));
  bool are_wide = buckets.meta.index() == 1;
  archive.flag("wide_words", are_wide);
  if (archive.is_read() && are_wide)
    buckets.meta = buckets.grad_a_meta = std::vector<std::uint32_t>();
  std::visit([&](auto& words) { archive.list("words", words); }, buckets.meta);
  std::visit([&](auto& words) { archive.list("grad_a_words", words); }, buckets.grad_a_meta);
}

void describe(io::Archive& archive, DataType type, std::vector<std::byte>& values) {
  with_type(type, [&]<class T>(T) {
    std::vector<T> numbers(values.size() / sizeof(T));
    if (!numbers.empty()) std::memcpy(numbers.data(), values.data(), numbers.size() * sizeof(T));
    archive.list("values", numbers);
    const auto bytes = std::as_bytes(std::span(numbers));
    values.assign(bytes.begin(), bytes.end());
  });
}

}  // namespace

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

void describe(io::Archive& archive, SavedWeights& weights) {
  std::string type = to_string(weights.type);
  archive.text("type", type);
  try {
    weights.type = parse_data_type(type);
  } catch (const Error& error) {
    archive.refuse(error.what());
  }
  archive.items("group", weights.patterns, kGroups,
                [&](sparse::Csr<float>& pattern) { describe(archive, pattern); });
  const std::int64_t groups = std::ssize(weights.patterns);
  archive.items("layout", weights.layouts, {1, 2}, [&](SavedLayout& layout) {
    archive.text("grid", layout.grid);
    archive.items("group", layout.groups, {groups, groups},
                  [&](SavedBuckets& buckets) { describe(archive, buckets); });
  });
  weights.values.resize(std::size_t(groups));
  for (std::int64_t g = 0; g < groups; ++g)
    archive.within(fmt::format("group{}", g + 1),
                   [&] { describe(archive, weights.type, weights.values[std::size_t(g)]); });
}

}  // namespace tessera::partitioner
