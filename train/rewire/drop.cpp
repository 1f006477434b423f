#include "tessera/train/rewire/drop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/select.hpp"

namespace tessera::train {
namespace {

sparse::BlockAt block_at(const sparse::Csr<float>& m, std::int64_t position) {
  const auto row = std::upper_bound(m.row_begin.begin(), m.row_begin.end(), position) - 1;
  return {std::int32_t(row - m.row_begin.begin()), m.col[std::size_t(position)]};
}

float block_sum(const float* values, std::int64_t area) {
  double sum = 0;
  for (std::int64_t i = 0; i < area; ++i) sum += std::abs(double(values[i]));
  return float(std::min(sum, double(std::numeric_limits<float>::max())));
}

void require_finite(const sparse::Csr<float>& m, std::string_view name) {
  bool finite = true;
  for (const float v : m.values) finite &= std::abs(v) <= std::numeric_limits<float>::max();
  if (finite) return;
  const auto bad =
      std::find_if(m.values.begin(), m.values.end(), [](float v) { return !std::isfinite(v); });
  const sparse::BlockAt at = block_at(m, (bad - m.values.begin()) / m.block.area());
  throw Error(ErrorCode::BadInput,
              fmt::format("drop of blocks: {}: the value in block row {}, block column {} is {}; "
                          "values must be finite",
                          name, at.row, at.col, *bad));
}

void require_least(std::int64_t least) {
  if (least < 0)
    throw_invalid(
        fmt::format("drop of blocks: {} blocks for each row and column; it must be at "
                    "least 0",
                    least));
}

// Returns the sum of |values| of each block.
std::vector<float> sums_of(const sparse::Csr<float>& weights) {
  const std::int64_t area = weights.block.area();
  std::vector<float> sums(weights.col.size());
  for (std::size_t i = 0; i < sums.size(); ++i)
    sums[i] = area == 1 ? std::abs(weights.values[i])
                        : block_sum(weights.values.data() + std::int64_t(i) * area, area);
  return sums;
}

// Sets the flags of the `least` largest of these positions, which it reorders.
void keep_largest(std::span<std::int64_t> positions, const std::vector<float>& sums,
                  std::int64_t least, std::vector<char>& kept) {
  const auto is_larger = [&](std::int64_t a, std::int64_t b) {
    const float first = sums[std::size_t(a)], second = sums[std::size_t(b)];
    return first != second ? first > second : a > b;
  };
  const auto count = std::min(least, std::ssize(positions));
  if (count < std::ssize(positions))
    std::nth_element(positions.begin(), positions.begin() + count, positions.end(), is_larger);
  for (std::int64_t i = 0; i < count; ++i) kept[std::size_t(positions[std::size_t(i)])] = 1;
}

// Returns the positions of blocks, column after column, and where each column begins among them.
std::pair<std::vector<std::int64_t>, std::vector<std::size_t>> by_columns(
    const sparse::Csr<float>& m) {
  std::vector<std::size_t> begin(std::size_t(m.block_cols()) + 1);
  for (const std::int32_t col : m.col) ++begin[std::size_t(col) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<std::int64_t> positions(m.col.size());
  std::vector<std::size_t> next = begin;
  for (std::size_t i = 0; i < m.col.size(); ++i)
    positions[next[std::size_t(m.col[i])]++] = std::int64_t(i);
  return {std::move(positions), std::move(begin)};
}

std::vector<std::int64_t> positions_of_smallest(const sparse::Csr<float>& weights, std::int64_t k,
                                                const std::vector<char>& kept) {
  if (weights.block.is_element() && kept.empty())
    return tessera::smallest(weights.blocks(), k, [&](std::int64_t i) {
      return std::abs(weights.values[std::size_t(i)]);
    });
  const std::vector<float> sums = sums_of(weights);
  if (kept.empty())
    return tessera::smallest(std::ssize(sums), k,
                             [&](std::int64_t i) { return sums[std::size_t(i)]; });
  std::vector<std::int64_t> others;
  for (std::int64_t i = 0; i < std::ssize(kept); ++i)
    if (kept[std::size_t(i)] == 0) others.push_back(i);
  std::vector<std::int64_t> positions =
      tessera::smallest(std::ssize(others), std::min(k, std::ssize(others)),
                        [&](std::int64_t i) { return sums[std::size_t(others[std::size_t(i)])]; });
  for (std::int64_t& position : positions) position = others[std::size_t(position)];
  return positions;
}

}  // namespace

std::vector<char> kept_by_neurons(const sparse::Csr<float>& weights, std::int64_t least) {
  require_least(least);
  if (least == 0) return {};
  const std::vector<float> sums = sums_of(weights);
  std::vector<char> kept(sums.size());
  auto [positions, begin] = by_columns(weights);
  for (std::size_t col = 0; col + 1 < begin.size(); ++col)
    keep_largest(std::span(positions).subspan(begin[col], begin[col + 1] - begin[col]), sums, least,
                 kept);
  std::iota(positions.begin(), positions.end(), std::int64_t(0));
  for (std::size_t row = 0; row + 1 < weights.row_begin.size(); ++row)
    keep_largest(std::span(positions).subspan(
                     std::size_t(weights.row_begin[row]),
                     std::size_t(weights.row_begin[row + 1] - weights.row_begin[row])),
                 sums, least, kept);
  return kept;
}

std::vector<sparse::BlockAt> smallest_blocks(const sparse::Csr<float>& weights, std::int64_t k,
                                             std::string_view name, std::int64_t least) {
  if (k < 0 || k > weights.blocks())
    throw_invalid(fmt::format("drop of blocks: {}: {} of {} blocks; the number must be in 0..{}",
                              name, k, weights.blocks(), weights.blocks()));
  require_least(least);
  require_finite(weights, name);
  return smallest_others(weights, k, kept_by_neurons(weights, least));
}

std::vector<sparse::BlockAt> smallest_others(const sparse::Csr<float>& weights, std::int64_t k,
                                             const std::vector<char>& kept) {
  if (k == 0) return {};
  std::vector<sparse::BlockAt> dropped;
  dropped.reserve(std::size_t(k));
  std::int32_t row = 0;
  for (const std::int64_t position : positions_of_smallest(weights, k, kept)) {
    while (weights.row_begin[std::size_t(row) + 1] <= position) ++row;
    dropped.push_back({row, weights.col[std::size_t(position)]});
  }
  return dropped;
}

}  // namespace tessera::train
