#include "tessera/sparse/change.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
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

// Sets the columns of added blocks and the beginnings of rows.
template <class T>
void move_rows(std::span<const PlacedBlock> change, Csr<T>& m) {
  std::int64_t net = 0;
  std::size_t next = 0;
  for (std::int64_t row = 0; row < m.block_rows(); ++row) {
    for (; next < change.size() && change[next].row == row; ++next) {
      net += change[next].is_added() ? 1 : -1;
      if (change[next].is_added()) m.col[std::size_t(change[next].after)] = change[next].col;
    }
    m.row_begin[std::size_t(row) + 1] += net;
  }
}

// Returns the first position in [first, end) whose column is not below `col`. It is usually near.
std::int64_t position_of(const std::vector<std::int32_t>& cols, std::int64_t first,
                         std::int64_t end, std::int32_t col) {
  std::int64_t step = 1, last = first;
  while (last < end && cols[std::size_t(last)] < col) first = last + 1, last += step, step *= 2;
  return std::lower_bound(cols.begin() + first, cols.begin() + std::min(last, end), col) -
         cols.begin();
}

template <class T>
class Placing {
 public:
  Placing(const Csr<T>& m, const PatternChange& change)
      : m_(m), removed_(sorted(change.removed, m)), added_(sorted(change.added, m)) {
    constexpr std::size_t kMost = std::numeric_limits<std::int32_t>::max();
    if (m.col.size() + added_.size() > kMost)
      throw Error(ErrorCode::LimitExceeded,
                  fmt::format("change of a pattern: {} blocks are stored and {} added; at most {} "
                              "can be stored",
                              m.col.size(), added_.size(), kMost));
    placed_.reserve(removed_.size() + added_.size());
  }

  std::vector<PlacedBlock> run() {
    std::size_t removed = 0, added = 0;
    while (removed < removed_.size() || added < added_.size()) {
      const bool adds = added < added_.size() &&
                        !(removed < removed_.size() && removed_[removed] < added_[added]);
      place(adds ? added_[added++] : removed_[removed++], adds);
    }
    return std::move(placed_);
  }

 private:
  void place(BlockAt at, bool adds) {
    if (at.row != row_) {
      row_ = at.row;
      next_ = m_.row_begin[std::size_t(row_)];
    }
    const std::int64_t end = m_.row_begin[std::size_t(row_) + 1];
    next_ = position_of(m_.col, next_, end, at.col);
    const bool is_stored = next_ < end && m_.col[std::size_t(next_)] == at.col;
    if (adds && is_stored) reject(at, "is to be added but is already stored");
    if (!adds && !is_stored) reject(at, "is not stored");
    const auto before = static_cast<std::int32_t>(next_);
    placed_.push_back({at.row, at.col, before, adds ? before + net_ : -1});
    net_ += adds ? 1 : -1;
    next_ += adds ? 0 : 1;
  }

  const Csr<T>& m_;
  std::vector<BlockAt> removed_, added_;
  std::vector<PlacedBlock> placed_;
  std::int32_t row_ = -1, net_ = 0;  // added less removed blocks so far
  std::int64_t next_ = 0;            // position up to which the row was searched
};

std::int64_t net_of(std::span<const PlacedBlock> change) {
  std::int64_t net = 0;
  for (const PlacedBlock& block : change) net += block.is_added() ? 1 : -1;
  return net;
}

// Calls move(begin, end, shift) for the blocks between two changes, first to last.
template <class Move>
void for_each_stretch(std::span<const PlacedBlock> change, std::int64_t blocks, Move&& move) {
  std::int64_t begin = 0, shift = 0;
  for (const PlacedBlock& block : change) {
    if (begin < block.before) move(begin, std::int64_t{block.before}, shift);
    begin = block.before + (block.is_added() ? 0 : 1);
    shift += block.is_added() ? 1 : -1;
  }
  if (begin < blocks) move(begin, blocks, shift);
}

// Does the same from last to first; `shift` is that of the last stretch.
template <class Move>
void for_each_stretch_backwards(std::span<const PlacedBlock> change, std::int64_t blocks,
                                std::int64_t shift, Move&& move) {
  std::int64_t end = blocks;
  for (auto block = change.rbegin(); block != change.rend(); ++block) {
    const std::int64_t begin = block->before + (block->is_added() ? 0 : 1);
    if (begin < end) move(begin, end, shift);
    shift -= block->is_added() ? 1 : -1;
    end = block->before;
  }
}

// Stretches of a few numbers are copied without a call.
constexpr std::int64_t kShort = 32;

template <class T>
void copy_down(T* numbers, std::int64_t begin, std::int64_t end, std::int64_t shift) {
  if (end - begin >= kShort) {
    std::memmove(numbers + begin + shift, numbers + begin, std::size_t(end - begin) * sizeof(T));
    return;
  }
  for (std::int64_t i = begin; i < end; ++i) numbers[i + shift] = numbers[i];
}

template <class T>
void copy_up(T* numbers, std::int64_t begin, std::int64_t end, std::int64_t shift) {
  if (end - begin >= kShort) {
    std::memmove(numbers + begin + shift, numbers + begin, std::size_t(end - begin) * sizeof(T));
    return;
  }
  for (std::int64_t i = end; i-- > begin;) numbers[i + shift] = numbers[i];
}

template <class T>
Csr<T> apply_change(const Csr<T>& m, const PatternChange& change) {
  const std::vector<PlacedBlock> placed = place_change(m, change);
  const std::int64_t area = m.block.area(), blocks = m.blocks() + net_of(placed);
  Csr<T> result{m.rows, m.cols, m.block, m.row_begin, {}, {}};
  result.col.resize(static_cast<std::size_t>(blocks));
  result.values.resize(static_cast<std::size_t>(blocks * area));
  carry_list<std::int32_t>(placed, 1, m.col, result.col);
  carry_list<T>(placed, area, m.values, result.values);
  move_rows(placed, result);
  return result;
}

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
std::vector<PlacedBlock> place_change(const Csr<T>& matrix, const PatternChange& change) {
  return Placing<T>(matrix, change).run();
}

template <class T>
void carry_list(std::span<const PlacedBlock> change, std::int64_t width, std::span<const T> before,
                std::span<T> after) {
  for_each_stretch(change, std::ssize(before) / std::max<std::int64_t>(width, 1),
                   [&](std::int64_t begin, std::int64_t end, std::int64_t shift) {
                     const T* from = before.data() + begin * width;
                     T* to = after.data() + (begin + shift) * width;
                     const std::int64_t count = (end - begin) * width;
                     if (count >= kShort)
                       std::copy_n(from, count, to);
                     else
                       for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
                   });
  for (const PlacedBlock& block : change)
    if (block.is_added()) std::fill_n(after.data() + block.after * width, width, T{});
}

// A stretch that moves down ends below where a later one begins, and one that moves up begins above
// where an earlier one ends, so no stretch is overwritten before it has moved.
template <class T>
void change_in_place(Csr<T>& m, std::span<const PlacedBlock> change) noexcept {
  const std::int64_t area = m.block.area(), before = m.blocks(), net = net_of(change);
  const auto resize = [&](std::int64_t blocks) {
    m.col.resize(std::size_t(blocks));
    m.values.resize(std::size_t(blocks * area));
  };
  if (net > 0) resize(before + net);
  for_each_stretch(change, before, [&](std::int64_t begin, std::int64_t end, std::int64_t shift) {
    if (shift >= 0) return;
    copy_down(m.col.data(), begin, end, shift);
    copy_down(m.values.data(), begin * area, end * area, shift * area);
  });
  for_each_stretch_backwards(change, before, net,
                             [&](std::int64_t begin, std::int64_t end, std::int64_t shift) {
                               if (shift <= 0) return;
                               copy_up(m.col.data(), begin, end, shift);
                               copy_up(m.values.data(), begin * area, end * area, shift * area);
                             });
  if (net < 0) resize(before + net);
  for (const PlacedBlock& block : change)
    if (block.is_added()) std::fill_n(m.values.data() + block.after * area, area, T{});
  move_rows(change, m);
}

template <class T>
Csr<T> with_change(const Csr<T>& matrix, const PatternChange& change) {
  check(matrix);
  return apply_change(matrix, change);
}

template <class T>
CheckedCsr<T> with_change(const CheckedCsr<T>& matrix, const PatternChange& change) {
  return internal::proven(apply_change(*matrix, change));
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

template std::vector<PlacedBlock> place_change(const Csr<float>&, const PatternChange&);
template std::vector<PlacedBlock> place_change(const Csr<double>&, const PatternChange&);
template void carry_list(std::span<const PlacedBlock>, std::int64_t, std::span<const float>,
                         std::span<float>);
template void carry_list(std::span<const PlacedBlock>, std::int64_t, std::span<const double>,
                         std::span<double>);
template void carry_list(std::span<const PlacedBlock>, std::int64_t, std::span<const std::int32_t>,
                         std::span<std::int32_t>);
template void change_in_place(Csr<float>&, std::span<const PlacedBlock>) noexcept;
template void change_in_place(Csr<double>&, std::span<const PlacedBlock>) noexcept;
template CheckedCsr<float> with_change(const CheckedCsr<float>&, const PatternChange&);
template CheckedCsr<double> with_change(const CheckedCsr<double>&, const PatternChange&);
template PatternChange difference(const CheckedCsr<float>&, const CheckedCsr<float>&);
template PatternChange difference(const CheckedCsr<double>&, const CheckedCsr<double>&);
template Csr<float> with_change(const Csr<float>&, const PatternChange&);
template Csr<double> with_change(const Csr<double>&, const PatternChange&);
template PatternChange difference(const Csr<float>&, const Csr<float>&);
template PatternChange difference(const Csr<double>&, const Csr<double>&);

}  // namespace tessera::sparse
