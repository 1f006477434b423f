#include "tessera/train/rewire/drop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/base/error.hpp"
#include "tessera/train/rewire/internal/select.hpp"

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

std::vector<std::int64_t> positions_of_smallest(const sparse::Csr<float>& weights, std::int64_t k) {
  const std::int64_t area = weights.block.area();
  if (area == 1)
    return internal::smallest(weights.blocks(), k, [&](std::int64_t i) {
      return std::abs(weights.values[std::size_t(i)]);
    });
  std::vector<float> sums(weights.col.size());
  for (std::size_t i = 0; i < sums.size(); ++i)
    sums[i] = block_sum(weights.values.data() + std::int64_t(i) * area, area);
  return internal::smallest(std::ssize(sums), k,
                            [&](std::int64_t i) { return sums[std::size_t(i)]; });
}

}  // namespace

std::vector<sparse::BlockAt> smallest_blocks(const sparse::Csr<float>& weights, std::int64_t k,
                                             std::string_view name) {
  if (k < 0 || k > weights.blocks())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("drop of blocks: {}: {} of {} blocks; the number must be in 0..{}",
                            name, k, weights.blocks(), weights.blocks()));
  require_finite(weights, name);
  if (k == 0) return {};
  std::vector<sparse::BlockAt> dropped;
  dropped.reserve(std::size_t(k));
  std::int32_t row = 0;
  for (const std::int64_t position : positions_of_smallest(weights, k)) {
    while (weights.row_begin[std::size_t(row) + 1] <= position) ++row;
    dropped.push_back({row, weights.col[std::size_t(position)]});
  }
  return dropped;
}

}  // namespace tessera::train
