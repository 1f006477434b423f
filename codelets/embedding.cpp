#include "tessera/codelets/embedding.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/codelets/internal/bucket_walk.hpp"

namespace tessera::codelets {
namespace {

using internal::for_each_record, internal::for_each_row;

// Counts rows, and the values of the looked-up ones by worker.
class RowCounter {
 public:
  explicit RowCounter(std::int64_t workers)
      : workers_(std::min<std::int64_t>(workers, std::ssize(values_))) {}

  void add_rows(std::int64_t rows) { rows_ += rows; }
  void add_looked_up(std::int64_t values) {
    values_[std::size_t(next_)] += values;
    next_ = (next_ + 1) % workers_;
  }
  RowsWork work(const BucketScan& scan) const {
    return {scan, rows_, *std::max_element(values_.begin(), values_.end())};
  }

 private:
  std::array<std::int64_t, 64> values_{};
  std::int64_t workers_, next_ = 0, rows_ = 0;
};

// Returns the search for the records of a cell, as visit_cycles() counts it.
template <class Header, class Word>
BucketScan scan_of(const RowsArgs& a) {
  BucketScan scan;
  std::int64_t place = 0, last_match = 0;
  for_each_record<Header>(static_cast<const Word*>(a.meta),
                          [&](const Header& header, const Word*, std::int64_t) {
                            ++place;
                            if (header.sub_group != a.sub_group) return;
                            last_match = place;
                            ++scan.matches;
                          });
  scan.match_positions = last_match;
  scan.records_passed = place - last_match;
  return scan;
}

// Calls visit(column, slot, value) for every stored value of a looked-up row in an element bucket.
template <class T, class Word, class Visit>
RowsWork walk_element_rows(const RowsArgs& a, Visit&& visit) {
  RowCounter counter(a.workers);
  internal::for_each_entry<T>(
      static_cast<const Word*>(a.meta), a.sub_group,
      [&](const OutputEntry& entry, const Word* columns, std::int64_t value, std::int64_t scale) {
        counter.add_rows(1);
        const std::int32_t slot = a.slot_of[std::size_t(entry.row)];
        if (slot < 0) return;
        counter.add_looked_up(entry.columns);
        for (std::int64_t i = 0; i < entry.columns; ++i)
          visit(std::int64_t{columns[i]} / scale, slot, value + i);
      });
  return counter.work(scan_of<ElementHeader, Word>(a));
}

// Does the same in a block bucket, whose blocks are row-major.
template <class Word, class Visit>
RowsWork walk_block_rows(const RowsArgs& a, Visit&& visit) {
  RowCounter counter(a.workers);
  for_each_record<BlockHeader>(
      static_cast<const Word*>(a.meta),
      [&](const BlockHeader& header, const Word* record, std::int64_t value) {
        if (header.sub_group != a.sub_group) return;
        const Word* const first =
            record + kWords<BlockHeader> + header.grad_w_workers * kWords<GradWWorkerEntry>;
        for_each_row(first, header.last_row + 1, [&](const OutputEntry& entry, const Word* words) {
          const std::int64_t blocks = entry.columns + 1;
          counter.add_rows(a.block.rows);
          for (std::int64_t r = 0; r < a.block.rows; ++r) {
            const std::int32_t slot = a.slot_of[std::size_t(entry.row + r)];
            if (slot < 0) continue;
            counter.add_looked_up(blocks * a.block.cols);
            for (std::int64_t b = 0; b < blocks; ++b)
              for (std::int64_t c = 0; c < a.block.cols; ++c)
                visit(std::int64_t{words[b]} + c, slot,
                      value + b * a.block.area() + r * a.block.cols + c);
          }
          value += blocks * a.block.area();
          return blocks;
        });
      });
  return counter.work(scan_of<BlockHeader, Word>(a));
}

template <class T, class Visit>
RowsWork walk_rows(const RowsArgs& a, Visit&& visit) {
  const bool narrow = a.word_bits == 16;
  if (a.block.is_element())
    return narrow ? walk_element_rows<T, std::uint16_t>(a, visit)
                  : walk_element_rows<T, std::uint32_t>(a, visit);
  return narrow ? walk_block_rows<std::uint16_t>(a, visit)
                : walk_block_rows<std::uint32_t>(a, visit);
}

// Returns the place of an element in a dense matrix [columns][slots], or -1.
std::int64_t place_of(const RowsArgs& a, std::int64_t column, std::int64_t slot) {
  if (column < a.columns.begin || column >= a.columns.end) return -1;
  return (column - a.columns.begin) * a.slots + slot;
}

}  // namespace

RowsWork copy_rows(const RowsArgs& a, void* out) {
  return with_type(a.type, [&]<class T>(T) {
    const T* const values = static_cast<const T*>(a.values);
    T* const to = static_cast<T*>(out);
    return walk_rows<T>(a, [&](std::int64_t column, std::int64_t slot, std::int64_t value) {
      const std::int64_t at = place_of(a, column, slot);
      if (at >= 0) to[at] = values[value];
    });
  });
}

RowsWork add_to_rows(const RowsArgs& a, const void* in, float* sums) {
  return with_type(a.type, [&]<class T>(T) {
    const T* const from = static_cast<const T*>(in);
    return walk_rows<T>(a, [&](std::int64_t column, std::int64_t slot, std::int64_t value) {
      const std::int64_t at = place_of(a, column, slot);
      if (at >= 0) sums[value] += float(from[at]);
    });
  });
}

}  // namespace tessera::codelets
