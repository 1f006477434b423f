#include "tessera/partitioner/internal/bucket_writer.hpp"

#include <algorithm>

#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/partitioner/internal/whole_chunks.hpp"

namespace tessera::partitioner::internal {
namespace {

template <class T>
std::span<T> part_of(std::vector<T>& list, std::int64_t bucket, std::int64_t size) {
  return std::span(list).subspan(static_cast<std::size_t>(bucket * size),
                                 static_cast<std::size_t>(size));
}

void raise(std::int64_t& most, std::size_t n, std::int64_t more) {
  most = std::max(most, static_cast<std::int64_t>(n) + more);
}

}  // namespace

template <class Word>
BucketLists<Word> resize_lists(const TileGrid& grid, Buckets& buckets) {
  const auto at_width = [](auto& words) -> std::vector<Word>& {
    auto* same = std::get_if<std::vector<Word>>(&words);
    return same ? *same : words.template emplace<std::vector<Word>>();
  };
  const auto size = [&grid](std::int64_t each) {
    return static_cast<std::size_t>(grid.buckets() * each);
  };
  BucketLists<Word> lists{at_width(buckets.meta), at_width(buckets.grad_a_meta), buckets.source};
  lists.meta.resize(size(grid.meta_words));
  lists.grad_a.resize(size(grid.grad_a_words));
  lists.source.resize(size(grid.blocks));
  return lists;
}

void add_stats(SpillStats& sum, const SpillStats& more) {
  sum.blocks += more.blocks;
  sum.moved_blocks += more.moved_blocks;
  sum.records += more.records;
  sum.fullest_words = std::max(sum.fullest_words, more.fullest_words);
  sum.fullest_blocks = std::max(sum.fullest_blocks, more.fullest_blocks);
  sum.fullest_grad_a_words = std::max(sum.fullest_grad_a_words, more.fullest_grad_a_words);
}

template <class Word>
template <class T>
void BucketWriter<Word>::Capacity<T>::fill_rest(T value) const {
  std::fill(all.begin() + static_cast<std::ptrdiff_t>(used), all.end(), value);
}

template <class Word>
void BucketWriter<Word>::start(std::int64_t bucket) {
  bucket_ = bucket;
  words_ = {part_of(lists_.meta, bucket, grid_.meta_words)};
  grad_a_words_ = {part_of(lists_.grad_a, bucket, grid_.grad_a_words)};
  source_ = {part_of(lists_.source, bucket, grid_.blocks)};
}

template <class Word>
bool BucketWriter<Word>::add(const RecordRows& record) {
  if (writer_.forward_room(record) + codelets::kEndMarkerWords > words_.free() ||
      record.blocks > source_.free())
    return false;
  if (grid_.separate_grad_a && !add_grad_a(record)) return false;
  words_.advance_to(writer_.write_forward(record, words_.next()));
  std::int64_t left = record.blocks;
  for (const Run& run : record.runs) {
    std::int32_t* slot = source_.next();
    const std::int32_t begin = run.begin;
    in_chunks(run.count, left, [=](std::int32_t i) { slot[i] = begin + i; });
    source_.used += static_cast<std::size_t>(run.count);
    left -= run.count;
  }
  stats_.blocks += record.blocks;
  ++stats_.records;
  if (record.x * grid_.splits.y + record.y != bucket_ / grid_.splits.z)
    stats_.moved_blocks += record.blocks;
  return true;
}

template <class Word>
bool BucketWriter<Word>::add_grad_a(const RecordRows& record) {
  if (writer_.prepare_grad_a(record) + codelets::kEndMarkerWords > grad_a_words_.free())
    return false;
  grad_a_words_.advance_to(writer_.write_grad_a(grad_a_words_.next()));
  return true;
}

template <class Word>
void BucketWriter<Word>::finish() {
  words_.fill_rest(0);
  grad_a_words_.fill_rest(0);
  source_.fill_rest(-1);
  raise(stats_.fullest_words, words_.used, codelets::kEndMarkerWords);
  raise(stats_.fullest_blocks, source_.used, 0);
  if (grid_.separate_grad_a)
    raise(stats_.fullest_grad_a_words, grad_a_words_.used, codelets::kEndMarkerWords);
}

template BucketLists<std::uint16_t> resize_lists(const TileGrid&, Buckets&);
template BucketLists<std::uint32_t> resize_lists(const TileGrid&, Buckets&);
template class BucketWriter<std::uint16_t>;
template class BucketWriter<std::uint32_t>;

}  // namespace tessera::partitioner::internal
