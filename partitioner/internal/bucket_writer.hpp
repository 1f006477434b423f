#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/partitioner/buckets.hpp"
#include "tessera/partitioner/internal/gather.hpp"
#include "tessera/partitioner/internal/record_writer.hpp"

namespace tessera::partitioner::internal {

// The lists of `Buckets` at the width of the machine.
template <class Word>
struct BucketLists {
  std::vector<Word>&meta, &grad_a;
  std::vector<std::int32_t>& source;
};

// Gives the lists the sizes that the grid asks for. Existing storage is used again, with its old
// content.
template <class Word>
BucketLists<Word> resize_lists(const TileGrid& grid, Buckets& buckets);

// Adds `more` to `sum`: counts are added, and of the fullest_* fields the larger is kept.
void add_stats(SpillStats& sum, const SpillStats& more);

// BucketWriter writes one bucket after the other: start(), add() for each record, finish(). Every
// word and slot is written, so old content does not matter. An object must not be used by several
// threads, but several objects may write different buckets at once.
template <class Word>
class BucketWriter {
 public:
  BucketWriter(const TileGrid& grid, const BucketLists<Word>& lists)
      : grid_(grid), lists_(lists), writer_(grid) {}

  void start(std::int64_t bucket);

  // Returns false, and writes nothing, if the record does not fit, all workers counted.
  bool add(const RecordRows& record);
  void finish();

  // Statistics of everything that was added and finished.
  const SpillStats& stats() const { return stats_; }

 private:
  // The part of a list that belongs to one bucket. It is written from front to back.
  template <class T>
  struct Capacity {
    std::span<T> all;
    std::size_t used = 0;

    std::int64_t free() const { return static_cast<std::int64_t>(all.size() - used); }
    T* next() const { return all.data() + used; }
    void advance_to(const T* end) { used = static_cast<std::size_t>(end - all.data()); }
    void fill_rest(T value) const;
  };
  bool add_grad_a(const RecordRows& record);

  TileGrid grid_;
  BucketLists<Word> lists_;
  RecordWriter<Word> writer_;
  std::int64_t bucket_ = 0;
  Capacity<Word> words_, grad_a_words_;
  Capacity<std::int32_t> source_;
  SpillStats stats_;
};

}  // namespace tessera::partitioner::internal
