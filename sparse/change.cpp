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
  std::sort(places.begin(), places.end());
  for (std::size_t i = 0; i < places.size(); ++i) {
    const BlockAt at = places[i];
    if (at.row < 0 || at.row >= m.block_rows() || at.col < 0 || at.col >= m.block_cols())
      reject(at, "is outside the matrix");
    if (i > 0 && at == places[i - 1]) reject(at, "is given twice");
  }
  return places;
}

// Builds the new matrix row by row from three sorted lists: stored, removed and added blocks.
template <class T>
class Changer {
 public:
  Changer(const Csr<T>& m, const PatternChange& change)
      : m_(m),
        removed_(sorted(change.removed, m)),
        added_(sorted(change.added, m)),
        result_{m.rows, m.cols, m.block, {0}, {}, {}} {
    const std::size_t most = m.col.size() + added_.size();
    result_.col.reserve(most);
    result_.values.reserve(most * static_cast<std::size_t>(m.block.area()));
    result_.row_begin.reserve(m.row_begin.size());
  }

  Csr<T> run() {
    for (std::int32_t row = 0; row < m_.block_rows(); ++row) {
      for (std::int64_t k = m_.row_begin[row]; k < m_.row_begin[row + 1]; ++k) {
        add_before({row, m_.col[k]});
        if (is_removed({row, m_.col[k]})) continue;
        const auto from = m_.values.begin() + k * m_.block.area();
        result_.col.push_back(m_.col[k]);
        result_.values.insert(result_.values.end(), from, from + m_.block.area());
      }
      add_before({row + 1, 0});
      result_.row_begin.push_back(result_.blocks());
    }
    if (next_removed_ < removed_.size()) reject(removed_[next_removed_], "is not stored");
    return std::move(result_);
  }

 private:
  void add_before(BlockAt stored) {
    for (; next_added_ < added_.size() && added_[next_added_] < stored; ++next_added_) {
      result_.col.push_back(added_[next_added_].col);
      result_.values.resize(result_.values.size() + static_cast<std::size_t>(m_.block.area()));
    }
  }

  bool is_removed(BlockAt stored) {
    if (next_added_ < added_.size() && added_[next_added_] == stored)
      reject(stored, "is to be added but is already stored");
    if (next_removed_ == removed_.size() || stored < removed_[next_removed_]) return false;
    if (removed_[next_removed_] < stored) reject(removed_[next_removed_], "is not stored");
    ++next_removed_;
    return true;
  }

  const Csr<T>& m_;
  std::vector<BlockAt> removed_, added_;
  std::size_t next_removed_ = 0, next_added_ = 0;
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
