#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/partitioner/buckets.hpp"
#include "tessera/sparse/change.hpp"

namespace tessera::partitioner {

// The result of update().
struct UpdateResult {
  // As in encode_into(), except that the buckets cannot be used after a misfit.
  std::optional<Misfit> misfit;

  // True if everything was encoded again.
  bool afresh = false;

  // The buckets whose slots hold other blocks than before, ascending.
  std::vector<std::int64_t> changed;
};

// Turns buckets of the old pattern into buckets of `matrix`, which must be the encoded matrix with
// `change` applied (sparse::with_change).
//
// A block that does not change keeps its tile. An added block is stored on the tile of its cell
// that holds its neighbours, or on the nearest tile of the cell with free capacity. An x partition
// in which encoding is cheaper than that many changes is cut again as an encode does, if nothing is
// spilled; its other blocks may then change tiles within their cells. If something does not fit, or
// if most of the matrix changes, everything is encoded again. The result therefore decodes to the
// same matrix as a new encode, and fits whenever that does, but blocks of a cell may be stored on
// other tiles of the cell.
//
// Afterwards the source map is that of the new matrix. In the statistics the fullest_* fields
// become upper bounds, steps are counted again, and the other figures of spilling remain those of
// the last encode. The values of the buckets are not touched: call refill(), or refill_changed()
// for the buckets that the result names.
//
// Throws Error{InvalidArgument} if `matrix` is not the old matrix with the change applied, as far
// as its size, its number of blocks and the blocks that change in place show it. After an exception
// the buckets may only be encoded into. The result has the same bits for any number of threads of
// `executor`. Cost: as many additions as there are blocks from the first change in place to the
// last, and an encode of what changes. Lists in ascending order save a sort.
template <class T>
UpdateResult update(Buckets& buckets, const sparse::Csr<T>& matrix,
                    const sparse::PatternChange& change, Executor& executor);
template <class T>
UpdateResult update(Buckets& buckets, const sparse::CheckedCsr<T>& matrix,
                    const sparse::PatternChange& change, Executor& executor);

// Does what refill() does for some buckets only: pass the ones that an update changed.
template <class To, class From>
void refill_changed(const Buckets& buckets, std::span<const From> values,
                    std::span<To> bucket_values, std::span<const std::int64_t> changed);

}  // namespace tessera::partitioner
