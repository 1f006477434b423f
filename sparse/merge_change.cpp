#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/internal/sorted_places.hpp"

namespace tessera::sparse {
namespace {

// Merges the lists of a change with a matrix of elements, row by row.
template <class T>
class Merging {
 public:
  Merging(const Csr<T>& m, const PatternChange& change)
      : m_(m), removed_(change.removed, m), added_(change.added, m) {
    result_ = {m.rows, m.cols, m.block, {}, {}, {}};
    result_.row_begin.reserve(m.row_begin.size());
    result_.row_begin.push_back(0);
    result_.col.reserve(m.col.size() + added_.size());
    result_.values.reserve(m.col.size() + added_.size());
  }

  // Returns false if a place cannot be removed or added.
  bool run() {
    for (std::int64_t row = 0; row < m_.rows; ++row) {
      const std::size_t end_removed = removed_.end_of_row(next_removed_, std::int32_t(row));
      const std::size_t end_added = added_.end_of_row(next_added_, std::int32_t(row));
      if (end_removed == next_removed_ && end_added == next_added_) {
        copy_row(row);
      } else if (!merge_row(row, end_removed, end_added)) {
        return false;
      }
      result_.row_begin.push_back(std::ssize(result_.col));
    }
    return true;
  }

  Csr<T>& result() { return result_; }

 private:
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

  void copy_row(std::int64_t row) {
    const std::int64_t begin = m_.row_begin[std::size_t(row)],
                       end = m_.row_begin[std::size_t(row) + 1];
    result_.col.insert(result_.col.end(), m_.col.begin() + begin, m_.col.begin() + end);
    result_.values.insert(result_.values.end(), m_.values.begin() + begin, m_.values.begin() + end);
  }

  // Masks are used where branches would depend on the places, of which every second one would be
  // predicted wrongly. A removed element is written and then overwritten.
  bool merge_row(std::int64_t row, std::size_t end_removed, std::size_t end_added) {
    constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();
    std::int64_t at = m_.row_begin[std::size_t(row)];
    const std::int64_t end = m_.row_begin[std::size_t(row) + 1];
    cols_.resize(std::size_t(end - at) + (end_added - next_added_) + 1);
    values_.resize(cols_.size());
    std::size_t made = 0;
    int illegal = 0;
    while (at < end) {
      const std::int32_t stored = m_.col[std::size_t(at)];
      const std::int32_t removes =
          next_removed_ < end_removed ? removed_[next_removed_].col : kNone;
      const std::int32_t adds = next_added_ < end_added ? added_[next_added_].col : kNone;
      const int is_added = adds < stored, is_removed = (1 - is_added) & int{removes == stored};
      illegal |= int{adds == stored} | int{removes < stored};
      cols_[made] = std::min(adds, stored);
      values_[made] = std::bit_cast<T>(
          static_cast<Bits>(std::bit_cast<Bits>(m_.values[std::size_t(at)]) & Bits(is_added - 1)));
      made += std::size_t(1 - is_removed);
      next_added_ += std::size_t(is_added);
      next_removed_ += std::size_t(is_removed);
      at += 1 - is_added;
    }
    if (illegal != 0 || next_removed_ < end_removed) return false;
    for (; next_added_ < end_added; ++next_added_) {
      cols_[made] = added_[next_added_].col;
      values_[made++] = T{};
    }
    const auto count = static_cast<std::ptrdiff_t>(made);
    result_.col.insert(result_.col.end(), cols_.begin(), cols_.begin() + count);
    result_.values.insert(result_.values.end(), values_.begin(), values_.begin() + count);
    return true;
  }

  const Csr<T>& m_;
  internal::SortedPlaces removed_, added_;
  std::size_t next_removed_ = 0, next_added_ = 0;
  std::vector<std::int32_t> cols_;  // of a row that changes
  std::vector<T> values_;
  Csr<T> result_;
};

}  // namespace

template <class T>
Csr<T> merge_change(const Csr<T>& matrix, const PatternChange& change) {
  TESSERA_ASSERT(matrix.block.is_element());
  constexpr std::size_t kMost = std::numeric_limits<std::int32_t>::max();
  if (matrix.col.size() + change.added.size() <= kMost) {
    Merging<T> merging(matrix, change);
    if (merging.run()) return std::move(merging.result());
  }
  place_change(matrix, change);  // throws, and says which place is wrong
  throw Error(ErrorCode::Internal, "merge_change refused a change that place_change takes");
}

template Csr<float> merge_change(const Csr<float>&, const PatternChange&);
template Csr<double> merge_change(const Csr<double>&, const PatternChange&);

}  // namespace tessera::sparse
