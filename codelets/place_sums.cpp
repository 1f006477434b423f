#include "tessera/codelets/place_sums.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "tessera/base/half.hpp"
#include "tessera/codelets/internal/fast/vector_kernels.hpp"
#include "tessera/codelets/internal/listed_columns.hpp"

namespace tessera::codelets {
namespace {

static_assert(kMostPlaceBlock == internal::kMostBlockValues);

template <class T, class Index, class Position>
void element_place_sums(const PlaceSums<T, Index, Position>& sums) noexcept {
  constexpr std::size_t kAtOnce = 64;
  std::array<internal::TermRow, kAtOnce> rows;
  const auto* words = reinterpret_cast<const std::byte*>(sums.col);
  const std::size_t count = sums.row_begin.size() - 1;
  for (std::size_t first = 0; first < count; first += kAtOnce) {
    const std::size_t part = std::min(kAtOnce, count - first);
    for (std::size_t i = 0; i < part; ++i) {
      const auto begin = std::int64_t(sums.row_begin[first + i]);
      rows[i] = {std::int64_t(first + i), std::int64_t(sums.row_begin[first + i + 1]) - begin,
                 begin, words + begin * std::int64_t(sizeof(Index))};
    }
    internal::gather_sums(internal::ElementSums<T>{.rows = {rows.data(), part},
                                                   .code = internal::kListedColumns<Index>,
                                                   .values = sums.values,
                                                   .in = sums.in,
                                                   .in_stride = sums.in_stride,
                                                   .out = sums.out,
                                                   .out_stride = sums.out_stride,
                                                   .z = sums.z,
                                                   .replaces = sums.replaces});
  }
}

// True if there are kernels of lists of such indices.
template <class Index>
inline constexpr bool kIsListed = sizeof(Index) == sizeof(std::uint32_t);

// True if a call is for one column of a vector without gaps, which has kernels of its own.
template <class Index, class Sums>
bool is_vector(const Sums& sums) {
  return kIsListed<Index> && sums.z == 1 && sums.in_stride == 1;
}

// Calls run(first row, positions) for parts of the positions [rows + 1] at which rows begin. Some
// of the first row and of the last row may lie outside of `places`, and are left out.
template <class Position, class Run>
void for_each_row_part(std::span<const Position> row_begin, Range places, Run&& run) {
  constexpr std::size_t kAtOnce = 256;
  std::array<std::int64_t, kAtOnce + 1> begin;
  const std::size_t count = row_begin.size() - 1;
  for (std::size_t first = 0; first < count; first += kAtOnce) {
    const auto part = row_begin.subspan(first, std::min(kAtOnce, count - first) + 1);
    std::ranges::copy(part, begin.begin());
    begin.front() = std::max(begin.front(), places.begin);
    begin[part.size() - 1] = std::min(begin[part.size() - 1], places.end);
    run(std::int64_t(first), std::span<const std::int64_t>(begin.data(), part.size()));
  }
}

// Computes sums by the kernels of lists.
template <class T, class Index, class Position>
void listed_place_sums(const PlaceSums<T, Index, Position>& sums) noexcept {
  const Range all{0, std::int64_t(sums.row_begin.back())};
  for_each_row_part(sums.row_begin, all,
                    [&](std::int64_t first, std::span<const std::int64_t> begin) {
                      const internal::ListedSums<T> part{
                          .row_begin = begin,
                          .columns = reinterpret_cast<const std::uint32_t*>(sums.col),
                          .values = sums.values,
                          .in = sums.in,
                          .out = sums.out + first * sums.block.rows * sums.out_stride,
                          .out_stride = sums.out_stride,
                          .replaces = sums.replaces,
                          .in_stride = sums.in_stride,
                          .z = sums.z,
                          .block = sums.block};
                      if (!sums.block.is_element())
                        internal::listed_block_sums(part);
                      else if (is_vector<Index>(sums))
                        internal::listed_sums(part);
                      else
                        internal::listed_row_sums(part);
                    });
}

// Sums over the blocks of one block row.
template <class T, class Index, class Position>
void block_row_sums(const PlaceSums<T, Index, Position>& sums, std::size_t row) noexcept {
  const std::int64_t begin = sums.row_begin[row], end = sums.row_begin[row + 1];
  const std::int64_t first_row = std::int64_t(row) * sums.block.rows;
  bool replaces = sums.replaces;
  const std::span<const Index> blocks(sums.col + begin, std::size_t(end - begin));
  internal::for_each_block_part(
      blocks, sums.block.cols, [&](std::span<const std::uint32_t> columns, std::int64_t first) {
        internal::block_sums(
            internal::BlockSums<T>{.row = first_row,
                                   .columns = columns,
                                   .values = sums.values + (begin + first) * sums.block.area(),
                                   .rows = sums.block.rows,
                                   .cols = sums.block.cols,
                                   .in = sums.in,
                                   .in_stride = sums.in_stride,
                                   .out = sums.out,
                                   .out_stride = sums.out_stride,
                                   .z = sums.z,
                                   .replaces = std::exchange(replaces, false)});
      });
  for (std::int64_t r = first_row; replaces && r < first_row + sums.block.rows; ++r)
    std::fill_n(sums.out + r * sums.out_stride, sums.z, 0.0f);
}

// Adds the terms of some rows of `in`, which TermRow::row names.
template <class T, class Index>
void scatter_rows(const ScatteredPlaces<T, Index>& places,
                  std::span<const internal::TermRow> rows) noexcept {
  internal::scatter_sums(internal::ElementSums<T>{.rows = rows,
                                                  .code = internal::kListedColumns<Index>,
                                                  .values = places.values,
                                                  .in = places.in,
                                                  .in_stride = places.in_stride,
                                                  .out = places.out,
                                                  .out_stride = places.out_stride,
                                                  .z = places.z});
}

// Calls row_of(n) for n in [0, count), and adds those rows, some at once.
template <class T, class Index, class RowOf>
void scatter_all(const ScatteredPlaces<T, Index>& places, std::int64_t count,
                 RowOf&& row_of) noexcept {
  constexpr std::int64_t kAtOnce = 64;
  std::array<internal::TermRow, kAtOnce> rows;
  if (places.z == 0) return;
  for (std::int64_t first = 0; first < count; first += kAtOnce) {
    const std::int64_t part = std::min(kAtOnce, count - first);
    for (std::int64_t n = 0; n < part; ++n) rows[std::size_t(n)] = row_of(first + n);
    scatter_rows(places, {rows.data(), std::size_t(part)});
  }
}

// Adds the places i of columns that begin at these positions, the first of which is `first`, to one
// column of sums, from a vector without gaps.
template <class T, class Index, class Position>
void scatter_vector(const ScatteredPlaces<T, Index>& places, std::span<const Position> begin,
                    std::int64_t first, Range i) noexcept {
  for_each_row_part(begin, i, [&](std::int64_t more, std::span<const std::int64_t> part) {
    internal::listed_scatter(
        internal::ListedSums<T>{.row_begin = part,
                                .columns = reinterpret_cast<const std::uint32_t*>(places.row),
                                .values = places.values,
                                .in = places.in + first + more,
                                .out = places.out,
                                .out_stride = places.out_stride});
  });
}

}  // namespace

template <class T, class Index>
void scatter_places(const ScatteredPlaces<T, Index>& places, const Index* col, Range i) noexcept {
  scatter_all(places, i.size(), [&](std::int64_t n) {
    const std::int64_t place = i.begin + n;
    const auto* word = reinterpret_cast<const std::byte*>(places.row + place);
    return internal::TermRow{std::int64_t(col[place]), 1, place, word};
  });
}

template <class T, class Index, class Position>
void scatter_columns(const ScatteredPlaces<T, Index>& places, std::span<const Position> begin,
                     Range i) noexcept {
  if (i.size() == 0) return;
  const auto column_of = [&](std::int64_t place) {
    return std::ranges::upper_bound(begin, Position(place)) - begin.begin() - 1;
  };
  const std::int64_t first = column_of(i.begin), count = column_of(i.end - 1) + 1 - first;
  const auto own = begin.subspan(std::size_t(first), std::size_t(count) + 1);
  if (is_vector<Index>(places)) return scatter_vector(places, own, first, i);
  scatter_all(places, count, [&](std::int64_t n) {
    const std::int64_t from = std::max(std::int64_t(own[std::size_t(n)]), i.begin);
    const std::int64_t end = std::min(std::int64_t(own[std::size_t(n) + 1]), i.end);
    const auto* words = reinterpret_cast<const std::byte*>(places.row + from);
    return internal::TermRow{first + n, end - from, from, words};
  });
}

bool sums_blocks_in_lanes(BlockShape block) {
  return block.cols == 4 || block.cols == 8 || block.cols % 16 == 0;
}

template <class T, class Index, class Position>
void place_sums(const PlaceSums<T, Index, Position>& sums) noexcept {
  if (sums.z == 0) return;
  if (sums.block.is_element())
    return kIsListed<Index> && (sums.z > 1 || is_vector<Index>(sums)) ? listed_place_sums(sums)
                                                                      : element_place_sums(sums);
  if (is_vector<Index>(sums) && sums_blocks_in_lanes(sums.block)) return listed_place_sums(sums);
  for (std::size_t row = 0; row + 1 < sums.row_begin.size(); ++row) block_row_sums(sums, row);
}

#define TESSERA_PLACE_SUMS(T)                                                                \
  template void scatter_places(const ScatteredPlaces<T, std::int32_t>&, const std::int32_t*, \
                               Range) noexcept;                                              \
  template void scatter_places(const ScatteredPlaces<T, std::int64_t>&, const std::int64_t*, \
                               Range) noexcept;                                              \
  template void scatter_columns(const ScatteredPlaces<T, std::int32_t>&,                     \
                                std::span<const std::int32_t>, Range) noexcept;              \
  template void scatter_columns(const ScatteredPlaces<T, std::int32_t>&,                     \
                                std::span<const std::int64_t>, Range) noexcept;              \
  template void scatter_columns(const ScatteredPlaces<T, std::int64_t>&,                     \
                                std::span<const std::int64_t>, Range) noexcept;              \
  template void place_sums(const PlaceSums<T, std::int32_t, std::int32_t>&) noexcept;        \
  template void place_sums(const PlaceSums<T, std::int32_t, std::int64_t>&) noexcept;        \
  template void place_sums(const PlaceSums<T, std::int64_t, std::int64_t>&) noexcept;
TESSERA_PLACE_SUMS(float)
TESSERA_PLACE_SUMS(Half)
TESSERA_PLACE_SUMS(BFloat16)
#undef TESSERA_PLACE_SUMS

}  // namespace tessera::codelets
