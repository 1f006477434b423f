#include "tessera/io/internal/sort_rows.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "tessera/base/int_math.hpp"
#include "tessera/base/radix_sort.hpp"

namespace tessera::io::internal {
namespace {

// Rows that one thread sorts in a turn.
constexpr std::int64_t kRows = 256;

template <class Carried>
struct Entry {
  std::uint32_t col;
  Carried carried;
};

template <class Carried>
class RowSorter {
 public:
  void sort(std::span<std::int32_t> col, std::span<Carried> carried) {
    if (std::is_sorted(col.begin(), col.end())) return;
    const auto most = static_cast<std::uint32_t>(*std::max_element(col.begin(), col.end()));
    const int bits = std::bit_width(most);
    if (carried.empty()) {
      columns_.resize(col.size());
      const std::span<std::int32_t> sorted =
          radix_sort(col, std::span(columns_), bits,
                     [](std::int32_t c) { return static_cast<std::uint64_t>(c); });
      if (sorted.data() != col.data()) std::copy(sorted.begin(), sorted.end(), col.begin());
      return;
    }
    entries_.resize(col.size());
    for (std::size_t i = 0; i < col.size(); ++i)
      entries_[i] = {static_cast<std::uint32_t>(col[i]), carried[i]};
    radix_sort(entries_, scratch_, bits,
               [](const Entry<Carried>& e) { return std::uint64_t{e.col}; });
    for (std::size_t i = 0; i < col.size(); ++i) {
      col[i] = static_cast<std::int32_t>(entries_[i].col);
      carried[i] = entries_[i].carried;
    }
  }

 private:
  std::vector<Entry<Carried>> entries_, scratch_;
  std::vector<std::int32_t> columns_;  // scratch
};

}  // namespace

template <class Carried>
void sort_rows(std::span<const std::int64_t> row_begin, std::span<std::int32_t> col,
               std::span<Carried> carried, Executor& executor) {
  const std::int64_t rows = std::ssize(row_begin) - 1;
  executor.for_each(ceil_div(rows, kRows), [&](std::int64_t part) {
    RowSorter<Carried> sorter;
    for (std::int64_t r = part * kRows; r < std::min(rows, (part + 1) * kRows); ++r) {
      const auto first = static_cast<std::size_t>(row_begin[static_cast<std::size_t>(r)]);
      const std::size_t count =
          static_cast<std::size_t>(row_begin[static_cast<std::size_t>(r) + 1]) - first;
      sorter.sort(col.subspan(first, count),
                  carried.empty() ? carried : carried.subspan(first, count));
    }
  });
}

std::optional<Twins> find_twins(std::span<const std::int64_t> row_begin,
                                std::span<const std::int32_t> col) {
  for (std::size_t r = 0; r + 1 < row_begin.size(); ++r)
    for (std::int64_t k = row_begin[r] + 1; k < row_begin[r + 1]; ++k)
      if (col[static_cast<std::size_t>(k)] == col[static_cast<std::size_t>(k - 1)])
        return Twins{static_cast<std::int64_t>(r), col[static_cast<std::size_t>(k)]};
  return std::nullopt;
}

template <class T>
std::optional<Twins> sort_entries(sparse::Csr<T>& matrix) {
  sort_rows(matrix.row_begin, std::span(matrix.col), std::span(matrix.values), *make_executor(1));
  return find_twins(matrix.row_begin, matrix.col);
}

template std::optional<Twins> sort_entries(sparse::Csr<float>&);
template std::optional<Twins> sort_entries(sparse::Csr<double>&);

template void sort_rows(std::span<const std::int64_t>, std::span<std::int32_t>, std::span<double>,
                        Executor&);
template void sort_rows(std::span<const std::int64_t>, std::span<std::int32_t>,
                        std::span<std::int64_t>, Executor&);

}  // namespace tessera::io::internal
