#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/edit.hpp"
#include "tessera/partitioner/internal/index.hpp"
#include "tessera/partitioner/internal/record_writer.hpp"
#include "tessera/partitioner/tile_grid.hpp"

namespace tessera::partitioner::internal {

// The words of a record with one worker.
constexpr std::int64_t frame_words(const TileGrid& grid) {
  return codelets::fixed_record_words({grid.block.is_element(), false, 1});
}

// An OutputEntry of elements has the number of columns, and one of blocks that number less 1.
inline std::int32_t columns_of(const TileGrid& grid, std::int64_t word) {
  return static_cast<std::int32_t>(word) + (grid.block.is_element() ? 0 : 1);
}

// Returns the counts of a record that begins at `meta`.
template <class Word>
RecordCounts count_words(const Buckets& buckets, const Word* meta) {
  if (meta[0] == 0) return {};
  if (buckets.grid.block.is_element()) {
    const auto header = codelets::load<codelets::ElementHeader>(meta);
    return {header.last_row + 1, header.non_zeros, header.next_record};
  }
  const auto header = codelets::load<codelets::BlockHeader>(meta);
  return {header.last_row + 1, header.non_zeros / buckets.grid.block.area(), header.next_record};
}

// Calls visit(row of the cell, position of its first column word, columns) for a bucket's record.
template <class Word, class Visit>
void for_each_row(const TileGrid& grid, const Word* meta, std::int64_t rows, Visit&& visit) {
  std::int64_t at = frame_words(grid);
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int32_t columns = columns_of(grid, meta[at + 1]);
    at += codelets::kWords<codelets::OutputEntry>;
    visit(std::int64_t{meta[at - codelets::kWords<codelets::OutputEntry>]} / grid.block.rows, at,
          columns);
    at += columns;
  }
}

// CellEditor makes the changes of CellEdits in one cell after another. T is the type of the values;
// an empty list of values leaves them out. One thread uses an object.
template <class Word, class T>
class CellEditor {
 public:
  CellEditor(CellEdits& edits, Buckets& buckets, std::span<T> values, CellEdits::Scratch& scratch)
      : edits_(edits),
        grid_(edits.grid_),
        buckets_(buckets),
        meta_(std::get<std::vector<Word>>(buckets.meta)),
        values_(values),
        scratch_(scratch),
        area_(grid_.block.area()),
        scale_(column_scale(grid_)),
        by_row_(edits.numbering_ == Numbering::RowByRow) {}

  void run(std::int64_t bucket) {
    x_ = bucket / grid_.splits.y, y_ = bucket % grid_.splits.y;
    rows_ = grid_.x_range(x_), cols_ = grid_.y_range(y_);
    const std::int64_t first_line =
        by_row_ ? rows_.begin / grid_.block.rows : cols_.begin / grid_.block.cols;
    shift_ = edits_.shift_.data() + first_line;
    const auto begin = edits_.edit_begin_[index(bucket)],
               end = edits_.edit_begin_[index(bucket) + 1];
    own_ = std::span(edits_.edits_).subspan(index(begin), index(end - begin));
    words_ = meta_.data() + bucket * grid_.meta_words;
    source_ = buckets_.source.data() + bucket * grid_.blocks;
    own_values_ = values_.empty() ? nullptr : values_.data() + bucket * grid_.blocks * area_;
    before_ = count_words(buckets_, words_);
    if (own_.empty())
      renumber();
    else
      rewrite();
  }

 private:
  using Row = CellEdits::Row;
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>;  // of a value

  // The part of a row that is still to be copied.
  struct Cursor {
    const Word* words;
    const std::int32_t* source;
    std::int64_t value;
    std::int32_t left;

    void advance(std::int32_t count) {
      words += count, source += count, value += count, left -= count;
    }
  };

  // Column words are multiples of the scale, for which the product is exact.
  std::int64_t column_of(Word word) const {
    return static_cast<std::int64_t>((std::uint64_t{word} * inverse_) >> 32);
  }

  bool nothing_moves() const {
    const std::int64_t lines =
        by_row_ ? rows_.size() / grid_.block.rows : cols_.size() / grid_.block.cols;
    return std::all_of(shift_, shift_ + lines, [](std::int32_t s) { return s == 0; });
  }

  void renumber() {
    if (before_.rows == 0 || nothing_moves()) return;
    std::int32_t* source = source_;
    for_each_row(grid_, words_, before_.rows,
                 [&](std::int64_t row, std::int64_t word, std::int32_t count) {
                   move_numbers(row, words_ + word, source, count, source);
                   source += count;
                 });
  }

  void move_numbers(std::int64_t row, const Word* columns, const std::int32_t* from,
                    std::int32_t count, std::int32_t* to) const {
    if (by_row_) {
      const std::int32_t shift = shift_[row];
      for (std::int32_t i = 0; i < count; ++i) to[i] = from[i] + shift;
    } else {
      for (std::int32_t i = 0; i < count; ++i) to[i] = from[i] + shift_[column_of(columns[i])];
    }
  }

  void rewrite() {
    list_rows();
    place_rows();
    std::size_t next = 0;
    const std::int64_t first_row = rows_.begin / grid_.block.rows;
    for (std::int64_t row = 0; row < std::ssize(scratch_.rows); ++row) {
      const std::size_t begin = next;
      while (next < own_.size() && own_[next].row - first_row == row) ++next;
      write_row(row, own_.subspan(begin, next - begin));
    }
    write_frame();
    copy_back();
  }

  // Lists the rows of the record in the order of the cell.
  void list_rows() {
    scratch_.rows.assign(index(rows_.size() / grid_.block.rows), Row{});
    std::int32_t first = 0;
    for_each_row(grid_, words_, before_.rows,
                 [&](std::int64_t row, std::int64_t word, std::int32_t count) {
                   scratch_.rows[index(row)] = {std::int32_t(word), first, count, 0, 0, count};
                   first += count;
                 });
    const std::int64_t first_row = rows_.begin / grid_.block.rows;
    for (const BlockEdit& edit : own_)
      scratch_.rows[index(edit.row - first_row)].new_count += edit.number < 0 ? -1 : 1;
  }

  // The order of records is that of the encoder: longer rows first, then by number.
  void place_rows() {
    std::vector<std::int32_t>&rows = scratch_.bin_rows, &firsts = scratch_.bin_firsts;
    const std::int64_t longest = cols_.size() / grid_.block.cols;
    std::fill_n(rows.begin(), longest + 1, 0);
    for (const Row& row : scratch_.rows) ++rows[index(row.new_count)];
    std::int32_t row_count = 0, first = 0;
    for (std::int64_t length = longest; length > 0; --length) {
      const std::int32_t here = std::exchange(rows[index(length)], row_count);
      firsts[index(length)] = first;
      row_count += here;
      first += here * static_cast<std::int32_t>(length);
    }
    for (Row& row : scratch_.rows) {
      if (row.new_count == 0) continue;
      row.new_first =
          std::exchange(firsts[index(row.new_count)], firsts[index(row.new_count)] + row.new_count);
      row.new_word =
          static_cast<std::int32_t>(frame_words(grid_)) + row.new_first +
          std::int32_t(codelets::kWords<codelets::OutputEntry>) * rows[index(row.new_count)]++;
    }
    after_ = {row_count, first,
              frame_words(grid_) + codelets::kWords<codelets::OutputEntry> * row_count + first};
    if (row_count == 0) after_.words = 0;
  }

  Word* new_words() const { return reinterpret_cast<Word*>(scratch_.words.data()); }
  T* new_values() const { return reinterpret_cast<T*>(scratch_.values.data()); }

  void write_row(std::int64_t number, std::span<const BlockEdit> edits) {
    const Row& row = scratch_.rows[index(number)];
    Word* to = new_words() + row.new_word;
    if (row.new_count > 0) {
      *to++ = static_cast<Word>(number * grid_.block.rows);
      *to++ = static_cast<Word>(row.new_count - (grid_.block.is_element() ? 0 : 1));
    }
    Cursor from{words_ + row.word, source_ + row.first, row.first, row.count};
    const std::int64_t first_col = cols_.begin / grid_.block.cols;
    constexpr std::int64_t kFewestShare = 16;
    if (grid_.block.is_element() && kFewestShare * std::ssize(edits) > row.count)
      return by_row_ ? merge_row<true>(number, edits, from, to, row.new_first)
                     : merge_row<false>(number, edits, from, to, row.new_first);
    std::int32_t* to_source = scratch_.source.data() + row.new_first;
    std::int64_t to_value = row.new_first;
    const auto copy = [&](std::int32_t count) {
      std::copy_n(from.words, count, to);
      move_numbers(number, from.words, from.source, count, to_source);
      copy_values(from.value, count, to_value);
      from.advance(count);
      to += count, to_source += count, to_value += count;
    };
    for (const BlockEdit& edit : edits) {
      const std::int64_t column = edit.col - first_col;
      const auto word = static_cast<Word>(column * scale_);
      std::int32_t below = 0;
      while (below < from.left && from.words[below] < word) ++below;
      copy(below);
      std::int32_t& shift = shift_[by_row_ ? number : column];
      if (edit.number < 0) {
        from.advance(1);
        --shift;
      } else {
        *to++ = word;
        *to_source++ = edit.number;
        if (own_values_ != nullptr) std::fill_n(new_values() + to_value * area_, area_, T{});
        ++to_value;
        ++shift;
      }
    }
    copy(from.left);
  }

  // Does what the rest of write_row does, element by element: if many elements of a row change, the
  // stretches between edits are too short to pay for a loop each. Masks are used where branches
  // would depend on the edits. The row is made in the scratch memory, which has room for one
  // element more, because a removed element is written and then overwritten.
  template <bool kByRow>
  void merge_row(std::int64_t number, std::span<const BlockEdit> edits, Cursor from, Word* to,
                 std::int64_t first) {
    Word* const words = reinterpret_cast<Word*>(scratch_.row_words.data());
    std::int32_t* const source = scratch_.row_source.data();
    Bits* const values = reinterpret_cast<Bits*>(scratch_.row_values.data());
    const T* const old_values = own_values_ == nullptr ? nullptr : own_values_ + from.value;
    const std::int64_t first_col = cols_.begin;
    std::int32_t row_shift = kByRow ? shift_[number] : 0;
    std::int32_t at = 0, made = 0;
    std::size_t next = 0;
    const auto put = [&](std::int64_t column, std::int32_t is_added, std::int32_t is_removed,
                         std::int32_t added_number) {
      std::int32_t& shift = kByRow ? row_shift : shift_[column];
      words[made] = static_cast<Word>(column * scale_);
      const std::int32_t keep = is_added - 1;  // all bits, or none for an added element
      source[made] = (added_number & ~keep) | ((from.source[at] + shift) & keep);
      if (old_values != nullptr)
        values[made] = static_cast<Bits>(std::bit_cast<Bits>(old_values[at]) & Bits(keep));
      shift += is_added - is_removed;
      made += 1 - is_removed;
      at += 1 - is_added;
    };
    while (at < from.left && next < edits.size()) {
      const std::int64_t stored = column_of(from.words[at]), edited = edits[next].col - first_col;
      const int is_added = edited < stored, is_removed = edited == stored;
      put(std::min(stored, edited), is_added, is_removed, edits[next].number);
      next += std::size_t(is_added + is_removed);
    }
    while (at < from.left) put(column_of(from.words[at]), 0, 0, 0);
    for (; next < edits.size(); ++next) {
      std::int32_t& shift = kByRow ? row_shift : shift_[edits[next].col - first_col];
      words[made] = static_cast<Word>((edits[next].col - first_col) * scale_);
      source[made] = edits[next].number;
      values[made++] = Bits{};
      ++shift;
    }
    std::copy_n(words, made, to);
    std::copy_n(source, made, scratch_.source.data() + first);
    if (old_values != nullptr)
      std::copy_n(reinterpret_cast<const T*>(values), made, new_values() + first);
    if (kByRow) shift_[number] = row_shift;
  }

  void copy_values(std::int64_t from, std::int64_t count, std::int64_t to) const {
    if (own_values_ == nullptr) return;
    std::copy_n(own_values_ + from * area_, count * area_, new_values() + to * area_);
  }

  void write_frame() const {
    if (after_.rows == 0) return;
    Word* to = new_words();
    const auto put = [&](const auto& part) {
      codelets::store(part, [&](std::int32_t word) { *to++ = static_cast<Word>(word); });
    };
    const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
    const std::int32_t cell = narrow(codelets::sub_group_id(x_, y_, grid_.splits.y));
    if (!grid_.block.is_element())
      return put(codelets::BlockHeader{cell, narrow(x_), narrow(y_), narrow(after_.blocks * area_),
                                       narrow(after_.words), narrow(after_.rows - 1), 0});
    const std::int32_t first_output = narrow(frame_words(grid_)), z = narrow(grid_.z_per_tile());
    put(codelets::ElementHeader{cell, narrow(x_), narrow(y_), narrow(after_.blocks),
                                narrow(after_.words), z, narrow(after_.rows - 1), first_output, 1});
    put(codelets::WorkerEntry{0, z, 0, narrow(after_.rows - 1),
                              first_output - narrow(codelets::kWords<codelets::ElementHeader>)});
  }

  // Unused words and values are 0, and unused sources -1.
  void copy_back() const {
    std::copy_n(new_words(), after_.words, words_);
    std::fill(words_ + after_.words, words_ + std::max(before_.words, after_.words) + 1, Word{0});
    std::copy_n(scratch_.source.data(), after_.blocks, source_);
    if (after_.blocks < before_.blocks)
      std::fill(source_ + after_.blocks, source_ + before_.blocks, -1);
    if (own_values_ == nullptr) return;
    std::copy_n(new_values(), after_.blocks * area_, own_values_);
    if (after_.blocks < before_.blocks)
      std::fill(own_values_ + after_.blocks * area_, own_values_ + before_.blocks * area_, T{});
  }

  CellEdits& edits_;
  const TileGrid& grid_;
  Buckets& buckets_;
  std::vector<Word>& meta_;
  std::span<T> values_;
  CellEdits::Scratch& scratch_;
  std::int64_t area_, scale_;
  bool by_row_;
  std::uint64_t inverse_ = (std::uint64_t{1} << 32) / std::uint64_t(scale_) + 1;

  // The cell that is being changed:
  std::int64_t x_ = 0, y_ = 0;
  Range rows_{0, 0}, cols_{0, 0};
  std::int32_t* shift_ = nullptr;
  std::span<const BlockEdit> own_;
  Word* words_ = nullptr;
  std::int32_t* source_ = nullptr;
  T* own_values_ = nullptr;
  RecordCounts before_, after_;
};

}  // namespace tessera::partitioner::internal
