#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/partitioner/buckets.hpp"
#include "tessera/sparse/change.hpp"

namespace tessera::partitioner {

// What an update did to the buckets.
struct UpdateResult {
  std::optional<Misfit> misfit;       // as in encode_into, but the buckets are then of no use
  bool afresh = false;                // everything was encoded again
  std::vector<std::int64_t> changed;  // buckets whose slots hold other blocks, ascending
};

// Makes buckets of the old pattern into buckets of `matrix`, which is the encoded one with
// `change` applied (sparse::with_change). What did not change stays where it is; an added block
// goes to the tile of its cell that holds its neighbours, or to the nearest one there with room.
// An x partition in which so much changes that encoding is cheaper is cut again as an encode does,
// if nothing is spilled; its other blocks may then change tiles within their cells. Where something
// does not fit, or where most changes, everything is encoded afresh. So the result decodes to the
// same matrix as a fresh encode, and fits when that does, but may hold blocks of a cell on other
// tiles of the cell. The source map is that of the new matrix; fullest_* of the statistics become
// upper bounds, steps are counted again, and the other figures of spilling stay those of the last
// encode. Values: refill(), or refill_changed() for the buckets named in the result. Lists in
// ascending order save a sort. Error{InvalidArgument} when the matrix is not what the change makes
// of the old one, as far as that shows: in its size, its number of blocks, and the places that
// change in place. After an exception the buckets may only be encoded into. Same bits for any
// number of threads. O(blocks from the first change in place to the last) additions, and an encode
// of what changes.
template <class T>
UpdateResult update(Buckets& buckets, const sparse::Csr<T>& matrix,
                    const sparse::PatternChange& change, Executor& executor);

// refill() for some buckets only: those that an update changed.
template <class To, class From>
void refill_changed(const Buckets& buckets, std::span<const From> values,
                    std::span<To> bucket_values, std::span<const std::int64_t> changed);

}  // namespace tessera::partitioner
