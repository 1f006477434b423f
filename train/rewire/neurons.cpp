#include "tessera/train/rewire/neurons.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/random.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/train/rewire/drop.hpp"

namespace tessera::train {
namespace {

using sparse::BlockAt;
using sparse::Csr;

std::vector<std::int64_t> counts_of(const std::vector<std::int32_t>& cols, std::int64_t side) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(side));
  for (const std::int32_t col : cols) ++counts[std::size_t(col)];
  return counts;
}

// A pattern that gets places, row by row.
class Growing {
 public:
  Growing(const Csr<float>& pattern, std::uint64_t seed)
      : rows_(std::size_t(pattern.block_rows())),
        per_col_(counts_of(pattern.col, pattern.block_cols())),
        random_(seed) {
    for (std::size_t row = 0; row < rows_.size(); ++row)
      rows_[row].assign(pattern.col.begin() + pattern.row_begin[row],
                        pattern.col.begin() + pattern.row_begin[row + 1]);
  }

  // Adds free places to a row, in the columns that have the fewest.
  void fill_row(std::int32_t row, std::int64_t least) {
    const std::int64_t missing = least - std::ssize(rows_[std::size_t(row)]);
    for (const std::int32_t col : fewest(
             std::ssize(per_col_), missing, [&](std::int32_t other) { return has(row, other); },
             [&](std::int32_t other) { return per_col_[std::size_t(other)]; }))
      add(row, col);
  }

  // Adds free places to a column, in the rows that have the fewest.
  void fill_col(std::int32_t col, std::int64_t least) {
    const std::int64_t missing = least - per_col_[std::size_t(col)];
    for (const std::int32_t row : fewest(
             std::ssize(rows_), missing, [&](std::int32_t other) { return has(other, col); },
             [&](std::int32_t other) { return std::ssize(rows_[std::size_t(other)]); }))
      add(row, col);
  }

  // Returns the places that were added, in row-major order.
  std::vector<BlockAt> added() {
    std::sort(added_.begin(), added_.end());
    return std::move(added_);
  }

 private:
  bool has(std::int32_t row, std::int32_t col) const {
    const std::vector<std::int32_t>& cols = rows_[std::size_t(row)];
    return std::binary_search(cols.begin(), cols.end(), col);
  }

  void add(std::int32_t row, std::int32_t col) {
    std::vector<std::int32_t>& cols = rows_[std::size_t(row)];
    cols.insert(std::upper_bound(cols.begin(), cols.end(), col), col);
    ++per_col_[std::size_t(col)];
    added_.push_back({row, col});
  }

  // Returns `count` of the numbers below `side` that are not taken and have the fewest blocks,
  // equal ones at random.
  template <class Taken, class Blocks>
  std::vector<std::int32_t> fewest(std::int64_t side, std::int64_t count, Taken&& is_taken,
                                   Blocks&& blocks) {
    if (count <= 0) return {};
    std::vector<std::tuple<std::int64_t, std::uint64_t, std::int32_t>> order;
    for (std::int32_t i = 0; i < side; ++i)
      if (!is_taken(i)) order.emplace_back(blocks(i), random_.bits(), i);
    const auto taken = order.begin() + std::min(count, std::ssize(order));
    std::partial_sort(order.begin(), taken, order.end());
    std::vector<std::int32_t> result;
    for (auto one = order.begin(); one != taken; ++one) result.push_back(std::get<2>(*one));
    return result;
  }

  std::vector<std::vector<std::int32_t>> rows_;
  std::vector<std::int64_t> per_col_;
  Random random_;
  std::vector<BlockAt> added_;
};

void check_least(const Csr<float>& pattern, std::int64_t least) {
  const std::int64_t needed = blocks_for_least(pattern.block_rows(), pattern.block_cols(),
                                               std::max(least, std::int64_t(0)));
  if (least >= 0 && needed <= pattern.blocks()) return;
  throw_invalid(
      fmt::format("weights of {} x {}: {} blocks for each row and column need {} blocks, and "
                  "{} are stored; ask for at least 0 and fewer, or for a density of {:.3g}",
                  pattern.rows, pattern.cols, least, needed, pattern.blocks(),
                  double(needed) / double(pattern.block_rows() * pattern.block_cols())));
}

// Returns flags of the rows, or of the columns, that have a block.
std::vector<char> used_rows(const Csr<float>& m) {
  std::vector<char> used(std::size_t(m.block_rows()));
  for (std::size_t row = 0; row < used.size(); ++row)
    used[row] = m.row_begin[row + 1] > m.row_begin[row];
  return used;
}
std::vector<char> used_cols(const Csr<float>& m) {
  std::vector<char> used(std::size_t(m.block_cols()));
  for (const std::int32_t col : m.col) used[std::size_t(col)] = true;
  return used;
}

}  // namespace

std::int64_t blocks_for_least(std::int64_t block_rows, std::int64_t block_cols,
                              std::int64_t least) {
  return std::max(block_rows * std::min(least, block_cols),
                  block_cols * std::min(least, block_rows));
}

Csr<float> with_least_per_neuron(const Csr<float>& pattern, std::int64_t least,
                                 std::uint64_t seed) {
  check_least(pattern, least);
  Growing growing(pattern, seed);
  for (std::int32_t row = 0; row < pattern.block_rows(); ++row) growing.fill_row(row, least);
  for (std::int32_t col = 0; col < pattern.block_cols(); ++col) growing.fill_col(col, least);
  const std::vector<BlockAt> added = growing.added();
  Csr<float> grown = pattern;
  grown.values.assign(std::size_t(pattern.blocks() * pattern.block.area()), 0.0f);
  grown = sparse::with_change(grown, {{}, added});
  Random random(seed ^ 1);
  for (float& value : grown.values) value = float(random.unit());  // who goes is drawn
  Csr<float> made =
      sparse::with_change(grown, {smallest_blocks(grown, std::ssize(added), "weights", least), {}});
  std::fill(made.values.begin(), made.values.end(), 0.0f);
  return made;
}

std::int64_t dead_neurons(const Csr<float>& into, const Csr<float>& out_of, std::int64_t neurons) {
  const std::vector<char> rows = used_rows(into), cols = used_cols(out_of);
  std::int64_t dead = 0;
  for (std::int64_t i = 0; i < neurons; ++i)
    dead += rows[std::size_t(i / into.block.rows)] == 0 ||
            cols[std::size_t(i / out_of.block.cols)] == 0;
  return dead;
}

}  // namespace tessera::train
