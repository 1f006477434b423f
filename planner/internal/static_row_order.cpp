#include "tessera/planner/internal/static_row_order.hpp"

#include <algorithm>
#include <numeric>

namespace tessera::planner::internal {
namespace {

// Rows whose columns are counted together. Tiles of the plans that gain have two to some ten rows.
constexpr std::int64_t kGroup = 8;

// Places rows one after the other.
class RowChain {
 public:
  explicit RowChain(const BlockPattern& pattern)
      : pattern_(pattern),
        by_column_(transposed(pattern)),
        shared_(std::size_t(pattern.block_rows), 0),
        is_placed_(std::size_t(pattern.block_rows), false),
        in_group_(std::size_t(pattern.block_cols), false) {}

  std::vector<std::int64_t> order() {
    std::vector<std::int64_t> result;
    for (std::int64_t n = 0; n < pattern_.block_rows; ++n) {
      const std::int64_t row = most_similar();
      if (n % kGroup == 0) forget_group();
      place(row);
      result.push_back(row);
    }
    return result;
  }

 private:
  std::int64_t length(std::int64_t row) const {
    return pattern_.row_begin[std::size_t(row) + 1] - pattern_.row_begin[std::size_t(row)];
  }

  // Returns the row with the largest shared part; the first one of equals, empty rows last.
  std::int64_t most_similar() const {
    std::int64_t best = -1, best_shared = -1, best_length = 1;
    for (std::int64_t row = 0; row < pattern_.block_rows; ++row) {
      if (is_placed_[std::size_t(row)]) continue;
      const std::int64_t own = length(row), shared = own == 0 ? -1 : shared_[std::size_t(row)];
      if (best >= 0 && shared * best_length <= best_shared * std::max<std::int64_t>(own, 1))
        continue;
      best = row;
      best_shared = shared;
      best_length = std::max<std::int64_t>(own, 1);
    }
    return best;
  }

  void forget_group() {
    std::ranges::fill(shared_, 0);
    in_group_.assign(in_group_.size(), false);
  }

  void place(std::int64_t row) {
    is_placed_[std::size_t(row)] = true;
    for (auto i = pattern_.row_begin[std::size_t(row)];
         i < pattern_.row_begin[std::size_t(row) + 1]; ++i) {
      const auto column = std::size_t(pattern_.col[std::size_t(i)]);
      if (in_group_[column]) continue;
      in_group_[column] = true;
      for (auto j = by_column_.row_begin[column]; j < by_column_.row_begin[column + 1]; ++j)
        ++shared_[std::size_t(by_column_.col[std::size_t(j)])];
    }
  }

  const BlockPattern& pattern_;
  DerivedPattern by_column_;
  std::vector<std::int32_t> shared_;  // columns of each row that the group has
  std::vector<bool> is_placed_, in_group_;
};

// Returns the distinct columns of all groups of rows.
std::int64_t columns_of_groups(const BlockPattern& pattern,
                               const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> last_group(std::size_t(pattern.block_cols), -1);
  std::int64_t columns = 0;
  for (std::size_t n = 0; n < order.size(); ++n) {
    const auto group = std::int64_t(n) / kGroup;
    const auto row = std::size_t(order[n]);
    for (auto i = pattern.row_begin[row]; i < pattern.row_begin[row + 1]; ++i) {
      std::int64_t& last = last_group[std::size_t(pattern.col[std::size_t(i)])];
      columns += last != group;
      last = group;
    }
  }
  return columns;
}

bool takes_too_long(const BlockPattern& pattern) {
  constexpr std::int64_t kMostRows = std::int64_t{1} << 13, kMostSteps = std::int64_t{1} << 26;
  std::vector<std::int64_t> blocks(std::size_t(pattern.block_cols), 0);
  for (const std::int32_t column : pattern.col) ++blocks[std::size_t(column)];
  std::int64_t steps = 0;
  for (const std::int64_t count : blocks) steps += count * count;
  return pattern.block_rows > kMostRows || steps > kMostSteps;
}

}  // namespace

std::vector<std::int64_t> similar_rows(const BlockPattern& pattern) {
  constexpr double kWorthwhile = 0.98;  // of the columns of all groups
  if (pattern.block_rows < 3 || takes_too_long(pattern)) return {};
  std::vector<std::int64_t> given(std::size_t(pattern.block_rows));
  std::iota(given.begin(), given.end(), std::int64_t{0});
  std::vector<std::int64_t> order = RowChain(pattern).order();
  const auto columns = double(columns_of_groups(pattern, order));
  return columns < kWorthwhile * double(columns_of_groups(pattern, given))
             ? order
             : std::vector<std::int64_t>();
}

DerivedPattern with_row_order(const BlockPattern& pattern, const std::vector<std::int64_t>& order) {
  DerivedPattern result{.block = pattern.block,
                        .block_cols = pattern.block_cols,
                        .row_begin = {0},
                        .col = {},
                        .place = {}};
  for (const std::int64_t row : order) {
    for (auto i = pattern.row_begin[std::size_t(row)]; i < pattern.row_begin[std::size_t(row) + 1];
         ++i) {
      result.col.push_back(pattern.col[std::size_t(i)]);
      result.place.push_back(i);
    }
    result.row_begin.push_back(std::ssize(result.col));
  }
  return result;
}

}  // namespace tessera::planner::internal
