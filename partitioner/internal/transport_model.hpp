#pragma once

#include "tessera/partitioner/internal/holdings.hpp"
#include "tessera/partitioner/internal/transport.hpp"

namespace tessera::partitioner::internal {

// A bucket has three capacities (words, blocks, GradA words) and every record pays a header, so
// free capacity is not a number of blocks. Two models express it in blocks nevertheless. Pieces
// must be whole at home.

// Returns a model that is never too small: what is impossible in it is impossible. A bucket holds
// as many blocks as one record of rows as long as a cell is wide. Of its own blocks a cell holds
// what fits if every row is whole and the longest rows stay. GradA words are not counted.
Transport optimistic_model(const Holdings& holdings);

// Returns a model of what is likely to work: the free capacity less one record header, and rows of
// average length. It equals the optimistic model if only blocks are short. It may be too large or
// too small, so a placement is made with the real capacities, and reports which cells the model
// overestimated.
Transport likely_model(const Holdings& holdings, const Transport& optimistic);

}  // namespace tessera::partitioner::internal
