#include "tessera/arrays/tensor/internal/sort_positions.hpp"

#include <bit>
#include <numeric>

#include "tessera/base/radix_sort.hpp"

namespace tessera::arrays::internal {
namespace {

int bits_of(std::int64_t length) {
  return length <= 1 ? 0 : static_cast<int>(std::bit_width(std::uint64_t(length - 1)));
}

}  // namespace

std::vector<std::uint64_t> sort_positions(std::span<const std::int32_t> indices, std::size_t count,
                                          std::span<const std::int64_t> shape,
                                          std::span<const std::int64_t> order) {
  std::vector<std::uint64_t> positions(count), scratch;
  std::iota(positions.begin(), positions.end(), std::uint64_t{0});
  const int position_bits = bits_of(static_cast<std::int64_t>(count));
  const std::uint64_t mask = (std::uint64_t{1} << position_bits) - 1;
  for (std::size_t end = order.size(), begin = end; end > 0; end = begin) {
    int key_bits = 0;
    while (begin > 0 && position_bits + key_bits + bits_of(shape[order[begin - 1]]) <= 64)
      key_bits += bits_of(shape[order[--begin]]);
    for (std::uint64_t& word : positions) {
      const std::int32_t* index = indices.data() + word * shape.size();
      std::uint64_t key = 0;
      for (std::size_t i = begin; i < end; ++i)
        key = (key << bits_of(shape[order[i]])) | static_cast<std::uint32_t>(index[order[i]]);
      word |= key << position_bits;
    }
    radix_sort(positions, scratch, key_bits,
               [position_bits](std::uint64_t word) { return word >> position_bits; });
    for (std::uint64_t& word : positions) word &= mask;
  }
  return positions;
}

}  // namespace tessera::arrays::internal
