#include "tessera/train/rewire/carry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera::train {
namespace {

// A number with the order of places.
std::int64_t place_of(sparse::BlockAt at) { return (std::int64_t{at.row} << 32) + at.col; }

}  // namespace

sparse::PatternChange net_change(std::span<const sparse::BlockAt> dropped,
                                 std::span<const sparse::BlockAt> grown) {
  sparse::PatternChange change{std::vector<sparse::BlockAt>(dropped.size() + 1),
                               std::vector<sparse::BlockAt>(grown.size() + 1)};
  std::size_t drop = 0, grow = 0, removed = 0, added = 0;
  // The lists take turns at random, so there are no branches that depend on the places: what is not
  // taken is overwritten.
  while (drop < dropped.size() && grow < grown.size()) {
    const sparse::BlockAt a = dropped[drop], b = grown[grow];
    const std::int64_t place_a = place_of(a), place_b = place_of(b);
    change.removed[removed] = a;
    change.added[added] = b;
    removed += place_a < place_b;
    added += place_b < place_a;
    drop += place_a <= place_b;
    grow += place_b <= place_a;
  }
  change.removed.resize(removed);
  change.added.resize(added);
  change.removed.insert(change.removed.end(), dropped.begin() + std::ptrdiff_t(drop),
                        dropped.end());
  change.added.insert(change.added.end(), grown.begin() + std::ptrdiff_t(grow), grown.end());
  return change;
}

ValueState<float> carried_state(const sparse::Csr<float>& before,
                                std::span<const sparse::PlacedBlock> change,
                                const ValueState<float>& state) {
  const std::vector<std::int32_t> positions = sparse::positions_before(change, before.blocks());
  ValueState<float> carried{.steps = state.steps, .arrays = {}};
  for (const std::vector<float>& array : state.arrays) {
    carried.arrays.emplace_back(positions.size() * std::size_t(before.block.area()));
    sparse::carry_list<float>(positions, before.block.area(), array, carried.arrays.back());
  }
  return carried;
}

EverActive::EverActive(const sparse::Csr<float>& pattern)
    : block_rows_(pattern.block_rows()),
      block_cols_(pattern.block_cols()),
      bits_(std::size_t(ceil_div(block_rows_ * block_cols_, 8))) {
  for (std::int32_t row = 0; row < block_rows_; ++row)
    for (std::int64_t i = pattern.row_begin[row]; i < pattern.row_begin[row + 1]; ++i) {
      const sparse::BlockAt at{row, pattern.col[std::size_t(i)]};
      add({&at, 1});
    }
}

EverActive::EverActive(std::int64_t block_rows, std::int64_t block_cols,
                       std::vector<std::uint8_t> bits)
    : block_rows_(block_rows), block_cols_(block_cols), bits_(std::move(bits)) {
  if (std::ssize(bits_) != ceil_div(block_rows_ * block_cols_, 8))
    throw_invalid(fmt::format("places ever stored: {} bytes for {} x {} blocks; there must be {}",
                              bits_.size(), block_rows_, block_cols_,
                              ceil_div(block_rows_ * block_cols_, 8)));
  for (const std::uint8_t byte : bits_) count_ += std::popcount(byte);
}

void EverActive::add(std::span<const sparse::BlockAt> places) noexcept {
  for (const sparse::BlockAt at : places) {
    const std::int64_t place = at.row * block_cols_ + at.col;
    std::uint8_t& byte = bits_[std::size_t(place / 8)];
    const auto bit = std::uint8_t(1U << (place % 8));
    count_ += (byte & bit) == 0;
    byte = std::uint8_t(byte | bit);
  }
}

}  // namespace tessera::train
