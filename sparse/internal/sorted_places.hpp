#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::sparse::internal {

// Throws the error of a change with a place that it must not have.
[[noreturn]] inline void reject(BlockAt at, const char* what) {
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format("change of a pattern: block row {}, block column {} {}", at.row, at.col, what));
}

// Returns true if the places ascend and are inside the matrix. No early exit, so that lists which
// do ascend are read at the rate of the memory.
template <class T>
bool ascends_inside(std::span<const BlockAt> places, const Csr<T>& m) {
  const auto block_rows = static_cast<std::uint64_t>(m.block_rows()),
             block_cols = static_cast<std::uint64_t>(m.block_cols());
  int illegal = 0;
  std::int64_t before = -1;
  for (const BlockAt at : places) {
    // A negative row or column becomes a huge number.
    illegal |= (std::uint64_t(std::int64_t{at.row}) >= block_rows) |
               (std::uint64_t(std::int64_t{at.col}) >= block_cols);
    const std::int64_t place = std::int64_t{at.row} * m.block_cols() + at.col;
    illegal |= place <= before;
    before = place;
  }
  return illegal == 0;
}

// Places in row-major order: the caller's list if it ascends, else a sorted copy.
class SortedPlaces {
 public:
  template <class T>
  SortedPlaces(const std::vector<BlockAt>& places, const Csr<T>& m) : places_(places) {
    if (ascends_inside(places_, m)) return;
    copy_ = places;
    std::sort(copy_.begin(), copy_.end());
    places_ = copy_;
    for (std::size_t i = 0; i < copy_.size(); ++i) {
      const BlockAt at = copy_[i];
      if (at.row < 0 || at.row >= m.block_rows() || at.col < 0 || at.col >= m.block_cols())
        reject(at, "is outside the matrix");
      if (i > 0 && at == copy_[i - 1]) reject(at, "is given twice");
    }
  }

  SortedPlaces(const SortedPlaces&) = delete;
  SortedPlaces& operator=(const SortedPlaces&) = delete;

  std::size_t size() const { return places_.size(); }
  BlockAt operator[](std::size_t i) const { return places_[i]; }

  // Returns the end of the places in a row, of which `first` is the first one.
  std::size_t end_of_row(std::size_t first, std::int32_t row) const {
    while (first < places_.size() && places_[first].row == row) ++first;
    return first;
  }

 private:
  std::vector<BlockAt> copy_;
  std::span<const BlockAt> places_;
};

}  // namespace tessera::sparse::internal
