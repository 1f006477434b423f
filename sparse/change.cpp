#include "tessera/sparse/change.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/internal/proven.hpp"
#include "tessera/sparse/internal/sorted_places.hpp"

namespace tessera::sparse {
namespace {

using internal::reject;
using internal::SortedPlaces;

// Sets the columns of added blocks and the beginnings of rows.
template <class T>
void move_rows(std::span<const PlacedBlock> change, Csr<T>& m) {
  std::int64_t net = 0;
  std::size_t next = 0;
  std::int32_t unused = 0;  // removed blocks write here, without a branch
  for (std::int64_t row = 0; row < m.block_rows(); ++row) {
    for (; next < change.size() && change[next].row == row; ++next) {
      const PlacedBlock& block = change[next];
      net += 2 * int{block.is_added()} - 1;
      *(block.is_added() ? m.col.data() + block.after : &unused) = block.col;
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

// Finds the positions of a change's blocks, row by row.
template <class T>
class Placing {
 public:
  Placing(const Csr<T>& m, const PatternChange& change)
      : m_(m), removed_(change.removed, m), added_(change.added, m) {
    constexpr std::size_t kMost = std::numeric_limits<std::int32_t>::max();
    if (m.col.size() + added_.size() > kMost)
      throw Error(ErrorCode::LimitExceeded,
                  fmt::format("change of a pattern: {} blocks are stored and {} added; at most {} "
                              "can be stored",
                              m.col.size(), added_.size(), kMost));
    placed_.resize(removed_.size() + added_.size() + 1);  // merge_row() writes one more
    to_ = placed_.data();
  }

  std::vector<PlacedBlock> run() {
    while (first_removed_ < removed_.size() || first_added_ < added_.size()) {
      row_ = first_removed_ < removed_.size() ? removed_[first_removed_].row
                                              : added_[first_added_].row;
      if (first_added_ < added_.size()) row_ = std::min(row_, added_[first_added_].row);
      end_removed_ = removed_.end_of_row(first_removed_, row_);
      end_added_ = added_.end_of_row(first_added_, row_);
      place_row();
      first_removed_ = end_removed_;
      first_added_ = end_added_;
    }
    placed_.pop_back();
    return std::move(placed_);
  }

 private:
  // Searching costs more than walking over the row if many of its blocks change.
  void place_row() {
    constexpr std::int64_t kFewestShare = 8;
    const auto changes = std::int64_t(end_removed_ - first_removed_ + end_added_ - first_added_);
    const std::int64_t stored =
        m_.row_begin[std::size_t(row_) + 1] - m_.row_begin[std::size_t(row_)];
    if (kFewestShare * changes < stored || !merge_row()) search_row();
  }

  // Walks over the row without branches that depend on the places, of which every second one would
  // be predicted wrongly. Returns false, and leaves nothing done, if a block cannot be removed or
  // added.
  bool merge_row() {
    constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();
    std::int64_t at = m_.row_begin[std::size_t(row_)];
    const std::int64_t end = m_.row_begin[std::size_t(row_) + 1];
    std::size_t removed = first_removed_, added = first_added_;
    std::int32_t net = net_;
    PlacedBlock* to = to_;
    int illegal = 0;
    while (at < end) {
      const std::int32_t stored = m_.col[std::size_t(at)];
      const std::int32_t removes = removed < end_removed_ ? removed_[removed].col : kNone;
      const std::int32_t adds = added < end_added_ ? added_[added].col : kNone;
      // Operators without short circuits, which would be branches.
      const int is_added = adds < stored, is_removed = (1 - is_added) & (removes == stored);
      illegal |= (adds == stored) | (removes < stored);
      const auto before = static_cast<std::int32_t>(at);
      *to = {row_, std::min(adds, stored), before, (before + net) | (is_added - 1)};
      to += is_added + is_removed;
      net += is_added - is_removed;
      added += std::size_t(is_added);
      removed += std::size_t(is_removed);
      at += 1 - is_added;
    }
    if (illegal != 0 || removed < end_removed_) return false;
    for (; added < end_added_; ++added, ++net) {
      const auto before = static_cast<std::int32_t>(end);
      *to++ = {row_, added_[added].col, before, before + net};
    }
    to_ = to;
    net_ = net;
    return true;
  }

  void search_row() {
    next_ = m_.row_begin[std::size_t(row_)];
    std::size_t removed = first_removed_, added = first_added_;
    while (removed < end_removed_ || added < end_added_) {
      const bool adds = added < end_added_ &&
                        !(removed < end_removed_ && removed_[removed].col < added_[added].col);
      search(adds ? added_[added++] : removed_[removed++], adds);
    }
  }

  void search(BlockAt at, bool adds) {
    const std::int64_t end = m_.row_begin[std::size_t(row_) + 1];
    next_ = position_of(m_.col, next_, end, at.col);
    const bool is_stored = next_ < end && m_.col[std::size_t(next_)] == at.col;
    if (adds && is_stored) reject(at, "is to be added but is already stored");
    if (!adds && !is_stored) reject(at, "is not stored");
    const auto before = static_cast<std::int32_t>(next_);
    *to_++ = {at.row, at.col, before, adds ? before + net_ : -1};
    net_ += adds ? 1 : -1;
    next_ += adds ? 0 : 1;
  }

  const Csr<T>& m_;
  SortedPlaces removed_, added_;
  std::vector<PlacedBlock> placed_;
  PlacedBlock* to_ = nullptr;  // the next one to write
  std::int32_t net_ = 0;       // added less removed blocks so far

  // The row that is placed, and its parts of the two lists:
  std::int32_t row_ = 0;
  std::size_t first_removed_ = 0, end_removed_ = 0, first_added_ = 0, end_added_ = 0;
  std::int64_t next_ = 0;  // position up to which the row was searched
};

std::int64_t net_of(std::span<const PlacedBlock> change) {
  std::int64_t net = 0;
  for (const PlacedBlock& block : change) net += 2 * int{block.is_added()} - 1;
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

// Copies a stretch of `count` numbers, of which `from` has `left` up to its end: eight at once
// without a loop, since most stretches are shorter if many elements change. Those that are too many
// are overwritten later; `to` has room for them.
constexpr std::int64_t kStretch = 8;
template <class T>
void copy_stretch(const T* from, std::int64_t left, std::int64_t count, T* to) {
  if (left < kStretch || count > kStretch)
    std::copy_n(from, count, to);  // of a matrix without elements, `from` is null
  else
    std::memcpy(to, from, std::size_t(kStretch) * sizeof(T));
}

// Carries columns and values of elements to `result`, whose rows are still those of `m`.
template <class T>
void carry_elements(const Csr<T>& m, std::span<const PlacedBlock> change, std::int64_t elements,
                    Csr<T>& result) {
  result.col.resize(std::size_t(elements + kStretch));
  result.values.resize(std::size_t(elements + kStretch));
  const std::int64_t stored = m.blocks();
  std::int64_t from = 0, to = 0;
  const auto carry = [&](std::int64_t end) {
    copy_stretch(m.col.data() + from, stored - from, end - from, result.col.data() + to);
    copy_stretch(m.values.data() + from, stored - from, end - from, result.values.data() + to);
    to += end - from;
  };
  for (const PlacedBlock& element : change) {
    carry(element.before);
    const int is_added = element.is_added();
    result.values[std::size_t(to)] = T{};  // overwritten if the element is removed
    to += is_added;
    from = element.before + 1 - is_added;
  }
  carry(stored);
  result.col.resize(std::size_t(elements));
  result.values.resize(std::size_t(elements));
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

// Stretches between changes are short if many blocks change, so kAtOnce positions are written for
// each without a loop; those that are too many are overwritten.
std::vector<std::int32_t> positions_before(std::span<const PlacedBlock> change,
                                           std::int64_t blocks) {
  constexpr std::int32_t kAtOnce = 8;
  const auto after = std::size_t(blocks + net_of(change));
  std::vector<std::int32_t> positions(after + kAtOnce + 1);
  std::int32_t from = 0;
  std::int32_t* to = positions.data();
  const auto add_stretch = [&](std::int32_t end) {
    for (std::int32_t i = 0; i < kAtOnce; ++i) to[i] = from + i;
    for (std::int32_t i = kAtOnce; i < end - from; ++i) to[i] = from + i;
    to += end - from;
  };
  for (const PlacedBlock& block : change) {
    add_stretch(block.before);
    const int is_added = block.is_added();
    *to = -1;  // overwritten if the block is removed
    to += is_added;
    from = block.before + 1 - is_added;
  }
  add_stretch(static_cast<std::int32_t>(blocks));
  positions.resize(after);
  return positions;
}

template <class T>
void carry_list(std::span<const std::int32_t> positions, std::int64_t width,
                std::span<const T> before, std::span<T> after) {
  if (before.empty()) return std::fill(after.begin(), after.end(), T{});
  if (width == 1) {
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const T value = before[std::size_t(std::max(positions[i], 0))];
      after[i] = positions[i] < 0 ? T{} : value;
    }
    return;
  }
  for (std::size_t i = 0; i < positions.size(); ++i) {
    T* const to = after.data() + std::int64_t(i) * width;
    if (positions[i] < 0)
      std::fill_n(to, width, T{});
    else
      std::copy_n(before.data() + positions[i] * width, width, to);
  }
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
Csr<T> apply_change(const Csr<T>& m, std::span<const PlacedBlock> change) {
  constexpr std::int64_t kFewValues = 8, kFewestShare = 8;
  const std::int64_t area = m.block.area(), blocks = m.blocks() + net_of(change);
  Csr<T> result{m.rows, m.cols, m.block, m.row_begin, {}, {}};
  if (area == 1) {
    carry_elements(m, change, blocks, result);
    move_rows(change, result);
    return result;
  }
  result.col.resize(static_cast<std::size_t>(blocks));
  result.values.resize(static_cast<std::size_t>(blocks * area));
  if (area <= kFewValues && kFewestShare * std::ssize(change) > blocks) {
    const std::vector<std::int32_t> positions = positions_before(change, m.blocks());
    carry_list<std::int32_t>(positions, 1, m.col, result.col);
    carry_list<T>(positions, area, m.values, result.values);
  } else {
    carry_list<std::int32_t>(change, 1, m.col, result.col);
    carry_list<T>(change, area, m.values, result.values);
  }
  move_rows(change, result);
  return result;
}

template <class T>
Csr<T> with_change(const Csr<T>& matrix, const PatternChange& change) {
  check(matrix);
  return apply_change<T>(matrix, place_change(matrix, change));
}

template <class T>
CheckedCsr<T> with_change(const CheckedCsr<T>& matrix, const PatternChange& change) {
  return internal::proven(apply_change<T>(*matrix, place_change(*matrix, change)));
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
template void carry_list(std::span<const std::int32_t>, std::int64_t, std::span<const float>,
                         std::span<float>);
template void carry_list(std::span<const std::int32_t>, std::int64_t, std::span<const double>,
                         std::span<double>);
template void carry_list(std::span<const std::int32_t>, std::int64_t, std::span<const std::int32_t>,
                         std::span<std::int32_t>);
template Csr<float> apply_change(const Csr<float>&, std::span<const PlacedBlock>);
template Csr<double> apply_change(const Csr<double>&, std::span<const PlacedBlock>);
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
