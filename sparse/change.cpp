#include "tessera/sparse/change.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/internal/proven.hpp"

namespace tessera::sparse {
namespace {

[[noreturn]] void reject(BlockAt at, const char* what) {
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format("change of a pattern: block row {}, block column {} {}", at.row, at.col, what));
}

template <class T>
std::vector<BlockAt> sorted(std::vector<BlockAt> places, const Csr<T>& m) {
  if (!std::is_sorted(places.begin(), places.end())) std::sort(places.begin(), places.end());
  for (std::size_t i = 0; i < places.size(); ++i) {
    const BlockAt at = places[i];
    if (at.row < 0 || at.row >= m.block_rows() || at.col < 0 || at.col >= m.block_cols())
      reject(at, "is outside the matrix");
    if (i > 0 && at == places[i - 1]) reject(at, "is given twice");
  }
  return places;
}

// Builds the new matrix row by row from three sorted lists: stored, removed and added blocks.
// Blocks between two changes are copied together.
template <class T>
class Changer {
 public:
  Changer(const Csr<T>& m, const PatternChange& change)
      : m_(m),
        removed_(sorted(change.removed, m)),
        added_(sorted(change.added, m)),
        result_{m.rows, m.cols, m.block, {0}, {}, {}} {
    const std::size_t most = m.col.size() + added_.size();
    result_.col.resize(most);
    result_.values.resize(most * static_cast<std::size_t>(m.block.area()));
    result_.row_begin.reserve(m.row_begin.size());
  }

  Csr<T> run() {
    for (std::int32_t row = 0; row < m_.block_rows(); ++row) {
      change_row(row);
      result_.row_begin.push_back(made_);
    }
    result_.col.resize(static_cast<std::size_t>(made_));
    result_.values.resize(static_cast<std::size_t>(made_ * m_.block.area()));
    return std::move(result_);
  }

 private:
  // Every place of the lists is inside the matrix, so each is met in its row.
  void change_row(std::int32_t row) {
    const auto in_row = [row](const std::vector<BlockAt>& places, std::size_t next) {
      return next < places.size() && places[next].row == row;
    };
    stored_ = m_.row_begin[row];
    const std::int64_t end = m_.row_begin[row + 1];
    for (;;) {
      const bool adds = in_row(added_, next_added_), removes = in_row(removed_, next_removed_);
      if (adds && !(removes && removed_[next_removed_] < added_[next_added_]))
        add(added_[next_added_++], end);
      else if (removes)
        remove(removed_[next_removed_++], end);
      else
        break;
    }
    copy_stored(end);
  }

  void add(BlockAt at, std::int64_t end) {
    const std::int64_t before = position(at, end);
    if (before < end && m_.col[before] == at.col)
      reject(at, "is to be added but is already stored");
    copy_stored(before);
    result_.col[made_++] = at.col;  // its values are 0
  }

  void remove(BlockAt at, std::int64_t end) {
    const std::int64_t stored = position(at, end);
    if (stored == end || m_.col[stored] != at.col) reject(at, "is not stored");
    copy_stored(stored);
    stored_ = stored + 1;
  }

  // Returns the first stored position that is not before a place of the row, which is near.
  std::int64_t position(BlockAt at, std::int64_t end) const {
    std::int64_t k = stored_;
    while (k < end && m_.col[k] < at.col) ++k;
    return k;
  }

  // Copies the stored blocks up to a position.
  void copy_stored(std::int64_t end) {
    const std::int64_t area = m_.block.area(), count = end - stored_;
    std::copy_n(m_.col.begin() + stored_, count, result_.col.begin() + made_);
    std::copy_n(m_.values.begin() + stored_ * area, count * area,
                result_.values.begin() + made_ * area);
    made_ += count;
    stored_ = end;
  }

  const Csr<T>& m_;
  std::vector<BlockAt> removed_, added_;
  std::size_t next_removed_ = 0, next_added_ = 0;
  std::int64_t stored_ = 0, made_ = 0;  // positions in the matrix and in the result
  Csr<T> result_;
};

template <class T>
PatternChange difference_checked(const Csr<T>& before, const Csr<T>& after) {
  if (before.rows != after.rows || before.cols != after.cols || before.block != after.block)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("difference: {} x {} in blocks of {} x {} and {} x {} in blocks of {} "
                            "x {}; the two must agree",
                            before.rows, before.cols, before.block.rows, before.block.cols,
                            after.rows, after.cols, after.block.rows, after.block.cols));
  PatternChange change;
  for (std::int32_t row = 0; row < before.block_rows(); ++row) {
    std::int64_t a = before.row_begin[row], b = after.row_begin[row];
    const std::int64_t a_end = before.row_begin[row + 1], b_end = after.row_begin[row + 1];
    while (a < a_end || b < b_end) {
      if (b == b_end || (a < a_end && before.col[a] < after.col[b]))
        change.removed.push_back({row, before.col[a++]});
      else if (a == a_end || after.col[b] < before.col[a])
        change.added.push_back({row, after.col[b++]});
      else
        ++a, ++b;
    }
  }
  return change;
}

}  // namespace

template <class T>
Csr<T> with_change(const Csr<T>& matrix, const PatternChange& change) {
  check(matrix);
  return Changer<T>(matrix, change).run();
}

template <class T>
CheckedCsr<T> with_change(const CheckedCsr<T>& matrix, const PatternChange& change) {
  return internal::proven(Changer<T>(*matrix, change).run());
}

template <class T>
PatternChange difference(const Csr<T>& before, const Csr<T>& after) {
  check(before);
  check(after);
  return difference_checked(before, after);
}

template <class T>
PatternChange difference(const CheckedCsr<T>& before, const CheckedCsr<T>& after) {
  return difference_checked(*before, *after);
}

template CheckedCsr<float> with_change(const CheckedCsr<float>&, const PatternChange&);
template CheckedCsr<double> with_change(const CheckedCsr<double>&, const PatternChange&);
template PatternChange difference(const CheckedCsr<float>&, const CheckedCsr<float>&);
template PatternChange difference(const CheckedCsr<double>&, const CheckedCsr<double>&);
template Csr<float> with_change(const Csr<float>&, const PatternChange&);
template Csr<double> with_change(const Csr<double>&, const PatternChange&);
template PatternChange difference(const Csr<float>&, const Csr<float>&);
template PatternChange difference(const Csr<double>&, const Csr<double>&);

}  // namespace tessera::sparse
