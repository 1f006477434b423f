#include "tessera/sparse/internal/coo_sort.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "tessera/sparse/internal/radix_sort.hpp"

namespace tessera::sparse::internal {
namespace {

template <class T>
struct Entry {
  std::uint32_t row, col;
  T value;
};

// Two copies of a part of this many floats take 384 KiB: most second-level caches hold that.
constexpr std::int64_t kPartEntries = 16384;
// More streams than this and the scatter misses the address cache on every store.
constexpr int kMostPartBits = 11;
int bits_of(std::int64_t count) {
  return count <= 1 ? 0 : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count - 1)));
}

// Entries in parts of neighbouring rows: those of part p begin at begin[p].
template <class T>
struct Parts {
  std::unique_ptr<Entry<T>[]> entries;
  std::vector<std::int64_t> begin;
};

template <class T>
Parts<T> scatter(const Coo<T>& m, int shift) {
  Parts<T> parts{std::make_unique_for_overwrite<Entry<T>[]>(m.row.size()), {}};
  parts.begin.assign(std::size_t(((m.rows - 1) >> shift) + 2), 0);
  for (const std::int32_t r : m.row) ++parts.begin[std::size_t(r >> shift) + 1];
  for (std::size_t p = 1; p < parts.begin.size(); ++p) parts.begin[p] += parts.begin[p - 1];
  std::vector<std::int64_t> next = parts.begin;
  for (std::size_t i = 0; i < m.row.size(); ++i)
    parts.entries[std::size_t(next[std::size_t(m.row[i] >> shift)]++)] = {
        std::uint32_t(m.row[i]), std::uint32_t(m.col[i]), m.values[i]};
  return parts;
}

// Appends sorted entries to columns and values and counts them in row_begin[row + 1]; answers
// whether a place comes twice.
template <class T>
bool append(std::span<const Entry<T>> sorted, Csr<T>& result) {
  const std::size_t first = result.col.size();
  result.col.resize(first + sorted.size());
  result.values.resize(first + sorted.size());
  bool has_twins = false;
  std::uint64_t before = ~std::uint64_t{0};
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const Entry<T>& e = sorted[i];
    const std::uint64_t place = std::uint64_t{e.row} << 32 | e.col;
    has_twins |= place == before;
    before = place;
    result.col[first + i] = static_cast<std::int32_t>(e.col);
    result.values[first + i] = e.value;
    ++result.row_begin[std::size_t(e.row) + 1];
  }
  return has_twins;
}

}  // namespace

template <class T>
bool sort_to_csr(const Coo<T>& matrix, Csr<T>& result) {
  result = Csr<T>{matrix.rows, matrix.cols, matrix.block, {}, {}, {}};
  result.row_begin.assign(static_cast<std::size_t>(matrix.rows) + 1, 0);
  result.col.reserve(matrix.col.size());
  result.values.reserve(matrix.col.size());
  const int row_bits = bits_of(matrix.rows);
  const int part_bits =
      std::min({row_bits, kMostPartBits, bits_of(std::ssize(matrix.row) / kPartEntries + 1)});
  const int shift = row_bits - part_bits;
  Parts<T> parts = scatter(matrix, shift);
  std::int64_t largest = 0;
  for (std::size_t p = 1; p < parts.begin.size(); ++p)
    largest = std::max(largest, parts.begin[p] - parts.begin[p - 1]);
  const auto room = std::make_unique_for_overwrite<Entry<T>[]>(std::size_t(largest));
  const int col_bits = bits_of(matrix.cols);
  const std::uint64_t row_mask = (std::uint64_t{1} << shift) - 1;  // rows that share a part
  const auto key_of = [=](const Entry<T>& e) { return (e.row & row_mask) << col_bits | e.col; };
  bool has_twins = false;
  for (std::size_t p = 1; p < parts.begin.size(); ++p) {
    const auto count = static_cast<std::size_t>(parts.begin[p] - parts.begin[p - 1]);
    const std::span<Entry<T>> part(parts.entries.get() + parts.begin[p - 1], count);
    const auto sorted = radix_sort(part, std::span(room.get(), count), shift + col_bits, key_of);
    has_twins |= append(std::span<const Entry<T>>(sorted), result);
  }
  for (std::size_t r = 1; r < result.row_begin.size(); ++r)
    result.row_begin[r] += result.row_begin[r - 1];
  return has_twins;
}

template bool sort_to_csr(const Coo<float>&, Csr<float>&);
template bool sort_to_csr(const Coo<double>&, Csr<double>&);

}  // namespace tessera::sparse::internal
