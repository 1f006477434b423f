#pragma once

#include <cstdint>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"
#include "tessera/base/units.hpp"

// Cycles of everything on a tile that is not a sparse kernel. Sizes are in elements of one tile
// unless stated otherwise. The source of the figures is PopSparse's own estimators (PopLibs 3.4)
// with a 64-bit data path. All functions are pure, never allocate and are O(1). Sizes must be >= 0,
// workers >= 1.
namespace tessera::codelets {

// Clears `bytes` of partial sums in 64-bit stores dealt to the workers.
Cycles zero_cycles(std::int64_t bytes, std::int64_t workers);

// Copies `bytes` on the tile in 64-bit loads and stores dealt to the workers.
Cycles copy_cycles(std::int64_t bytes, std::int64_t workers);

// Converts n partial sums to the layer's type.
Cycles cast_cycles(std::int64_t n, DataType from, DataType to, std::int64_t workers);

// Adds `depth` operands of n elements each and converts the sum.
Cycles reduce_cycles(std::int64_t n, std::int64_t depth, DataType from, DataType to,
                     std::int64_t workers);

// Transposes `blocks` blocks, as GradA does with values from a forward bucket.
Cycles transpose_blocks_cycles(std::int64_t blocks, BlockShape block, DataType type,
                               std::int64_t workers);

// Rearranges a dense operand of `blocks` groups of `side` features x z batch columns into the order
// that BlockGradWAmp reads.
Cycles rearrange_cycles(std::int64_t blocks, std::int64_t side, std::int64_t z, DataType type,
                        std::int64_t workers);

// Puts a tile's even share of `bytes`, which are spread over `tiles` tiles, in another order.
Cycles arrange_cycles(std::int64_t bytes, std::int64_t tiles, std::int64_t bytes_per_cycle);

// The rate at which a tile receives data in one exchange.
struct ExchangeWidth {
  std::int64_t bytes_per_cycle = 4;

  // If that many neighbours take the same data, the rate is multiplied by their number.
  std::int64_t tiles_per_bus = 2;
};

// Receives `bytes` that only this tile takes.
Cycles exchange_cycles(std::int64_t bytes, ExchangeWidth width);

// Receives `bytes` that `consecutive` neighbouring tiles of `tiles` take together. The bus is
// shared if all tiles take the data or if `consecutive` is a multiple of tiles_per_bus.
Cycles broadcast_cycles(std::int64_t bytes, std::int64_t consecutive, std::int64_t tiles,
                        ExchangeWidth width);

}  // namespace tessera::codelets
