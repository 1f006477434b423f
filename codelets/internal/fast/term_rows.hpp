#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/codelets/internal/bucket_walk.hpp"
#include "tessera/codelets/internal/fast/vector_kernels.hpp"

// Converts the words of an element bucket to the rows that vector code reads.
namespace tessera::codelets::internal {

// Returns the code for words of type Word that hold a row times `scale`, scale in 1 .. 2^32 - 1.
template <class Word>
RowCode row_code(std::int64_t scale) {
  const int shift = std::countr_zero(static_cast<std::uint32_t>(scale));
  const std::uint32_t odd = static_cast<std::uint32_t>(scale) >> shift;
  std::uint32_t inverse = odd;  // correct in 3 bits; each step doubles them: 6, 12, 24, 48
  for (int step = 0; step < 4; ++step) inverse *= 2 - odd * inverse;
  return {.mask = std::uint32_t{static_cast<Word>(-1)},
          .step = sizeof(Word),
          .shift = shift,
          .inverse = inverse,
          .scale = scale};
}

// A list of rows that are passed on together: 64 of them, so that the dense rows they share stay in
// the nearest caches from one panel of columns to the next.
class TermRows {
 public:
  static constexpr std::size_t kMost = 64;

  std::span<const TermRow> rows() const { return {rows_.data(), count_}; }
  bool is_full() const { return count_ == kMost; }
  void clear() { count_ = 0; }
  void add(const TermRow& row) { rows_[count_++] = row; }

 private:
  std::array<TermRow, kMost> rows_;
  std::size_t count_ = 0;
};

enum class Bucket { Forward, GradA };

// Calls use(rows, code) for all rows of one record, in order; no two are the same. `value` is the
// index of the record's first value.
template <Bucket kBucket, class In, class Word, class Use>
void for_each_term_rows_of(const ElementHeader& header, const Word* record, std::int64_t value,
                           Use&& use) {
  constexpr std::int64_t kWordsPerTerm = kBucket == Bucket::Forward ? 1 : 2;
  TermRows list;
  const auto code = row_code<Word>(type_factor(data_type_of<In>()) * header.z);
  for_each_row(
      record + header.first_output, header.last_row + 1,
      [&](const OutputEntry& entry, const Word* words) {
        list.add({entry.row, entry.columns, value, reinterpret_cast<const std::byte*>(words)});
        if (kBucket == Bucket::Forward) value += entry.columns;
        if (list.is_full()) {
          use(list.rows(), code);
          list.clear();
        }
        return kWordsPerTerm * entry.columns;
      });
  use(list.rows(), code);
}

// Calls use(rows, code) for all rows of all records of the cell `sub_group` of an element bucket,
// in order.
template <Bucket kBucket, class In, class Word, class Use>
void for_each_term_rows(const Word* bucket, std::int64_t sub_group, Use&& use) {
  for_each_record<ElementHeader>(
      bucket, [&](const ElementHeader& header, const Word* record, std::int64_t value) {
        if (header.sub_group == sub_group)
          for_each_term_rows_of<kBucket, In>(header, record, value, use);
      });
}

}  // namespace tessera::codelets::internal
