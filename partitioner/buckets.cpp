#include "tessera/partitioner/buckets.hpp"

#include <algorithm>
#include <numeric>

namespace tessera::partitioner {
namespace {

using AnyWords = std::variant<std::vector<std::uint16_t>, std::vector<std::uint32_t>>;

const void* words_at(const AnyWords& words, std::int64_t index) {
  return std::visit([index](const auto& w) { return static_cast<const void*>(w.data() + index); },
                    words);
}

}  // namespace

std::int64_t Travel::largest_y_end() const { return *std::max_element(y_end.begin(), y_end.end()); }

std::int64_t Travel::steps() const {
  return std::accumulate(y_end.begin(), y_end.end(), std::int64_t{0}) - (y_end[0] > 0 ? 1 : 0);
}

double SpillStats::moved_share() const {
  return blocks == 0 ? 0.0 : static_cast<double>(moved_blocks) / static_cast<double>(blocks);
}

std::vector<std::uint32_t> travel_words(const Travel& travel, std::int64_t z_parts) {
  std::vector<std::uint32_t> words{static_cast<std::uint32_t>(travel.x_end()),
                                   static_cast<std::uint32_t>(travel.largest_y_end()),
                                   static_cast<std::uint32_t>(z_parts)};
  for (const std::int32_t y_end : travel.y_end) words.push_back(static_cast<std::uint32_t>(y_end));
  return words;
}

const void* Buckets::meta_words(std::int64_t bucket) const {
  return words_at(meta, bucket * grid.meta_words);
}

const void* Buckets::grad_a_meta_words(std::int64_t bucket) const {
  return words_at(grad_a_meta, bucket * grid.grad_a_words);
}

}  // namespace tessera::partitioner
