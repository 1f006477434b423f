#include "tessera/planner/internal/pattern_counts.hpp"

#include <algorithm>
#include <numeric>

#include "tessera/base/dims.hpp"
#include "tessera/base/error.hpp"

namespace tessera::planner::internal {

CellRows::CellRows(const std::vector<std::int32_t>& counts, std::int64_t down, std::int64_t across)
    : down_(down), across_(across) {
  const std::int32_t most = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  blocks_of_shorter_.assign(static_cast<std::size_t>(most) + 1, 0);
  longer_.assign(blocks_of_shorter_.size(), 0);
  for (const std::int32_t count : counts) {
    blocks_of_shorter_[std::size_t(count)] += count;
    ++longer_[std::size_t(count)];
  }
  std::partial_sum(blocks_of_shorter_.begin(), blocks_of_shorter_.end(),
                   blocks_of_shorter_.begin());
  std::partial_sum(longer_.begin(), longer_.end(), longer_.begin());
  for (std::int64_t& rows : longer_) rows = std::ssize(counts) - rows;
}

std::int64_t CellRows::at(std::int64_t parts) const {
  TESSERA_ASSERT(parts >= 0);
  // A row has a multiple of `across_` blocks, so it has at most `parts` if it has at most this
  // many blocks of the layer.
  const std::int64_t whole = std::min(parts / across_, std::ssize(longer_) - 1);
  const auto n = static_cast<std::size_t>(whole);
  const std::int64_t longer = longer_[n] == 0 ? 0 : longer_[n] * parts;
  return down_ * (blocks_of_shorter_[n] * across_ + longer);
}

RunningSums::RunningSums(const std::vector<std::int32_t>& counts, std::int64_t parts,
                         std::int64_t times)
    : parts_(parts), times_(times), sums_(counts.size() + 1, 0) {
  for (std::size_t i = 0; i < counts.size(); ++i) sums_[i + 1] = sums_[i] + counts[i];
}

std::int64_t RunningSums::before(std::int64_t row) const {
  TESSERA_ASSERT(row >= 0 && row <= rows());
  const auto i = static_cast<std::size_t>(row / parts_);
  const std::int64_t within = row % parts_;
  const std::int64_t own = within == 0 ? 0 : sums_[i + 1] - sums_[i];
  return times_ * (sums_[i] * parts_ + own * within);
}

std::int64_t RunningSums::fullest_share(std::int64_t parts) const {
  std::int64_t most = 0;
  for (std::int64_t i = 0; i < parts; ++i) {
    const Range share = share_of(rows(), 1, parts, i);
    most = std::max(most, before(share.end) - before(share.begin));
  }
  return most;
}

}  // namespace tessera::planner::internal
