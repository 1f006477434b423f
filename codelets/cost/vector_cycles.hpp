#pragma once

#include <cstdint>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"
#include "tessera/base/units.hpp"

// Cycles of everything on a tile that is not a sparse kernel. Sizes are elements of one tile unless
// said. Source of the figures: PopSparse's own estimators (PopLibs 3.4), a 64-bit data path.
// All functions are pure, never allocate and are O(1). Sizes >= 0, workers >= 1.
namespace tessera::codelets {

// Clears `bytes` of partial sums in 64-bit stores dealt to the workers.
Cycles zero_cycles(std::int64_t bytes, std::int64_t workers);

// Converts n partial sums to the layer's type.
Cycles cast_cycles(std::int64_t n, DataType from, DataType to, std::int64_t workers);

// Adds `depth` operands of n elements each and converts the sum.
Cycles reduce_cycles(std::int64_t n, std::int64_t depth, DataType from, DataType to,
                     std::int64_t workers);

// Turns `blocks` blocks over, as GradA does with values from a forward bucket.
Cycles transpose_blocks_cycles(std::int64_t blocks, BlockShape block, DataType type,
                               std::int64_t workers);

// Brings a dense operand of `blocks` groups of `side` features x z batch columns into the order
// that BlockGradWAmp reads.
Cycles rearrange_cycles(std::int64_t blocks, std::int64_t side, std::int64_t z, DataType type,
                        std::int64_t workers);

// What a tile receives in one exchange, in bytes per cycle.
struct ExchangeWidth {
  std::int64_t bytes_per_cycle = 4;
  std::int64_t tiles_per_bus = 2;  // neighbours that take the same data receive that much faster
};

// Receives `bytes` that only this tile takes.
Cycles exchange_cycles(std::int64_t bytes, ExchangeWidth width);

// Receives `bytes` that `consecutive` neighbouring tiles of `tiles` take together. The bus is
// shared when all tiles take it or `consecutive` is a multiple of tiles_per_bus.
Cycles broadcast_cycles(std::int64_t bytes, std::int64_t consecutive, std::int64_t tiles,
                        ExchangeWidth width);

}  // namespace tessera::codelets
