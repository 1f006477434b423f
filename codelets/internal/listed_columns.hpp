#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tessera/codelets/internal/fast/vector_kernels.hpp"

namespace tessera::codelets::internal {

// Describes a list of columns as words that name rows of a dense operand. Of an index of 64 bits
// the lower half is read.
template <class Index>
inline constexpr RowCode kListedColumns{
    .mask = 0xffffffff, .step = sizeof(Index), .shift = 0, .inverse = 1, .scale = 1};

// Calls run(first columns of these blocks, position of the first block in the list) for parts of a
// list of block columns. `width` is the number of columns of a block.
template <class Index, class Run>
void for_each_block_part(std::span<const Index> blocks, std::int64_t width, Run&& run) {
  constexpr std::size_t kAtOnce = 64;
  std::array<std::uint32_t, kAtOnce> columns;
  for (std::size_t first = 0; first < blocks.size(); first += kAtOnce) {
    const auto part = blocks.subspan(first, std::min(kAtOnce, blocks.size() - first));
    std::transform(part.begin(), part.end(), columns.begin(),
                   [&](Index block) { return static_cast<std::uint32_t>(block * width); });
    run(std::span<const std::uint32_t>(columns.data(), part.size()), std::int64_t(first));
  }
}

}  // namespace tessera::codelets::internal
