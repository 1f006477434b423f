// Encoded weights as a file: partitioner::SavedWeights and its parts as fields and lists of an
// archive.
#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/runtime/saved_weights.hpp"

namespace tessera::runtime {
namespace {

using partitioner::SavedBuckets;
using partitioner::SavedLayout;
using partitioner::SavedWeights;
using partitioner::SpillStats;

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

}  // namespace tessera::runtime
