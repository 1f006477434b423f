#pragma once

#include <cstdint>

#include "tessera/base/data_type.hpp"
#include "tessera/codelets/bucket_layout.hpp"

// The walk over the words of a bucket, which all kernels and costs share. The words are trusted: an
// encoder wrote them, and nothing is checked here.
namespace tessera::codelets::internal {

// Calls visit(header, record, first_value) for every record of the bucket, of all cells, in order
// of words.
//   record       the words of the record
//   first_value  number of values of the bucket before this record's
template <class Header, class Word, class Visit>
void for_each_record(const Word* bucket, Visit&& visit) {
  std::int64_t first_value = 0;
  for (const Word* record = bucket; *record != 0;) {
    const auto header = load<Header>(record);
    visit(header, record, first_value);
    first_value += header.non_zeros;
    record += header.next_record;
  }
}

// Calls visit(entry, columns) for `rows` consecutive rows from `words` on. `columns` are the words
// after the entry. The visitor returns how many of them belong to the row.
template <class Word, class Visit>
void for_each_row(const Word* words, std::int64_t rows, Visit&& visit) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto entry = load<OutputEntry>(words);
    words += kWords<OutputEntry>;
    words += visit(entry, words);
  }
}

// Calls visit(entry, columns, value, scale) for every row of the cell `sub_group` in a forward
// element bucket.
//   columns  the words of its non-zeros, each a column of the cell times `scale`
//   value    index of its first value among the bucket's values
template <class In, class Word, class Visit>
void for_each_entry(const Word* bucket, std::int64_t sub_group, Visit&& visit) {
  for_each_record<ElementHeader>(
      bucket, [&](const ElementHeader& header, const Word* record, std::int64_t value) {
        if (header.sub_group != sub_group) return;
        const std::int64_t scale = type_factor(data_type_of<In>()) * header.z;
        for_each_row(record + header.first_output, header.last_row + 1,
                     [&](const OutputEntry& entry, const Word* columns) {
                       visit(entry, columns, value, scale);
                       value += entry.columns;
                       return entry.columns;
                     });
      });
}

// Calls visit(x, y, value) for every non-zero of the cell `sub_group` in a forward element bucket.
//   x, y   element row and column inside the cell
//   value  index into the bucket's values
template <class In, class Word, class Visit>
void for_each_non_zero(const Word* bucket, std::int64_t sub_group, Visit&& visit) {
  for_each_entry<In>(
      bucket, sub_group,
      [&](const OutputEntry& entry, const Word* columns, std::int64_t value, std::int64_t scale) {
        for (std::int64_t i = 0; i < entry.columns; ++i)
          visit(std::int64_t{entry.row}, std::int64_t{columns[i]} / scale, value + i);
      });
}

// Calls visit(x, y, value) for every non-zero of the cell in a separate GradA bucket. Its rows are
// the cell's columns, and each non-zero has the index of its value among the record's forward
// values.
template <class In, class Word, class Visit>
void for_each_transposed_non_zero(const Word* bucket, std::int64_t sub_group, Visit&& visit) {
  constexpr std::int64_t kFactor = type_factor(data_type_of<In>());
  for_each_record<ElementHeader>(
      bucket, [&](const ElementHeader& header, const Word* record, std::int64_t first_value) {
        if (header.sub_group != sub_group) return;
        const std::int64_t scale = kFactor * header.z;
        for_each_row(record + header.first_output, header.last_row + 1,
                     [&](const OutputEntry& entry, const Word* pairs) {
                       for (std::int64_t i = 0; i < entry.columns; ++i)
                         visit(std::int64_t{pairs[2 * i + 1]} / scale, std::int64_t{entry.row},
                               first_value + std::int64_t{pairs[2 * i]} / kFactor);
                       return 2 * entry.columns;
                     });
      });
}

// Calls visit(x, y, value) for every block of the cell `sub_group` in a block bucket.
//   x, y   element row and column of the block's upper left corner inside the cell
//   value  index of the block's first value; the others follow row-major
template <class Word, class Visit>
void for_each_block(const Word* bucket, std::int64_t sub_group, std::int64_t area, Visit&& visit) {
  for_each_record<BlockHeader>(
      bucket, [&](const BlockHeader& header, const Word* record, std::int64_t value) {
        if (header.sub_group != sub_group) return;
        const std::int64_t table = header.grad_w_workers * kWords<GradWWorkerEntry>;
        for_each_row(record + kWords<BlockHeader> + table, header.last_row + 1,
                     [&](const OutputEntry& entry, const Word* columns) {
                       const std::int64_t blocks = entry.columns + 1;
                       for (std::int64_t i = 0; i < blocks; ++i, value += area)
                         visit(std::int64_t{entry.row}, std::int64_t{columns[i]}, value);
                       return blocks;
                     });
      });
}

}  // namespace tessera::codelets::internal
